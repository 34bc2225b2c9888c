"""Columns as they are given: structured arrays become a column for each field, and come back as one."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.dtypes import Array, DType, code_of


def flatten(columns: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
    """{name: array of rows}, "name/field" for fields. Raises TypeError and ValueError."""
    found: dict[str, Array] = {}
    for name, given in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a column is a str, not {arguments.shown(name)}")
        if isinstance(given, np.ma.MaskedArray):
            raise TypeError(f"column {name!r}: a masked array cannot be stored, its mask would be lost")
        array = np.asarray(given)
        if array.ndim == 0:
            raise ValueError(f"column {name!r} is a scalar: append rows, such as {name}=[value]")
        found.update(_fields(name, array))
    return found


def _fields(name: str, array: Array) -> dict[str, Array]:
    if array.dtype.names is None:
        return {name: array}
    found: dict[str, Array] = {}
    for field in array.dtype.names:
        found.update(_fields(f"{name}/{field}", array[field]))
    return found


def is_text(array: Array) -> bool:
    """Whether an array holds texts, which a category column takes."""
    if array.dtype.kind in "UT":
        return True
    if array.dtype.kind != "O":
        return False
    return all(isinstance(value, str) for value in array.ravel())


def check_dtype(name: str, array: Array) -> DType:
    """The dtype that a column of these rows has."""
    try:
        code_of(array.dtype)
    except TypeError as error:
        raise TypeError(f"column {name!r}: {error}") from None
    return array.dtype.newbyteorder("=")


def row_count(columns: Mapping[str, Array]) -> int:
    """The rows that all columns have. Raises ValueError with two that differ."""
    names = list(columns)
    rows = len(columns[names[0]])
    for name in names[1:]:
        if len(columns[name]) != rows:
            raise ValueError(
                f"columns are appended together: {names[0]!r} has {rows} rows, {name!r} {len(columns[name])}"
            )
    return rows


def structure(
    names: list[str], lead: str, dtypes: dict[str, DType], shapes: dict[str, tuple[int, ...]]
) -> DType:
    """The structured dtype of the columns below `lead`."""
    fields: dict[str, list[str]] = {}
    for name in names:
        fields.setdefault(name[len(lead) :].split("/", 1)[0], []).append(name)
    made = []
    for field, below in fields.items():
        if below == [f"{lead}{field}"]:
            made.append((field, dtypes[below[0]], shapes[below[0]]))
        else:
            made.append((field, structure(below, f"{lead}{field}/", dtypes, shapes), ()))
    return np.dtype(made)


def assign(out: Array, name: str, lead: str, rows: Any) -> None:
    """Puts the rows of one column into its field of a structured array."""
    view = out
    for field in name[len(lead) :].split("/"):
        view = view[field]
    view[...] = rows
