"""All frameworks, in one visible order."""

from fullrank.frameworks.jax import JAX
from fullrank.frameworks.mpi import MPI
from fullrank.frameworks.mxnet import MXNET
from fullrank.frameworks.paddle import PADDLE
from fullrank.frameworks.pytorch import PYTORCH
from fullrank.frameworks.tensorflow import TENSORFLOW
from fullrank.frameworks.xgboost import XGBOOST

FRAMEWORKS = (PYTORCH, TENSORFLOW, MPI, MXNET, PADDLE, XGBOOST, JAX)
