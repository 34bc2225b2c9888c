"""Options of stores: their names and types, and what of them only Python can read.

help(cdd.open) says what each means. Limits and names of values are the core's (ext/options.cpp), which gets
the options as one dict.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

import numpy.typing as npt

from cdd import arguments
from cdd.attrs import encoded
from cdd.dtypes import code_of


class ReaderOptions(TypedDict, total=False):
    """Of mode "r"."""

    check: Literal["stored", "once", "full", "none"]
    mmap: bool | None
    max_chunk_bytes: int


class ChunkOptions(TypedDict, total=False):
    """How chunks are made: of a writer, and of compact()."""

    codec: str
    profile: Literal["fast", "dense"]
    zstd_level: int
    chunk_bytes: int | None
    chunk_rows: int | None


class WriterOptions(ChunkOptions, total=False):
    """Of modes "w", "x" and "a"."""

    dtype: npt.DTypeLike | None
    row_shape: tuple[int, ...] | None
    attrs: Mapping[str, Any] | None
    user_meta: bytes
    durability: Literal["batch", "none", "flush", "always"]
    visible: Literal["open", "close"]
    index_chunks: int
    float16: bool
    normalise: Literal["mid"] | None
    size_scale: float


_OF_MODE: dict[str, type] = {"r": ReaderOptions, **dict.fromkeys("wxa", WriterOptions)}


def check_mode(mode: Any, modes: str) -> None:
    """ValueError for a mode that is none of `modes`."""
    if not isinstance(mode, str) or mode not in tuple(modes):
        names = [f'"{name}"' for name in modes]
        raise ValueError(f"mode is {', '.join(names[:-1])} or {names[-1]}, not {mode!r}")


def check_names(mode: str, options: Mapping[str, Any]) -> None:
    """TypeError for an option that is none, or one of another mode."""
    known = _OF_MODE[mode].__annotations__
    for name in options:
        if name in known:
            continue
        modes = [f'"{other}"' for other, kind in _OF_MODE.items() if name in kind.__annotations__]
        if modes:
            raise TypeError(f'{name}= is an option of mode {", ".join(modes)}, not of mode "{mode}"')
        raise TypeError(f'{name}= is no option; those of mode "{mode}" are {", ".join(known)}')


def for_core(options: Mapping[str, Any]) -> dict[str, Any]:
    """A writer's options as the core takes them: attrs as user_meta, dtype and row_shape as one layout."""
    taken = dict(options)
    attrs, dtype, row_shape = (taken.pop(name, None) for name in ("attrs", "dtype", "row_shape"))
    if (dtype is None) != (row_shape is None):
        raise ValueError("dtype and row_shape are given together, or neither: then the first append decides")
    if dtype is not None:
        taken["layout"] = code_of(arguments.dtype_option(dtype)), arguments.row_shape_option(row_shape)
    if attrs is not None:
        if taken.get("user_meta"):
            raise TypeError("attrs and user_meta are both given: attrs are kept in user_meta")
        taken["user_meta"] = encoded(attrs)
    return taken
