"""Trains a small network to read digits, on one worker or on many that average their gradients.

    python -m paddle.distributed.launch train.py --epochs=10
"""

import argparse

import numpy as np
import paddle
from paddle import nn

from digits import centred, testing, training


def options():
    parser = argparse.ArgumentParser(description="PaddlePaddle digits, distributed")
    parser.add_argument("--epochs", type=int, default=10, help="epochs to train (default: 10)")
    parser.add_argument("--batch-size", type=int, default=32, help="pictures a step, on each worker (default: 32)")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate (default: 0.05)")
    parser.add_argument("--num-examples", type=int, default=6_400, help="pictures to train with (default: 6400)")
    parser.add_argument("--log-interval", type=int, default=50, help="steps between two log lines (default: 50)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    return parser.parse_args()


def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def share(args, rank, world):
    """This worker's part of the pictures, as whole batches: all workers make the same number of steps."""
    images, labels = training(args.num_examples, args.seed)
    steps = max(len(images) // (args.batch_size * world), 1)
    images, labels = centred(images[rank::world]), labels[rank::world]
    for step in range(steps):
        mine = slice(step * args.batch_size, (step + 1) * args.batch_size)
        yield paddle.to_tensor(images[mine]), paddle.to_tensor(labels[mine])


def accuracy(model, args):
    images, labels = testing(max(args.num_examples // 6, 1), args.seed + 1)
    model.eval()
    with paddle.no_grad():
        answers = model(paddle.to_tensor(centred(images))).numpy().argmax(axis=1)
    model.train()
    return float(np.mean(answers == labels))


def main():
    args = options()
    paddle.set_device("cpu" if not paddle.is_compiled_with_cuda() else "gpu")
    paddle.distributed.init_parallel_env()
    rank, world = paddle.distributed.get_rank(), paddle.distributed.get_world_size()
    paddle.seed(args.seed)
    model = paddle.DataParallel(network()) if world > 1 else network()
    optimizer = paddle.optimizer.Momentum(args.lr, momentum=0.9, parameters=model.parameters())
    batches = list(share(args, rank, world))

    for epoch in range(1, args.epochs + 1):
        for step, (images, labels) in enumerate(batches, 1):
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            if step % args.log_interval == 0:
                print(f"Worker {rank}: Epoch {epoch}, Batch {step}, Loss {float(loss):.4f}", flush=True)
    print(f"Worker {rank}: accuracy={accuracy(model, args):.4f}")
    print("Training completed.", flush=True)


if __name__ == "__main__":
    main()
