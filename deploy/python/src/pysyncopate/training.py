"""Training under one strategy: train(), and its result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pysyncopate import keras_models
from pysyncopate.arrays import Array, has_type, inputs, npy_file, shape_in, write_data, write_table
from pysyncopate.folders import Folder
from pysyncopate.networks import read_weights, write_network
from pysyncopate.programs import SyncopateError, UsageError, log, needs, reports_errors, run, split_flags
from pysyncopate.progress import look_at_epochs, progress_bar


class Result:
    """What a training run left. Its files are in a temporary folder, unless flags name others.
    accuracy: the final accuracy on the test samples, from 0 to 1; None if targets are numbers.
    loss: the final loss on the test samples; None without an evaluation.
    hash: the program's hash of all weights. Equal hashes mean equal bits.
    events: the lines of the metrics file: begin, step, eval, worker and summary.
    summary: the last of them. output: what the program printed.
    """

    def __init__(self, folder: Folder, job: Mapping[str, Any], channels_first: bool, output: str) -> None:
        self._folder = folder
        self._job = dict(job)
        self._channels_first = channels_first
        self.output = output
        metrics = Path(job["metrics"])
        lines = metrics.read_text().splitlines() if metrics.is_file() else []
        self.events: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self.summary: dict[str, Any] = next((item for item in reversed(self.events) if item["event"] == "summary"), {})
        if not self.summary:
            raise SyncopateError(f"the program wrote no results; it printed: {output.strip().partition(chr(10))[0]}")
        self._checkpoint = max(Path(job["checkpoint_dir"]).absolute().glob("checkpoint-*.safetensors"), default=None)
        self.accuracy: float | None = self.summary.get("test_accuracy")
        self.loss: float | None = self.summary.get("test_loss")
        self.hash: str = self.summary["weights_hash"]

    def __repr__(self) -> str:
        return f"<pysyncopate.Result {self.summary['strategy']}, {self.summary['steps']} steps>\n{self.output}"

    @property
    def history(self) -> Any:
        """A DataFrame with a row for each evaluation: step, epoch, test_loss, test_accuracy and more.
        trained_seconds is training time in seconds, without evaluations.
        """
        table = needs("pandas").DataFrame([event for event in self.events if event["event"] == "eval"])
        return table.drop(columns=["event", "began_at"], errors="ignore")

    @property
    def checkpoint(self) -> Path:
        """The checkpoint at the end of the run. Raises SyncopateError if it is gone."""
        if self._checkpoint is None or not self._checkpoint.exists():
            raise SyncopateError(f"{self._job['checkpoint_dir']} has no checkpoint; train again")
        return self._checkpoint

    @reports_errors
    def weights(self) -> dict[str, Array]:
        """The weights and running statistics as NumPy arrays, with PyTorch's names and shapes."""
        out = self._folder.path / "weights.safetensors"
        run(self._folder, "syncopate", ["export", "--checkpoint", self.checkpoint, out])
        return read_weights(out)

    def state_dict(self) -> dict[str, Any]:
        """The weights and running statistics as torch tensors, for Module.load_state_dict()."""
        torch = needs("torch")
        return {name: torch.from_numpy(value.copy()) for name, value in self.weights().items()}

    @reports_errors
    def load_into(self, model: Any) -> Any:
        """Puts the weights into a torch module or a Keras model of the same network, and returns it.
        Raises an exception if a tensor is missing, left over, or of another shape.
        """
        if has_type(model, "keras", "Model"):
            with keras_models.marked(model):
                write_network(model, self._folder, self._folder.path / "marked")
            marks = read_weights(self._folder.path / "marked" / "net.safetensors")
            keras_models.place(model, marks, self.weights())
        elif has_type(model, "torch", "Module"):
            model.load_state_dict(self.state_dict(), strict=True)
        else:
            raise UsageError(f"model is a {type(model).__name__}; expected a torch module or a Keras model")
        return model

    @reports_errors
    def predict(self, x: Any) -> Array:
        """Returns the probabilities of all classes, [N, classes], or the predicted numbers.
        x: an array, a tensor or a DataFrame in the layout of the training samples, or paths of
        pictures. The program normalises the samples as in training.
        """
        x = [x] if isinstance(x, (str, Path)) else list(x) if isinstance(x, Iterator) else x
        files: Any = x
        if has_type(x, "pandas", "DataFrame"):
            files = [self._folder.path / "predict.csv"]
            write_table(x, files[0])
        elif not isinstance(x, Iterable) or not isinstance(next(iter(x), None), (str, Path)):
            files = [self._folder.path / "predict.npy"]
            with npy_file(files[0]) as append:
                append(inputs(x, self._channels_first or has_type(x, "torch", "Tensor")))
        output, _ = run(self._folder, "syncopate", ["predict", "--json", "--checkpoint", self.checkpoint, *files])
        rows = [json.loads(line) for line in output.splitlines()]
        return np.array([next(row[k] for k in ("probabilities", "values", "shares") if k in row) for row in rows])

    @reports_errors
    def resume(self, **changes: Any) -> Result:
        """Goes on from the newest checkpoint, with changed flags, such as epochs=10.
        Network and data stay. With others: train(..., init_from=run.checkpoint).
        """
        if fixed := changes.keys() & {"model", "data", "test", "label", "targets", "loss", "input_shape"}:
            raise UsageError(f"{min(fixed)}: resume() has the network and the data of the run; see help(Result.resume)")
        log.info("resuming from %s", self.checkpoint)
        return _train(self._folder, {**self._job, **changes, "resume": True}, self._channels_first)


@reports_errors
def train(
    model: Any = "mnist-cnn",
    data: Any = "digits",
    *,
    test: Any = None,
    strategy: str = "one-device",
    workers: int = 1,
    servers: int = 0,
    label: str | None = None,
    targets: Any = None,
    loss: str | None = None,
    input_shape: tuple[int, ...] | None = None,
    progress: bool = True,
    **flags: Any,
) -> Result:
    """Trains a network under a strategy, and returns the result.

    model: a torch module, a Keras model, an ONNX file, a network file, or a name, such as "mlp".
        Training begins with its weights (init_from=None: with random ones), and does not change it.
    data: (samples, targets) as arrays or tensors, a TensorDataset, a DataLoader, a batched
        tf.data.Dataset, a DataFrame, a folder, or a name, such as "images:DIR". Samples have the
        layout of the network: [N, features], [N, C, H, W] for torch modules and tensors, otherwise
        [N, H, W, C]. u8 and u16 values are scaled to [0, 1] and normalised; f32 values are taken as
        they are. Targets are classes, integers from 0, [N]; or f32 numbers to predict, [N] or [N, K].
    test: test data, if data are arrays or a DataFrame. None: a fifth of the samples is held out.
    strategy: "one-device", "mirrored", "multi-worker-mirrored", "local-sgd", "central-storage",
        "pipeline" or "parameter-server".
    workers, servers: number of processes on this machine. One worker without servers is one process.
    label, targets: column of a DataFrame with the classes, or columns with numbers to predict.
    loss: "mean-squared-error" or "binary-cross-entropy", if targets are numbers. Only for
        modules, models and ONNX files. None: softmax cross-entropy.
    input_shape: shape of a sample without N. Required for a torch module if data is a name.
    progress: show a progress bar.
    flags: the flags of `syncopate train` and `launch`, such as epochs=5, learning_rate=0.1, seed=2,
        batch_size=256 (of all replicas together), devices="cuda", checkpoint_dir="runs/a".
        pysyncopate.flags() prints all, with defaults.

    Returns a Result: accuracy, history, load_into(model), predict(samples) and more. Raises UsageError
    (a ValueError) for a wrong argument, and SyncopateError (a RuntimeError) for any other failure.
    """
    with Folder() as folder:
        net, weights, name, nchw = prepare(model, data, test, folder, folder.path, label, targets, loss, input_shape)
        job = {
            "model": net, "data": name, "strategy": strategy, "workers": workers, "servers": servers,
            "init_from": weights, "progress": progress,
            "checkpoint_dir": flags.pop("checkpoint_dir", None) or folder.path / "checkpoints",
            "metrics": flags.pop("metrics", None) or folder.path / "metrics.jsonl", **flags,
        }  # fmt: skip
        return _train(folder, job, nchw)


def prepare(
    model: Any, data: Any, test: Any, folder: Folder, into: Path, label: Any, targets: Any, loss: Any, input_shape: Any
) -> tuple[str, Path | None, str, bool]:
    """Writes network and data. Returns --model, --init-from and --data, and whether channels are first."""
    samples = data[0] if isinstance(data, (tuple, list)) and data else data
    kinds = ("Module", "Tensor", "TensorDataset", "DataLoader")
    channels_first = any(has_type(value, "torch", *kinds) for value in (model, data, samples))
    name = write_data(data, test, into / "data", channels_first, label, targets)
    if has_type(data, "pandas", "DataFrame"):
        input_shape = (data.shape[1] - (len(targets) if isinstance(targets, (list, tuple)) else 1),)
    shape = input_shape or shape_in(into / "data", channels_first)
    network, weights = write_network(model, folder, into / "network", shape, loss)
    return network, weights, name, channels_first


def _train(folder: Folder, job: dict[str, Any], channels_first: bool) -> Result:
    is_alone = (job["workers"], job["servers"]) == (1, 0)
    left_out = ("progress", "workers", "servers") if is_alone else ("progress",)
    values = {name: value for name, value in job.items() if name not in left_out}
    own, others = split_flags(values, "syncopate", "train" if is_alone else "launch")
    words = ["train", *own, *others] if is_alone else ["launch", *own, "--", "train", *others]
    epochs = job.get("epochs")
    look = look_at_epochs(Path(job["metrics"]), None if isinstance(epochs, str) else epochs)
    with progress_bar(job["progress"], job["strategy"], "epoch", look) as watch:
        output, _ = run(folder, "syncopate", [*words, "--no-progress"], watch)
    return Result(folder, job, channels_first, output)
