"""Columns of CSV into a store or a dataset, in one walk over the text."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cdd
from cdd.arguments import shown
from cdd.packed.columns import Column, Columns
from cdd.packed.places import beside_of, is_packed, take_folder
from cdd.packed.reading import Reading
from cdd.packed.storing import (
    FEW,
    Findings,
    StoreReport,
    as_floats,
    check_book,
    check_null,
    check_text,
    filled,
    gathered,
    lost_in,
    shape_of,
    stored_names,
)
from cdd.packed.writer import Writer
from cdd.progress import Progress

Array = npt.NDArray[Any]

ORDERS = ("nondecreasing", "strict", "any")
BOOK = "book"
_CLOCKS = ("int64", "uint64", "datetime64[ns]")


class Storing:
    """One run of cdd.csv.store."""

    progress: Progress | None = None
    total = 0
    _appended = False  # whether there is any row of this run
    _kept_texts: frozenset[str] | set[str] = frozenset()  # of the dataset that is gone on with
    # Of cdd.dataset, which this package does not know: open(), and what raises for a folder that no dataset
    # may take the place of.
    open_dataset: Callable[..., Any]
    check_replaceable: Callable[[str], None]

    def __init__(
        self,
        reading: Reading,
        target: str,
        shape: Sequence[int] | None,
        dtype: Any,
        clock: str | None,
        null: Any,
        lossy: bool,
        sort: bool,
        order: str,
    ) -> None:
        self._reading, self._target = reading, target
        self._clock, self._null, self._lossy, self._sort, self._order = clock, null, lossy, sort, order
        self._single = target.endswith(".cdd")
        self._shape = None if shape is None else shape_of(shape)
        self._dtype = np.dtype(dtype if dtype is not None else np.float64 if shape is None else np.float32)
        names = reading.names
        if not names:
            raise ValueError("the source has no row, so nothing says what columns there are")
        self._check_arguments(names, dtype)
        self._book = [name for name in names if name != clock] if shape is not None or self._single else []
        if self._shape is not None:
            check_book(self._book, self._shape)
        self._mapped = self._names_in_target(names)
        self._findings = Findings(is_strict=order == "strict", checks_texts=not reading.options.utf8)
        self._beside = f"{target}.texts.packed"
        self._is_looked_through = False

    def _check_arguments(self, names: Sequence[str], dtype: Any) -> None:
        """Nothing that is given is without effect."""
        check_null(self._null, names)
        if self._order not in ORDERS:
            raise ValueError(f"order is one of {', '.join(map(repr, ORDERS))}, not {shown(self._order)}")
        if self._clock is not None and self._clock not in names:
            raise KeyError(f"clock is {self._clock!r}, the columns are {', '.join(names)}")
        if self._single and self._clock is not None:
            raise ValueError("a single store has no clock: a dataset has (a target without .cdd)")
        if self._clock is None and (self._sort or self._order != ORDERS[0]):
            what = "sort=True" if self._sort else f'order="{self._order}"'
            raise ValueError(f"{what} is of rows that a clock orders: clock= names its column")
        if dtype is not None and self._shape is None and not self._single:
            raise ValueError(
                "dtype= is of the one array that a store has, or shape= makes: types= gives those of columns"
            )

    def _names_in_target(self, names: Sequence[str]) -> dict[str, str]:
        if self._single or self._shape is None:
            return stored_names(names)
        own = stored_names([self._clock] if self._clock is not None else [], taken=[BOOK])
        stored_names(names)  # none twice
        return {name: own.get(name, BOOK) for name in names}

    def _attributes(self) -> dict[str, Any]:
        """What the names were: of the book's cells all, of other columns those that were changed."""
        names: dict[str, Any] = {
            plain: name for name, plain in self._mapped.items() if plain != name and name not in self._book
        }
        if self._book:
            names[BOOK] = self._book
        return {"csv_names": names}

    def run(self, mode: str) -> StoreReport:
        """Mode "x", "w" or "a", as of cdd.open."""
        if mode == "a" and not os.path.lexists(self._target):
            mode = "x"
        self._check_place(mode)
        if not self._single and self._reading.has_no_rows and mode != "a":
            self._check_types_are_given()
        self._reading.find_types()
        self._check_clock(self._reading.types)
        self._is_looked_through = self._reading.look_through(self._look)
        if self._is_looked_through:
            self._judge()
        return self._into_store(mode) if self._single else self._into_dataset(mode)

    def _check_place(self, mode: str) -> None:
        target = Path(self._target)
        if mode == "x":
            for path in (self._target, *((self._beside,) if not self._single else ())):
                if os.path.lexists(path):
                    hint = "overwrite=True or resume=True"
                    if path == self._beside:
                        hint = "texts of a dataset that was there before. overwrite=True replaces them"
                    elif not self._single and not target.is_dir():
                        hint = "a file, where a dataset is a folder (the name of a store ends with .cdd)"
                    raise FileExistsError(17, f"there is something already: {hint}", path)
        elif os.path.lexists(target) and (self._single == target.is_dir()):
            what, other = ("folder", "store") if self._single else ("file", "dataset")
            raise FileExistsError(17, f"there is a {what}, which no {other} takes the place of", self._target)
        elif mode == "w" and not self._single:
            self.check_replaceable(self._target)
        elif mode == "a" and not self._single and self._has_dataset():
            self._check_goes_on()

    def _has_dataset(self) -> bool:
        return (Path(self._target) / "meta" / "dataset.json").exists()

    def _check_goes_on(self) -> None:
        """The dataset that is there has the columns and the clock that these rows have."""
        with self.open_dataset(self._target) as there:
            self._kept_texts = {name for name in there.columns if there[name].is_text}
            if not len(there.columns):
                return
            clock = None if self._clock is None else self._mapped[self._clock]
            if there.clock != clock:
                known = {plain: name for name, plain in self._mapped.items()}
                given = None if there.clock is None else known.get(there.clock, there.clock)
                raise ValueError(
                    f"{self._target} has {'no clock' if given is None else f'the clock {given!r}'}, "
                    f"and clock={self._clock!r} is asked for"
                )
            missing = [name for name in there.columns if name not in self._mapped.values()]
            if missing:
                raise ValueError(
                    f"{self._target} has a column {missing[0]!r}, which the source does not have: it has "
                    f"{', '.join(self._reading.names)}"
                )

    def _check_clock(self, types: Sequence[str]) -> None:
        if self._clock is None:
            return
        kind = types[self._reading.names.index(self._clock)].removeprefix("=")
        if kind != "auto" and kind not in _CLOCKS and not kind.startswith("epoch"):
            raise ValueError(
                f"clock {self._clock!r} is {kind}, and a clock is int64, uint64 or datetime64: "
                f'types={{{self._clock!r}: "epoch[s]"}} reads times, without clock= nothing orders the rows'
            )

    def _check_types_are_given(self) -> None:
        """A dataset of no rows has the columns that types say."""
        types = dict(zip(self._reading.names, self._reading.types, strict=True))
        unknown = [name for name, kind in types.items() if kind == "auto" and name not in self._book]
        if unknown:
            raise ValueError(
                f"there are no rows under the names, so nothing says of what type {unknown[0]!r} is: "
                "types= gives one for each column"
            )

    # ---------------------------------------------------------------- the first pass

    def _look(self, columns: list[Column], row: int) -> None:
        book = frozenset(self._book)
        for name, column in zip(self._reading.names, columns, strict=True):
            if name in book:
                self._check_type(name, column)
        self._findings.look(
            self._reading.names,
            columns,
            row,
            null=self._null,
            clock=self._clock,
            book=book,
            dtype=self._dtype,
        )
        self._tell()

    def _check_type(self, name: str, column: Column) -> None:
        if column.text is not None or column.type == "datetime64[ns]":
            hint = f': types={{{name!r}: "float64"}} names the row' if column.text is not None else ""
            raise ValueError(f"column {name!r} is {column.type}, which is no {self._dtype}{hint}")

    def _judge(self) -> None:
        found = self._findings
        is_whole = self._dtype.kind in "iub"
        if found.lossy and (is_whole or not self._lossy):
            name, (count, row, value) = next(iter(found.lossy.items()))
            double = np.dtype(np.float64)
            is_held = self._dtype != double and not len(lost_in(np.asarray([value]), double))
            hints = ['dtype="float64" holds them'] * is_held + ["lossy=True rounds them"] * (not is_whole)
            raise ValueError(
                f"column {name!r} has {count:,} number{'s' * (count > 1)} that {self._dtype} does not hold, "
                f"the first in row {row}: {value!r}{'. ' * bool(hints)}{', '.join(hints)}"
            )
        if found.unordered is not None and not self._sort and self._order != "any":
            is_same = "not after" if found.is_strict else "before"
            raise ValueError(
                f"row {found.unordered} is {is_same} the one before it by {self._clock!r}: sort=True sorts, "
                'order="any" takes rows as they are'
            )

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(self._reading.read_bytes, max(self.total, self._reading.read_bytes))

    # ---------------------------------------------------------------- the second

    def _windows(self, skip: int) -> Iterator[tuple[Columns, int]]:
        """Windows of rows from `skip` on; all of them at once where they are to be sorted."""
        names, row = self._reading.names, 0
        kept: list[Columns] = []
        for columns, rows in self._reading.windows():
            self._tell()
            part = Columns(names, columns, rows)
            begin = max(skip - row, 0)
            if begin < rows:
                if self._sort:
                    kept.append(part[begin:])
                else:
                    yield part[begin:], row + begin
            row += rows
        if row < skip:
            raise self._other_source(skip, row)
        if kept:
            yield self._sorted(kept), skip

    def _other_source(self, target: int, source: int) -> ValueError:
        return ValueError(f"the target has {target} rows, the source {source}: it was made of another")

    def _sorted(self, kept: list[Columns]) -> Columns:
        assert self._clock is not None
        keys = np.concatenate([filled(p.column(self._clock), self._clock, self._null, 0) for p in kept])
        by = np.argsort(keys, kind="stable")
        columns = []
        for name in self._reading.names:
            columns.append(gathered([part.column(name) for part in kept], by))
        return Columns(self._reading.names, columns, len(by))

    def _values(self, part: Columns, row: int, names: Sequence[str]) -> Array:
        made = np.empty((len(part), len(names)), self._dtype)
        for k, name in enumerate(names):
            column = part.column(name)
            self._check_type(name, column)
            values = filled(column, name, self._null, row, self._dtype)
            if not self._is_looked_through:  # a pipe
                self._findings.look_at_items(name, values, row, self._dtype)
                self._judge()
            made[:, k] = as_floats(values, self._dtype) if self._dtype.kind == "f" else values
        return made.reshape(len(part), *(self._shape if self._shape is not None else (len(names),)))

    def _into_store(self, mode: str) -> StoreReport:
        """A store gets its place when it is whole; one of a pipe at once, whose rows stay after an error."""
        shape = self._shape if self._shape is not None else (len(self._book),)
        how: dict[str, Any] = {"dtype": self._dtype, "row_shape": shape}
        grows = mode == "a" or (mode == "x" and not self._is_looked_through)
        is_new = not os.path.lexists(self._target)
        try:
            with cdd.open(self._target, mode, visible="open" if grows else "close", **how) as writer:  # type: ignore[call-overload]
                rows = before = len(writer)
                for part, row in self._windows(before):
                    writer.append(self._values(part, row, self._book))
                    self._appended, rows = True, len(writer)
        except BaseException:
            if grows and is_new and not self._appended:
                Path(self._target).unlink(missing_ok=True)
            raise
        return StoreReport(rows, rows - before, self._mapped, None, self._findings.lossy)

    def _into_dataset(self, mode: str) -> StoreReport:
        """A new dataset is made beside its place, which it takes when it is whole; one of a pipe at
        once, where its rows stay after an error."""
        many = [name for name, texts in self._findings.texts.items() if texts is None]
        if mode == "a":
            many = [name for name in many if self._mapped[name] not in self._kept_texts]
        if len(many) == len(self._reading.names):
            raise ValueError(
                f"all columns are texts of more than {FEW:,} values, which lie beside a dataset: there is "
                "none for the dataset itself. cdd.csv.pack(version=2) keeps texts alone"
            )
        target, is_new = os.path.realpath(self._target), not os.path.lexists(self._target)
        grows = mode == "a" or (mode == "x" and not self._is_looked_through)
        made = Path(target) if grows else beside_of(target)
        beside = beside_of(self._beside)
        try:
            rows, before = self._write_dataset(made, "a" if grows else "x", many, beside)
            if not grows:
                if mode == "w":
                    self.check_replaceable(self._target)  # again: somebody may have come
                take_folder(made, Path(target))
            if many and not grows:
                beside.replace(self._beside)
            elif mode == "w" and is_packed(self._beside):
                Path(self._beside).unlink()  # of the dataset that was replaced
        except BaseException:
            beside.unlink(missing_ok=True)
            if not grows or (is_new and not self._appended):
                shutil.rmtree(made, ignore_errors=True)
            raise
        report_beside = self._beside if many else None
        return StoreReport(rows, rows - before, self._mapped, report_beside, self._findings.lossy)

    def _write_dataset(self, place: Path, mode: str, many: list[str], texts: Path) -> tuple[int, int]:
        """(rows, rows before)."""
        clock = None if self._clock is None else self._mapped[self._clock]
        order = ORDERS[0] if self._sort and self._order == "any" else self._order
        how: dict[str, Any] = {"clock": clock, "order": order}
        if not (mode == "a" and self._has_dataset()):
            how["attrs"] = self._attributes()
        with self.open_dataset(place, mode, **how) as writer:
            before = len(writer)
            if many and before and self._sort:
                raise ValueError(
                    f"{', '.join(many)} lie beside the dataset, which cannot be sorted and gone on with: "
                    "overwrite=True"
                )
            beside = Writer(texts, "w", many) if many else None
            with beside if beside is not None else nullcontext():
                self._append(writer, beside, before, many)
            if many and mode == "a":
                texts.replace(self._beside)
            writer.commit("cdd.csv.store")
            return len(writer), before

    def _append(self, writer: Any, beside: Writer | None, before: int, many: list[str]) -> None:
        """Rows after those that the target has. Texts beside it are written anew: the source has them all."""
        if self._reading.has_no_rows and not before:
            writer.append(self._columns_of_no_rows())
        for part, row in self._windows(before if beside is None else 0):
            if beside is not None:
                beside.append(Columns(many, [part.column(name) for name in many], len(part)))
            skipped = max(before - row, 0)
            if skipped < len(part):
                writer.append(self._dataset_columns(part[skipped:], row + skipped, many))
                self._appended = True
        if beside is not None and len(beside) < before:
            raise self._other_source(before, len(beside))

    def _columns_of_no_rows(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self._book:
            made[BOOK] = np.empty((0, *(self._shape or ())), self._dtype)
        for name, kind in zip(self._reading.names, self._reading.types, strict=True):
            if name not in self._book:
                plain = kind.removeprefix("=")
                kind = "U1" if plain == "text" else "datetime64[ns]" if plain.startswith("epoch") else plain
                made[self._mapped[name]] = np.empty(0, kind)
        return made

    def _dataset_columns(self, part: Columns, row: int, many: list[str]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name in part.names:
            if name in self._book and BOOK not in made:
                made[BOOK] = self._values(part, row, self._book)
            if name in self._book or name in many:
                continue
            column = part.column(name)
            if not self._is_looked_through:  # a pipe
                self._check_clock([part.types[one] for one in part.names])
                if column.text is not None and not self._reading.options.utf8:
                    check_text(column, name, row)
            value = column.text.numpy() if column.text is not None else filled(column, name, self._null, row)
            made[self._mapped[name]] = value
        return made
