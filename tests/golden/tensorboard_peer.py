#!/usr/bin/env python3
"""Trains with --tensorboard and reads the curves with TensorBoard's own reader.

    tensorboard_peer.py SYNCOPATE FOLDER

Runs one task, asynchronous workers, and both resumed in the middle. A curve must have the steps of the metrics file,
without those that a resumed run repeats. Fails with the curve that is wrong. tensorboard_peer_test.cc runs it.
Exit code 77: the package is not installed.
"""
import glob
import json
import os
import subprocess
import sys

TRAIN = ["train", "--data", "synthetic:1x8x8:4:256", "--model", "mlp", "--batch-size-per-replica", "16", "--log-every",
         "5", "--eval-every-steps", "20", "--checkpoint-every", "10", "--no-progress", "--threads", "1"]
SCALARS = {"train": ["loss", "accuracy", "learning_rate", "samples_per_second"], "test": ["loss", "accuracy"]}


def run(arguments):
    os.makedirs(os.path.dirname(arguments[arguments.index("--metrics") + 1]), exist_ok=True)
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.stderr}")


def curve(folder, split, tag):
    everything = {event_accumulator.SCALARS: 0, event_accumulator.IMAGES: 0}
    events = event_accumulator.EventAccumulator(os.path.join(folder, split), size_guidance=everything)
    events.Reload()
    if tag == "pictures":
        return [event.step for name in events.Tags()["images"] for event in events.Images(name)]
    return [event.step for event in events.Scalars(tag)] if tag in events.Tags()["scalars"] else []


def steps_of(metrics, split, tag):
    """The steps of the lines of a metrics file that a curve shows, but for those that a later process repeated."""
    event = "eval" if split == "test" else "step"
    steps = []
    with open(metrics, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line["event"] == "begin":
                steps = [step for step in steps if step <= line["step"]]
            elif line["event"] == event and (tag != "staleness" or line["staleness_max"] > 0):
                steps.append(line["step"])
    return steps


def check(name, folder, metrics, tags, last):
    for split, tag in tags:
        wanted = steps_of(metrics, split, tag)
        found = curve(folder, split, tag)
        if found != wanted or (tag != "staleness" and found[-1:] != [last]):
            sys.exit(f"{name}: {split} {tag}: expected {wanted} up to {last}, found {found}")
    print(f"{name}: {len(tags)} curves")


def train(name, prefix, flags, extra):
    folder = os.path.join(sys.argv[2], name)
    board, checkpoints = os.path.join(folder, "board"), os.path.join(folder, "checkpoints")
    metrics = os.path.join(folder, "metrics.jsonl")
    common = TRAIN + flags + ["--tensorboard", board, "--checkpoint-dir", checkpoints, "--metrics", metrics]
    tags = [(split, tag) for split, all_tags in SCALARS.items() for tag in all_tags + extra.get(split, [])]
    run([sys.argv[1]] + prefix + common + ["--steps", "60"])
    check(name, board, metrics, tags, 60)
    # As if the run had been killed: its last checkpoint is lost, and it repeats steps and an evaluation.
    for file in sorted(glob.glob(os.path.join(checkpoints, "checkpoint-*")))[-1:]:
        os.remove(file)
    run([sys.argv[1]] + prefix + common + ["--steps", "100", "--resume"])
    check(name + ", resumed", board, metrics, tags, 100)


if __name__ == "__main__":
    try:
        from tensorboard.backend.event_processing import event_accumulator
    except ImportError as error:
        print(error)
        sys.exit(77)
    train("one-task", [], [], {"test": ["pictures"]})
    launch = ["launch", "--servers", "1", "--workers", "2", "--"]
    train("asynchronous", launch, ["--strategy", "parameter-server", "--consistency", "async"],
          {"train": ["staleness"], "test": ["pictures"]})
