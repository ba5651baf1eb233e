#!/usr/bin/env python3
"""Makes stale_rules.safetensors: runs of asynchronous workers under rules for single stale gradients, from their formulas.

    python3 tests/golden/make_stale_rule_golden.py          (needs NumPy)

K workers minimise quadratics. Push j hands over a gradient of the values that its worker received with the answer to its
push before; the answer to push j has the values after it. The first gradient of every worker is one of the start values.
All numbers are float64. The inputs are exact in float32 and are in the file too.
"""
import pathlib

import numpy as np

from golden_writer import write_safetensors

WORKERS = 3
ELEMENTS = 37
RATE = 0.125
BETA = 0.9
# The worker of each push. The second worker is the fastest, and the last one is slow.
PUSHES = [1, 0, 1, 1, 2, 1, 0, 1, 1, 0, 1, 1, 2, 1, 0, 1, 0, 1, 1, 2]

random = np.random.default_rng(2)


def in_float32(array):
    return np.asarray(array, dtype=np.float32).astype(np.float64)


START = in_float32(random.normal(size=ELEMENTS))
CURVATURE = in_float32(random.uniform(0.1, 2.0, (WORKERS, ELEMENTS)))
CENTRE = in_float32(random.normal(size=(WORKERS, ELEMENTS)))


def gradient(worker, x):
    return CURVATURE[worker] * (x - CENTRE[worker])


def run(apply):
    """apply(x, g, read, version) returns new values, or None for a gradient that is dropped. `version` counts the updates
    of the run so far, `read` those that the worker's values contain. Returns the values after each push, and which pushes
    were used."""
    x, version = START, 0
    values, read = [START] * WORKERS, [0] * WORKERS
    rows, used = [], []
    for worker in PUSHES:
        after = apply(x, gradient(worker, values[worker]), read[worker], version)
        used.append(0.0 if after is None else 1.0)
        if after is not None:
            x, version = after, version + 1
        values[worker], read[worker] = x, version
        rows.append(x)
    return np.stack(rows), np.array(used)


def asynchronous():
    return run(lambda x, g, read, version: x - RATE * g)


def ringmaster(bound):
    """A gradient with a delay of `bound` or more is ignored. Source: Maranjyan et al. 2025, algorithm 4, Ringmaster ASGD
    without calculation stops (arXiv:2501.16168)."""
    return run(lambda x, g, read, version: x - RATE * g if version - read < bound else None)


def rennala(batch, beta):
    """`batch` gradients of the same values are collected, then their mean makes one step, here of heavy-ball momentum.
    Source: Tyurin and Richtarik 2023, Rennala SGD (arXiv:2305.12387)."""
    collected, count, momentum = np.zeros(ELEMENTS), 0, np.zeros(ELEMENTS)
    x, step = START, 0
    values, read = [START] * WORKERS, [0] * WORKERS
    rows, used = [], []
    for worker in PUSHES:
        g = gradient(worker, values[worker])
        is_used = read[worker] == step
        used.append(1.0 if is_used else 0.0)
        if is_used:
            collected, count = collected + g, count + 1
        if count == batch:
            momentum = beta * momentum + collected / batch
            x, step = x - RATE * momentum, step + 1
            collected, count = np.zeros(ELEMENTS), 0
        values[worker], read[worker] = x, step
        rows.append(x)
    return np.stack(rows), np.array(used)


def group(index, workers):
    """The step of synchronous momentum with `workers` gradients to which the gradient of iteration `index` belongs."""
    return -(-index // workers)


def ordered_momentum_by_place(workers, beta):
    """Every gradient counts as if it had arrived at its place: in step n, a gradient of step j has moved the values by
    1 + beta + ... + beta^(n - j) times itself. Source: Shi et al. 2024, ordered momentum (arXiv:2407.19234)."""
    places, gradients = [], []

    def apply(_, g, read, version):
        places.append(group(read, workers))
        gradients.append(g)
        moved = [sum(beta ** i for i in range(group(version, workers) - j + 1)) * g for j, g in zip(places, gradients)]
        return START - RATE * sum(moved)

    return run(apply)


def ordered_momentum(workers, beta):
    """The same, with one momentum u. When a new step begins, x moves by beta u; then a gradient that is b steps late adds
    beta^b g to u and moves x by (1 - beta^(b + 1)) / (1 - beta) g. Source: the same paper."""
    u, step = np.zeros(ELEMENTS), 0

    def apply(x, g, read, version):
        nonlocal u, step
        while step < group(version, workers):
            u, step = beta * u, step + 1
            x = x - RATE * u
        late = step - group(read, workers)
        u = u + beta ** late * g
        return x - RATE * (1 - beta ** (late + 1)) / (1 - beta) * g

    return run(apply)


def require_close(a, b):
    if not all(np.allclose(x, y, rtol=1e-12, atol=1e-12) for x, y in zip(a, b)):
        raise SystemExit("two programs that must agree differ")


def main():
    require_close(ringmaster(1000), asynchronous())
    require_close(rennala(1, 0.0), ringmaster(1))  # both use only gradients of the current values
    require_close(ordered_momentum(WORKERS, 0.0), asynchronous())
    require_close(ordered_momentum(WORKERS, BETA), ordered_momentum_by_place(WORKERS, BETA))
    runs = {
        "ringmaster": ringmaster(2),
        "rennala": rennala(3, 0.0),
        "rennala-momentum": rennala(2, BETA),
        "ordered-momentum": ordered_momentum_by_place(WORKERS, BETA),
    }
    tensors = {"start": START, "curvature": CURVATURE, "centre": CENTRE, "pushes": np.array(PUSHES, dtype=np.float64)}
    for name, (rows, used) in runs.items():
        tensors[name] = rows
        tensors[name + "-used"] = used
        print(f"{name}: {int(used.sum())} of {len(PUSHES)} gradients used")
    metadata = {"rate": str(RATE), "beta": str(BETA), "numpy": np.__version__}
    write_safetensors(pathlib.Path(__file__).parent / "stale_rules.safetensors", tensors, metadata)


if __name__ == "__main__":
    main()
