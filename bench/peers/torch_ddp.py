#!/usr/bin/env python3
"""The yardstick of `syncopate-bench scaling`: DistributedDataParallel over Gloo, one process per replica.

The networks, batches, optimizers and the tuning of torch_step.py; the processes are all on this machine and talk
over loopback. By hand:

    python3 bench/peers/torch_ddp.py --model resnet20 --replicas 2 --threads 1 --steps 30

Beside syncopate-bench it is started with --serve and speaks as torch_step.py does; a step's time is that of the
slowest replica. Rank 0 starts the others and passes every command on to them.

Tuned means, beyond torch_step.py: gradients live in the buckets (gradient_as_bucket_view); running statistics are
not broadcast in every step (broadcast_buffers=False), as ours are not. --preload FILE puts a library before all
others: libreno_shim.so, beside the peers of all-reduce, where the system's congestion control is slow on loopback.
--bind gives each replica one core.
"""

import json
import os
import subprocess
import sys
import tempfile

import torch_step


class DdpTrainer(torch_step.Trainer):
    def __init__(self, args, torch):
        super().__init__(args, torch)
        self.model = torch.nn.parallel.DistributedDataParallel(
            self.model, gradient_as_bucket_view=True, broadcast_buffers=False)


class Group:
    """The other ranks, as rank 0 sees them."""

    def __init__(self, size, store):
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--store", store]
        self.others = [
            subprocess.Popen([*command, "--rank", str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for rank in range(1, size)]

    def pids(self):
        return [os.getpid(), *(other.pid for other in self.others)]

    def tell(self, line):
        for other in self.others:
            other.stdin.write(line + "\n")
            other.stdin.flush()

    def answers(self):
        lines = [other.stdout.readline() for other in self.others]
        if not all(lines):
            raise RuntimeError("a replica ended; its own message is above")
        return [json.loads(line) for line in lines]

    def end(self):
        for other in self.others:
            other.stdin.close()
        for other in self.others:
            other.wait()


class GroupTrainer:
    """All replicas at once, with what serve() needs of a trainer."""

    def __init__(self, trainer, group):
        self.trainer, self.group = trainer, group

    def run(self, steps):
        self.group.tell(f"run {steps}")
        seconds = [self.trainer.run(steps)]
        seconds += [answer["seconds"] for answer in self.group.answers()]
        return [max(of_ranks) for of_ranks in zip(*seconds)]


def join(args, torch, rank, store):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=args.replicas)
    if args.bind:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    trainer = DdpTrainer(args, torch)
    for _ in range(torch_step.WARM_UP_STEPS):
        trainer.step()
    return trainer


def lead(args, torch):
    with tempfile.TemporaryDirectory(prefix="syncopate-ddp-") as folder:
        store = os.path.join(folder, "store")
        group = Group(args.replicas, store)
        try:
            trainer = GroupTrainer(join(args, torch, 0, store), group)
            settings = torch_step.describe(args, torch)
            settings.update(replicas=args.replicas, pids=group.pids())
            settings["description"] = (f"DDP over Gloo, {args.replicas} processes of: {settings['description']}" +
                                       (", reno" if args.preload and "reno" in args.preload else ""))
            if args.serve:
                torch_step.answer(event="ready", **settings)
                torch_step.serve(trainer)
            else:
                torch_step.run_by_hand(trainer, args.steps, args.replicas * args.batch_size, settings)
        finally:
            group.end()


def main():
    parser = torch_step.make_parser("One data-parallel training step in PyTorch, timed.")
    parser.add_argument("--replicas", type=int, default=2, help="processes; --batch-size is of each")
    parser.add_argument("--threads", type=int, default=1, help="of each replica")
    parser.add_argument("--preload", help="a library for LD_PRELOAD")
    parser.add_argument("--bind", action="store_true", help="one core for each replica")
    parser.add_argument("--rank", type=int, default=0, help="of a replica that rank 0 started")
    parser.add_argument("--store", help="the file through which replicas meet")
    args = torch_step.parse_arguments(parser)
    # OMP_PROC_BIND is not set, because it would put the only thread of every replica on the first core.
    torch_step.start_again_tuned(args, {"LD_PRELOAD": args.preload} if args.preload else {})
    torch = torch_step.import_torch()
    if torch is None:
        return 2
    if args.rank > 0:
        torch_step.serve(join(args, torch, args.rank, args.store))
    else:
        lead(args, torch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
