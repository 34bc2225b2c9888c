"""Random keys of arrays that may be empty, and whether two results are the same bit for bit."""

from typing import Any

import numpy as np


def key_of(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """A key that NumPy takes: numbers, slices of any step, and at most one list or mask."""
    parts: list[Any] = []
    has_list = False
    for size in shape[: int(rng.integers(1, len(shape) + 1))]:
        sort = rng.choice(["all", "number", "slice", "slice", "list", "mask"])
        if sort == "number" and size:
            parts.append(int(rng.integers(-size, size)))
        elif sort == "slice":
            start, stop = rng.integers(-size - 2, size + 3, 2).tolist()
            parts.append(slice(start, stop, int(rng.choice([1, 1, 2, -1, -3]))))
        elif sort == "list" and size and not has_list:
            parts.append(rng.integers(-size, size, rng.integers(0, 6)))
            has_list = True
        elif sort == "mask" and not has_list:
            parts.append(rng.random(size) < 0.5)
            has_list = True
        else:
            parts.append(slice(None))
    return parts[0] if len(parts) == 1 and rng.random() < 0.5 else tuple(parts)


def same(found: Any, expected: Any) -> None:
    left, right = np.asarray(found), np.asarray(expected)
    assert left.shape == right.shape
    assert left.dtype == right.dtype
    assert left.tobytes() == right.tobytes()
