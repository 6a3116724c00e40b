"""Every kind a user can submit beyond Kubernetes' own: jobs, and the queues they wait in."""

from fullrank.api.queues import QUEUE_KINDS, QueueKind
from fullrank.dialects.contract import JobKind
from fullrank.dialects.kubeflow import KUBEFLOW
from fullrank.dialects.tensorstack import TENSORSTACK
from fullrank.frameworks.registry import FRAMEWORKS, TRAINING_FRAMEWORKS

JOB_KINDS = (
    *(JobKind(framework, KUBEFLOW) for framework in FRAMEWORKS),
    *(JobKind(framework, TENSORSTACK) for framework in TRAINING_FRAMEWORKS),
)
SUBMITTED_KINDS: tuple[JobKind | QueueKind, ...] = (*JOB_KINDS, *QUEUE_KINDS)
