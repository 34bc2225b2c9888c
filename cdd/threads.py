"""How many cores large reads and appends may use."""

import os
import warnings

from cdd import _cdd
from cdd.arguments import size


def warn_of_environment() -> None:
    """Says so when CDD_THREADS is not what the core takes: no reason to fail an import, but to be told."""
    if not _cdd.understands_environment:
        text = os.environ.get("CDD_THREADS", "")
        warnings.warn(
            f"CDD_THREADS={text!r} is not a number from 0 to {_cdd.max_threads}: all cores may be used",
            RuntimeWarning,
            stacklevel=2,
        )


def set_threads(number: int) -> None:
    """Lets reads and appends of several MB, read_windows() and scans use up to `number` threads.

    0 sets the default again: CDD_THREADS from the environment, else all cores. 1 keeps everything in the
    calling thread. Short reads and appends always are. A forked process works in its calling thread until it
    calls this itself. Where the system gives fewer threads (RLIMIT_NPROC, a container's limit) those have to
    do. Raises ValueError for a number that is negative or over 1024.
    """
    _cdd.set_threads(size("number", number, 0, _cdd.max_threads))


def threads() -> int:
    """The number of threads that large reads and appends may use now."""
    return _cdd.threads()
