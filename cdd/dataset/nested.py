"""Nested columns as one: "fees/maker" and "fees/taker" as ds["fees"], rows of a structured dtype."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cdd import arguments
from cdd.dataset.column import Column
from cdd.dtypes import Array, DType


class Group:
    """Columns whose names begin alike. ds[name] gives it; rows are read as a structured array."""

    def __init__(self, table: Mapping[str, Column], lead: str, names: list[str]) -> None:
        self._table = table
        self._lead = lead
        self._names = names

    @property
    def dtype(self) -> DType:
        """The structured dtype of a row."""
        columns = {name: self._table[name] for name in self._names}
        dtypes = {name: column.dtype for name, column in columns.items()}
        shapes = {name: column.shape[1:] for name, column in columns.items()}
        return structure(self._names, self._lead, dtypes, shapes)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns it consists of."""
        return tuple(self._names)

    def __len__(self) -> int:
        return len(self._table[self._names[0]])

    def __getitem__(self, key: Any) -> Any:
        """Rows by number, slice, or array of numbers or bools."""
        parts = {name: self._table[name][key] for name in self._names}
        first = parts[self._names[0]]
        extra = len(self._table[self._names[0]].shape) - 1
        lead = np.shape(first)[: np.ndim(first) - extra]
        out = np.empty(lead, self.dtype)
        for name, rows in parts.items():
            assign(out, name, self._lead, rows)
        return out if lead else out[()]

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """Rows [start, stop), as Reader.read counts them."""
        parts = {name: self._table[name].read(start, stop) for name in self._names}
        out = np.empty(len(parts[self._names[0]]), self.dtype)
        for name, rows in parts.items():
            assign(out, name, self._lead, rows)
        return out

    def __repr__(self) -> str:
        name = self._lead.rstrip("/")
        return f"<cdd.dataset.Group {name!r}, {len(self)} rows of {arguments.shown(self.dtype)}>"


def group_of(columns: Mapping[str, Column], name: str) -> Group | None:
    """The columns below a name; None where there are none."""
    names = [column for column in columns if column.startswith(f"{name}/")]
    return Group(columns, f"{name}/", names) if names else None


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
