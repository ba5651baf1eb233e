#!/usr/bin/env python3
"""The yardstick of `syncopate-bench step`: the same networks, batch and optimizer in PyTorch, tuned.

Forward, backward and update on synthetic samples that are already in memory. By hand:

    python3 bench/peers/torch_step.py --model resnet20 --threads 2 --steps 30

Beside syncopate-bench it is started with --serve and answers one JSON line to each line on its standard input:
`run N` with the seconds of N steps, `quit` by ending. Before the first answer it says {"event": "ready", ...}.

Tuned means: all threads, bound to cores; channels_last; malloc keeps its pages (the variables below are read
when the C library starts, so the script starts itself once more under them). --contiguous and --stock-malloc
show what that is worth. PyTorch leaves matrix products to the system's libblas: with the reference BLAS it is
a weak opponent, so the `ready` line names the file in use, and --blas-dir chooses a folder that holds another
libblas.so.3 (Debian: libopenblas0-openmp).
"""

import argparse
import json
import os
import statistics
import sys
import time

# The other side is measured between rounds, so the worker threads must sleep soon. By default libgomp spins for a few
# milliseconds and then waits in the kernel; OMP_WAIT_POLICY=active would spin for minutes.
THREAD_ENVIRONMENT = {"OMP_PROC_BIND": "true"}
MALLOC_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
    "MALLOC_MMAP_THRESHOLD_": "33554432",  # glibc silently ignores larger values
}
STARTED_AGAIN = "SYNCOPATE_PEER_STARTED_AGAIN"

# Sample shape [C, H, W], and the default batch size and optimizer.
MODELS = {
    "mnist-cnn": ((1, 28, 28), 64, "adam"),
    "mlp": ((1, 28, 28), 64, "adam"),
    "resnet20": ((3, 32, 32), 128, "momentum"),
    "resnet56": ((3, 32, 32), 128, "momentum"),
}
NUM_BATCHES = 8
WARM_UP_STEPS = 3


def make_parser(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=sorted(MODELS), default="mnist-cnn")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--optimizer", choices=["sgd", "momentum", "adam", "adamw"])
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=30, help="timed steps of a run by hand")
    parser.add_argument("--serve", action="store_true", help="take commands from standard input")
    parser.add_argument("--contiguous", action="store_true", help="NCHW, PyTorch's default layout")
    parser.add_argument("--stock-malloc", action="store_true", help="leave malloc as it is")
    parser.add_argument("--blas-dir", help="folder with the libblas.so.3 to use")
    return parser


def parse_arguments(parser):
    args = parser.parse_args()
    _, batch_size, optimizer = MODELS[args.model]
    args.batch_size = args.batch_size or batch_size
    args.optimizer = args.optimizer or optimizer
    return args


def start_again_tuned(args, more_environment):
    """Replaces this process by itself under the environment that a C library reads only at its start."""
    if STARTED_AGAIN in os.environ:
        return
    environment = dict(os.environ, **more_environment)
    environment[STARTED_AGAIN] = "1"
    environment["OMP_NUM_THREADS"] = environment["OPENBLAS_NUM_THREADS"] = str(args.threads)
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "GOMP_CPU_AFFINITY"):
        environment.pop(name, None)
    if not args.stock_malloc:
        environment.update(MALLOC_ENVIRONMENT)
    if args.blas_dir:
        folders = [args.blas_dir, os.environ.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
    script = os.path.abspath(sys.argv[0])
    os.execve(sys.executable, [sys.executable, script, *sys.argv[1:]], environment)


def build_model(name, torch):
    nn, pad = torch.nn, torch.nn.functional.pad

    class BasicBlock(nn.Module):
        def __init__(self, channels_in, channels, stride):
            super().__init__()
            self.stride, self.new_channels = stride, channels - channels_in
            self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.relu1 = nn.ReLU(inplace=True)
            self.relu2 = nn.ReLU(inplace=True)

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
            if self.stride != 1:  # option A: every second pixel, new channels zero
                x = pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.new_channels))
            return self.relu2(y.add_(x))

    def resnet(blocks):
        layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
        channels_in = 16
        for stage in range(3):
            for block in range(blocks):
                channels = 16 << stage
                layers.append(BasicBlock(channels_in, channels, 2 if stage > 0 and block == 0 else 1))
                channels_in = channels
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))

    if name == "mnist-cnn":
        return nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(32 * 13 * 13, 64), nn.ReLU(inplace=True), nn.Linear(64, 10))
    if name == "mlp":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(28 * 28, 128), nn.ReLU(inplace=True), nn.Linear(128, 10))
    return resnet({"resnet20": 3, "resnet56": 9}[name])


def make_optimizer(name, parameters, learning_rate, torch):
    if name == "adam":
        return torch.optim.Adam(parameters, lr=learning_rate)
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=learning_rate)
    return torch.optim.SGD(parameters, lr=learning_rate, momentum=0.9 if name == "momentum" else 0.0)


def loaded_library(stem):
    """The file behind a library of this process, symbolic links resolved; "" when it is not loaded."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            if os.path.basename(path[2]).startswith(stem):
                return "/" + path[2]
    return ""


class Trainer:
    def __init__(self, args, torch):
        shape = MODELS[args.model][0]
        torch.manual_seed(1)
        torch.set_num_threads(args.threads)
        layout = torch.contiguous_format if args.contiguous else torch.channels_last
        self.model = build_model(args.model, torch).to(memory_format=layout)
        self.loss = torch.nn.CrossEntropyLoss()
        self.optimizer = make_optimizer(args.optimizer, self.model.parameters(), args.learning_rate, torch)
        self.batches = [
            (torch.rand(args.batch_size, *shape).contiguous(memory_format=layout),
             torch.randint(10, (args.batch_size,)))
            for _ in range(NUM_BATCHES)]
        self.num_steps = 0

    def step(self):
        x, label = self.batches[self.num_steps % NUM_BATCHES]
        self.num_steps += 1
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model(x), label)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, steps):
        """Seconds of each of `steps` steps, after one that wakes the threads and is not counted."""
        self.step()
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - start)
        return seconds


def answer(**fields):
    print(json.dumps(fields), flush=True)


def serve(trainer):
    # readline() returns each line at once; iteration would wait for a full buffer.
    for line in iter(sys.stdin.readline, ""):
        words = line.split()
        if words == ["quit"]:
            return
        if len(words) != 2 or words[0] != "run" or not words[1].isdigit():
            answer(event="error", message=f"expected 'run N' or 'quit', got {line.strip()!r}")
            continue
        answer(event="steps", seconds=trainer.run(int(words[1])))


def import_torch():
    """The module, or None once the reason is said."""
    try:
        import torch
        return torch
    except ImportError as error:
        answer(event="error", message=f"{sys.executable} has no PyTorch ({error}); "
                                      "install python3-torch or name another interpreter")
        return None


def describe(args, torch):
    """What the `ready` line says."""
    blas = loaded_library("libopenblas") or loaded_library("libblas") or loaded_library("libmkl")
    settings = {
        "name": f"PyTorch {torch.__version__}",
        "interpreter": sys.executable,
        "threads": torch.get_num_threads(),
        "layout": "contiguous" if args.contiguous else "channels_last",
        "malloc": "stock" if args.stock_malloc else "warm",
        "blas": blas or "none",
        "model": args.model, "batch_size": args.batch_size, "optimizer": args.optimizer,
    }
    settings["description"] = ("{name}, {threads} threads, {layout}, {malloc} malloc, {blas}".format(**settings))
    if "/blas/libblas" in blas:
        settings["warning"] = ("PyTorch multiplies matrices with the reference BLAS here, several times slower than "
                               "OpenBLAS: no fair opponent where dense layers count (install libopenblas0-openmp "
                               "or give --blas-dir)")
    return settings


def run_by_hand(trainer, steps, samples_per_step, settings):
    seconds = trainer.run(steps)
    median = statistics.median(seconds)
    answer(event="result", **settings, steps=steps, median_ms=round(1e3 * median, 3),
           min_ms=round(1e3 * min(seconds), 3), max_ms=round(1e3 * max(seconds), 3),
           samples_per_second=round(samples_per_step / median, 1))


def main():
    parser = make_parser("One training step in PyTorch, timed.")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parse_arguments(parser)
    start_again_tuned(args, THREAD_ENVIRONMENT)
    torch = import_torch()
    if torch is None:
        return 2
    trainer = Trainer(args, torch)
    for _ in range(WARM_UP_STEPS):
        trainer.step()
    settings = describe(args, torch)
    if args.serve:
        answer(event="ready", **settings)
        serve(trainer)
    else:
        run_by_hand(trainer, args.steps, args.batch_size, settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
