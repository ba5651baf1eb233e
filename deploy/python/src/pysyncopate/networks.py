"""Writes a network for the programs: exports it to ONNX, and converts this file."""

from __future__ import annotations

import copy
import inspect
import json
import logging
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pysyncopate import keras_models
from pysyncopate.arrays import Array, has_type
from pysyncopate.folders import Folder
from pysyncopate.programs import SyncopateError, UsageError, log, needs, run


def is_keras(model: Any) -> bool:
    return has_type(model, "keras", "Model") or has_type(model, "tf_keras", "Model")


def is_torch(model: Any) -> bool:
    return has_type(model, "torch", "Module") and not is_keras(model)


def write_network(
    model: Any, folder: Folder, into: Path, example: Array | None, loss: str | None = None
) -> tuple[str, Path | None]:
    """Writes a network into the folder `into`. Returns its name for --model, and its weights for --init-from.

    model: a torch module, a Keras model, an ONNX file, a network file, or a name for --model.
    example: two samples for the export. loss: the operation that replaces the loss.
    """
    into.mkdir(parents=True, exist_ok=True)
    onnx = into / "model.onnx"
    if is_keras(model):
        _export("the export of the Keras model", lambda: keras_models.export(model, onnx), "tf2onnx")
    elif is_torch(model):
        if example is None:
            raise UsageError("input_shape is missing: the shape of a sample, such as (3, 32, 32)")
        _export_torch(model, example, onnx)
    elif isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if path.endswith(".onnx"):
            onnx = Path(path)
        else:
            return (f"file:{os.path.abspath(path)}" if os.path.isfile(path) else path), None
    else:
        raise UsageError(
            f"model is a {type(model).__name__}; expected a torch module, a Keras model, an ONNX file, "
            "a network file, or a name as in syncopate train --model"
        )
    network, weights = into / "net.json", into / "net.safetensors"
    for line in run(folder, "syncopate", ["convert", onnx, network, weights])[1].splitlines():
        log.warning("%s", line)
    if loss is not None:
        content = json.loads(network.read_text())
        content["nodes"][-1]["op"] = loss
        network.write_text(json.dumps(content, indent=1))
    return f"file:{network}", weights


def _export_torch(model: Any, example: Array, path: Path) -> None:
    torch = needs("torch")
    # A copy, because an export in training mode may change running statistics.
    model = copy.deepcopy(model).cpu().float().train()
    # Without these options the exporter folds batch norms into convolutions.
    mode = torch.onnx.TrainingMode.TRAINING
    options = {"optimize": False, "training": mode, "do_constant_folding": False, "verbose": False}
    known = inspect.signature(torch.onnx.export).parameters
    options = {name: value for name, value in options.items() if name in known}
    inputs = (torch.from_numpy(example),)
    _export("torch.onnx.export", lambda: torch.onnx.export(model, inputs, str(path), **options), "onnx onnxscript")


def _export(name: str, export: Callable[[], object], packages: str) -> None:
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exporter.setLevel(logging.ERROR)
        try:
            export()
        except ImportError as error:
            raise SyncopateError(f"{error}; run: pip install {packages}") from None
        except SyncopateError:
            raise
        except Exception as error:
            log.info("%s failed", name, exc_info=True)
            lines = [line for line in str(error).splitlines() if line.strip()]
            raise SyncopateError(f"{name}: {lines[0] if lines else type(error).__name__}") from None
        finally:
            exporter.setLevel(level)


def read_weights(path: Path) -> dict[str, Array]:
    """Returns the tensors of a safetensors file. Source: github.com/huggingface/safetensors."""
    types = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1"}
    content = np.fromfile(path, "u1")
    size = int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8 : 8 + size].tobytes())
    header.pop("__metadata__", None)
    data = content[8 + size :]
    return {
        name: data[slice(*tensor["data_offsets"])].view(types[tensor["dtype"]]).reshape(tensor["shape"])
        for name, tensor in header.items()
    }


def as_tensors(weights: dict[str, Array]) -> dict[str, Any]:
    torch = needs("torch")
    return {name: torch.from_numpy(value.copy()) for name, value in weights.items()}


def load_weights(model: Any, weights: dict[str, Array], folder: Folder) -> None:
    """Puts the weights of a program into a torch module or a Keras model. Every tensor must have its place."""
    if is_keras(model):
        into = folder.path / "marked"

        def convert(marked: Any) -> dict[str, Array]:
            write_network(marked, folder, into, None)
            return read_weights(into / "net.safetensors")

        return keras_models.load_weights(model, weights, convert)
    model.load_state_dict(as_tensors(weights), strict=True)
