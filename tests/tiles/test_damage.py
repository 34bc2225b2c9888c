"""Arrays that are damaged, a stranger's, or none: an error that says where, or the right data."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd import tiles
from tests.tiles.conftest import camera, writer_options


def test_damage_is_an_error_or_the_right_data(tmp_path: Path) -> None:
    frames = camera(4, 32, 32)
    path = tmp_path / "a.zarr"
    with tiles.open(path, "w", shape=(None, 32, 32), dtype="uint16", tile_shape=(4, 16, 16)) as w:
        w.append(frames)
    shard = path / "c" / "0" / "0" / "0"
    whole = shard.read_bytes()
    rng = np.random.default_rng(5)
    wrong = 0
    for at in rng.choice(len(whole), 300, replace=False):
        shard.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :])
        with tiles.open(path) as r:
            try:
                np.testing.assert_array_equal(r[...], frames)
            except cdd.CddError:
                wrong += 1
    assert wrong > 100
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        shard.write_bytes(whole[:size])
        with tiles.open(path) as r, pytest.raises(cdd.CddError, match=r"a\.zarr/c/0/0/0"):
            r[...]
    shard.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with (
        tiles.open(path) as r,
        pytest.raises(cdd.ChecksumError, match=r"a\.zarr/c/0/0/0: tile \d: its CRC-32C"),
    ):
        r[...]


def test_what_is_no_array_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(cdd.FormatError, match="is a file"):
        tiles.open(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError, match=r"has no zarr\.json"):
        tiles.open(tmp_path / "folder")
    (tmp_path / "folder" / ".zarray").write_text("{}")
    with pytest.raises(cdd.UnsupportedError, match="is zarr v2"):
        tiles.open(tmp_path / "folder")
    with pytest.raises(FileNotFoundError, match="nothing"):
        tiles.open(tmp_path / "nothing")


def test_metadata_of_strangers(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with tiles.open(path, "w", **writer_options()) as w:
        w.append(camera(4, 40, 50))
    text = (path / "zarr.json").read_text()
    good = json.loads(text)
    for at in range(0, len(text), 7):
        (path / "zarr.json").write_text(text[:at])
        with pytest.raises((cdd.CddError, ValueError)):
            tiles.open(path)
    for name in good:
        (path / "zarr.json").write_text(json.dumps({k: v for k, v in good.items() if k != name}))
        if name in ("attributes", "dimension_names"):
            tiles.open(path)
        else:
            with pytest.raises(cdd.CddError, match=name):
                tiles.open(path)
    wrong: list[tuple[str, Any]] = [
        ("shape", [2**63, 40, 50]), ("shape", [4, -1, 50]), ("shape", []), ("shape", "x"),
        ("fill_value", "x"),
        ("data_type", "r16"), ("data_type", {"name": "numpy.datetime64"}), ("data_type", {}),
        ("data_type", 7),
        ("data_type", {"name": "numpy.datetime64", "configuration": {"unit": "ns", "scale_factor": 10}}),
        ("data_type", {"name": "numpy.timedelta64", "configuration": {"unit": "weeks", "scale_factor": 1}}),
        ("new", {}), ("zarr_format", 2), ("node_type", "x"), ("codecs", []),
        ("chunk_grid", {"name": "hilbert"}), ("attributes", 3),
    ]  # fmt: skip
    for name, value in wrong:
        (path / "zarr.json").write_text(json.dumps(good | {name: value}))
        with pytest.raises(cdd.CddError):
            tiles.open(path)
