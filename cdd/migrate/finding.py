"""Which arrays and tables a source is: of one path, of a folder of many, of an array that is open."""

import os
from collections.abc import Callable, Set
from dataclasses import dataclass
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
_PREDECESSOR = (0x0CDDBEEF).to_bytes(4, "little"), (0x0CDDBEEF).to_bytes(4, "big")
_MARKS = {b"\x93NUMPY": "npy", b"\x89HDF\r\n\x1a\n": "hdf5", b"PAR1": "parquet", b"ARROW1": "feather"}


@dataclass(frozen=True)
class Spec:
    """One source, as another process can open it too."""

    kind: str
    path: Path
    inner: str = ""
    dtype: DType | None = None
    row_shape: tuple[int, ...] | None = None

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
            "parquet": ParquetSource,
            "feather": FeatherSource,
            "csv": CsvSource,
        }
        opened: Source = classes[self.kind](self.path, self.inner)
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


def check_given(where: Path, kinds: Set[str], inner: str | None, dtype: Any, row_shape: Any) -> None:
    """ValueError for what is said of sources of which none has a use for it."""
    some = " or ".join(sorted(kinds))
    if not kinds:
        return  # none of many could be opened
    if "raw" not in kinds and (dtype is not None or row_shape is not None):
        raise ValueError(f"dtype= and row_shape= say what raw files hold: {where} is {some}")
    if inner is not None and kinds.isdisjoint((*_NAMES, "parquet", "feather", "csv")):
        raise ValueError(f"{where} is {some}, of one array: path= {shown(inner)} chooses of several")


def specs_of(path: Path, kind: str, inner: str | None, dtype: Any, row_shape: Any) -> list[Spec]:
    """The sources of one file, or of one group: those that `inner` names, or all."""
    if kind not in _NAMES:
        item = _item(dtype)
        return [Spec(kind, path, inner or "", item, None if row_shape is None else tuple(row_shape))]
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
