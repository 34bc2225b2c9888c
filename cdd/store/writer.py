"""The writing side: Writer appends arrays to one store."""

import os
import warnings
from types import TracebackType
from typing import NamedTuple, Unpack

import numpy.typing as npt

from cdd import _cdd, arguments
from cdd.dtypes import Array, DType, dtype_of, storable
from cdd.options import WriterOptions, check_mode, check_names, for_core
from cdd.store.awaited import AwaitedWriter
from cdd.store.opened import Opened

Target = str | os.PathLike[str] | os.PathLike[bytes] | _cdd.Memory


class Float16Error(NamedTuple):
    """The largest errors that storing as float16 made."""

    max_abs: float
    max_rel: float


class WriterStats(NamedTuple):
    """How far a writer is."""

    rows: int  # in the store, those that wait included
    waiting_rows: int  # of these, in memory: they do not fill a chunk yet
    chunks: int  # written
    unsynced_chunks: int  # of these, not yet durable: a killed process keeps them, a power cut may not
    raw_bytes: int  # of the rows in chunks
    stored_bytes: int  # of the file, its header and index included


class Writer(AwaitedWriter, Opened):
    """Appends rows to one store. cdd.open(target, "w" | "x" | "a") makes one and documents the options.

    Any thread may call it, one at a time gets in; a process that was forked off cannot use it. An append that
    fails leaves the store as it was before. When that cannot be had, or the disk failed to sync, every later
    call raises ValueError: close, and open again with mode "a".
    """

    _kind = "writer"
    _core: _cdd.Writer
    _mode_of_append = "a"  # "r+" of a kind of writer that creates nothing
    _least_rows = 0  # of a file that is appended to

    def __init__(self, target: Target, mode: str = "w", **options: Unpack[WriterOptions]) -> None:
        check_mode(mode, "wxa")
        check_names(mode, options)
        taken = for_core(options)
        held: str | _cdd.Memory
        if isinstance(target, _cdd.Memory):
            held, self._path = target, None
        else:
            held = self._path = arguments.path(target, "a path or a cdd.Memory to be written")
        taken["least_rows"] = self._least_rows
        self._whole = options.get("visible") == "close"
        self._core = _cdd.Writer(held, self._mode_of_append if mode == "a" else mode, taken)
        user_meta = bytes(taken.get("user_meta", b""))
        if user_meta and self._core.user_meta != user_meta:
            self._core.close()
            what = "attrs" if options.get("attrs") is not None else "user_meta"
            raise ValueError(f"{self._name} has other {what}: they are written once, when a store is created")

    def append(self, rows: npt.ArrayLike) -> None:
        """Adds rows, an array of shape (n, *row_shape) with any n, strides and byte order: all of them or
        none. Rows that do not stand one after the other in memory are copied a piece at a time.

        The first rows fix dtype and row shape unless they were given. Rows that do not fill a chunk wait in
        memory until more come, or for flush() or close(). No other thread may change the array meanwhile.

        Raises TypeError for a dtype that no store can hold, ValueError for another dtype or row shape than
        the store's, a value that float16 cannot hold, or a closed writer, and OSError when the disk is full.
        """
        code, array, swapped = storable(rows)
        self._check_rows(array)
        self._core.append(code, array, swapped)

    def _check_rows(self, array: Array) -> None:
        layout = self._core.layout
        if layout is not None and array.ndim and array.shape == layout[1]:
            raise ValueError(
                f"append takes rows of shape {arguments.shape_of_rows(layout[1])}, not one of "
                f"{array.shape}: append it as rows[None]"
            )

    def flush(self) -> None:
        """Writes the rows that wait, as a chunk of their own, and returns when all rows are on the disk.

        What is there survives a killed process; with durability="none" it is not synced and may not survive a
        power cut.
        """
        self._core.flush()

    def close(self) -> None:
        """flush(), marks the store as cleanly closed and lets go of it. A second close does nothing.

        It lets go even where it fails, as on a full disk, and the rows that waited are then lost: a flush()
        that fails can be repeated once there is room.
        """
        self._core.close()

    def __len__(self) -> int:
        """Rows in the store, those that wait in memory included."""
        return self._core.rows

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, *shape of a row), rows that wait in memory included; (0,) before the first."""
        layout = self._core.layout
        return (self._core.rows, *(() if layout is None else layout[1]))

    @property
    def dtype(self) -> DType:
        """dtype of the items. ValueError while it is unknown: nothing was appended yet."""
        layout = self._core.layout
        if layout is None:
            raise ValueError(f"{self._name} has no dtype yet: nothing was appended")
        return dtype_of(layout[0])

    @property
    def nchunks(self) -> int:
        """Chunks written; rows that wait in memory are in none yet."""
        return self._core.chunks

    def stats(self) -> WriterStats:
        """How far this writer is: a WriterStats. Waits for an append of another thread."""
        return WriterStats(*self._core.stats())

    @property
    def float16_error(self) -> Float16Error:
        """The largest absolute and relative error of float16=True in the chunks this writer wrote; zeros
        without it. Rows that still wait for a chunk are not in it: flush() or close() first."""
        return Float16Error(*self._core.cast_error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """close(); after an exception a store that is not visible yet is given up."""
        if kind is not None and self._whole:
            self._core.give_up()
        else:
            self.close()

    def __del__(self) -> None:
        core = getattr(self, "_core", None)  # __init__ may have failed
        if core is None or core.closed:
            return
        try:
            # Not its repr: an interpreter that ends can no longer make dtypes.
            warnings.warn(f"unclosed <cdd.Writer {self._name}>", ResourceWarning, stacklevel=2, source=self)
        finally:
            core.give_up() if self._whole else core.close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<cdd.Writer {self._name}, closed>"
        if self._core.layout is None:
            return f"<cdd.Writer {self._name}, no rows yet, dtype and shape come with the first>"
        return f"<cdd.Writer {self._name}, shape {self.shape}, dtype {self.dtype}>"

    def __reduce__(self) -> str:
        raise TypeError("a writer cannot be pickled: a store has one writer, in one process")
