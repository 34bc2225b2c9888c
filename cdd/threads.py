"""How many cores large reads and appends may use."""

from cdd import _cdd


def set_threads(number: int) -> None:
    """Lets reads and appends of several MB, read_windows() and scans use up to `number` threads.

    0 sets the default again: CDD_THREADS from the environment, else all cores. 1 keeps everything in the
    calling thread. Short reads and appends always are. A forked process works in its calling thread until it
    calls this itself. Raises ValueError for a number that is negative or over 1024.
    """
    if number < 0:
        raise ValueError(f"{number} threads: at least 1, or 0 for the default")
    _cdd.set_threads(number)


def threads() -> int:
    """The number of threads that large reads and appends may use now."""
    return _cdd.threads()
