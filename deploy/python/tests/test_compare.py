"""compare() without PyTorch."""

import json
import time

import pytest

import pysyncopate as ps
from pysyncopate import comparing

FEW = {"epochs": 2, "seeds": 2, "workers": 2, "optimizer": "sgd", "learning_rate": 0.1, "progress": False}
VARIANTS = ["one-device", "parameter-server:async"]


def test_has_the_verdict_of_the_program(data):
    report = ps.compare("mlp", data, strategies=VARIANTS, slow_worker="4x", **FEW)
    assert report.verdict in " ".join(report.text.split())
    assert [row["name"] for row in report.comparison["rows"]] == VARIANTS
    assert "slow worker=1,factor=4" in report.comparison["trouble"]
    page = report._repr_html_()
    assert report.verdict in page
    assert "data:image/svg+xml" in page


def test_gives_variants_their_own_flags(data):
    strategies = {"one-device": {"learning_rate": 0.05, "nesterov": True, "optimizer": "momentum"}, "mirrored": {}}
    report = ps.compare("mlp", data, strategies=strategies, **FEW)
    own, common = report.comparison["variants"]
    assert "--optimizer momentum --learning-rate 0.05 " in own["update_flags"]
    assert "--optimizer sgd --learning-rate 0.1 " in common["update_flags"]


def test_compares_on_several_clusters(data, tmp_path):
    report = ps.compare("mlp", data, strategies=VARIANTS, clusters=["equal", "slow-worker"], **FEW)
    assert report.clusters == ["equal", "slow-worker"]
    assert report.verdict in " ".join(report.text.split())
    report.save(tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_text().startswith("<svg")
    assert report.on("slow-worker").arguments("one-device")["strategy"] == "one-device"
    with pytest.raises(ps.UsageError, match=r"choose one of on\('equal'\)"):
        report.arguments()


def test_trains_the_recommended_variant(data):
    flags = {**FEW, "seeds": 5, "workers": 4, "epochs": 3, "slow_worker": "4x", "service_time": "constant:20"}
    report = ps.compare("mlp", data, strategies=["mirrored", "parameter-server:ssp:3"], **flags)
    assert report.best == "parameter-server:ssp:3"
    arguments = report.arguments(epochs=4, progress=False)
    assert {"model", "data", "init_from", "service_time"}.isdisjoint(arguments)
    assert (arguments["workers"], arguments["strategy"], arguments["consistency"]) == (4, "parameter-server", "ssp")
    assert (arguments["max_staleness"], arguments["learning_rate"], arguments["epochs"]) == (3, 0.1, 4)
    run = ps.train("mlp", data, **arguments)
    assert run.accuracy > 0.9
    assert run.events[-1]["strategy"] == "parameter-server"
    mirrored = report.arguments("mirrored")
    assert (mirrored["replicas"], mirrored["learning_rate_scale"]) == (4, "linear")
    assert ps.train("mlp", data, **mirrored, progress=False).summary["strategy"] == "mirrored"


def test_recommends_nothing_after_one_run(data):
    report = ps.compare("mlp", data, strategies=VARIANTS, **{**FEW, "seeds": 1})
    assert report.best is None
    with pytest.raises(ps.UsageError, match="no variant is recommended: choose one of one-device, parameter-server"):
        report.arguments()


def test_shows_the_runs_of_a_search(data, capfd):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    ps.compare("mlp", data, strategies=VARIANTS, tune=True, **{**FEW, "progress": True})
    assert "28/28 runs" in capfd.readouterr().err  # 12 of the search and 2 of the report for each variant


def test_keeps_a_named_report_and_goes_on_with_it(data, tmp_path):
    first = ps.compare("mlp", data, strategies=VARIANTS, report=tmp_path / "r", **FEW)
    more = ps.compare("mlp", data, strategies=VARIANTS, report=tmp_path / "r", **{**FEW, "seeds": 3})
    assert len(more.comparison["variants"][0]["runs"]) == 3
    assert ps.Report(tmp_path / "r").verdict == more.verdict
    assert first.path == more.path


def test_leaves_the_inputs_of_a_running_comparison_alone(data, tmp_path, monkeypatch):
    start = comparing.run
    flags = {**FEW, "strategies": VARIANTS, "report": tmp_path / "r"}

    def compare_other_labels_meanwhile(*arguments):
        monkeypatch.setattr(comparing, "run", start)
        labels = tmp_path / "r" / "inputs" / "data" / "y_train.npy"
        before = labels.read_bytes()
        with pytest.raises(ps.SyncopateError, match="another comparison is using this folder; choose another one"):
            ps.compare("mlp", (data[0], data[1][::-1]), **flags)
        assert labels.read_bytes() == before
        return start(*arguments)

    monkeypatch.setattr(comparing, "run", compare_other_labels_meanwhile)
    assert ps.compare("mlp", data, **flags).verdict
    assert ps.compare("mlp", data, **flags).verdict  # the folder is free again


def test_waits_for_an_answer_that_another_process_writes(data, monkeypatch):
    report = ps.compare("mlp", data, strategies=VARIANTS, **FEW)
    file = report.path / "comparison.json"
    whole = file.read_text()
    file.write_text(json.dumps({name: value for name, value in json.loads(whole).items() if name != "answer"}))
    monkeypatch.setattr(time, "sleep", lambda seconds: file.write_text(whole))
    assert ps.Report(report.path, text=report.text).verdict == report.verdict


def test_names_the_figures_of_a_report(data, tmp_path):
    report = ps.compare("mlp", data, strategies=VARIANTS, **FEW)
    with pytest.raises(ps.UsageError, match=r"it has .*throughput"):
        report.save(tmp_path / "f.svg", figure="speed")
    with pytest.raises(ps.UsageError, match=r"the name has no extension; expected one such as .*\.svg"):
        report.save(tmp_path / "figure")
    report.save(tmp_path / "f.svg", figure="throughput")
    assert (tmp_path / "f.svg").exists()


def test_draws_a_named_figure_as_svg_only(data, tmp_path):
    report = ps.compare("mlp", data, strategies=VARIANTS, **FEW)
    with pytest.raises(ps.UsageError, match=r"expected a name with \.svg, because plot\(\) does not draw throughput"):
        report.save(tmp_path / "f.png", figure="throughput")
    report.save(tmp_path / "F.SVG", figure="throughput")
    assert (tmp_path / "F.SVG").read_text().startswith("<svg")


def test_leaves_out_what_a_variant_switches_off(data):
    strategies = {"one-device": {"nesterov": False, "momentum": None, "learning_rate": 0.2}, "mirrored": {}}
    own, _ = ps.compare("mlp", data, strategies=strategies, **FEW).comparison["variants"]
    assert own["label"] == "one-device{learning-rate=0.2}"


def test_reports_a_wrong_flag_in_one_line():
    with pytest.raises(ps.UsageError, match="unknown flag worker="):
        ps.compare(worker=2, progress=False)


def test_has_tables_and_axes(data):
    pytest.importorskip("pandas", reason="pandas is not installed")
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pyplot.switch_backend("agg")
    report = ps.compare("mlp", data, strategies=VARIANTS, clusters=["equal", "jitter"], **FEW)
    assert set(report.table["cluster"]) == {"equal", "jitter"}
    assert report.curves["accuracy"].max() > 0.5
    assert len(report.plot(cluster="jitter").lines) == 4
