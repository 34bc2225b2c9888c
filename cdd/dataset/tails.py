"""Tails: the superchunks that rows of a table are appended to."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cdd import _cdd
from cdd.dataset import extents as ex
from cdd.dataset.state import ColumnState, State, TableState, path_of
from cdd.store.writer import Writer

if TYPE_CHECKING:
    from cdd.dataset.writer import DatasetWriter


@dataclass
class OpenTail:
    """The superchunk that rows of a column are appended to."""

    number: int
    path: str
    writer: Writer
    begin: int  # rows of the column before it


def writer_options(column: ColumnState, durability: str) -> dict[str, Any]:
    return {**column.options, "durability": durability}


def tails_of(state: State, table: str) -> dict[str, bytes]:
    found = state.tables.get(table, TableState()).columns
    return {name: column.extents[-1:, : ex.FIRST_ITEM].tobytes() for name, column in found.items()}


def discard(writer: "DatasetWriter", tails: dict[str, OpenTail]) -> None:
    """Files that no version has, unless nobody knows."""
    for tail in tails.values():
        tail.writer.close()
        if not writer._session.is_uncertain:
            writer._directory.delete(tail.path)


def truncated(table: str, name: str, path: str, rows: int, wanted: int) -> Exception:
    return _cdd.TruncatedError(
        f"column {path_of(table, name)!r}: with {path} it has {rows} rows, the newest version needs {wanted}"
    )


def check_id(writer: Writer, path: str, wanted: bytes, name: str) -> None:
    """Raises FormatError for a superchunk that is another file than is meant."""
    if writer.id != wanted.hex():
        raise _cdd.FormatError(
            f"column {name!r}: {path} is another file than the dataset's: its id is {writer.id}, not "
            f"{wanted.hex()}"
        )
