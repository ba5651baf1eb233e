#!/usr/bin/env python3
"""Exports networks of PyTorch as ONNX, converts them, and trains them beside the originals on the same samples.

    onnx_peer.py SYNCOPATE FOLDER [NETWORK...]    (tiny resnet18 mobilenet_v2 vgg11; SYNCOPATE is the program)

Each network is written by both exporters of PyTorch, in training mode, into FOLDER. The data set is one batch, so that
the order of samples does not matter; dropout is 0. Prints the losses of 10 steps with momentum and their largest
relative difference, and fails if one is above 1e-4. onnx_peer_test.cc runs it. Exit code 77: the packages are not
installed.
"""
import json
import os
import subprocess
import sys
import warnings

warnings.simplefilter("ignore")
CLASSES = 4
STEPS = 10
LIMIT = 1e-4
# At larger rates PyTorch in float32 and in float64 differ by more than the limit after 10 steps: a batch norm of 16
# values amplifies rounding.
RATES = {"resnet18": 1e-5, "mobilenet_v2": 2e-7}
EXPORTS = {"torchscript": {"dynamo": False}, "dynamo": {"dynamo": True, "optimize": False}}


def tiny():
    from torch import nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1, groups=4), nn.Hardswish(),
        nn.Flatten(), nn.Linear(16 * 8 * 8, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.0), nn.Linear(32, CLASSES))


def vgg11():
    model = torchvision.models.vgg11(num_classes=CLASSES, dropout=0.0)
    model.avgpool = torch.nn.Identity()  # a map of 32x32 pixels has become one of 1x1
    model.classifier[0] = torch.nn.Linear(512, 128)
    model.classifier[3] = torch.nn.Linear(128, 128)
    model.classifier[6] = torch.nn.Linear(128, CLASSES)
    return model


def network(name):
    torch.manual_seed(7)
    if name == "tiny":
        return tiny()
    if name == "vgg11":
        return vgg11()
    extra = {"dropout": 0.0} if name == "mobilenet_v2" else {}
    return getattr(torchvision.models, name)(num_classes=CLASSES, **extra)


def samples(folder, count, size):
    random = np.random.default_rng(3)
    x = random.standard_normal((count, size, size, 3)).astype(np.float32)
    y = np.arange(count) % CLASSES
    for split in ("train", "test"):
        np.save(os.path.join(folder, f"x_{split}.npy"), x)
        np.save(os.path.join(folder, f"y_{split}.npy"), y)
    return torch.from_numpy(x.transpose(0, 3, 1, 2).copy()), torch.from_numpy(y)


def losses_of_torch(model, x, y, rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def losses_of_syncopate(program, files, data, count, rate):
    model, net, weights = files
    converted = subprocess.run([program, "convert", model, net, weights], capture_output=True, text=True)
    if converted.returncode != 0:
        sys.exit(converted.stderr)
    metrics = net + ".metrics"
    trained = subprocess.run(
        [program, "train", "--model", "file:" + net, "--init-from", weights, "--data", "npy:" + data, "--normalize",
         "none", "--augment", "none", "--optimizer", "momentum", "--learning-rate", str(rate), "--batch-size",
         str(count), "--steps", str(STEPS), "--log-every", "1", "--no-progress", "--metrics", metrics],
        capture_output=True, text=True)
    if trained.returncode != 0:
        sys.exit(trained.stderr)
    with open(metrics, encoding="utf-8") as lines:
        return [line["loss"] for line in map(json.loads, lines) if line["event"] == "step"]


def compare(program, folder, name, count=16, size=32):
    data = os.path.join(folder, "npy")
    os.makedirs(data, exist_ok=True)
    x, y = samples(data, count, size)
    rate = RATES.get(name, 0.01)
    expected = losses_of_torch(network(name).train(), x, y, rate)
    worst = 0.0
    for export, flags in EXPORTS.items():
        files = [os.path.join(folder, f"{name}-{export}{suffix}") for suffix in (".onnx", ".json", ".safetensors")]
        torch.onnx.export(network(name).train(), x[:2], files[0], training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, verbose=False, **flags)
        found = losses_of_syncopate(program, files, data, count, rate)
        difference = max(abs(a - b) / b for a, b in zip(found, expected))
        worst = max(worst, difference if len(found) == STEPS else 1.0)
        print(f"{name}, {export}: losses {expected[0]:.5f} to {expected[-1]:.5f} of PyTorch, {found[0]:.5f} to "
              f"{found[-1]:.5f} here, largest relative difference {difference:.1e}", flush=True)
    return worst


if __name__ == "__main__":
    try:
        import numpy as np
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
        import torch
        import torchvision
    except ImportError as error:
        print(error)
        sys.exit(77)
    torch.set_num_threads(2)
    names = sys.argv[3:] or ["tiny", "resnet18", "mobilenet_v2", "vgg11"]
    sys.exit(1 if max(compare(sys.argv[1], sys.argv[2], name) for name in names) > LIMIT else 0)
