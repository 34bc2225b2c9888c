"""Pyramids as viewers of the field open them: OME-Zarr's own reader; its models, which check the metadata
against the specification; napari's plug-in, as far as it goes without a display.

    pip install --group viewers
    PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 pytest tests/tiles/test_viewers.py      napari's own plug-in warns
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import tiles
from tests.tiles.conftest import camera

pytestmark = pytest.mark.filterwarnings("ignore")  # of the viewers, which are many

CASES: dict[str, dict[str, Any]] = {
    "tyx": {"units": {"t": "second", "y": "micrometer", "x": "micrometer"}},
    "zyx": {"downsample": "zyx", "units": {"z": "micrometer"}},
    "tcyx": {"pixel_sizes": {"y": 0.5, "x": 0.25}},
    "tczyx": {"pixel_sizes": {"z": 2.0, "y": 0.5, "x": 0.25}, "downsample": "zyx"},
}


@pytest.fixture(params=CASES)
def pyramid(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[np.ndarray[Any, Any]], str]:
    """A closed pyramid of three scales, their pixels, and the names of its dimensions."""
    names = request.param
    inner = {"tyx": (), "zyx": (), "tcyx": (2,), "tczyx": (2, 6)}[names]
    frames = np.stack(
        [camera(int(np.prod(inner, dtype=int)), 50, 70, n).reshape(*inner, 50, 70) for n in range(6)]
    )
    path = tmp_path / "image.zarr"
    with tiles.open(
        path, "w", shape=(None, *frames.shape[1:]), dtype="uint16", scales=3, dimension_names=names,
        tile_shape=(2, *(1 for _ in inner), 16, 16), **CASES[names],
    ) as w:  # fmt: skip
        w.append(frames)
    return path, [tiles.open(path, scale=k)[...] for k in range(3)], names


def test_models_of_the_specification(pyramid: tuple[Path, list[np.ndarray[Any, Any]], str]) -> None:
    models = pytest.importorskip("ome_zarr_models")
    zarr = pytest.importorskip("zarr")
    path, scales, names = pyramid
    image = models.open_ome_zarr(zarr.open_group(str(path), mode="r"))
    (multiscale,) = image.ome_attributes.multiscales
    assert image.ome_zarr_version == "0.5"
    assert [axis.name for axis in multiscale.axes] == list(names)
    assert [dataset.path for dataset in multiscale.datasets] == ["0", "1", "2"]
    halves = CASES[names].get("downsample", "yx")
    steps = [dataset.coordinateTransformations[0].scale for dataset in multiscale.datasets]
    for k, frames in enumerate(scales):
        assert zarr.open_array(str(path / multiscale.datasets[k].path), mode="r").shape == frames.shape
        ratios = [a / b for a, b in zip(steps[k], steps[0], strict=True)]
        assert ratios == [2**k if name in halves else 1 for name in names]


def test_ome_zarr_reads_every_scale(pyramid: tuple[Path, list[np.ndarray[Any, Any]], str]) -> None:
    pytest.importorskip("ome_zarr")
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    path, scales, names = pyramid
    location = parse_url(str(path))
    assert location is not None
    assert location.fmt.version == "0.5"
    (node,) = Reader(location)()
    assert [axis["name"] for axis in node.metadata["axes"]] == list(names)
    assert len(node.data) == 3
    for read, frames in zip(node.data, scales, strict=True):
        np.testing.assert_array_equal(np.asarray(read), frames)


def test_napari_makes_a_layer_of_every_scale(pyramid: tuple[Path, list[np.ndarray[Any, Any]], str]) -> None:
    plugin = pytest.importorskip("napari_ome_zarr")
    path, scales, names = pyramid
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = plugin.napari_get_reader(str(path))
        assert read is not None
        ((data, options, kind),) = read(str(path))
    assert kind == "image"
    assert options.get("channel_axis") == (names.index("c") if "c" in names else None)
    assert len(data) == 3
    for layer, frames in zip(data, scales, strict=True):
        np.testing.assert_array_equal(np.asarray(layer), frames)
