"""cdd.plot: sums of the image are those of the rows, prices lie where they are, PNGs are pictures."""

import math
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import cdd
import cdd.plot
from cdd.commands import main
from cdd.plot import raster


def book_of(rows: int, levels: int = 6, seed: int = 0, features: int = 3) -> np.ndarray:
    """A book whose prices are multiples of 0.5 around 100."""
    random = np.random.default_rng(seed)
    middle = 100 + np.cumsum(random.integers(-1, 2, rows)) * 0.5
    offsets = np.arange(levels) - levels / 2 + 0.5
    book = np.empty((rows, levels, features), np.float32)
    book[..., 0] = middle[:, None] + 0.25 + offsets * 0.5
    book[..., 1:] = random.integers(1, 50, (rows, levels, features - 1))
    return book


@hypothesis.given(st.integers(2, 60), st.integers(1, 30), st.booleans(), st.integers(1, 7), st.data())
def test_sums_of_columns_are_those_of_the_rows(
    rows: int, width: int, timed: bool, block: int, data: st.DataObject
) -> None:
    book = book_of(rows, seed=rows)
    time = None
    steps = np.ones(rows)
    if timed:
        gaps = data.draw(st.lists(st.integers(0, 20), min_size=rows, max_size=rows))
        hypothesis.assume(sum(gaps[:-1]))
        time = np.cumsum([0, *gaps[:-1]]) + 10**15
        steps = np.array([*gaps[:-1], 0.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raster, "_BLOCK_ROWS", block)
        found = cdd.plot.heatmap(book, time=time, width=width, price=(0, 1000), height=50)
    columns = found.image.shape[1]
    # Slowly: each column's share of each row.
    bounds = np.concatenate(([0], np.cumsum(steps))) * columns / steps.sum()
    overlap = np.minimum(bounds[1:, None], np.arange(1, columns + 1)) - np.maximum(
        bounds[:-1, None], np.arange(columns)
    )
    expected = np.maximum(overlap, 0).T @ book[..., 1].sum(axis=1)
    assert np.allclose(found.image.sum(axis=0), expected, rtol=1e-4)
    assert found.outside < 1e-9
    best_bid = np.maximum(overlap, 0).T @ book[:, :3, 0].max(axis=1)
    assert np.allclose(found.best_bid, best_bid, rtol=1e-6)
    assert found.rows == rows
    assert found.crossed == 0


def test_a_lone_level_lights_one_line() -> None:
    book = np.zeros((40, 4, 2), np.float32)
    book[:, 1] = (99.5, 3)
    book[:, 2] = (100.5, 4)
    book[10:30, 3] = (102.0, 7)
    found = cdd.plot.heatmap(book, width=40, height=100)
    assert np.allclose(np.diff(found.y), found.y[1] - found.y[0])
    (line,) = np.flatnonzero((found.image == 7).any(axis=1))
    assert found.y[line] <= 102 < found.y[line + 1]
    assert found.image[line].tolist() == [0] * 10 + [7] * 20 + [0] * 10
    assert (found.image > 0).any(axis=1).sum() == 3
    assert np.array_equal(found.best_bid, np.full(40, 99.5))
    assert np.array_equal(found.best_ask, np.full(40, 100.5))


def test_bids_lie_below_the_middle_and_asks_above() -> None:
    book = book_of(500)
    found = cdd.plot.heatmap(book, width=500, height=300)
    middles = (found.y[:-1] + found.y[1:]) / 2
    for column in range(500):
        lit = middles[found.image[:, column] > 0]
        assert (lit <= found.best_bid[column] + 1e-3).sum() == 3
        assert (lit >= found.best_ask[column] - 1e-3).sum() == 3
    assert found.image.shape[0] < 300, "a line for each tick"
    assert np.isclose(found.y[1] - found.y[0], 0.5)
    # The order of levels within a side is free.
    turned = cdd.plot.heatmap(book[:, [2, 0, 1, 5, 4, 3]], width=500, height=300)
    assert np.array_equal(turned.image, found.image)


def test_basis_points_are_from_the_middle_of_each_row() -> None:
    book = book_of(100)
    found = cdd.plot.heatmap(book, by="bps", width=10, height=41, price=(-200, 200))
    assert np.allclose(found.best_bid, -found.best_ask)
    assert found.image[20].sum() == 0
    assert np.allclose(found.image[:20].sum() + found.image[21:].sum(), book[..., 1].sum() / 10, rtol=1e-5)


def test_levels_that_are_missing_and_rows_that_are_crossed() -> None:
    book = book_of(30)
    whole = cdd.plot.heatmap(book, width=30, price=(50, 150))
    for value in (0.0, np.nan, -1.0, np.inf):
        holed = book.copy()
        holed[5, 0, 0] = value
        holed[6, :, 0] = value
        found = cdd.plot.heatmap(holed, width=30, price=(50, 150))
        lost = whole.image.sum(axis=0) - found.image.sum(axis=0)
        assert np.allclose(lost[[5, 6]], [book[5, 0, 1], book[6, :, 1].sum()])
        assert np.allclose(np.delete(lost, [5, 6]), 0)
        assert math.isnan(found.best_bid[6])
        assert found.outside < 1e-9
    crossed = book.copy()
    crossed[3:7, 2, 0] = 120
    assert cdd.plot.heatmap(crossed, width=30).crossed == 4
    one = cdd.plot.heatmap(book, width=30, price=(float(book[0, 0, 0]) - 0.1, float(book[0, 0, 0]) + 0.1))
    assert 0 < one.outside < 1


@pytest.mark.parametrize("kind", ["array", "store", "column"])
def test_what_is_drawn_from(kind: str, tmp_path: Path) -> None:
    book = book_of(400)
    time = np.cumsum(np.arange(400)).astype("M8[ms]")
    source: Any = book
    when: Any = time
    if kind == "store":
        cdd.save(tmp_path / "b.cdd", book)
        cdd.save(tmp_path / "t.cdd", time)
        source, when = cdd.open(tmp_path / "b.cdd"), cdd.open(tmp_path / "t.cdd")
    elif kind == "column":
        with cdd.dataset.open(tmp_path / "d", "w") as w:
            w.append(time=time, ob=book)
        ds = cdd.dataset.open(tmp_path / "d")
        source, when = ds["ob"], ds["time"]
    found = cdd.plot.heatmap(source, 50, 300, time=when, width=100, feature=2)
    assert found.x[0] == time[50]
    assert found.x.dtype == time.dtype
    sums = (book[50:299, :, 2].sum(axis=1) * np.diff(time[50:300]).astype(float)).sum() / float(
        (time[299] - time[50]).astype(int)
    )
    assert np.isclose(found.image.sum() / 100, sums, rtol=1e-3)


def test_bad_arguments_are_errors() -> None:
    book = book_of(20)
    time = np.arange(20)
    for bad in (book[..., 0], book[:, :5], book[..., :1], np.zeros(3)):
        with pytest.raises(ValueError, match="a book is"):
            cdd.plot.heatmap(bad)
        with pytest.raises(ValueError, match="a book is"):
            cdd.plot.ladder(bad, 0)
    nat = np.where(time == 4, np.datetime64("NaT"), time.astype("M8[s]"))
    for text, options in [
        ("feature is 3", {"feature": 3}), ("feature is 0", {"feature": 0}), ("by is", {"by": "ticks"}),
        ("nothing to draw", {"start": 5, "stop": 5}), ("width is 0", {"width": 0}),
        ("range", {"price": (3, 2)}), ("time has 19 rows", {"time": time[:19]}),
        ("not later", {"time": time * 0}), ("back in row 9", {"time": np.where(time == 9, 0, time)}),
        ("time is one integer", {"time": time * 1.0}), ("NaT in row 4", {"time": nat}),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=text):
            cdd.plot.heatmap(book, **{"width": 4, **options})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="width times height"):
        cdd.plot.heatmap(book, time=time, width=1 << 20, height=1 << 20, by="bps")
    with pytest.raises(ValueError, match="has a bid and an ask"):
        cdd.plot.heatmap(np.zeros((3, 2, 2), np.float32))
    with pytest.raises(IndexError):
        cdd.plot.heatmap(book, 21)


def test_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("matplotlib")
    book, time = book_of(3000, 20), np.cumsum(np.arange(3000)).astype("M8[ms]")
    cdd.save(tmp_path / "b.cdd", book)
    cdd.save(tmp_path / "t.cdd", time)
    with cdd.dataset.open(tmp_path / "d", "w") as w:
        w.append(time=time, ob=book)
    for at, words in enumerate(
        [
            [str(tmp_path / "b.cdd"), "--time", str(tmp_path / "t.cdd"), "--rows", "100:2000"],
            [str(tmp_path / "b.cdd"), "--bps", "--size", "500x300", "--linear"],
            [str(tmp_path / "d"), "--feature", "2"],
            [str(tmp_path / "b.cdd"), "--ladder", "-7"],
        ]
    ):
        output = tmp_path / f"{at}.png"
        assert main(["plot", *words, "-o", str(output)]) == 0
        assert capsys.readouterr().out == f"{output}\n"
        picture = image.open(output).convert("RGB")
        assert picture.size == ((500, 300) if "--size" in words else (1400, 640))
        assert len(picture.getcolors(1 << 24)) > 50
    assert main(["plot", str(tmp_path / "b.cdd")]) == 0
    assert (tmp_path / "b.png").exists()
    capsys.readouterr()
    assert main(["plot", str(tmp_path / "t.cdd")]) == 1
    assert "a book is (n, levels, features)" in capsys.readouterr().err
    assert main(["plot", str(tmp_path / "b.cdd"), "--column", "ob"]) == 1
    assert "--column is for datasets" in capsys.readouterr().err


def test_files_and_rows_are_named_as_for_other_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("matplotlib")
    book, time = book_of(300, 20), np.cumsum(np.arange(300)).astype("M8[ms]")
    with cdd.dataset.open(tmp_path / "d", "w") as w:
        w.append(time=time, ob=book[:, ::-1], mid=book[:, 0, 0])
        w["deep/bed"].append(time=time, second=book)
    cdd.save(tmp_path / "second.cdd", book)
    cdd.save(tmp_path / "t.cdd", time)

    def drawn(*words: str) -> Any:
        output = tmp_path / "out.png"
        assert main(["plot", *words, "--size", "500x300", "-o", str(output)]) == 0, capsys.readouterr().err
        with image.open(output) as picture:
            return np.asarray(picture.convert("RGB"))[40:]  # without the title, whose height places the rest

    wanted = drawn(str(tmp_path / "second.cdd"), "--time", str(tmp_path / "t.cdd"), "--rows", "200:300")
    assert np.array_equal(drawn(str(tmp_path / "d" / "deep" / "bed" / "second"), "--rows=-100:"), wanted)
    assert np.array_equal(drawn(str(tmp_path / "d" / "deep" / "bed"), "--rows=-100:900"), wanted)
    capsys.readouterr()
    for words, status, text in (
        ([str(tmp_path / "d/no")], 1, "there is no column 'no': one of time, ob, mid"),
        ([str(tmp_path / "d/ob"), "--column", "ob"], 1, "FILE names the column 'ob'"),
        ([str(tmp_path / "d"), "-o", str(tmp_path / "nodir" / "x.png")], 1, "nodir"),
        ([str(tmp_path / "d"), "--rows", "a:b"], 2, "rows are A:B"),
        ([str(tmp_path / "d"), "--rows", "5"], 2, "rows are A:B, not '5'"),
        ([str(tmp_path / "d"), "--rows", "::2"], 2, "rows are A:B, not '::2'"),
    ):
        try:
            found = main(["plot", *words])
        except SystemExit as left:
            found = int(str(left.code))
        told = capsys.readouterr().err
        assert (found, text in told) == (status, True), told
    with pytest.raises(ValueError, match=r"a book is .*, not '.*d'"):
        cdd.plot.heatmap(str(tmp_path / "d"))
    last = cdd.plot.heatmap(book, -100, time=time, width=40)
    assert np.array_equal(last.image, cdd.plot.heatmap(book, 200, 300, time=time, width=40).image)


def test_axes_of_the_program_are_drawn_on() -> None:
    figure = pytest.importorskip("matplotlib.figure")
    ax = figure.Figure().add_subplot()
    found = cdd.plot.heatmap(book_of(100), width=50)
    assert cdd.plot.draw(found, ax, trades=([5, 9], [100.0, 101.0], [1, 4])) is ax
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"best bid", "best ask", "trades"}
    assert cdd.plot.draw(found, figure.Figure().add_subplot(), scale="linear", mid=False).get_legend() is None
    with pytest.raises(ValueError, match="scale is"):
        cdd.plot.draw(found, ax, scale="sqrt")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="trades are"):
        cdd.plot.draw(found, ax, trades=([5, 9], [100.0]))
    bars = cdd.plot.ladder(book_of(10), 3, figure.Figure().add_subplot())
    assert len(bars.patches) == 6
    assert "spread 0.5" in bars.get_title()
