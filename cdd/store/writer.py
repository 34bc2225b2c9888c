"""The writing side: Writer appends arrays to one store."""

import os
import warnings
from typing import NamedTuple

import numpy.typing as npt

from cdd import _cdd, arguments
from cdd.dtypes import DType, code_of, dtype_of, storable
from cdd.store.opened import Opened

Target = str | os.PathLike[str] | os.PathLike[bytes] | _cdd.Memory


class Float16Error(NamedTuple):
    """The largest errors that storing as float16 made."""

    max_abs: float
    max_rel: float


class Writer(Opened):
    """Appends rows to one store. cdd.open(target, "w" | "x" | "a") makes one and documents the options.

    Any thread may call it, one at a time gets in; a process that was forked off cannot use it. An append that
    fails leaves the store as it was before. When that cannot be had, or the disk failed to sync, every later
    call raises ValueError: close, and open again with mode "a".
    """

    _kind = "writer"
    _core: _cdd.Writer

    def __init__(
        self,
        target: Target,
        mode: str = "w",
        *,
        user_meta: bytes = b"",
        dtype: npt.DTypeLike | None = None,
        row_shape: tuple[int, ...] | None = None,
        codec: str = "auto",
        profile: str = "fast",
        level: int = 3,
        chunk_bytes: int | None = None,
        chunk_rows: int | None = None,
        durability: str = "batch",
        float16: bool = False,
        normalise: str | None = None,
        size_scale: float = 1.0,
    ) -> None:
        if mode not in ("w", "x", "a", "s"):  # "s" is save()'s: as "w", but replaces only with close()
            raise ValueError(f'mode is "w", "x" or "a" for a writer, not {mode!r}')
        for name, value in (("codec", codec), ("profile", profile), ("durability", durability)):
            arguments.text(name, value)
        if normalise is not None:
            arguments.text("normalise", normalise)
        size_scale = arguments.number("size_scale", size_scale)
        float16 = arguments.flag("float16", float16)
        level = arguments.size("level", level, 1, 22)
        if not isinstance(user_meta, bytes | bytearray | memoryview):
            raise TypeError(f"user_meta is bytes, not {type(user_meta).__name__}: encode it first")
        if (dtype is None) != (row_shape is None):
            raise ValueError(
                "dtype and row_shape are given together, or neither: then the first append decides"
            )
        stored_bytes, rows = arguments.chunk_size(chunk_bytes, chunk_rows)
        if not float16 and "f16" not in codec and (normalise is not None or size_scale != 1.0):
            raise ValueError("normalise and size_scale are options of float16=True")
        layout = None
        if dtype is not None and row_shape is not None:
            layout = code_of(arguments.dtype_option(dtype)), arguments.row_shape_option(row_shape)
        held: str | _cdd.Memory
        if isinstance(target, _cdd.Memory):
            held, self._path = target, None
        else:
            held = self._path = arguments.path(target, "a path or a cdd.Memory to be written")
        self._core = _cdd.Writer(
            held,
            mode,
            layout,
            user_meta,
            codec,
            profile,
            level,
            float16,
            normalise,
            size_scale,
            stored_bytes,
            rows,
            durability,
        )
        if user_meta and self._core.user_meta != bytes(user_meta):
            self._core.close()
            raise ValueError(
                f"{self._name} has other user_meta, which is written once when a store is created"
            )

    def append(self, rows: npt.ArrayLike) -> None:
        """Adds rows, an array of shape (n, *row_shape) with any n, strides and byte order: all of them or
        none.

        The first rows fix dtype and row shape unless they were given. Rows that do not fill a chunk wait in
        memory until more come, or for flush() or close(). No other thread may change the array meanwhile.

        Raises TypeError for a dtype that no store can hold, ValueError for another dtype or row shape than
        the store's, a value that float16 cannot hold, or a closed writer, and OSError when the disk is full.
        """
        code, array = storable(rows)
        layout = self._core.layout
        if layout is not None and array.ndim and array.shape == layout[1]:
            raise ValueError(
                f"append takes rows of shape {arguments.shape_of_rows(layout[1])}, not one of "
                f"{array.shape}: append it as rows[None]"
            )
        self._core.append(code, array)

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

    @property
    def rows(self) -> int:
        """Rows in the store, those that wait in memory included."""
        return self._core.rows

    @property
    def chunks(self) -> int:
        """Chunks written."""
        return self._core.chunks

    @property
    def dtype(self) -> DType | None:
        """dtype of the items; None until it is known."""
        layout = self._core.layout
        return None if layout is None else dtype_of(layout[0])

    @property
    def row_shape(self) -> tuple[int, ...] | None:
        """Shape of one row; None until it is known."""
        layout = self._core.layout
        return None if layout is None else layout[1]

    @property
    def float16_error(self) -> Float16Error:
        """The largest absolute and relative error of float16=True in the chunks this writer wrote; zeros
        without it. Rows that still wait for a chunk are not in it: flush() or close() first."""
        return Float16Error(*self._core.cast_error)

    def __del__(self) -> None:
        core = getattr(self, "_core", None)  # __init__ may have failed
        if core is None or core.closed:
            return
        try:
            # Not its repr: an interpreter that ends can no longer make dtypes.
            warnings.warn(f"unclosed <cdd.Writer {self._name}>", ResourceWarning, stacklevel=2, source=self)
        finally:
            core.close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<cdd.Writer {self._name}, closed>"
        if self.dtype is None:
            return f"<cdd.Writer {self._name}, no rows yet, dtype and shape come with the first>"
        return f"<cdd.Writer {self._name}, {self.rows} rows of {self.row_shape} {self.dtype}>"

    def __reduce__(self) -> str:
        raise TypeError("a writer cannot be pickled: a store has one writer, in one process")
