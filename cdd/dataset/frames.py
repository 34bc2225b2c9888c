"""Tables of other libraries in: pandas, and what gives the Arrow C stream; cdd/tables.py gives them out."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cdd import arguments, arrow
from cdd.dtypes import Array, DType
from cdd.store.exact import nearest_items


def columns_of(
    table: Any, *, index: str = "time", fill: Any = None, join: Mapping[str, Sequence[int]] | None = None
) -> dict[str, Array]:
    """The columns of a pandas DataFrame or Series, or of any table with __arrow_c_stream__ (pyarrow, polars,
    duckdb), for append().

    index  the name of an index of times that has none of its own. An index of times, and one with a name,
           becomes a column, one of several levels a column each; others are left out
    fill   what stands in place of nulls, which are a ValueError without it: a value, or {column: value}. NaN
           and NaT of NumPy's dtypes are values, not nulls: NaN stays, NaT where fill has nothing for it
    join   {"book": (50, 3)}: columns "book.0.0" to "book.49.2" become one of rows of that shape, as
           to_pandas() and Arrow had made them of it. No column "book.N..." is left over

    Texts are arrays of str, which become a category column. Times with a zone become times in UTC. Raises
    ValueError for names that are there twice, TypeError for columns of other things, both with the name.
    """
    if type(table).__module__.partition(".")[0] == "pandas":
        found = _of_pandas(table.to_frame() if table.ndim == 1 else table, index, fill)
    else:
        found = _of_arrow(table, fill)
    if isinstance(fill, Mapping) and (unknown := [name for name in fill if name not in found]):
        raise ValueError(f"fill has {unknown[0]!r}, which is none of the columns {arguments.shown([*found])}")
    for name, shape in (join or {}).items():
        found = _joined(found, name, tuple(shape))
    return found


def _of_arrow(table: Any, fill: Any) -> dict[str, Array]:
    parts: dict[str, list[Array]] = {}
    for _, columns in arrow.batches(table):
        names = [column.name for column in columns]
        _check_names(names)
        for column in columns:
            parts.setdefault(column.name, []).append(_array_of(column, fill))
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _of_pandas(frame: Any, index: str, fill: Any) -> dict[str, Array]:
    series = [(name, frame.index.get_level_values(at)) for at, name in enumerate(frame.index.names)]
    if len(series) == 1:
        is_time = getattr(frame.index.dtype, "kind", "") == "M"
        series = [
            (index if name is None else name, level) for name, level in series if name is not None or is_time
        ]
    elif any(name is None for name, _ in series):
        raise ValueError(f"the levels of the index are named {frame.index.names}: each needs a name")
    series += [(name, frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
    names = [".".join(map(str, name)) if isinstance(name, tuple) else str(name) for name, _ in series]
    _check_names(names)
    return {name: _of_series(name, one, fill) for name, (_, one) in zip(names, series, strict=True)}


def _check_names(names: list[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"two columns are named {twice[0]!r}")


def _of_series(name: str, series: Any, fill: Any) -> Array:
    """The items of a Series or an Index."""
    if getattr(series.dtype, "tz", None) is not None:  # in UTC
        series = series.dt.tz_convert(None) if hasattr(series, "dt") else series.tz_convert(None)
    fill = _fill_of(fill, name)
    kind = series.dtype.kind if isinstance(series.dtype, np.dtype) else "O"  # others have nulls beside NaN
    missing = np.asarray(series.isna())
    if missing.any() and kind not in "fc" and not (kind in "mM" and fill is None):
        if fill is None:
            row = int(missing.argmax())
            raise ValueError(f"column {name!r} has a null in row {row}: fill= says what stands in its place")
        series = _filled(name, series, fill)
    wanted = getattr(series.dtype, "numpy_dtype", None)  # of Int64 and its like
    array: Array = series.to_numpy() if wanted is None else series.to_numpy(dtype=wanted)
    if array.dtype == object and not all(isinstance(value, str) for value in array):
        other = next(value for value in array if not isinstance(value, str))
        raise TypeError(
            f"column {name!r} holds {arguments.shown(other)}, and a dataset numbers, times or texts"
        )
    return array


def _filled(name: str, series: Any, fill: Any) -> Any:
    """A Series whose nulls are `fill`. Raises TypeError and ValueError where its dtype does not hold that."""
    kind = getattr(series.dtype, "numpy_dtype", series.dtype)
    if isinstance(kind, np.dtype) and kind.kind in "biufcmM":
        item = _fill_item(name, fill, kind)
        return series.fillna(item)
    if not isinstance(fill, str):
        raise TypeError(f"fill is {arguments.shown(fill)}: column {name!r} holds texts")
    try:
        return series.fillna(fill)
    except TypeError as error:
        raise TypeError(
            f"fill is {arguments.shown(fill)}: column {name!r} does not take it, {error}"
        ) from None


def _fill_item(name: str, fill: Any, dtype: DType) -> Any:
    """fill= as an item of a column."""
    try:
        return nearest_items(fill, dtype)[()]
    except (TypeError, ValueError) as error:
        what = f"fill is {arguments.shown(fill)}: column {name!r} is {dtype}, {error}"
        raise type(error)(what) from None


def _joined(columns: dict[str, Array], name: str, shape: tuple[int, ...]) -> dict[str, Array]:
    """Columns of single items as one of wider rows, in the place of the first of them."""
    places = {".".join([name, *map(str, place)]): place for place in np.ndindex(*shape)}
    missing = [one for one in places if one not in columns]
    other = [one for one in columns if one not in places and re.fullmatch(re.escape(name) + r"(\.\d+)+", one)]
    if other and places and not missing:
        raise ValueError(f"join {name!r} of shape {shape} leaves out column {other[0]!r}")
    if not places or missing:
        what = f"a column {missing[0]!r}" if missing else "a shape with items"
        raise ValueError(f"join {name!r} of shape {shape} needs {what}")
    dtypes = {columns[one].dtype for one in places}
    if len(dtypes) > 1:
        raise ValueError(f"join {name!r}: its columns are of {', '.join(sorted(map(str, dtypes)))}")
    rows = np.empty((len(next(iter(columns.values()))), *shape), dtypes.pop())
    found: dict[str, Array] = {}
    for one, array in columns.items():
        if one in places:
            rows[(slice(None), *places[one])] = array
            found.setdefault(name, rows)
        else:
            found[one] = array
    return found


def _fill_of(fill: Any, name: str) -> Any:
    return fill.get(name) if isinstance(fill, Mapping) else fill


def _array_of(column: arrow.Column, fill: Any) -> Array:
    fill = _fill_of(fill, column.name)
    if column.valid is not None and not column.valid.all() and fill is None:
        row = int(np.flatnonzero(~column.valid)[0])
        raise ValueError(
            f"column {column.name!r} has a null in row {row}: fill= says what stands in its place"
        )
    values = column.values if column.offsets is None else _texts(column)
    if values is None:
        raise TypeError(f"column {column.name!r} is of a kind that a dataset does not hold")
    if column.codes is not None:
        codes = column.codes if column.valid is None else np.where(column.valid, column.codes, 0)
        values = values[codes]
    found: Array = values
    if column.valid is not None and not column.valid.all():
        found = found.copy()
        if found.dtype != object:
            found[~column.valid] = _fill_item(column.name, fill, found.dtype)
        elif isinstance(fill, str):
            found[~column.valid] = fill
        else:
            raise TypeError(f"fill is {arguments.shown(fill)}: column {column.name!r} holds texts")
    return found


def _texts(column: arrow.Column) -> Array:
    if not column.is_text or column.data is None or column.offsets is None:
        raise TypeError(f"column {column.name!r} holds bytes, which a dataset does not")
    raw, ends = column.data.tobytes(), column.offsets.tolist()
    texts = np.empty(len(ends) - 1, object)
    texts[:] = [raw[a:b].decode() for a, b in pairwise(ends)]
    return texts
