"""Every kind of job a user can submit."""

from fullrank.dialects.contract import JobKind
from fullrank.dialects.kubeflow import KUBEFLOW
from fullrank.dialects.tensorstack import TENSORSTACK
from fullrank.frameworks.registry import FRAMEWORKS, TRAINING_FRAMEWORKS

JOB_KINDS = (
    *(JobKind(framework, KUBEFLOW) for framework in FRAMEWORKS),
    *(JobKind(framework, TENSORSTACK) for framework in TRAINING_FRAMEWORKS),
)
