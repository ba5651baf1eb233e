"""Comparison of strategies: compare(), and its report."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import html
import json
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pysyncopate.folders import Folder
from pysyncopate.programs import SyncopateError, UsageError, as_text, needs, reports_errors, run, split_flags
from pysyncopate.progress import look_at_runs, progress_bar
from pysyncopate.training import prepare


class Report:
    """The report of a comparison; a notebook shows its verdict and its figure.
    Report("FOLDER") opens the folder of an earlier comparison.
    verdict: a sentence that says which strategy to use.
    best: the recommended variant, such as "parameter-server:ssp:3"; None if none is recommended, or
        if there are several clusters. Then see on("CLUSTER").best.
    path: the folder, with report.html, comparison.json, runs.csv and plots/*.svg.
    comparison: all results: comparison.json, or map.json if there are several clusters.
    clusters: the names of the clusters; empty for a comparison on one cluster.
    text: what the program printed: table, cautions, verdict.
    """

    def __init__(self, path: str | Path, folder: Folder | None = None, text: str = "") -> None:
        self.path = Path(path)
        self._folder = folder or Folder()
        self.text = text or run(self._folder, "syncopate-bench", ["report", self.path])[0]
        name = "map.json" if (self.path / "map.json").exists() else "comparison.json"
        for _ in range(100):
            self.comparison: dict[str, Any] = json.loads((self.path / name).read_text())
            if "answer" in self.comparison:
                break
            time.sleep(0.1)  # with share_runs, another process may be writing the answer
        self.clusters: list[str] = self.comparison.get("clusters", [])
        self.verdict: str = self.comparison["answer"]["sentence"]
        self.best: str | None = self.comparison["answer"].get("best")

    def __repr__(self) -> str:
        return f"<pysyncopate.Report {self.path}>\n{self.text}"

    def _repr_html_(self) -> str:
        svg = base64.b64encode(self._figure().read_bytes()).decode()
        return (
            f"<p><b>{html.escape(self.verdict)}</b></p>"
            f'<img alt="{html.escape(self.verdict)}" src="data:image/svg+xml;base64,{svg}">'
            f"<details><summary>table and cautions</summary><pre>{html.escape(self.text)}</pre></details>"
        )

    def on(self, cluster: str) -> Report:
        """Returns the report of one of several clusters."""
        return Report(self.path / cluster, self._folder)

    def arguments(self, variant: str | None = None, **changes: Any) -> dict[str, Any]:
        """Returns the keyword arguments of train() that train a variant as the comparison did, without faults.
        variant: a name in the table; None: best. changes: further arguments, such as epochs=20.
        Give train() the same network, data, test data, loss and init_from as compare().
        """
        name = variant or self.best or "no variant is recommended"
        commands = {item["label"]: item.get("command") for item in self.comparison.get("variants", [])}
        known = commands or [f"on({cluster!r})" for cluster in self.clusters]
        if not commands.get(name):  # an older program recorded no command
            raise UsageError(f"{name}: choose one of {', '.join(known)} of a comparison by this program")
        found = {
            flag.replace("-", "_"): json.loads(value) if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", value) else value or True
            for flag, value in re.findall("--([^\0]+)(?:\0((?!--)[^\0]+))?", "\0".join(commands[name]))
            if flag not in ("model", "data", "init-from")
        }
        return {**found, **changes}

    @property
    def table(self) -> Any:
        """A DataFrame with a row for each variant (on each cluster): seconds_to_target, accuracy (0 to 1) and more."""
        pandas = needs("pandas")
        return pandas.read_csv(self.path / "map.csv") if self.clusters else pandas.DataFrame(self.comparison["rows"])

    @property
    def curves(self) -> Any:
        """A DataFrame with a row for each evaluation of each run: label, seed, seconds, accuracy."""
        pandas = needs("pandas")
        if not self.clusters:
            return pandas.read_csv(self.path / "curves.csv")
        tables = {name: pandas.read_csv(self.path / name / "curves.csv") for name in self.clusters}
        return pandas.concat(tables, names=["cluster", None]).reset_index("cluster")

    def plot(self, x: str = "seconds", y: str = "accuracy", cluster: str | None = None) -> Any:
        """Draws one curve for each run, and returns matplotlib's Axes.
        x: "seconds", "samples" or "step". y: "accuracy" or "loss". cluster: None: the first one.
        """
        pyplot = needs("matplotlib.pyplot", "matplotlib")
        curves = self.on(cluster or self.clusters[0]).curves if self.clusters else self.curves
        _, axes = pyplot.subplots()
        for number, (label, runs) in enumerate(curves.dropna(subset=[y]).groupby("label", sort=False)):
            for seed, (_, points) in enumerate(runs.groupby("seed")):
                axes.plot(points[x], points[y], f"C{number % 10}", lw=1, label=None if seed else label)
        axes.set(xlabel=x, ylabel=y, title=self.verdict)
        axes.title.set(fontsize="small", wrap=True)
        axes.legend(fontsize="small")
        return axes

    @reports_errors
    def save(self, file: str | Path, figure: str | None = None) -> None:
        """Writes the figure to a file: .svg as the program drew it; .png, .pdf: plot().
        figure: another figure of the report, such as "accuracy-seconds" (plots/NAME.svg), for .svg only.
        """
        suffix = Path(file).suffix
        if not suffix:
            raise UsageError(f"{file}: the name has no extension; expected one such as {file}.svg, .png or .pdf")
        if suffix.lower() == ".svg":
            shutil.copyfile(self._figure(figure), file)
        elif figure:
            raise UsageError(f"{file}: expected a name with .svg, because plot() does not draw {figure}")
        else:
            self.plot().figure.savefig(file, bbox_inches="tight")

    def _figure(self, name: str | None = None) -> Path:
        for known in [f"plots/{name}"] if name else ["map", "plots/time", "plots/accuracy-seconds", "plots/accuracy"]:
            if (self.path / f"{known}.svg").exists():
                return self.path / f"{known}.svg"
        names = ", ".join(sorted(file.stem for file in self.path.glob("plots/*.svg")))
        raise UsageError(f"{name or self.path}: the report has no such figure; it has {names or 'none'}")


@reports_errors
def compare(
    model: Any = "mnist-cnn",
    data: Any = "digits",
    *,
    test: Any = None,
    workers: int | None = 8,
    strategies: Any = None,
    clusters: Any = None,
    tune: Any = False,
    seeds: int = 5,
    clock: str | None = "virtual",
    report: str | Path | None = None,
    label: str | None = None,
    targets: Any = None,
    loss: str | None = None,
    input_shape: tuple[int, ...] | None = None,
    progress: bool = True,
    **flags: Any,
) -> Report:
    """Trains a network under several strategies, and reports which strategy is best.

    model, data, test, label, targets, loss, input_shape, progress: as for train().
    workers: number of workers of each variant; None with preset=NAME.
    strategies: list of variants, such as ["mirrored", "parameter-server:async"]; a dict gives
        variants flags of their own: {"mirrored": {"learning_rate": 0.1}, "pipeline": {}}.
        None: one-device, multi-worker-mirrored, and parameter-server with :sync+backup:1 (without
        the slowest gradient), :ssp:3 (bounded staleness) and :async.
    clusters: list of simulated clusters: "equal", "jitter", "slow-worker", "slow-link", or your own,
        such as "mine{slow-worker=4x,link-rate=1gbit}". None: one cluster, described by flags.
    tune: search the learning rate of each variant first; "momentum,batch-size" searches more.
    seeds: number of runs of each variant. A claim needs five or more.
    clock: "virtual" simulates the time of any number of workers in one process, and gives the same
        result again; "real" starts processes and measures their time.
    report: folder to keep; the same call makes only its missing runs. None: a temporary folder.
    flags: the flags of `syncopate-bench compare`, such as slow_worker="4x", epochs=5,
        service_time="constant:20" (milliseconds of a step; without it, 1), link_rate="1gbit",
        target_accuracy=0.9; and those of train(). pysyncopate.flags("compare") prints them.

    Returns a Report: verdict, table, save("figure.svg") and more. Raises the errors of train().
    """
    with Folder() as folder, contextlib.ExitStack() as stack:
        path = folder.path / "report" if report is None else Path(report).absolute()
        into = folder.path if report is None else path / "inputs"
        if report is not None and not flags.get("share_runs"):  # a running comparison reads these inputs
            into.mkdir(parents=True, exist_ok=True)
            try:
                fcntl.flock(stack.enter_context(open(into / "lock", "a")), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SyncopateError(f"{path}: another comparison is using this folder; choose another one") from None
        network, weights, name, _ = prepare(model, data, test, folder, into, label, targets, loss, input_shape)
        if isinstance(strategies, Mapping):
            strategies = [f"{variant}{{{as_text(own)}}}" if own else variant for variant, own in strategies.items()]
        values = {
            "model": network, "data": name, "workers": workers, "strategies": strategies, "clusters": clusters,
            "tune": tune, "seeds": seeds, "clock": clock, "report": path, "init_from": weights, **flags,
        }  # fmt: skip
        own, train_flags = split_flags(values, "syncopate-bench", "compare")
        with progress_bar(progress, "compare", "runs", lambda text: look_at_runs(path, text)) as watch:
            output, _ = run(folder, "syncopate-bench", ["compare", *own, "--", *train_flags], watch)
        return Report(path, folder, output)
