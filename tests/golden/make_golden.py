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
import math
import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from golden_writer import write_safetensors

SEED = 7
STEPS = 10
SEEDS_TRIED = 40
KEPT = 2048  # the number of stored elements of a larger tensor, at a fixed stride, besides its norm
INITIAL_KEPT = 32
KEPT_LOGITS = 8192


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


def same_of_tensorflow(x):
    return F.pad(x, (0, 1, 0, 1))  # for stride 2 and a map of even size


class Fcn(nn.Module):
    def __init__(self):
        super().__init__()
        down, up = [4, 16, 32, 64, 64], [64, 64, 32, 16, 10]
        for i in range(4):
            setattr(self, f"conv{i + 1}", nn.Conv2d(down[i], down[i + 1], 3, 2))
        for i in range(4):
            setattr(self, f"tconv{i + 1}", nn.ConvTranspose2d(up[i], up[i + 1], 3, 2))

    def forward(self, x, kinks):
        maps = []
        for conv in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = kinks.relu(conv(same_of_tensorflow(x)))
            maps.append(x)
        for tconv, other in ((self.tconv1, maps[2]), (self.tconv2, maps[1]), (self.tconv3, maps[0])):
            x = kinks.relu(tconv(x)[:, :, :-1, :-1]) + other
        return self.tconv4(x)[:, :, :-1, :-1]


class DoubleConv(nn.Module):
    def __init__(self, inputs, channels):
        super().__init__()
        self.double_conv = nn.ModuleList([
            nn.Conv2d(inputs, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels), nn.Identity(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)])

    def forward(self, x, kinks):
        x = kinks.relu(self.double_conv[1](self.double_conv[0](x)))
        return kinks.relu(self.double_conv[4](self.double_conv[3](x)))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = DoubleConv(3, 64)
        for i in range(4):
            down = nn.Module()
            down.maxpool_conv = nn.ModuleList([nn.Identity(), DoubleConv(64 << i, 128 << i)])
            setattr(self, f"down{i + 1}", down)
        for i in range(4):
            up = nn.Module()
            up.up = nn.ConvTranspose2d(1024 >> i, 512 >> i, 2, 2)
            up.conv = DoubleConv(1024 >> i, 512 >> i)
            setattr(self, f"up{i + 1}", up)
        self.outc = nn.Module()
        self.outc.conv = nn.Conv2d(64, 10, 1)

    def forward(self, x, kinks):
        x, maps = self.inc(x, kinks), []
        for down in (self.down1, self.down2, self.down3, self.down4):
            maps.append(x)
            x = down.maxpool_conv[1](kinks.max_pool(x), kinks)
        for up in (self.up1, self.up2, self.up3, self.up4):
            x = up.conv(torch.cat([maps.pop(), up.up(x)], 1), kinks)
        return self.outc.conv(x)


class InvertedResidual(nn.Module):
    def __init__(self, inputs, channels, stride, expansion):
        super().__init__()
        hidden = inputs * expansion

        def conv_norm(count, kernel, stride, groups):
            return nn.ModuleList([nn.Conv2d(count, hidden, kernel, stride, kernel // 2, groups=groups, bias=False),
                                  nn.BatchNorm2d(hidden)])
        layers = [conv_norm(inputs, 1, 1, 1)] if expansion > 1 else []
        self.conv = nn.ModuleList(layers + [conv_norm(hidden, 3, stride, hidden),
                                            nn.Conv2d(hidden, channels, 1, bias=False), nn.BatchNorm2d(channels)])
        self.adds = stride == 1 and inputs == channels

    def forward(self, x, kinks):
        y = x
        for conv, norm in self.conv[:-2]:
            y = kinks.relu6(norm(conv(y)))
        y = self.conv[-1](self.conv[-2](y))
        return x + y if self.adds else y


class MobilenetV2(nn.Module):
    def __init__(self):
        super().__init__()

        def conv_norm(inputs, channels, kernel, stride):
            return nn.ModuleList([nn.Conv2d(inputs, channels, kernel, stride, kernel // 2, bias=False),
                                  nn.BatchNorm2d(channels)])
        layers, inputs = [conv_norm(3, 32, 3, 2)], 32
        for expansion, channels, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                    (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for block in range(blocks):
                layers.append(InvertedResidual(inputs, channels, stride if block == 0 else 1, expansion))
                inputs = channels
        self.features = nn.ModuleList(layers + [conv_norm(320, 1280, 1, 1)])
        self.classifier = nn.ModuleList([nn.Identity(), nn.Linear(1280, 10)])

    def forward(self, x, kinks):
        x = kinks.relu6(self.features[0][1](self.features[0][0](x)))
        for block in self.features[1:-1]:
            x = block(x, kinks)
        x = kinks.relu6(self.features[-1][1](self.features[-1][0](x)))
        return self.classifier[1](x.mean((2, 3)))


class Vgg16(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inputs = [], 3
        for channels in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
            layers += [nn.MaxPool2d(2)] if channels == 0 else [nn.Conv2d(inputs, channels, 3, 1, 1), nn.ReLU()]
            inputs = channels or inputs
        self.features = nn.ModuleList(layers)
        self.classifier = nn.ModuleList([nn.Linear(512, 4096), nn.Identity(), nn.Identity(), nn.Linear(4096, 4096),
                                         nn.Identity(), nn.Identity(), nn.Linear(4096, 10)])

    def forward(self, x, kinks):
        for layer in self.features:
            if isinstance(layer, nn.Conv2d):
                x = kinks.relu(layer(x))
            elif isinstance(layer, nn.MaxPool2d):
                x = kinks.max_pool(x)
        x = kinks.relu(self.classifier[0](x.flatten(1)))
        return self.classifier[6](kinks.relu(self.classifier[3](x)))


class Operations(nn.Module):
    """The network of operations.json: operations that the other networks lack."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 3, 1, 1)
        self.norm1 = nn.LayerNorm(12)
        self.left = nn.Conv2d(12, 10, 3, 1, 1)
        self.gate = nn.Conv2d(12, 10, 1)
        self.right = nn.Conv2d(12, 6, 3)
        self.depthwise = nn.Conv2d(12, 12, 3, 1, 1, groups=12)
        self.grouped = nn.Conv2d(12, 8, 3, 2, 1, groups=4)
        self.up = nn.ConvTranspose2d(8, 6, 3, 2, 1, output_padding=1)
        self.norm2 = nn.LayerNorm(8 * 8 * 34)
        self.fc1 = nn.Linear(8 * 8 * 34, 20)
        self.norm3 = nn.LayerNorm(20)
        self.fc2 = nn.Linear(20, 10)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x, kinks):
        normed = self.norm1(self.conv1(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        pooled = F.avg_pool2d(F.gelu(normed), 3, 2, 1)
        gated = F.silu(self.left(pooled)) * torch.sigmoid(self.gate(pooled))
        x = torch.cat([gated, kinks.hard_swish(self.right(F.pad(pooled, (2, 0, 0, 2)))), pooled,
                       torch.tanh(self.up(self.grouped(kinks.relu6(self.depthwise(pooled)))))], 1)
        x = self.norm2(F.avg_pool2d(x, 2).flatten(1))
        return self.fc2(self.dropout(torch.tanh(self.norm3(self.fc1(x)))))


class Numbers(nn.Module):
    """The network of mean-squared-error.json and binary-cross-entropy.json, whose targets are numbers."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6 * 6 * 3, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x, kinks):
        return self.fc2(torch.tanh(self.fc1(x.flatten(1))))


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

    def relu6(self, x):
        kink = torch.minimum(x.detach().abs(), (x.detach() - 6).abs())
        self.margin = min(self.margin, kink.min().item())
        return F.relu6(x)

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
    "mean-squared-error": (Numbers, (3, 6, 6), 8, "momentum", 1e-2,
                           [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    "binary-cross-entropy": (Numbers, (3, 6, 6), 8, "momentum", 1e-2,
                             [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    "resnet20": (lambda: ResNet(3), (3, 32, 32), 4, "momentum", 1e-2,
                 [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    "fcn": (Fcn, (4, 64, 64), 4, "momentum", 1e-2, [0.4] * 4, [0.25] * 4),
    "unet": (Unet, (3, 16, 16), 4, "momentum", 1e-3, [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    "mobilenet-v2": (MobilenetV2, (3, 64, 64), 16, "momentum", 1e-4,
                     [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    "vgg16": (Vgg16, (3, 32, 32), 4, "momentum", 1e-3, [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    # The learning rate is small enough that rounding does not lead to other losses in ten steps.
    "resnet56": (lambda: ResNet(9), (3, 32, 32), 4, "momentum", 1e-3,
                 [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
}


NUMBER_LOSSES = {"mean-squared-error": F.mse_loss, "binary-cross-entropy": F.binary_cross_entropy_with_logits}


# ---------------------------------------------------------------------------------------- initial values
def initial_value(name, tensor, network):
    if tensor.dim() == 1:
        is_scale = name.endswith("weight")  # only those of norms have one dimension
        return np.full(tensor.shape, 1.0 if is_scale else 0.0, np.float32)
    area = tensor[0, 0].numel()
    fan_in, fan_out = tensor.shape[1] * area, tensor.shape[0] * area
    # A transposed convolution's weight is [in, out, R, S], which Glorot's distribution does not tell apart.
    # Layers with a bias use the Glorot distribution, layers before a batch norm the He distribution.
    he = tensor.dim() == 4 and name[:-len("weight")] + "bias" not in network.state_dict()
    limit = np.float32(math.sqrt(6.0 / (fan_in if he else fan_in + fan_out)))
    u = uniform(SEED, hash_name(name), tensor.numel())
    return ((np.float32(2) * u - np.float32(1)) * limit).reshape(tensor.shape)


def fill(network):
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(initial_value(name, parameter, network)))


def numbers(seed, batch):
    values = uniform(seed, hash_name("numbers"), batch * 10).reshape(batch, 10)
    return torch.from_numpy(values.astype(np.float64))


def samples(seed, batch, shape, mean, stddev, num_labels):
    channels, height, width = shape
    count = batch * channels * height * width
    pixels = below(seed, hash_name("pixels"), count, 256).reshape(batch, height, width, channels)
    as_f32 = lambda values: np.array(values, np.float32).astype(np.float64)
    x = (pixels / 255.0 - as_f32(mean)) / as_f32(stddev)
    labels = below(seed, hash_name("labels"), batch * num_labels, 10)
    if num_labels > 1:
        labels = np.where(np.arange(labels.size) % 8 == 3, 255, labels).reshape(batch, height, width)
    return torch.from_numpy(x).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(labels)


def loss_of(name, logits, labels):
    if name in NUMBER_LOSSES:
        return NUMBER_LOSSES[name](logits, labels.to(logits.dtype))
    if labels.dim() == 1:
        return F.cross_entropy(logits, labels)
    # The mean over samples of the mean over the pixels that count.
    losses = F.cross_entropy(logits, labels, ignore_index=255, reduction="none").sum((1, 2))
    return (losses / (labels != 255).sum((1, 2))).mean()


def labels_per_sample(name):
    _, (_, height, width), *_ = NETWORKS[name]
    return height * width if name in ("fcn", "unet") else 1


# ------------------------------------------------------------------------------------------------- files
def kept(array, limit):
    flat = array.reshape(-1)
    stride = (flat.size + limit - 1) // limit
    return flat[::stride]


def choose_samples(name):
    """Returns the seed whose samples keep the largest distance from a kink, and that distance."""
    make, shape, batch, _, _, mean, stddev = NETWORKS[name]
    network = make().to(torch.float64)
    fill(network)
    margins = {}
    with torch.no_grad():
        for seed in range(1, SEEDS_TRIED + 1):
            kinks = Kinks()
            network(samples(seed, batch, shape, mean, stddev, labels_per_sample(name))[0], kinks)
            margins[seed] = kinks.margin
    best = max(margins, key=margins.get)
    return best, margins[best]


def run(name, dtype, sample_seed):
    """Returns all numbers of one network as a dict from tensor name to array."""
    make, shape, batch, optimizer_name, rate, mean, stddev = NETWORKS[name]
    network = make().to(dtype)
    fill(network)
    x, labels = samples(sample_seed, batch, shape, mean, stddev, labels_per_sample(name))
    if name in NUMBER_LOSSES:
        labels = numbers(sample_seed, batch)
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
        loss = loss_of(name, logits, labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            in_our_order = logits.detach().permute(0, 2, 3, 1) if logits.dim() == 4 else logits.detach()
            tensors["logits"] = kept(in_our_order.numpy(), KEPT_LOGITS).astype(np.float64)
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
    """Returns the largest distance of a tensor whose name starts with the prefix, measured as golden_test.cc does."""
    norms = {key: np.linalg.norm(a[key].astype(np.float64)) for key in a if key.startswith(prefix)}
    least = 1e-3 * max(norms.values())
    return max((np.linalg.norm(a[key].astype(np.float64) - b[key]) / max(norm, least), key) for key, norm in norms.items())


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
              largest_difference(tensors, rounded, "state/") if any("state/" in key for key in tensors) else "-")
        print("  losses", tensors["losses"], "off by",
              np.abs(rounded["losses"] / tensors["losses"] - 1))


if __name__ == "__main__":
    main()
