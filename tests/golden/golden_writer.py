"""Writes the golden files of this folder; golden_file.cc reads them."""
import json
import struct

import numpy as np


def write_safetensors(path, tensors, metadata):
    header, body = {"__metadata__": metadata}, b""
    for name, array in tensors.items():
        data = np.ascontiguousarray(array)
        kind = {"float32": "F32", "float64": "F64"}[data.dtype.name]
        header[name] = {"dtype": kind, "shape": list(data.shape),
                        "data_offsets": [len(body), len(body) + data.nbytes]}
        body += data.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
