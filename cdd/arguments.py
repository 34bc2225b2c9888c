"""Arguments of a wrong type or size: errors that name the argument, what is allowed and what came.

Which values go together, and what a name may be, is said where they are used.
"""

import operator
import os
import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd.dtypes import DType, named

_MAX_DIM = 1 << 31
_SPAN_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9}
_SPAN_NS |= {"h": 3600 * 10**9, "D": 86400 * 10**9, "d": 86400 * 10**9}
_ZONED = re.compile(r"(?P<local>[^T ]+[T ].+?)(Z|(?P<sign>[+-])(?P<hours>\d\d)(:?(?P<minutes>\d\d))?)")


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


def span_ns(value: Any) -> int:
    """Nanoseconds of a text like "100ms", "1s" or "1D", or of a timedelta or timedelta64; 0 for what is none
    of these, or not more than nothing."""
    if isinstance(value, str):
        found = re.fullmatch(r"([0-9]+)\s*([a-zA-Z]+)", value)
        return int(found[1]) * _SPAN_NS.get(found[2], 0) if found else 0
    try:
        return max(0, int(np.timedelta64(value).astype("m8[ns]").astype(np.int64)))
    except (TypeError, ValueError):
        return 0


def without_zone(time: Any) -> Any:
    """A time with a zone, a datetime or ISO 8601 text, as one of UTC without a zone: NumPy warns of zones.

    Whatever else it is stays as it is.
    """
    if isinstance(time, datetime) and time.tzinfo is not None:
        return time.astimezone(UTC).replace(tzinfo=None)
    found = _ZONED.fullmatch(time) if isinstance(time, str) else None
    if found is None:
        return time
    hours, minutes = int(found["hours"] or 0), int(found["minutes"] or 0)
    east = np.timedelta64(60 * hours + minutes, "m")
    local = np.datetime64(found["local"])
    return local + east if found["sign"] == "-" else local - east


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is a bool, not {shown(value)}")
    return bool(value)


def is_positive(value: Any) -> bool:
    """Whether it is a number above 0, and no bool: seconds, say."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return float(value) > 0


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {shown(value)}")
    return value


def path(value: Any, allowed: str) -> str:
    """The path that `value` is; `allowed` says what else it could have been. file: URLs are paths, other URLs
    a ValueError."""
    if not isinstance(value, str | bytes | os.PathLike):
        name = "its name is a path, " if hasattr(value, "name") else ""
        way = f": {name}what its read() gives is content" if hasattr(value, "read") else ""
        raise TypeError(f"a store is opened by {allowed}, not by {shown(value)}{way}")
    text = os.fsdecode(value)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", text) or re.match("(file):(?=/)", text, re.IGNORECASE)
    if scheme is None:
        return text
    if scheme[1].lower() != "file":
        raise ValueError(f"{shown(text)} is a URL: only paths and file: URLs are opened here")
    host, _, rest = text[scheme.end() :].partition("/")  # file:/PATH has none, file:///PATH an empty one
    if host not in ("", "localhost"):
        raise ValueError(f"{shown(text)} names the host {host!r}: file:///PATH is of this one")
    from urllib.request import url2pathname  # takes as long to import as all of cdd

    return url2pathname("/" + rest)


def content(value: Any) -> memoryview | None:
    """The bytes that `value` lends: bytes, a memoryview, an mmap and what else has a buffer of single bytes.
    None where it has none."""
    if isinstance(value, str | os.PathLike):
        return None
    try:
        view = memoryview(value)
    except (TypeError, ValueError):  # ValueError: an array of a dtype that no buffer can tell
        return None
    if view.ndim != 1 or view.itemsize != 1:
        return None
    if not view.c_contiguous:
        apart = f"these are {(view.strides or (0,))[0]} apart"
        raise ValueError(f"the bytes of a store stand one after the other, {apart}")
    return view


def dtype_option(value: npt.DTypeLike) -> DType:
    try:
        return named(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"dtype is a NumPy dtype or the name of one, not {shown(value)}: {error}") from None


def row_shape_option(value: Any) -> tuple[int, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"row_shape is a tuple of integers, () for rows of one item, not {shown(value)}")
    return tuple(size(f"dimension {at} of row_shape", dim, 1, _MAX_DIM) for at, dim in enumerate(value, 1))
