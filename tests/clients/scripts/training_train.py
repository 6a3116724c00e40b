"""The SDK's `train`: what it asks a home for. The model would come from the internet, so nobody waits for the job."""

import transformers
from kubeflow.storage_initializer.hugging_face import (
    HuggingFaceDatasetParams,
    HuggingFaceModelParams,
    HuggingFaceTrainerParams,
)
from kubeflow.training import TrainingClient
from kubernetes import client
from peft import LoraConfig

training = TrainingClient()
training.train(
    name="fine-tune",
    num_workers=2,
    num_procs_per_worker=1,
    resources_per_worker={"cpu": 1, "memory": "1G"},
    model_provider_parameters=HuggingFaceModelParams(
        model_uri="hf://bert-base-cased", transformer_type=transformers.AutoModelForSequenceClassification
    ),
    dataset_provider_parameters=HuggingFaceDatasetParams(repo_id="yelp_review_full", split="train[:8]"),
    trainer_parameters=HuggingFaceTrainerParams(
        training_parameters=transformers.TrainingArguments(output_dir="out", use_cpu=True),
        lora_config=LoraConfig(r=8),
    ),
)
claim = client.CoreV1Api().read_namespaced_persistent_volume_claim("fine-tune", "default")
assert claim.status.phase == "Bound", claim.status
job = training.get_job("fine-tune")
master = job.spec.pytorch_replica_specs["Master"].template.spec
assert [one.name for one in master.init_containers] == ["storage-initializer"]
assert job.spec.pytorch_replica_specs["Worker"].replicas == 1
training.delete_job("fine-tune")
print("fine")
