"""Nested columns as one: "fees/maker" and "fees/taker" as ds["fees"], rows of a structured dtype."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cdd import arguments
from cdd.dataset.flatten import assign, structure
from cdd.dtypes import Array, DType

if TYPE_CHECKING:
    from cdd.dataset.table import Table


class Group:
    """Columns whose names begin alike. ds[name] gives it; rows are read as a structured array."""

    def __init__(self, table: "Table", lead: str, names: list[str]) -> None:
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
        return (len(self._table),)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns it consists of."""
        return tuple(self._names)

    def __len__(self) -> int:
        return len(self._table)

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


def group_of(table: "Table", name: str) -> Group | None:
    """The columns below a name; None where there are none."""
    names = [column for column in table.columns if column.startswith(f"{name}/")]
    return Group(table, f"{name}/", names) if names else None
