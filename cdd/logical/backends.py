"""Where manifests and members are written, and what a commit is there.

    JsonBackend     a file, replaced as a whole; members are .cdd files and whatever is somewhere else
    StoreBackend    a plain zarr store: members are written at once, the manifest at the commit
    RepoBackend     an icechunk repository: members and manifest are one version

Each holds the lock of its place, where that is a path, from open() to the end.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from cdd import _cdd, manifests
from cdd.logical import repo
from cdd.logical.errors import ConflictError, LogicalError
from cdd.logical.extras import enter_icechunk, zarr
from cdd.logical.manifest import ATTRIBUTE
from cdd.logical.members import Places
from cdd.logical.origins import home_of, manifest_of, members_folder, names_below, open_group, read_json
from cdd.logical.trust import Trust

FORMAT = {"zarr_format": 3}
TakeBack = Callable[[], object]  # deletes what was made


class Backend(Protocol):
    """What a transaction needs of a place."""

    trust: Trust
    keeps_versions: bool  # whether older versions still name members that this commit does not
    may_be_seen: bool  # whether readers may see something of the commit, though it raised

    def names(self) -> list[str]: ...
    def load(self, name: str) -> Any: ...
    def places(self, name: str) -> Places: ...
    def create(self, name: str) -> TakeBack | None: ...
    def store(self, name: str, raw: Any) -> None: ...
    def remove(self, name: str) -> None: ...
    def commit(self, message: str) -> str | None: ...
    def close(self) -> None: ...


class Underway:
    """A transaction while its block runs: its place, and what it made there that no manifest names yet."""

    def __init__(self, backend: Backend) -> None:
        self._backend: Backend | None = backend
        self._made: list[TakeBack] = []

    @property
    def backend(self) -> Backend:
        """ValueError once the block is left."""
        if self._backend is None:
            raise ValueError("the transaction is not under way: it is used within its `with` block")
        return self._backend

    def made(self, take_back: TakeBack) -> None:
        """take_back() deletes what was made just now."""
        self._made.append(take_back)

    def keep(self) -> None:
        """What was made stays, though no manifest names it yet."""
        self._made.clear()

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Where the block raises, what was made in it is deleted: the program may catch that and go on."""
        before = len(self._made)
        try:
            yield
        except BaseException:
            self._delete(before)
            raise

    def discard(self) -> None:
        """Deletes what was made, though it would be in nobody's way and prune() would do it. But what a
        manifest may name by now stays."""
        if not self.backend.may_be_seen:
            self._delete(0)

    def _delete(self, first: int) -> None:
        while len(self._made) > first:
            with suppress(Exception):
                self._made.pop()()

    def end(self) -> None:
        self.backend.close()
        self._backend = None


def backend_of(
    where: Any, branch: str, create: bool, allow: Iterable[str | os.PathLike[str]], lock: Any
) -> Backend:
    """The backend of what a transaction was given, open."""
    if repo.is_repository_object(where):
        return RepoBackend(where, None, branch, Trust.of(None, allow), lock)
    if isinstance(where, str | os.PathLike) and "://" not in os.fspath(where):
        path = str(Path(where).absolute())
        trust = Trust.of(members_folder(path), allow)
        if path.endswith(".json") or Path(path).is_file():
            return JsonBackend(path, create, trust, lock)
        if repo.is_repository(path) or not Path(path).exists():
            if not create and not Path(path).exists():
                raise FileNotFoundError(2, "no repository (create=True makes one)", path)
            return RepoBackend(path, path, branch, trust, lock, create)
        if create and not any(Path(path).iterdir()):
            return RepoBackend(path, path, branch, trust, lock, create)
    return StoreBackend(where, branch, allow, lock, create)


def _enter_lock(held: ExitStack, lock: Any, path: str | None) -> None:
    """Takes the lock on `path`, on the path that the program names, or (lock=False) none."""
    if lock is not None and not isinstance(lock, bool):
        path = os.fspath(lock)
    if path is not None and lock is not False:
        held.enter_context(_locked(path))


_owners: dict[str, int] = {}  # the thread that has the lock on a path


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Holds the lock on a file, as soon as nobody else has it: no thread and no process."""
    path = str(Path(path).resolve())
    thread = threading.get_ident()
    if _owners.get(path) == thread:
        raise LogicalError(
            f"this thread is within a transaction already: it would wait for itself, for {path!r}"
        )
    with _lock(path):
        _owners[path] = thread
        try:
            yield
        finally:
            del _owners[path]


def _lock(path: str) -> _cdd.Lock:
    pause = 0.001
    while True:
        try:
            return _cdd.Lock(path)
        except BlockingIOError:
            time.sleep(random.uniform(pause / 2, pause))
            pause = min(2 * pause, 0.02)


class JsonBackend:
    """One array in a JSON file; its name is the file's, without the suffix."""

    keeps_versions = False
    may_be_seen = False

    def __init__(self, path: str, create: bool, trust: Trust, lock: Any) -> None:
        self.path, self.trust = path, trust
        self._name = Path(path).stem
        self._raw: Any = None
        self._held = ExitStack()
        if not create and not Path(path).exists():
            raise FileNotFoundError(2, "no JSON file (create=True makes one)", path)
        _enter_lock(self._held, lock, f"{path}.cdd-lock")

    def names(self) -> list[str]:
        return [self._name] if Path(self.path).exists() else []

    def load(self, name: str) -> Any:
        if name not in self.names():
            raise LogicalError(f"{self.path!r} holds the array {self._name!r}, not {name!r}")
        return read_json(self.path)

    def places(self, name: str) -> Places:
        return Places(None, self.trust)

    def create(self, name: str) -> None:
        if name != self._name:
            raise LogicalError(f"the array of {self.path!r} has the name {self._name!r}, not {name!r}")

    def store(self, name: str, raw: Any) -> None:
        self._raw = raw

    def remove(self, name: str) -> None:
        raise LogicalError(f"{self.path!r} is its only array: delete the file")

    def commit(self, message: str) -> None:
        if self._raw is not None:
            data = manifests.text_of({ATTRIBUTE: self._raw}).encode() + b"\n"
            self.may_be_seen = True
            _cdd.publish(self.path, data, True)

    def close(self) -> None:
        self._held.close()


class _Groups:
    """Manifests in the attributes of groups of one zarr store."""

    def __init__(self, store: Any, base: str, trust: Trust, icechunk: bool) -> None:
        self.trust = trust
        self.zarr_store, self._base, self._icechunk = store, base, icechunk

    def _path(self, name: str) -> str:
        return f"{self._base}/{name}" if self._base else name

    def _group(self, name: str) -> Any:
        return open_group(self.zarr_store, self._path(name), "r+")

    def names(self) -> list[str]:
        return names_below(self.zarr_store, self._base)

    def load(self, name: str) -> Any:
        return manifest_of(self._group(name))

    def places(self, name: str) -> Places:
        return Places(self._group(name), self.trust, {}, self._icechunk)

    def create(self, name: str) -> TakeBack | None:
        library = zarr()
        try:
            library.create_group(self.zarr_store, path=self._path(name), **FORMAT)
        except library.errors.ContainsGroupError:  # of arrays, say, that are to be its members
            return None
        except library.errors.BaseZarrError as error:
            raise LogicalError(f"{name!r} cannot be created: {error}") from error
        return lambda: _Groups.remove(self, name)

    def store(self, name: str, raw: Any) -> None:
        # Each Group holds a copy of its attributes: one that is stale would drop others' keys.
        self._group(name).update_attributes({ATTRIBUTE: raw})

    def remove(self, name: str) -> None:
        parent, _, last = self._path(name).rpartition("/")
        del open_group(self.zarr_store, parent, "r+")[last]


class RepoBackend(_Groups):
    """A session of an icechunk repository."""

    keeps_versions = True
    may_be_seen = False

    def __init__(
        self, where: Any, path: str | None, branch: str, trust: Trust, lock: Any, create: bool = False
    ) -> None:
        enter_icechunk()
        self._held = ExitStack()
        _enter_lock(self._held, lock, path and repo.lock_path(path))
        try:
            self.repository = repo.open_repository(where, trust, create, virtual=True)
            self._session = repo.writing_session(self.repository, branch)
        except BaseException:
            self._held.close()
            raise
        super().__init__(self._session.store, "", trust, True)
        self.saves_config = False  # whether virtual references were made, whose folders it names

    def commit(self, message: str) -> str:
        if self.saves_config:
            self.repository.save_config()
        if not self._session.has_uncommitted_changes:
            return str(self._session.snapshot_id)
        self.may_be_seen = True  # an error may come after the version was made
        try:
            return repo.commit(self._session, message)
        except ConflictError:
            self.may_be_seen = False
            raise

    def close(self) -> None:
        self._held.close()


def _root_group(where: Any, create: bool) -> Any:
    """The group at the root of a zarr store; made in a store that the program has made, or with `create`."""
    library = zarr()
    is_place = isinstance(where, str | os.PathLike)
    try:
        return library.open_group(where, mode="r+" if is_place and not create else "a")
    except (FileNotFoundError, library.errors.BaseZarrError) as error:
        text = "no zarr group (create=True makes one)"
        raise FileNotFoundError(2, text, os.fspath(where)) from error


class StoreBackend(_Groups):
    """A zarr store, or a group of one, without versions."""

    keeps_versions = False
    may_be_seen = False

    def __init__(
        self, where: Any, branch: str, allow: Iterable[str | os.PathLike[str]], lock: Any, create: bool
    ) -> None:
        if branch != "main":
            raise ValueError("a branch is of an icechunk repository")
        group = where if isinstance(where, zarr().Group) else _root_group(where, create)
        if hasattr(group.store, "session"):
            raise TypeError("a session's group commits by itself: give the repository to transaction()")
        home = home_of(group.store)
        self._held = ExitStack()
        _enter_lock(self._held, lock, home and f"{home.rstrip('/')}.cdd-lock")
        trust = Trust.of(home and members_folder(home), allow)
        super().__init__(group.store, group.path, trust, False)
        self._waiting: dict[str, Any] = {}
        self._removed: set[str] = set()

    def names(self) -> list[str]:
        return [name for name in super().names() if name not in self._removed]

    def load(self, name: str) -> Any:
        if name in self._removed:
            raise LogicalError(f"{name!r} was removed in this transaction")
        return super().load(name)

    def create(self, name: str) -> TakeBack | None:
        take_back = super().create(name)
        self._removed.discard(name)
        return take_back

    def store(self, name: str, raw: Any) -> None:
        self._waiting[name] = raw

    def remove(self, name: str) -> None:
        self._removed.add(name)

    def commit(self, message: str) -> None:
        self.may_be_seen = True
        for name, raw in self._waiting.items():
            super().store(name, raw)
        for name in self._removed:
            super().remove(name)

    def close(self) -> None:
        self._held.close()
