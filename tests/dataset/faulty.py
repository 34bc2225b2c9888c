"""Directories that fail at their k-th call, and that keep what a process leaves which stops at any call;
what must be in a dataset, and operations on one that say so while they are at it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np

import cdd
import cdd.dataset as datasets

Content = dict[str, Any]  # arrays, and lists of texts, by the names of columns; "tags" and "attrs", dicts

_names = count()


class Known:
    """`now` was acknowledged; `then` is what is being made, and may be there, too. Contents are replaced, and
    never changed."""

    def __init__(self, now: Content | None = None, then: Content | None = None, version: int = 0) -> None:
        self.now: Content = {"tags": {}, "attrs": {}} if now is None else now
        self.then = then
        self.version = version
        self.moving = threading.Lock()  # held where contents are replaced: a compactor's thread may look

    def copy(self) -> "Known":
        return Known(self.now, self.then, self.version)

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Known)
        return self.now is other.now and self.then is other.then and self.version == other.version

    __hash__ = None  # type: ignore[assignment]

    @contextmanager
    def becomes(self, **columns: Any) -> Iterator[None]:
        """These columns are made meanwhile; None takes one away."""
        new = {**self.now, **{name.replace("__", "/"): rows for name, rows in columns.items()}}
        then = {name: rows for name, rows in new.items() if rows is not None}
        with self.moving:
            self.then = then
        yield
        with self.moving:
            self.now, self.then = then, None

    def check(self, directory: datasets.Directory) -> None:
        """Columns are what they must be, whole; versions are there."""
        ds = datasets.open(directory)
        found: Content = {"tags": ds.tags, "attrs": dict(ds.attrs)}
        for table in ds.tables:
            view = ds[table] if table else ds
            for name in view.columns if len(view) else ():  # a table is made before its rows
                column = view[name]
                found[column.name] = column.text() if column.is_text else column[:]
        if self.then is not None and same(found, self.then):
            self.now = self.then
        self.then = None
        assert same(found, self.now), (found, self.now)
        assert ds.verify().ok
        assert ds.version.number >= self.version
        self.version = ds.version.number


def same(a: Content, b: Content) -> bool:
    return a.keys() == b.keys() and all(
        np.array_equal(a[name], b[name]) if isinstance(a[name], np.ndarray) else a[name] == b[name]
        for name in a
    )


# ------------------------------------------------------------ directories

Calls = Callable[..., Any]

NAMES = ("read", "put_if_absent", "put", "list", "delete", "size", "sync", "store", "new_store", "lock")


class Faulty(datasets.MemoryDirectory):
    """Counts calls; call number `at` raises OSError, before or after what the call does."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.at = -1
        self.after = False

    def around(self, call: Calls) -> Any:
        self.calls += 1
        if self.calls != self.at:
            return call()
        if self.after:
            call()
        raise OSError(28, "No space left on device")

    def heal(self) -> None:
        """The process is gone: its locks are free, and nothing fails any more."""
        self.at = -1
        self._locks.clear()


@dataclass
class Left:
    """What a process that stopped leaves: the bytes of each file, whether it is a store, and what is known to
    be there."""

    files: dict[str, tuple[bytes, bool]]
    known: Known

    def to(self, directory: datasets.MemoryDirectory) -> Known:
        """Puts it there, with no locks. Returns a copy of what is known."""
        directory._files = {
            path: cdd.Memory(data) if is_store else data for path, (data, is_store) in self.files.items()
        }
        return self.known.copy()


class Recorded(datasets.MemoryDirectory):
    """Keeps what a process leaves that stops before any call, or at the end: once where calls change
    nothing. A stopped process does nothing more, so that is what is there at that moment."""

    def __init__(self) -> None:
        super().__init__()
        self.places = 0
        self.left: list[Left] = []
        self.known: Known | None = None

    def record(self, known: Known) -> None:
        """From now on; `known` is what is told of the process meanwhile."""
        self.known, self.places, self.left = known, 0, []

    def note(self) -> None:
        """A place at which a process may stop."""
        if self.known is None:
            return
        with self.known.moving, self._mutex:
            self.places += 1
            known = self.known.copy()
            files = {path: (bytes(file), not isinstance(file, bytes)) for path, file in self._files.items()}
            if not self.left or self.left[-1].files != files or self.left[-1].known != known:
                self.left.append(Left(files, known))

    def around(self, call: Calls) -> Any:
        self.note()
        return call()


def _wrapped(name: str) -> Calls:
    def wrapped(self: Any, *arguments: Any) -> Any:
        return self.around(lambda: getattr(datasets.MemoryDirectory, name)(self, *arguments))

    return wrapped


for _name in NAMES:
    setattr(Faulty, _name, _wrapped(_name))
    setattr(Recorded, _name, _wrapped(_name))


# ------------------------------------------------------------ operations


def _rows(known: Known, count: int) -> Content:
    have = len(known.now.get("time", ()))
    first = int(known.now["time"][-1]) + 1 if have else 0
    times = np.arange(first, first + count)
    rows = {"time": times, "x": times * 2, "venue": [f"venue {t // 7 % 9}" for t in times]}
    more = {"y": np.full(count, 5.0), "z": np.full(count, 5.0), "s": ["b"] * count}
    return rows | {name: values for name, values in more.items() if name in known.now}


def _joined(known: Known, rows: Content) -> Content:
    if "time" not in known.now:
        return rows
    old = known.now
    return {
        name: old[name] + new if isinstance(new, list) else np.concatenate((old[name], new))
        for name, new in rows.items()
    }


def make(directory: datasets.Directory, known: Known) -> None:
    with datasets.open(directory, "w") as w:
        rows = _rows(known, 20)
        with known.becomes(**rows):
            w.append(rows)
            known.version = int(w.commit("made"))


def append(directory: datasets.Directory, known: Known) -> None:
    w = datasets.open(directory, "a")
    try:
        for count in (10, 3):
            rows = _rows(known, count)
            with known.becomes(**_joined(known, rows)):
                w.append(rows)
                w.flush()
        known.version = int(w.commit("appended"))
    finally:
        w._let_go()


def roll(directory: datasets.Directory, known: Known) -> None:
    """Appends that fill several superchunks, which a compactor joins."""
    with datasets.open(directory, "a", superchunk_bytes=6000, tail_bytes=1000) as w:
        for count in (40, 300, 40):
            rows = _rows(known, count)
            with known.becomes(**_joined(known, rows)):
                w.append(rows)
                w.flush()
        known.version = int(w.commit("rolled"))


def trades(directory: datasets.Directory, known: Known) -> None:
    """Another table, made where there is none."""
    old = known.now.get("trades/time", np.empty(0, np.int64))
    with datasets.open(directory, "a") as w:
        new = np.arange(len(old), len(old) + 5)
        every = np.concatenate((old, new))
        with known.becomes(trades__time=every, trades__size=every * 3.0):
            w["trades"].append(time=new, size=new * 3.0)
            known.version = int(w.commit())


def modify(directory: datasets.Directory, known: Known) -> None:
    x, venue = known.now["x"].copy(), list(known.now["venue"])
    x[[3, 5, 6]] = -next(_names)
    venue[2] = f"new {next(_names)}"
    with known.becomes(x=x, venue=venue), datasets.transaction(directory, "modified") as t:
        t["x"][3] = x[3]
        t["x"][5:7] = x[5]
        t["venue"][2] = venue[2]


def columns(directory: datasets.Directory, known: Known) -> None:
    """Adds, renames and drops columns, each of those that are not there yet or not any more."""
    rows = len(known.now["time"])
    if not {"y", "z", "s"} & known.now.keys():
        with known.becomes(y=np.full(rows, 7.0), s=["a"] * rows), datasets.transaction(directory) as t:
            t.add_column("y", fill=7.0)
            t.add_column("s", ["a"] * rows)
    if "y" in known.now:
        with known.becomes(y=None, z=known.now["y"]), datasets.transaction(directory) as t:
            t.rename_column("y", "z")
    for name in sorted({"z", "s"} & known.now.keys()):
        with known.becomes(**{name: None}), datasets.transaction(directory) as t:
            t.drop_column(name)


def cut(directory: datasets.Directory, known: Known) -> None:
    if len(known.now["time"]) < 12:  # cut three times in a row
        append(directory, known)
    names = [name for name in known.now if name not in ("tags", "attrs") and "/" not in name]
    rows = len(known.now["time"])

    def kept(*parts: slice) -> Content:
        found = {}
        for name in names:
            old = known.now[name]
            pieces = [old[part] for part in parts]
            found[name] = list(chain(*pieces)) if isinstance(old, list) else np.concatenate(pieces)
        return found

    with known.becomes(**kept(slice(0, 8), slice(10, rows))), datasets.transaction(directory) as t:
        t.delete(8, 10)
    with known.becomes(**kept(slice(0, max(12, rows // 2)))), datasets.transaction(directory) as t:
        t.trim(min(max(12, rows // 2), rows - 2))


def plain(directory: datasets.Directory, known: Known) -> None:
    """A table without a clock, resized."""
    old = known.now.get("plain/p", np.empty(0, np.int32))
    if not len(old):
        old = np.arange(4, dtype=np.int32)
        with known.becomes(plain__p=old), datasets.open(directory, "a", clock={"plain": None}) as w:
            w["plain"].append(p=old)
    new = np.concatenate((old, np.full(3, 9, np.int32)))
    with known.becomes(plain__p=new), datasets.transaction(directory) as t:
        t["plain"].resize(len(new), fill=9)


def words(directory: datasets.Directory, known: Known) -> None:
    """Tags and attributes."""
    name = f"tag{next(_names)}"
    with known.becomes(tags={**known.now["tags"], name: known.version}):
        datasets.tag(directory, name, known.version)
    with known.becomes(attrs={"note": name}), datasets.transaction(directory) as t:
        t.attrs["note"] = name
    with known.becomes(tags={}), datasets.transaction(directory) as t:
        for old in known.now["tags"]:
            t.untag(old)


def tidy(directory: datasets.Directory, known: Known) -> None:
    datasets.expire(directory, keep=1)
    datasets.prune(directory, orphans=True)
    with datasets.transaction(directory) as t:
        t.compact()
    datasets.prune(directory)


Step = Callable[[Any, Known], None]
STEPS: dict[str, Step] = {
    "append": append, "roll": roll, "trades": trades, "modify": modify, "columns": columns, "cut": cut,
    "plain": plain, "words": words, "tidy": tidy,
}  # fmt: skip
