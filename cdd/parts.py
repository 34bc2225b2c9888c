"""Reading a part of each row: arrays for cells, and what a pick that is no run makes of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cdd.dtypes import Array, DType, out_items
from cdd.indexing import Cells, Pick, plain_part, run_of

Read = Callable[[Array, Cells], None]  # puts cells of rows into an array of their size


def read_part(
    read: Read,
    dtype: DType,
    item: DType,
    row_shape: tuple[int, ...],
    lead: tuple[int, ...],
    levels: Pick,
    features: Pick,
    out: Any,
) -> Any:
    """What `levels` and `features` pick of rows, of shape (*lead, levels, features); into `out` if there is
    one. `item` is buffer_dtype(dtype)."""
    if len(row_shape) != 2:
        shape = ("N", *row_shape)
        raise ValueError(f"levels and features are of (N, levels, features) stores, not of {shape}")
    picks = (slice(None) if levels is None else levels, slice(None) if features is None else features)
    plain = plain_part(picks, row_shape)
    if plain is not None:
        return read_plain(read, dtype, item, (*lead, *plain[1]), plain[0], out)
    levels_run, features_run = map(run_of, picks, row_shape)
    cells = (levels_run.begin, levels_run.end, features_run.begin, features_run.end)
    box = np.empty((*lead, cells[1] - cells[0], cells[3] - cells[2]), item)
    read(box, cells)
    part = box[..., levels_run.key, :][..., features_run.key]
    if out is None:
        return part.view(dtype)
    np.copyto(out_items(out, dtype, part.shape), part)
    return out


def read_plain(
    read: Read, dtype: DType, item: DType, shape: tuple[int, ...], cells: Cells, out: Any = None
) -> Any:
    """The same where the cells are all of what is picked, of this shape."""
    if out is None:
        made = np.empty(shape, item)
        read(made, cells)
        return made if dtype is item else made.view(dtype)
    if type(out) is np.ndarray and out.dtype is dtype is item and out.shape == shape:
        read(out, cells)
    else:
        read(out_items(out, dtype, shape), cells)
    return out
