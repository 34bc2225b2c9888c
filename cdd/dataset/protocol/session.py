"""Versions as states, and the commit that makes a new one. What stands here is the protocol of
docs/formats/dataset.md; the model of it is tests/dataset/model.py.
"""

import itertools
import json
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cdd import _cdd, arguments
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol import log as logs
from cdd.dataset.protocol import manifest as manifests
from cdd.dataset.protocol.directory import Directory
from cdd.dataset.protocol.errors import ConflictError, VersionExpiredError, VersionNotFoundError
from cdd.dataset.protocol.identity import Owner
from cdd.dataset.protocol.ops import Op
from cdd.dataset.protocol.state import State, TableState, files_of, path_of

AsOf = Any  # an int, a Version, a tag, a datetime64 or a datetime


class Session:
    """What one reader or writer knows of a dataset's versions."""

    def __init__(self, directory: Directory, owner: Owner | None = None) -> None:
        self.directory = directory
        self.owner = owner or Owner(directory)
        self.allow: tuple[Path, ...] = ()  # folders below which superchunks may lie that are elsewhere
        self.log = logs.Log(directory)
        self._names = itertools.count(1)
        self._known_durable = -1  # the version that this session committed last, and knows to be durable
        # A commit failed when its record was put: it may be there, and need all that was written for it.
        self.is_uncertain = False
        self._manifest: State | None = None  # the last one that was read
        self._newest: State | None = None  # the newest version that it saw

    # ------------------------------------------------------------ reading

    def of_record(self, record: dict[str, Any]) -> State:
        """The state of a record."""
        write_id = record["manifest"]
        found = self._manifest
        if not write_id:
            found = State()
        elif found is None or found.manifest != write_id:
            found = manifests.read_manifest(self.directory, write_id)
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
                self._newest = self.of_record(self.log.record(number))
                return self._newest
            except _cdd.FormatError:
                newer = self.log.head(number)  # it may have expired, and been pruned, since it was found
                if newer == number:
                    raise
                number = newer

    def latest(self) -> State:
        """newest(), which is read only where there is a newer one than this session saw."""
        seen = self._newest
        if seen is not None and self.log.head(seen.number) == seen.number:
            return seen
        return self.newest(-1 if seen is None else seen.number)

    def check_history(self, state: State) -> None:
        """Raises FormatError where a version that was seen is another one now."""
        found = self.log.record(state.number)["id"]
        if found != state.id:
            raise _cdd.FormatError(
                f"{self.directory.name}: version {state.number} is {found!r} now, it was {state.id!r}"
            )

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
                raise VersionNotFoundError(f"{self.directory.name} has no tag {as_of!r}: texts are tags")
            return head.tags[as_of]
        kind = getattr(getattr(as_of, "dtype", None), "kind", "i")
        if hasattr(as_of, "__index__") and kind in "iu" and not isinstance(as_of, bool):
            return int(as_of.__index__())
        time_ns = _nanoseconds(as_of)
        found = self.log.at_time(time_ns, head.number)
        if found == 0:
            raise VersionNotFoundError(f"{self.directory.name} has no version as old as {as_of}")
        return found

    def versions(self, last: int | None) -> list[logs.Version]:
        """The newest `last` versions that are kept, the newest first; None: all of them."""
        head = self.newest()
        first = max(head.floor, 1)
        kept = [tag for tag in set(head.tags.values()) if tag < first]
        count = head.number - first + 1 if last is None else max(0, min(last, head.number - first + 1))
        numbers = [*range(head.number, head.number - count, -1)]
        more = None if last is None else last - len(numbers)
        return [self.version(n) for n in [*numbers, *sorted(kept, reverse=True)[:more]]]

    def find_bad_records(self) -> list[str]:
        """What is wrong with the records of versions that are kept."""
        found: dict[int, str] = {}
        head = self.newest()
        for number in [*sorted(head.tags.values()), *range(max(head.floor, 1), head.number + 1)]:
            try:
                self.log.record(number)
            except VersionNotFoundError:
                found[number] = f"{self.directory.name}/{logs.record_path(number)} is missing"
            except (_cdd.CddError, OSError) as error:
                found[number] = str(error)
        head = self.newest(head.number) if found else head
        kept = set(head.tags.values())  # others may have been pruned meanwhile
        return [*dict.fromkeys(text for n, text in found.items() if n >= max(head.floor, 1) or n in kept)]

    def version(self, number: int) -> logs.Version:
        """What its record says of a version, which is there."""
        return logs.version_of(self.log.record(number))

    def changes(self, since: AsOf, until: State) -> list[dict[str, Any]]:
        """The operations between two versions, in order, each with the version that it is of."""
        first = self.find(since)
        found: list[dict[str, Any]] = []
        for record in self.log.records(first.number + 1, until.number, first.id):
            found += [{"version": record["version"], **op} for op in record["ops"]]
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
                state = self.catch_up(state, ops)
                new = state.copy()
                self.apply(new, ops, state)
                dropped: list[str] = []
                if any(one.is_structural for one in ops):
                    dropped = dropped_files(state, new)
                    new.manifest = self._new_name()
                    ours = manifests.write_manifest(self.directory, new, new.manifest)
                    dropped += [manifests.manifest_path(state.manifest)] if state.manifest else []
                    dropped += sorted(_pages(state) - _pages(new))
                record = self._record(state, new, ops, message, op, commit_id, dropped)
                self.sync_for(state.number)  # what one builds on is durable before what is built
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
        self._newest = new
        self._at_leisure(new, bool(ours))
        return new

    def sync_for(self, number: int) -> None:
        """Makes the log durable up to `number`, the newest version that was seen."""
        if self._known_durable != number:
            self.log.sync()
            self._known_durable = number

    def catch_up(self, state: State, ops: Sequence[Op]) -> State:
        """The newest version, after `state`. Raises ConflictError where somebody did what forbids one of the
        operations."""
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

    def apply(self, new: State, ops: Sequence[Op], state: State) -> None:
        """Applies operations to `new`, a copy of `state`. Raises ConflictError and DatasetError."""
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
        when = np.datetime64(arguments.without_zone(time_of))
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


def dropped_files(before: State, after: State) -> list[str]:
    """Superchunks that the newer state no longer uses."""
    gone: set[str] = set()
    for name, table in before.tables.items():
        new = after.tables.get(name, TableState()).columns
        for key, column in table.columns.items():
            now = new.get(key)
            if now is column or (now is not None and now.stored is column.stored and now.stored is not None):
                continue
            if now is not None and now.stored is None and column.stored is None and now.pages == column.pages:
                continue
            gone |= files_of(name, key, column) - (files_of(name, key, now) if now is not None else set())
    return sorted(gone)


# ------------------------------------------------------------ for people


def texts(state: State) -> dict[str, str]:
    """What meta/sizes.json, storage.json and attributes.json say of a state, by their names."""
    sizes: dict[str, Any] = {"version": state.number, "tables": {}}
    storage: dict[str, Any] = {"version": state.number, "tables": {}}
    attributes: dict[str, Any] = {"version": state.number, "dataset": state.attrs, "tables": {}}
    for name, table in state.tables.items():
        columns = table.columns.items()
        shapes = {path_of(name, key): [table.rows, *column.row_shape] for key, column in columns}
        sizes["tables"][name] = {"rows": table.rows, "shapes": shapes}
        storage["tables"][name] = {
            "clock": table.clock,
            "order": table.order,
            "columns": {
                path_of(name, key): {
                    "dtype": str(column.dtype),
                    "row_shape": list(column.row_shape),
                    "options": column.options,
                    "superchunks": len(ex.numbers(column.extents)),
                    "extents": len(column.extents),
                }
                for key, column in columns
            },
        }
        own = {path_of(name, key): column.attrs for key, column in columns if column.attrs}
        if table.attrs or own:
            attributes["tables"][name] = {"table": table.attrs, "columns": own}
    made = {"sizes": sizes, "storage": storage, "attributes": attributes}
    return {name: json.dumps(value, indent=1) + "\n" for name, value in made.items()}


def write_for_people(directory: Directory, state: State) -> None:
    """The files that nothing reads, of the last version that changed more than rows."""
    for name, text in texts(state).items():
        directory.put_hint(f"meta/{name}.json", text.encode())
