#!/usr/bin/env python3
"""Runs the lines that --init-from prints for files of PyTorch and Keras, and trains with what they write.

    weights_peer.py torch|keras SYNCOPATE FOLDER

Writes the weights of one network in the forms that people have. Each is refused with a line, which is run as printed,
and a run from the file that it writes must have the weights of the network. weights_peer_test.cc runs this script.
Exit code 77: the packages are not installed.
"""
import glob
import json
import os
import re
import shlex
import subprocess
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def run(*arguments, fails=False):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if (done.returncode != 0) != fails:
        sys.exit(f"{shlex.join(arguments)}: exit code {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def train(*flags, fails=False):
    # A rate of nearly 0 leaves the weights as they are.
    return run(sys.argv[2], "train", "--data", "synthetic:1x8x8:4:64", "--optimizer", "sgd", "--learning-rate", "1e-30",
               "--steps", "1", "--eval-every", "0", "--threads", "1", "--no-progress", *flags, fails=fails)


def printed_line(message):
    """The command in the message that begins with python3, without quotes that the shell reads."""
    words = shlex.split(re.search(r'python3 -c ".*?"', message)[0])
    return [sys.executable, *words[1:]]


def run_line(line, in_another_process):
    """Most lines run in this process, without the seconds that importing the packages takes."""
    if in_another_process:
        run(*line)
    else:
        exec(line[-1], {})  # pylint: disable=exec-used


def with_torch():
    class Head(torch.nn.Module):  # its class is in this script alone
        def __init__(self):
            super().__init__()
            self.fc1 = torch.nn.Linear(64, 128)
            self.fc2 = torch.nn.Linear(128, 4)

        def forward(self, x):
            return self.fc2(self.fc1(x).relu())

    globals()["Head"] = Head
    Head.__qualname__ = "Head"
    torch.manual_seed(1)
    model = Head()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 64)).sum().backward()
    optimizer.step()
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    other = {key: value + 1 for key, value in weights.items()}
    prefixed = {"model." + key: value for key, value in weights.items()}
    tied = dict(weights, tied=weights["fc1.weight"], row=weights["fc1.weight"][0], turned=weights["fc1.weight"].t())
    args = argparse.Namespace(lr=0.1, out=pathlib.Path("x"), kind=enum.Enum("Kind", "A B").A)
    enum_key = type(args.kind)
    globals()[enum_key.__name__] = enum_key
    forms = {
        "plain.pth": weights, "module.pt": model, "sequence.pt": torch.nn.Sequential(model), "tied.bin": tied,
        "namespace.pth": {"state_dict": weights, "args": args, "log": collections.deque([1.0])},
        "numpy.pth": {"state_dict": weights, "best": np.float64(0.5), "curve": np.zeros(3)},
        "entries.pth": dict(weights, _extra_state="text", epoch=3, none=None),
        "lightning.ckpt": {"state_dict": prefixed, "hyper_parameters": {"args": args}, "callbacks": {},
                           "optimizer_states": [optimizer.state_dict()], "pytorch-lightning_version": "2.5.0"},
        "average.pth": {"ema": other, "model": weights, "optimizer": optimizer.state_dict()},
        "modules.pth": {"model": model, "ema": None, "train_args": vars(args)},
        "swa.tar": torch.optim.swa_utils.AveragedModel(model),
        "ddp.pth": {"module._orig_mod." + key: value for key, value in weights.items()},
        "parameters.pth": {key: torch.nn.Parameter(value) for key, value in weights.items()},
        "double.pth": {key: value.double() for key, value in weights.items()},
        "tuple.pth": (weights, {"epoch": 3}), "lists.pth": {"models": [[weights]]}, "queue.pth": collections.deque([weights]),
        "arrays.pth": {key: value.numpy() for key, value in weights.items()},
        "foreign_arrays.pth": {key: np.asfortranarray(value.numpy().astype(">f8")) for key, value in weights.items()},
        "words TO FROM STATE.pth": weights,
    }
    log = [np.array(["text"]), np.array([None]), np.longdouble(1), np.zeros(0), np.asmatrix([[1.0]])]
    circle = {"state_dict": weights, "log": log}
    circle["self"] = [circle]
    forms["circle.pth"] = circle
    for key in ("net", "params", "model_state", "model", "state_dict", "model_state_dict", "model_ema"):
        forms[f"key_{key}.pth"] = {key: weights, "epoch": 3}
    for name, form in forms.items():
        torch.save(form, name)
    torch.save(model, "old.pth", _use_new_zipfile_serialization=False)
    torch.save(weights, "old_without_suffix", _use_new_zipfile_serialization=False)
    torch.save({"net": model, "args": args}, "protocol5.pth", pickle_protocol=5)
    torch.jit.save(torch.jit.script(model), "script.pt")
    os.makedirs("shards", exist_ok=True)
    names = list(weights)
    files = {name: f"pytorch_model-0000{1 + i // 2}-of-00002.bin" for i, name in enumerate(names)}
    for file in set(files.values()):
        torch.save({name: weights[name] for name in names if files[name] == file}, "shards/" + file)
    with open("shards/pytorch_model.bin.index.json", "w", encoding="utf-8") as index:
        json.dump({"metadata": {}, "weight_map": files}, index)

    class Stranger:
        def __reduce__(self):
            return os.system, ("touch code_of_the_file_ran",)

    torch.save({"state_dict": weights, "stranger": Stranger()}, "stranger.pth")
    torch.save({"state_dict": weights, "stranger": Stranger()}, "old_stranger.pth", _use_new_zipfile_serialization=False)
    torch.save(forms["arrays.pth"], "arrays5.pth", pickle_protocol=5)
    files = [*forms, "old.pth", "arrays5.pth", "old_without_suffix", "protocol5.pth", "script.pt", "stranger.pth",
             "old_stranger.pth", "shards/pytorch_model.bin.index.json"]

    def require_weights(name, file):
        note = train("--model", "mlp", "--init-from", file, "--checkpoint-dir", name + ".run")
        if "4 tensors" not in note or "fresh" in note:
            sys.exit(f"{name}: {note}")
        trained = safetensors.torch.load_file(glob.glob(glob.escape(name) + ".run/*.safetensors")[0])
        for key, value in weights.items():
            if not torch.equal(trained[key], value):
                sys.exit(f"{name}: {key} has other values")
        print(f"{name}: as saved")

    for name in files:
        line = printed_line(train("--model", "mlp", "--init-from", name, fails=True))
        kept = pickle.Unpickler, pickle.load
        run_line(line, name in ("module.pt", "script.pt", "stranger.pth"))
        pickle.Unpickler, pickle.load = kept
        require_weights(name, re.search(r"'([^']*\.safetensors)'", line[-1])[1])
    if os.path.exists("code_of_the_file_ran"):
        sys.exit("the line ran code that the file names")

    torch.save({"epoch": 3, "log": [1.0, "text"]}, "empty.pth")
    said = run(*printed_line(train("--model", "mlp", "--init-from", "empty.pth", fails=True)), fails=True)
    if "empty.pth has no tensor" not in said or "Traceback" in said or os.path.exists("empty.safetensors"):
        sys.exit(f"empty.pth: {said}")

    # Files with two networks: the line keeps the first.
    torch.save({"models": [weights, other]}, "two.pth")
    run_line(printed_line(train("--model", "mlp", "--init-from", "two.pth", fails=True)), True)
    both = {"module.encoder_k." + key: value for key, value in weights.items()}
    both.update({"module.encoder_q." + key: value for key, value in other.items()})
    safetensors.torch.save_file(both, "moco.safetensors")
    os.makedirs("two_shards", exist_ok=True)
    files = {key: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, key in enumerate(both)}
    for file in set(files.values()):
        safetensors.torch.save_file({key: both[key] for key in both if files[key] == file}, "two_shards/" + file)
    with open("two_shards/model.safetensors.index.json", "w", encoding="utf-8") as index:
        json.dump({"weight_map": files}, index)
    for name in ("two.safetensors", "moco.safetensors", "two_shards/model.safetensors.index.json"):
        run_line(printed_line(train("--model", "mlp", "--init-from", name, fails=True)), False)
        require_weights(name, "ONE.safetensors")
        os.remove("ONE.safetensors")


def with_keras():
    def make():
        layers = keras.layers
        return keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(4, 3, activation="relu"), layers.Flatten(),
                                 layers.Dense(4)])

    model = make()
    random = np.random.default_rng(1)  # the exporter leaves out a bias of zeros
    model.set_weights([random.standard_normal(value.shape).astype(np.float32) for value in model.get_weights()])
    model.save("own.keras")
    model.save("whole.h5")
    model.save_weights("own.weights.h5")
    for name in ("own.keras", "whole.h5", "own.weights.h5"):
        message = train("--model", "mlp", "--init-from", name, fails=True)
        if name == "own.weights.h5":
            python = re.search(r"MODEL\.load_weights.*?format='onnx'\)", message)[0]
            exec(python, {"MODEL": make()})  # pylint: disable=exec-used
        else:
            run_line(printed_line(message), name == "own.keras")
        convert = re.search(r"syncopate (convert \S+ \S+ \S+),", message)[1]
        written = run(sys.argv[2], *convert.split())
        flags = shlex.split(re.search(r"syncopate train (.*) --data", written)[1])
        note = train(*flags, "--checkpoint-dir", name + ".run")
        if "4 tensors" not in note or "fresh" in note:
            sys.exit(f"{name}: {note}")
        trained = safetensors.numpy.load_file(glob.glob(name + ".run/*.safetensors")[0])
        kernel = np.asarray(model.layers[0].kernel).transpose(3, 2, 0, 1)
        if not any(np.array_equal(value, kernel) for value in trained.values()):
            sys.exit(f"{name}: no tensor of the run is the first kernel")
        print(f"{name}: as saved")

    resnet = keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3))
    resnet.save("resnet.keras")
    resnet.save("resnet.h5")
    resnet.save_weights("resnet.weights.h5")
    for name in ("resnet.keras", "resnet.h5", "resnet.weights.h5"):
        flags = ["--data", "synthetic:3x64x64:4:8", "--batch-size", "1", "--model", "resnet50-v1", "--init-from"]
        line = printed_line(train(*flags, name, fails=True))
        run_line(line, False)
        note = train(*flags, re.search(r"'([^']*\.safetensors)'", line[-1])[1])
        if "318 tensors" not in note:
            sys.exit(f"{name}: {note}")
        print(f"{name}: taken")


if __name__ == "__main__":
    try:
        import argparse
        import collections
        import enum
        import pathlib
        import pickle

        import numpy as np
        if sys.argv[1] == "torch":
            import safetensors.torch
            import torch
        else:
            import keras
            import safetensors.numpy
            if keras.backend.backend() == "tensorflow":
                import tf2onnx  # noqa: F401
    except ImportError as error:
        print(error)
        sys.exit(77)
    os.chdir(sys.argv[3])
    {"torch": with_torch, "keras": with_keras}[sys.argv[1]]()
