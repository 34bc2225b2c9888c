"""Where a dataset lies: a folder of named pieces of bytes, some of them stores.

The calls are those that an object store has, too: put if absent, put, read, list, delete, size. Paths are
relative, with "/".
"""

import os
import secrets
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from cdd import _cdd
from cdd.durable import sync_folder


class Held(Protocol):
    """A lock that somebody has."""

    def close(self) -> None:
        """Lets go of it."""


class Directory(ABC):
    """A place for the files of a dataset. What is put is whole or not there, whatever happens."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"what lies in {self.name} cannot be pickled, in a folder or at a URL it can")

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The bytes of a file. Raises FileNotFoundError."""

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Writes a file, durably with its name, unless there is one of that name: then False."""

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Writes a file, durably with its name; replaces the one that is there."""

    def put_hint(self, path: str, data: bytes) -> None:
        """put() for what nothing depends on: it need not be durable."""
        self.put(path, data)

    @abstractmethod
    def list(self, folder: str) -> list[str]:
        """The names in a folder, in no order; none where there is no such folder."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Removes a file. One that is not there is no error."""

    @abstractmethod
    def size(self, path: str) -> int | None:
        """Bytes of a file; None where there is none."""

    @abstractmethod
    def sync(self, folder: str) -> None:
        """Returns when the names in a folder are durable."""

    @abstractmethod
    def store(self, path: str) -> str | _cdd.Memory:
        """What cdd.open takes to read the store at a path."""

    @abstractmethod
    def new_store(self, path: str) -> str | _cdd.Memory:
        """What cdd.open takes to write a new store there, by mode "x". Raises FileExistsError."""

    def put_store(self, path: str, data: bytes) -> None:
        """Puts a whole store there, durably. Raises FileExistsError."""
        if not self.put_if_absent(path, data):
            raise FileExistsError(17, "File exists", path)

    @abstractmethod
    def lock(self, path: str) -> Held | None:
        """The lock of a name, for this object until it is released or the process ends. None: taken."""

    @abstractmethod
    def is_locked(self, path: str) -> bool:
        """Whether somebody has the lock of a name."""

    @property
    def puts_whole(self) -> bool:
        """Whether a store is there as a whole or not at all, and never grows: put_if_absent() puts its
        bytes."""
        return False

    def is_folder(self, path: str) -> bool:
        """Whether there are files below a name."""
        return bool(self.list(path))

    def make_folder(self, folder: str) -> None:
        """Makes a folder and those above it, durably, where there are folders."""
        del folder

    def remove_folder(self, folder: str) -> None:
        """Removes an empty folder, where there are folders."""
        del folder

    @property
    @abstractmethod
    def name(self) -> str:
        """For error texts."""

    @property
    def is_local(self) -> bool:
        """Whether other processes can open it by its name."""
        return False


class LocalDirectory(Directory):
    """A folder of the file system."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._root = Path(self.path).absolute()

    @property
    def name(self) -> str:
        return self.path

    @property
    def is_local(self) -> bool:
        return True

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"

    def read(self, path: str) -> bytes:
        return Path(self._at(path)).read_bytes()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        try:
            self._publish(path, data, replace=False)
        except FileExistsError:
            return False
        return True

    def put(self, path: str, data: bytes) -> None:
        self._publish(path, data, replace=True)

    def put_hint(self, path: str, data: bytes) -> None:
        temporary = Path(self._at(f"{_folder_of(path)}/.hint-{secrets.token_hex(8)}"))
        try:
            temporary.write_bytes(data)
            temporary.replace(self._at(path))
        finally:
            temporary.unlink(missing_ok=True)

    def _publish(self, path: str, data: bytes, replace: bool) -> None:
        try:
            _cdd.publish(self._at(path), data, replace)
        except FileNotFoundError:
            self.make_folder(_folder_of(path))
            _cdd.publish(self._at(path), data, replace)

    def list(self, folder: str) -> list[str]:
        try:
            names = [entry.name for entry in Path(self._at(folder)).iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [name for name in names if not name.startswith(".")]

    def delete(self, path: str) -> None:
        Path(self._at(path)).unlink(missing_ok=True)

    def size(self, path: str) -> int | None:
        try:
            return os.stat(self._at(path)).st_size  # noqa: PTH116  a Path takes twice as long, in each refresh
        except (FileNotFoundError, NotADirectoryError):
            return None

    def sync(self, folder: str) -> None:
        sync_folder(self._at(folder))

    def make_folder(self, folder: str) -> None:
        missing = []
        while folder and not Path(self._at(folder)).is_dir():
            missing.append(folder)
            folder = _folder_of(folder)
        self._root.mkdir(parents=True, exist_ok=True)
        for name in reversed(missing):
            Path(self._at(name)).mkdir(exist_ok=True)
            self.sync(_folder_of(name))

    def is_folder(self, path: str) -> bool:
        return Path(self._at(path)).is_dir() and not Path(self._at(path)).is_symlink()

    def remove_folder(self, folder: str) -> None:
        for entry in Path(self._at(folder)).iterdir() if self.is_folder(folder) else ():
            if entry.name.startswith("."):  # what a killed writer left under a temporary name
                entry.unlink()
        with suppress(FileNotFoundError):
            Path(self._at(folder)).rmdir()

    def store(self, path: str) -> str:
        return self._at(path)

    def new_store(self, path: str) -> str:
        self.make_folder(_folder_of(path))
        return self._at(path)

    def lock(self, path: str) -> Held | None:
        self.make_folder(_folder_of(path))
        try:
            return _cdd.Lock(self._at(path))
        except BlockingIOError:
            return None

    def is_locked(self, path: str) -> bool:
        if self.size(path) is None:
            return False
        lock = self.lock(path)
        if lock is None:
            return True
        lock.close()
        return False


class MemoryDirectory(Directory):
    """A dataset in memory, of this process alone: cdd.dataset.open(MemoryDirectory(), "w")."""

    def __init__(self) -> None:
        self._files: dict[str, bytes | _cdd.Memory] = {}
        self._locks: set[str] = set()
        self._mutex = threading.Lock()

    @property
    def name(self) -> str:
        return "<memory>"

    def read(self, path: str) -> bytes:
        with self._mutex:
            found = self._files.get(path)
        if found is None:
            raise FileNotFoundError(2, "No such file", path)
        return bytes(found)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        with self._mutex:
            return self._files.setdefault(path, data) is data

    def put(self, path: str, data: bytes) -> None:
        with self._mutex:
            self._files[path] = data

    def list(self, folder: str) -> list[str]:
        lead = f"{folder}/" if folder else ""
        with self._mutex:
            rest = [path[len(lead) :] for path in self._files if path.startswith(lead)]
        return sorted({path.split("/", 1)[0] for path in rest})

    def delete(self, path: str) -> None:
        with self._mutex:
            self._files.pop(path, None)

    def size(self, path: str) -> int | None:
        with self._mutex:
            found = self._files.get(path)
        return None if found is None else len(found)

    def sync(self, folder: str) -> None:
        pass

    def store(self, path: str) -> _cdd.Memory:
        with self._mutex:
            found = self._files.get(path)
            if found is None:
                raise FileNotFoundError(2, "No such store", path)
            if isinstance(found, bytes):
                raise TypeError(f"{path} is no store")
            return found

    def new_store(self, path: str) -> _cdd.Memory:
        memory = _cdd.Memory()
        with self._mutex:
            if self._files.setdefault(path, memory) is not memory:
                raise FileExistsError(17, "File exists", path)
        return memory

    def put_store(self, path: str, data: bytes) -> None:
        memory = _cdd.Memory(data)
        with self._mutex:
            if self._files.setdefault(path, memory) is not memory:
                raise FileExistsError(17, "File exists", path)

    def lock(self, path: str) -> Held | None:
        with self._mutex:
            if path in self._locks:
                return None
            self._locks.add(path)
            self._files.setdefault(path, b"")
        return _MemoryLock(self, path)

    def is_locked(self, path: str) -> bool:
        with self._mutex:
            return path in self._locks


class _MemoryLock:
    def __init__(self, directory: MemoryDirectory, path: str) -> None:
        self._directory = directory
        self._path = path

    def close(self) -> None:
        with self._directory._mutex:
            self._directory._locks.discard(self._path)


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def directory_of(place: "str | os.PathLike[str] | Directory") -> Directory:
    if isinstance(place, Directory):
        return place
    if isinstance(place, str | os.PathLike):
        return LocalDirectory(os.fsdecode(place))
    raise TypeError(f"a dataset is opened by a path or a Directory, not by {type(place).__name__}")
