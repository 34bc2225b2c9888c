"""CSV columns made ready to be stored: names, nulls, order, precision, before anything is written."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import _cdd
from cdd.arguments import shown, size
from cdd.packed.columns import Column
from cdd.packed.options import Options, listed

Array = npt.NDArray[Any]

FEW = 65_536  # different texts that make a category
_MOST_NAME = 90  # a dataset takes 100
_TAKEN = re.compile(r"data|meta|con|prn|aux|nul|com[0-9]|lpt[0-9]", re.IGNORECASE)


def stored_names(names: Sequence[str], taken: Sequence[str] = ()) -> dict[str, str]:
    """Each column's name in a dataset, none of them `taken`: no two are the same to a file system
    that ignores case. Raises ValueError for two of one name."""
    made: dict[str, str] = {}
    known = {name.lower() for name in taken}
    for number, name in enumerate(names):
        if name in made:
            raise ValueError(f"columns {list(made).index(name)} and {number} are both called {name!r}")
        plain = re.sub(r"[^0-9A-Za-z_]+", "_", name)[:_MOST_NAME].strip("_") or f"column_{number}"
        plain = f"c_{plain}" if plain[0].isdigit() else plain
        plain = f"{plain}_" if _TAKEN.fullmatch(plain) else plain
        while plain.lower() in known:
            plain = f"{plain}_{number}"
        known.add(plain.lower())
        made[name] = plain
    return made


def as_floats(values: Array, dtype: np.dtype[Any]) -> Array:
    """Decimals, as float64, as the items of a float dtype that are nearest to their texts."""
    with np.errstate(all="ignore"):
        made = np.asarray(values, dtype)
    if dtype == np.float32 and values.dtype == np.float64:
        # Halfway between two items only the text can tell, as of 7.038531e-26.
        between = np.flatnonzero((values.view(np.uint64) & np.uint64(0x1FFFFFFF)) == 0x10000000)
        if len(between):
            made[between] = _nearest_by_text(values[between], dtype)[0]
    return made


def held(values: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Decimals, as float64, as items of a float dtype; and the places of those that it does not hold: their
    shortest text as an item is another number."""
    with np.errstate(all="ignore"):
        made = values.astype(dtype)
        suspects = np.flatnonzero((made.astype(np.float64) != values) & (values == values))
        if not len(suspects):
            return made, suspects
        given = values[suspects]
        size = np.abs(given)
        scaled = given * 10.0 ** (5 - np.floor(np.log10(size)))
        short = (np.abs(scaled - np.rint(scaled)) < 1e-6) & (size > 1e-30) & (size < 1e38)
    if dtype == np.float32:
        suspects = suspects[~short]  # six digits always come back
    some, places = np.unique(values[suspects], return_inverse=True)
    items, are_held = _nearest_by_text(some, dtype)
    made[suspects] = items[places]
    lost: Array = suspects[~are_held[places]]
    return made, lost


def _nearest_by_text(values: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Items of a dtype, and whether their shortest text is that number. Of two items equally near to the
    float64 of a text, as 7.038531e-26 has them, it is the one of that text."""
    with np.errstate(all="ignore"):
        items = values.astype(dtype)
        are_held = _is_text_of(items, values)
        for towards in (-np.inf, np.inf):
            others = np.nextafter(items.astype(np.float32), np.float32(towards)).astype(dtype)
            better = ~are_held & _is_text_of(others, values)
            items, are_held = np.where(better, others, items), are_held | better
    return items, are_held


def _is_text_of(items: Array, values: Array) -> Array:
    """Whether the shortest text of an item, or of it as a float32, is this number."""
    singles = np.ascontiguousarray(items, np.float32)
    text = _cdd.array_text("float32", singles, len(singles), (), -1, 1, (ord(","), ord('"')))
    found: Array = _numbers_of(text) == values
    if items.dtype == np.float16:
        found |= items.astype(str).astype(np.float64) == values
    return found


def _numbers_of(text: bytes) -> Array:
    """A float64 for each line."""
    if not text:
        return np.empty(0)
    where = (False, False, 0, 0, 0, 0, 0)
    _, columns, _, _, _ = _cdd.csv_columns(text, Options().core(), ("float64",), None, True, where)
    return Column(columns[0]).values


def lost_in(values: Array, dtype: np.dtype[Any]) -> Array:
    """The places of numbers that a dtype does not hold."""
    none = np.empty(0, np.intp)
    if values.dtype == dtype or values.dtype.kind not in "fiu":
        return none
    if dtype.kind in "iub":
        least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if values.dtype.kind == "f":  # most + 1 is a float64, most may be none
            return np.flatnonzero(
                ~((values >= least) & (values < float(most + 1)) & (values == np.floor(values)))
            )
        return np.flatnonzero((values < least) | (values > most))
    if dtype.kind != "f" and dtype.name != "bfloat16":
        return none
    doubles = values.astype(np.float64)
    lost = held(doubles, dtype)[1] if dtype.itemsize < 8 else none
    if values.dtype.kind == "f":
        return lost
    large = np.flatnonzero(
        np.abs(doubles) >= 2**53
    )  # of these float64 holds those that end with enough zeros
    odd = [int(values[i]) != int(doubles[i]) for i in large.tolist()]
    return np.union1d(lost, large[odd])


def filled(column: Column, name: str, null: Any, row: int, wanted: np.dtype[Any] | None = None) -> Array:
    """A column's items, nulls replaced. Raises ValueError where there is nothing to replace them by, or what
    neither the column's type holds nor `wanted`, a float dtype that its items are made into."""
    if not column.nulls or column.valid is None:
        return column.values
    value = null.get(name) if isinstance(null, Mapping) else null
    if value is None:
        first = row + int(np.argmin(column.valid))
        raise ValueError(
            f"column {name!r} has no value in row {first}: null={{{name!r}: value}} says what stands for it"
        )
    given, values = _null_of(column, name, value), column.values
    if values.dtype.kind in "iub" and len(lost_in(given.reshape(1), values.dtype)):
        double = np.dtype(np.float64)
        if wanted is None or wanted.kind != "f" or len(lost_in(values, double)):
            raise ValueError(
                f"column {name!r} is {column.type}, which does not hold null={value!r}: "
                f'types={{{name!r}: "float64"}} makes floats of it'
            )
        values = values.astype(double)
    return np.where(column.valid, values, given.astype(values.dtype))


def _null_of(column: Column, name: str, value: Any) -> Array:
    """What stands for a null, as an array of no dimension. Raises ValueError for what is none of the type."""
    is_time = column.values.dtype.kind == "M"
    given = np.asarray(value)
    try:
        if is_time:
            given = given.astype(column.values.dtype)
        elif given.dtype.kind in "OSUT":
            given = np.asarray(float(given.item()) if column.type == "float64" else int(given.item()))
    except (TypeError, ValueError):
        given = np.empty(2)
    if given.ndim or (not is_time and given.dtype.kind not in "biuf"):
        raise ValueError(f"column {name!r} is {column.type}, which null={shown(value)} is not")
    return given


def check_null(null: Any, names: Sequence[str]) -> None:
    """KeyError for values of columns that are not there."""
    for name in null if isinstance(null, Mapping) else ():
        if name not in names:
            raise KeyError(f"null has {name!r}, the columns are {listed(names)}")


def check_text(column: Column, name: str, row: int) -> None:
    """ValueError for text that is no UTF-8, which the core has let pass."""
    assert column.text is not None
    try:
        bytes(column.text.data).decode()
    except UnicodeDecodeError:
        for number in range(len(column.text)):
            try:
                column.text.bytes(number).decode()
            except UnicodeDecodeError:
                raise ValueError(
                    f"column {name!r} has {shown(column.text.bytes(number))} in row {row + number}, which is "
                    "no UTF-8: a dataset holds no other text (columns= leaves the column out)"
                ) from None


def shape_of(shape: Any) -> tuple[int, ...]:
    """Raises TypeError and ValueError that name the keyword."""
    if isinstance(shape, str) or not hasattr(shape, "__iter__"):
        raise TypeError(f"shape is a tuple of integers, as (50, 3), not {shown(shape)}")
    return tuple(size(f"dimension {at} of shape", dim, 1, 1 << 31) for at, dim in enumerate(shape, 1))


def gathered(columns: list[Column], by: Array) -> Column:
    """Rows `by` of columns one after the other."""
    if columns[0].text is not None:
        texts = [text for column in columns for text in (column.text or ())]
        encoded = [texts[i].encode() for i in by.tolist()]
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return Column(("text", offsets, b"".join(encoded), None, 0, 0))
    values = np.concatenate([column.values for column in columns])[by]
    valid = np.concatenate(
        [np.ones(len(c.values), np.bool_) if c.valid is None else c.valid for c in columns]
    )[by]
    nulls = int(len(valid) - np.count_nonzero(valid))
    plain = values.view(np.int64) if values.dtype.kind == "M" else values
    return Column((columns[0].type, plain, None, valid if nulls else None, nulls, 0))


@dataclass
class Findings:
    """What a look at all rows found."""

    rows: int = 0
    unordered: int | None = None  # the first row whose time is before the one before it
    lossy: dict[str, tuple[int, int, float]] = field(default_factory=dict)  # name: (rows, first row, value)
    texts: dict[str, set[bytes] | None] = field(default_factory=dict)  # None: more than FEW
    is_strict: bool = False  # times that are the same are out of order, too
    checks_texts: bool = False
    _last: Any = None

    def look(
        self,
        names: Sequence[str],
        columns: Sequence[Column],
        row: int,
        *,
        null: Any,
        clock: str | None,
        book: frozenset[str],
        dtype: np.dtype[Any],
    ) -> None:
        for name, column in zip(names, columns, strict=True):
            if column.text is not None:
                if self.checks_texts:
                    check_text(column, name, row)
                self._count_texts(name, column)
                continue
            values = filled(column, name, null, row, dtype if name in book else None)
            if name == clock:
                self._look_at_order(values, row)
            if name in book:
                self.look_at_items(name, values, row, dtype)
        self.rows = row + (len(columns[0].values) - (columns[0].text is not None) if columns else 0)

    def look_at_items(self, name: str, values: Array, row: int, dtype: np.dtype[Any]) -> None:
        lost = lost_in(values, dtype)
        if len(lost):
            count, first, value = self.lossy.get(name, (0, row + int(lost[0]), values[lost[0]].item()))
            self.lossy[name] = (count + len(lost), first, value)

    def _look_at_order(self, values: Array, row: int) -> None:
        if self.unordered is None and len(values):
            first = 1 if self._last is None else 0
            before = values[:-1] if first else np.append(np.asarray([self._last], values.dtype), values[:-1])
            back = np.flatnonzero(values[first:] <= before if self.is_strict else values[first:] < before)
            self.unordered = row + first + int(back[0]) if len(back) else None
            self._last = values[-1]

    def _count_texts(self, name: str, column: Column) -> None:
        known = self.texts.setdefault(name, set())
        if known is None or column.text is None:
            return
        data, ends = bytes(column.text.data), column.values.tolist()
        known.update({data[a:b] for a, b in itertools.pairwise(ends)})
        if len(known) > FEW:
            self.texts[name] = None


@dataclass(frozen=True)
class StoreReport:
    """What cdd.csv.store did."""

    rows: int  # in the target now
    appended: int
    columns: dict[str, str]  # name in the file: name in the target
    beside: str | None = None  # packed rows of texts of too many values, where there are any
    lossy: dict[str, tuple[int, int, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        text = f"{self.appended:,} rows appended, {self.rows:,} in all, {len(self.columns)} columns"
        if self.beside:
            text += f"; texts of many values are in {self.beside}"
        for name, (count, row, value) in self.lossy.items():
            text += f"\n{name}: {count:,} values rounded, the first in row {row}: {value!r}"
        return text


def check_book(names: Sequence[str], shape: Sequence[int]) -> None:
    if len(names) != math.prod(shape):
        raise ValueError(
            f"shape {tuple(shape)} takes {math.prod(shape)} columns, there are {len(names)}: "
            "columns= picks them"
        )
