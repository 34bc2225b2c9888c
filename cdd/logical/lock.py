"""The lock of the one who commits, on a file beside what is changed. It ends with its process.

It keeps out those that take it too: other programs that commit to the same repository are not held back.
"""

import os
import sys
import time
from typing import Self

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class Lock:
    """`with Lock(path):` waits until nobody else, thread or process, is within."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: int | None = None

    def __enter__(self) -> Self:
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _wait(file)
        except BaseException:
            os.close(file)
            raise
        self._file = file
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


if sys.platform == "win32":

    def _wait(file: int) -> None:
        while True:
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(0.02)
            else:
                return

else:

    def _wait(file: int) -> None:
        # A file system that cannot lock says so. A lock belongs to the descriptor: it keeps out threads, too.
        fcntl.flock(file, fcntl.LOCK_EX)
