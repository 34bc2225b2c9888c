"""Storing float32 books as float16: only on request, never an infinity, and the error is told."""

from pathlib import Path

import numpy as np
import pytest

import cdd
from cdd.commands import main

RNG = np.random.default_rng(9)
BOOKS = {
    "okx": (RNG.random((400, 50, 3)) * 1000 + 1).astype(np.float32),
    "generic": (RNG.random((400, 10, 2)) * 1000 + 1).astype(np.float32),
}


@pytest.mark.parametrize("name", BOOKS)
@pytest.mark.parametrize("options", [{"float16": True}, {"float16": True, "codec": "generic_ob"}], ids=str)
def test_what_is_read_is_the_nearest_float16(tmp_path: Path, name: str, options: dict) -> None:
    rows = BOOKS[name]
    want = rows.astype(np.float16).astype(np.float32)
    with cdd.open(tmp_path / "a.cdd", "w", **options) as writer:
        writer.append(rows)
    with cdd.open(tmp_path / "a.cdd", check="full") as reader:
        assert reader.dtype == np.float32
        got = reader[:]
        assert np.array_equal(got, want)
        assert all("ob" in chunk.codec for chunk in reader.chunk_infos)
    error = np.abs(got.astype(np.float64) - rows)
    assert writer.float16_error.max_abs == pytest.approx(error.max(), rel=1e-6)
    assert writer.float16_error.max_rel == pytest.approx((error / rows).max(), rel=1e-6)


def test_normalised_by_mid(tmp_path: Path) -> None:
    """BTC prices in plain float16 are 32 apart; as price / mid - 1 they keep some 2e-6 of the price."""
    rows = BOOKS["okx"].copy()
    rows[:, :, 0] = 60_000 + RNG.random((400, 1)) * 100 + np.arange(-25, 25)
    with cdd.open(tmp_path / "a.cdd", "w", float16=True, normalise="mid", size_scale=10) as writer:
        writer.append(rows)
    got = cdd.load(tmp_path / "a.cdd")
    error = np.abs(got.astype(np.float64) - rows)
    assert error[:, :, 0].max() < 0.1
    assert (error / rows)[:, :, 1:].max() < 1e-3
    assert writer.float16_error.max_abs == pytest.approx(error.max(), rel=1e-6)


@pytest.mark.parametrize("bad", [70_000.0, -1e30, 65520.0])
def test_overflow_is_refused_and_the_writer_goes_on(tmp_path: Path, bad: float) -> None:
    rows = BOOKS["okx"]
    wrong = rows.copy()
    wrong[300, 7, 2] = bad
    with cdd.open(tmp_path / "a.cdd", "w", float16=True, chunk_rows=50) as writer:
        writer.append(rows)
        with pytest.raises(ValueError, match=r"float16"):
            writer.append(wrong)
        assert len(writer) == 400
        writer.append(rows[:7])
    assert np.array_equal(
        cdd.load(tmp_path / "a.cdd")[:, 0, 0], np.float16([*rows[:, 0, 0], *rows[:7, 0, 0]])
    )


def test_what_was_infinite_or_not_a_number_stays_so(tmp_path: Path) -> None:
    rows = BOOKS["okx"].copy()
    rows[3, 7] = np.inf, -np.inf, np.nan
    cdd.save(tmp_path / "a.cdd", rows, float16=True)
    assert np.array_equal(cdd.load(tmp_path / "a.cdd")[3, 7], rows[3, 7], equal_nan=True)


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    path = tmp_path / "a.cdd"
    layout = {"dtype": "f4", "row_shape": (50, 3)}
    for options, match in (
        ({"float16": True, "codec": "zstd", **layout}, "zstd.*float16"),
        (
            {"float16": True, "dtype": "f8", "row_shape": (50, 3)},
            r"float16 needs rows of float32 .*, not of float64 \(50, 3\)",
        ),
        ({"float16": True, "normalise": "max"}, 'normalise is one of "mid", not "max"'),
        ({"float16": True, "size_scale": 0.0}, "size_scale"),
        ({"float16": True, "size_scale": float("nan")}, "size_scale"),
        ({"normalise": "mid"}, "float16"),
        ({"size_scale": 2.0}, "float16"),
        ({"codec": "gzip"}, 'unknown codec "gzip", known are auto, raw'),
        (
            {"codec": "okx_ob_f32", "dtype": "f8", "row_shape": (3,)},
            r'codec "okx_ob_f32" takes rows of float32 \(50, 3\): it cannot hold rows of float64 \(3,\)',
        ),
        (
            {"codec": "levels", "dtype": "f8", "row_shape": (3,)},
            r'"levels" takes rows of \(levels, features\) .* 4 or 8 bytes.* rows of float64 \(3,\)',
        ),
        (
            {"codec": "generic_ob+lz4", "dtype": "u1", "row_shape": (3, 2)},
            r'"generic_ob\+lz4" takes rows of .* 2, 4 or 8 bytes: .* rows of uint8 \(3, 2\)',
        ),
        (
            {"float16": True, "dtype": "f4", "row_shape": ()},
            r"float16 needs rows of float32 \(levels, features\), not of float32 \(\)",
        ),
        (
            {"float16": True, "codec": "generic_ob", "dtype": "f2", "row_shape": (3, 2)},
            r"float16 needs .*, not of float16 \(3, 2\)",
        ),
        ({"profile": "small"}, 'profile is one of "fast", "dense"'),
        ({"zstd_level": 0}, "zstd_level is 0, 1 to 22"),
        ({"zstd_level": 23}, "zstd_level is 23, 1 to 22"),
    ):
        with pytest.raises(ValueError, match=match):
            cdd.open(path, "w", **options)
        assert not path.exists()


@pytest.mark.parametrize("profile", ["fast", "dense"])
@pytest.mark.parametrize("level", [1, 22])
def test_profiles_and_levels(tmp_path: Path, profile: str, level: int) -> None:
    rows = np.repeat(BOOKS["okx"][:50], 4, axis=0)
    cdd.save(tmp_path / "a.cdd", rows, profile=profile, zstd_level=level)
    assert np.array_equal(cdd.load(tmp_path / "a.cdd"), rows)


def test_a_value_that_does_not_fit_is_refused_before_it_waits(tmp_path: Path) -> None:
    """Else it would stand in the way of every later chunk."""
    path = tmp_path / "a.cdd"
    rows = np.ones((3, 50, 3), np.float32)
    bad = rows.copy()
    bad[1, 7, 1] = 1e6
    with cdd.open(path, "w", float16=True, chunk_rows=64) as writer:
        writer.append(rows)
        with pytest.raises(ValueError, match=r"row 1, level 7, feature 1: 1000000"):
            writer.append(bad)
        writer.append(rows)
        assert len(writer) == 6
    np.testing.assert_array_equal(cdd.load(path), np.ones((6, 50, 3), np.float32))


@pytest.mark.parametrize("order", [1, -1])
def test_the_mid_is_that_of_the_innermost_levels(order: int) -> None:
    """Whichever way the halves are ordered, the nearest prices are stored best: here with no error at all."""
    book = np.zeros((4, 50, 3), np.float32)
    bids, asks = 1000 - np.arange(25) * 8, 1008 + np.arange(25) * 8
    book[:, :25, 0] = bids[::order]
    book[:, 25:, 0] = asks[::-order]
    memory = cdd.Memory()
    with cdd.open(memory, "w", float16=True, normalise="mid") as writer:
        writer.append(book)
    found = cdd.load(memory)
    best = abs(book[0, :, 0] - 1004) < 5
    assert best.sum() == 2
    assert abs(found[:, best, 0] - book[:, best, 0]).max() < 0.003


@pytest.mark.parametrize("codec", ["okx_ob_f16", "okx_ob_f16+zstd", "okx_ob_f16+lz4"])
def test_compact_never_rounds(codec: str, tmp_path: Path) -> None:
    path, other = tmp_path / "books.cdd", tmp_path / "other.cdd"
    books = np.random.default_rng(0).random((300, 50, 3), np.float32)
    cdd.save(path, books)
    before = path.read_bytes()
    for output in (None, other):
        with pytest.raises(ValueError, match=r"okx_ob_f16.*float16"):
            cdd.compact(path, output, codec=codec)
    assert main(["compact", str(path), "--codec", codec]) == 1
    assert path.read_bytes() == before
    assert not other.exists()
