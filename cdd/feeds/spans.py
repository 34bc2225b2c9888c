"""Spans of time as arguments."""

import re
from typing import Any

import numpy as np

from cdd import arguments

_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_UNITS |= {"m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}


def nanoseconds(name: str, value: Any) -> int:
    """Of "100ms", "1s", a number of seconds, a timedelta or a timedelta64. Raises ValueError for others."""
    found = 0
    if isinstance(value, str):
        parts = re.fullmatch(r"([0-9]+)\s*([a-z]+)", value)
        found = int(parts[1]) * _UNITS.get(parts[2], 0) if parts else 0
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = int(value * 10**9) if 0 < value < 10**9 else 0
    else:
        try:
            found = int(np.timedelta64(value).astype("m8[ns]").astype(np.int64))
        except (TypeError, ValueError):
            found = 0
    if found < 1:
        raise ValueError(f'{name} is a time like "100ms" or "1s", not {arguments.shown(value)}')
    return found
