"""Every kind of job a user can submit."""

from fullrank.dialects.contract import JobKind
from fullrank.dialects.kubeflow import KUBEFLOW
from fullrank.frameworks.registry import FRAMEWORKS

JOB_KINDS = tuple(JobKind(framework, KUBEFLOW) for framework in FRAMEWORKS)
