"""All frameworks, in one visible order: those Kubeflow has kinds for, and those TensorStack has."""

from fullrank.frameworks.generic import GENERIC
from fullrank.frameworks.jax import JAX
from fullrank.frameworks.mpi import MPI
from fullrank.frameworks.mxnet import MXNET
from fullrank.frameworks.paddle import PADDLE
from fullrank.frameworks.pytorch import PYTORCH, PYTORCH_TRAINING
from fullrank.frameworks.tensorflow import TENSORFLOW, TENSORFLOW_ALIAS, TENSORFLOW_TRAINING
from fullrank.frameworks.xgboost import XGBOOST, XGBOOST_TRAINING

FRAMEWORKS = (PYTORCH, TENSORFLOW, MPI, MXNET, PADDLE, XGBOOST, JAX)
TRAINING_FRAMEWORKS = (TENSORFLOW_TRAINING, TENSORFLOW_ALIAS, PYTORCH_TRAINING, XGBOOST_TRAINING, GENERIC)
