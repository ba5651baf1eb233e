"""Finds and runs the programs. A program that fails raises an exception with the program's line.

A program ends when the Python process ends, even by SIGKILL. Output goes into memory, because a
full disk must not hide an error.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import json
import logging
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast
from urllib.parse import unquote, urlparse

from pysyncopate.folders import Folder

log = logging.getLogger("pysyncopate")
_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_SECONDS_TO_STOP = 20.0  # a program writes its last checkpoint in this time
# Where a program's advice is a shell command, the line goes on with advice for Python instead.
_ADVICE = {
    "and the targets are numbers": "give integers for classes, such as y.astype('int64'), or y.argmax(1) for one-hot; "
    "for numbers, give loss='mean-squared-error' and a network of your own",
    r"one per class of the data; found \[.*?\]": "give a network with one output per class; "
    "the classes are 0 to the largest label",
    "expected finite numbers": "remove such rows: x[np.isfinite(x).reshape(len(x), -1).all(1)]",
}


class SyncopateError(RuntimeError):
    """A program failed. The text is the program's own line."""


class UsageError(SyncopateError, ValueError):
    """An argument is wrong. The text is the program's own line."""


Function = TypeVar("Function", bound=Callable[..., Any])


def reports_errors(function: Function) -> Function:
    """Turns errors of the operating system, such as a full disk, into SyncopateError."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except OSError as error:
            place = str(error.filename or tempfile.gettempdir()).partition("/pysyncopate-")[0]
            advice = "; for another temporary folder, set TMPDIR" if error.errno == errno.ENOSPC else ""
            raise SyncopateError(f"{place}: {error.strerror or error}{advice}") from None

    return cast(Function, inner)


def needs(module: str, packages: str = "") -> Any:
    """Imports an optional module. Raises SyncopateError that names the packages to install."""
    try:
        return __import__(module, fromlist=["_"])
    except ImportError as error:
        raise SyncopateError(f"{error}; run: pip install {packages or module}") from None


def _homes() -> Iterator[Path]:
    """Yields the folders that may have the programs, in the order of precedence."""
    if os.environ.get("SYNCOPATE_HOME"):
        yield Path(os.environ["SYNCOPATE_HOME"])
        return
    package = Path(__file__).resolve().parent
    yield package / "bundle"  # in a wheel
    if len(package.parents) > 3:
        yield package.parents[3]  # in a checkout
    try:  # installed from a checkout by `pip install deploy/python`
        source = metadata.distribution("pysyncopate").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        source = None
    if source:
        yield Path(unquote(urlparse(json.loads(source)["url"]).path)).parent.parent


def find(name: str) -> str:
    """Returns the path of a program. Raises SyncopateError if it is nowhere."""
    folder = "deploy" if name == "syncopate" else "bench"
    searched = list(_homes())
    for home_folder in searched:
        for place in ("bin", folder, f"build/release/{folder}"):
            path = home_folder / place / name
            if path.is_file() and os.access(path, os.X_OK):
                return str(path)
    if platform.machine() != "x86_64":
        raise SyncopateError(f"pysyncopate runs on x86-64 Linux, not on {platform.machine()}")
    raise SyncopateError(
        f"the program {name} was not found in {', '.join(map(str, searched))}; install the wheel, "
        "or set SYNCOPATE_HOME to a checkout that is built, or to an unpacked bundle"
    )


def run(
    folder: Folder, program: str, arguments: Iterable[Any], watch: Callable[[str], None] | None = None
) -> tuple[str, str]:
    """Runs a program to its end, and returns its standard output and its standard error.

    folder: the program holds it until it ends. watch: called about ten times per second with the
    new text on standard error. Raises UsageError for exit code 2, and SyncopateError for others.
    An exception in this thread, such as KeyboardInterrupt, first stops the program.
    """
    command = [find(program), *map(str, arguments)]
    log.info("%s", " ".join(command))
    parent = os.getpid()

    def end_with_parent() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    with _memory_file() as out, _memory_file() as err:
        child: subprocess.Popen[bytes] | None = None
        seen = 0
        try:
            with _no_interrupt():  # would lose the process id
                child = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                    preexec_fn=end_with_parent, pass_fds=(folder.lock,),
                )  # fmt: skip
            code: int | None = None
            while code is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = child.wait(0.1)
                text = _text(err, seen)
                seen += len(text)
                if watch is not None:
                    watch(text.decode(errors="replace"))
        except BaseException:
            if child is not None:
                _stop(child)
            raise
        output, errors = _text(out).decode(errors="replace"), _text(err).decode(errors="replace")
    for line in errors.splitlines():
        log.log(logging.WARNING if " warning" in line and code == 0 else logging.INFO, "%s", line)
    if code == 0:
        return output, errors
    ending = f"{program} was ended by {signal.Signals(-code).name}" if code < 0 else ""
    message = _complaint(errors, folder) or ending or f"{program} ended with exit code {code}"
    raise (UsageError if code == 2 else SyncopateError)(message)


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Delays KeyboardInterrupt, which only the main thread receives, until the end of the block."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for number in received[:1]:
            signal.raise_signal(number)


def _memory_file() -> Any:
    return os.fdopen(os.memfd_create("pysyncopate"), "w+b") if hasattr(os, "memfd_create") else tempfile.TemporaryFile()


def _text(file: Any, start: int = 0) -> bytes:
    # The program shares the position in the file, so the position must not be moved.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size - start, start)


def _stop(child: subprocess.Popen[bytes]) -> None:
    try:
        child.terminate()
        child.wait(_SECONDS_TO_STOP)
    except BaseException:  # did not stop in time, or interrupted again
        child.kill()
        child.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # in a wheel, the program starts as a shell script


def _complaint(text: str, folder: Folder) -> str:
    """Returns the program's error line; "" if it wrote nothing."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    errors = [re.sub(r"^\[[^\]]*\] ", "", line) for line in lines]
    own = [line for line in errors if line.startswith(("syncopate: ", "syncopate-bench: "))]
    line = (own or lines[-1:] or [""])[0].replace(f"{folder.path}/", "")  # the folder is removed
    for text, advice in _ADVICE.items():
        line = re.sub(f"({text}).*", lambda found, advice=advice: f"{found[1]}; {advice}", line)
    return line


@functools.cache
def help_of(program: str, command: str) -> str:
    """Returns the text of `PROGRAM COMMAND --help`."""
    return subprocess.run([find(program), command, "--help"], capture_output=True, text=True).stdout


@functools.cache
def flags_of(program: str, command: str) -> dict[str, str]:
    """Returns the flags of a command, such as "--epochs", and the help text of each."""
    found = re.split(r"\n  (--[a-z0-9-]+)", help_of(program, command))
    return dict(zip(found[1::2], found[2::2]))


def flags(command: str = "train") -> None:
    """Prints the flags of a command: train, launch or compare. A keyword has _ in place of -."""
    print(help_of("syncopate-bench" if command == "compare" else "syncopate", command))


def as_text(value: Any) -> str:
    """Returns a value as it is written on a command line: lists and dicts with commas."""
    if isinstance(value, Mapping):
        return ",".join(
            name.replace("_", "-") if item is True else f"{name.replace('_', '-')}={as_text(item)}"
            for name, item in value.items()
        )
    if isinstance(value, (list, tuple)):
        return ",".join(map(as_text, value))
    return str(value)


def as_flags(values: Mapping[str, Any], known: Mapping[str, str]) -> list[str]:
    """Returns keyword arguments as flags. None and False leave a flag out.

    known: the flags and their help. A list is repeated if the help says that the flag may be.
    """
    result: list[str] = []
    for name, value in values.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        is_repeated = isinstance(value, (list, tuple)) and bool(re.search(r"may\s+be\s+repeated", known.get(flag, "")))
        for item in value if is_repeated else [value]:
            result += [flag] if item is True else [flag, as_text(item)]
    return result


def split_flags(values: Mapping[str, Any], program: str, command: str) -> tuple[list[str], list[str]]:
    """Returns the flags of a command, and the other ones, which are flags of train."""
    own, train = flags_of(program, command), flags_of("syncopate", "train")
    values_of: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    for name, value in values.items():
        values_of["--" + name.replace("_", "-") not in own][name] = value
    return as_flags(values_of[0], own), as_flags(values_of[1], train)


def _become(name: str) -> NoReturn:
    """Becomes the program, with the arguments of this process: the console scripts call this."""
    try:
        path = find(name)
    except SyncopateError as error:
        sys.exit(f"{name}: {error}")
    os.execv(path, [path, *sys.argv[1:]])


syncopate = functools.partial(_become, "syncopate")
syncopate_bench = functools.partial(_become, "syncopate-bench")
