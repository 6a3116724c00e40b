"""Measures how many images a second some ranks train a well-known network with, adding up their gradients over MPI.

Options and report are those of TensorFlow's tf_cnn_benchmarks. The images are synthetic, each rank's own and always the
same, so that the loss falls as the network learns them by heart. Where there is no GPU they are small and there are few
steps: a CPU would need an hour for what a GPU does in a minute.
"""

import argparse
import time

import numpy as np
import tensorflow as tf
from mpi4py import MPI

NETWORKS = {
    "resnet50": tf.keras.applications.ResNet50,
    "resnet101": tf.keras.applications.ResNet101,
    "resnet152": tf.keras.applications.ResNet152,
    "mobilenet": tf.keras.applications.MobileNet,
    "vgg16": tf.keras.applications.VGG16,
}
CLASSES = 1000
LINE = "-" * 64


def options():
    has_gpu = bool(tf.config.list_physical_devices("GPU"))
    parser = argparse.ArgumentParser(description="TensorFlow convolutional networks, distributed")
    parser.add_argument("--model", choices=["trivial", *NETWORKS], default="trivial", help="the network (default: trivial)")
    parser.add_argument("--batch_size", type=int, default=64, help="images a step, on each rank (default: 64)")
    parser.add_argument("--num_batches", type=int, default=100 if has_gpu else 5, help="steps to measure (default: 100, on a CPU 5)")
    parser.add_argument("--num_warmup_batches", type=int, default=10 if has_gpu else 1, help="steps before that (default: 10, on a CPU 1)")
    parser.add_argument("--display_every", type=int, default=10 if has_gpu else 1, help="steps between two lines (default: 10, on a CPU 1)")
    parser.add_argument("--image_size", type=int, default=224 if has_gpu else 32, help="edge of an image (default: 224, on a CPU 32)")
    parser.add_argument("--learning_rate", type=float, default=0.01, help="step size (default: 0.01)")
    parser.add_argument("--variable_update", choices=["horovod", "replicated"], default="horovod", help="all-reduce, whatever it is called")
    parser.add_argument("--data_name", choices=["imagenet"], default="imagenet", help="whose shape the images have")
    return parser.parse_args()


def network(args):
    shape = (args.image_size, args.image_size, 3)
    if args.model == "trivial":
        return tf.keras.Sequential([tf.keras.layers.Flatten(input_shape=shape), tf.keras.layers.Dense(CLASSES)])
    return NETWORKS[args.model](weights=None, input_shape=shape, classes=CLASSES, classifier_activation=None)


class Rank:
    """One rank's copy of the network, kept equal to the others'."""

    def __init__(self, args, comm):
        tf.keras.utils.set_random_seed(1)  # every rank begins with the same weights
        self._comm = comm
        self._model = network(args)
        self._optimizer = tf.keras.optimizers.SGD(args.learning_rate, momentum=0.9)
        self._optimizer.build(self._model.trainable_variables)
        chance = np.random.RandomState(comm.rank)
        self._images = tf.constant(chance.normal(size=(args.batch_size, args.image_size, args.image_size, 3)), tf.float32)
        self._labels = tf.constant(chance.randint(CLASSES, size=args.batch_size))

    def step(self):
        loss, slopes = self._slopes()
        total = np.empty_like(slopes.numpy())
        self._comm.Allreduce(slopes.numpy(), total)
        self._learn(tf.constant(total / self._comm.size))
        return self._comm.allreduce(float(loss)) / self._comm.size

    @tf.function
    def _slopes(self):
        with tf.GradientTape() as tape:
            scores = self._model(self._images, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(self._labels, scores))
        slopes = tape.gradient(loss, self._model.trainable_variables)
        return loss, tf.concat([tf.reshape(slope, [-1]) for slope in slopes], axis=0)

    @tf.function
    def _learn(self, slopes):
        variables = self._model.trainable_variables
        parts = tf.split(slopes, [np.prod(variable.shape) for variable in variables])
        shaped = [tf.reshape(part, variable.shape) for part, variable in zip(parts, variables, strict=True)]
        self._optimizer.apply_gradients(zip(shaped, variables, strict=True))


def introduce(args, comm, hosts, say):
    device = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    say(f"TensorFlow:  {'.'.join(tf.__version__.split('.')[:2])}")
    say(f"Model:       {args.model}")
    say(f"Dataset:     {args.data_name} (synthetic)")
    say("Mode:        training")
    say(f"Batch size:  {args.batch_size} per device")
    say(f"             {args.batch_size * comm.size} global")
    say(f"Image size:  {args.image_size}")
    say(f"Num batches: {args.num_batches}")
    say(f"Devices:     {[f'{args.variable_update}/{device}:{rank}' for rank in range(comm.size)]}")
    say(f"Hosts:       {hosts}")
    say("Step\tImg/sec\ttotal_loss")


def main():
    args = options()
    comm = MPI.COMM_WORLD
    tf.config.threading.set_intra_op_parallelism_threads(1)  # ranks of one machine share its cores
    hosts = comm.gather(MPI.Get_processor_name())

    def say(text):
        if comm.rank == 0:
            print(text, flush=True)

    introduce(args, comm, hosts, say)
    rank = Rank(args, comm)
    for _ in range(args.num_warmup_batches):
        rank.step()
    speeds = []
    for step in range(1, args.num_batches + 1):
        comm.Barrier()
        began = time.perf_counter()
        loss = rank.step()
        speeds.append(args.batch_size * comm.size / (time.perf_counter() - began))
        if step % args.display_every == 0:
            spread = np.std(speeds) / np.sqrt(len(speeds))
            say(f"{step}\timages/sec: {np.mean(speeds):.1f} +/- {spread:.1f} (jitter = {np.std(speeds):.1f})\t{loss:.3f}")
    say(LINE)
    say(f"Total images/sec: {np.mean(speeds):.2f}")
    say(LINE)


if __name__ == "__main__":
    main()
