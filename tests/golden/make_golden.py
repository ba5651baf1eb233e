#!/usr/bin/env python3
"""Computes the golden numbers in this folder with PyTorch: one safetensors file per network.

    /usr/bin/python3 tests/golden/make_golden.py [network ...]       (Debian: python3-torch, 1.13)

All numbers are computed in float64, so a comparison measures the rounding of the tested program only. Initial
values are f(seed, parameter name, index in the file). They are implemented here a second time, after
models/base/random.cc and models/graph/parameter_values.cc, so a mistake in either copy shows. Modules have the
usual names of PyTorch, so that names in state_dict equal the names of this project.

Rounding may move an input of a ReLU or a max pool across a kink, where the derivative jumps, and one such input
changes a gradient by 1e-2 in L2. PyTorch in float32 differs that much from float64 for some samples. Therefore
several seeds of samples are tried, and the seed is used whose inputs keep the largest distance from the kinks;
the file stores that distance as "margin".
"""
import json
import math
import pathlib
import struct
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SEED = 7
STEPS = 10
SEEDS_TRIED = 40
KEPT = 2048  # the number of stored elements of a larger tensor, at a fixed stride, besides its norm
INITIAL_KEPT = 32


# ---------------------------------------------------------------------------------------- random numbers
def philox4x32(counter, key):
    """counter is four uint64 arrays of 32-bit words, key is two ints. Source: Salmon et al. 2011."""
    mask = np.uint64(0xFFFFFFFF)
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        product0 = np.uint64(0xD2511F53) * c0
        product1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = ((product1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0), product1 & mask,
                          (product0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1), product0 & mask)
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def hash_name(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def random_bits(seed, stream, count):
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    full = np.full_like(blocks, 1)
    counter = (blocks & np.uint64(0xFFFFFFFF), blocks >> np.uint64(32),
               full * np.uint64(stream & 0xFFFFFFFF), full * np.uint64(stream >> 32))
    words = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))
    return np.stack(words, axis=1).reshape(-1)[:count]


def uniform(seed, stream, count):
    return (random_bits(seed, stream, count) >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)


def below(seed, stream, count, bound):
    return ((random_bits(seed, stream, count) * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)


# ---------------------------------------------------------------------------------------------- networks
class MnistCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.fc1 = nn.Linear(13 * 13 * 32, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x, kinks):
        x = kinks.max_pool(kinks.relu(self.conv1(x)))
        return self.fc2(kinks.relu(self.fc1(x.flatten(1))))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(28 * 28, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x, kinks):
        return self.fc2(kinks.relu(self.fc1(x.flatten(1))))


class BasicBlock(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride = stride
        self.new_channels = channels - inputs

    def forward(self, x, kinks):
        y = kinks.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.stride != 1:  # source: He et al. 2016, section 4.2, option A
            x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.new_channels))
        return kinks.relu(y + x)


class ResNet(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        inputs = 16
        for stage in range(3):
            channels = 16 << stage
            layer = nn.ModuleList()
            for block in range(blocks):
                layer.append(BasicBlock(inputs, channels, 2 if stage > 0 and block == 0 else 1))
                inputs = channels
            setattr(self, f"layer{stage + 1}", layer)
        self.fc = nn.Linear(64, 10)

    def forward(self, x, kinks):
        x = kinks.relu(self.bn1(self.conv1(x)))
        for layer in (self.layer1, self.layer2, self.layer3):
            for block in layer:
                x = block(x, kinks)
        return self.fc(x.mean((2, 3)))


class Operations(nn.Module):
    """The network of operations.json: operations that the other networks lack."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 3, 1, 1)
        self.norm1 = nn.LayerNorm(12)
        self.left = nn.Conv2d(12, 10, 3, 1, 1)
        self.gate = nn.Conv2d(12, 10, 1)
        self.right = nn.Conv2d(12, 6, 3)
        self.norm2 = nn.LayerNorm(8 * 8 * 28)
        self.fc1 = nn.Linear(8 * 8 * 28, 20)
        self.norm3 = nn.LayerNorm(20)
        self.fc2 = nn.Linear(20, 10)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x, kinks):
        normed = self.norm1(self.conv1(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        pooled = F.avg_pool2d(F.gelu(normed), 3, 2, 1)
        gated = F.silu(self.left(pooled)) * torch.sigmoid(self.gate(pooled))
        x = torch.cat([gated, kinks.hard_swish(self.right(F.pad(pooled, (2, 0, 0, 2)))), pooled], 1)
        x = self.norm2(F.avg_pool2d(x, 2).flatten(1))
        return self.fc2(self.dropout(torch.tanh(self.norm3(self.fc1(x)))))


class Kinks:
    """ReLU and max pool that record the smallest distance of an input from a kink."""

    def __init__(self):
        self.margin = math.inf

    def relu(self, x):
        self.margin = min(self.margin, x.detach().abs().min().item())
        return F.relu(x)

    def hard_swish(self, x):
        self.margin = min(self.margin, (x.detach().abs() - 3).abs().min().item())
        return F.hardswish(x)

    def max_pool(self, x):
        with torch.no_grad():
            h, w = x.shape[2] // 2 * 2, x.shape[3] // 2 * 2
            windows = x[:, :, :h, :w].unfold(2, 2, 2).unfold(3, 2, 2).flatten(4)
            top = windows.topk(2, dim=-1).values
            gaps = (top[..., 0] - top[..., 1])[top[..., 0] > 0]  # where the ReLU's output is 0, so is the gradient
            self.margin = min(self.margin, gaps.min().item())
        return F.max_pool2d(x, 2)


NETWORKS = {
    "mnist-cnn": (MnistCnn, (1, 28, 28), 16, "adam", 1e-3, [0.1307], [0.3081]),
    "mlp": (Mlp, (1, 28, 28), 16, "momentum", 1e-2, [0.1307], [0.3081]),
    "operations": (Operations, (3, 32, 32), 8, "momentum", 1e-2,
                   [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    "resnet20": (lambda: ResNet(3), (3, 32, 32), 4, "momentum", 1e-2,
                 [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    # The learning rate is small enough that rounding does not lead to other losses in ten steps.
    "resnet56": (lambda: ResNet(9), (3, 32, 32), 4, "momentum", 1e-3,
                 [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
}


# ---------------------------------------------------------------------------------------- initial values
def initial_value(name, tensor, network):
    if tensor.dim() == 1:
        is_scale = ("bn" in name or "norm" in name) and name.endswith("weight")
        return np.full(tensor.shape, 1.0 if is_scale else 0.0, np.float32)
    area = tensor[0, 0].numel()
    fan_in, fan_out = tensor.shape[1] * area, tensor.shape[0] * area
    # Layers with a bias use the Glorot distribution, layers before a batch norm the He distribution.
    he = tensor.dim() == 4 and name[:-len("weight")] + "bias" not in network.state_dict()
    limit = np.float32(math.sqrt(6.0 / (fan_in if he else fan_in + fan_out)))
    u = uniform(SEED, hash_name(name), tensor.numel())
    return ((np.float32(2) * u - np.float32(1)) * limit).reshape(tensor.shape)


def fill(network):
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(initial_value(name, parameter, network)))


def samples(seed, batch, shape, mean, stddev):
    channels, height, width = shape
    count = batch * channels * height * width
    pixels = below(seed, hash_name("pixels"), count, 256).reshape(batch, height, width, channels)
    as_f32 = lambda values: np.array(values, np.float32).astype(np.float64)
    x = (pixels / 255.0 - as_f32(mean)) / as_f32(stddev)
    labels = below(seed, hash_name("labels"), batch, 10)
    return torch.from_numpy(x).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(labels)


# ------------------------------------------------------------------------------------------------- files
def kept(array, limit):
    flat = array.reshape(-1)
    stride = (flat.size + limit - 1) // limit
    return flat[::stride]


def write_safetensors(path, tensors, metadata):
    header, body = {"__metadata__": metadata}, b""
    for name, array in tensors.items():
        data = np.ascontiguousarray(array)
        kind = {"float32": "F32", "float64": "F64"}[data.dtype.name]
        header[name] = {"dtype": kind, "shape": list(data.shape),
                        "data_offsets": [len(body), len(body) + data.nbytes]}
        body += data.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def choose_samples(name):
    """Returns the seed whose samples keep the largest distance from a kink, and that distance."""
    make, shape, batch, _, _, mean, stddev = NETWORKS[name]
    network = make().to(torch.float64)
    fill(network)
    margins = {}
    with torch.no_grad():
        for seed in range(1, SEEDS_TRIED + 1):
            kinks = Kinks()
            network(samples(seed, batch, shape, mean, stddev)[0], kinks)
            margins[seed] = kinks.margin
    best = max(margins, key=margins.get)
    return best, margins[best]


def run(name, dtype, sample_seed):
    """Returns all numbers of one network as a dict from tensor name to array."""
    make, shape, batch, optimizer_name, rate, mean, stddev = NETWORKS[name]
    network = make().to(dtype)
    fill(network)
    x, labels = samples(sample_seed, batch, shape, mean, stddev)
    x = x.to(dtype)
    optimizer = (torch.optim.Adam(network.parameters(), rate) if optimizer_name == "adam" else
                 torch.optim.SGD(network.parameters(), rate, momentum=0.9))
    tensors, losses = {}, []
    for key, value in network.named_parameters():
        array = value.detach().numpy()
        tensors["initial/" + key] = kept(array, INITIAL_KEPT).astype(np.float32)
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = network(x, Kinks())
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            tensors["logits"] = logits.detach().numpy().astype(np.float64)
            for key, value in network.named_parameters():
                array = value.grad.numpy()
                tensors["gradient/" + key] = kept(array, KEPT).astype(np.float32)
                tensors["norm/" + key] = np.array([np.linalg.norm(array.astype(np.float64))])
            for key, value in network.state_dict().items():
                if "running" in key:
                    tensors["state/" + key] = value.numpy().astype(np.float32)
        optimizer.step()
    tensors["losses"] = np.array(losses, np.float64)
    return tensors


def largest_difference(a, b, prefix):
    """Returns the relative L2 distance over the tensors whose names start with the prefix."""
    return max(np.linalg.norm(a[key].astype(np.float64) - b[key]) / np.linalg.norm(a[key])
               for key in a if key.startswith(prefix))


def main():
    folder = pathlib.Path(__file__).parent
    torch.set_num_threads(1)
    for name in sys.argv[1:] or NETWORKS:
        _, _, batch, optimizer, rate, _, _ = NETWORKS[name]
        sample_seed, margin = choose_samples(name)
        tensors = run(name, torch.float64, sample_seed)
        metadata = {"made_by": "tests/golden/make_golden.py", "seed": str(SEED),
                    "sample_seed": str(sample_seed), "margin": f"{margin:.3g}", "batch": str(batch),
                    "optimizer": optimizer, "learning_rate": str(rate)}
        write_safetensors(folder / (name + ".safetensors"), tensors, metadata)
        print(name, metadata)
        # The errors of PyTorch in float32, on which the tolerances in golden_test.cc are based.
        rounded = run(name, torch.float32, sample_seed)
        print("  float32 PyTorch: logits", largest_difference(tensors, rounded, "logits"), "gradients",
              largest_difference(tensors, rounded, "gradient/"), "state",
              largest_difference(tensors, rounded, "state/") if "resnet" in name else "-")
        print("  losses", tensors["losses"], "off by",
              np.abs(rounded["losses"] / tensors["losses"] - 1))


if __name__ == "__main__":
    main()
