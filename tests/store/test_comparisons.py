"""Arrays of every system say to == and != what NumPy says, or TypeError."""

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd

ROWS = np.arange(24, dtype=np.uint16).reshape(6, 2, 2)


def column(folder: Path) -> Any:
    with cdd.dataset.open(folder / "d", "w") as writer:
        writer.append(a=ROWS)
        writer.flush()
    return cdd.dataset.open(folder / "d")["a"]


def tiles(folder: Path) -> Any:
    with cdd.tiles.open(
        folder / "t.zarr", "w", shape=(None, 2, 2), tile_shape=(2, 2, 2), dtype="u2"
    ) as writer:
        writer.append(ROWS)
    return cdd.tiles.open(folder / "t.zarr")


def store(folder: Path) -> Any:
    cdd.save(folder / "s.cdd", ROWS)
    return cdd.open(folder / "s.cdd")


@pytest.mark.parametrize("made", [store, column, tiles])
@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_nothing_is_false_without_a_word(
    made: Callable[[Path], Any], compare: Callable[[Any, Any], Any], tmp_path: Path
) -> None:
    array = made(tmp_path)
    for other in (0, None, "a", [1], array):
        with pytest.raises(TypeError, match="is not compared"):
            compare(array, other)
    other = ROWS.copy()
    other[3] += 1
    assert np.array_equal(compare(array, other), compare(ROWS, other))
    assert np.array_equal(compare(other, array), compare(ROWS, other))
    assert len({array, array}) == 1
