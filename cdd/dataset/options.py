"""Options of writing a dataset, looked at once."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cdd import arguments
from cdd.dataset.protocol.state import ORDERS

_COLUMN = (
    "codec",
    "profile",
    "zstd_level",
    "chunk_bytes",
    "chunk_rows",
    "float16",
    "normalise",
    "size_scale",
    "dtype",
    "codes",
)
CODES = ("uint8", "uint16", "uint32")


@dataclass
class Options:
    """As cdd.dataset.open documents them."""

    clock: Any = "time"
    order: str = "nondecreasing"
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    superchunk_bytes: int = 64 << 20
    tail_bytes: int = 1 << 20
    roll_seconds: int | None = None
    commit_seconds: float | None = None
    commit_rows: int | None = None
    durability: str = "batch"
    attrs: dict[str, Any] = field(default_factory=dict)

    def clock_of(self, table: str) -> str | None:
        found = self.clock.get(table, "time") if isinstance(self.clock, Mapping) else self.clock
        return found if found is None or isinstance(found, str) else arguments.text("clock", found)


def duration(name: str, value: Any) -> int | None:
    """Seconds of "1D", "30m", a timedelta64 or a timedelta."""
    if value is None:
        return None
    is_number = isinstance(value, int | np.integer) and not isinstance(
        value, np.timedelta64
    )  # without a unit
    seconds, rest = (0, 0) if is_number else divmod(arguments.span_ns(value), 10**9)
    if seconds < 1 or (isinstance(value, str) and rest):
        raise ValueError(f'{name} is a time like "1D", "6h" or "30m", not {arguments.shown(value)}')
    return seconds


def attributes(attrs: Any) -> dict[str, Any]:
    """A copy of attributes as JSON has them. Raises TypeError for what it cannot hold."""
    if not isinstance(attrs, Mapping):
        raise TypeError(f"attrs is a mapping, not {arguments.shown(attrs)}")
    return {attribute_name(key): attribute(str(key), value) for key, value in attrs.items()}


def attribute_name(key: Any) -> str:
    if not isinstance(key, str) or not key:
        raise TypeError(f"the name of an attribute is a str, not {arguments.shown(key)}")
    return key


def attribute(key: str, value: Any) -> Any:
    """A value as JSON has it: NumPy's numbers and arrays become Python's."""

    def plain(other: Any) -> Any:
        if isinstance(other, np.generic | np.ndarray) and other.dtype.kind in "biufSU":
            return other.tolist()
        raise TypeError(f"attribute {key!r} holds {arguments.shown(other)}, which JSON cannot hold")

    try:
        return json.loads(json.dumps(value, default=plain, allow_nan=False))
    except ValueError as error:
        raise TypeError(f"attribute {key!r} is {arguments.shown(value)}: {error}") from None


def check_column(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the options of one column. Raises TypeError and ValueError."""
    unknown = [key for key in options if key not in _COLUMN]
    if unknown:
        raise TypeError(f"columns[{name!r}] has {unknown[0]!r}, which is none of {', '.join(_COLUMN)}")
    if options.get("codes", "uint32") not in CODES:
        raise ValueError(f"codes of {name!r} are one of {', '.join(CODES)}, not {options['codes']!r}")
    return dict(options)


def options_of(
    clock: Any,
    columns: Any,
    superchunk_bytes: Any,
    tail_bytes: Any,
    roll: Any,
    commit_every: Any,
    order: Any,
    durability: Any,
    attrs: Any,
) -> Options:
    if order not in ORDERS:
        raise ValueError(f"order is one of {', '.join(ORDERS)}, not {arguments.shown(order)}")
    checked = {name: check_column(name, given) for name, given in (columns or {}).items()}
    most = 1 << 40
    is_rows = isinstance(commit_every, int) and not isinstance(commit_every, bool)
    return Options(
        clock=clock,
        order=order,
        columns=checked,
        superchunk_bytes=arguments.size("superchunk_bytes", superchunk_bytes, 1, most),
        tail_bytes=arguments.size("tail_bytes", tail_bytes, 1, most),
        roll_seconds=duration("roll", roll),
        commit_seconds=None if is_rows else duration("commit_every", commit_every),
        commit_rows=arguments.size("commit_every", commit_every, 1, most) if is_rows else None,
        durability=arguments.text("durability", durability),
        attrs=attributes(attrs or {}),
    )
