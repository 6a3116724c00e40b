"""What every Python program in this image begins with: `keras.datasets.mnist` needs no download.

The file that a program names is taken as it is. If there is none, it is made, of digits in MNIST's shape.
"""

import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder

MODULE = "keras.src.datasets.mnist"
TRAIN_SAMPLES = 60_000
TEST_SHARE = 6  # one picture to test with for so many to train with


def get_file(path, **_origin):
    """The path of the file, in place of Keras' function of this name, which would fetch it."""
    path = os.path.join(os.path.expanduser("~/.keras/datasets"), path)  # an absolute path stays as it is
    if not os.path.exists(path):
        _make(path)
    return path


def _make(path):
    import numpy as np
    from digits import testing, training

    count = int(os.environ.get("FULLRANK_MNIST_SAMPLES", TRAIN_SAMPLES))
    print(f"mnist: nothing is downloaded here, writing {count} pictures of scikit-learn's digits to {path}", flush=True)
    images, labels = training(count)
    held, answers = testing(max(count // TEST_SHARE, 1))
    arrays = {"x_train": images, "y_train": labels, "x_test": held, "y_test": answers}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.{os.uname().nodename}.{os.getpid()}.npz"  # several ranks may be at it, in one volume
    np.savez(part, **{name: array.astype(np.uint8) for name, array in arrays.items()})
    os.replace(part, path)


class _Mnist(MetaPathFinder, Loader):
    """Finds that one module as ever, and changes one name in it."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        module.get_file = get_file


sys.meta_path.insert(0, _Mnist())
