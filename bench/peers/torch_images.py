#!/usr/bin/env python3
"""The yardstick of `syncopate train --model resnet20 --data images:DIR`: the same recipe in PyTorch.

    python3 bench/peers/torch_images.py DIR --image-size 32 --epochs 20 --seed 1

DIR holds train/ and val/, each with a folder per class. Pictures are resized as tf.image.resize does (bilinear, no
antialiasing), normalised by the mean and deviation of the training pixels unless --normalize says otherwise, padded by
4 pixels, cropped and mirrored at random. SGD with momentum 0.9, weight decay of convolutions and dense weights, a
cosine schedule over all steps; the last short batch of an epoch is not trained. Prints one JSON line per epoch and
one at the end. Needs torch and Pillow.
"""

import argparse
import json
import pathlib
import time

import numpy
import torch
import torch_step
from PIL import Image


def load(folder, size):
    """Pixels [N, 3, size, size] in [0, 1], and labels [N]."""
    pixels, labels = [], []
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    for label, path in enumerate(classes):
        for file in sorted(path.iterdir()):
            picture = numpy.asarray(Image.open(file).convert("RGB")).transpose(2, 0, 1)
            tensor = torch.from_numpy(picture.copy()).float()[None]
            small = torch.nn.functional.interpolate(tensor, (size, size), mode="bilinear", align_corners=False)
            pixels.append(small.round() / 255)
            labels.append(label)
    return torch.cat(pixels), torch.tensor(labels)


def augment(x, generator):
    """Pads by 4 black pixels, crops at random and mirrors half of the pictures."""
    count, _, size, _ = x.shape
    padded = torch.nn.functional.pad(x, (4, 4, 4, 4))
    offsets = torch.randint(0, 9, (count, 2), generator=generator).tolist()
    flips = torch.rand(count, generator=generator) < 0.5
    crops = [padded[i, :, y : y + size, x0 : x0 + size] for i, (y, x0) in enumerate(offsets)]
    return torch.stack([crop.flip(2) if flip else crop for crop, flip in zip(crops, flips)])


def initialise(model):
    """He et al. 2015 for convolutions, Glorot and Bengio 2010 for the dense layer, as syncopate does."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.Conv2d):
            torch.nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
        elif isinstance(layer, torch.nn.Linear):
            torch.nn.init.xavier_uniform_(layer.weight)
            torch.nn.init.zeros_(layer.bias)


def accuracy(model, x, labels):
    model.eval()
    with torch.no_grad():
        correct = sum(int((model(x[i : i + 128]).argmax(1) == labels[i : i + 128]).sum())
                      for i in range(0, len(x), 128))
    model.train()
    return correct / len(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--normalize", help="means and deviations by channel, M,M,M/S,S,S")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    x, labels = load(args.folder / "train", args.image_size)
    x_val, labels_val = load(args.folder / "val", args.image_size)
    mean, deviation = x.mean((0, 2, 3)), x.std((0, 2, 3))
    if args.normalize:
        mean, deviation = (torch.tensor([float(v) for v in part.split(",")]) for part in args.normalize.split("/"))
    mean, deviation = mean[:, None, None], deviation[:, None, None]
    x_val = (x_val - mean) / deviation

    model = torch_step.build_model("resnet20", torch)
    initialise(model)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.SGD([{"params": decayed, "weight_decay": args.weight_decay}, {"params": others}],
                                lr=args.learning_rate, momentum=0.9)
    steps = len(x) // args.batch_size
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps * args.epochs)
    start = time.perf_counter()
    for epoch in range(args.epochs):
        order = torch.randperm(len(x), generator=generator)
        for step in range(steps):
            chosen = order[step * args.batch_size : (step + 1) * args.batch_size]
            batch = (augment(x[chosen], generator) - mean) / deviation
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(model(batch), labels[chosen]).backward()
            optimizer.step()
            schedule.step()
        print(json.dumps({"epoch": epoch + 1, "accuracy": accuracy(model, x_val, labels_val),
                          "seconds": time.perf_counter() - start}), flush=True)
    print(json.dumps({"event": "result", "torch": torch.__version__, "seed": args.seed,
                      "accuracy": accuracy(model, x_val, labels_val), "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
