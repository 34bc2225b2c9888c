"""The packages of the extra cdd[zarr], dask and xarray: imported when they are first needed.

icechunk hangs in a child of a process that used it: every read waits for ever. Here it raises instead.
"""

import importlib
import os
from typing import Any

from cdd.logical.errors import ForkError

_user: int | None = None  # the process that used icechunk first; its children inherit this


def _imported(name: str, what: str, how: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise ImportError(f"{what} need {how}", name=error.name) from None


def zarr() -> Any:
    found = _imported("zarr", "zarr members", 'pip install "cdd[zarr]"')
    importlib.import_module("zarr.buffer.cpu")
    return found


def icechunk() -> Any:
    return _imported("icechunk", "icechunk repositories", 'pip install "cdd[zarr]"')


def dask_array() -> Any:
    return _imported("dask.array", "dask arrays", 'pip install "dask[array]"')


def xarray() -> Any:
    return _imported("xarray", "xarray's arrays", "pip install xarray")


def enter_icechunk() -> None:
    """Called before icechunk is used. ForkError in a child of a process that used it."""
    global _user
    if _user is None:
        _user = os.getpid()
    check_fork()


def check_fork() -> None:
    """enter_icechunk(), where icechunk was used already."""
    if _user is not None and _user != os.getpid():
        raise ForkError(
            "icechunk does not work in a process that was forked from one that used it: start workers by "
            "spawn, or read a plain zarr store"
        )
