"""Stores and datasets in xarray, read when their values are asked for.

    xr.open_dataset("book.cdd", time="time.cdd")    # a store, with the times of another as its index
    xr.open_dataset("btc", engine="cdd")            # a dataset: a variable a column, its clock the index
    cdd.xarray.open_dataset("btc", group="trades", chunks={})   # a table of it, in dask's blocks

The engine "cdd" is registered with the package. It is for analysis, not for training: xarray takes some
twenty times as long for a window as the reader does.
"""

import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cdd import arguments
from cdd.arguments import shown
from cdd.dataset.column import Column
from cdd.dataset.opened import Dataset
from cdd.dataset.opening import open as open_cdd_dataset
from cdd.dataset.protocol.identity import DATASET
from cdd.dataset.table import Table
from cdd.dtypes import Array
from cdd.store.reader import Reader

try:
    import xarray as xr
    from xarray.backends import BackendArray, BackendEntrypoint
    from xarray.core import indexing
except ModuleNotFoundError as error:
    raise ImportError('cdd.xarray needs xarray: pip install "xarray>=2024.7"') from error

_MAGIC = b"CDDF"
_DIMS = ("level", "feature")  # of rows of one or two dimensions, after that of the rows
_BLOCK_BYTES = 64 << 20


class Rows(BackendArray):
    """Rows of a Reader or a Column. xarray asks for numbers, slices, and one list of numbers at most."""

    def __init__(self, rows: Reader | Column) -> None:
        self.rows = rows
        self.shape = rows.shape
        self.dtype = np.dtype(object) if isinstance(rows, Column) and rows.is_text else rows.dtype

    def __getitem__(self, key: Any) -> Any:
        support = indexing.IndexingSupport.OUTER_1VECTOR
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        # NumPy moves the list's dimension to the front where numbers stand beside it, xarray does not.
        is_number = [not isinstance(k, slice) and np.ndim(k) == 0 for k in key]
        wide = [slice(int(k), int(k) + 1) if alone else k for k, alone in zip(key, is_number, strict=True)]
        found = self.rows[tuple(wide)]
        if isinstance(self.rows, Column) and self.rows.is_text:
            found = np.array(self.rows.categories, object)[found]
        return found[tuple(0 if alone else slice(None) for alone in is_number)]


class CddBackend(BackendEntrypoint):
    """xarray's engine "cdd": stores, and datasets of cdd."""

    description = "cdd stores and datasets"
    open_dataset_parameters = (
        "filename_or_obj", "drop_variables", "time", "name", "group", "as_of", "dims", "block_bytes", "slack",
    )  # fmt: skip

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether it is a Reader, a Dataset, the file of a store, or the folder of a dataset; never a URL."""
        if isinstance(filename_or_obj, Reader | Dataset):
            return True
        if not isinstance(filename_or_obj, str | os.PathLike) or "://" in str(filename_or_obj):
            return False
        try:
            path = Path(filename_or_obj)
            if path.is_dir():
                return (path / DATASET).is_file()
            with path.open("rb") as file:
                return file.read(len(_MAGIC)) == _MAGIC
        except (OSError, ValueError):
            return False

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        time: Any = None,
        name: str | None = None,
        group: str | None = None,
        as_of: Any = None,
        dims: Sequence[str] | None = None,
        block_bytes: int = _BLOCK_BYTES,
        slack: int = 0,
    ) -> xr.Dataset:
        """See cdd.xarray.open_dataset."""
        arguments.size("block_bytes", block_bytes, 1, 1 << 50)
        arguments.size("slack", slack, 0, (1 << 63) - 1)
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        source = filename_or_obj
        if isinstance(source, str | os.PathLike):
            source = open_cdd_dataset(source, as_of=as_of) if Path(source).is_dir() else Reader(source)
        elif as_of is not None:
            raise TypeError("as_of= goes with the path of a dataset")
        if isinstance(source, Dataset):
            for option, given in {"time": time, "name": name, "dims": dims}.items():
                if given is not None:
                    raise TypeError(f"{option}= goes with a store, a dataset says itself what it has")
            made = _of_table(source if not group else source[group], dropped, block_bytes)
        elif isinstance(source, Reader):
            if group is not None:
                raise TypeError("group= goes with a dataset: it names a table")
            made = _of_store(source, time, slack, name, dims, dropped, block_bytes)
        else:
            raise TypeError(f"a path, a Reader or a Dataset, not {shown(source)}")
        made.set_close(source.close)
        return made


def open_dataset(source: Any, **options: Any) -> xr.Dataset:
    """xarray.open_dataset(source, engine="cdd", **options), with what the rows are as part of dask's names: a
    path alone does not tell xarray that a dataset was changed behind it.

    source       a path or a Reader of a store, a path or a Dataset of a dataset
    time         of a store: times of its rows, a path, a Reader or an array of one dimension, which become
                 the index; they are read whole
    slack        by how many the times may be more or fewer than the rows, 0 by default; the fewer count. A
                 writer of both may be one append ahead
    name         of the variable of a store; by default the file's name without its ending
    dims         of a store: names of all dimensions; by default time (row without times), level, feature
    group        the name of a table of a dataset, by default its own
    as_of        the version of a dataset, as of cdd.dataset.open
    block_bytes  of the blocks that chunks={} makes, about
    others       of xarray.open_dataset: chunks, drop_variables, ...

    An attribute "features" of as many names as rows have features becomes the coordinate of that dimension.
    Texts of category columns are objects. Raises TypeError and ValueError for arguments that do not go
    together, and what opening raises.
    """
    if isinstance(source, str | os.PathLike):
        as_of = options.pop("as_of", None)
        source = open_cdd_dataset(source, as_of=as_of) if Path(source).is_dir() else Reader(source)
    return xr.open_dataset(source, engine=CddBackend, **options)


def _of_store(
    reader: Reader,
    time: Any,
    slack: int,
    name: str | None,
    dims: Sequence[str] | None,
    dropped: set[str],
    block_bytes: int,
) -> xr.Dataset:
    name = name or (Path(reader.path).stem if reader.path else "rows")
    first = "row" if time is None else "time"
    names = tuple(dims) if dims is not None else (first, *_inner(reader.shape[1:], ""))
    if len(names) != reader.ndim or len(set(names)) < len(names):
        raise ValueError(f"dims are {reader.ndim} names, each once, not {names!r}")
    variable = _variable(reader, names, reader.attrs, max(1, block_bytes // _row_bytes(reader)))
    coords: dict[Hashable, Any] = {}
    if time is not None:
        times = _times(time)
        rows = min(len(times), len(reader))
        if max(len(times), len(reader)) - rows > slack:
            raise ValueError(
                f"time has {len(times)} rows, {name} {len(reader)}: are they of the same? slack= says by how "
                "many they may differ"
            )
        variable = variable[:rows]
        coords[names[0]] = (names[0], times[:rows])
    coords |= _features(reader.shape, names, reader.attrs)
    return xr.Dataset({} if name in dropped else {name: variable}, coords, reader.attrs)


def _times(given: Any) -> Array:
    times: Array
    if isinstance(given, str | os.PathLike):
        with Reader(given) as reader:
            times = reader[:]
    else:
        times = np.asarray(given[:] if isinstance(given, Reader) else given)
    if times.ndim != 1:
        raise ValueError(f"times have one dimension, these have shape {times.shape}")
    return times


def _of_table(table: Table, dropped: set[str], block_bytes: int) -> xr.Dataset:
    if not isinstance(table, Table):
        raise ValueError(f"group is the name of a table, {shown(table)} is none")
    clock = table.clock
    row = clock if clock is not None else "row"
    variables: dict[Hashable, Any] = {}
    coords: dict[Hashable, Any] = {}
    sizes: dict[str, int] = {}
    # As many rows in blocks of all columns, so that what combines them moves nothing.
    widest = max((_row_bytes(table[name]) for name in table.columns if name not in dropped), default=1)
    step = max(1, block_bytes // widest)
    for name in table.columns:
        column = table[name]
        inner = _inner(column.shape[1:], "")
        if any(sizes.get(dim, size) != size for dim, size in zip(inner, column.shape[1:], strict=True)):
            inner = _inner(column.shape[1:], f"{name}_")  # another column's levels are not as many
        sizes |= dict(zip(inner, column.shape[1:], strict=True))
        names = (row, *inner)
        if name == clock:
            coords[row] = (row, column[:])
        elif name not in dropped:
            variables[name] = _variable(column, names, column.attrs, step)
            coords |= _features(column.shape, names, {**table.attrs, **column.attrs})
    return xr.Dataset(variables, coords, table.attrs)


def _inner(shape: tuple[int, ...], prefix: str) -> tuple[str, ...]:
    if len(shape) <= len(_DIMS):
        return tuple(prefix + name for name in _DIMS[: len(shape)])
    return tuple(f"{prefix}dim_{number}" for number in range(1, len(shape) + 1))


def _row_bytes(rows: Reader | Column) -> int:
    return math.prod(rows.shape[1:]) * rows.dtype.itemsize


def _variable(rows: Reader | Column, names: tuple[str, ...], attrs: dict[str, Any], step: int) -> Any:
    sizes = (step, *rows.shape[1:])
    encoding = {"preferred_chunks": dict(zip(names, sizes, strict=True))}
    return xr.Variable(names, indexing.LazilyIndexedArray(Rows(rows)), attrs, encoding)


def _features(
    shape: tuple[int, ...], names: tuple[str, ...], attrs: Mapping[str, Any]
) -> dict[Hashable, Any]:
    """The names of features, where the attributes have them."""
    found = attrs.get("features")
    if len(shape) != 3 or not isinstance(found, list) or len(found) != shape[2]:
        return {}
    return {names[2]: (names[2], found)}
