"""Whole files that were written once and must be readable for ever. They are never made again."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import cdd

TESTS = Path(__file__).parent.parent
GOLDEN = TESTS / "golden"
BOOK = (np.arange(6 * 50 * 3) % 97).astype(np.float32).reshape(6, 50, 3)


def test_tiny() -> None:
    """The file that docs/formats/cdd.md explains byte by byte."""
    reader = cdd.open(GOLDEN / "tiny.cdd")
    assert reader.user_meta == b"tick 0.1"
    assert reader.dtype == np.uint16
    np.testing.assert_array_equal(reader[:], [1, 2, 3, 4])
    assert [chunk.offset for chunk in reader.chunk_infos] == [0x10E0, 0x1110]
    assert reader.verify().ok
    text = (TESTS.parent / "docs/formats/cdd.md").read_text(encoding="utf-8")
    dumped = re.findall(r"^([0-9a-f]{6})  ((?:[0-9a-f]{2} ){15}[0-9a-f]{2})  ", text, re.MULTILINE)
    data = (GOLDEN / "tiny.cdd").read_bytes()
    for offset, line in dumped:
        at = int(offset, 16)
        assert bytes.fromhex(line) == data[at : at + 16]
    assert len(dumped) > 15


@pytest.mark.parametrize("append", [False, True])
def test_a_writer_that_died(tmp_path: Path, append: bool) -> None:
    path = tmp_path / "a.cdd"
    shutil.copy(GOLDEN / "unclosed.cdd", path)
    if append:
        with cdd.open(path, "a") as writer:
            writer.append(BOOK[:3])
    reader = cdd.open(path)
    assert reader.user_meta == b"a writer that died"
    np.testing.assert_array_equal(reader[:], np.concatenate([BOOK, BOOK[:3]]) if append else BOOK)
    assert reader.verify().ok


def test_nothing_appended() -> None:
    reader = cdd.open(GOLDEN / "empty.cdd")
    assert reader.shape == (0,)
    assert reader.dtype == np.dtype("M8[ms]")
    assert reader[:].shape == (0,)
