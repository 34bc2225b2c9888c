"""What xarray reads a logical array by. It imports xarray: to_xarray() is what imports it."""

from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from cdd.logical.array import Array


class LogicalBackendArray(BackendArray):  # type: ignore[misc]
    """Outer indexing; xarray makes the rest of it."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = np.dtype(array.dtype)

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        return self.array.oindex[key]


def lazily(array: Array) -> Any:
    return indexing.LazilyIndexedArray(LogicalBackendArray(array))
