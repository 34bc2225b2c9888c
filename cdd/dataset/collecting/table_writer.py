"""Appending to one table: what is given is looked at, texts become codes, files end where roll= says."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd._cdd import FormatError, UnsupportedError
from cdd.dataset.awaited import AwaitedTableWriter
from cdd.dataset.collecting.category import Categories
from cdd.dataset.collecting.collector import Collector
from cdd.dataset.collecting.incoming import (
    check_order,
    check_rows,
    flatten,
    named_rows,
    new_table,
    row_count,
)
from cdd.dataset.collecting.sealed import member_of
from cdd.dataset.collecting.tails import TailTable
from cdd.dataset.protocol.errors import ConflictError
from cdd.dataset.protocol.log import HIDDEN
from cdd.dataset.protocol.state import TableState
from cdd.dtypes import Array


@dataclass
class Known:
    """What a writer knows of a table while it is open."""

    last: Any = None  # the newest time, as an item of the clock
    categories: dict[str, Categories] = field(default_factory=dict)
    unseen_bytes: int = 0  # of rows, since the length of the tails was looked at


class TableWriter(AwaitedTableWriter):
    """Appends to one table. DatasetWriter[name] gives it; flush, commit and close are the writer's.

    It has the writer, which does not have it, so that the last reference to the writer ends it.
    """

    def __init__(self, collector: Collector, name: str, known: Known) -> None:
        self._of = collector
        self._name = name
        self._tails = member_of(collector, name)
        self._known = known

    # ------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        """The table's name; "" of the dataset's own."""
        return self._name

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns; none before the first append."""
        state = self._tails.state
        return () if state is None else tuple(state.columns)

    def __len__(self) -> int:
        """Rows, those that wait in memory included."""
        with self._of._lock():
            if self._tails.state is None:
                return 0
            self.open()
            return self._tails.rows

    def __repr__(self) -> str:
        return f"<cdd.dataset.TableWriter {self._name!r} of {self._of!r}>"

    # ------------------------------------------------------------ appending

    def append(self, columns: Mapping[str, npt.ArrayLike] | None = None, /, **named: npt.ArrayLike) -> None:
        """Adds rows to all columns of the table; as DatasetWriter.append."""
        with self._of._lock():
            given = flatten(named_rows(columns, named))
            if not given:
                raise ValueError("append takes the rows of all columns, by name; none was given")
            rows = row_count(given)
            if self._name.endswith(HIDDEN):
                raise ValueError(
                    f"{self._name!r} cannot be the name of a table: texts are kept by such names"
                )
            self._need_table(given)
            self.open()
            self._keep_up()
            state = self._of._state.table(self._name)
            check_rows(self._name, state, given)
            check_order(self._name, state, given, self._known.last)
            if rows == 0:
                return
            coded = {name: self._coded(state, name, array) for name, array in given.items()}
            first, parts = self._periods(state, given, rows)
            if parts:
                rolled = [{name: array[part] for name, array in coded.items()} for part in parts]
                before = {name: array[first] for name, array in coded.items()} if first.stop else None
                is_fragmented = self._tails.is_fragmented()
                self._tails.roll(before, rolled)
                if is_fragmented:
                    self._of._ended_short(self._name)
            else:
                self._tails.write(coded, rows)
                self._known.unseen_bytes += sum(array.nbytes for array in coded.values())
            if state.clock is not None:
                self._known.last = given[state.clock][-1]
            with suppress(OSError):  # the rows are in: the next call does it first, and raises what is wrong
                self._keep_up()

    def _keep_up(self) -> None:
        """Ends tails that are long enough, as flush() does for who flushes, and makes the version that
        commit_every= asks for. Looks at lengths once in so many bytes of rows as a superchunk has stored
        ones, of which there are hardly more."""
        options = self._of._options
        if self._known.unseen_bytes >= options.superchunk_bytes:
            if self._tails.is_due():
                self._tails.roll()
            self._known.unseen_bytes = 0
        if options.commit_rows is not None and self._tails.uncommitted >= options.commit_rows:
            self._of.commit()

    def _need_table(self, given: dict[str, Array]) -> None:
        """Makes the table of these columns where there is none."""
        of = self._of
        if self._tails.state is None:
            of._state = of._session.newest(of._state.number)
        if self._tails.state is None:
            try:
                made = new_table(of._options, self._name, given)
                check_rows(self._name, made, given)
                check_order(self._name, made, given, None)
                self._create(made)
            except ConflictError:  # another collector was faster
                of._state = of._session.newest(of._state.number)

    def _create(self, made: TableState) -> None:
        """Makes the table, and before it the hidden ones of its categories: what is there by their names is
        of no column then."""
        new: list[tuple[TailTable, TableState]] = []
        for name, column in made.columns.items():
            if column.category is not None:
                self._known.categories[name] = Categories(self._of, self._name, name, column)
                new += self._known.categories[name].new_tables()
        try:
            self._tails.create([*new, (self._tails, made)])
        except BaseException:
            self._known.categories.clear()
            raise

    def _coded(self, state: TableState, name: str, array: Array) -> Array:
        if state.columns[name].category is None:
            return array
        return self._known.categories[name].codes(array)

    def _periods(self, state: TableState, given: dict[str, Array], rows: int) -> tuple[slice, list[slice]]:
        """Where the clock passes bounds of roll= in an append: the rows before the first one, which the tails
        take, and the parts that new tails are for."""
        seconds = self._of._options.roll_seconds
        if seconds is None or state.clock is None or state.columns[state.clock].dtype.kind != "M":
            return slice(0, rows), []
        times = given[state.clock]
        if self._known.last is not None:
            times = np.concatenate((np.array([self._known.last], times.dtype), times))
        period = times.astype("M8[s]").astype(np.int64) // seconds
        changes = np.flatnonzero(period[1:] != period[:-1]) + (1 if self._known.last is None else 0)
        if not self._tails.has_rows():  # the tails are new already
            changes = changes[changes > 0]
        bounds = [int(at) for at in changes]
        ends = [*bounds[1:], rows]
        return slice(0, bounds[0] if bounds else rows), [
            slice(a, b) for a, b in zip(bounds, ends, strict=False)
        ]

    def forget_texts(self, name: str) -> None:
        """Lets go of the texts of a column that is to be dropped: another of its name has its own."""
        categories = self._known.categories.pop(name, None)
        if categories is not None:
            categories.let_go()

    def open(self) -> None:
        """Opens the tails, and looks at what is there. Those of its texts come first: no version has codes of
        texts that it has not."""
        state = self._tails.state
        if self._tails.is_open or state is None:
            return
        self._known.last = None
        try:
            for name, column in state.columns.items():
                if column.category is not None:
                    if name not in self._known.categories:
                        self._known.categories[name] = Categories(self._of, self._name, name, column)
                    self._known.categories[name].load()
            self._tails.need_tails()
            state = self._of._state.table(self._name)
            if state.clock is not None and self._tails.rows > 0:
                self._known.last = self._tails.read(state.clock, self._tails.rows - 1)[0]
        except (FormatError, UnsupportedError) as error:
            self._tails.let_go()
            for categories in self._known.categories.values():
                categories.close()
            if isinstance(error, UnsupportedError):
                raise
            raise type(error)(
                f"{error}; python -m cdd repair {self._of._directory.name} mends it, or a transaction drops "
                "the column"
            ) from None
