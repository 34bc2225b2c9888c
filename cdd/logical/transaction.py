"""Transactions: what is changed in one is seen by readers when it ends, all of it or nothing."""

import os
import random
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self, Unpack

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.attrs import encoded
from cdd.dtypes import code_of, named
from cdd.logical.adding import Storing
from cdd.logical.backends import Underway, backend_of
from cdd.logical.errors import ConflictError, ForkError, LogicalError
from cdd.logical.manifest import Manifest, checked_json, read
from cdd.logical.writing import WritableArray


def transaction(
    where: Any,
    message: str = "",
    *,
    branch: str = "main",
    create: bool = False,
    allow: Iterable[str | os.PathLike[str]] = (),
    lock: bool | str | os.PathLike[str] | None = None,
) -> "Transaction":
    """Changes logical arrays: all that is done in the block is one commit, and nothing where it raises.

        with cdd.logical.transaction("repo", "November") as t:
            t["books"].append(rows, codec={"compressors": ZstdCodec(level=9)})

    where is one of
        the path of an icechunk repository (create=True makes one), or an icechunk.Repository: a version of
        manifests and members
        the path of a JSON file (create=True): one array, of .cdd files and what lies elsewhere
        a zarr store, the path or URL of one that is there, or a zarr.Group: members are written at once, the
        manifest at the end, so that readers see what append() adds whole or not at all. There are no older
        versions, and values that are written into a region are seen at once

    message     of the commit
    branch      of a repository
    allow       as for cdd.logical.open(); also for members that append_member() names
    lock        a path: its file is locked from the block's beginning to its end. By default that is
                "<where>.cdd-lock" where `where` is a path: a local file system loses commits of icechunk that
                happen at once. False: no lock. Programs that commit without it are not held back

    Leaving the block raises ConflictError where another commit changed the same; what it changed elsewhere is
    merged. cdd.logical.append() tries again by itself.
    """
    arguments.text("message", message)
    return Transaction(where, message, branch, create, allow, lock)


class Transaction:
    """Changes to come: t["books"] is an array, t.create() makes one. See transaction()."""

    def __init__(
        self,
        where: Any,
        message: str,
        branch: str,
        create: bool,
        allow: Iterable[str | os.PathLike[str]],
        lock: Any,
    ) -> None:
        self._how = (
            where,
            branch,
            create,
            tuple([allow] if isinstance(allow, str | os.PathLike) else allow),
            lock,
        )
        self._message = message
        self._underway: Underway | None = None
        self._was_used = False
        self._process = 0  # that began it
        self._arrays: dict[str, WritableArray] = {}
        self.version: str | None = None
        """The snapshot that the commit made, in a repository."""

    @property
    def _running(self) -> Underway:
        if self._underway is None:
            raise ValueError("the transaction is not under way: it is used within its `with` block")
        return self._underway

    def __enter__(self) -> Self:
        if self._was_used:
            raise ValueError("a transaction is used once")
        self._underway = Underway(backend_of(*self._how))
        self._process = os.getpid()
        self._was_used = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        underway = self._running
        self._underway = None
        if os.getpid() != self._process:  # what was made, and the lock, are the parent's
            if kind is None:
                raise ForkError(
                    "a transaction is committed by the process that began it, not by a forked child"
                )
            return
        try:
            if kind is None:
                self._commit(underway)
            else:
                underway.discard()
        finally:
            for array in self._arrays.values():
                array.close()
            underway.end()

    def _commit(self, underway: Underway) -> None:
        try:
            changed = {name: array.manifest for name, array in self._arrays.items() if array.changed}
            for name, raw in [(name, checked_json(manifest)) for name, manifest in changed.items()]:
                underway.backend.store(name, raw)
            self.version = underway.backend.commit(self._message)
        except BaseException:
            underway.discard()
            raise

    # ------------------------------------------------------------ arrays

    def names(self) -> list[str]:
        """Of the logical arrays that are there."""
        return sorted({*self._running.backend.names(), *self._arrays})

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> WritableArray:
        """The array of that name. LogicalError where there is none."""
        underway = self._running
        if name not in self._arrays:
            manifest = read(underway.backend.load(arguments.text("name", name)))
            self._arrays[name] = WritableArray(underway, name, manifest, False)
        return self._arrays[name]

    def create(
        self,
        name: str,
        *,
        shape: tuple[int, ...],
        dtype: npt.DTypeLike,
        grid: tuple[int, ...] | None = None,
        chunks: tuple[int, ...] | None = None,
        fill_value: Any = None,
        dims: tuple[str | None, ...] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> WritableArray:
        """A new logical array without members.

        shape       (0, 50, 3) for an array that append() lengthens; with a fill value any, for add()
        grid        what bounds of regions are multiples of, one number a dimension; by default 1
        chunks      what is good to read at once, multiples of grid: by default about 1 MiB of whole rows
        fill_value  what elements in no region are; None: there are no such elements
        dims, attrs names of the dimensions; attributes, as JSON has them

        The name may have slashes, as a path in the store; the array of books.json is "books".

        Raises LogicalError where there is an array of that name, or one of both would lie within the other;
        ValueError for a shape, grid or chunks that do not fit; TypeError for a dtype that cdd does not store.
        """
        _check_name(arguments.text("name", name), self.names())
        found = named(dtype)
        code_of(found)
        sizes = tuple(arguments.size(f"shape[{at}]", size, 0, 1 << 62) for at, size in enumerate(shape))
        units = (1,) * len(sizes) if grid is None else tuple(grid)
        if chunks is None:
            chunks = default_chunks(sizes, found.itemsize, units)
        encoded(attrs or {})  # raises for what JSON does not have
        value = None if fill_value is None else np.asarray(fill_value).astype(found)[()]
        made = Manifest(sizes, found, units, tuple(chunks), fill_value=value)
        made = made.with_regions([], (), dimension_names=dims and tuple(dims), attributes=dict(attrs or {}))
        if value is None and made.size:
            raise ValueError(
                f"shape {sizes} has elements that no region holds: begin with 0 rows, or fill_value"
            )
        checked = read(checked_json(made))
        take_back = self._running.backend.create(name)
        if take_back is not None:
            self._running.made(take_back)
        self._arrays[name] = WritableArray(self._running, name, checked, True)
        return self._arrays[name]

    def remove(self, name: str) -> None:
        """Removes an array and the members in its group. Older versions of a repository keep it."""
        backend = self._running.backend
        if name not in self._arrays:
            backend.load(arguments.text("name", name))  # raises where there is none
        backend.remove(name)
        if name in self._arrays:
            self._arrays.pop(name).close()


def _check_name(name: str, others: list[str]) -> None:
    """LogicalError for a name that is no path, or that others leave no room for: in the group of an array are
    its members."""
    parts = name.split("/")
    if not set(parts).isdisjoint({"", ".", ".."}) or "\\" in name or not name.isprintable():
        raise LogicalError(
            f"{name!r} is no name of an array: printable parts between single slashes are wanted"
        )
    for other in others:
        if other == name:
            raise LogicalError(f"there is an array {name!r} already")
        if other.startswith(f"{name}/") or name.startswith(f"{other}/"):
            raise LogicalError(f"of the arrays {other!r} and {name!r} one would lie within the other")


def default_chunks(shape: tuple[int, ...], itemsize: int, grid: tuple[int, ...]) -> tuple[int, ...]:
    """About 1 MiB of whole rows, in multiples of the grid."""
    row = itemsize
    for size in shape[1:]:
        row *= max(1, size)
    rows = max(1, (1 << 20) // row)
    wanted = (rows, *(max(1, size) for size in shape[1:]))
    return tuple(-(-size // unit) * unit for size, unit in zip(wanted, grid, strict=True))


def append(
    where: Any,
    name: str,
    rows: Any,
    codec: Any = None,
    *,
    message: str = "",
    branch: str = "main",
    retries: int = 8,
    two_commits: bool = False,
    allow: Iterable[str | os.PathLike[str]] = (),
    lock: bool | str | os.PathLike[str] | None = None,
    **how: Unpack[Storing],
) -> str | None:
    """Appends rows to one array in a transaction of its own, again at the new end where another came first.

    retries      how often; then the last ConflictError is raised
    two_commits  write the member in a commit before, which no other commit is in the way of, so that only the
                 manifest is written again: for large uploads to a repository
    chunks, shards, path, options   as of WritableArray.append()

    Returns the version, as Transaction.version. Where the process ends between two commits, check() shows the
    member, prune() deletes it.
    """
    arguments.size("retries", retries, 0, 1 << 20)
    text = message or f"append to {name}"
    made = None
    if two_commits:
        with transaction(where, f"{text}: member", branch=branch, allow=allow, lock=lock) as t:
            made = t[name].prepare(rows, codec, **how)
    for left in range(retries, -1, -1):
        t = transaction(where, text, branch=branch, allow=allow, lock=lock)
        try:
            with t:
                if made is None:
                    t[name].append(rows, codec, **how)
                else:
                    t[name].append_prepared(made)
        except ConflictError:
            if left == 0:
                raise
            time.sleep(random.uniform(0, 0.05) * (retries - left + 1))
        else:
            break
    return t.version
