"""train() without PyTorch: networks of the zoo and NumPy arrays."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import bars, processes_of

import pysyncopate as ps
from pysyncopate.folders import sweep
from pysyncopate.programs import find

FEW = {"epochs": 1, "progress": False, "threads": 1, "batch_size_per_replica": 32}


def shell(*words):
    return subprocess.run([find("syncopate"), *words], capture_output=True, text=True, check=True)


def test_has_the_result_of_the_program(data):
    run = ps.train("mlp", data, **{**FEW, "epochs": 3})
    assert run.accuracy > 0.9
    assert run.loss < 0.5
    assert run.hash in run.output
    assert [event["step"] for event in run.events if event["event"] == "eval"][-1] == run.summary["steps"]
    assert run.checkpoint.exists()


@pytest.mark.parametrize(
    "tasks, words",
    [
        ({}, ["train", "--strategy", "one-device"]),
        ({"strategy": "mirrored", "replicas": 2}, ["train", "--strategy", "mirrored", "--replicas", "2"]),
        (
            {"strategy": "multi-worker-mirrored", "workers": 2},
            ["launch", "--workers", "2", "--", "train", "--strategy", "multi-worker-mirrored"],
        ),
    ],
)
def test_has_the_hash_of_the_shell(tasks, words, data, tmp_path):
    for split in "train", "test":
        np.save(tmp_path / f"x_{split}.npy", data[0])
        np.save(tmp_path / f"y_{split}.npy", data[1])
    run = ps.train("mlp", data, test=data, **FEW, share_devices=True, **tasks)
    metrics = tmp_path / "metrics.jsonl"
    shell(
        *words,
        "--model",
        "mlp",
        "--data",
        f"npy:{tmp_path}",
        "--epochs",
        "1",
        "--threads",
        "1",
        "--batch-size-per-replica",
        "32",
        "--share-devices",
        "--metrics",
        str(metrics),
    )
    summary = json.loads(metrics.read_text().splitlines()[-1])
    assert run.hash == summary["weights_hash"]


def test_repeats_the_updates_of_a_parameter_server(data, tmp_path):
    record = tmp_path / "record"
    run = ps.train(
        "mlp",
        data,
        test=data,
        **FEW,
        strategy="parameter-server",
        workers=2,
        servers=1,
        share_devices=True,
        record=record,
    )
    replay = subprocess.run(
        [find("syncopate-bench"), "compare", "--replay", record, "--data", f"npy:{run.checkpoint.parents[1] / 'data'}"],
        capture_output=True,
        text=True,
    )
    assert replay.returncode == 0, replay.stderr
    assert run.hash in replay.stdout


def test_shows_the_epochs(data, capfd):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    ps.train("mlp", data, **{**FEW, "epochs": 2, "progress": True})
    assert "2/2 epoch" in capfd.readouterr().err


def test_predicts_with_the_checkpoint(data):
    run = ps.train("mlp", data, test=data, **{**FEW, "epochs": 3})
    probabilities = run.predict(data[0])
    assert probabilities.shape == (600, 4)
    assert np.mean(probabilities.argmax(1) == data[1]) == pytest.approx(run.accuracy, abs=1e-9)


def test_resumes_with_other_flags(data):
    run = ps.train("mlp", data, **FEW)
    whole = ps.train("mlp", data, **{**FEW, "epochs": 2})
    assert run.resume(epochs=2).hash == whole.hash


def test_keeps_its_weights_when_it_is_resumed(data):
    first = ps.train("mlp", data, **FEW)
    before, shares = first.weights(), first.predict(data[0][:5])
    second = first.resume(epochs=2)
    assert second.hash != first.hash
    assert all(np.array_equal(before[name], value) for name, value in first.weights().items())
    assert np.array_equal(shares, first.predict(data[0][:5]))
    assert not np.array_equal(shares, second.predict(data[0][:5]))


def test_predicts_for_each_path_of_an_iterator(data, tmp_path):
    run = ps.train("mlp", data, **FEW)
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", data[0][number : number + 1])
    paths = sorted(tmp_path.glob("?.npy"))
    for forms in iter(paths), np.array(list(map(str, paths))), paths:
        assert np.array_equal(run.predict(forms), run.predict(data[0][:3]))


def test_none_leaves_the_files_in_the_temporary_folder(data, scratch):
    run = ps.train("mlp", data, **FEW, checkpoint_dir=None, metrics=None)
    assert scratch in run.checkpoint.parents
    assert run.weights()


def test_takes_flags_as_numpy_or_text_writes_them(data):
    run = ps.train("mlp", data, **{**FEW, "progress": True, "epochs": "2"}, nesterov=np.False_, learning_rate="0.01")
    assert run.hash == ps.train("mlp", data, **{**FEW, "epochs": 2}, learning_rate=0.01).hash


@pytest.mark.parametrize("kind", ["float64", "float16", "int64", "bool", ">f4", "Fortran order"])
def test_converts_a_mapped_file_that_the_program_does_not_read(kind, data, tmp_path):
    x = np.asfortranarray(data[0]) if kind == "Fortran order" else data[0].astype(kind)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", data[1])
    mapped = tuple(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xy")
    hashes = {ps.train("mlp", pair, test=data, **FEW).hash for pair in (mapped, (x.astype("float32"), data[1]))}
    assert len(hashes) == 1


def test_copies_a_mapped_file_without_a_header(data, tmp_path):
    maps = []
    for name, array in zip("xy", data):
        array.tofile(tmp_path / f"{name}.npy")
        maps.append(np.memmap(tmp_path / f"{name}.npy", array.dtype, "r", shape=array.shape))
    assert ps.train("mlp", tuple(maps), test=data, **FEW).hash == ps.train("mlp", data, test=data, **FEW).hash


def test_writes_arrays_as_the_program_reads_them(tmp_path):
    run = ps.train("mlp", (bars()[0].astype("float64"), bars()[1]), **FEW)
    folder = run.checkpoint.parents[1] / "data"
    parts = [np.load(folder / f"x_{split}.npy") for split in ("train", "test")]
    assert parts[0].dtype == np.float32
    assert sum(map(len, parts)) == 600
    assert len(parts[1]) == pytest.approx(120, abs=40)


def test_does_not_copy_a_mapped_file(data, tmp_path):
    for name, array in zip("xy", data):
        np.save(tmp_path / f"{name}.npy", array)
    x, y = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xy")
    run = ps.train("mlp", (x, y), test=(x[::-1], y[::-1]), **FEW)
    folder = run.checkpoint.parents[1] / "data"
    assert os.path.realpath(folder / "x_train.npy") == str(tmp_path / "x.npy")
    assert np.array_equal(np.load(folder / "x_test.npy"), data[0][::-1])


ENDLESS = """
import signal, sys, pysyncopate as ps
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
print("begins", flush=True)
ps.train("mlp", "synthetic:1x8x8:4:512", steps=10**9, progress=False, **{tasks})
"""


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.02)


@pytest.mark.parametrize(
    "tasks", [{}, {"strategy": "parameter-server", "workers": 2, "servers": 1, "share_devices": True}]
)
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_leaves_nothing_when_the_kernel_ends(end, tasks, scratch):
    kernel = subprocess.Popen([sys.executable, "-c", ENDLESS.format(tasks=tasks)], stderr=subprocess.PIPE)
    try:
        wait_until(lambda: len(list(scratch.glob("pysyncopate-*/metrics.jsonl"))) > 0)
        kernel.send_signal(end)
        errors = kernel.communicate(timeout=60)[1].decode()
    finally:
        kernel.kill()
    if end == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
        assert not processes_of(scratch)
    else:
        wait_until(lambda: not processes_of(scratch))

        def next_use():
            sweep()  # leaves a folder alone while a program has it
            return not list(scratch.glob("pysyncopate-*"))

        wait_until(next_use)
    assert not list(scratch.glob("pysyncopate-*"))


def test_an_interrupt_leaves_a_folder_that_the_next_use_removes(scratch, monkeypatch):
    folder = scratch / "pysyncopate-of-a-killed-kernel"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "x.npy").touch()
    (folder / "lock").touch()
    rmdir = os.rmdir

    def interrupted(path, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rmdir", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep()
    monkeypatch.setattr(os, "rmdir", rmdir)
    sweep()
    assert not folder.exists()


def test_keeps_the_folder_of_another_run(data, scratch):
    first = ps.train("mlp", data, **FEW)
    ps.train("mlp", data, **FEW)
    assert first.predict(data[0]).shape == (600, 4)


def test_names_what_to_install(data, monkeypatch):
    run = ps.train("mlp", data, **FEW)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ps.SyncopateError, match="pip install pandas"):
        _ = run.history


def test_says_where_it_looked_for_the_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNCOPATE_HOME", str(tmp_path))
    with pytest.raises(ps.SyncopateError, match="SYNCOPATE_HOME"):
        ps.train(progress=False)


def test_trains_on_a_table():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    x, y = bars()
    table = pandas.DataFrame(x.reshape(600, -1)[:, ::4]).add_prefix("pixel")
    table["kind"] = y
    run = ps.train("mlp", table, label="kind", **FEW)
    assert run.predict(table).shape == (600, 4)
    assert list(run.history["epoch"]) == [1.0]
