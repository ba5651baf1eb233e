"""Finds and runs the programs. A program that fails raises an exception with the program's line."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from pysyncopate.folders import Folder

log = logging.getLogger("pysyncopate")
_libc = ctypes.CDLL(None)
_ADVICE = {errno.ENOSPC: "; for another temporary folder, set TMPDIR", errno.ENOENT: "; files were removed; run again"}
_LEFT_OUT = ("None", "False")  # values of flags that are not given
# How an error of a program is reworded. Where the advice is for a shell, there is advice for Python instead.
_REWORDINGS: dict[str, Any] = {
    "(and the targets are numbers).*": r"\1; give integers for classes, such as y.astype('int64'), or y.argmax(1) for "
    "one-hot; for numbers, give loss='mean-squared-error' and a network of your own",
    r"(one per class of the data; found \[.*?\]).*": r"\1; give a network with one output per class; "
    "the classes are 0 to the largest label",
    "(expected finite numbers).*": r"\1; remove such rows: x[np.isfinite(x).reshape(len(x), -1).all(1)]",
    "(no servers); start the job .*": r"\1; give workers=2, servers=1",
    r"syncopate(?:-bench)? (\S+) --help": r"pysyncopate.flags('\1')",
    # "--learning-rate 0: expected" becomes "learning_rate=0: expected".
    r"(?<![\w-])--([a-z][a-z0-9-]*)(?: (?=(?!out\b)\S+(?:[:;,]|$)|\d))?": lambda flag: flag[1].replace("-", "_") + "=",
}


class SyncopateError(RuntimeError):
    """A program failed. The text is the program's own line."""


class UsageError(SyncopateError, ValueError):
    """An argument is wrong. The text is the program's own line."""


Function = TypeVar("Function", bound=Callable[..., Any])
Watch = Callable[[str], None]


def reports_errors(function: Function) -> Function:
    """Turns errors of the operating system, such as a full disk, into SyncopateError."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except OSError as error:
            own, advice = f"{tempfile.tempdir}/pysyncopate-", ""
            place = str(error.filename or (own if error.errno == errno.ENOSPC else ""))
            if place.startswith(own):
                place, advice = str(tempfile.tempdir), _ADVICE.get(error.errno or 0, "")
            raise SyncopateError(f"{place}{': ' if place else ''}{error.strerror or error}{advice}") from None

    return cast(Function, inner)


def needs(module: str, packages: str = "") -> Any:
    """Imports an optional module. Raises SyncopateError that names the packages to install."""
    try:
        return __import__(module, fromlist=["_"])
    except ImportError as error:
        raise SyncopateError(f"{error}; run: pip install {packages or module}") from None


def find(name: str) -> str:
    """Returns the path of a program. Raises SyncopateError if it is nowhere."""
    package = Path(__file__).resolve().parent
    homes = [package / "bundle", package.parent.parent.parent.parent]  # in a wheel; in a checkout
    if os.environ.get("SYNCOPATE_HOME"):
        homes = [Path(os.environ["SYNCOPATE_HOME"])]
    folder = "deploy" if name == "syncopate" else "bench"
    places = [str(home / place) for home in homes for place in ("bin", folder, f"build/release/{folder}")]
    path = shutil.which(name, path=os.pathsep.join(places))
    if path is None:
        where, advice = ", ".join(map(str, homes)), "set SYNCOPATE_HOME to a checkout that is built, or to a bundle"
        raise SyncopateError(f"the program {name} was not found in {where}; install the wheel, or {advice}")
    return path


def run(folder: Folder, program: str, arguments: Iterable[Any], watch: Watch = lambda text: None) -> tuple[str, str]:
    """Runs a program to its end, and returns its standard output and its standard error.
    folder: the program holds it until it ends. watch: called about ten times per second with the text on standard
    error. Raises UsageError for exit code 2, and SyncopateError for others. An interrupt first stops the program.
    """
    command = [find(program), *map(str, arguments)]
    log.info("%s", " ".join(command))
    parent = os.getpid()

    def end_with_parent() -> None:
        _libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    with _memory_file() as out, _memory_file() as err:
        child: subprocess.Popen[bytes] | None = None
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
                watch(_text(err))
        except BaseException:
            if child is not None:
                _stop(child)
            raise
        output, errors = _text(out), _text(err)
    for line in errors.splitlines():
        log.log(logging.WARNING if " warning" in line and code == 0 else logging.INFO, "%s", line)
    if code == 0:
        return output, errors
    ending = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    raise (UsageError if code == 2 else SyncopateError)(_complaint(errors, folder) or f"{program} {ending}")


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
    # In memory, because a full disk must not hide an error.
    return os.fdopen(os.memfd_create("pysyncopate"), "w+b") if hasattr(os, "memfd_create") else tempfile.TemporaryFile()


def _text(file: Any) -> str:
    # The program shares the position in the file, so the position must not be moved.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


def _stop(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(BaseException):  # did not stop in time, or interrupted again
        child.terminate()
        child.wait(20.0)  # seconds, for the last checkpoint
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # the group, because a wheel starts the program by a shell script
    child.wait()


def _complaint(text: str, folder: Folder) -> str:
    """Returns the program's error line; "" if it wrote nothing."""
    own = re.findall(r"^(?:\[[^\]]*\] )?(syncopate(?:-bench)?: .*)", text, re.MULTILINE)
    line = (own or text.strip().splitlines()[-1:] or [""])[0].replace(f"{folder.path}/", "")  # the folder is removed
    for pattern, words in _REWORDINGS.items():
        line = re.sub(pattern, words, line)
    return line


@functools.cache
def help_of(program: str, command: str) -> str:
    """Returns the text of `PROGRAM COMMAND --help`."""
    return subprocess.run([find(program), command, "--help"], capture_output=True, text=True).stdout


def flags_of(program: str, command: str) -> dict[str, str]:
    """Returns the flags of a command, such as "--epochs", and the help text of each."""
    found = re.split(r"\n  (--[a-z0-9-]+)", help_of(program, command))
    return dict(zip(found[1::2], found[2::2]))


def flags(command: str = "train") -> None:
    """Prints the flags of a command: train, launch or compare. A keyword has _ in place of -."""
    text = help_of("syncopate-bench" if command == "compare" else "syncopate", str(command))
    if not text:
        raise UsageError(f"{command}: no such command; expected train, launch or compare")
    print(text)


def as_text(value: Any) -> str:
    """Returns a value as it is written on a command line: lists and dicts with commas."""
    if isinstance(value, Mapping):
        texts = {name.replace("_", "-"): as_text(item) for name, item in value.items()}
        value = [name if text == "True" else f"{name}={text}" for name, text in texts.items() if text not in _LEFT_OUT]
    return ",".join(map(as_text, value)) if isinstance(value, (list, tuple)) else str(value)


def split_flags(values: Mapping[str, Any], program: str, command: str) -> tuple[list[str], list[str]]:
    """Returns keyword arguments as flags of a command, and the other ones, which are flags of train.
    None and False leave a flag out. A list is repeated if the help says that the flag may be.
    """
    own, train = flags_of(program, command), flags_of("syncopate", "train")
    words: tuple[list[str], list[str]] = [], []
    for name, value in values.items():
        flag = "--" + name.replace("_", "-")
        is_repeated = re.search(r"may\s+be\s+repeated", own.get(flag) or train.get(flag, ""))
        for item in value if is_repeated and isinstance(value, (list, tuple)) else [value]:
            text = as_text(item)
            if text not in _LEFT_OUT or isinstance(item, str):
                words[flag not in own].extend([flag] if text == "True" else [flag, text])
    return words


def main() -> NoReturn:
    """Becomes the program that the console script names, with the arguments of this process."""
    name = Path(sys.argv[0]).name
    try:
        path = find(name)
    except SyncopateError as error:
        sys.exit(f"{name}: {error}")
    os.execv(path, [path, *sys.argv[1:]])
