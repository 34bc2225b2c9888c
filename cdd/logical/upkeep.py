"""What is wrong with logical arrays as a whole, and what no manifest needs any more."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from cdd.logical import repo
from cdd.logical.array import Array
from cdd.logical.backends import Backend, JsonBackend, RepoBackend, StoreBackend, backend_of
from cdd.logical.checking import LogicalReport, Progress, open_all
from cdd.logical.manifest import Manifest, read
from cdd.logical.opening import open
from cdd.logical.origins import home_of, leftovers_passed_over, manifest_of, names_below, open_group

_OWN_NAME = re.compile("m[0-9a-f]{16}")  # as adding.new_name() makes them


def check(
    source: Any,
    name: str | None = None,
    *,
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | None = None,
    as_of: datetime | np.datetime64 | None = None,
    members: Any = None,
    allow: Iterable[str | os.PathLike[str]] = (),
) -> LogicalReport:
    """Opens every member, reads none; lists arrays and files that no manifest names. Arguments as open()."""
    version = {"branch": branch, "tag": tag, "snapshot": snapshot, "as_of": as_of}
    array = open(source, name, members=members, allow=allow, **version)  # type: ignore[arg-type]
    with array:
        report = LogicalReport(array.path, array.name)
        open_all(array._reading, report)
        report.orphans = _orphans(array)
        return report


def verify(
    source: Any, name: str | None = None, progress: Progress | None = None, **how: Any
) -> LogicalReport:
    """check(), and reads every element, with each member's own checks and against the digests of members that
    lie elsewhere. progress(done, total) is told regions. Further arguments as open()."""
    with open(source, name, **how) as array:
        report = array.verify(progress)
        report.orphans = _orphans(array)
        return report


# ------------------------------------------------------------ orphans


def _orphans(array: Array) -> list[str]:
    """Arrays of the group that its manifest does not name; files of the folder that no version names."""
    found = []
    group = array._reading.places.group
    if group is not None:
        found = [f"{group.path}/{name}" for name in _unnamed_arrays(group, array.manifest)]
    home = array._reading.places.trust.home
    origin = array._origin
    if home is not None and origin is not None and Path(home).is_dir():
        kept = {member.path for member in array.manifest.members}
        if isinstance(origin, repo.RepoOrigin):
            kept |= _files_of_versions(repo.open_repository(origin.repository or origin.path, origin.trust))
        elif group is not None:
            kept |= _files_of_store(group.store)
        found += [str(path) for path in _unnamed_files(home, kept)]
    return found


def _unnamed_arrays(group: Any, manifest: Manifest) -> list[str]:
    used = {member.path for member in manifest.members if member.kind == "zarr"}
    with leftovers_passed_over():
        names = {name for name, _ in group.arrays()}
    folder = _folder_of(group)
    if folder is not None:
        names |= {path.name for path in folder.iterdir() if _OWN_NAME.fullmatch(path.name)}
    return sorted(names - used)


def _folder_of(group: Any) -> Path | None:
    """The group's folder, where its store is on a local disk."""
    home = home_of(group.store)
    return None if home is None else Path(home, group.path)


def _unnamed_files(home: str, kept: set[str]) -> Iterator[Path]:
    for path in sorted(Path(home).glob("*.cdd")):
        if path.name not in kept:
            yield path


def _files_of_store(store: Any) -> set[str]:
    """The paths that the manifests of one state of a store name."""
    kept = set()
    for name in names_below(store, ""):
        manifest = read(manifest_of(open_group(store, name)))
        kept |= {member.path for member in manifest.members}
    return kept


def _files_of_versions(repository: Any) -> set[str]:
    """The paths that any version names which a branch or tag leads to."""
    kept: set[str] = set()
    seen: set[str] = set()
    ends = [{"branch": name} for name in repository.list_branches()]
    ends += [{"tag": name} for name in repository.list_tags()]
    for end in ends:
        for snapshot in repository.ancestry(**end):
            if snapshot.id in seen:
                break
            seen.add(snapshot.id)
            kept |= _files_of_store(repository.readonly_session(snapshot_id=snapshot.id).store)
    return kept


def prune(
    where: Any,
    *,
    branch: str = "main",
    allow: Iterable[str | os.PathLike[str]] = (),
    lock: bool | str | os.PathLike[str] | None = None,
) -> list[str]:
    """Deletes what check() calls orphans; returns their names.

    They are zarr arrays beside the members of an array, which killed writers left or replace() let go, and
    .cdd files in the folder of members that no version of a branch or tag names. Not to be called between
    the two commits of append(two_commits=True). Older versions of a repository keep their arrays.
    """
    backend = backend_of(where, branch, False, allow, lock)
    gone: list[str] = []
    try:
        kept: set[str] = set()
        for name in backend.names():
            manifest = read(backend.load(name))
            kept |= {member.path for member in manifest.members}
            if not isinstance(backend, JsonBackend):
                gone += _delete_arrays(backend, name, manifest)
        if isinstance(backend, RepoBackend):
            kept |= _files_of_versions(backend.repository)
        elif isinstance(
            backend, StoreBackend
        ):  # other groups of the store have their files in the same folder
            kept |= _files_of_store(backend.zarr_store)
        backend.commit("prune")
        home = backend.trust.home
        if home is not None and Path(home).is_dir():
            for path in _unnamed_files(home, kept):
                path.unlink()
                gone.append(str(path))
    finally:
        backend.close()
    return gone


def _delete_arrays(backend: Backend, name: str, manifest: Manifest) -> list[str]:
    group = backend.places(name).group
    names = _unnamed_arrays(group, manifest)
    for unnamed in names:
        try:
            del group[unnamed]
        except KeyError:  # no array yet: what a killed writer had begun
            folder = _folder_of(group)
            if folder is not None:
                shutil.rmtree(folder / unnamed)
    return [f"{group.path}/{unnamed}" for unnamed in names]
