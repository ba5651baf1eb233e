"""Temporary folders that do not outlive the processes that use them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path

_PREFIX = "pysyncopate-"


class Folder(contextlib.AbstractContextManager["Folder"]):
    """A temporary folder, which is removed with this object or at the end of the process.
    Programs that use the folder inherit its locked file. After SIGKILL nothing is removed, so the next Folder removes
    all folders whose file is not locked. A with block removes its folder after an exception only, because a traceback
    keeps all objects.
    """

    def __init__(self) -> None:
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # The name `lock` appears when the file is locked, so sweep() never sees it unlocked.
        new = self.path / "lock.new"
        try:
            self.lock = os.open(new, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            new.rename(self.path / "lock")
        except BaseException:  # such as a full disk
            shutil.rmtree(self.path, ignore_errors=True)
            raise
        self._finalizer = weakref.finalize(self, _remove, self.path, self.lock, os.getpid())

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            self._finalizer()


def _remove(path: Path, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # not a forked process, which does not own the folder
        _clear(path)
        os.close(lock)


def _clear(folder: Path) -> None:
    """Removes a folder. The lock goes last: sweep() finds what an interrupt or a program that still writes leaves."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if entry.name != "lock":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.rmtree(folder)


def sweep() -> None:
    """Removes the folders that a killed process left."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/lock"):
        # An OSError: the folder is in use, is another user's, or was removed in the meantime.
        with contextlib.suppress(OSError), open(lock, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _clear(lock.parent)
