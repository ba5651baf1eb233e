"""Writes a network for the programs: exports it to ONNX, and converts this file."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pysyncopate import keras_models
from pysyncopate.arrays import Array, has_type
from pysyncopate.folders import Folder
from pysyncopate.programs import SyncopateError, UsageError, log, needs, run

_exporting = threading.Lock()  # an export changes settings of the process: warnings, logging, streams


def write_network(
    model: Any, folder: Folder, into: Path, shape: tuple[int, ...] | None = None, loss: str | None = None
) -> tuple[str, Path | None]:
    """Writes a network into the folder `into`. Returns its name for --model, and its weights for --init-from.
    shape: shape of a sample, for the export of a torch module. loss: the operation that replaces the loss.
    """
    into.mkdir(parents=True, exist_ok=True)
    onnx, outputs = into / "model.onnx", 0
    if has_type(model, "keras", "Model"):
        _export("the export of the Keras model", lambda: keras_models.export(model, onnx), "tf2onnx")
        outputs = int(model.outputs[0].shape[-1])
    elif has_type(model, "torch", "Module"):
        if shape is None:
            raise UsageError("input_shape is missing: the shape of a sample, such as (3, 32, 32)")
        outputs = _export_torch(model, shape, onnx)
    elif isinstance(model, (str, os.PathLike)):
        onnx = Path(model)
        if onnx.suffix != ".onnx":
            if loss is not None:
                raise UsageError(f"loss={loss}: only for modules, models and ONNX files; other networks include a loss")
            is_file = onnx.is_file() or (onnx.suffix == ".json" and ":" not in str(model))
            return (f"file:{onnx.absolute()}" if is_file else str(model)), None
    else:
        kinds = "a torch module, a Keras model, an ONNX file, a network file, or a name such as 'mlp'"
        raise UsageError(f"model is a {type(model).__name__}; expected {kinds}")
    network, weights = into / "net.json", into / "net.safetensors"
    for line in run(folder, "syncopate", ["convert", onnx, network, weights])[1].splitlines():
        log.warning("%s", line)
    if outputs > 0:  # otherwise the data would determine the number of outputs
        network.write_text(re.sub('("(?:features|channels)": )"classes"', rf"\g<1>{outputs}", network.read_text()))
    if loss is not None:
        content = json.loads(network.read_text())
        content["nodes"][-1]["op"] = loss
        network.write_text(json.dumps(content, indent=1))
    return f"file:{network}", weights


def _export_torch(model: Any, shape: tuple[int, ...], path: Path) -> int:
    """Writes an ONNX file of a torch module, and returns the number of its outputs. shape: shape of a sample."""
    torch = needs("torch")
    example = torch.zeros((2, *shape))
    try:
        # A copy, because an export in training mode may change running statistics.
        model = copy.deepcopy(model).cpu().float().eval()
        with torch.no_grad():
            outputs = int(model(example).shape[1])
    except Exception as error:
        needed = "samples in the layout of the module, such as [N, C, H, W], and a module with one input and one output"
        words = f"the torch module fails on samples of shape {list(shape)}: {_first_line(error)}; expected {needed}"
        raise UsageError(words) from None
    model.train()
    if "tensorflow" in sys.modules:
        # The triton of torch's CUDA wheel ends the process if it is imported after TensorFlow. torch can do without it.
        sys.modules.setdefault("triton", None)  # type: ignore[arg-type]
    # Without these options the exporter folds batch norms into convolutions.
    mode = torch.onnx.TrainingMode.TRAINING
    options = {"optimize": False, "training": mode, "do_constant_folding": False, "verbose": False}
    _export("torch.onnx.export", lambda: torch.onnx.export(model, (example,), str(path), **options), "onnx onnxscript")
    return outputs


def _first_line(error: BaseException) -> str:
    """Returns the first line of the first cause of an error."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _export(name: str, export: Callable[[], object], packages: str) -> None:
    disabled = logging.root.manager.disable
    text = io.StringIO()  # exporters print parts of the network, even to the standard error
    with _exporting, warnings.catch_warnings(), contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        warnings.simplefilter("ignore")
        # PyTorch before 2.9 would export one branch of a module that looks at values.
        warnings.filterwarnings("error", "Converting a tensor to a Python boolean", module=r"(?!torch\.)")
        logging.disable(logging.CRITICAL)
        try:
            export()
        except (SyncopateError, OSError):
            raise
        except Exception as error:
            advice = f"; run: pip install {packages}" if isinstance(error, ImportError) else ""
            raise SyncopateError(f"{name}: {_first_line(error)}{advice}") from None
        finally:
            logging.disable(disabled)


def read_weights(path: Path) -> dict[str, Array]:
    """Returns the tensors of a safetensors file. Source: github.com/huggingface/safetensors."""
    types = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1"}
    content = np.fromfile(path, "u1")
    size = int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8 : 8 + size].tobytes())
    header.pop("__metadata__", None)
    return {
        name: content[8 + size :][slice(*tensor["data_offsets"])].view(types[tensor["dtype"]]).reshape(tensor["shape"])
        for name, tensor in header.items()
    }
