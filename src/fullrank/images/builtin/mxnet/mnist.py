"""Trains a small network to read digits, in one process. Options and log are those of MXNet's gluon sample."""

import argparse
import random

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from digits import centred, testing, training


def options():
    parser = argparse.ArgumentParser(description="MXNet Gluon digits")
    parser.add_argument("--batch-size", type=int, default=100, help="pictures a training step (default: 100)")
    parser.add_argument("--epochs", type=int, default=10, help="epochs to train (default: 10)")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate (default: 0.05)")
    parser.add_argument("--momentum", type=float, default=0.9, help="SGD momentum (default: 0.9)")
    parser.add_argument("--cuda", action="store_true", help="train on a GPU, if there is one")
    parser.add_argument("--log-interval", type=int, default=100, help="steps between two log lines (default: 100)")
    parser.add_argument("--num-examples", type=int, default=6_400, help="pictures to train with (default: 6400)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    return parser.parse_args()


def device(cuda):
    if cuda and mx.context.num_gpus():
        return mx.gpu()
    if cuda:
        print("--cuda: there is no GPU that MXNet can use here, training on the CPU")
    return mx.cpu()


def batches(pictures, batch_size, shuffle):
    images, labels = pictures
    arrays = mx.nd.array(centred(images)[:, None]), mx.nd.array(labels.astype(np.float32))
    return gluon.data.DataLoader(gluon.data.ArrayDataset(*arrays), batch_size, shuffle=shuffle)


def network():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(128, activation="relu"), gluon.nn.Dense(64, activation="relu"), gluon.nn.Dense(10))
    net.hybridize()
    return net


def accuracy(net, loader, context):
    metric = mx.metric.Accuracy()
    for images, labels in loader:
        metric.update([labels.as_in_context(context)], [net(images.as_in_context(context))])
    return metric.get()[1]


def main():
    args = options()
    mx.random.seed(args.seed)
    np.random.seed(args.seed)
    random.seed(args.seed)
    context = device(args.cuda)
    net = network()
    net.initialize(mx.init.Xavier(magnitude=2.24), ctx=context)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": args.lr, "momentum": args.momentum})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    to_train = batches(training(args.num_examples, args.seed), args.batch_size, shuffle=True)
    to_test = batches(testing(max(args.num_examples // 6, 1), args.seed + 1), args.batch_size, shuffle=False)

    for epoch in range(1, args.epochs + 1):
        for step, (images, labels) in enumerate(to_train, 1):
            with autograd.record():
                loss = loss_of(net(images.as_in_context(context)), labels.as_in_context(context))
            loss.backward()
            trainer.step(len(images))
            if step % args.log_interval == 0:
                print(f"[Epoch {epoch} Batch {step}] loss={loss.mean().asscalar():.4f}")
        print(f"Epoch {epoch}: accuracy={accuracy(net, to_test, context):.2f}")
    print("Training completed.")


if __name__ == "__main__":
    main()
