#!/usr/bin/env python3
"""The yardstick on a GPU: the same networks, batch and optimizer in PyTorch, in each way that people make it fast.

    python3 bench/peers/torch_gpu_step.py --model resnet20 --batch-size 128

channels_last; f32 with TF32, autocast bf16, autocast fp16 with a GradScaler; each eager, with the whole step captured
as one CUDA graph, and by torch.compile(mode="max-autotune"). Samples lie on the device. Prints a line per way, the
median of rounds, and last the best one; a way that fails says so and is left out.

Beside syncopate-bench it is started with --serve: it tries all ways, keeps the fastest, and answers one JSON line to
each line on its standard input: `run N` with the seconds of N steps (their mean, N times), `quit` by ending. --ways-of
takes the fastest way from an earlier run's --json FILE, so that only that one is made (given more than once, from all of
them); --device cpu is for trying this script.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import time

from torch_step import MODELS, answer, build_model, make_optimizer, serve

# Sample shape [C, H, W] and number of classes; torch_step.py has the shapes of the other networks.
LARGE_MODELS = {"resnet50": ((3, 224, 224), 1000), "mobilenet-v2": ((3, 224, 224), 1000), "vgg16": ((3, 224, 224), 1000)}
PRECISIONS = ("f32", "bf16", "fp16")
WAYS = ("eager", "graph", "compile")


def words_of(choices):
    def parse(text):
        words = text.split(",")
        for word in words:
            if word not in choices:
                raise argparse.ArgumentTypeError(f"{word}: expected some of {', '.join(choices)}")
        return words
    return parse


def parse_arguments():
    parser = argparse.ArgumentParser(description="One training step in PyTorch on a GPU, timed.")
    parser.add_argument("--model", choices=sorted([*MODELS, *LARGE_MODELS]), default="mnist-cnn")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--optimizer", choices=["sgd", "momentum", "adam", "adamw"], default="momentum")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--precision", type=words_of(PRECISIONS), default=list(PRECISIONS), help="separated by commas")
    parser.add_argument("--ways", type=words_of(WAYS), default=list(WAYS), help="separated by commas")
    parser.add_argument("--ways-of", metavar="FILE", action="append", default=[],
                        help="the fastest way of an earlier run's --json FILE, if any; may be given more than once")
    parser.add_argument("--steps", type=int, default=100, help="of a round")
    parser.add_argument("--warm-up", type=int, default=20, help="steps")
    parser.add_argument("--rounds", type=int, default=5, help="of a run by hand")
    parser.add_argument("--json", metavar="FILE", help="write the results there, in one line")
    parser.add_argument("--serve", action="store_true", help="take commands from standard input")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    return parser.parse_args()


def build(name, torch):
    if name not in LARGE_MODELS:
        return build_model(name, torch)
    import torchvision
    return getattr(torchvision.models, name.replace("-", "_"))(num_classes=LARGE_MODELS[name][1])


def make_fused_optimizer(args, parameters, torch):
    """As torch_step's, in one kernel: it reads the scaler's verdict on the device, so that a step can be captured."""
    if args.device != "cuda":
        return make_optimizer(args.optimizer, parameters, args.learning_rate, torch)
    if args.optimizer in ("adam", "adamw"):
        kind = torch.optim.Adam if args.optimizer == "adam" else torch.optim.AdamW
        return kind(parameters, lr=args.learning_rate, fused=True, capturable=True)
    momentum = 0.9 if args.optimizer == "momentum" else 0.0
    return torch.optim.SGD(parameters, lr=args.learning_rate, momentum=momentum, fused=True)


class Step:
    """One training step, in one way. Called as often as wanted."""

    def __init__(self, args, torch, precision, way):
        shape, classes = LARGE_MODELS.get(args.model) or (MODELS[args.model][0], 10)
        device = torch.device(args.device)
        torch.manual_seed(1)
        self.torch, self.device, self.way = torch, args.device, way
        self.dtype = {"f32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
        model = build(args.model, torch).to(device, memory_format=torch.channels_last)
        self.optimizer = make_fused_optimizer(args, model.parameters(), torch)
        self.scaler = torch.amp.GradScaler(args.device) if precision == "fp16" else None
        self.x = torch.rand(args.batch_size, *shape, device=device).contiguous(memory_format=torch.channels_last)
        self.label = torch.randint(classes, (args.batch_size,), device=device)
        self.loss_of = torch.nn.CrossEntropyLoss()
        self.forward = torch.compile(model, mode="max-autotune") if way == "compile" else model
        self.run = self.step
        if way == "graph":
            self.run = self.capture(args.warm_up)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.forward_backward_update()

    def forward_backward_update(self):
        with self.torch.autocast(self.device, dtype=self.dtype or self.torch.bfloat16, enabled=self.dtype is not None):
            loss = self.loss_of(self.forward(self.x), self.label)
        if self.scaler is None:
            loss.backward()
            self.optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()

    def capture(self, warm_up):
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(warm_up):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # The gradients are None when the capture begins, so that the captured backward pass overwrites them: the recipe of
        # PyTorch's documentation, "CUDA semantics", whole-network capture.
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self.forward_backward_update()
        return graph.replay

    def synchronize(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def seconds(self, steps):
        """Of one step, the mean: the device is behind the host, and single steps are of no meaning."""
        self.synchronize()
        begun = time.perf_counter()
        for _ in range(steps):
            self.run()
        self.synchronize()
        return (time.perf_counter() - begun) / steps


def give_memory_back(args, torch):
    """To the device: the other side needs it, and the next way."""
    gc.collect()
    if args.device == "cuda":
        torch.cuda.empty_cache()


class Fastest:
    """The fastest of the ways that work; the others are given up, with their memory. say: for each one, a line.
    save: called whenever one was timed, for a later one may take too long."""

    def __init__(self, args, torch, say, save):
        self.step, self.precision, self.way, self.rate = None, "", "", 0.0
        self.rates = {}
        for precision, way in candidates(args):
            name = f"{precision} {way}"
            try:
                step = Step(args, torch, precision, way)
                step.seconds(max(1, args.warm_up))
                rounds = 1 if args.serve else args.rounds
                rate = args.batch_size / statistics.median(step.seconds(args.steps) for _ in range(rounds))
            except Exception as error:  # a way that fails is left out
                say(f"{name}: failed: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
                step = None
                give_memory_back(args, torch)
                continue
            say(f"{name}: {rate:.0f} samples/s")
            self.rates[name] = rate
            if rate > self.rate:
                self.step, self.precision, self.way, self.rate = step, precision, way, rate
            step = None
            give_memory_back(args, torch)
            save(self)

    def description(self, torch):
        return f"PyTorch {torch.__version__}, channels_last, {self.precision}, {self.way}"


def candidates(args):
    """(precision, way), the surest first: what comes later may not fit or not work."""
    found = []
    for name in args.ways_of:
        try:
            with open(name, encoding="utf-8") as file:
                best = json.load(file)["best"]
            found.append((best["samples_per_second"], best["precision"], best["way"]))
        except (OSError, ValueError, KeyError):
            pass  # an unusable file of results is skipped; without any, all ways are tried
    if found:
        return [max(found)[1:]]
    return [(precision, way) for way in args.ways for precision in args.precision]


def save_results(args, torch, fastest):
    if not args.json:
        return
    with open(args.json, "w", encoding="utf-8") as file:
        print(json.dumps({
            "peer": f"PyTorch {torch.__version__}", "model": args.model, "batch_size": args.batch_size,
            "optimizer": args.optimizer, "samples_per_second": fastest.rates,
            "best": {"precision": fastest.precision, "way": fastest.way, "samples_per_second": fastest.rate}}),
            file=file)


def answer_on_a_stream_of_our_own():
    """What libraries print is for people; standard output is for whoever started us."""
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(answers, "w")


def main():
    args = parse_arguments()
    if args.serve:
        answer_on_a_stream_of_our_own()

    def give_up(reason):
        if args.serve:
            answer(event="error", message=reason)
        else:
            print(reason)
        return 2

    try:
        import torch
    except ImportError as error:
        return give_up(f"{sys.executable} has no PyTorch ({error})")
    if args.device == "cuda" and not torch.cuda.is_available():
        return give_up("PyTorch sees no GPU here")
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    reader = sys.stderr if args.serve else sys.stdout
    fastest = Fastest(args, torch, say=lambda text: print(text, file=reader, flush=True),
                      save=lambda fastest: save_results(args, torch, fastest))
    if fastest.step is None:
        return give_up("none of the ways works here")
    description = fastest.description(torch)
    if args.serve:
        answer(event="ready", name=f"PyTorch {torch.__version__}", description=description, model=args.model,
               batch_size=args.batch_size, optimizer=args.optimizer, precision=fastest.precision, way=fastest.way,
               samples_per_second=fastest.rates)

        class Trainer:
            def run(self, steps):
                return [fastest.step.seconds(steps)] * steps
        serve(Trainer())
        return 0
    print(f"{description}: {fastest.rate:.0f} samples/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
