"""Columns of CSV into a store or a dataset, in one walk over the text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cdd
from cdd.packed.columns import Column, Columns
from cdd.packed.reading import Reading
from cdd.packed.storing import Findings, StoreReport, as_floats, check_book, filled, lost_in, stored_names
from cdd.packed.writer import Writer
from cdd.progress import Progress

Array = npt.NDArray[Any]


def total_bytes(source: Any) -> int:
    """Of a plain file or buffer; 0 where that is not known."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return path.stat().st_size if path.suffix not in (".gz", ".zst") and path.is_file() else 0
    return memoryview(source).nbytes if isinstance(source, bytes | bytearray | memoryview) else 0


class Storing:
    """One run of cdd.csv.store."""

    progress: Progress | None = None
    total = 0
    open_dataset: Callable[..., Any]  # cdd.dataset.open, which this package does not know

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
        self._shape = None if shape is None else tuple(shape)
        self._dtype = np.dtype(dtype if dtype is not None else np.float64 if shape is None else np.float32)
        names = reading.names
        if not names:
            raise ValueError("the source has no row, so nothing says what columns there are")
        self._mapped = stored_names(names)
        if clock is not None and clock not in names:
            raise KeyError(f"clock is {clock!r}, the columns are {', '.join(names)}")
        if self._single and clock is not None:
            raise ValueError("a single store has no clock: a dataset has (a target without .cdd)")
        self._book = [name for name in names if name != clock] if shape is not None or self._single else []
        if self._shape is not None:
            check_book(self._book, self._shape)
        self._findings = Findings()
        self._beside: str | None = None
        self._is_looked_through = False

    def run(self, mode: str, resume: bool) -> StoreReport:
        if mode == "x" and Path(self._target).exists():
            raise FileExistsError(
                17, "there is something already: overwrite=True or resume=True", self._target
            )
        if not self._single and self._reading.has_no_rows and mode != "a":
            self._check_types_are_given()
        self._reading.find_types()
        self._is_looked_through = self._reading.look_through(self._look)
        if self._is_looked_through:
            self._judge()
        return self._into_store(mode) if self._single else self._into_dataset(mode)

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
                f"column {name!r} has {count:,} decimals that {self._dtype} does not hold, the first in row "
                f"{row}: {value!r}. {', '.join(hints)}"
            )
        if found.unordered is not None and not self._sort and self._order != "any":
            raise ValueError(
                f"row {found.unordered} is before the one before it by {self._clock!r}: sort=True sorts, "
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
            yield from ((part, skip) for part in kept) if self._clock is None else self._sorted(kept)

    def _other_source(self, target: int, source: int) -> ValueError:
        return ValueError(f"the target has {target} rows, the source {source}: it was made of another")

    def _sorted(self, kept: list[Columns]) -> Iterator[tuple[Columns, int]]:
        assert self._clock is not None
        keys = np.concatenate([filled(p.column(self._clock), self._clock, self._null, 0) for p in kept])
        by = np.argsort(keys, kind="stable")
        columns = []
        for name in self._reading.names:
            columns.append(_gathered([part.column(name) for part in kept], by))
        yield Columns(self._reading.names, columns, len(by)), 0

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
        shape = self._shape if self._shape is not None else (len(self._book),)
        with cdd.open(self._target, mode, dtype=self._dtype, row_shape=shape) as writer:  # type: ignore[call-overload]
            before = len(writer)
            for part, row in self._windows(before):
                writer.append(self._values(part, row, self._book))
            rows = len(writer)
        return StoreReport(rows, rows - before, self._mapped, None, self._findings.lossy)

    def _into_dataset(self, mode: str) -> StoreReport:
        clock = None if self._clock is None else self._mapped[self._clock]
        order = "any" if self._order == "any" and not self._sort else "nondecreasing"
        attrs = {"csv_names": {plain: name for name, plain in self._mapped.items() if plain != name}}
        many = [name for name, texts in self._findings.texts.items() if texts is None]
        with self.open_dataset(self._target, mode, clock=clock, order=order, attrs=attrs) as writer:
            before = len(writer)
            beside = self._open_beside(many, resumed=before > 0)
            try:
                with beside if beside is not None else nullcontext():
                    self._append(writer, beside, before, many)
            except BaseException:
                if beside is not None:
                    Path(f"{self._beside}.part").unlink(missing_ok=True)
                raise
            if beside is not None:
                Path(f"{self._beside}.part").replace(str(self._beside))
            writer.commit("cdd.csv.store")
            rows = len(writer)
        return StoreReport(rows, rows - before, self._mapped, self._beside, self._findings.lossy)

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
        if beside is not None and len(beside) < before:
            raise self._other_source(before, len(beside))

    def _columns_of_no_rows(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self._book:
            made["book"] = np.empty((0, *(self._shape or ())), self._dtype)
        for name, kind in zip(self._reading.names, self._reading.types, strict=True):
            if name not in self._book:
                plain = kind.removeprefix("=")
                kind = "U1" if plain == "text" else "datetime64[ns]" if plain.startswith("epoch") else plain
                made[self._mapped[name]] = np.empty(0, kind)
        return made

    def _open_beside(self, many: list[str], resumed: bool) -> Writer | None:
        if not many:
            return None
        if resumed and self._sort:
            raise ValueError(
                f"{', '.join(many)} lie beside the dataset, which cannot be sorted and gone on with: "
                "overwrite=True"
            )
        self._beside = f"{self._target}.texts.packed"
        return Writer(f"{self._beside}.part", "w", many)

    def _dataset_columns(self, part: Columns, row: int, many: list[str]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self._book:
            made["book"] = self._values(part, row, self._book)
        for name in part.names:
            if name in self._book or name in many:
                continue
            column = part.column(name)
            value = column.text.numpy() if column.text is not None else filled(column, name, self._null, row)
            made[self._mapped[name]] = value
        return made


def _gathered(columns: list[Column], by: Array) -> Column:
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
