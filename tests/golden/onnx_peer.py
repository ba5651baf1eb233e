#!/usr/bin/env python3
"""Exports networks of PyTorch as ONNX, converts them, and trains them beside the originals on the same samples.

    onnx_peer.py SYNCOPATE FOLDER [NETWORK...]    (tiny enlarged attention resnet18 mobilenet_v2 mobilenet_v3_small
                                                   efficientnet_b0 vgg11; SYNCOPATE is the program)

Each network is written by both exporters of PyTorch, in training mode, into FOLDER. The data set is one batch, so that
the order of samples does not matter; dropout is 0. Prints the largest relative difference of the losses of 10 steps
with momentum and that of a weight tensor (L2) after them, and the largest difference of a probability between
onnxruntime, which runs the network as export --onnx writes it, and predict. Fails if one is above its limit.
onnx_peer_test.cc runs it. Exit code 77: the packages are not installed.
"""
import json
import os
import subprocess
import sys
import warnings

warnings.simplefilter("ignore")
CLASSES = 4
STEPS = 10
LIMITS = {"losses": 1e-4, "weights": 1e-3, "scores": 1e-5}
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


def train_torch(model, x, y, rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def call(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def losses_of_syncopate(program, files, data, count, rate):
    model, net, weights = files
    call([program, "convert", model, net, weights])
    metrics = net + ".metrics"
    call([program, "train", "--model", "file:" + net, "--init-from", weights, "--data", data, "--normalize", "none",
          "--augment", "none", "--optimizer", "momentum", "--learning-rate", str(rate), "--batch-size", str(count),
          "--steps", str(STEPS), "--log-every", "1", "--no-progress", "--metrics", metrics, "--checkpoint-dir",
          net + ".run"])
    with open(metrics, encoding="utf-8") as lines:
        return [line["loss"] for line in map(json.loads, lines) if line["event"] == "step"]


def read_safetensors(path):
    import numpy as np  # also for keras_peer.py
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(size)), file.read()
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def difference_of_weights(program, checkpoint, files, name, model):
    """The largest relative L2 of a parameter, from those of a model of PyTorch with the same names.

    The statistics of batch norms are left out: the older exporter changes them. A dense layer of rows is a convolution
    of 1x1 here. Where the order of a reshape was changed, that of a dense layer's columns is another one, so the
    sorted values are compared.
    """
    call([program, "export", "--checkpoint", checkpoint, files[2] + ".out"])
    first, found = read_safetensors(files[2]), read_safetensors(files[2] + ".out")
    wanted = {name: tensor.detach().numpy() for name, tensor in model.named_parameters()}
    if not wanted.keys() <= found.keys():
        sys.exit(f"{files[2]}: {sorted(wanted.keys() - found.keys())} are missing")
    untrained = dict(network(name).named_parameters())
    worst = 0.0
    for key, tensor in wanted.items():
        ours = found[key].reshape(tensor.shape)
        if not np.array_equal(first[key].reshape(tensor.shape), untrained[key].detach().numpy()):
            ours, tensor = np.sort(ours, axis=None), np.sort(tensor, axis=None)
        worst = max(worst, np.linalg.norm(ours - tensor) / max(np.linalg.norm(tensor), 1e-3))
    return worst


def difference_of_scores(program, checkpoint, file, samples_file, x):
    """The largest difference of a probability between onnxruntime and predict."""
    call([program, "export", "--onnx", "--checkpoint", checkpoint, file])
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {session.get_inputs()[0].name: x.numpy()})[0].astype(np.float64)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    lines = call([program, "predict", "--json", "--checkpoint", checkpoint, samples_file]).splitlines()
    ours = np.array([json.loads(line)["probabilities"] for line in lines])
    return np.abs(ours - powers / powers.sum(axis=1, keepdims=True)).max()


def compare(program, folder, name, count=16, size=32):
    data = os.path.join(folder, "npy")
    os.makedirs(data, exist_ok=True)
    x, y = samples(data, count, size)
    rate = RATES.get(name, 0.01)
    trained = network(name).train()
    expected = train_torch(trained, x, y, rate)
    is_good = True
    for export, flags in EXPORTS.items():
        files = [os.path.join(folder, f"{name}-{export}{suffix}") for suffix in (".onnx", ".json", ".safetensors")]
        torch.onnx.export(network(name).train(), x[:2], files[0], training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, verbose=False, **flags)
        found = losses_of_syncopate(program, files, "npy:" + data, count, rate)
        checkpoint = os.path.join(files[1] + ".run", f"checkpoint-{STEPS:012}.safetensors")
        differences = {
            "losses": max(abs(a - b) / b for a, b in zip(found, expected)) if len(found) == STEPS else 1.0,
            "weights": difference_of_weights(program, checkpoint, files, name, trained),
            "scores": difference_of_scores(program, checkpoint, files[0] + ".out",
                                           os.path.join(data, "x_test.npy"), x)}
        is_good = is_good and all(differences[what] <= limit for what, limit in LIMITS.items())
        print(f"{name}, {export}: losses {expected[0]:.5f} to {expected[-1]:.5f}; largest differences: " +
              ", ".join(f"{what} {value:.1e}" for what, value in differences.items()), flush=True)
    return is_good


if __name__ == "__main__":
    try:
        import numpy as np
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
        import torch
        import torchvision
    except ImportError as error:
        print(error)
        sys.exit(77)
    torch.set_num_threads(2)
    names = sys.argv[3:] or ["tiny", "enlarged", "attention", "resnet18", "mobilenet_v2", "mobilenet_v3_small",
                             "efficientnet_b0", "vgg11"]
    sys.exit(0 if all([compare(sys.argv[1], sys.argv[2], name) for name in names]) else 1)
