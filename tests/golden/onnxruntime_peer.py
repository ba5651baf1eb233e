#!/usr/bin/env python3
"""Trains networks for a few steps, exports them as ONNX files, and compares the scores of onnxruntime with `predict`.

    onnxruntime_peer.py SYNCOPATE FOLDER [NETWORK...]    (all of NETWORKS; SYNCOPATE is the program)

Prints the largest difference of a probability for each network and fails if one is above 1e-5. onnxruntime_test.cc
runs it. Exit code 77: the packages are not installed.
"""
import json
import os
import subprocess
import sys

LIMIT = 1e-5
CLASSES = 5
SIZE = 32
NETWORKS = ["mnist-cnn", "mlp", "resnet20", "resnet50", "mobilenet-v2", "vgg16", "fcn", "unet", "rare"]
MAPS = ("fcn", "unet")
# A network of operations that none of the table has.
RARE = [
    {"op": "input"},
    {"op": "layer_norm", "name": "norm"},
    {"op": "conv2d", "name": "conv", "channels": 8, "kernel": [3, 1], "pad": [1, 0, 1, 0]},
    {"op": "gelu"}, {"op": "silu"}, {"op": "hard-swish"}, {"op": "tanh"}, {"op": "sigmoid"},
    {"op": "average_pool", "window": 3, "stride": 2, "pad": 1},
    {"op": "conv_transpose2d", "name": "up", "channels": 4, "kernel": 3, "stride": 2, "pad": [1, 1, 0, 0], "bias": True},
    {"op": "global_average_pool", "name": "mean", "inputs": ["up"]}, {"op": "hard-sigmoid", "name": "factors"},
    {"op": "multiply", "inputs": ["up", "factors"]},
    {"op": "upsample2d", "scale": 2, "mode": "bilinear"}, {"op": "max_pool", "window": 4, "stride": 4},
    {"op": "upsample2d", "scale": 2}, {"op": "average_pool", "window": 4, "stride": 4, "name": "small"},
    {"op": "conv2d", "name": "query", "channels": 4, "kernel": 1, "bias": True},
    {"op": "slice", "first": 1, "count": 3, "inputs": ["query"], "name": "part"},
    {"op": "concat", "inputs": ["query", "part"]}, {"op": "slice", "count": 4},
    {"op": "reshape", "shape": [2, 32, 4], "name": "queries"},
    {"op": "transpose", "order": [0, 2, 1], "name": "keys"},
    {"op": "matmul", "inputs": ["queries", "keys"]},
    {"op": "linear", "factor": 0.5, "offset": 0.25}, {"op": "softmax", "name": "attention"},
    {"op": "matmul", "inputs": ["attention", "queries"]},
    {"op": "clip", "low": -0.5, "high": 0.75},
    {"op": "reduce_mean", "axes": [1]},
    {"op": "flatten"}, {"op": "layer_norm", "name": "norm2"},
    {"op": "dense", "name": "fc", "features": "classes"}, {"op": "softmax-cross-entropy"},
]


def call(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def make_samples(folder):
    random = np.random.default_rng(5)
    for split, count in (("train", 32), ("test", 8)):
        np.save(os.path.join(folder, f"x_{split}.npy"), random.integers(0, 256, (count, SIZE, SIZE, 3), dtype=np.uint8))
        np.save(os.path.join(folder, f"y_{split}.npy"), np.arange(count) % CLASSES)


def newest(folder):
    return os.path.join(folder, sorted(f for f in os.listdir(folder) if f.startswith("checkpoint-"))[-1])


def compare(program, folder, name):
    run = os.path.join(folder, name)
    model = name
    if name == "rare":
        model = "file:" + os.path.join(folder, "rare.json")
        with open(model[5:], "w", encoding="utf-8") as file:
            json.dump({"name": "rare", "nodes": RARE}, file)
    data = "shapes" if name in MAPS else "npy:" + folder
    call([program, "train", "--model", model, "--data", data, "--steps", "3", "--batch-size", "8", "--learning-rate",
          "0.001", "--no-progress", "--checkpoint-dir", run])
    checkpoint = newest(run)
    file = os.path.join(folder, name + ".onnx")
    told = call([program, "export", "--onnx", "--checkpoint", checkpoint, file])
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    normalization = session.get_modelmeta().custom_metadata_map["input"]
    if normalization not in told:
        sys.exit(f"{name}: the file says {normalization}, the program {told}")
    unit = float(normalization.split()[2].rstrip(")"))
    mean, stddev = (np.array(json.loads(normalization.split(word)[1].split("]")[0] + "]"), dtype=np.float32)
                    for word in ("with mean ", "and stddev "))
    channels, height, width = entry.shape[1:]
    pixels = np.random.default_rng(6).integers(0, 256, (4, height, width, channels), dtype=np.uint8)
    samples = os.path.join(folder, name + "-samples.npy")
    np.save(samples, pixels)
    ours = [json.loads(line) for line in
            call([program, "predict", "--checkpoint", checkpoint, "--json", samples]).splitlines()]
    x = ((pixels.astype(np.float32) / np.float32(unit) - mean) / stddev).transpose(0, 3, 1, 2)
    logits = session.run(["logits"], {entry.name: np.ascontiguousarray(x)})[0].astype(np.float64)
    if name in MAPS:
        classes = logits.argmax(axis=1)
        theirs = np.stack([[np.mean(one == c) for c in range(logits.shape[1])] for one in classes])
    else:
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        theirs = powers / powers.sum(axis=1, keepdims=True)
    found = np.array([list(line["shares" if name in MAPS else "probabilities"]) for line in ours])
    difference = np.abs(found - theirs).max()
    print(f"{name}: largest difference {difference:.1e}", flush=True)
    return difference


if __name__ == "__main__":
    try:
        import numpy as np
        import onnxruntime
    except ImportError as error:
        print(error)
        sys.exit(77)
    make_samples(sys.argv[2])
    names = sys.argv[3:] or NETWORKS
    sys.exit(1 if max(compare(sys.argv[1], sys.argv[2], name) for name in names) > LIMIT else 0)
