"""Stores and datasets in object stores: S3, GCS, Azure and plain HTTP, by obstore.

    cdd.remote.publish("book.cdd", "s3://bucket/book.cdd")   # a closed file, and an outline beside it
    r = cdd.remote.open("s3://bucket/book.cdd")              # a cdd.Reader; r[a:b], r.read_windows(s, 64)
    d = cdd.remote.directory("s3://bucket/btc")              # a place for a dataset
    with cdd.dataset.open(d, "a") as w: ...
    ds = cdd.dataset.open(d)

Windows fetch the chunks that they need and nothing else, near ones in one request, all at once.
docs/remote.md is the guide.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cdd import arguments
from cdd.options import check_names
from cdd.remote import outline as outlines
from cdd.remote.far import HEAD_BYTES
from cdd.remote.objects import ObjectDirectory
from cdd.remote.outline import Outline
from cdd.remote.reader import RemoteReader, far_object
from cdd.remote.wire import Wire, check_store, store_of, wire_of, without_secrets
from cdd.store.maintenance import compact

__all__ = ["ObjectDirectory", "Published", "RemoteReader", "directory", "open", "publish"]


@dataclass(frozen=True)
class Published:
    """What publish() wrote: the object's URL and bytes, and those of its outline, 0 without one."""

    url: str
    stored_bytes: int
    outline_bytes: int


def open(
    target: Any,
    key: str | None = None,
    *,
    check: str = "stored",
    max_chunk_bytes: int = 1 << 31,
    cache_dir: str | os.PathLike[str] | None = None,
    gap: int | None = None,
    whole_below: int = HEAD_BYTES,
    connections: int = 32,
    **store_options: Any,
) -> RemoteReader:
    """Opens a store in an object store for reading.

    target, key     a URL (s3:, gs:, az:, http:, https:, file:) and maybe a key below it; or a store of
                    obstore that is open, and the key in it. A URL memory: is another, empty store each time
    check, max_chunk_bytes    as of cdd.open
    cache_dir       a folder that keeps outlines; they are used only for the very object that they are of
    gap             bytes between two ranges that are fetched along to save a request. None: 4 KiB, and as
                    many more as make no more requests than connections of one call
    whole_below     bytes of the first request: smaller objects are read by it as a whole
    connections     requests that are under way at once
    store_options   of obstore.store.from_url: region, endpoint, credentials, client_options, retry_config

    Opening takes two requests at the same time, the head and the outline; without an outline the head and one
    for each block of the index. Every later request is bound to the object's ETag.

    Raises FileNotFoundError, PermissionError and other OSErrors, ValueError for a URL that names no object,
    and for what is in it what cdd.open raises. No error and no pickle has credentials in it.
    """
    options = {"check": check, "max_chunk_bytes": max_chunk_bytes}
    check_names("r", options)
    how: dict[str, Any] = {
        "cache_dir": None if cache_dir is None else os.fspath(cache_dir),
        "gap": None if gap is None else arguments.size("gap", gap, 0, 1 << 40),
        "whole_below": arguments.size("whole_below", whole_below, 0, 1 << 30),
        "connections": arguments.size("connections", connections, 1, 1024),
        "store_options": store_options,
    }
    far, url = far_object(target, key, **how)
    return RemoteReader(far, url, how, options)


def publish(
    path: str | os.PathLike[str],
    target: Any,
    key: str | None = None,
    *,
    outline: bool = True,
    overwrite: bool = False,
    chunk_bytes: int | None = None,
    **store_options: Any,
) -> Published:
    """Puts a store's file into an object store, and its outline beside it, KEY.idx.

    The file is read as it is: close its writer first, else the rows that wait in it are missing.

    With `chunk_bytes` what is put has chunks of about so many stored bytes: compact(chunk_bytes=) writes them
    into a temporary file first, with profile "dense", and the file stays as it is. 2048 suits windows at
    random, 65536 long runs of rows. target, key and store_options are those of open().

    Raises FileExistsError for an object that is there, unless overwrite; ValueError for a file that changed
    meanwhile; what opening the file raises; OSError where requests fail for good. An object is there as a
    whole or not at all; one whose outline is missing, or is that of an older object, is read without it.
    """
    wire, name, _ = wire_of(target, key, 8, store_options)
    file = Path(path)
    if file.is_dir():
        raise ValueError(
            f"{file} is a folder, publish() puts the file of one store: a dataset is written there by "
            'cdd.dataset.open(cdd.remote.directory(URL), "w")'
        )
    if chunk_bytes is None:
        return _publish(file, wire, name, outline, overwrite)
    before = _stamp(file)
    with TemporaryDirectory(prefix="cdd-") as folder:
        compact(path, Path(folder, file.name), chunk_bytes=chunk_bytes)
        _check_same(file, before)
        return _publish(Path(folder, file.name), wire, name, outline, overwrite)


def _publish(file: Path, wire: Wire, name: str, outline: bool, overwrite: bool) -> Published:
    before = _stamp(file)
    with file.open("rb") as bytes_of:

        def read(offset: int, count: int) -> bytes:
            bytes_of.seek(offset)
            return bytes_of.read(count)

        ranges = outlines.read_ranges(before[0], os.fspath(file), read)
    e_tag = wire.put(name, file, create=not overwrite)
    _check_same(file, before)
    beside = b""
    if outline:
        beside = outlines.encode(Outline(before[0], e_tag, ranges))
        wire.put(name + outlines.SUFFIX, beside, create=False)
    return Published(wire.url(name), before[0], len(beside))


def _check_same(file: Path, before: tuple[int, int]) -> None:
    if _stamp(file) != before:
        raise ValueError(f"{os.fspath(file)} changed while it was published: close its writer, publish again")


def _stamp(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def directory(target: Any, *, connections: int = 32, **store_options: Any) -> ObjectDirectory:
    """A place for a dataset in an object store, which cdd.dataset.open and cdd.dataset.transaction take.

    target          the URL that the dataset's names begin with, or a store of obstore that is open
    store_options   as of open()

    It can be pickled, and the datasets in it, where it was opened by a URL and no option may be a credential.
    """
    if not isinstance(target, str):
        check_store(target)
        if store_options:
            raise TypeError(f"{', '.join(store_options)}: of a store that is open nothing more is to be said")
        return ObjectDirectory(Wire(target, type(target).__name__.lower() + ":/", connections))
    wire = Wire(store_of(target, store_options), without_secrets(target), connections)
    return ObjectDirectory(wire, target, store_options)
