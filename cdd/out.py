"""Memory of the caller that rows are read into: what is accepted as out=, and why something is not."""

import math
from typing import Any

import numpy as np

from cdd.dtypes import Array, DType, buffer_dtype


def out_buffer(out: Any, dtype: DType) -> Array:
    """`out` as an array with a buffer: of `dtype`, or integers of its size where that is a time or bfloat16,
    or raw bytes; it shares the memory of `out`."""
    if isinstance(out, np.ndarray):
        array = out
    else:
        to_numpy = getattr(out, "numpy", None)  # torch and others lend their memory this way
        array = to_numpy() if callable(to_numpy) else np.asarray(_memory(out))
        if not isinstance(array, np.ndarray):
            raise TypeError(f"out must be a writable buffer, not {type(out).__name__}")
        if callable(to_numpy) and array.flags.owndata and not np.may_share_memory(array, to_numpy()):
            raise TypeError(f"out must share its memory: {type(out).__name__}.numpy() makes a copy")
        if array.ndim <= 1 and array.dtype.kind in "uiS" and array.dtype.itemsize == 1:
            return array
    item = buffer_dtype(dtype)
    if array.dtype == dtype or (item is not dtype and array.dtype in (item, item.name.lstrip("u"))):
        return array.view(item)
    raise ValueError(f"out has dtype {array.dtype}, the store {dtype}")


def out_items(out: Any, dtype: DType, shape: tuple[int, ...]) -> Array:
    """`out` as an array of this shape with a buffer: one of it, or flat, or raw bytes of its size."""
    array = out_buffer(out, dtype)
    if not array.flags.c_contiguous:
        raise ValueError("out is not C-contiguous")
    item = buffer_dtype(dtype)
    if array.ndim > 1 and array.shape != shape:
        raise ValueError(f"out has shape {array.shape}, needs {shape}")
    needed = math.prod(shape) * item.itemsize
    if array.nbytes != needed:
        how = "long" if array.nbytes > needed else "short"
        raise ValueError(f"out of {array.nbytes} bytes is too {how}: {shape} needs {needed}")
    return array.reshape(-1).view(item).reshape(shape)


def _memory(out: Any) -> memoryview:
    try:
        return memoryview(out)
    except TypeError:
        raise TypeError(f"out must be a writable buffer, not {type(out).__name__}") from None
