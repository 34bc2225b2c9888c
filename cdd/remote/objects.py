"""A dataset in an object store: the third Directory.

Versions are made by puts that succeed only where nothing is there, as everywhere. Superchunks are put whole
and never change; a long one has its outline beside it. There are no locks: a writer's name is an object, and
counts as held for a day.
"""

import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from cdd import _cdd
from cdd.dataset.protocol.directory import Directory, Held
from cdd.remote import outline as outlines
from cdd.remote.far import HEAD_BYTES, FarObject
from cdd.remote.outline import SUFFIX, Outline
from cdd.remote.wire import TRIES, Wire, may_be_pickled, store_of, without_secrets

_LEASE = timedelta(days=1)  # longer than what is put stays in no version


class ObjectDirectory(Directory):
    """Objects below one prefix of a store. Any number of threads may use it. cdd.remote.directory makes
    one."""

    def __init__(
        self, wire: Wire, target: str | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self.wire = wire
        self._target = target  # the URL, where it was one
        self._options = dict(options or {})
        self._mutex = threading.Lock()
        self._sizes: dict[str, int] = {}  # of superchunks, which do not change
        self._listed: set[str] = set()
        self._others: set[str] = set()  # superchunks that were to be put, and are others'

    @property
    def name(self) -> str:
        return self.wire.name

    @property
    def puts_whole(self) -> bool:
        return True

    def read(self, path: str) -> bytes:
        return bytes(self.wire.whole(path).data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Where an answer was lost, the object says whose it is: what is written is never the same twice."""
        error: OSError | None = None
        for _ in range(TRIES):
            try:
                e_tag = self.wire.put(path, data, create=True)
            except FileExistsError:
                return self._is(path, data)
            except PermissionError:
                raise
            except OSError as failed:
                error = failed
                if self.size(path) is not None:
                    return self._is(path, data)
                continue
            self._note(path, data, e_tag)
            return True
        assert error is not None
        raise error

    def _is(self, path: str, data: bytes) -> bool:
        if self.read(path) != data:
            with self._mutex:
                self._others.add(path)
            return False
        self._note(path, data, None)
        return True

    def _note(self, path: str, data: bytes, e_tag: str | None) -> None:
        if not _is_superchunk(path):
            return
        with self._mutex:
            self._sizes[path] = len(data)
        if len(data) > HEAD_BYTES and e_tag is not None:
            ranges = outlines.read_ranges(len(data), path, lambda at, count: data[at : at + count])
            with suppress(OSError):  # all of it is in the superchunk, too
                self.wire.put(path + SUFFIX, outlines.encode(Outline(len(data), e_tag, ranges)), create=False)

    def put(self, path: str, data: bytes) -> None:
        self.wire.put(path, data, create=False)

    def list(self, folder: str) -> list[str]:
        return [name for name in self.wire.list(folder) if not name.endswith(".cdd" + SUFFIX)]

    def delete(self, path: str) -> None:
        with self._mutex:
            if _is_superchunk(path) and path in self._others:  # another writer put it at the same moment
                return
        self.wire.delete(path)
        if _is_superchunk(path):
            with self._mutex:
                long = self._sizes.pop(path, HEAD_BYTES + 1) > HEAD_BYTES
            if long:
                self.wire.delete(path + SUFFIX)

    def size(self, path: str) -> int | None:
        if not _is_superchunk(path):
            found = self.wire.head(path)
            return None if found is None else found.size
        folder = path.rpartition("/")[0]
        with self._mutex:
            known, is_listed = self._sizes.get(path), folder in self._listed
        if known is not None:
            return known
        if not is_listed:
            sizes: dict[str, int] = {}
            with suppress(OSError):  # plain HTTP has no lists
                sizes = self.wire.sizes(folder)
            with self._mutex:
                self._sizes.update(sizes)
                self._listed.add(folder)
                if path in self._sizes:
                    return self._sizes[path]
        found = self.wire.head(path)
        if found is None:
            return None
        with self._mutex:
            self._sizes[path] = found.size
        return found.size

    def sync(self, folder: str) -> None:
        """What was put is durable."""

    def store(self, path: str) -> Any:
        return FarObject(self.wire, path, outline=False, long_outline=True).fetched()

    def new_store(self, path: str) -> _cdd.Memory:
        return _cdd.Memory()

    def lock(self, path: str) -> Held | None:
        """A name that nobody else takes: writers' are made at random."""
        if not self.put_if_absent(path, datetime.now(UTC).isoformat().encode()):
            return None
        return _Name(self, path)

    def is_locked(self, path: str) -> bool:
        put_at = self.wire.modified(path)
        return put_at is not None and datetime.now(UTC) - put_at < _LEASE

    def __repr__(self) -> str:
        return f"<cdd.remote.ObjectDirectory {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._target is None or not may_be_pickled(self._target, self._options):
            raise TypeError(
                f"{self.name} was opened by a store that is open, or with options that may be credentials: "
                "it is not pickled. One that is opened by a URL is, with credentials of the environment"
            )
        return _reopen, (self._target, self.wire.connections, self._options)


def _reopen(target: str, connections: int, options: dict[str, Any]) -> ObjectDirectory:
    wire = Wire(store_of(target, options), without_secrets(target), connections)
    return ObjectDirectory(wire, target, options)


class _Name:
    def __init__(self, directory: ObjectDirectory, path: str) -> None:
        self._directory = directory
        self._path = path

    def close(self) -> None:
        self._directory.delete(self._path)


def _is_superchunk(path: str) -> bool:
    return path.startswith("data/") and path.endswith(".cdd")
