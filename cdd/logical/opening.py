"""Opening a logical array for reading, wherever its manifest is."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from cdd import arguments
from cdd.logical import repo
from cdd.logical.array import Array, Origin
from cdd.logical.errors import LogicalError
from cdd.logical.extras import enter_icechunk, zarr
from cdd.logical.manifest import Manifest
from cdd.logical.origins import (
    GroupOrigin,
    JsonOrigin,
    find_name,
    home_of,
    members_folder,
    names_below,
    names_in,
    open_group,
)
from cdd.logical.trust import Trust


def open(
    source: Any,
    name: str | None = None,
    *,
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | None = None,
    as_of: datetime | np.datetime64 | None = None,
    members: Mapping[str, Any] | None = None,
    allow: Iterable[str | os.PathLike[str]] = (),
) -> Array:
    """Opens a logical array for reading; cdd.logical.transaction() writes.

    source is one of
        the path of a JSON file, {"cdd:logical": ...}
        the path of an icechunk repository, or an icechunk.Repository or Session
        the path or URL of a zarr store, a zarr store, or a zarr.Group
        a manifest: a cdd.logical.Manifest or a mapping
    name is the array's within a repository or store; it may be left out where there is one only.

    branch="main", tag, snapshot   the version of a repository
    as_of       the branch's version at a time: a datetime or datetime64; without a zone it is UTC
    members     arrays for members of kind "named", by name: NumPy's, or any with shape, dtype and []
    allow       directories and URLs below which paths in the manifest may be opened. Without it only zarr
                arrays of the same group are, and files of the folder beside it that is named as it is, with
                ".members": where transactions put .cdd files

    No member is opened yet. Raises FileNotFoundError where nothing is, ManifestError (with the place in the
    JSON), UnsupportedError for a newer version, LogicalError for a version or name that is not there, and
    ImportError where zarr or icechunk is needed and not installed.
    """
    version = repo.Version(branch, tag, snapshot, as_of)
    version.check()
    named = dict(members or {})
    origin: Origin
    if isinstance(source, Manifest | Mapping):
        return Array(source, members=named)
    if repo.is_repository_object(source):
        origin = repo.RepoOrigin(source, None, name, version, Trust.of(None, allow), named)
    elif isinstance(source, str | os.PathLike) and "://" not in os.fspath(source):
        path = _existing(os.fspath(source))
        if repo.is_repository(path):
            origin = repo.RepoOrigin(None, path, name, version, Trust.of(members_folder(path), allow), named)
        elif Path(path).is_file():
            origin = JsonOrigin(path, Trust.of(members_folder(path), allow), named)
            if name not in (None, origin.name):
                raise LogicalError(f"{path!r} holds the array {origin.name!r}, not {name!r}")
        else:
            origin = _of_group(path, name, path, allow, named)
    else:
        origin = _of_group(source, name, None, allow, named)
    if not isinstance(origin, repo.RepoOrigin):
        _check_no_version(version)
    raw, places, snapshot_id = origin.load()
    return Array(raw, places=places, origin=origin, version=snapshot_id)


def names(
    source: Any,
    *,
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | None = None,
    as_of: datetime | np.datetime64 | None = None,
) -> list[str]:
    """Names of the logical arrays in a repository or store: paths below its root, or below the group that is
    given, in order. That of books.json is "books". Arguments and errors as open()."""
    version = repo.Version(branch, tag, snapshot, as_of)
    version.check()
    if isinstance(source, str | os.PathLike) and "://" not in os.fspath(source):
        source = _existing(os.fspath(source))
    if repo.is_repository_object(source) or (isinstance(source, str) and repo.is_repository(source)):
        session = repo.reading_session(repo.open_repository(source, Trust()), version)
        return names_below(session.store, "")
    _check_no_version(version)
    if isinstance(source, str) and Path(source).is_file():
        return [JsonOrigin(source).name]
    return names_in(_group_of(source))


def _existing(path: str) -> str:
    """The absolute path. FileNotFoundError where nothing is."""
    if not Path(path).exists():
        raise FileNotFoundError(2, "no JSON file, icechunk repository or zarr store", path)
    return str(Path(path).absolute())


def _check_no_version(version: repo.Version) -> None:
    if version != repo.Version():
        raise ValueError("branch, tag, snapshot and as_of are for icechunk repositories")


def _group_of(source: Any) -> Any:
    """The zarr group that was given, or the one at the root of a store."""
    library = zarr()
    if isinstance(source, library.Group):
        group = source
    else:
        store = getattr(source, "store", source)  # a session has one
        if not isinstance(store, str | library.abc.store.Store):
            raise TypeError(
                "a logical array is opened by a path, a URL, a zarr group or store, or an icechunk "
                f"repository, not by {arguments.shown(source)}"
            )
        if hasattr(store, "session"):
            enter_icechunk()
        group = open_group(store, "")
    if hasattr(group.store, "session"):
        enter_icechunk()
    return group


def _of_group(
    source: Any,
    name: str | None,
    path: str | None,
    allow: Iterable[str | os.PathLike[str]],
    named: Mapping[str, Any],
) -> GroupOrigin:
    group = _group_of(source)
    if name is None:
        inner = find_name(group)
    else:
        inner = f"{group.path}/{name}" if group.path else arguments.text("name", name)
    home = home_of(group.store)
    return GroupOrigin(group.store, inner, path, Trust.of(home and members_folder(home), allow), named)
