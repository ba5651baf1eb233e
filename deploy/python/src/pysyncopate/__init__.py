"""Trains your network under distribution strategies, and says which strategy is best.

    import pysyncopate as ps

    report = ps.compare(Net(), (x, y), workers=8, slow_worker="4x")  # which strategy, and how sure
    run = ps.train(Net(), (x, y), **report.arguments())              # trains with the recommended one
    run.load_into(net)                                               # the weights, back in PyTorch

The package starts the programs `syncopate` and `syncopate-bench`, and reads their files. Keywords are their
flags: `learning_rate=0.1` is `--learning-rate 0.1`. `flags()` prints the flags of a command.
"""

import platform
import sys

if (_here := f"{platform.machine()} {sys.platform}") != "x86_64 linux":
    raise ImportError(f"pysyncopate runs on x86-64 Linux, glibc 2.28 or newer, not on {_here}")

from pysyncopate.comparing import Report, compare
from pysyncopate.programs import SyncopateError, UsageError, flags
from pysyncopate.training import Result, train

__all__ = ["Report", "Result", "SyncopateError", "UsageError", "compare", "flags", "train"]
__version__ = "0.1.0"
