"""icechunk hangs in a child of a process that used it: every read waits for ever. Here it raises instead."""

import os

from cdd.logical.errors import ForkError

_user: int | None = None  # the process that used icechunk first; its children inherit this


def enter() -> None:
    """Called before icechunk is used. ForkError in a child of a process that used it."""
    global _user
    if _user is None:
        _user = os.getpid()
    check()


def check() -> None:
    """enter(), where icechunk was used already."""
    if _user is not None and _user != os.getpid():
        raise ForkError(
            "icechunk does not work in a process that was forked from one that used it: start workers by "
            "spawn, or read a plain zarr store"
        )
