"""Wrong uses: each gives one exception with one clear line, and leaves no process and no file."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import bars, processes_of

import pysyncopate as ps
from pysyncopate import arrays, programs
from pysyncopate.folders import sweep

FEW = {"epochs": 1, "progress": False, "threads": 1}
ENDLESS = {"epochs": None, "steps": 10**9, "batch_size_per_replica": 8}
X, Y = bars(200)


def few(**changes):
    return {"model": "mlp", "data": (X, Y), **FEW, **changes}


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.02)


def left(scratch):
    return [path.name for path in scratch.glob("pysyncopate-*")] + processes_of(scratch)


@contextlib.contextmanager
def one_clear_line(words, scratch):
    with pytest.raises(ps.SyncopateError) as caught:
        yield
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert "Traceback" not in message
    assert "pysyncopate-" not in message  # the temporary folder, which is gone
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert not left(scratch)  # while the traceback is still alive


class Batches:
    """Data in batches, like a DataLoader."""

    def __init__(self, *batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


class DataFrame:
    """As much of a DataFrame of pandas as train() uses."""

    def __init__(self, *columns):
        self.columns, self.shape = columns, (50, len(columns))

    def to_csv(self, path, index):
        rows = [self.columns, *((row % 3, row % 2, row % 5) for row in range(self.shape[0]))]
        path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")


DataFrame.__module__ = "pandas"

DATA = {
    "Python objects": ((np.array([object()] * 200), Y), "expected numbers"),
    "words as labels": ((X, np.array(["cat", "dog"] * 100)), "return_inverse=True"),
    "complex numbers": ((X + 1j, Y), "elements of type complex64"),
    "rows of different lengths": (([[1, 2], [3]], [0, 1]), "inhomogeneous"),
    "negative labels": ((X, Y - 1), "is -1; expected 0 to 99999; number the classes from 0"),
    "labels that are numbers": ((X, Y.astype("float32")), "y.astype('int64')"),
    "one-hot labels": ((X, np.eye(4)[Y]), "y.argmax(1)"),
    "samples that are no number": ((X * np.nan, Y), "is nan; expected finite numbers; remove such rows: x[np.isfinite"),
    "fewer labels than samples": ((X, Y[:-1]), "200 samples and 199 targets"),
    "no samples": ((X[:0], Y[:0]), "data has no samples"),
    "no targets": (X, "data is a ndarray; expected (samples, targets)"),
    "one sample without N": ((np.float32(3), np.float32(3)), "expected two arrays, samples [N, ...] and targets"),
    "three arrays": ((X, Y, Y), "expected two arrays, samples [N, ...] and targets"),
    "an iterator, which can be read once": (((X, Y) for _ in range(2)), "data is a generator"),
    "too many axes": ((X[..., None], Y), "expected [N, H, W], [N, H, W, C] or [N, F]"),
    "a name of a folder that is nowhere": ("npy:/nowhere", "there is no folder /nowhere"),
    "a folder that is nowhere": ("/nowhere/pictures", "data=/nowhere/pictures: no such data set"),
    "no data": (None, "data is a NoneType; expected (samples, targets), a DataFrame"),
    "batches of several shapes": (Batches((X[:9, :4], Y[:9]), (X, Y)), "a batch has rows of float32 [4, 12, 1]"),
    "batches of several types": (Batches((X.astype("u1"), Y), (X, Y)), "uint8 [12, 12, 1], and another"),
    "a path that is nowhere": (pathlib.Path("nowhere"), "data=nowhere: no such data set"),
}

ARGUMENTS = {
    "test samples of another shape": ({"test": (X[:, :6], Y)}, "expected samples of one shape and type"),
    "test data beside a name": ({"data": "digits", "test": (X, Y)}, "a folder or a name has its own test samples"),
    "test data beside a folder": ({"data": ".", "test": "."}, "a folder or a name has its own test samples"),
    "a name as test data": ({"test": "digits"}, "test: expected arrays or a DataFrame, as data"),
    "arrays beside a table": ({"data": DataFrame("a", "b", "c"), "test": (X, Y)}, "arrays or a DataFrame, as data"),
    "columns with numbers": ({"data": DataFrame(0, 5, 2), "label": 0}, "has the name 0; expected words: df.add_prefix"),
    "columns with digits": ({"data": DataFrame("a", "5", "c")}, "has the name '5'; expected words: df.add_prefix"),
    "a column before the first one": ({"data": DataFrame("a", "b", "c"), "label": 0}, "expected a number from 1 to 3"),
    "a loss for a name": ({"loss": "mean-squared-error"}, "loss=mean-squared-error: only for modules, models and ONNX"),
    "results for nobody": ({"metrics": "/dev/null"}, "the program wrote no results; it printed: test accuracy"),
    "a request for help": ({"help": True}, "the program wrote no results; it printed: Trains a network"),
    "a column for arrays": ({"label": "kind"}, "data is no DataFrame and no CSV file"),
    "no model": ({"model": 7}, "model is a int; expected a torch module"),
    "the class of a model": ({"model": dict}, "model is a type; expected a torch module"),
    "a network file that is nowhere": ({"model": "nowhere/net.json"}, "nowhere/net.json: No such file"),
    "the name of a file that is nowhere": ({"model": "file:nowhere.json"}, "network file nowhere.json: No such file"),
    "an ONNX file that is nowhere": ({"model": "nowhere.onnx"}, "nowhere.onnx: there is no such file"),
    "a misspelt model": ({"model": "mpl"}, "model=mpl: no such name; did you mean 'mlp'?"),
    "an unknown keyword": ({"epoch": 3}, "unknown flag epoch=; did you mean 'epochs='?"),
    "a value out of range": ({"learning_rate": 0}, "learning_rate=0: expected"),
    "a misspelt strategy": ({"strategy": "mirorred"}, "strategy=mirorred: no such name; did you mean 'mirrored'?"),
    "no workers": ({"workers": 0}, "workers=0: expected a whole number from 1 to 1024"),
    "several workers for one task": ({"strategy": "mirrored", "workers": 2}, "strategy= mirrored is one task"),
    "servers without use": ({"strategy": "multi-worker-mirrored", "workers": 2, "servers": 1}, "1 parameter servers"),
    "too few servers": ({"strategy": "parameter-server", "workers": 2}, "no servers; give launch servers=1 or more"),
    "a folder that cannot be written": ({"checkpoint_dir": "/proc/x"}, "cannot create the folder"),
}

COMPARISONS = {
    "a misspelt strategy": ({"strategies": ["mirorred"]}, "no such strategy; did you mean 'mirrored'?"),
    "no workers": ({"workers": 0}, "workers=0: expected a whole number"),
    "an unknown cluster": ({"clusters": ["moon"]}, "clusters=moon: expected equal, jitter"),
    "a slow worker without a factor": ({"slow_worker": "slow"}, "expected a factor such as 4x"),
    "negative labels": ({"data": (X, Y - 1)}, "number the classes from 0"),
    "clusters with the real clock": ({"clusters": ["equal"], "clock": "real"}, "clusters are simulated"),
    "a report that cannot be written": ({"report": "/proc/x"}, "/proc/x: No such file or directory"),
}


@pytest.mark.parametrize("name", DATA)
def test_reports_wrong_data(name, scratch):
    data, words = DATA[name]
    with one_clear_line(words, scratch):
        ps.train(**few(data=data))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_reports_a_wrong_argument(name, scratch):
    arguments, words = ARGUMENTS[name]
    with one_clear_line(words, scratch):
        ps.train(**few(**arguments))


@pytest.mark.parametrize("name", COMPARISONS)
def test_reports_a_wrong_comparison(name, scratch):
    arguments, words = COMPARISONS[name]
    with one_clear_line(words, scratch):
        ps.compare(**few(**{"workers": 2, "seeds": 2, **arguments}))


def test_reports_a_table_without_the_column(scratch, tmp_path):
    (tmp_path / "table.csv").write_text("size,kind\n" + "1,0\n2,1\n" * 50)
    for data in (tmp_path / "table.csv", f"csv:{tmp_path}/table.csv"):
        with one_clear_line("has no label column 'species'; expected a number from 1 to 2 or a name", scratch):
            ps.train(**few(data=data, label="species"))


@pytest.mark.parametrize("kind", ["float64", "int64", "float16", "bool", ">f4"])
def test_takes_numbers_of_any_type(kind):
    samples = (X * 4).astype(kind)
    kinds = [ps.train(**few(data=(data, Y))).hash for data in (samples, samples.astype("float32"))]
    assert kinds[0] == kinds[1]


def test_reports_a_checkpoint_that_is_gone(scratch):
    run = ps.train(**few())
    run.checkpoint.unlink()
    for use in (run.resume, run.weights):
        with pytest.raises(ps.SyncopateError, match="has no checkpoint; train again"):
            use()


def test_reports_wrong_uses_of_a_result(scratch, tmp_path):
    run = ps.train(**few(checkpoint_dir=tmp_path / "checkpoints"))
    uses = {
        "an array has Python objects; expected numbers": lambda: run.predict(None),
        "give an array of one such sample": lambda: run.predict(3),
        "expected an array of numbers": lambda: run.predict((X, Y)),
        "data: resume() has the network and the data of the run": lambda: run.resume(data=(X, Y)),
        "model: resume() has the network and the data of the run": lambda: run.resume(model="resnet20"),
        "model is a NoneType; expected a torch module or a Keras model": lambda: run.load_into(None),
        "model is a str; expected a torch module or a Keras model": lambda: run.load_into("mlp"),
    }
    for words, use in uses.items():
        with pytest.raises(ps.UsageError) as caught:
            use()
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
    shutil.rmtree(next(scratch.glob("pysyncopate-*")))  # as programs that clean /tmp do
    with pytest.raises(ps.SyncopateError, match=f"^{scratch}: No such file or directory; files were removed; run"):
        run.predict(X)


@pytest.mark.parametrize("command", ["comapre", None, 3])
def test_reports_a_command_without_flags(command):
    with pytest.raises(ps.UsageError, match="no such command; expected train, launch or compare"):
        ps.flags(command)


def test_reports_that_no_folder_is_writable(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/nowhere"])
    with pytest.raises(ps.SyncopateError, match=r"^No usable temporary directory found in") as caught:
        ps.train(**few())
    assert caught.value.__suppress_context__


def test_names_the_files_of_the_caller(tmp_path):
    with pytest.raises(ps.SyncopateError, match=f"^{tmp_path}/pysyncopate-mine/f.svg: No such file"):
        programs.reports_errors(open)(tmp_path / "pysyncopate-mine" / "f.svg")


def test_refuses_cuda_without_the_module(scratch):
    if "libsyncopate_cuda.so" not in subprocess.check_output([programs.find("syncopate"), "info"], text=True):
        pytest.skip("this build has the CUDA module")
    with one_clear_line("no CUDA module", scratch):
        ps.train(**few(devices="cuda"))


@pytest.mark.parametrize("here", ["aarch64 linux", "x86_64 darwin"])
def test_reports_another_system(here):
    machine, system = here.split()
    code = f"import platform, sys; sys.platform = {system!r}; platform.machine = lambda: {machine!r}"
    code += "; import pysyncopate"
    errors = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert errors.splitlines()[-1].endswith(f"runs on x86-64 Linux, glibc 2.28 or newer, not on {here}")


class Modules:
    """Torch modules that cannot be trained. PyTorch is imported by the test that uses one."""

    def __init__(self, torch):
        self.torch, self.nn = torch, torch.nn

    def module(self, forward):
        module = type("Net", (self.nn.Module,), {"forward": forward})()
        module.fc = self.nn.Linear(144, 4)
        return module

    def unsupported(self):
        return self.module(lambda net, x: self.torch.cumsum(net.fc(x.flatten(1)), 1))

    def two_inputs(self):
        return self.module(lambda net, x, z: net.fc(x.flatten(1) + z.flatten(1)))

    def two_outputs(self):
        return self.module(lambda net, x: (net.fc(x.flatten(1)), x))

    def depends_on_values(self):
        return self.module(lambda net, x: net.fc(x.flatten(1)) if x.sum() > 0 else x)

    def convolution(self):
        return self.nn.Sequential(self.nn.Conv2d(1, 4, 3), self.nn.Flatten(), self.nn.Linear(400, 4))

    def three_classes(self):
        return self.nn.Sequential(self.nn.Flatten(), self.nn.Linear(144, 3))


MODULES = {
    "unsupported": "no counterpart here: CumSum",
    "depends_on_values": "torch.onnx.export: Co",  # "Could not guard on ..." or "Converting a tensor to ..."
    "two_inputs": "missing 1 required positional argument: 'z'; expected",
    "two_outputs": "a module with one input and one output",
    "convolution": "fails on samples of shape [12, 12, 1]: Given groups=1",
    "three_classes": "one per class of the data; found [3]; give a network with one output per class",
}


@pytest.mark.parametrize("name", MODULES)
def test_reports_a_wrong_module(name, scratch, capfd):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    pictures = X if name == "convolution" else np.moveaxis(X, -1, 1)
    with one_clear_line(MODULES[name], scratch):
        ps.train(**few(model=getattr(Modules(torch), name)(), data=(pictures, Y)))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("size", ["4k,nr_inodes=2", "64k", "400k"])
@pytest.mark.parametrize("start", [ps.train, ps.compare])
def test_reports_a_full_disk(start, size, scratch):
    """The smallest one has no place for a file, the next for the data, the last for checkpoints or the report."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(scratch)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    data = bars(600)
    try:
        with one_clear_line("No space left on device", scratch):
            start(**few(data=data, **({} if start is ps.train else {"workers": 2, "seeds": 2})))
    finally:
        unmounted = subprocess.run(["umount", str(scratch)], capture_output=True, text=True)
        subprocess.run(["umount", "--lazy", str(scratch)], capture_output=True)
    assert unmounted.returncode == 0, unmounted.stderr  # an open file keeps the disk full


@pytest.fixture(autouse=True)
def default_interrupts():
    """A shell starts programs in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def interrupt_after(monkeypatch):
    """Makes Ctrl-C arrive when a program with this argument starts."""

    def install(word):
        start = subprocess.Popen

        def start_and_interrupt(command, **options):
            child = start(command, **options)
            if word in command:
                signal.raise_signal(signal.SIGINT)
            return child

        monkeypatch.setattr(programs.subprocess, "Popen", start_and_interrupt)

    ps.programs.flags_of("syncopate", "train"), ps.programs.flags_of("syncopate", "launch")
    ps.programs.flags_of("syncopate-bench", "compare")
    return install


@pytest.mark.parametrize("phase", ["convert", "train", "launch", "compare"])
def test_an_interrupt_ends_the_program(phase, interrupt_after, scratch, tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"")
    interrupt_after(phase)
    with pytest.raises(KeyboardInterrupt) as caught:
        if phase == "compare":
            ps.compare(**few(seeds=500, workers=2, epochs=999, batch_size_per_replica=8))
        elif phase == "convert":
            ps.train(**few(model=tmp_path / "net.onnx"))
        else:
            tasks = {"strategy": "multi-worker-mirrored", "workers": 2, "share_devices": True}
            ps.train(**few(**(tasks if phase == "launch" else {}), **ENDLESS))
    assert not list(scratch.glob("pysyncopate-*"))
    wait_until(lambda: not processes_of(scratch))  # one that was killed is still there for a moment
    del caught


def test_an_interrupt_ends_the_writing_of_arrays(monkeypatch, scratch):
    monkeypatch.setattr(arrays, "inputs", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt) as caught:
        ps.train(**few())
    assert not left(scratch)
    del caught


def test_an_interrupt_ends_the_export(scratch):
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def forward(net, x):
        if not torch.is_grad_enabled() or net.training:  # in the first pass and in the export
            signal.raise_signal(signal.SIGINT)
        return net.fc(x.flatten(1))

    with pytest.raises(KeyboardInterrupt) as caught:
        ps.train(**few(model=Modules(torch).module(forward), data=(np.moveaxis(X, -1, 1), Y)))
    assert not left(scratch)
    del caught


KERNEL = """
import sys, pysyncopate as ps
ps.compare("mlp", "synthetic:1x8x8:4:512", seeds=500, epochs=999, workers=2, progress=False)
"""


def test_a_killed_kernel_leaves_nothing_after_the_next_use(scratch):
    kernel = subprocess.Popen([sys.executable, "-c", KERNEL])
    wait_until(lambda: len(processes_of(scratch)) > 0)
    kernel.kill()
    kernel.wait()

    def next_use():
        sweep()  # leaves a folder alone while a program that ends still has it
        return not left(scratch)

    wait_until(next_use)


def test_two_threads_and_two_processes_do_not_disturb_each_other(scratch):
    alone = ps.train(**few()).hash
    with ThreadPoolExecutor(2) as threads:
        assert [run.hash for run in threads.map(lambda _: ps.train(**few()), range(2))] == [alone] * 2
    code = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
import test_wrong_uses as test
print(test.ps.train(**test.few()).hash)"""
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0].strip() for process in both] == [alone] * 2
    assert not left(scratch)


def test_two_threads_export_one_module_at_a_time(scratch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 4))
    with ThreadPoolExecutor(2) as threads:
        hashes = {run.hash for run in threads.map(lambda _: ps.train(**few(model=module)), range(2))}
    assert len(hashes) == 1
    assert not left(scratch)
