"""python -m cdd on arrays of tiles; the example."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cdd import tiles
from cdd.commands import main
from tests.tiles.conftest import camera


def test_info_and_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.zarr"
    with tiles.open(
        path,
        "w",
        shape=(None, 40, 50),
        dtype="uint16",
        tile_shape=(4, 16, 16),
        dimension_names="tyx",
        scales=2,
    ) as w:
        w.append(camera(6, 40, 50))
    assert main(["info", str(path)]) == 0
    text = capsys.readouterr().out
    assert "(6, 40, 50)" in text
    assert "(6, 20, 25)" in text
    assert "blosc(zstd, shuffle) + crc32c" in text
    assert main(["verify", str(path)]) == 0
    assert "all is well" in capsys.readouterr().out
    shard = path / "0" / "c" / "0" / "0" / "0"
    stored = bytearray(shard.read_bytes())
    stored[-100] ^= 1
    shard.write_bytes(stored)
    assert main(["verify", str(path)]) == 1
    assert "CRC-32C does not hold" in capsys.readouterr().out


def test_metadata_that_is_no_json_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tiles.open(tmp_path / "a.zarr", "w", shape=(None, 40, 50), dtype="uint16") as w:
        w.append(camera(2, 40, 50))
    with (tmp_path / "a.zarr" / "zarr.json").open("a") as file:
        file.write("x")
    for command in ("info", "verify"):
        assert main([command, str(tmp_path / "a.zarr")]) != 0
        assert "a.zarr/zarr.json: JSON: more text after the value" in capsys.readouterr().err


def test_the_example_runs() -> None:
    example = Path(__file__).parent.parent.parent / "examples" / "python" / "camera.py"
    done = subprocess.run([sys.executable, "-P", str(example)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "all frames as they were taken: True" in done.stdout


def test_numpy_is_all_that_is_imported() -> None:
    code = (
        "import cdd.tiles, sys; print(sorted({'zarr', 'cupy', 'tensorstore', 'nvidia'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
    assert np.__version__
