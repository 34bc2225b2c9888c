"""Expiring versions, and deleting the files that nobody needs any more.

The model of the protocol in the tests has a mutant for each of these rules:

- One prune() at a time, and none while files are adopted: a name that is deleted may be taken again.
- A file that no version has had yet is left as long as the writer lives that made it. Then the newest version
  is read again, made durable, and where no version that is kept has the file, it goes. In this order.
- What a version dropped needs no look at its writer: no later version gets a file of that name.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from cdd import _cdd, arguments
from cdd.dataset.options import duration
from cdd.dataset.protocol import manifest as manifests
from cdd.dataset.protocol.directory import Directory, MemoryDirectory, directory_of
from cdd.dataset.protocol.identity import Owner, files_lock, forget_owners, owner_path, read_id
from cdd.dataset.protocol.log import Version, pack_of, record_path
from cdd.dataset.protocol.ops import Op
from cdd.dataset.protocol.ops_of_names import Expire, Tag
from cdd.dataset.protocol.session import Session
from cdd.dataset.protocol.state import State, files_of

NOTES = "meta/pruned"


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
        return f"{self.path}: {gone}, {self.kept:,} others are still needed"


def expire(place: Any, keep: int | None = None, older_than: Any = None, message: str = "") -> Version:
    """Lets go of old versions: of all but the last `keep`, of those that are older than `older_than` ("30D",
    a timedelta64), or of those that are both. Versions with a tag stay. Returns the version that says so.

    Whoever asks for one that is gone gets VersionExpiredError. prune() deletes the files.
    """
    if keep is None and older_than is None:
        raise ValueError("expire takes keep=, older_than=, or both")
    directory = directory_of(place)
    read_id(directory, writes=True)
    with Owner(directory) as owner:
        session = Session(directory, owner)
        head = session.newest()
        floor = head.number
        if keep is not None:
            floor = min(floor, max(1, head.number - arguments.size("keep", keep, 1, 1 << 62) + 1))
        seconds = duration("older_than", older_than)
        if seconds is not None:
            now = int(np.datetime64("now", "ns").astype(np.int64))
            floor = min(floor, session.log.at_time(now - seconds * 10**9, head.number) + 1)
        return _commit(session, head, Expire(max(floor, head.floor)), message)


def tag(place: Any, name: str, version: Any = None) -> Version:
    """Names a version, by default the newest, so that it is kept whatever expires; as_of=name opens it.
    Returns the version that records the tag.

    Raises DatasetError for a name that is given, VersionExpiredError and VersionNotFoundError.
    """
    directory = directory_of(place)
    read_id(directory, writes=True)
    with Owner(directory) as owner:
        session = Session(directory, owner)
        head = session.newest()
        number = head.number if version is None else session.find(version).number
        return _commit(session, head, Tag(arguments.text("name", name), number))


def untag(place: Any, name: str) -> Version:
    """Takes the name of a version away. Raises DatasetError where there is none."""
    directory = directory_of(place)
    read_id(directory, writes=True)
    with Owner(directory) as owner:
        session = Session(directory, owner)
        return _commit(session, session.newest(), Tag(arguments.text("name", name), None))


def _commit(session: Session, head: State, op: Op, message: str = "") -> Version:
    return session.version(session.commit(head, [op], message).number)


def prune(place: Any, *, orphans: bool = False) -> PruneReport:
    """Deletes files that only expired versions needed, and packs old records of the log.

    Its work is that of what expired since the last time, and of what tags still hold. orphans=True looks
    through all folders instead, also for files that no version ever had, which killed writers leave. Readers,
    collectors and transactions may go on meanwhile. Files are deleted for good. Raises BlockingIOError while
    another process prunes or adopts files.
    """
    directory = directory_of(place)
    dataset_id = read_id(directory, writes=True)
    with files_lock(directory):
        return _prune(Session(directory), dataset_id, orphans)


def _prune(session: Session, dataset_id: str, orphans: bool) -> PruneReport:
    directory = session.directory
    head = _durable_head(session)
    session.log.pack(head.number)
    until = head.floor
    found = _listed(session) if orphans else _dropped(session, until)
    needed = _Needed(session, every_version=orphans)
    deleted, freed, kept = [], 0, []
    for path in sorted(found):
        size = directory.size(path)
        if size is None:
            continue
        # What a version dropped is no file that a writer is about to use, whoever made it.
        if not (orphans and _is_owned(directory, path, dataset_id)):
            head = _durable_head(session)
            if path not in needed.files(head):
                directory.delete(path)
                deleted.append(path)
                freed += size
                continue
        kept.append(path)
    if not orphans and until:
        _write_notes(session, until, kept)
    forget_owners(directory)
    return PruneReport(directory.name, tuple(deleted), freed, len(kept))


def _durable_head(session: Session) -> State:
    """The newest version, whose floor and tags no power cut takes back."""
    head = session.latest()
    session.sync_for(head.number)
    return head


class _Needed:
    """The files of versions that are kept. A file is in versions that follow each other: of those that a
    version dropped, only versions with a tag are asked, beside the oldest and the newest that is kept."""

    def __init__(self, session: Session, every_version: bool) -> None:
        self._session = session
        self._every_version = every_version
        self._manifests: dict[int, str] = {}  # of versions
        self._files: dict[str, set[str]] = {}  # of manifests
        self._found: tuple[str, set[str]] | None = None  # of the last head that was asked for

    def files(self, head: State) -> set[str]:
        if self._found is None or self._found[0] != head.id:
            first = max(head.floor, 1)
            kept = range(first, head.number + 1) if self._every_version else (first, head.number)
            needed: set[str] = set()
            for write_id in {self._manifest_of(number) for number in {*kept, *head.tags.values()}}:
                needed |= self._files_of(write_id)
            self._found = head.id, needed
        return self._found[1]

    def _manifest_of(self, number: int) -> str:
        if number not in self._manifests:
            self._manifests[number] = self._session.log.record(number)["manifest"]
        return self._manifests[number]

    def _files_of(self, write_id: str) -> set[str]:
        if write_id and write_id not in self._files:
            files = {manifests.manifest_path(write_id)}
            for name, table in manifests.read_manifest(self._session.directory, write_id).tables.items():
                for key, column in table.columns.items():
                    files |= files_of(name, key, column)
                    files |= {manifests.page_path(page[0]) for page in column.pages}
            self._files[write_id] = files
        return self._files.get(write_id, set())


def _dropped(session: Session, until: int) -> set[str]:
    """What versions took out of use that are built on expired ones, and what was left the last time."""
    done, found = _read_notes(session)
    for number in range(done + 1, until + 1):
        found |= set(session.log.record(number)["dropped"])
    return found


def _read_notes(session: Session) -> tuple[int, set[str]]:
    """Up to which version files were looked at, and those that were left. Nothing depends on it: without
    notes, or with those of another history, all is looked at again."""
    try:
        notes = json.loads(session.directory.read(NOTES))
        until, version_id, kept = notes["until"], notes["id"], notes["kept"]
        if session.log.record(until)["id"] == version_id and all(isinstance(path, str) for path in kept):
            return until, set(kept)
    except (FileNotFoundError, _cdd.CddError, ValueError, KeyError, TypeError):
        pass
    return 0, set()


def _write_notes(session: Session, until: int, kept: list[str]) -> None:
    notes = {"until": until, "id": session.log.record(until)["id"], "kept": kept}
    with suppress(OSError):
        session.directory.put_hint(NOTES, json.dumps(notes).encode())


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
        # A killed writer left it before it was a store; in memory none is killed: this one has just begun.
        return isinstance(directory, MemoryDirectory) or not path.rpartition("/")[2].startswith("__")
    return own_id != dataset_id or directory.is_locked(owner_path(str(owner)))
