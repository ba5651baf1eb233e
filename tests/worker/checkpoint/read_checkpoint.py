#!/usr/bin/env python3
"""Opens a checkpoint as a program of somebody else would, and compares its tensors with a list.

    read_checkpoint.py CHECKPOINT EXPECTED

EXPECTED has a line "name [d0, d1]" per tensor. The file is read by the parser below and, where
they are installed, by the safetensors package with numpy.
"""

import json
import struct
import sys


def parse(path):
    """Names and shapes by the format's description; every rule of it is asserted."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length).decode("utf-8"))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(value, str) for value in metadata.values()), metadata
    end = 0
    for name, entry in header.items():
        assert entry["dtype"] == "F32", name
        begin, next_end = entry["data_offsets"]
        elements = 1
        for extent in entry["shape"]:
            elements *= extent
        assert (begin, next_end) == (end, begin + 4 * elements), name
        end = next_end
    assert end == len(data)
    assert length % 8 == 0
    return metadata, {name: entry["shape"] for name, entry in header.items()}


def open_with_package(path):
    """The same by the safetensors package; None where it is not installed."""
    try:
        import numpy  # noqa: F401, what safe_open makes of tensors
        from safetensors import safe_open
    except ImportError as error:
        print(f"skipped: the safetensors package ({error}); read by this script's parser only")
        return None
    with safe_open(path, framework="np") as file:
        shapes = {name: list(file.get_tensor(name).shape) for name in file.keys()}
        return file.metadata(), shapes


def main():
    path, expected_path = sys.argv[1:]
    with open(expected_path, encoding="utf-8") as file:
        expected = {name: json.loads(shape) for name, shape in
                    (line.rstrip("\n").split(" ", 1) for line in file)}
    for metadata, shapes in filter(None, (parse(path), open_with_package(path))):
        if shapes != expected:
            sys.exit(f"expected {expected}\nfound {shapes}")
        for key in ("format_version", "model", "optimizer", "step", "seed", "checksum"):
            if key not in metadata:
                sys.exit(f"metadata lack {key}: {metadata}")


if __name__ == "__main__":
    main()
