"""Packed rows opened, and made of rows."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdd import _cdd
from cdd.arguments import flag, shown, text
from cdd.packed.rows import Check, Packed

if TYPE_CHECKING:
    from cdd._cdd import Buffer


def mapped(path: str | os.PathLike[str]) -> Buffer:
    """A file's bytes as a read-only map; an empty file has no map."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


def open(
    source: str | os.PathLike[str] | Buffer, mode: str = "r", *, check: Check = "header", header: bool = False
) -> Packed:
    """Packed rows in a file (mapped) or in any buffer, which stays exported while a view of it lives.

    check    "header": the header alone, whatever the size; "bounds", "full", "utf8": each row, as
             Packed.verify says. Fields are checked when they are used in any case.
    header   row 0 has the names and is no row (version 1; version 2 has its names elsewhere)

    Raises FormatError for what is no packed rows, TruncatedError for fewer bytes than promised,
    UnsupportedError for a version above 2.
    """
    if mode != "r":
        raise ValueError(
            f"packed rows are opened with mode 'r', not {shown(mode)}: they are written once, by pack()"
        )
    buffer = mapped(source) if isinstance(source, str | os.PathLike) else source
    return Packed(buffer, text("check", check), flag("header", header))


def pack(
    rows: Iterable[Sequence[str | bytes]], *, version: int = 1, out: Any = None, header: bool = False
) -> Packed:
    """Rows of str (or bytes, which are taken as they are) as packed rows, in new memory or in `out`, a
    writable buffer that is large enough.

    header   whether the first of the rows has the names of the columns

    Raises ValueError for a row that has not as many fields as the first, FormatError for what version 1 does
    not hold: a field of more than 65,535 bytes, rows beyond 4 GB.
    """
    if version != 1:
        raise ValueError(f"version is 1, not {shown(version)}")
    pages, _, _, size, _ = _cdd.packed_pack(rows, out)
    return Packed(
        memoryview(out).cast("B")[:size] if pages is None else pages, "header", flag("header", header)
    )
