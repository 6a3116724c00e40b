"""Trains a network to read digits on many workers, which share their gradients through MXNet's parameter servers.

Options and log are those of MXNet's image-classification sample.
"""

import argparse
import logging
import time

import mxnet as mx
from mxnet import autograd, gluon

from digits import centred, testing, training

logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")


def options():
    parser = argparse.ArgumentParser(description="MXNet digits, distributed")
    parser.add_argument("--network", choices=["mlp"], default="mlp", help="the network to train (default: mlp)")
    parser.add_argument("--num-layers", type=int, default=2, help="its hidden layers (default: 2)")
    parser.add_argument("--num-epochs", type=int, default=10, help="epochs to train (default: 10)")
    parser.add_argument("--num-examples", type=int, default=6_400, help="pictures to train with (default: 6400)")
    parser.add_argument("--batch-size", type=int, default=64, help="pictures a step, on each worker (default: 64)")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate (default: 0.05)")
    parser.add_argument("--mom", type=float, default=0.9, help="SGD momentum (default: 0.9)")
    parser.add_argument("--kv-store", default="device", help="how workers share what they learn (default: device)")
    parser.add_argument("--gpus", help="numbers of the GPUs to use, such as 0,1; without a GPU, the CPU is used")
    parser.add_argument("--disp-batches", type=int, default=50, help="steps between two log lines (default: 50)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    return parser.parse_args()


def device(gpus):
    wanted = [int(number) for number in (gpus or "").split(",") if number]
    if wanted and mx.context.num_gpus() > wanted[0]:
        return mx.gpu(wanted[0])
    if wanted:
        logging.info("--gpus %s: there is no such GPU that MXNet can use here, training on the CPU", gpus)
    return mx.cpu()


def network(layers):
    net = gluon.nn.HybridSequential()
    for number in range(layers):
        net.add(gluon.nn.Dense(128 if number == 0 else 64, activation="relu"))
    net.add(gluon.nn.Dense(10))
    net.hybridize()
    return net


def share(pictures, args, kv, context):
    """This worker's part of the pictures, as whole batches: all workers make the same number of steps."""
    images, labels = pictures
    steps = max(len(images) // (args.batch_size * kv.num_workers), 1)
    mine = slice(kv.rank, None, kv.num_workers)
    arrays = mx.nd.array(centred(images[mine]), ctx=context), mx.nd.array(labels[mine], ctx=context)
    for step in range(steps):
        yield tuple(array[step * args.batch_size : (step + 1) * args.batch_size] for array in arrays)


def train(args, net, kv, context):
    trainer = gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": args.lr, "momentum": args.mom}, kvstore=kv if "dist" in kv.type else "device"
    )
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    to_train = list(share(training(args.num_examples, args.seed), args, kv, context))
    to_test = list(share(testing(max(args.num_examples // 6, 1), args.seed + 1), args, kv, context))
    for epoch in range(args.num_epochs):
        seen = mx.metric.Accuracy()
        began = time.monotonic()
        for step, (images, labels) in enumerate(to_train, 1):
            with autograd.record():
                outputs = net(images)
                loss = loss_of(outputs, labels)
            loss.backward()
            trainer.step(len(images) * kv.num_workers)
            seen.update([labels], [outputs])
            if step % args.disp_batches == 0:
                speed = args.disp_batches * args.batch_size / (time.monotonic() - began)
                where = f"Batch [{step}]"
                logging.info("Epoch[%d] %-15sSpeed: %.0f samples/sec   accuracy=%.2f", epoch, where, speed, seen.get()[1])
                seen.reset()
                began = time.monotonic()
        held = mx.metric.Accuracy()
        for images, labels in to_test:
            held.update([labels], [net(images)])
        logging.info("Epoch[%d] Validation-accuracy=%.4f", epoch, held.get()[1])


def main():
    args = options()
    mx.random.seed(args.seed)
    kv = mx.kvstore.create(args.kv_store)
    logging.info("worker %d of %d, kv-store %s", kv.rank, kv.num_workers, kv.type)
    context = device(args.gpus)
    net = network(args.num_layers)
    net.initialize(mx.init.Xavier(magnitude=2.24), ctx=context)
    train(args, net, kv, context)
    print("Training completed.")


if __name__ == "__main__":
    main()
