#!/usr/bin/env python3
"""Reads our TFRecord files with TensorFlow, and writes files for us, for tensorflow_test.cc, which runs this script.

    tensorflow_peer.py read FILE     prints a line per record: the sum of the bytes of image, and label
    tensorflow_peer.py write DIR     writes DIR/plain.tfrecord, DIR/packed.tfrecord (gzip) and DIR/otbtf

Exits with 77 where there is no TensorFlow.
"""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
try:
    import tensorflow as tf
except ImportError as error:
    print(error)
    sys.exit(77)


def read(path):
    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    for record in tf.data.TFRecordDataset(path):
        example = tf.io.parse_single_example(record, features)
        print(sum(example["image"].numpy()), int(example["label"]))


def bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def example(features):
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write(folder):
    label = lambda i: tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 3]))
    for name, options in (("plain", None), ("packed", tf.io.TFRecordOptions(compression_type="GZIP"))):
        with tf.io.TFRecordWriter(f"{folder}/{name}.tfrecord", options) as writer:
            for i in range(20):
                writer.write(example({"image": bytes_feature(bytes([i, 2 * i])), "label": label(i)}))
    for split, count in (("train", 3), ("test", 2)):
        path = f"{folder}/otbtf/{split}"
        os.makedirs(path)
        with open(f"{path}/output_types.json", "w") as file:
            json.dump({"xs": "uint16", "map": "int32"}, file)
        with open(f"{path}/output_shape.json", "w") as file:
            json.dump({"xs": [2, 2, 4], "map": [2, 2, 1]}, file)
        with tf.io.TFRecordWriter(f"{path}/0.records") as writer:
            for i in range(count):
                xs = tf.reshape(tf.range(16) + 1000 * i, [2, 2, 4])
                map_ = tf.fill([2, 2, 1], i)  # equal values: a small tensor is stored as a list
                tensors = {"xs": tf.cast(xs, tf.uint16), "map": tf.cast(map_, tf.int32)}
                writer.write(example({k: bytes_feature(tf.io.serialize_tensor(v).numpy()) for k, v in tensors.items()}))


{"read": read, "write": write}[sys.argv[1]](sys.argv[2])
