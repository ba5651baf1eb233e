#!/usr/bin/env python3
"""The yardstick on a GPU: the same networks and batch in PyTorch, in each of the ways that people make it fast.

    python3 bench/peers/torch_gpu_step.py --model resnet20 --batch-size 128

channels_last; f32 with TF32, and autocast bf16; each eager, with the whole step captured as one CUDA graph, and
by torch.compile(mode="max-autotune"). Samples lie on the device. Prints a line per way, the median of rounds, and
last the best one; a way that fails says so and is left out.
"""

import argparse
import statistics
import sys
import time

from torch_step import MODELS, build_model, make_optimizer

WARM_UP_STEPS = 20
ROUNDS = 5
# Sample shape [C, H, W] and classes; the others are torch_step's.
LARGE_MODELS = {"resnet50": ((3, 224, 224), 1000)}


def build(name, torch):
    if name not in LARGE_MODELS:
        return build_model(name, torch)
    import torchvision
    return torchvision.models.resnet50(num_classes=LARGE_MODELS[name][1])


def make_step(args, torch, dtype, way):
    """A function that does one training step."""
    shape, classes = LARGE_MODELS.get(args.model) or (MODELS[args.model][0], 10)
    device = torch.device("cuda")
    torch.manual_seed(1)
    model = build(args.model, torch).to(device, memory_format=torch.channels_last)
    optimizer = make_optimizer("momentum", model.parameters(), 1e-3, torch)
    x = torch.rand(args.batch_size, *shape, device=device).contiguous(memory_format=torch.channels_last)
    label = torch.randint(classes, (args.batch_size,), device=device)
    loss_of = torch.nn.CrossEntropyLoss()
    forward = torch.compile(model, mode="max-autotune") if way == "compile" else model

    def step():
        optimizer.zero_grad(set_to_none=way != "graph")
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype == "bf16"):
            loss = loss_of(forward(x), label)
        loss.backward()
        optimizer.step()

    if way != "graph":
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP_STEPS):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def samples_per_second(args, torch, step):
    for _ in range(WARM_UP_STEPS):
        step()
    rates = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(args.steps):
            step()
        torch.cuda.synchronize()
        rates.append(args.steps * args.batch_size / (time.perf_counter() - begun))
    return statistics.median(rates)


def main():
    parser = argparse.ArgumentParser(description="One training step in PyTorch on a GPU, timed.")
    parser.add_argument("--model", choices=sorted([*MODELS, *LARGE_MODELS]), default="mnist-cnn")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100, help="of a round")
    args = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"{sys.executable} has no PyTorch ({error})")
        return 2
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU here")
        return 2
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    best = {}
    for dtype in ("f32", "bf16"):
        for way in ("eager", "graph", "compile"):
            try:
                rate = samples_per_second(args, torch, make_step(args, torch, dtype, way))
            except Exception as error:  # whatever one way lacks, the others count
                print(f"{dtype} {way}: failed: {str(error).splitlines()[0]}", flush=True)
                continue
            print(f"{dtype} {way}: {rate:.0f} samples/s", flush=True)
            best[dtype] = max(best.get(dtype, (0.0, "")), (rate, way))
    print(f"PyTorch {torch.__version__} " + ", ".join(
        f"{dtype} {rate:.0f} samples/s ({way})" for dtype, (rate, way) in best.items()))
    return 0 if best else 1


if __name__ == "__main__":
    sys.exit(main())
