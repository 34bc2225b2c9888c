"""How many cores large reads and appends may use."""

from cdd import _cdd
from cdd.arguments import size


def set_threads(number: int) -> None:
    """Lets reads and appends of several MB, read_windows() and scans use up to `number` threads.

    0 sets the default again: CDD_THREADS from the environment, else all cores. 1 keeps everything in the
    calling thread. Short reads and appends always are. A forked process works in its calling thread until it
    calls this itself. Raises ValueError for a number that is negative or over 1024.
    """
    _cdd.set_threads(size("number", number, 0, 1024))


def threads() -> int:
    """The number of threads that large reads and appends may use now."""
    return _cdd.threads()
