#!/usr/bin/env python3
"""The yardsticks of `syncopate-bench input --data images:DIR`: tf.data and PyTorch's DataLoader on the same pictures.

    python3 bench/peers/input_peer.py DIR --loader tf --image-size 300 --threads 2

DIR holds a folder per class, or such folders under train/. Both decode, resize (bilinear, no antialiasing), shuffle and
batch on `--threads` CPUs, with what their manuals recommend: tf.data with parallel calls and prefetching (AUTOTUNE
within its private pool of `--threads`), DataLoader with `--threads` worker processes, Pillow's draft mode off, as by
default. `--threads auto` leaves the pool to tf.data, and DataLoader, which does not tune itself, gets all CPUs. --cached lets tf.data keep decoded pictures in memory; DataLoader has no cache.
With --records DIR is a folder of TensorFlow Datasets, of whose split train tf.data reads the features image and label.

Beside syncopate-bench it is started with --serve and answers one JSON line to each line on its standard input:
`run N` with the seconds of N batches, `quit` by ending.
"""

import argparse
import itertools
import json
import os
import pathlib
import time

import torch_step

PREFETCHED = 4  # batches that each worker of a DataLoader prepares ahead
SHUFFLED = 1000  # records in the buffer from which tf.data takes them in a random order


def find_files(folder):
    """Paths and labels; classes are numbered in the order of their names."""
    top = folder / "train" if (folder / "train").is_dir() else folder
    files, labels = [], []
    for label, path in enumerate(sorted(p for p in top.iterdir() if p.is_dir())):
        for file in sorted(path.iterdir()):
            files.append(str(file))
            labels.append(label)
    return files, labels


def tf_batches(args):
    """A function that starts an endless sequence of batches of tf.data, and a description."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    def decode(contents, label):
        small = tf.image.resize(tf.image.decode_jpeg(contents, channels=3), args.image_size)
        return tf.cast(tf.round(small), tf.uint8), label

    def read_file(path, label):
        return decode(tf.io.read_file(path), label)

    def read_record(record):
        features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
        sample = tf.io.parse_single_example(record, features)
        return decode(sample["image"], sample["label"])

    if args.records:
        shards = [str(path) for path in sorted(args.folder.rglob("*-train.tfrecord*"))]
        size = sum(1 for _ in tf.data.TFRecordDataset(shards))
        data = tf.data.Dataset.from_tensor_slices(shards).shuffle(len(shards))
        data = data.interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
    else:
        files, labels = find_files(args.folder)
        size = len(files)
        data = tf.data.Dataset.from_tensor_slices((files, labels))
    if not args.cached:
        data = data.shuffle(min(size, SHUFFLED) if args.records else size).repeat()
    data = data.map(read_record if args.records else read_file, num_parallel_calls=tf.data.AUTOTUNE,
                    deterministic=False)
    if args.cached:
        data = data.cache().shuffle(size).repeat()
    data = data.batch(args.batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    options = tf.data.Options()
    if args.threads != "auto":
        options.threading.private_threadpool_size = args.threads
    options = data.with_options(options)
    if args.cached:  # the first epoch fills the cache and is not measured
        for _ in itertools.islice(iter(options), size // args.batch_size + 1):
            pass
    return lambda: iter(options), f"tf.data of TensorFlow {tf.__version__}, {'cached in memory' if args.cached else 'no cache'}"


def torch_batches(args):
    """A function that starts an endless sequence of batches of a DataLoader, and a description."""
    import torch
    from torchvision.transforms import v2
    import torchvision

    class Pictures(torch.utils.data.Dataset):
        def __init__(self):
            self.files, self.labels = find_files(args.folder)
            self.resize = v2.Resize(args.image_size, antialias=False)

        def __len__(self):
            return len(self.files)

        def __getitem__(self, index):
            data = torchvision.io.read_file(self.files[index])
            picture = torchvision.io.decode_jpeg(data, mode=torchvision.io.ImageReadMode.RGB)
            return self.resize(picture), self.labels[index]

    def repeat():
        loader = torch.utils.data.DataLoader(
            Pictures(), batch_size=args.batch_size, shuffle=True, drop_last=True, num_workers=cpus_of(args.threads),
            prefetch_factor=PREFETCHED)
        while True:
            yield from loader

    torch.set_num_threads(1)
    return repeat, f"DataLoader of PyTorch {torch.__version__}, torchvision {torchvision.__version__}"


def cpus_of(threads):
    return len(os.sched_getaffinity(0)) if threads == "auto" else threads


def read_size(text):
    """Height and width: "300" or "192x224"."""
    sizes = [int(part) for part in text.split("x")]
    return (sizes[0], sizes[-1])


class Reader:
    """Takes batches and measures how long that takes.

    Each run has a sequence of its own, so that nothing is prepared while the other side is measured, and does not
    count the first batches, which were prepared while the sequence started.
    """

    def __init__(self, start_batches, threads):
        self.start_batches = start_batches
        self.uncounted = 1 + PREFETCHED * threads

    def run(self, count):
        batches = self.start_batches()
        for _ in range(self.uncounted):
            next(batches)
        seconds = []
        for _ in range(count):
            start = time.perf_counter()
            next(batches)
            seconds.append(time.perf_counter() - start)
        return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--loader", choices=["tf", "torch"], required=True)
    parser.add_argument("--image-size", type=read_size, default=(300, 300), help="N or HxW, pixels")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=lambda text: text if text == "auto" else int(text), default="auto")
    parser.add_argument("--cached", action="store_true", help="tf.data keeps decoded pictures in memory")
    parser.add_argument("--records", action="store_true", help="DIR is a folder of TensorFlow Datasets; for tf")
    parser.add_argument("--batches", type=int, default=20, help="batches of a run by hand")
    parser.add_argument("--serve", action="store_true", help="take commands from standard input")
    args = parser.parse_args()
    try:
        start_batches, description = (tf_batches if args.loader == "tf" else torch_batches)(args)
    except ImportError as error:
        torch_step.answer(event="error", message=f"{args.loader}: {error}; name an interpreter that has it")
        return
    reader = Reader(start_batches, cpus_of(args.threads))
    if args.serve:
        reader.run(1)
        torch_step.answer(event="ready", description=f"{description}, {args.threads} threads")
        torch_step.serve(reader)
    else:
        seconds = reader.run(args.batches)
        torch_step.answer(event="result", description=description,
                          samples_per_second=round(args.batches * args.batch_size / sum(seconds), 1))


if __name__ == "__main__":
    main()
