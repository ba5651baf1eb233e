"""Writes data for the programs: arrays as NumPy files, tables as CSV files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pysyncopate.programs import UsageError, as_text

Array = npt.NDArray[Any]
_ROWS = 1024  # rows that are converted and written at a time
_HELD_OUT = 0.2
_HEADER_BYTES = 256
_SAMPLES = ("|u1", "<u2", "<f4")  # what the programs read
_TARGETS = (*_SAMPLES, "<i8", "<i4")


def has_type(value: Any, package: str, *names: str) -> bool:
    """Returns whether a value has a class of this package. The package is not imported."""
    return any(kind.__module__.split(".")[0] == package and kind.__name__ in names for kind in type(value).__mro__)


@contextlib.contextmanager
def npy_file(path: Path) -> Iterator[Callable[[Array], None]]:
    """Writes a NumPy file in parts: yields a function that appends rows. The header, with their number, is last."""
    first, count = np.empty(0, "f4"), 0

    def append(rows: Array) -> None:
        nonlocal first, count
        first = first if count else rows[:0]
        kinds = [f"{array.dtype} {list(array.shape[1:])}" for array in (first, rows)]
        if kinds[0] != kinds[1]:
            raise UsageError(f"a batch has rows of {kinds[0]}, and another one {kinds[1]}; expected one type and shape")
        count += len(rows)
        file.write(np.ascontiguousarray(rows).data)

    with open(path, "wb") as file:
        file.write(bytes(_HEADER_BYTES))
        yield append
        header = {"descr": first.dtype.str, "fortran_order": False, "shape": (count, *first.shape[1:])}
        text = repr(header).encode().ljust(_HEADER_BYTES - 11) + b"\n"
        file.seek(0)
        file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)


def _numbers(rows: Any) -> Array:
    """Returns a part of an array or a tensor as NumPy's numbers."""
    if has_type(rows, "torch", "Tensor"):
        rows = rows.detach().cpu()
        rows = (rows.float() if rows.is_floating_point() else rows).numpy()
    try:
        result: Array = np.atleast_1d(np.asarray(rows))
    except ValueError as error:
        raise UsageError(f"{error}; expected an array of numbers") from None
    if result.dtype.kind not in "biuf":
        found = "Python objects" if result.dtype.hasobject else f"elements of type {result.dtype}"
        advice = "x.astype('float32'), or np.unique(y, return_inverse=True)[1] for the names of classes"
        raise UsageError(f"an array has {found}; expected numbers, such as {advice}")
    return result


def inputs(rows: Any, channels_first: bool) -> Array:
    """Returns samples as the programs read them: [N, H, W, C], of type u8, u16 or f32."""
    result = _numbers(rows)
    if channels_first and result.ndim == 4:
        result = np.moveaxis(result, 1, -1)
    return result if result.dtype.str in _SAMPLES else result.astype("float32")


def _pair(data: Any) -> tuple[Any, Any]:
    try:
        x, y = (item if hasattr(item, "shape") else np.asarray(item) for item in data)
        counts = len(x), len(y)
    except (TypeError, ValueError) as error:
        raise UsageError(f"data: {error}; expected two arrays, samples [N, ...] and targets [N, ...]") from None
    if counts[0] != counts[1]:
        raise UsageError(f"data has {counts[0]} samples and {counts[1]} targets; expected equal numbers")
    return x, y


def _parts(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yields samples and targets, some rows at a time."""
    data = getattr(data, "tensors", data)  # of a TensorDataset
    if isinstance(data, (tuple, list)):
        x, y = _pair(data)
        for start in range(0, len(x), _ROWS):
            yield x[start : start + _ROWS], y[start : start + _ROWS]
    elif isinstance(data, Iterable) and not isinstance(data, Iterator) and not hasattr(data, "shape"):
        yield from map(_pair, data)
    else:
        kinds = "a DataFrame, a TensorDataset, a DataLoader, a batched tf.data.Dataset, a folder, or a name"
        raise UsageError(f"data is a {type(data).__name__}; expected (samples, targets), {kinds} such as 'mnist:DIR'")


def _is_file(array: Any, types: tuple[str, ...], channels_first: bool) -> bool:
    """Returns whether an array is a mapped NumPy file that the programs can read as it is."""
    path = str(getattr(array, "filename", ""))
    if not path.endswith(".npy") or array.mode != "r" or array.offset == 0 or (channels_first and array.ndim == 4):
        return False
    whole = np.load(path, mmap_mode="r")
    is_same = bool((whole.shape, whole.strides, whole.dtype) == (array.shape, array.strides, array.dtype))
    return is_same and whole.dtype.str in types and whole.flags.c_contiguous


def _write_arrays(data: Any, folder: Path, splits: tuple[str, ...], channels_first: bool) -> None:
    """Writes samples and targets. With two splits, a fifth of the rows becomes the second one."""
    types, is_pair = (_SAMPLES, _TARGETS), isinstance(data, (tuple, list)) and len(data) == 2
    if len(splits) == 1 and is_pair and all(map(_is_file, data, types, (channels_first, False))):
        for name, array in zip("xy", _pair(data)):
            os.symlink(os.path.abspath(array.filename), folder / f"{name}_{splits[0]}.npy")
        return
    random, count = np.random.default_rng(1), 0
    names = [(name, split) for name in "xy" for split in splits]
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(npy_file(folder / f"{'_'.join(name)}.npy")) for name in names}
        for x, y in _parts(data):
            targets = _numbers(y)
            targets = targets.astype("float32" if targets.dtype.kind == "f" else "int64", copy=False)
            arrays = {"x": inputs(x, channels_first), "y": targets}
            is_test = random.random(len(x)) < _HELD_OUT * (len(splits) - 1)
            for name, split in names:
                files[name, split](arrays[name][is_test if split in splits[1:] else ~is_test])
            count += len(is_test)
    if count == 0:
        raise UsageError("data has no samples; expected one or more")


def write_table(table: Any, path: Path) -> None:
    """Writes a DataFrame. A header of numbers would be a sample for the programs."""
    for name in table.columns:
        if not isinstance(name, str) or name.isdecimal():
            raise UsageError(f"a column of the DataFrame has the name {name!r}; expected words: df.add_prefix('c')")
    table.to_csv(path, index=False)


def write_data(data: Any, test: Any, folder: Path, channels_first: bool, label: Any = None, targets: Any = None) -> str:
    """Writes data into a folder, and returns its name for --data."""
    column = f":targets={as_text(targets)}" if targets is not None else f":{label}" if label is not None else ""
    is_name, is_table = isinstance(data, (str, os.PathLike)), has_type(data, "pandas", "DataFrame")
    if test is not None and (is_name or isinstance(test, str) or is_table != has_type(test, "pandas", "DataFrame")):
        raise UsageError("test: expected arrays or a DataFrame, as data; a folder or a name has its own test samples")
    if is_name:
        path = os.path.abspath(data)
        if os.path.isdir(path):
            is_npy = os.path.exists(os.path.join(path, "x_train.npy"))
            return f"{'npy' if is_npy else 'images'}:{path}"
        return f"csv:{path}{column}" if os.path.isfile(path) else f"{data}{column}"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*_t*.npy"):
        old.unlink()  # may be a link
    splits = {"train": data} if test is None else {"train": data, "test": test}
    if is_table:
        for split, table in splits.items():
            write_table(table, folder / f"{split}.csv")
        return f"csv:{folder / 'train.csv' if test is None else folder}{column}"
    if column:
        raise UsageError("label and targets name columns; data is no DataFrame and no CSV file")
    for split, arrays in splits.items():
        _write_arrays(arrays, folder, ("train", "test") if test is None else (split,), channels_first)
    return f"npy:{folder}"


def shape_in(folder: Path, channels_first: bool) -> tuple[int, ...] | None:
    """Returns the shape of the samples that write_data() wrote, in the layout of the network; None if it wrote none."""
    for path in folder.glob("x_train.npy"):
        shape: tuple[int, ...] = np.load(path, mmap_mode="r").shape[1:]
        return (shape[-1], *shape[:-1]) if channels_first and len(shape) == 3 else shape
    return None
