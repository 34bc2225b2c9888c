"""A column and attributes within a transaction: read, and changed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cdd._cdd import FormatError
from cdd.dataset import ops_of_names
from cdd.dataset.modifying import modification, row_selection
from cdd.dataset.options import attribute, attribute_name
from cdd.dataset.reading import read_rows
from cdd.dataset.state import ColumnState
from cdd.dtypes import Array

if TYPE_CHECKING:
    from cdd.dataset.transaction import Transaction


class Changes:
    """The attributes of a dataset, a table or a column, to be changed."""

    def __init__(self, of: "Transaction", table: str | None, column: str | None) -> None:
        self._of, self._table, self._column = of, table, column

    def _now(self) -> dict[str, Any]:
        state = self._of._state
        if self._table is None:
            return state.attrs
        if self._column is None:
            return state.table(self._table).attrs
        return state.column(self._table, self._column).attrs

    def __getitem__(self, key: str) -> Any:
        return self._now()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._now()

    def __setitem__(self, key: str, value: Any) -> None:
        new = attribute(attribute_name(key), value)
        self._of._do(ops_of_names.SetAttribute(self._table, self._column, key, new))

    def __delitem__(self, key: str) -> None:
        if key not in self._now():
            raise KeyError(key)
        self._of._do(ops_of_names.SetAttribute(self._table, self._column, key, None, is_gone=True))

    def update(self, values: Mapping[str, Any]) -> None:
        for key, value in values.items():
            self[key] = value


class ChangingColumn:
    """A column within a transaction: its rows are read and replaced by number, slice or mask."""

    def __init__(self, of: "Transaction", table: str, name: str) -> None:
        self._of, self._table, self._name = of, table, name

    @property
    def _column(self) -> ColumnState:
        return self._of._state.column(self._table, self._name)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self._column.row_shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._column.dtype

    @property
    def attrs(self) -> Changes:
        """The column's attributes, to be changed."""
        return Changes(self._of, self._table, self._name)

    def __len__(self) -> int:
        return self._of._state.table(self._table).rows

    def __getitem__(self, key: Any) -> Array:
        """Rows as the transaction has made them so far: by slice, number, or array of numbers or bools."""
        rows, is_one = row_selection(key, len(self))
        if len(rows) == 0:
            return np.empty((0, *self._column.row_shape), self.dtype)
        first, last = int(rows.min()), int(rows.max()) + 1
        try:
            found = read_rows(
                self._of._session, self._table, self._name, self._column, len(self), first, last
            )
        except (FileNotFoundError, FormatError):
            base = self._of._base.number
            session = self._of._session
            session.check_kept(base, session.newest(base), base)  # VersionExpiredError, where it was pruned
            raise
        picked: Array = found[rows - first]
        if not is_one:
            return picked
        one: Array = picked[0]
        return one

    def __setitem__(self, key: Any, values: npt.ArrayLike) -> None:
        """Replaces rows; values are broadcast, and must be the column's dtype, exactly.

        Raises IndexError for rows that are not there, ValueError for values that do not fit, and OrderError
        for times of the clock that would not be in order with their neighbours.
        """
        op = modification(self._of, self._table, self._name, key, values)
        if op is not None:
            self._of._do(op)
