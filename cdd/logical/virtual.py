"""Raw files as members of an icechunk repository: virtual references to runs of their rows, with checksums.

A file that changed since is an error when it is read, never other data.
"""

import math
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from cdd import arguments
from cdd.logical import repo
from cdd.logical.adding import new_name
from cdd.logical.array import Array
from cdd.logical.backends import RepoBackend, Underway
from cdd.logical.digests import row_bytes_of
from cdd.logical.errors import LogicalError, MemberError
from cdd.logical.manifest import Member

CHUNK_BYTES = 1 << 20


def virtual_members(
    array: Array, underway: Underway, path: Any, rows: int | None, offset: int | None
) -> list[Member]:
    """Members that hold the rows of a file, one after the other: see WritableArray.append_virtual()."""
    backend = underway.backend
    if not isinstance(backend, RepoBackend):
        raise LogicalError(
            "virtual references are of icechunk repositories: append_member() takes files elsewhere"
        )
    file = Path(os.fspath(path)).resolve()
    found, begin = _layout(array, file, rows, offset)
    prefix = repo.container_of(backend.repository, str(file))
    if prefix is None:
        raise MemberError(f"{str(file)!r} is not below a directory of allow=[...]: {str(file.parent)!r}, say")
    backend.saves_config = True
    status = file.stat()
    row_bytes = row_bytes_of(array.shape, array.dtype)
    if begin + found * row_bytes > status.st_size:
        raise MemberError(
            f"{str(file)!r} has {status.st_size:,} bytes, {begin + found * row_bytes:,} are wanted"
        )
    size = _chunk_rows(found, max(1, CHUNK_BYTES // row_bytes))
    # A chunk has all of its rows: those of a last one that is not full are a member of their own.
    parts = [(0, found - found % size, size), (found - found % size, found, found % size)]
    return [
        _member(array, underway, file, begin + first * row_bytes, last - first, chunk, status)
        for first, last, chunk in parts
        if first < last
    ]


def _layout(array: Array, file: Path, rows: int | None, offset: int | None) -> tuple[int, int]:
    """How many rows a file has, and where they begin: a .npy file says so itself."""
    if file.suffix != ".npy":
        size = file.stat().st_size - arguments.size("offset", offset or 0, 0, file.stat().st_size)
        most = size // row_bytes_of(array.shape, array.dtype)
        return (most if rows is None else arguments.size("rows", rows, 0, most)), offset or 0
    with file.open("rb") as stream:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, is_fortran, dtype = read(stream)
        begin = stream.tell()
    if is_fortran or shape[1:] != array.shape[1:] or dtype != array.dtype or len(shape) != array.ndim:
        order = "Fortran" if is_fortran else "C"
        raise MemberError(
            f"{str(file)!r} has shape {shape}, dtype {dtype}, in {order} order: rows of "
            f"{arguments.shape_of_rows(array.shape[1:])}, {array.dtype}, in C order are wanted"
        )
    return (shape[0] if rows is None else arguments.size("rows", rows, 0, shape[0])), begin


def _chunk_rows(rows: int, wanted: int) -> int:
    """Rows of a chunk: a divisor of all near `wanted` where there is one."""
    for size in range(min(wanted, rows), max(0, wanted // 2), -1):
        if rows % size == 0:
            return size
    return max(1, min(wanted, rows))


def _member(
    array: Array, underway: Underway, file: Path, begin: int, rows: int, chunk: int, status: os.stat_result
) -> Member:
    name = new_name()
    group = array._reading.places.group
    shape = (rows, *array.shape[1:])
    group.create_array(
        name, shape=shape, dtype=array.dtype, chunks=(chunk, *array.shape[1:]), compressors=None, filters=None
    )
    underway.made(lambda: group.__delitem__(name))
    length = chunk * row_bytes_of(array.shape, array.dtype)
    modified = datetime.fromtimestamp(math.ceil(status.st_mtime), UTC)
    tail = "/0" * (array.ndim - 1)
    for number in range(rows // chunk):
        group.store.set_virtual_ref(
            f"{group.path}/{name}/c/{number}{tail}",
            file.as_uri(),
            offset=begin + number * length,
            length=length,
            checksum=modified,
        )
    return Member(name, "zarr", shape, name, read_only=True)
