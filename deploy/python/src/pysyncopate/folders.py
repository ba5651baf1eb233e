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


class Folder:
    """A temporary folder, which is removed with this object or at the end of the process.

    The folder has a locked file, which programs that use the folder inherit. After SIGKILL nothing
    is removed, so the next Folder removes all folders without a locked file. At the end of a with
    block it is removed after an exception only, because a traceback keeps all objects.
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

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            self._finalizer()


def _remove(path: Path, lock: int, owner: int) -> None:
    if os.getpid() != owner:  # a forked process, which does not own the folder
        return
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def sweep() -> None:
    """Removes the folders that a killed process left."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/lock"):
        # An OSError: the folder is in use, is another user's, or was removed in the meantime.
        with contextlib.suppress(OSError), open(lock, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
