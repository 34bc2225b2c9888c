"""What a dataset is: meta/dataset.json, written once; and who writes it: names that are locked as long as
their writers live."""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from cdd import _cdd
from cdd.dataset.protocol.directory import Directory, Held
from cdd.dataset.protocol.manifest import canonical, parse_checked
from cdd.manifests import Field

DATASET = "meta/dataset.json"
_REMOVED = "meta/removed"  # is there while a dataset is being removed, to be replaced
_FILES = "meta/files.lock"  # stays there
_FORMAT = "cdd-dataset"
_VERSION = 1


def create(directory: Directory) -> str:
    """Makes an empty dataset, unless there is one. Returns the id of the one that is there."""
    body = {
        "format": _FORMAT,
        "version": _VERSION,
        "id": secrets.token_hex(16),
        "features": {"incompatible": [], "read_only": [], "compatible": []},
    }
    body["check"] = _cdd.content_hash(canonical(body)).hex()
    for folder in ("meta/log/packs", "meta/manifests", "meta/pages", "meta/writers", "data"):
        directory.make_folder(folder)
    directory.put_if_absent(DATASET, json.dumps(body, indent=1).encode())
    directory.sync("meta")
    return read_id(directory, writes=True)


def read_id(directory: Directory, writes: bool) -> str:
    """The id of the dataset in a directory. Raises FileNotFoundError, FormatError and UnsupportedError."""
    where = f"{directory.name}/{DATASET}"
    try:
        data = directory.read(DATASET)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(2, "there is no dataset here, or not a whole one", directory.name) from None
    fields = parse_checked(data, where, _FORMAT)
    top = Field({name: field.value for name, field in fields.items()}, "", _cdd.FormatError, where)
    fields = top.object(("format", "version", "id", "features"))
    features = fields["features"].object(("incompatible", "read_only", "compatible"))
    for kind in ("incompatible", "read_only") if writes else ("incompatible",):
        unknown = [feature.text() for feature in features[kind].items(1000)]
        if unknown:
            does = "written" if kind == "read_only" else "read"
            raise _cdd.UnsupportedError(
                f"{where} needs {', '.join(unknown)}, of a newer cdd: it cannot be {does} by this one"
            )
    dataset_id = fields["id"].text()
    if len(dataset_id) != 32:
        fields["id"].fail("32 hex digits are wanted")
    return dataset_id


def check_clear(directory: Directory) -> None:
    """Raises what clear() raises, and removes nothing."""
    if directory.size(DATASET) is None and directory.size(_REMOVED) is None:
        found = _first_file(directory, "")
        if found is not None:
            raise FileExistsError(
                17,
                f"the folder holds {found!r}, and no {DATASET}: write a dataset into a folder of its own; "
                "where this is one that lost that file, put it back",
                directory.name,
            )
    for owner in directory.list("meta/writers"):
        if directory.is_locked(owner_path(owner)):
            raise BlockingIOError(11, "a writer has the dataset open", directory.name)


def clear(directory: Directory, replaces: bool) -> None:
    """Removes the dataset that is there, if it is to be replaced, or the rest of one whose removal a killed
    process began; nothing else, and nothing while a writer has it open. Raises FileExistsError for a folder
    that holds other things, and BlockingIOError."""
    check_clear(directory)
    is_there = directory.size(DATASET) is not None
    if not (replaces if is_there else directory.size(_REMOVED) is not None):
        return
    directory.put(_REMOVED, b"")
    directory.delete(DATASET)  # from now on there is none
    for folder in ("meta", "data"):
        _remove(directory, folder)
    directory.delete(_REMOVED)
    directory.remove_folder("meta")


def _first_file(directory: Directory, folder: str) -> str | None:
    for name in sorted(directory.list(folder)):
        path = f"{folder}/{name}" if folder else name
        found = _first_file(directory, path) if directory.is_folder(path) else path
        if found is not None:
            return found
    return None


def _remove(directory: Directory, folder: str) -> None:
    for name in directory.list(folder):
        path = f"{folder}/{name}"
        if directory.is_folder(path):
            _remove(directory, path)
        elif path != _REMOVED:
            directory.delete(path)
    if not directory.list(folder):
        directory.remove_folder(folder)


class Owner:
    """A writer's name, locked as long as the writer lives: files that carry it and are in no version yet
    are not garbage. Made when it is first needed."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._lock: Held | None = None
        self._mutex = threading.Lock()
        self.id = secrets.token_hex(8)

    def need(self) -> str:
        with self._mutex:
            while self._lock is None:
                lock = self._directory.lock(owner_path(self.id))
                if lock is not None and self._directory.size(owner_path(self.id)) is not None:
                    self._lock = lock
                elif lock is not None:  # prune() took the file for a dead writer's: again, by another name
                    lock.close()
                    self.id = secrets.token_hex(8)
        return self.id

    def release(self) -> None:
        with self._mutex:
            if self._lock is not None:
                self._directory.delete(owner_path(self.id))
                self._lock.close()
                self._lock = None

    def __enter__(self) -> Self:
        self.need()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def owner_path(owner: str) -> str:
    return f"meta/writers/{owner}"


@contextmanager
def files_lock(directory: Directory) -> Iterator[None]:
    """Held by who deletes files that are not its own, and by who takes files in that name no owner. Raises
    BlockingIOError while another process has it."""
    if directory.puts_whole:  # names are chosen at random there: none is taken twice
        yield
        return
    lock = directory.lock(_FILES)
    if lock is None:
        raise BlockingIOError(11, "another process prunes the dataset, or adopts files", directory.name)
    try:
        yield
    finally:
        lock.close()


def forget_owners(directory: Directory) -> None:
    """Removes the names of writers that are dead."""
    for owner in directory.list("meta/writers"):
        lock = directory.lock(owner_path(owner))
        if lock is not None:
            directory.delete(owner_path(owner))
            lock.close()
