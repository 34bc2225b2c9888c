"""Superchunks that are about to be written: numbered files of one column."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cdd.dataset.session import Session
from cdd.dataset.state import ColumnState, path_of, superchunk_path
from cdd.store.writer import Writer


@dataclass
class NewSuperchunk:
    """A file that no version has yet."""

    number: int
    path: str
    id: bytes
    writer: Writer


def new_superchunk(
    session: Session,
    dataset_id: str,
    table: str,
    name: str,
    column: ColumnState,
    durability: Any = "batch",
    least: int = 1,
    **options: Any,
) -> NewSuperchunk:
    """Creates the next free number of a column's files, which is taken by creating it exclusively."""
    number = max(column.next, least)
    owner = session.owner.need()
    directory = session.directory
    while True:
        path = superchunk_path(table, name, column, number)
        meta = {"dataset": dataset_id, "column": path_of(table, name), "number": number, "owner": owner}
        try:
            writer = Writer(
                directory.new_store(path),
                "x" if directory.is_local else "w",
                user_meta=json.dumps(meta).encode(),
                dtype=column.dtype,
                row_shape=column.row_shape,
                durability=durability,
                **{**column.options, **options},
            )
            break
        except FileExistsError:
            number += 1
    return NewSuperchunk(number, path, bytes.fromhex(writer.id), writer)


def owner_of(open_meta: Callable[[], bytes]) -> dict[str, Any]:
    """What a superchunk says of itself; empty where it says nothing."""
    try:
        found = json.loads(open_meta())
    except ValueError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("dataset"), str) else {}
