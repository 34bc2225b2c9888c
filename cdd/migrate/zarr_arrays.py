"""Arrays of zarr, formats 2 and 3, in folders or wherever zarr reads them.

zarr gives the fill value for a chunk that is not there, and says nothing. So keys are listed first.
"""

import itertools
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cdd.arguments import shown
from cdd.dtypes import Array
from cdd.migrate.errors import UnreadableError
from cdd.migrate.source import ArraySource, column_kind, digest, need, plain_attrs

_METADATA = ("zarr.json", ".zarray", ".zgroup")


def raised(error: OSError) -> None:
    """For os.walk(): a folder that cannot be listed is an error, not left out."""
    raise error


def is_zarr(path: Path) -> bool:
    return path.is_dir() and any((path / name).is_file() for name in _METADATA)


def is_lost(path: Path) -> bool:
    """Whether a folder is named as a zarr and has none in it."""
    return (
        path.suffix == ".zarr"
        and path.is_dir()
        and not any(not {*_METADATA}.isdisjoint(files) for _, _, files in os.walk(path, onerror=raised))
    )


def zarr_names(path: Path) -> list[str]:
    """Every array of a group, by its path in it; "" for an array that lies there itself."""
    if _kind(path) == "array":
        return [""]
    found = []
    for at, folders, files in os.walk(path, onerror=raised):
        here = Path(at)
        if {*_METADATA}.isdisjoint(files):
            if any(not name.startswith(".") for name in files):  # left out, they would be lost
                raise UnreadableError(
                    f"{here} is in the zarr group {path} and has files, but no zarr.json, .zarray or .zgroup "
                    "says what they are"
                )
        elif _kind(here) == "array":
            found.append(here.relative_to(path).as_posix())
            folders.clear()
    return sorted(found)


def _kind(folder: Path) -> str:
    if (folder / ".zarray").is_file():
        return "array"
    try:
        found = json.loads((folder / "zarr.json").read_bytes())
    except FileNotFoundError:
        return "group"
    except ValueError as error:
        raise UnreadableError(f"{folder / 'zarr.json'} is not JSON: {error}") from None
    kind = found.get("node_type") if isinstance(found, dict) else None
    if kind not in ("array", "group"):  # left out, it would be lost
        raise UnreadableError(f'{folder / "zarr.json"}: node_type is "array" or "group", not {shown(kind)}')
    return str(kind)


def zarr_attrs(path: Path) -> dict[str, Any]:
    """Attributes of a group."""
    return plain_attrs(dict(need("zarr").open_group(store=str(path), mode="r").attrs))


class ZarrSource(ArraySource):
    """An array of zarr in a folder."""

    def __init__(self, path: Path, inner: str) -> None:
        zarr = need("zarr")
        self.folder = path / inner if inner else path
        self.name = f"{path}::{inner}" if inner else str(path)
        self._array = zarr.open_array(store=str(self.folder), mode="r")
        array = self._array
        key = inner or path.name.removesuffix(".zarr")
        self.columns = {key: column_kind(self.name, np.dtype(array.dtype), array.shape, dict(array.attrs))}
        self.rows = int(array.shape[0])
        self.files = (self.folder,)
        shards = getattr(array, "shards", None)
        self._grid = tuple(shards or array.chunks)
        self.chunk_rows = int(self._grid[0])
        self._missing: list[str] = []

    def _keys(self) -> Iterator[str]:
        sizes = (math.ceil(n / c) for n, c in zip(self._array.shape, self._grid, strict=True))
        for place in itertools.product(*map(range, sizes)):
            yield self._array.metadata.encode_chunk_key(place)

    def missing(self) -> list[str]:
        return self._missing

    def _stamps(self) -> dict[str, tuple[int, int] | None]:
        """Size and time of each chunk's file; None for one that is not there."""
        found: dict[str, tuple[int, int] | None] = {}
        lead = f"{self.folder}/"
        for key in self._keys():
            try:
                status = os.stat(lead + key)  # noqa: PTH116 there are thousands
            except (FileNotFoundError, NotADirectoryError):
                found[key] = None
            else:
                found[key] = status.st_size, status.st_mtime_ns
        return found

    def fingerprint(self) -> str:
        metadata = [(self.folder / name) for name in ("zarr.json", ".zarray", ".zattrs")]
        stamps = [file.read_bytes() for file in metadata if file.is_file()]
        chunks = self._stamps()
        self._missing = [key for key, found in chunks.items() if found is None]
        return digest([stamps, list(chunks.values())])

    def part(self, start: int, stop: int) -> str:
        rest = itertools.product(
            *(range(0, n, c) for n, c in zip(self._array.shape[1:], self._grid[1:], strict=True))
        )
        for place in rest:
            try:
                self._array[
                    (
                        slice(start, stop),
                        *(slice(p, p + c) for p, c in zip(place, self._grid[1:], strict=True)),
                    )
                ]
            except Exception:
                at = tuple(p // c for p, c in zip((start, *place), self._grid, strict=True))
                return f"chunk {self._array.metadata.encode_chunk_key(at)}"
        return super().part(start, stop)

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(self._array[start:stop])
