"""Packed rows of version 2, written as a stream."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cdd import _cdd
from cdd.arguments import shown, size
from cdd.packed.columns import Columns, type_named

if TYPE_CHECKING:
    from cdd._cdd import Buffer, CsvWhere
    from cdd.packed.options import Options

TAKE_BYTES = 1 << 20


def _opened(path: Any, mode: str) -> Any:
    return Path(path).open("xb" if mode == "x" else "wb")


class Writer:
    """Writes version 2: cdd.packed.open(target, "w", columns=names) gives one.

    append(rows)     rows of str or bytes, or Columns, whose types were given
    flush()          ends the block at hand: all rows so far can be read, also if nothing follows
    close()          writes the footer; `with` does it. Without it a reader has the whole blocks

    The target is a path or a file object that takes bytes, a pipe too: nothing is written twice, nothing
    is sought.
    """

    def __init__(
        self,
        target: Any,
        mode: str,
        columns: Sequence[str],
        *,
        types: Any = None,
        user_meta: Buffer = b"",
        compression: str = "lz4",
        zstd_level: int = 3,
        block_bytes: int = 1 << 20,
    ) -> None:
        if isinstance(columns, str):
            raise TypeError("columns is a list of names, not a str")
        names = tuple(columns)
        given = types if types is not None else ("text",) * len(names)
        kinds = [type_named(kind) for kind in (given.values() if isinstance(given, Mapping) else given)]
        if len(kinds) != len(names):
            raise ValueError(f"{len(kinds)} types are given for {len(names)} columns")
        if compression not in ("none", "lz4", "zstd"):
            raise ValueError(f"compression is one of 'none', 'lz4', 'zstd', not {shown(compression)}")
        self._core = _cdd.PackedWriter(
            tuple(zip(names, kinds, strict=True)),
            user_meta,
            compression,
            size("zstd_level", zstd_level, 1, 22),
            size("block_bytes", block_bytes, 1, 1 << 30),
        )
        self.names = names
        self._owned = isinstance(target, str | os.PathLike)
        if not self._owned and not hasattr(target, "write"):
            raise TypeError(f"a path or a file object of bytes is written to, not {shown(target)}")
        self._file: Any = _opened(target, mode) if self._owned else target
        self._closed = False
        self._drain(0)

    def __len__(self) -> int:
        """Rows so far."""
        return self._core.rows

    def append(self, rows: Iterable[Sequence[str | bytes]] | Columns) -> None:
        """Rows, or typed columns as one block, which columns of the types given can be read of."""
        self._check()
        if isinstance(rows, Columns):
            self._core.add_columns(rows.for_core(), len(rows))
        else:
            self._core.add_rows(rows)
        self._drain(TAKE_BYTES)

    def append_text(self, text: Any, options: Options, last: bool, where: CsvWhere) -> tuple[int, CsvWhere]:
        """Rows of CSV text; (bytes consumed, where the next goes on)."""
        consumed, where = self._core.add_text(text, options.core(), last, where)
        self._drain(TAKE_BYTES)
        return consumed, where

    def flush(self) -> None:
        """Ends the block of rows at hand and hands all of it to the file."""
        self._check()
        self._core.flush()
        self._drain(0)
        if hasattr(self._file, "flush"):
            self._file.flush()

    def close(self) -> None:
        """Writes footer and trailer, and closes the file where it was opened here."""
        if self._closed:
            return
        self._core.close()
        self._drain(0)
        self._let_go()

    def _let_go(self) -> None:
        self._closed = True
        if self._owned:
            self._file.close()

    def _check(self) -> None:
        if self._closed:
            raise ValueError("the writer of packed rows is closed")

    def _drain(self, most: int) -> None:
        if self._core.waiting > most:
            data = memoryview(self._core.take())
            while data:
                written = self._file.write(data)
                data = data[len(data) if written is None else written :]

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:  # what was written are whole blocks without a footer
            self._let_go()
