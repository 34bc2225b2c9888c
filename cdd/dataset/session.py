"""Versions as states, and the commit that makes a new one. What stands here is the protocol of
docs/formats/dataset.md; the model of it is tests/dataset/model.py.
"""

import itertools
import json
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from cdd import _cdd
from cdd.dataset import log as logs
from cdd.dataset import manifest as manifests
from cdd.dataset.directory import Directory, Held
from cdd.dataset.errors import (
    ConflictError,
    VersionExpiredError,
    VersionNotFoundError,
)
from cdd.dataset.ops import Op, dropped_files
from cdd.dataset.people import write_for_people
from cdd.dataset.state import State
from cdd.manifests import Field

DATASET = "meta/dataset.json"
_FORMAT = "cdd-dataset"
_VERSION = 1

AsOf = Any  # an int, a Version, a tag, a datetime64 or a datetime


def create(directory: Directory) -> str:
    """Makes an empty dataset, unless there is one. Returns the id of the one that is there."""
    body = {
        "format": _FORMAT,
        "version": _VERSION,
        "id": secrets.token_hex(16),
        "features": {"incompatible": [], "read_only": [], "compatible": []},
    }
    body["check"] = _cdd.content_hash(manifests.canonical(body)).hex()
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
    fields = manifests.parse_checked(data, where, _FORMAT)
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


def owner_path(owner: str) -> str:
    return f"meta/writers/{owner}"


class Session:
    """What one reader or writer knows of a dataset's versions."""

    def __init__(self, directory: Directory, owner: Owner | None = None) -> None:
        self.directory = directory
        self.owner = owner or Owner(directory)
        self.log = logs.Log(directory)
        self._names = itertools.count(1)
        self._known_durable = -1  # the version that this session committed last, and knows to be durable
        # A commit failed when its record was put: it may be there, and need all that was written for it.
        self.is_uncertain = False
        self._manifest: State | None = None  # the last one that was read
        self._mutex = threading.Lock()

    # ------------------------------------------------------------ reading

    def of_record(self, record: dict[str, Any]) -> State:
        """The state of a record."""
        write_id = record["manifest"]
        with self._mutex:
            found = self._manifest
        if not write_id:
            found = State()
        elif found is None or found.manifest != write_id:
            found = manifests.read_manifest(self.directory, write_id)
            with self._mutex:
                self._manifest = found
        state = found.copy()
        state.number, state.id, state.time = record["version"], record["id"], record["time"]
        for name, rows in record["rows"].items():
            if name not in state.tables or not isinstance(rows, int) or rows < 0:
                raise _cdd.FormatError(
                    f"{self.directory.name}: version {state.number} has {rows!r} rows of table {name!r}, "
                    "which its manifest does not know"
                )
            state.tables[name].rows = rows
        return state

    def newest(self, known: int = -1) -> State:
        """The newest version; `known` is one that is there."""
        number = self.log.head(self.log.hint() if known < 0 else known)
        while True:
            try:
                return self.of_record(self.log.record(number))
            except _cdd.FormatError:
                newer = self.log.head(number)  # it may have expired, and been pruned, since it was found
                if newer == number:
                    raise
                number = newer

    def find(self, as_of: AsOf) -> State:
        """The state of a version by its number, tag or time. Raises VersionNotFoundError and
        VersionExpiredError."""
        head = self.newest()
        number = self._number_of(as_of, head)
        if number == head.number:
            return head
        self.check_kept(number, head, as_of)
        return self.of_record(self.log.record(number))

    def check_kept(self, number: int, head: State, as_of: AsOf) -> None:
        name = self.directory.name
        if not 0 <= number <= head.number:
            raise VersionNotFoundError(f"{name} has no version {as_of}: the newest is {head.number}")
        if number < head.floor and number not in head.tags.values():
            raise VersionExpiredError(
                f"{name}: version {number} is expired, the first that is kept is {head.floor}",
                number,
                head.floor,
            )

    def _number_of(self, as_of: AsOf, head: State) -> int:
        if isinstance(as_of, str):
            if as_of not in head.tags:
                raise VersionNotFoundError(f"{self.directory.name} has no tag {as_of!r}")
            return head.tags[as_of]
        if hasattr(as_of, "__index__") and not hasattr(as_of, "dtype"):
            return int(as_of.__index__())
        time_ns = _nanoseconds(as_of)
        found = self.log.at_time(time_ns, head.number)
        if found == 0:
            raise VersionNotFoundError(f"{self.directory.name} has no version as old as {as_of}")
        return found

    # ------------------------------------------------------------ committing

    def commit(self, base: State, ops: Sequence[Op], message: str, op: str = "") -> State:
        """Makes a version of `base`, or of what is newer, by these operations. Raises ConflictError where
        others did what forbids one of them, and then nothing is changed."""
        commit_id = secrets.token_hex(8)
        ours: list[str] = []
        state = base
        self.is_uncertain = False
        try:
            while True:
                state = self._catch_up(state, ops)
                new = state.copy()
                self._apply(new, ops, state)
                dropped: list[str] = []
                if any(one.is_structural for one in ops):
                    dropped = dropped_files(state, new)
                    new.manifest = self._new_name()
                    ours = manifests.write_manifest(self.directory, new, new.manifest)
                    dropped += [manifests.manifest_path(state.manifest)] if state.manifest else []
                    dropped += sorted(_pages(state) - _pages(new))
                record = self._record(state, new, ops, message, op, commit_id, dropped)
                if self._known_durable != state.number:
                    self.log.sync()  # what one builds on is durable before what is built
                self.is_uncertain = True
                if self.log.put(record):
                    break
                self.is_uncertain = False
                self._give_up(ours)
                ours = []
        except BaseException:
            if not self.is_uncertain:
                self._give_up(ours)
            raise
        self.is_uncertain = False
        self._known_durable = record["version"]
        new.number, new.id, new.time = record["version"], record["id"], record["time"]
        self._at_leisure(new, bool(ours))
        return new

    def sync_for(self, number: int) -> None:
        """Makes the log durable; `number` is the newest version that was seen."""
        self.log.sync()
        self._known_durable = number

    def _catch_up(self, state: State, ops: Sequence[Op]) -> State:
        head = self.log.head(state.number)
        record = None
        for record in self.log.records(state.number + 1, head, state.id):
            for mine in ops:
                for theirs in record["ops"]:
                    if mine.conflicts(theirs):
                        raise ConflictError(
                            f"{mine.where()}: version {record['version']} ({record['op']}) changed the same "
                            f"since version {state.number}; nothing was committed",
                            record["version"],
                            record["op"],
                        )
        return state if record is None else self.of_record(record)

    def _apply(self, new: State, ops: Sequence[Op], state: State) -> None:
        for one in ops:
            try:
                one.apply(new)
            except KeyError as error:
                raise ConflictError(
                    f"{one.where()}: {error.args[0]} in version {state.number}; nothing was committed",
                    state.number,
                    one.kind,
                ) from None

    def _record(
        self,
        state: State,
        new: State,
        ops: Sequence[Op],
        message: str,
        op: str,
        commit_id: str,
        dropped: list[str],
    ) -> dict[str, Any]:
        return {
            "version": state.number + 1,
            "time": max(time.time_ns(), state.time + 1),
            "id": commit_id,
            "parent": state.id,
            "message": message,
            "op": op or (ops[0].kind if ops else "none"),
            "ops": [one.as_json() for one in ops],
            "rows": {name: table.rows for name, table in new.tables.items()},
            "manifest": new.manifest,
            "dropped": dropped,
        }

    def _new_name(self) -> str:
        """For a manifest: it is garbage once its owner is gone and no version has it."""
        return f"{self.owner.need()}-{next(self._names)}"

    def _give_up(self, ours: list[str]) -> None:
        for path in ours:
            try:
                self.directory.delete(path)
            except OSError:
                return  # prune() finds it

    def _at_leisure(self, new: State, is_structural: bool) -> None:
        """What nothing depends on: a failure here is none of the commit."""
        chores: list[Callable[[], object]] = [lambda: self.log.put_hint(new.number)]
        if is_structural:
            chores.append(lambda: write_for_people(self.directory, new))
        if new.number % logs.PACK == 0:
            chores.append(lambda: self.log.pack(new.number))
        for chore in chores:
            try:
                chore()
            except OSError:
                continue


def _nanoseconds(time_of: Any) -> int:
    import numpy as np

    try:
        when = np.datetime64(time_of)
        number = int(when.astype("datetime64[ns]").astype(np.int64))
    except (TypeError, ValueError):
        raise TypeError(
            f"as_of is a version's number, a tag, or a datetime64, not {type(time_of).__name__}"
        ) from None
    if np.isnat(when):
        raise ValueError("as_of is NaT")
    return number


def _pages(state: State) -> set[str]:
    return {
        manifests.page_path(page[0])
        for table in state.tables.values()
        for column in table.columns.values()
        for page in column.pages
    }
