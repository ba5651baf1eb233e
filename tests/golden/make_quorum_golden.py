#!/usr/bin/env python3
"""Makes quorum.safetensors: displacements of several workers that are merged by quorum and grace, from the formulas.

    python3 tests/golden/make_quorum_golden.py          (needs NumPy)

K workers minimise quadratics. A worker's displacement is H steps of gradient descent, which begin at the values that it
received last. It arrives after the time of its round, and then the worker waits. A merge happens when all workers wait, or
when those of at least Q workers have waited for `grace` ms. It makes one outer step of Nesterov momentum with the mean of
the displacements by samples: v = beta v + D, x = x - eta (D + beta v), and all merged workers go on with the new x. Source:
Decoupled DiLoCo (arXiv:2604.21428) for quorum, grace and weights; DiLoCo (arXiv:2311.08105) for the outer step.
All numbers are float64, and times are whole ms. The inputs are exact in float32 and are in the file too.
"""
import pathlib

import numpy as np

from golden_writer import write_safetensors

WORKERS, ELEMENTS, STEPS, MERGES = 4, 37, 3, 20
RATE, ETA, BETA = 0.125, 0.7, 0.9
QUORUM, GRACE = 2, 30

random = np.random.default_rng(3)


def in_float32(array):
    return np.asarray(array, dtype=np.float32).astype(np.float64)


START = in_float32(random.normal(size=ELEMENTS))
CURVATURE = in_float32(random.uniform(0.1, 2.0, (WORKERS, ELEMENTS)))
CENTRE = in_float32(random.normal(size=(WORKERS, ELEMENTS)))
# The ms and the samples of each worker's rounds. The last worker is slow.
ROUNDS = random.integers(50, 120, (WORKERS, 3 * MERGES)) * np.array([[1], [1], [1], [3]])
SAMPLES = random.integers(1, 9, (WORKERS, 3 * MERGES))


def displacement(worker, x):
    y = x
    for _ in range(STEPS):
        y = y - RATE * CURVATURE[worker] * (y - CENTRE[worker])
    return x - y


def run(quorum, grace, workers=WORKERS):
    """Returns the values after each merge, and its time and workers."""
    x, v = START, np.zeros(ELEMENTS)
    values, rounds = [START] * workers, [0] * workers
    arrives = [ROUNDS[w][0] for w in range(workers)]
    rows, merges = [], []
    while len(rows) < MERGES:
        order = sorted(range(workers), key=lambda w: arrives[w])
        latest = arrives[order[quorum - 1]] + grace
        merged = [w for w in order if arrives[w] <= latest]
        now = arrives[merged[-1]] if len(merged) == workers else latest
        samples = {w: SAMPLES[w][rounds[w]] for w in merged}
        mean = sum(samples[w] * displacement(w, values[w]) for w in merged) / sum(samples.values())
        v = BETA * v + mean
        x = x - ETA * (mean + BETA * v)
        for w in merged:
            values[w], rounds[w] = x, rounds[w] + 1
            arrives[w] = now + ROUNDS[w][rounds[w]]
        rows.append(x)
        merges.append([now] + [1.0 if w in merged else 0.0 for w in range(workers)])
    return np.stack(rows), np.array(merges, dtype=np.float64)


def main():
    all_workers, _ = run(WORKERS, 0)
    infinite, _ = run(QUORUM, 10**9)
    if not np.array_equal(all_workers, infinite):
        raise SystemExit("all workers and infinite grace differ")
    rows, merges = run(QUORUM, GRACE)
    print("workers in a merge:", merges[:, 1:].sum(axis=1).astype(int).tolist())
    tensors = {"start": START, "curvature": CURVATURE, "centre": CENTRE, "rounds": ROUNDS, "samples": SAMPLES,
               "quorum": rows, "quorum-merges": merges, "all": all_workers}
    metadata = {"rate": str(RATE), "eta": str(ETA), "beta": str(BETA), "quorum": str(QUORUM), "grace": str(GRACE),
                "numpy": np.__version__}
    write_safetensors(pathlib.Path(__file__).parent / "quorum.safetensors",
                      {name: np.asarray(t, dtype=np.float64) for name, t in tensors.items()}, metadata)


if __name__ == "__main__":
    main()
