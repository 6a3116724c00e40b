"""Trains a small network to read digits on all processes of a JAXJob, which hold the same weights all the time."""

import argparse
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from digits import centred, testing, training

SIZES = (28 * 28, 128, 64, 10)


def options():
    parser = argparse.ArgumentParser(description="JAX digits, distributed")
    parser.add_argument("--epochs", type=int, default=5, help="epochs to train (default: 5)")
    parser.add_argument("--batch-size", type=int, default=128, help="pictures a step, over all processes (default: 128)")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate (default: 0.1)")
    parser.add_argument("--num-examples", type=int, default=6_400, help="pictures to train with (default: 6400)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    return parser.parse_args()


def join():
    """Meets the other processes where the environment says."""
    if "COORDINATOR_ADDRESS" not in os.environ:
        return
    address = f"{os.environ['COORDINATOR_ADDRESS']}:{os.environ['COORDINATOR_PORT']}"
    processes, rank = int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"])
    jax.distributed.initialize(address, processes, rank, heartbeat_timeout_seconds=20)


def weights(seed):
    keys = jax.random.split(jax.random.key(seed), len(SIZES) - 1)
    pairs = zip(keys, SIZES[:-1], SIZES[1:], strict=True)
    return [(jax.random.normal(key, (a, b)) * np.sqrt(2 / a), jnp.zeros(b)) for key, a, b in pairs]


def scores(layers, images):
    for matrix, bias in layers[:-1]:
        images = jax.nn.relu(images @ matrix + bias)
    matrix, bias = layers[-1]
    return images @ matrix + bias


def loss_of(layers, images, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores(layers, images)), labels[:, None], axis=1))


@jax.jit
def step(layers, images, labels, rate):
    loss, slopes = jax.value_and_grad(loss_of)(layers, images, labels)
    return jax.tree.map(lambda weight, slope: weight - rate * slope, layers, slopes), loss


def main():
    args = options()
    join()
    rank, world = jax.process_index(), jax.process_count()
    print(f"JAX process {rank} of {world}, {jax.local_device_count()} of {jax.device_count()} devices", flush=True)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    split, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())

    images, labels = training(args.num_examples, args.seed)
    images = centred(images.reshape(len(images), -1))
    share = args.batch_size // world
    layers = jax.device_put(weights(args.seed), whole)
    for epoch in range(1, args.epochs + 1):
        for start in range(0, len(images) - args.batch_size + 1, args.batch_size):
            mine = slice(start + rank * share, start + (rank + 1) * share)
            batch = [jax.make_array_from_process_local_data(split, part[mine]) for part in (images, labels.astype(np.int32))]
            layers, loss = step(layers, *batch, args.lr)
        print(f"Epoch {epoch}: loss={float(loss):.4f}", flush=True)

    held, answers = testing(max(args.num_examples // 6, 1), args.seed + 1)
    mine = jax.tree.map(lambda weight: np.asarray(weight.addressable_data(0)), layers)
    guesses = np.asarray(scores(mine, centred(held.reshape(len(held), -1)))).argmax(axis=1)
    print(f"accuracy={np.mean(guesses == answers):.4f}", flush=True)


if __name__ == "__main__":
    main()
