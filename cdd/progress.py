"""How long work tells how far it is."""

from collections.abc import Callable

Progress = Callable[[int, int], object]
"""progress(done, total), called now and then by the thread that called; what it raises ends the work."""
