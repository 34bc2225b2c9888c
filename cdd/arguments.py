"""Arguments of a wrong type or size: errors that name the argument, what is allowed and what came.

Which values go together, and what a name may be, is said where they are used.
"""

import operator
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd.dtypes import DType, named

_MAX_DIM = 1 << 31


def shown(value: Any) -> str:
    """A value for people, on one short line."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:60]}... ({type(value).__name__})"


def shape_of_rows(row_shape: tuple[int, ...]) -> str:
    """(n, 50, 3) of (50, 3), (n,) of ()."""
    return f"(n, {', '.join(map(str, row_shape))})" if row_shape else "(n,)"


def index(name: str, value: Any) -> int:
    """Any integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an integer, not {shown(value)}") from None


def size(name: str, value: Any, least: int, most: int) -> int:
    """An integer from `least` to `most`."""
    number = index(name, value)
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}, {least} to {most} are allowed")
    return number


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is a bool, not {shown(value)}")
    return bool(value)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {shown(value)}")
    return value


def path(value: Any, allowed: str) -> str:
    """The path that `value` is; `allowed` says what else it could have been."""
    if not isinstance(value, str | bytes | os.PathLike):
        raise TypeError(f"a store is opened by {allowed}, not by {shown(value)}")
    return os.fsdecode(value)


def dtype_option(value: npt.DTypeLike) -> DType:
    try:
        return named(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"dtype is a NumPy dtype or the name of one, not {shown(value)}: {error}") from None


def row_shape_option(value: Any) -> tuple[int, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"row_shape is a tuple of integers, () for rows of one item, not {shown(value)}")
    return tuple(size(f"dimension {at} of row_shape", dim, 1, _MAX_DIM) for at, dim in enumerate(value, 1))
