#!/usr/bin/env python3
"""Exports networks of PyTorch as ONNX, converts them, and trains them beside the originals on the same samples.

    onnx_peer.py SYNCOPATE FOLDER [NETWORK...]    (tiny enlarged attention resnet18 mobilenet_v2 mobilenet_v3_small
                                                   efficientnet_b0 vgg11; SYNCOPATE is the program)

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
RATES = {"resnet18": 1e-5, "mobilenet_v2": 2e-7, "efficientnet_b0": 1e-6}
EXPORTS = {"torchscript": {"dynamo": False}, "dynamo": {"dynamo": True, "optimize": False}}


def tiny():
    from torch import nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1, groups=4), nn.Hardswish(),
        nn.Flatten(), nn.Linear(16 * 8 * 8, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.0), nn.Linear(32, CLASSES))


def enlarged():
    """Maps that are enlarged in both ways, gated, clipped and reshaped."""
    from torch import nn

    class Enlarged(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide = nn.Conv2d(3, 8, 3, padding=1)
            self.deep = nn.Conv2d(8, 12, 3, stride=2, padding=1)
            self.gate = nn.Conv2d(12, 12, 1)
            self.last = nn.Conv2d(32, 6, 3, stride=2)
            self.classifier = nn.Linear(15 * 6, CLASSES)

        def forward(self, x):
            wide = torch.relu(self.wide(x))
            deep = self.deep(wide).clamp(-0.2, 1.5)
            deep = deep * nn.functional.hardsigmoid(self.gate(deep.mean((2, 3), keepdim=True)))
            up = [nn.functional.interpolate(deep, scale_factor=2, mode=mode) for mode in ("bilinear", "nearest")]
            x = self.last(torch.cat([wide, *up], 1)) * 2 - 0.5
            x = x.permute(0, 3, 1, 2).reshape(-1, 15, 6, 15).mean(3)
            return self.classifier(torch.tanh(x.flatten(1)))

    return Enlarged()


def attention():
    """A transformer's block on the patches of an image, with two heads."""
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, width=16, heads=2):
            super().__init__()
            self.heads = heads
            self.embed = nn.Conv2d(3, width, 4, stride=4)
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.query, self.out = nn.Linear(width, width), nn.Linear(width, width)
            self.key_value = nn.Linear(width, 2 * width, bias=False)
            self.up, self.down = nn.Linear(width, 32), nn.Linear(32, width)
            self.classifier = nn.Linear(width, CLASSES)

        def attend(self, x):
            n, pixels, width = x.shape
            query, key, value = (each.view(n, pixels, self.heads, width // self.heads).transpose(1, 2)
                                 for each in (self.query(x), *self.key_value(x).chunk(2, -1)))
            weights = torch.softmax(query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5, -1)
            return self.out((weights @ value).transpose(1, 2).reshape(n, pixels, width))

        def forward(self, x):
            x = self.embed(x).flatten(2).transpose(1, 2)
            x = x + self.attend(self.norm1(x))
            x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
            return self.classifier(x.mean(1))

    return Attention()


def vgg11():
    model = torchvision.models.vgg11(num_classes=CLASSES, dropout=0.0)
    model.avgpool = torch.nn.Identity()  # a map of 32x32 pixels has become one of 1x1
    model.classifier[0] = torch.nn.Linear(512, 128)
    model.classifier[3] = torch.nn.Linear(128, 128)
    model.classifier[6] = torch.nn.Linear(128, CLASSES)
    return model


def network(name):
    torch.manual_seed(7)
    own = {"tiny": tiny, "enlarged": enlarged, "attention": attention, "vgg11": vgg11}
    if name in own:
        return own[name]()
    extra = {"dropout": 0.0} if name != "resnet18" else {}
    if name.startswith("efficientnet"):
        extra["stochastic_depth_prob"] = 0.0
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
        [program, "train", "--model", "file:" + net, "--init-from", weights, "--data", data, "--normalize",
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
        found = losses_of_syncopate(program, files, "npy:" + data, count, rate)
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
    names = sys.argv[3:] or ["tiny", "enlarged", "attention", "resnet18", "mobilenet_v2", "mobilenet_v3_small",
                             "efficientnet_b0", "vgg11"]
    sys.exit(1 if max(compare(sys.argv[1], sys.argv[2], name) for name in names) > LIMIT else 0)
