"""Reading a part of each row: arrays for cells, and what a pick that is no run makes of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cdd.arguments import shape_of_rows
from cdd.dtypes import Array, DType
from cdd.indexing import Cells, Pick, run_of
from cdd.out import out_items

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
        raise ValueError(
            f"levels and features are of (n, levels, features) stores, this one is {shape_of_rows(row_shape)}"
        )
    levels_run = run_of(levels, row_shape[0], "levels")
    features_run = run_of(features, row_shape[1], "features")
    cells = (levels_run.begin, levels_run.end, features_run.begin, features_run.end)
    if levels_run.is_whole and features_run.is_whole:
        sizes = (run.end - run.begin for run in (levels_run, features_run) if not isinstance(run.key, int))
        shape = lead + tuple(sizes)
        part = np.empty(shape, item) if out is None else out_items(out, dtype, shape)
        read(part, cells)
        return part.view(dtype) if out is None else out
    box = np.empty((*lead, cells[1] - cells[0], cells[3] - cells[2]), item)
    read(box, cells)
    part = box[..., levels_run.key, :][..., features_run.key]
    if out is None:
        if part.base is not None and part.base.nbytes > part.nbytes:
            part = part.copy()  # else it would keep all of the box alive
        return part.view(dtype)
    np.copyto(out_items(out, dtype, part.shape), part)
    return out
