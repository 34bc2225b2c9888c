"""Logical arrays for dask and xarray, which read them when they need them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cdd.logical.array import Array
from cdd.logical.extras import dask_array, xarray


def to_dask(array: Array, chunks: Any = None) -> Any:
    """A dask.array of the same, in chunks of `array.chunks` or of what dask takes as chunks."""
    meta = np.empty((0,) * array.ndim, array.dtype)
    return dask_array().from_array(
        array, chunks=array.chunks if chunks is None else chunks, name=False, lock=False, meta=meta
    )


def to_xarray(
    array: Array,
    dims: Sequence[str] | None = None,
    coords: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Any:
    """An xarray.DataArray that reads nothing before its values are asked for, without dask.

    dims are by default the names of the manifest, "dim_0" and so on where it has none; attrs are the array's.
    """
    library = xarray()
    if dims is None:
        dims = [given or f"dim_{at}" for at, given in enumerate(array.dims or (None,) * array.ndim)]
    if len(dims) != array.ndim:
        raise ValueError(f"dims are {array.ndim} names, not {list(dims)}")
    from cdd.logical.xarray_backend import lazily

    variable = library.Variable(tuple(dims), lazily(array), array.attrs)
    return library.DataArray(variable, coords=coords, name=name)
