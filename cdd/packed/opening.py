"""Packed rows opened, and made of rows."""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from cdd import _cdd
from cdd.arguments import flag, shown, text
from cdd.packed.rows import Check, Packed
from cdd.packed.writer import Writer

if TYPE_CHECKING:
    from cdd._cdd import Buffer


def mapped(path: str | os.PathLike[str]) -> Buffer:
    """A file's bytes as a read-only map; an empty file has no map."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


@overload
def open(
    source: str | os.PathLike[str] | Buffer,
    mode: Literal["r"] = "r",
    *,
    check: Check = "header",
    header: bool = False,
) -> Packed: ...
@overload
def open(
    source: Any,
    mode: Literal["w", "x"],
    *,
    columns: Sequence[str],
    types: Any = None,
    user_meta: Buffer = b"",
    compression: str = "lz4",
    zstd_level: int = 3,
    block_bytes: int = 1 << 20,
) -> Writer: ...
def open(source: Any, mode: str = "r", **options: Any) -> Packed | Writer:
    """Packed rows in a file (mapped) or in any buffer, which stays exported while a view of it lives; or a
    Writer of version 2 to a path or a file object of bytes.

    Options of mode "r"
        check="header"   the header alone, whatever the size; "bounds", "full", "utf8": each row, as
                         Packed.verify says. Fields are checked when they are used in any case
        header=False     whether row 0 has the names and is no row (version 1; version 2 has its own names)

    Options of modes "w" (replaces what is there) and "x" (FileExistsError where something is)
        columns          names
        types=None       types of columns that are appended as Columns: as of cdd.csv.read; text
        user_meta=b""    bytes of the user
        compression      of a block: "lz4", "zstd" or "none"
        zstd_level=3     1 to 22
        block_bytes      of rows in a block, about 1 MiB

    Raises FormatError for what is no packed rows, TruncatedError for fewer bytes than promised,
    UnsupportedError for a version above 2.
    """
    if mode in ("w", "x"):
        return Writer(source, mode, options.pop("columns", ()), **options)
    if mode != "r":
        raise ValueError(f"packed rows are opened with mode 'r', 'w' or 'x', not {shown(mode)}")
    unknown = set(options) - {"check", "header"}
    if unknown:
        raise TypeError(f"{sorted(unknown)[0]}= is no option of mode 'r': those are check, header")
    buffer = mapped(source) if isinstance(source, str | os.PathLike) else source
    check, header = options.get("check", "header"), options.get("header", False)
    return Packed(buffer, text("check", check), flag("header", header))


def pack(
    rows: Iterable[Sequence[str | bytes]], *, version: int = 1, out: Any = None, header: bool = False
) -> Packed:
    """Rows of str (or bytes, which are taken as they are) as packed rows, in new memory or in `out`, a
    writable buffer that is large enough.

    header   whether the first of the rows has the names of the columns
    version  2: any length of fields and rows, compressed; in new memory

    Raises ValueError for a row that has not as many fields as the first, FormatError for what version 1 does
    not hold: a field of more than 65,535 bytes, rows beyond 4 GB.
    """
    if version == 2:
        return _pack2(rows, flag("header", header))
    if version != 1:
        raise ValueError(f"version is 1 or 2, not {shown(version)}")
    pages, _, _, size, _ = _cdd.packed_pack(rows, out)
    return Packed(
        memoryview(out).cast("B")[:size] if pages is None else pages, "header", flag("header", header)
    )


def _pack2(rows: Iterable[Sequence[str | bytes]], header: bool) -> Packed:
    given = iter(rows)
    first = next(given, ())
    names = [name if isinstance(name, str) else name.decode() for name in first]
    made = io.BytesIO()
    with Writer(made, "w", names if header else [str(i) for i in range(len(names))]) as writer:
        if not header and first:
            writer.append([first])
        writer.append(given)
    return Packed(made.getbuffer(), "header", False)
