"""Where manifests are stored for reading: a JSON file, or the attributes of a zarr group.

An origin can look again: load() gives the manifest as it is now. repo.py has the one of icechunk.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdd import manifests
from cdd.logical.errors import LogicalError, ManifestError
from cdd.logical.extras import check_fork, zarr
from cdd.logical.manifest import ATTRIBUTE, MAX_BYTES
from cdd.logical.members import Places
from cdd.logical.trust import Trust

Loaded = tuple[Any, Places, str | None]  # the manifest's JSON, where members are, the version


@dataclass(slots=True)
class JsonOrigin:
    """{"cdd:logical": manifest} in a file."""

    path: str
    trust: Trust = field(default_factory=Trust)
    named: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file's, without the suffix."""
        return Path(self.path).stem

    def load(self) -> Loaded:
        return read_json(self.path), Places(None, self.trust, self.named), None


def read_json(path: str) -> Any:
    """The manifest of a file, decoded."""
    with Path(path).open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    whole = manifests.parse(data, repr(path), MAX_BYTES, ManifestError)
    return whole.object((ATTRIBUTE,))[ATTRIBUTE].value


@dataclass(slots=True)
class GroupOrigin:
    """The attribute of a zarr group in any store."""

    store: Any
    name: str  # of the group within the store
    path: str | None = None
    trust: Trust = field(default_factory=Trust)
    named: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Loaded:
        session = getattr(self.store, "session", None)
        if session is not None:
            check_fork()
        group = open_group(self.store, self.name)
        version = None if session is None else session.snapshot_id
        return manifest_of(group), Places(group, self.trust, self.named, session is not None), version


def open_group(store: Any, name: str, mode: str = "r") -> Any:
    """A group of a store. LogicalError where there is none."""
    library = zarr()
    try:
        return library.open_group(store, path=name, mode=mode)
    except library.errors.BaseZarrError as error:
        place = "the repository" if hasattr(store, "session") else store
        wanted = f"array {name!r} in {place}: no zarr group of this path" if name else f"arrays in {place}"
        raise LogicalError(f"no logical {wanted}") from error
    except json.JSONDecodeError as error:
        raise LogicalError(f"{store}: the zarr.json of {name or 'its root'!r} is no JSON: {error}") from error


def manifest_of(group: Any) -> Any:
    """The manifest's JSON in a group's attributes. LogicalError where there is none."""
    attributes = group.attrs.asdict()
    if ATTRIBUTE not in attributes:
        raise LogicalError(f"the group {group.path!r} has no attribute {ATTRIBUTE!r}: it is no logical array")
    return attributes[ATTRIBUTE]


def find_name(group: Any) -> str:
    """The name of the logical array that a group is or holds, where there is one only."""
    if ATTRIBUTE in group.attrs.asdict():
        return str(group.path)
    names = names_in(group)
    if len(names) != 1:
        found = f"it holds {', '.join(map(repr, names))}: name one" if names else "it holds none"
        raise LogicalError(f"the group {group.path!r} of {group.store} is no logical array, and {found}")
    return f"{group.path}/{names[0]}" if group.path else names[0]


def names_below(store: Any, base: str) -> list[str]:
    """Names of the logical arrays in a group of a store; none where there is no group yet, as in a
    repository to which nothing was committed."""
    library = zarr()
    try:
        group = library.open_group(store, path=base, mode="r")
    except (FileNotFoundError, library.errors.BaseZarrError):
        return []
    return names_in(group)


@contextmanager
def leftovers_passed_over() -> Iterator[None]:
    """Without zarr's warnings of files that a killed writer left among a group's arrays."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Object at .* is not recognized")
        yield


def names_in(group: Any) -> list[str]:
    """Names of the groups within a group, at any depth, that are logical arrays."""
    names = []
    with leftovers_passed_over():
        groups = list(group.groups())
    for name, inner in groups:
        if ATTRIBUTE in inner.attrs.asdict():
            names.append(name)
        else:
            names += [f"{name}/{further}" for further in names_in(inner)]
    return sorted(names)


def members_folder(path: str) -> str:
    """Where .cdd members of a repository, store or JSON file are made: beside it, with its name."""
    return f"{path.rstrip('/')}.members"


def home_of(store: Any) -> str | None:
    """The folder of a zarr store on a local disk."""
    root = getattr(store, "root", None)
    return str(root) if isinstance(root, Path) else None
