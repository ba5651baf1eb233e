#!/usr/bin/env python3
"""Prints golden_values.inc: the results of five steps of each optimizer in PyTorch.

    /usr/bin/python3 tests/models/optim/make_golden.py > tests/models/optim/golden_values.inc

It needs Debian's python3-torch. Start values, gradients and constants are those of
optimizer_golden_test.cc.
"""

import torch

VALUES = [1.0, -2.0, 0.5, 0.001]
# The gradient of element i in step t (from 1) is GRADIENTS[i] * t, with the opposite sign in even steps.
GRADIENTS = [0.1, -0.2, 3.0, 1e-4]
STEPS = 5

CASES = [
    ("sgd", 0.0, lambda p: torch.optim.SGD(p, lr=0.1)),
    ("sgd", 0.01, lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01)),
    ("momentum", 0.0, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    ("momentum", 0.01, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01)),
    ("nesterov", 0.01,
     lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True)),
    ("adam", 0.0, lambda p: torch.optim.Adam(p, lr=0.1)),
    ("adam", 0.01, lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.01)),
    ("adamw", 0.01, lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.01)),
]


def numbers(tensor):
    return "{" + ", ".join(f"{x:.9g}F" if "." in f"{x:.9g}" or "e" in f"{x:.9g}" else f"{x:.9g}.0F"
                           for x in tensor.tolist()) + "}"


def main():
    print(f"// Made by make_golden.py with PyTorch {torch.__version__.split('+')[0]}; do not edit.")
    for name, weight_decay, make in CASES:
        parameter = torch.nn.Parameter(torch.tensor(VALUES))
        optimizer = make([parameter])
        for step in range(1, STEPS + 1):
            sign = 1 if step % 2 == 1 else -1
            parameter.grad = torch.tensor(GRADIENTS) * (step * sign)
            optimizer.step()
        state = optimizer.state[parameter]
        slots = [state[key] for key in ("momentum_buffer", "exp_avg", "exp_avg_sq")
                 if state.get(key) is not None]
        slots = ", ".join(numbers(slot) for slot in slots)
        print(f'{{"{name}", {weight_decay}, {numbers(parameter.detach())}, {{{slots}}}}},')


if __name__ == "__main__":
    main()
