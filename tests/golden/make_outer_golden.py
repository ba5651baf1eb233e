#!/usr/bin/env python3
"""Makes outer_rules.safetensors: runs of local training with outer steps, each written from its formula.

    python3 tests/golden/make_outer_golden.py          (needs NumPy)

K workers minimise quadratics. In every round each worker starts at the outer values x, makes H steps of gradient
descent with the inner rate of the round, and hands over its displacement x - x_k. D is the mean of the
displacements, weighted by samples. All numbers are float64. The inputs are exact in float32 and are in the file too.
"""
import pathlib

import numpy as np

from golden_writer import write_safetensors

ROUNDS = 20
WORKERS = 3
STEPS = 4  # H
ELEMENTS = 37

random = np.random.default_rng(1)


def in_float32(array):
    return np.asarray(array, dtype=np.float32).astype(np.float64)


START = in_float32(random.normal(size=ELEMENTS))
CURVATURE = in_float32(random.uniform(0.1, 2.0, (WORKERS, ELEMENTS)))
CENTRE = in_float32(random.normal(size=(WORKERS, ELEMENTS)))
SAMPLES = random.integers(1, 200, (ROUNDS, WORKERS)).astype(np.float64)
SAMPLES[5, 1] = 0  # a worker without samples in this round
# Warm-up, then a constant rate, then decays: SlowMo's formula contains the rate of the round.
RATES = in_float32([0.01, 0.03, 0.05] + [0.1] * 7 + [0.02] * 6 + [0.004] * 4)


def train_locally(x, worker, rate):
    for _ in range(STEPS):
        x = x - rate * CURVATURE[worker] * (x - CENTRE[worker])
    return x


def mean_displacement(x, r):
    weights = SAMPLES[r] / SAMPLES[r].sum()
    return sum(weights[k] * (x - train_locally(x, k, RATES[r])) for k in range(WORKERS))


def run_rounds(outer_step):
    x, rows = START, []
    for r in range(ROUNDS):
        x = outer_step(x, mean_displacement(x, r), RATES[r])
        rows.append(x)
    return np.stack(rows)


def average():
    """The workers' values are averaged. Source: Stich 2019, algorithm 1 (arXiv:1805.09767)."""
    x, rows = START, []
    for r in range(ROUNDS):
        x = np.average([train_locally(x, k, RATES[r]) for k in range(WORKERS)], axis=0, weights=SAMPLES[r])
        rows.append(x)
    return np.stack(rows)


def slowmo(slow_rate, beta):
    """Source: Wang et al. 2020, algorithm 1, lines 6 and 7 (arXiv:1910.00643)."""
    u = np.zeros(ELEMENTS)

    def outer_step(x, displacement, rate):
        nonlocal u
        u = beta * u + displacement / rate
        return x - slow_rate * rate * u

    return run_rounds(outer_step)


def diloco(rate, beta):
    """Nesterov momentum in PyTorch's form. Source: Douillard et al. 2023, algorithm 1 (arXiv:2311.08105)."""
    v = np.zeros(ELEMENTS)

    def outer_step(x, displacement, _):
        nonlocal v
        v = beta * v + displacement
        return x - rate * (displacement + beta * v)

    return run_rounds(outer_step)


# The worker that pushes, for each push of the asynchronous runs. The second worker is the fastest.
PUSHES = [0, 1, 1, 2, 1, 0, 1, 1, 2, 0, 1, 2, 1, 1, 0, 1, 2, 1, 0, 1]
ASYNC_RATE = RATES[5]


def push_displacements(apply):
    """apply(x, displacement, j) returns the values after push j; the worker goes on from those values."""
    x, read, rows = START, [START] * WORKERS, []
    for j, worker in enumerate(PUSHES):
        displacement = read[worker] - train_locally(read[worker], worker, ASYNC_RATE)
        x = read[worker] = apply(x, displacement, j)
        rows.append(x)
    return np.stack(rows)


def delayed_nesterov(rate, beta, n):
    """Source: Liu et al. 2024, algorithm 3 with c = 0 (arXiv:2401.09135)."""
    m, total = np.zeros(ELEMENTS), np.zeros(ELEMENTS)

    def apply(x, displacement, j):
        nonlocal m, total
        total = total + displacement
        if (j + 1) % n != 0:
            return x - rate * displacement / n
        m = beta * m + total / n
        total = np.zeros(ELEMENTS)
        return x - rate * (displacement / n + beta * m)

    return push_displacements(apply)


def nesterov_on_arrival(rate, beta):
    v = np.zeros(ELEMENTS)

    def apply(x, displacement, _):
        nonlocal v
        v = beta * v + displacement
        return x - rate * (displacement + beta * v)

    return push_displacements(apply)


def require_close(a, b):
    if not np.allclose(a, b, rtol=1e-12, atol=1e-12):
        raise SystemExit("two programs that must agree differ")


def main():
    # The special cases of section 1 of each paper: every method without momentum is the average.
    require_close(average(), diloco(1.0, 0.0))
    require_close(average(), slowmo(1.0, 0.0))
    require_close(delayed_nesterov(0.3, 0.9, 1), nesterov_on_arrival(0.3, 0.9))
    tensors = {
        "start": START, "curvature": CURVATURE, "centre": CENTRE, "samples": SAMPLES, "rates": RATES,
        "pushes": np.array(PUSHES, dtype=np.float64),
        "average": average(),
        "slowmo": slowmo(1.0, 0.5),
        "slowmo-0.75": slowmo(0.75, 0.7),
        "diloco": diloco(0.7, 0.9),
        "delayed-nesterov": delayed_nesterov(0.3, 0.9, 4),
    }
    metadata = {"steps": str(STEPS), "numpy": np.__version__}
    write_safetensors(pathlib.Path(__file__).parent / "outer_rules.safetensors", tensors, metadata)


if __name__ == "__main__":
    main()
