"""One progress bar, by tqdm; without tqdm, lines of text."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

_SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Shows the progress of one program. A context manager: the bar ends with the program."""

    def __init__(
        self, is_shown: bool, title: str, unit: str, total: float | None = None, metrics: Path | None = None
    ) -> None:
        """metrics: shows the epochs of this file, from its present end on."""
        self._is_shown, self._title, self._unit, self._total = is_shown, title, unit, total
        self._path = metrics
        self._start = metrics.stat().st_size if metrics is not None and metrics.exists() else 0
        self._metrics: Any = None
        self._bar: Any = None
        self._last_line = time.monotonic()

    def __enter__(self) -> Progress:
        if self._is_shown:
            try:
                from tqdm.auto import tqdm

                form = "{desc} {percentage:3.0f}%|{bar}| {n:.4g}/{total:.4g} {unit} [{elapsed}{postfix}]"
                self._bar = tqdm(desc=self._title, total=self._total, unit=self._unit)
                if self._total is not None:
                    self._bar.bar_format = form
            except ImportError:
                pass
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._metrics is not None:
            self._metrics.close()

    def watch(self, text: str) -> None:
        """Reads the new part of a program's standard error, or the new lines of the metrics file."""
        if not self._is_shown:
            return
        if self._path is None:
            for done, total, rest in re.findall(r"\[(\d+)/(\d+)[^\]]*\] ([^\r\n]*)", text):
                self._total = int(total)
                self._show(int(done), rest)
            return
        if self._metrics is None:
            if not self._path.exists():
                return
            self._metrics = open(self._path)  # noqa: SIM115 (closed by __exit__)
            self._metrics.seek(self._start)
        for line in self._metrics:
            if not line.endswith("\n"):  # the program is writing this line
                self._metrics.seek(self._metrics.tell() - len(line))
                break
            event = json.loads(line)
            if event["event"] == "step":
                self._show(event["epoch"], f"loss {event['loss']:.4g}")
            elif event["event"] == "eval" and "test_accuracy" in event:
                self._show(event["epoch"], f"test accuracy {event['test_accuracy']:.2%}")

    def _show(self, done: float, note: str) -> None:
        if self._bar is not None:
            self._bar.total = self._total
            self._bar.n = done
            self._bar.set_postfix_str(note)
        elif time.monotonic() - self._last_line > _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            total = "" if self._total is None else f"/{self._total:g}"
            print(f"{self._title}: {done:.3g}{total} {self._unit}, {note}", file=sys.stderr)
