"""Progress bars."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pysyncopate.programs import needs

_FORM = "{desc} |{bar}| {n:.4g}/{total_fmt} {unit} [{elapsed}{postfix}]"
_NOTES = {"step": "loss {loss:.4g}", "eval": "test accuracy {test_accuracy:.2%}"}  # of events of the metrics

State = tuple[float, "float | None", str]  # what a program has done, how much it will do (None: not known), a remark
Look = Callable[[str], "State | None"]  # None: nothing is known


def look_at_epochs(metrics: Path, epochs: float | None) -> Look:
    """Returns a function that reads the new lines of a metrics file."""
    position = metrics.stat().st_size if metrics.exists() else 0

    def look(_: str) -> State | None:
        nonlocal position
        if not metrics.exists():
            return None
        with open(metrics, "rb") as file:
            file.seek(position)
            lines = [line for line in file if line.endswith(b"\n")]  # the program may be writing the last line
        position += sum(map(len, lines))
        state = None
        for line in lines:
            event = json.loads(line)
            with contextlib.suppress(KeyError):  # an event without a note
                state = event["epoch"], epochs, _NOTES[event["event"]].format_map(event)
        return state

    return look


def look_at_runs(report: Path, text: str) -> State | None:
    """Counts the runs in the folder of a comparison, also those of a search. text: standard error of the program."""
    totals = re.findall(r"(\d+) runs(?:, with|: \d+ of the search)", text)  # the first one includes the search
    if not totals:
        return None
    notes = re.findall(r"^\[\d+/\d+[^\]]*\] (.*)", text, re.MULTILINE)
    return sum(1 for _ in report.glob("**/runs/*.jsonl")), int(totals[0]), "".join(notes[-1:])


@contextlib.contextmanager
def progress_bar(is_shown: bool, title: str, unit: str, look: Look) -> Iterator[Callable[[str], None]]:
    """Yields a function that shows the progress, for run(). look() takes a program's standard error."""
    if not is_shown:
        yield lambda text: None
        return
    with needs("tqdm.auto", "tqdm").tqdm(desc=title, unit=unit, bar_format=_FORM) as bar:

        def watch(text: str) -> None:
            state = look(text)
            if state is not None and state[:2] != (bar.n, bar.total):
                done, total, note = state
                if total != bar.total:
                    bar.reset(total)
                bar.n = done
                bar.set_postfix_str(note)

        yield watch
