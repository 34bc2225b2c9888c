"""icechunk: versions of manifest and members as one. The only file that imports it.

icechunk 1.1 and 2.x both work. What is not the same in both is asked for by name, never by version.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np

from cdd import arguments
from cdd.logical.errors import ConflictError, LogicalError
from cdd.logical.extras import enter_icechunk, icechunk
from cdd.logical.members import Places
from cdd.logical.origins import Loaded, find_name, manifest_of, open_group
from cdd.logical.trust import Trust


@dataclass(frozen=True, slots=True)
class Version:
    """Which version of a repository is read: the branch's newest, or one that stays."""

    branch: str | None = None
    tag: str | None = None
    snapshot: str | None = None
    as_of: datetime | np.datetime64 | None = None

    def check(self) -> None:
        stays = [name for name in ("tag", "snapshot", "as_of") if getattr(self, name) is not None]
        if len(stays) > 1 or (self.branch is not None and stays not in ([], ["as_of"])):
            raise ValueError("one of branch=, tag= and snapshot= names a version, as_of= a time of a branch")
        if self.as_of is not None:
            if not isinstance(self.as_of, datetime | np.datetime64):
                raise TypeError(f"as_of is a datetime or datetime64, not {type(self.as_of).__name__}")
            if np.isnat(np.datetime64(arguments.without_zone(self.as_of))):
                raise ValueError("as_of is NaT")


@dataclass(slots=True)
class RepoOrigin:
    """The attribute of a group in a repository, of a branch, a tag, a snapshot or a time."""

    repository: Any  # or None: the one at `path`
    path: str | None
    name: str | None
    version: Version
    trust: Trust = field(default_factory=Trust)
    named: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Loaded:
        enter_icechunk()
        repository = open_repository(self.repository or self.path, self.trust)
        session = reading_session(repository, self.version)
        if self.name is None:
            self.name = find_name(open_group(session.store, ""))
        group = open_group(session.store, self.name)
        places = Places(group, self.trust, self.named, True)
        return manifest_of(group), places, session.snapshot_id


def is_repository(path: str) -> bool:
    """Whether a folder is one of icechunk's."""
    folder = Path(path)
    return (folder / "snapshots").is_dir() and ((folder / "refs").is_dir() or (folder / "repo").exists())


def is_repository_object(where: Any) -> bool:
    return type(where).__module__.partition(".")[0] == "icechunk" and hasattr(where, "readonly_session")


def open_repository(where: Any, trust: Trust, create: bool = False, virtual: bool = False) -> Any:
    """The repository at a path, or the one given. Virtual chunks below what `trust` allows can be read,
    and with `virtual` be made."""
    enter_icechunk()
    if not isinstance(where, str):
        return where
    library = icechunk()
    storage = library.local_filesystem_storage(where)
    if create and not is_repository(where):
        library.Repository.create(storage)
    config = library.Repository.fetch_config(storage) or library.RepositoryConfig.default()
    places = [place if "://" in place else _folder_url(place) for place in trust.allow]
    known = config.virtual_chunk_containers or {}
    allowed = [prefix for prefix in known if any(prefix.startswith(place) for place in places)]
    if virtual:
        for place in places:
            if place.startswith("file://") and place not in known:
                folder = library.local_filesystem_store(str(Path(url2pathname(urlsplit(place).path))))
                config.set_virtual_chunk_container(library.VirtualChunkContainer(place, folder))
                allowed.append(place)
    # 2.x has an object that says "no credentials", 1.1 takes None.
    access = getattr(library.credentials, "LocalFileSystemAccess", None)
    granted = {prefix: access if prefix.startswith("file://") else None for prefix in allowed}
    return library.Repository.open(storage, config=config, authorize_virtual_chunk_access=granted or None)


def _folder_url(path: str) -> str:
    return f"{Path(path).resolve().as_uri()}/"


def container_of(repository: Any, path: str) -> str | None:
    """The prefix of virtual chunks below which a file is; None where there is none."""
    url = Path(path).as_uri()
    prefixes = repository.config.virtual_chunk_containers or {}
    return max((prefix for prefix in prefixes if url.startswith(prefix)), key=len, default=None)


def reading_session(repository: Any, version: Version) -> Any:
    """A session that reads one version. LogicalError where there is none."""
    library = icechunk()
    try:
        if version.tag is not None:
            return repository.readonly_session(tag=version.tag)
        if version.snapshot is not None:
            return repository.readonly_session(snapshot_id=version.snapshot)
        branch = version.branch or "main"
        if version.as_of is None:
            return repository.readonly_session(branch)
        return repository.readonly_session(snapshot_id=_snapshot_at(repository, branch, version.as_of))
    except (library.IcechunkError, ValueError) as error:
        wanted = version.tag or version.snapshot or version.branch or "main"
        raise LogicalError(f"no version {wanted!r} in the repository: {_first_line(error)}") from error


def writing_session(repository: Any, branch: str) -> Any:
    """A session on the newest version of a branch. LogicalError where there is no such branch."""
    library = icechunk()
    try:
        return repository.writable_session(branch)
    except (library.IcechunkError, ValueError) as error:
        raise LogicalError(f"no branch {branch!r} in the repository: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """What icechunk says, without the places in its sources that it lists below."""
    return str(error).strip().partition("\n")[0].removeprefix("x ").strip()


def _snapshot_at(repository: Any, branch: str, time: datetime | np.datetime64) -> str:
    """The branch's last snapshot at a time; without a zone it is UTC, as everywhere in cdd and in NumPy."""
    asked = np.datetime64(arguments.without_zone(time))
    for found in repository.ancestry(branch=branch):
        if np.datetime64(arguments.without_zone(found.written_at), "us") <= asked:
            return str(found.id)
    raise LogicalError(f"the branch {branch!r} has no version as old as {asked} (UTC)")


def commit(session: Any, message: str) -> str:
    """The new snapshot's id. What other commits changed elsewhere is merged; ConflictError for the rest."""
    library = icechunk()
    paths: tuple[str, ...] = ()
    try:
        return str(session.commit(message, rebase_with=library.ConflictDetector()))
    except library.RebaseFailedError as error:
        paths = tuple(sorted({str(conflict.path) for conflict in error.conflicts}))
        text = f"came first and changed the same: {', '.join(paths)}"
    except library.ConflictError as error:
        text = f"came first: {error}"
    # Not from theirs, which cannot be pickled: where distributed is imported, causes are pickled, too.
    raise ConflictError(f"another commit to the branch {session.branch!r} {text}", paths)


def lock_path(where: Any) -> str | None:
    """The file whose lock serialises commits to a repository on a local file system."""
    if isinstance(where, str | os.PathLike):
        return f"{Path(where).resolve()}.cdd-lock"
    return None
