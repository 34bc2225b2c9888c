"""Expiring versions, and deleting the files that nobody needs any more.

A file is deleted in this order, and the model of the protocol in the tests has a mutant for each other one:
its owner's lock is looked at, then the newest version is read again, then, where no version that is kept has
the file, it goes.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from cdd import _cdd, arguments
from cdd.dataset import manifest as manifests
from cdd.dataset.directory import Directory, directory_of
from cdd.dataset.log import Version, pack_of, record_path, version_of
from cdd.dataset.ops import Op
from cdd.dataset.ops_of_names import Expire, Tag
from cdd.dataset.options import duration
from cdd.dataset.session import Owner, Session, owner_path, read_id
from cdd.dataset.state import State, files_of


@dataclass(frozen=True)
class PruneReport:
    """What prune() did; as a str, a text for people.

    deleted  paths of the files that are gone, within the dataset
    bytes    how many they had
    kept     candidates that a version, or a writer that is alive, still needs
    """

    path: str
    deleted: tuple[str, ...]
    bytes: int
    kept: int

    def __str__(self) -> str:
        gone = f"{len(self.deleted):,} files of {self.bytes:,} bytes deleted"
        return f"{self.path}: {gone}, {self.kept:,} are needed"


def expire(place: Any, keep: int | None = None, older_than: Any = None, message: str = "") -> Version:
    """Lets go of old versions: of all but the last `keep`, of those that are older than `older_than` ("30D",
    a timedelta64), or of those that are both. Versions with a tag stay. Returns the version that says so.

    Whoever asks for one that is gone gets VersionExpiredError. prune() deletes the files.
    """
    if keep is None and older_than is None:
        raise ValueError("expire takes keep=, older_than=, or both")
    directory = directory_of(place)
    read_id(directory, writes=True)
    with _Writing(directory) as session:
        head = session.newest()
        floor = head.number
        if keep is not None:
            floor = min(floor, max(1, head.number - arguments.size("keep", keep, 1, 1 << 62) + 1))
        seconds = duration("older_than", older_than)
        if seconds is not None:
            now = int(np.datetime64("now", "ns").astype(np.int64))
            floor = min(floor, session.log.at_time(now - seconds * 10**9, head.number) + 1)
        return _commit(session, head, [Expire(max(floor, head.floor))], message)


def tag(place: Any, name: str, version: Any = None) -> Version:
    """Names a version, by default the newest, so that it is kept whatever expires; as_of=name opens it.

    Raises DatasetError for a name that is given, VersionExpiredError and VersionNotFoundError.
    """
    directory = directory_of(place)
    read_id(directory, writes=True)
    with _Writing(directory) as session:
        head = session.newest()
        number = head.number if version is None else session.find(version).number
        return _commit(session, head, [Tag(arguments.text("name", name), number)], "")


def untag(place: Any, name: str) -> Version:
    """Takes the name of a version away. Raises DatasetError where there is none."""
    directory = directory_of(place)
    read_id(directory, writes=True)
    with _Writing(directory) as session:
        return _commit(session, session.newest(), [Tag(arguments.text("name", name), None)], "")


def _commit(session: Session, head: State, ops: list[Op], message: str) -> Version:
    new = session.commit(head, ops, message)
    return version_of(session.log.record(new.number))


class _Writing:
    """A session with the lock of a writer."""

    def __init__(self, directory: Directory) -> None:
        self._owner = Owner(directory)
        self._directory = directory

    def __enter__(self) -> Session:
        self._owner.need()
        return Session(self._directory, self._owner)

    def __exit__(self, *error: object) -> None:
        self._owner.release()


def prune(place: Any, *, orphans: bool = False) -> PruneReport:
    """Deletes files that only expired versions needed, and packs old records of the log.

    orphans=True also looks through all folders for files that no version ever had, which killed writers
    leave. Readers, collectors and transactions may go on meanwhile. Files are deleted for good.
    """
    directory = directory_of(place)
    dataset_id = read_id(directory, writes=True)
    session = Session(directory)
    head = session.newest()
    session.log.pack(head.number)
    found = _listed(session) if orphans else _dropped(session, head)
    deleted, freed, kept = [], 0, 0
    for path in sorted(found):
        size = directory.size(path)
        if size is None:
            continue
        if _is_owned(directory, path, dataset_id):
            kept += 1
            continue
        head = session.newest(head.number)
        if path in needed_files(session, head):
            kept += 1
            continue
        directory.delete(path)
        deleted.append(path)
        freed += size
    _forget_writers(directory)
    return PruneReport(directory.name, tuple(deleted), freed, kept)


def _kept_versions(head: State) -> set[int]:
    return {*range(max(head.floor, 1), head.number + 1), *head.tags.values()}


def needed_files(session: Session, head: State) -> set[str]:
    """Every file of a version that is kept. Versions with one manifest are looked at once."""
    known: dict[str, set[str]] = session.__dict__.setdefault("_needed", {})
    needed: set[str] = set()
    seen = session.__dict__.setdefault("_manifest_of", {})
    for number in _kept_versions(head):
        if number not in seen:
            seen[number] = session.log.record(number)["manifest"] if number else ""
        write_id = seen[number]
        if write_id and write_id not in known:
            state = manifests.read_manifest(session.directory, write_id)
            files = {manifests.manifest_path(write_id)}
            for name, table in state.tables.items():
                for key, column in table.columns.items():
                    files |= files_of(name, key, column)
                    files |= {manifests.page_path(page[0]) for page in column.pages}
            known[write_id] = files
        needed |= known.get(write_id, set())
    return needed


def _dropped(session: Session, head: State) -> set[str]:
    """What versions took out of use that are built on expired ones; what tags still hold is looked at again
    each time."""
    found: set[str] = set()
    for number in range(1, head.floor + 1):
        found |= set(session.log.record(number)["dropped"])
    return found


def _listed(session: Session) -> set[str]:
    """All files of the dataset, but those that its log consists of."""
    directory = session.directory
    found: set[str] = set()

    def walk(folder: str) -> None:
        for name in directory.list(folder):
            path = f"{folder}/{name}"
            if directory.is_folder(path):
                walk(path)
            else:
                found.add(path)

    for folder in ("data", "meta/manifests", "meta/pages"):
        walk(folder)
    for name in directory.list("meta/log"):  # records that came after their number was packed
        number = name.removesuffix(".json")
        if (
            number.isdecimal()
            and directory.size(f"meta/log/packs/{pack_of(int(number)):010d}.cdd") is not None
        ):
            found.add(record_path(int(number)))
    return found


def _is_owned(directory: Directory, path: str, dataset_id: str) -> bool:
    """Whether the writer that made a file is alive, or the file is none of the dataset's."""
    if path.startswith("meta/"):
        owner = path.rpartition("/")[2].partition("-")[0]
        return not path.startswith("meta/log/") and directory.is_locked(owner_path(owner))
    try:
        core = _cdd.Reader(directory.store(path), {"mmap": False})
        meta = json.loads(core.user_meta)
        core.close()
        owner, own_id = meta["owner"], meta["dataset"]
    except FileNotFoundError:
        return True
    except (_cdd.CddError, ValueError, KeyError, TypeError):
        return not path.rpartition("/")[2].startswith("__")  # a killed writer left it before it was a store
    return own_id != dataset_id or directory.is_locked(owner_path(str(owner)))


def _forget_writers(directory: Directory) -> None:
    """Names of writers that are dead."""
    for owner in directory.list("meta/writers"):
        lock = directory.lock(owner_path(owner))
        if lock is not None:
            directory.delete(owner_path(owner))
            lock.close()
