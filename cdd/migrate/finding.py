"""Which arrays and tables a source is: of one path, of a folder of many, of an array that is open."""

import os
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cdd.arguments import shown
from cdd.dtypes import DType
from cdd.migrate.arrays import (
    Blosc2Source,
    Hdf5Source,
    NpySource,
    NpzSource,
    RawSource,
    StoreSource,
    hdf5_attrs,
    hdf5_names,
    npz_names,
)
from cdd.migrate.errors import UnreadableError, reading
from cdd.migrate.source import Source
from cdd.migrate.tables import CsvSource, FeatherSource, ParquetSource
from cdd.migrate.targets import is_made_of
from cdd.migrate.zarr_arrays import ZarrSource, is_lost, is_zarr, raised, zarr_attrs, zarr_names

_KINDS = {
    ".npy": "npy", ".npz": "npz", ".h5": "hdf5", ".hdf5": "hdf5", ".he5": "hdf5", ".nc": "hdf5",
    ".b2nd": "blosc2", ".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather",
    ".csv": "csv", ".csv.gz": "csv", ".csv.zst": "csv", ".cdd": "cdd", ".raw": "raw", ".bin": "raw",
    ".mm": "raw", ".dat": "raw",
}  # fmt: skip
KINDS = ("zarr", *dict.fromkeys(_KINDS.values()))
_TABLES: dict[str, Any] = {"parquet": ParquetSource, "feather": FeatherSource, "csv": CsvSource}
_PREDECESSOR = (0x0CDDBEEF).to_bytes(4, "little"), (0x0CDDBEEF).to_bytes(4, "big")
_MARKS = {b"\x93NUMPY": "npy", b"\x89HDF\r\n\x1a\n": "hdf5", b"PAR1": "parquet", b"ARROW1": "feather"}


@dataclass(frozen=True)
class Given:
    """What the caller says of sources; migrate() says what each means."""

    inner: str | None = None
    like: str = "auto"
    glob: str | None = None
    dtype: Any = None
    row_shape: tuple[int, ...] | None = None
    join: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    times: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Spec:
    """One source, as another process can open it too."""

    kind: str
    path: Path
    inner: str = ""
    dtype: DType | None = None
    row_shape: tuple[int, ...] | None = None
    join: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def text(self) -> str:
        return f"{self.path}::{self.inner}" if self.inner else str(self.path)

    def open(self) -> Source:
        """Raises UnreadableError, and TypeError and ValueError for what no store can hold."""
        with reading(self.text):
            return self._open()

    def _open(self) -> Source:
        if self.kind == "raw":
            return RawSource(self.path, self.dtype, self.row_shape)
        classes: dict[str, Any] = {
            "zarr": ZarrSource,
            "npy": NpySource,
            "npz": NpzSource,
            "hdf5": Hdf5Source,
            "blosc2": Blosc2Source,
            "cdd": StoreSource,
        }
        opened: Source
        if self.kind in _TABLES:
            opened = _TABLES[self.kind](self.path, self.inner, dict(self.join))
        else:
            opened = classes[self.kind](self.path, self.inner)
        return opened

    def attrs_of_all(self) -> dict[str, Any]:
        """Attributes of the group or file that it is a part of."""
        if not self.inner or self.kind not in ("zarr", "hdf5"):
            return {}
        return zarr_attrs(self.path) if self.kind == "zarr" else hdf5_attrs(self.path)


def suffix_of(path: Path) -> str:
    """The ending that tells the format: ".csv.gz" of a.b.csv.gz."""
    last = path.suffix.lower()
    return "".join(path.suffixes[-2:]).lower() if last in (".gz", ".zst") else last


def check_like(like: str) -> None:
    if like not in (*KINDS, "auto"):
        raise ValueError(f"like is {shown(like)}: {', '.join(KINDS)} are known, and auto")


def kind_of(path: Path, like: str) -> str | None:
    """The format of a file or folder; None for a folder that is of none."""
    check_like(like)
    if like != "auto":
        return like
    if is_lost(path):
        raise UnreadableError(f"{path} is no zarr: it has no zarr.json, .zarray or .zgroup")
    if is_dataset(path):
        raise ValueError(f"{path} is a dataset: what is migrated are arrays and tables of other formats")
    if path.is_dir():
        return "zarr" if is_zarr(path) else None
    with path.open("rb") as file:
        head = file.read(8)
    if head[:4] in _PREDECESSOR:
        raise ValueError(
            f"{path} is a .cdd file of the older project of that name (magic 0CDDBEEF): its codecs are not "
            "read here, export it with that project"
        )
    for mark, kind in _MARKS.items():
        if head.startswith(mark):
            return kind
    found = _KINDS.get(suffix_of(path))
    if found is None:
        raise ValueError(
            f"{path} is of no format that its first bytes or its name tell: like= names one of "
            f"{', '.join(KINDS)}"
        )
    return found


def split(source: str | os.PathLike[str], inner: str | None) -> tuple[Path, str | None]:
    """FILE::/NAME as a path and what is wanted of it."""
    text = os.fsdecode(source)
    if inner is None and "::" in text and not Path(text).exists():
        text, _, inner = text.partition("::")
    path = Path(text)
    if not path.exists():
        raise FileNotFoundError(2, "No such file or folder", text)
    return path, inner


def _item(dtype: Any) -> DType | None:
    try:
        return None if dtype is None else np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype={shown(dtype)}: {error}") from None


_NAMES: dict[str, Callable[[Path], list[str]]] = {"zarr": zarr_names, "npz": npz_names, "hdf5": hdf5_names}


def check_given(where: Path, kinds: Set[str], given: Given) -> None:
    """ValueError for what is said of sources of which none has a use for it."""
    some = " or ".join(sorted(kinds))
    if not kinds:
        return  # none of many could be opened
    for name, shape in given.join.items():
        if not isinstance(shape, tuple | list) or not shape or min(shape) < 1:
            raise ValueError(f'join is as {{"book": (50, 3)}}, not {shown({name: shape})}')
    if given.join and kinds.isdisjoint(_TABLES):
        raise ValueError(f"join= makes columns of tables one: {where} is {some}")
    if "raw" not in kinds and (given.dtype is not None or given.row_shape is not None):
        raise ValueError(f"dtype= and row_shape= say what raw files hold: {where} is {some}")
    if given.inner is not None and kinds.isdisjoint((*_NAMES, *_TABLES)):
        raise ValueError(f"{where} is {some}, of one array: path= {shown(given.inner)} chooses of several")


def specs_of(path: Path, kind: str, given: Given) -> list[Spec]:
    """The sources of one file, or of one group: those that are named, or all."""
    inner = given.inner
    if kind not in _NAMES:
        shape = None if given.row_shape is None else tuple(given.row_shape)
        join = tuple((name, tuple(size)) for name, size in given.join.items()) if kind in _TABLES else ()
        return [Spec(kind, path, inner or "", _item(given.dtype), shape, join)]
    with reading(str(path)):
        names = _NAMES[kind](path)
    if not names:
        raise ValueError(f"{path} has no arrays")
    if inner is not None:
        wanted = [name.strip("/") for name in inner.split(",")]
        for name in wanted:
            if name not in names:
                some = ", ".join(repr(one) for one in names[:10])
                raise ValueError(f"{path} has no array {name!r}: it has {some}{', ...' * (len(names) > 10)}")
        names = wanted
    return [Spec(kind, path, name) for name in names]


def is_dataset(path: Path) -> bool:
    return (path / "meta" / "dataset.json").is_file()


def _is_one(path: Path) -> bool:
    """Whether a folder is one thing, and not a folder of many."""
    return is_zarr(path) or is_dataset(path) or is_lost(path)


def folder_of_many(path: Path, target: Path, glob: str | None, like: str) -> list[Path]:
    """What of a folder is to be migrated, in order of their names: what `glob` says, or every zarr array or
    group and every file whose name tells its format; not what a migration of any of it wrote there."""
    check_like(like)
    found = []
    target = target.resolve()
    if target == path.resolve():
        raise ValueError(f"{path} is both source and target: stores of a folder go to another one")
    for at, folders, files in os.walk(path, onerror=raised):
        here = Path(at)
        folders[:] = [name for name in folders if not name.startswith(".")]
        folders[:] = [name for name in folders if (here / name).resolve() != target]
        for name in [name for name in folders if _is_one(here / name)]:
            folders.remove(name)
            if not (is_dataset(here / name) and is_made_of(here / name, path)):
                found.append(here / name)
        made = {name for name in files if name.endswith(".cdd") and is_made_of(here / name, path)}
        found += [here / name for name in files if name not in made]
    if glob is not None:
        wanted = set(path.glob(glob))
        found = [one for one in found if one in wanted]
    else:
        found = [one for one in found if one.is_dir() or like != "auto" or suffix_of(one) in _KINDS]
    if not found:
        raise FileNotFoundError(2, f"nothing to migrate{f' that matches {glob}' if glob else ''}", str(path))
    return sorted(found)
