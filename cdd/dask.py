"""Stores and columns of datasets as dask arrays, and dask arrays into stores.

    x = cdd.dask.from_cdd("btc.cdd")            # blocks of whole chunks, read where they are computed
    x[:, 25, 0].mean().compute()
    cdd.dask.to_cdd(x[::10], "tenth.cdd")

A block is read by its worker, which opens the file by its path: all machines of a cluster need to see it.
What is asked of a block (x[:, 25, 0]) is asked of the file, so that no more of it is decoded.
"""

import math
import os
import pickle
import threading
from bisect import bisect_right
from pathlib import Path
from typing import Any

import numpy as np

from cdd import arguments
from cdd.dataset.column import Column
from cdd.dataset.opening import open as open_dataset
from cdd.dtypes import Array, DType
from cdd.store.reader import Reader
from cdd.store.writer import Writer

try:
    import dask
    import dask.array as da
except ModuleNotFoundError as error:
    raise ImportError('cdd.dask needs dask: pip install "dask[array]>=2024.8"') from error


def from_cdd(source: Any, *, column: str | None = None, block_bytes: int = 64 << 20, meta: Any = None) -> Any:
    """A dask.array.Array of the rows of a store, or of a column of a dataset, that are there now.

    source       a path, a Reader or a Column; with `column` the path of a dataset. Texts are a TypeError
    block_bytes  raw bytes of a block, about. Blocks of a store end where its chunks do
    meta         as of dask.array.from_array

    Names in the graph are made of what the rows are: the same rows have the same, a file that was replaced or
    grew has others, so nothing that dask keeps is stale. Computing raises FormatError where the file was
    replaced since, TruncatedError where it lost rows. Raises TypeError for a store in memory, which has no
    path that workers could open.
    """
    rows, opened = _rows_of(source, column)
    row_bytes = max(1, math.prod(rows.shape[1:]) * rows.dtype.itemsize)
    step = max(1, arguments.size("block_bytes", block_bytes, 1, 1 << 50) // row_bytes)
    ends = _ends(rows, step)
    chunks = (tuple(int(n) for n in np.diff([0, *ends])) or (0,), *((n,) for n in rows.shape[1:]))
    if meta is None:
        meta = np.empty((0,) * rows.ndim, rows.dtype)
    name = f"cdd-{dask.base.tokenize(rows, chunks)}"
    blocks = _Unopened(pickle.dumps(rows), rows.shape, rows.dtype)
    if opened is not None:
        opened.close()
    return da.from_array(blocks, chunks=chunks, name=name, lock=False, asarray=False, fancy=True, meta=meta)


class _Unopened:
    """Rows that are opened where the first block is read: a scheduler gets them without their file."""

    def __init__(self, pickled: bytes, shape: tuple[int, ...], dtype: DType) -> None:
        self._pickled, self.shape, self.dtype, self.ndim = pickled, shape, dtype, len(shape)
        self._rows: Any = None

    def __getitem__(self, key: Any) -> Array:
        if self._rows is None:
            self._rows = pickle.loads(self._pickled)
        found: Array = self._rows[key]
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _Unopened, (self._pickled, self.shape, self.dtype)


def _rows_of(source: Any, column: str | None) -> tuple[Any, Any]:
    """What is read, and what was opened for that."""
    found: Any
    opened: Any = None
    if isinstance(source, Reader | Column):
        if column is not None:
            raise TypeError("column= goes with the path of a dataset")
        found = source
    elif column is not None:
        opened = open_dataset(source)
        found = opened[column]
        if not isinstance(found, Column):
            raise TypeError(f"{column!r} of {source} is no column")
    elif isinstance(source, str | os.PathLike):
        if Path(source).is_dir():
            with open_dataset(source) as ds:
                raise ValueError(
                    f"{os.fspath(source)} is a dataset: column= is one of {', '.join(ds.columns)}"
                )
        found = opened = Reader(source)
    else:
        raise TypeError(f"a path, a Reader or a Column, not {arguments.shown(source)}")
    if isinstance(found, Column) and found.is_text:
        raise TypeError(f"column {found.name!r} holds texts, dask takes numbers")
    return found, opened


def _ends(rows: Any, step: int) -> list[int]:
    """Where blocks of about `step` rows end; of a store where a chunk does."""
    count = len(rows)
    if not isinstance(rows, Reader):
        return [*range(step, count, step), count] if count else []
    infos, ends = rows.chunk_infos, []
    at = 0
    while at < count:
        if at + step >= count:
            at = count
        else:
            # The chunk that begins last at or before the wanted end; one chunk at least.
            number = bisect_right(infos, at + step, key=lambda info: info.start) - 1
            at = infos[number].start if infos[number].start > at else infos[number].stop
        ends.append(at)
    return ends


def to_cdd(array: Any, path: Any, **options: Any) -> None:
    """Writes a dask array as a new store, which replaces what is there when it is whole: until then, and when
    computing fails, a file of that name stays what it was. Options as of cdd.open(path, "w").

    The graph is computed once, by threads here or by the distributed client that is the default one, and
    one writer appends the blocks in order; those that come before their turn wait in memory. ValueError for
    an array without dimensions, without items in its rows, or of unknown chunk sizes.
    """
    if not isinstance(array, da.Array):
        raise TypeError(f"a dask array, not {arguments.shown(array)}: cdd.save() takes others")
    if array.ndim == 0 or any(n == 0 for n in array.shape[1:]):
        raise ValueError(f"an array of shape {array.shape} has no rows, or none with items")
    if any(math.isnan(n) for n in array.shape):
        raise ValueError(f"shape {array.shape} has unknown sizes: compute_chunk_sizes() finds them")
    blocks = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    options = {"dtype": array.dtype, "row_shape": array.shape[1:], "visible": "close", **options}
    client = getattr(dask.base.get_scheduler(), "__self__", None)
    with Writer(path, "w", **options) as writer:
        if hasattr(client, "compute"):
            _by_client(client, blocks, writer)
        else:
            target = _InOrder(writer, blocks.shape)
            da.store(blocks, target, lock=False, scheduler="threads")
            target.check()


def _by_client(client: Any, blocks: Any, writer: Writer) -> None:
    """Appends blocks that a cluster computes. It keeps what is not fetched yet, on its disks if need be."""
    futures = client.compute(list(blocks.to_delayed().ravel()))
    futures.reverse()
    try:
        while futures:
            writer.append(futures[-1].result())
            futures.pop()
    finally:
        client.cancel(futures)


class _InOrder:
    """What dask stores blocks into, in any order: a writer that gets them in theirs."""

    def __init__(self, writer: Writer, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._writer = writer
        self._next = 0
        self._waiting: dict[int, Array] = {}
        self._mutex = threading.Lock()

    def __setitem__(self, key: Any, block: Any) -> None:
        if not len(block):  # begins where the next one does
            return
        rows = key[0] if isinstance(key, tuple) else key
        with self._mutex:
            self._waiting[rows.start or 0] = np.asarray(block)
            while self._next in self._waiting:
                ready = self._waiting.pop(self._next)
                self._writer.append(ready)
                self._next += len(ready)

    def check(self) -> None:
        if self._next != self.shape[0]:
            raise RuntimeError(f"dask stored {self._next} of {self.shape[0]} rows")
