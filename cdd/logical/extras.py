"""The packages of the extra cdd[zarr], dask and xarray: imported when they are first needed."""

import importlib
from typing import Any


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
