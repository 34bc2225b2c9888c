"""Mending a dataset: rows of damaged superchunks that are whole go into new ones, rows that are lost are
taken away or filled, and a version says so. What is damaged stays as it is, for versions before.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from cdd.dataset.changing import fill_extent
from cdd.dataset.checking import find_wrong
from cdd.dataset.coding import replace_texts
from cdd.dataset.collecting.category import BYTES, ENDS
from cdd.dataset.column import Column
from cdd.dataset.draft import Draft
from cdd.dataset.opened import Dataset
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import ops
from cdd.dataset.protocol.directory import Directory, directory_of
from cdd.dataset.protocol.log import Version
from cdd.dataset.protocol.state import hidden_tables, is_left_over, locate, path_of
from cdd.dataset.salvage import Ranges, joined, mend, place_of, whole_blocks
from cdd.dtypes import Array

Damaged = list[tuple[str, int]]  # (column of a table, number of a superchunk)


@dataclass(frozen=True)
class LostRows:
    """Rows [start, stop) of a column that were not found, as the version before counts them.

    is_filled  whether other items stand in their place; else these rows of the whole table are gone
    """

    column: str
    start: int
    stop: int
    is_filled: bool

    def __str__(self) -> str:
        did = "filled" if self.is_filled else "taken from all columns of the table"
        return f"{self.column}: rows {self.start:,} to {self.stop:,} are lost, {did}"


@dataclass(frozen=True)
class LostTexts:
    """Codes [start, stop) of a category column whose texts were not found. Rows keep their codes; texts such
    as "lost text 3", one for each code, stand for what was there."""

    column: str
    start: int
    stop: int

    def __str__(self) -> str:
        return (
            f"{self.column}: texts of codes {self.start:,} to {self.stop:,} are lost, "
            f'"lost text {self.start}" and so on stand for them'
        )


@dataclass(frozen=True)
class DatasetRepairReport:
    """What cdd.dataset.repair() did; as a str, a text for people.

    mended      a text for each superchunk that was damaged
    lost        a LostRows for each run of rows that are not there any more; empty when no row is lost
    versions    those that it made, one for each table, and for the texts of each column, that were damaged
    lost_texts  a LostTexts for each run of codes whose texts are not there any more
    """

    path: str
    mended: tuple[str, ...]
    lost: tuple[LostRows, ...]
    versions: tuple[Version, ...]
    lost_texts: tuple[LostTexts, ...] = ()

    def __str__(self) -> str:
        if not self.mended:
            return f"{self.path}: nothing is damaged"
        lost = [*map(str, self.lost_texts), *map(str, self.lost)]
        lines = [*self.mended, *(lost or ["nothing lost"])]
        numbers = ", ".join(f"{int(version):,}" for version in self.versions)
        return "\n".join([f"{self.path}: {line}" for line in lines] + [f"committed as version {numbers}"])


def repair(
    place: "str | os.PathLike[str] | Directory",
    *,
    fill: Mapping[str, Any] | None = None,
    allow: Sequence[str | os.PathLike[str]] = (),
) -> DatasetRepairReport:
    """Mends the newest version: each superchunk of it that is damaged, missing or another file gets a new one
    with the rows that are whole, in a version of its own for each table.

    Where rows of a column are lost, these rows are taken from all columns of its table, unless `fill` has the
    column's name with an item that is to stand in their place. Where texts of a category column are lost,
    its rows keep their codes, and texts such as "lost text 3" stand for them. Older versions, and what is
    damaged, stay.

    Raises BlockingIOError while a collector appends to a table that is damaged, and what opening the dataset
    raises.
    """
    directory = directory_of(place)
    fills = dict(fill or {})
    found = _Found()
    draft = Draft(directory, allow)
    draft.close()
    state = draft.state
    for name in fills:
        table, column = locate(state, name)
        if column is not None and state.table(table).clock == column:
            raise ValueError(f"fill has an item for {name!r}, which is a clock")
    jobs: list[Callable[[Draft], None]] = []
    for table, its in state.tables.items():
        if not its.hidden or is_left_over(state, table):
            jobs.append(partial(_repair_table, table=table, fill=fills, found=found))
        for name, its_column in its.columns.items():
            if its_column.category is not None:  # texts first: fill= may name one
                jobs.insert(0, partial(_repair_texts, table=table, name=name, found=found))
    for job in jobs:
        draft = Draft(directory, allow)
        try:
            job(draft)
        finally:
            if not draft.is_over:
                draft.close()
    return DatasetRepairReport(
        directory.name, tuple(found.mended), tuple(found.lost), tuple(found.versions), tuple(found.texts)
    )


@dataclass
class _Found:
    mended: list[str] = field(default_factory=list)
    lost: list[LostRows] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    texts: list[LostTexts] = field(default_factory=list)

    def add_mended(self, draft: Draft, table: str, name: str, number: int) -> None:
        path, elsewhere = place_of(draft, table, name, draft.state.column(table, name), number)
        self.mended.append(f"{path_of(table, name)}: superchunk {number}, {elsewhere or path}, is mended")

    def commit(self, draft: Draft) -> None:
        version = draft.commit("repair", "repair")
        self.versions += [version] if version is not None else []


def _repair_table(draft: Draft, table: str, fill: dict[str, Any], found: _Found) -> None:
    if not _damaged(draft, table):
        return
    draft.hold_whole(table)
    rows = draft.state.table(table).rows
    gone: Ranges = []
    is_tail = False
    for name, number in _damaged(draft, table):
        column = draft.state.column(table, name)
        is_tail |= ex.is_open(column.extents) and int(column.extents[-1, ex.NUMBER]) == number
        full = path_of(table, name)
        found.add_mended(draft, table, name, number)
        lost = mend(draft, table, name, number)
        found.lost += [LostRows(full, start, stop, full in fill) for start, stop in lost]
        if full in fill:
            _fill(draft, table, name, fill[full], lost)
        else:
            gone += lost
    if is_tail:
        draft.do(ops.Cut(table, rows, rows))  # ends the tails
    for start, stop in reversed(joined(gone)):
        draft.do(ops.Cut(table, start, stop))
    found.commit(draft)


def _damaged(draft: Draft, table: str) -> Damaged:
    """(column, number) of superchunks with which anything is wrong."""
    found = []
    state = draft.state.table(table)
    for name, column in state.columns.items():
        extents = ex.seal(column.extents, state.rows)
        tail = int(column.extents[-1, ex.NUMBER]) if ex.is_open(column.extents) else 0
        if tail and not (extents[:, ex.NUMBER] == tail).any():  # rows that no version has may be in it
            extents = np.concatenate((extents, column.extents[-1:]))
            extents[-1, ex.ROWS] = 0
        for number in sorted(ex.numbers(extents)):
            own = extents[extents[:, ex.NUMBER] == number]
            path, elsewhere = place_of(draft, table, name, column, number)
            if find_wrong(draft.session.directory, path, elsewhere, own, column.dtype, column.row_shape):
                found.append((name, number))
    return found


# ------------------------------------------------------------ what is lost


def _fill(draft: Draft, table: str, name: str, item: Any, lost: Ranges) -> None:
    column = draft.state.column(table, name)
    for start, stop in lost:
        piece = ops.Piece(start, stop, fill_extent(draft, table, name, column, item, stop - start))
        draft.do(ops.Modify(table, name, np.arange(start, stop), [piece], column.next))


# ------------------------------------------------------------ texts


def _repair_texts(draft: Draft, table: str, name: str, found: _Found) -> None:
    """Puts the texts of a category column that are whole in new files, with others for those that are not."""
    both = hidden_tables(table, name)
    lacking = _codes_without_text(draft, table, name)
    if not lacking and not any(_damaged(draft, hidden) for hidden in both):
        return
    found.mended += [f"{path_of(table, name)}: {text}" for text in lacking]
    draft.hold_whole(table)
    draft.hold_texts(table, name)
    for hidden in both:
        for key, number in _damaged(draft, hidden):
            found.add_mended(draft, hidden, key, number)
    texts = _whole_texts(draft, table, name)
    lost = [(code, code + 1) for code, text in enumerate(texts) if text is None]
    found.texts += [LostTexts(path_of(table, name), start, stop) for start, stop in joined(lost)]
    known = set(texts)
    for code, _ in lost:
        text = f"lost text {code}"
        while text in known:
            text += "'"
        texts[code] = text
    replace_texts(draft, table, name, [text for text in texts if text is not None])
    found.commit(draft)


def _codes_without_text(draft: Draft, table: str, name: str) -> list[str]:
    """What is wrong with a category column whose rows, flushed ones included, have codes of more texts than
    there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of files that are mended here
        with Dataset(draft.session.directory, allow=draft.allow) as dataset:
            column: Column = dataset[path_of(table, name)]
            return column._codes_without_text()


def _whole_texts(draft: Draft, table: str, name: str) -> list[str | None]:
    """The texts of all codes that rows may have, None for those that are lost."""
    values, bounds = hidden_tables(table, name)
    data, has_data = _whole(draft, values, BYTES)
    ends, has_end = _whole(draft, bounds, ENDS)
    count = draft.base.table(bounds).rows
    for _, codes in whole_blocks(draft, table, name):
        count = max(count, int(codes.max()) + 1)
    texts: list[str | None] = []
    for code in range(max(count, len(ends))):
        text = None
        if code < len(ends) and has_end[max(0, code - 1) : code + 1].all():
            start, stop = int(ends[code - 1]) if code else 0, int(ends[code])
            if start <= stop <= len(data) and has_data[start:stop].all():
                with suppress(UnicodeDecodeError):
                    text = data[start:stop].tobytes().decode()
        if text is None and code >= count:
            break  # of these no row has a code
        texts.append(text)
    return texts


def _whole(draft: Draft, table: str, name: str) -> tuple[Array, Array]:
    """The rows of a column, and which of them are whole."""
    rows = np.zeros(draft.state.table(table).rows, draft.state.column(table, name).dtype)
    has = np.zeros(len(rows), bool)
    for at, block in whole_blocks(draft, table, name):
        rows[at : at + len(block)] = block
        has[at : at + len(block)] = True
    return rows, has
