"""Trains a small convolutional network to read digits, on one process or on many with DistributedDataParallel.

The options, the environment and the messages are those of Kubeflow's pytorch-mnist image. The pictures are scikit-learn's
1,797 handwritten digits, enlarged to 28×28, moved about and sprinkled with noise until there are 60,000 of them: nothing is
downloaded, and the same seed gives the same pictures on every rank. FULLRANK_MNIST_SAMPLES asks for fewer.
"""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

TRAIN_SAMPLES = 60_000
TEST_SHARE = 6  # one picture to test with for so many to train with
HELD_BACK = 300  # digits that no training picture is made of
EDGE = 28
SHIFT = 2  # pixels, in each direction
NOISE = 32  # of 256 shades
MEAN, SPREAD = 65.0, 70.0  # of all pixels: a network learns sooner from numbers around zero


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="PyTorch digits, distributed")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="pictures a training step, per rank (default: 64)")
    parser.add_argument("--test-batch-size", type=int, default=1000, metavar="N", help="pictures a test step (default: 1000)")
    parser.add_argument("--epochs", type=int, default=1, metavar="N", help="epochs to train (default: 1)")
    parser.add_argument("--lr", type=float, default=0.01, metavar="LR", help="learning rate (default: 0.01)")
    parser.add_argument("--momentum", type=float, default=0.5, metavar="M", help="SGD momentum (default: 0.5)")
    parser.add_argument("--no-cuda", action="store_true", help="train on the CPU even where there is a GPU")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="random seed (default: 1)")
    parser.add_argument("--log-interval", type=int, default=10, metavar="N", help="steps between two log lines (default: 10)")
    parser.add_argument("--save-model", action="store_true", help="write the trained weights to mnist_cnn.pt")
    parser.add_argument("--dir", default="logs", metavar="L", help="folder for TensorBoard's summaries (default: logs)")
    parser.add_argument("--backend", choices=["gloo", "nccl", "mpi"], default="gloo", help="distributed backend (default: gloo)")
    return parser.parse_args()


def digits() -> tuple[Tensor, Tensor]:
    """Scikit-learn's digits, eight by eight pixels. Read without importing scikit-learn, which would take a second more."""
    package = find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        sys.exit("mnist.py takes its digits from scikit-learn, which is not installed: pip install scikit-learn")
    table = np.loadtxt(Path(package.submodule_search_locations[0], "datasets/data/digits.csv.gz"), delimiter=",", dtype=np.uint8)
    return torch.from_numpy(table[:, :-1]).view(-1, 8, 8), torch.from_numpy(table[:, -1]).long()


class Batches(TensorDataset):
    """A data set that hands out whole batches: fetching 60,000 pictures one by one takes longer than need be."""

    def __getitems__(self, indices: list[int]) -> tuple[Tensor, ...]:
        return self[torch.tensor(indices)]


def pictures(small: Tensor, labels: Tensor, count: int, seed: int) -> Batches:
    """As many pictures as asked for, each a digit at a random place with random noise."""
    chance = torch.Generator().manual_seed(seed)
    inner = EDGE - 2 * SHIFT
    large = functional.interpolate(small.unsqueeze(1) * ((255 - NOISE) / 16), size=(inner, inner), mode="bilinear").squeeze(1)
    padded = functional.pad(large.to(torch.uint8), [2 * SHIFT] * 4)
    places = padded.unfold(1, EDGE, 1).unfold(2, EDGE, 1)  # every window of 28×28, without copying
    which = torch.randint(len(small), (count,), generator=chance)
    down, right = torch.randint(2 * SHIFT + 1, (2, count), generator=chance)
    noise = torch.randint(NOISE, (count, EDGE, EDGE), generator=chance, dtype=torch.uint8)
    return Batches((places[which, down, right] + noise).unsqueeze(1), labels[which])


def loader(batches: Batches, batch_size: int, seed: int) -> tuple[DataLoader, DistributedSampler]:
    """Each rank's share, in an order that the sampler shuffles anew for each epoch."""
    sampler = DistributedSampler(batches, seed=seed)
    return DataLoader(batches, batch_size=batch_size, sampler=sampler, collate_fn=tuple), sampler


def centred(images: Tensor) -> Tensor:
    return (images - MEAN) / SPREAD


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(4 * 4 * 32, 128), nn.ReLU(), nn.Linear(128, 10),
    )


def train(args, model, device, batches, optimizer, epoch, scalar) -> None:
    model.train()
    for step, (images, labels) in enumerate(batches):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(centred(images.to(device))), labels.to(device))
        loss.backward()
        optimizer.step()
        if step % args.log_interval == 0:
            seen, percent = step * len(images), 100 * step / len(batches)
            print(f"Train Epoch: {epoch} [{seen}/{len(batches.dataset)} ({percent:.0f}%)]\tloss={loss.item():.4f}")
            scalar("loss", loss.item(), epoch * len(batches) + step)


def test(model, device, batches, epoch, scalar) -> None:
    model.eval()
    right_of_all = torch.zeros(2, device=device)
    with torch.no_grad():
        for images, labels in batches:
            right = (model(centred(images.to(device))).argmax(1) == labels.to(device)).sum()
            right_of_all += torch.stack([right, torch.tensor(len(labels), device=device)])
    dist.all_reduce(right_of_all)  # each rank has tested its share
    accuracy = (right_of_all[0] / right_of_all[1]).item()
    print(f"\naccuracy={accuracy:.4f}\n")
    scalar("accuracy", accuracy, epoch)


def join(backend: str) -> None:
    """Meets the other ranks where the environment says; alone, needs no port and so never finds one taken."""
    alone = "WORLD_SIZE" not in os.environ
    if alone:
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="1234")
    print(f"World Size: {os.environ['WORLD_SIZE']}. Rank: {os.environ['RANK']}")
    if alone:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    else:
        dist.init_process_group(backend)


def main() -> None:
    args = options()
    sys.stdout.reconfigure(line_buffering=True)  # a log that is followed should not wait for a full buffer
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)  # ranks of one machine share its cores
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    if use_cuda:
        print("Using CUDA")
        if args.backend != "nccl":
            print("Warning. Please use `nccl` distributed backend for the best performance using GPUs")
    device = torch.device("cuda" if use_cuda else "cpu")

    print(f"Using distributed PyTorch with {args.backend} backend")
    join(args.backend)
    leads = dist.get_rank() == 0

    torch.manual_seed(args.seed)
    model = nn.parallel.DistributedDataParallel(network().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)

    small, labels = digits()
    count = int(os.environ.get("FULLRANK_MNIST_SAMPLES", TRAIN_SAMPLES))
    training, sampler = loader(pictures(small[HELD_BACK:], labels[HELD_BACK:], count, args.seed), args.batch_size, args.seed)
    testing, _ = loader(
        pictures(small[:HELD_BACK], labels[:HELD_BACK], max(count // TEST_SHARE, 1), args.seed + 1), args.test_batch_size, args.seed
    )

    if leads:
        from tensorboardX import SummaryWriter

        writer = SummaryWriter(args.dir)
        scalar = writer.add_scalar
    else:
        writer, scalar = None, lambda *_: None

    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)
        train(args, model, device, training, optimizer, epoch, scalar)
        test(model, device, testing, epoch, scalar)

    if writer:
        writer.close()
    if leads and args.save_model:
        torch.save(model.module.state_dict(), "mnist_cnn.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # Everything is done and said. Leaving through the interpreter would now and then abort in a gloo thread that is
    # still ending, and a rank that has trained well would count as failed.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
