"""Reading a part of each row: arrays for cells, and what a pick that is no run makes of them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cdd.arguments import shape_of_rows
from cdd.dtypes import Array, DType
from cdd.indexing import Cells, Pick
from cdd.out import out_items
from cdd.row_parts import box_of

Read = Callable[[int, int, Array, Cells], None]  # puts cells of rows or windows [a, b) into an array
PIECE_BYTES = 4 << 20  # of cells that are in memory only until a pick is applied to them


def row_part(row_shape: tuple[int, ...], cells: Cells | None) -> tuple[int, ...]:
    """The shape in which the cells of a row come: features of more than one dimension as one."""
    if cells is None:
        return row_shape
    return (len(range(cells[0], cells[1], cells[4])), cells[3] - cells[2])[: len(row_shape)]


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
    box = box_of(levels, features, row_shape)
    shape = *lead, *box.shape
    part = np.empty(shape, item) if out is None else out_items(out, dtype, shape)
    if box.is_whole:
        read(0, lead[0], part, box.cells)
    elif part.size:
        piece_shape = *lead[1:], *box.cells_shape
        step = max(1, PIECE_BYTES // (math.prod(piece_shape) * item.itemsize))
        piece = np.empty((min(step, lead[0]), *piece_shape), item)
        for begin in range(0, lead[0], step):
            end = min(begin + step, lead[0])
            read(begin, end, piece[: end - begin], box.cells)
            part[begin:end] = box.of(piece[: end - begin])
    return part.view(dtype) if out is None else out
