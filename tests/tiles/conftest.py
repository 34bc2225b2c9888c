"""What the tests of tiles share: other readers of the same arrays, and pixels like a camera's."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import tiles

Readers = dict[str, Callable[[Path], np.ndarray[Any, Any]]]


def _with_zarr(path: Path) -> np.ndarray[Any, Any]:
    import zarr

    return np.asarray(zarr.open_array(str(path), mode="r")[...])


def _with_zarrs(path: Path) -> np.ndarray[Any, Any]:
    import zarr
    import zarrs  # noqa: F401  registers its pipeline

    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        return np.asarray(zarr.open_array(str(path), mode="r")[...])


def _with_tensorstore(path: Path) -> np.ndarray[Any, Any]:
    import tensorstore as ts

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    return np.asarray(ts.open(spec, open=True, read=True).result().read().result())


def _with_cdd(path: Path) -> np.ndarray[Any, Any]:
    with tiles.open(path) as reader:
        return np.asarray(reader[...])


@pytest.fixture(scope="session")
def readers() -> Readers:
    """cdd's reader, and each foreign one that is installed."""
    found: Readers = {"cdd": _with_cdd}
    others = {"zarr": _with_zarr, "zarrs": _with_zarrs, "tensorstore": _with_tensorstore}
    for name, read in others.items():
        if importlib.util.find_spec(name):
            found[name] = read
    return found


@pytest.fixture(scope="session")
def foreign(readers: Readers) -> Readers:
    others = {name: read for name, read in readers.items() if name != "cdd"}
    if not others:
        pytest.skip("no other reader of zarr is installed")
    return others


def writer_options(**changed: Any) -> dict[str, Any]:
    options = {
        "shape": (None, 40, 50),
        "dtype": "uint16",
        "tile_shape": (4, 16, 16),
        "shard_shape": (8, 32, 32),
    }
    return options | changed


def camera(frames: int, height: int, width: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Frames like those of an sCMOS camera: an offset, read noise, photons of a smooth scene."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    scene = 8 + 80 * np.exp(-((y - height / 2) ** 2 + (x - width / 3) ** 2) / (2 * (height / 5) ** 2))
    return (
        100 + rng.poisson(scene, (frames, height, width)) + rng.normal(0, 2, (frames, height, width))
    ).astype(np.uint16)
