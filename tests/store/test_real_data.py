"""Every recorded book and series comes back bit for bit, with every codec."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cdd

LOSSLESS = [name for name in cdd.CODECS if "f16" not in name]
Load = Callable[[str], np.ndarray]


@pytest.fixture(scope="module")
def names(data_dir: Path) -> list[str]:
    index = json.loads((data_dir / "index.json").read_text())
    return [f"{kind}/{name}" for kind, items in index.items() for name in items]


@pytest.mark.parametrize("codec", LOSSLESS)
def test_bit_for_bit(tmp_path: Path, names: list[str], recorded: Load, codec: str) -> None:
    assert len(names) > 20
    rng = np.random.default_rng(6)
    for name in names:
        rows = recorded(name)
        path = tmp_path / f"{name.replace('/', '_')}.cdd"
        layout = {"dtype": rows.dtype, "row_shape": rows.shape[1:]}
        try:
            writer = cdd.open(path, "w", codec=codec, durability="none", **layout)
        except ValueError as error:
            assert f"cannot hold rows of {rows.dtype}" in str(error)
            continue
        with writer:
            for part in np.array_split(rows, 3):
                writer.append(part)
        with cdd.open(path, check="full") as reader:
            assert reader.shape == rows.shape, name
            assert reader.dtype == rows.dtype, name
            assert reader[:].tobytes() == rows.tobytes(), name
            for start in rng.integers(0, len(rows) - 64, 50).tolist():
                assert reader[start : start + 64].tobytes() == rows[start : start + 64].tobytes(), name
            assert codec == "raw" or reader.stored_bytes < rows.nbytes, name
            if "+" in codec:
                assert {c.codec for c in reader.chunk_infos} <= {codec, "raw"}, name
