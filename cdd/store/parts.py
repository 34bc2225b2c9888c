"""Reading a part of each row: arrays for cells, and what a pick that is no run makes of them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cdd.arguments import shape_of_rows
from cdd.dtypes import Array, DType
from cdd.indexing import Cells, Pick, run_of
from cdd.out import out_items

Read = Callable[[int, int, Array, Cells], None]  # puts cells of rows or windows [a, b) into an array
PIECE_BYTES = 4 << 20  # of cells that are in memory only until a pick is applied to them


def row_part(row_shape: tuple[int, ...], cells: Cells | None) -> tuple[int, ...]:
    """The shape in which the cells of a row come: features of more than one dimension as one."""
    if cells is None:
        return row_shape
    return (cells[1] - cells[0], cells[3] - cells[2])[: len(row_shape)]


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
    one. `item` is buffer_dtype(dtype). A pick that leaves out cells is applied to pieces along lead[0]."""
    if len(row_shape) != 2:
        raise ValueError(
            f"levels and features are of (n, levels, features) stores, this one is {shape_of_rows(row_shape)}"
        )
    levels_run = run_of(levels, row_shape[0], "levels")
    features_run = run_of(features, row_shape[1], "features")
    cells = (levels_run.begin, levels_run.end, features_run.begin, features_run.end)
    shape = *lead, *(size for run in (levels_run, features_run) if (size := run.length) is not None)
    part = np.empty(shape, item) if out is None else out_items(out, dtype, shape)
    if levels_run.is_whole and features_run.is_whole:
        read(0, lead[0], part, cells)
    elif part.size:
        box_shape = *lead[1:], cells[1] - cells[0], cells[3] - cells[2]
        step = max(1, PIECE_BYTES // (math.prod(box_shape) * item.itemsize))
        box = np.empty((min(step, lead[0]), *box_shape), item)
        for begin in range(0, lead[0], step):
            end = min(begin + step, lead[0])
            read(begin, end, box[: end - begin], cells)
            part[begin:end] = box[: end - begin, ..., levels_run.key, :][..., features_run.key]
    return part.view(dtype) if out is None else out
