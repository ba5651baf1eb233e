"""Writes data for the programs: arrays as NumPy files, tables as CSV files.

Arrays are written in parts, so no second copy is in memory. A NumPy file that is mapped into memory
is not copied.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pysyncopate.programs import UsageError, log

Array = npt.NDArray[Any]
_ROWS = 1024  # rows that are converted and written at a time
_HELD_OUT = 0.2
_HEADER_BYTES = 256


def has_type(value: Any, package: str, *names: str) -> bool:
    """Returns whether a value has a class of this package. The package is not imported."""
    return any(kind.__module__.split(".")[0] == package and kind.__name__ in names for kind in type(value).__mro__)


def is_tensor(value: Any) -> bool:
    return has_type(value, "torch", "Tensor")


class NpyFile:
    """Writes a NumPy file in parts. The header, which has the number of rows, is written last.

    A context manager, which closes the file. An open file would keep its space on the disk.
    """

    def __init__(self, path: Path) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 (closed by __exit__)
        self._file.write(bytes(_HEADER_BYTES))
        self._rows = 0
        self._first: Array | None = None

    def __enter__(self) -> NpyFile:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._write_header()
        with contextlib.suppress(OSError) if error else contextlib.nullcontext():
            self._file.close()

    def append(self, rows: Array) -> None:
        if self._first is None:
            self._first = rows[:0]
        rows = rows.astype(self._first.dtype, copy=False)
        self._rows += len(rows)
        self._file.write(np.ascontiguousarray(rows).data)

    def _write_header(self) -> None:
        first = np.empty(0, "f4") if self._first is None else self._first
        text = repr({"descr": first.dtype.str, "fortran_order": False, "shape": (self._rows, *first.shape[1:])})
        header = text.encode().ljust(_HEADER_BYTES - 11) + b"\n"
        self._file.seek(0)
        self._file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


def _numbers(rows: Any) -> Array:
    """Returns a part of an array or a tensor as NumPy's numbers."""
    if is_tensor(rows):
        rows = rows.detach().cpu()
        rows = (rows.float() if rows.is_floating_point() else rows).numpy()
    result: Array = np.asarray(rows)
    if result.dtype.kind not in "biuf":
        found = "Python objects" if result.dtype.hasobject else f"elements of type {result.dtype}"
        raise UsageError(
            f"an array has {found}; expected numbers, such as x.astype('float32'), "
            "or np.unique(y, return_inverse=True)[1] for the names of classes"
        )
    return result


def inputs(rows: Any, channels_first: bool) -> Array:
    """Returns samples as the programs read them: [N, H, W, C], of type u8, u16 or f32."""
    result = _numbers(rows)
    if channels_first and result.ndim == 4:
        result = np.moveaxis(result, 1, -1)
    if result.dtype not in map(np.dtype, ("uint8", "uint16", "float32")):
        result = result.astype("float32")
    return result


def _targets(rows: Any) -> Array:
    result = _numbers(rows)
    return result.astype(
        {"f": "float32", "b": "uint8"}.get(result.dtype.kind, result.dtype.newbyteorder("=")), copy=False
    )


def _pair(data: Any) -> tuple[Any, Any]:
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        found = f"{len(data)} arrays" if isinstance(data, (tuple, list)) else f"a {type(data).__name__}"
        raise UsageError(f"data has {found}; expected two arrays: samples and targets")
    try:
        x, y = (item if hasattr(item, "shape") else np.asarray(item) for item in data)
    except ValueError as error:
        raise UsageError(f"data is no array of numbers: {error}") from None
    if not len(x.shape) or not len(y.shape):
        raise UsageError("data has one sample; expected arrays with the shape [N, ...], such as x[None], y[None]")
    if len(x) != len(y):
        raise UsageError(f"data has {len(x)} samples and {len(y)} targets; expected equal numbers")
    return x, y


def _parts(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yields samples and targets, some rows at a time."""
    if has_type(data, "torch", "TensorDataset"):
        data = data.tensors
    if isinstance(data, (tuple, list)):
        x, y = _pair(data)
        if len(x) == 0:
            raise UsageError("data has no samples; expected one or more")
        for start in range(0, len(x), _ROWS):
            yield x[start : start + _ROWS], y[start : start + _ROWS]
    elif has_type(data, "tensorflow", "DatasetV2"):
        yield from map(_pair, data.as_numpy_iterator())
    elif isinstance(data, Iterable) and not isinstance(data, Iterator) and not hasattr(data, "shape"):
        yield from map(_pair, data)
    else:
        raise UsageError(
            f"data is a {type(data).__name__}; expected (samples, targets), a DataFrame, a TensorDataset, "
            "a DataLoader, a batched tf.data.Dataset, a folder, or a name as in syncopate train --data"
        )


def _mapped_file(array: Any, channels_first: bool) -> str | None:
    """Returns the NumPy file that an array is, if the programs can read the file as it is."""
    if not isinstance(array, np.memmap) or array.mode != "r" or not array.flags.c_contiguous:
        return None
    path = str(array.filename)
    if not path.endswith(".npy") or (channels_first and array.ndim == 4):
        return None
    whole = np.load(path, mmap_mode="r")
    return path if whole.shape == array.shape and whole.dtype == array.dtype else None


def _write_arrays(data: Any, folder: Path, splits: tuple[str, ...], channels_first: bool) -> None:
    """Writes samples and targets. With two splits, a fifth of the rows becomes the second one."""
    if isinstance(data, (tuple, list)) and len(data) == 2 and len(splits) == 1:
        mapped = [_mapped_file(data[0], channels_first), _mapped_file(data[1], False)]
        if all(mapped):
            for name, file in zip("xy", mapped):
                os.symlink(os.path.abspath(str(file)), folder / f"{name}_{splits[0]}.npy")
            return
    random = np.random.default_rng(1)
    names = [(name, split) for name in "xy" for split in splits]
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(NpyFile(folder / f"{'_'.join(name)}.npy")) for name in names}
        for x_part, y_part in _parts(data):
            x, y = inputs(x_part, channels_first), _targets(y_part)
            is_test = random.random(len(x)) < _HELD_OUT if len(splits) == 2 else np.zeros(len(x), bool)
            for split, rows in zip(splits, (~is_test, is_test)):
                files["x", split].append(x if len(splits) == 1 else x[rows])
                files["y", split].append(y if len(splits) == 1 else y[rows])


def _write_table(data: Any, test: Any, folder: Path, column: str) -> str:
    data.to_csv(folder / "train.csv", index=False)
    if test is None:
        return f"csv:{folder / 'train.csv'}{column}"
    test.to_csv(folder / "test.csv", index=False)
    return f"csv:{folder}{column}"


def _name_of_path(path: str | os.PathLike[str], column: str) -> str:
    """Returns the --data name of a folder or a file; another text is a --data name already."""
    text = os.fspath(path)
    if not os.path.exists(text) and (not isinstance(path, str) or (os.sep in text and ":" not in text)):
        raise UsageError(f"data {text}: there is no such folder or file")
    if os.path.isdir(text):
        is_npy = os.path.exists(os.path.join(text, "x_train.npy"))
        return f"{'npy' if is_npy else 'images'}:{os.path.abspath(text)}"
    if os.path.isfile(text):
        return f"csv:{os.path.abspath(text)}{column}"
    return text + column if text.startswith("csv:") else text


def write_data(data: Any, test: Any, folder: Path, channels_first: bool, label: Any = None, targets: Any = None) -> str:
    """Writes data into a folder, and returns its name for --data."""
    column = f":targets={','.join([targets] if isinstance(targets, str) else targets)}" if targets else ""
    column = column or (f":{label}" if label else "")
    if isinstance(data, (str, os.PathLike)):
        return _name_of_path(data, column)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*_t*.npy"):
        old.unlink()  # may be a link
    if has_type(data, "pandas", "DataFrame"):
        return _write_table(data, test, folder, column)
    if column:
        raise UsageError("label and targets name columns; data is no DataFrame and no CSV file")
    if test is None:
        log.info("no test data: a fifth of the samples is held out")
        _write_arrays(data, folder, ("train", "test"), channels_first)
    else:
        _write_arrays(data, folder, ("train",), channels_first)
        _write_arrays(test, folder, ("test",), channels_first)
    return f"npy:{folder}"


def example_of(data: Any, num_targets: int) -> Array | None:
    """Returns two samples as f32 in the layout of the network; None for data that has a name."""
    if isinstance(data, (str, os.PathLike)):
        return None
    if has_type(data, "pandas", "DataFrame"):
        return np.zeros((2, data.shape[1] - num_targets), "float32")
    first = next(_parts(data), None)
    if first is None:
        raise UsageError("data has no batches; expected one or more")
    rows = _numbers(first[0][:2]).astype("float32")
    return np.repeat(rows, 2, 0) if len(rows) == 1 else rows
