"""Pictures of digits in MNIST's shape, made on the spot: nothing is downloaded.

They are scikit-learn's 1,797 handwritten digits, enlarged to 28×28, moved about and sprinkled with noise until there are
as many as asked for. The same seed gives the same pictures on every rank. No picture to test with is made of a digit
that one to train with is made of.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

HELD_BACK = 300  # digits that only pictures to test with are made of
EDGE, SMALL_EDGE = 28, 8
SHIFT = 2  # pixels, in each direction
NOISE = 32  # of 256 shades
MEAN, SPREAD = 65.0, 70.0  # of all pixels: a network learns sooner from numbers around zero


def training(count, seed=1):
    """Pictures as bytes, count×28×28, and their labels."""
    small, labels = _digits()
    return _pictures(small[HELD_BACK:], labels[HELD_BACK:], count, seed)


def testing(count, seed=2):
    small, labels = _digits()
    return _pictures(small[:HELD_BACK], labels[:HELD_BACK], count, seed)


def centred(images):
    return (images.astype(np.float32) - MEAN) / SPREAD


def _digits():
    """Eight by eight pixels in 17 shades. Read without importing scikit-learn, which would take a second more."""
    package = find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        sys.exit("the digits come with scikit-learn, which is not installed: pip install scikit-learn")
    table = np.loadtxt(Path(package.submodule_search_locations[0], "datasets/data/digits.csv.gz"), delimiter=",", dtype=np.uint8)
    return table[:, :-1].reshape(-1, SMALL_EDGE, SMALL_EDGE), table[:, -1].astype(np.int64)


def _pictures(small, labels, count, seed):
    chance = np.random.RandomState(seed)  # its stream of numbers is the same in every version of NumPy
    wide = _enlarging(EDGE - 2 * SHIFT)
    large = (wide @ (small * ((255 - NOISE) / 16)) @ wide.T).astype(np.uint8)
    padded = np.pad(large, [(0, 0), (2 * SHIFT, 2 * SHIFT), (2 * SHIFT, 2 * SHIFT)])
    places = np.lib.stride_tricks.sliding_window_view(padded, (EDGE, EDGE), axis=(1, 2))
    which = chance.randint(len(small), size=count)
    down, right = chance.randint(2 * SHIFT + 1, size=(2, count))
    images = places[which, down, right]
    images += chance.randint(NOISE, size=images.shape, dtype=np.uint8)
    return images, labels[which]


def _enlarging(edge):
    """The matrix that stretches eight pixels to `edge`, each a mixture of its two nearest."""
    centres = np.clip((np.arange(edge) + 0.5) * SMALL_EDGE / edge - 0.5, 0, SMALL_EDGE - 1)
    return np.maximum(0, 1 - np.abs(centres[:, None] - np.arange(SMALL_EDGE)))
