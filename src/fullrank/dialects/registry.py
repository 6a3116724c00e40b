"""Every kind a user can submit beyond Kubernetes' own: jobs, the queues they wait in, and programs to look at them."""

from fullrank.api.queues import QUEUE_KINDS, QueueKind
from fullrank.dialects.apps import AppKind
from fullrank.dialects.contract import JobKind
from fullrank.dialects.kubeflow import KUBEFLOW
from fullrank.dialects.notebook import NOTEBOOKS
from fullrank.dialects.tensorboard import TENSORBOARDS
from fullrank.dialects.tensorstack import TENSORSTACK
from fullrank.frameworks.registry import FRAMEWORKS, TRAINING_FRAMEWORKS

JOB_KINDS = (
    *(JobKind(framework, KUBEFLOW) for framework in FRAMEWORKS),
    *(JobKind(framework, TENSORSTACK) for framework in TRAINING_FRAMEWORKS),
)
APP_KINDS = (TENSORBOARDS, NOTEBOOKS)
SUBMITTED_KINDS: tuple[JobKind | AppKind | QueueKind, ...] = (*JOB_KINDS, *APP_KINDS, *QUEUE_KINDS)
