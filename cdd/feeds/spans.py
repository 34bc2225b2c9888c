"""Spans of time as arguments."""

from typing import Any

from cdd import arguments


def nanoseconds(name: str, value: Any) -> int:
    """Of "100ms", "1s", a number of seconds, a timedelta or a timedelta64. Raises ValueError for others."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        found = int(value * 10**9) if 0 < value < 10**9 else 0
    else:
        found = arguments.span_ns(value)
    if found < 1:
        raise ValueError(f'{name} is a time like "100ms" or "1s", not {arguments.shown(value)}')
    return found
