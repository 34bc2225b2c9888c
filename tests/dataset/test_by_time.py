"""As-of joins and windows joined by time, against what they are defined as, NumPy, pandas and polars."""

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd.dataset as datasets
from cdd import _cdd

CASES = int(os.environ.get("CDD_ASOF_CASES", "400"))
DIRECTIONS = ("backward", "forward", "nearest")


def joined(
    left: np.ndarray, right: np.ndarray, direction: str, tolerance: int | None, exact: bool
) -> np.ndarray:
    """The definition, by looking at every pair."""
    far = np.abs(right[None, :] - left[:, None])
    back, ahead = right[None, :] <= left[:, None], right[None, :] >= left[:, None]
    numbers = np.arange(len(right))[None, :]
    # Of equal times the last is joined backward, the first forward; of two as near the earlier one.
    cost = 4 * far * (len(right) + 1)
    back_cost, ahead_cost = cost + (len(right) - numbers), cost + 2 * (len(right) + 1) + numbers
    most = np.iinfo(np.int64).max
    allowed = np.ones_like(far, bool) if tolerance is None else far <= tolerance
    allowed &= exact | (far > 0)
    back_cost = np.where(back & allowed, back_cost, most)
    ahead_cost = np.where(ahead & allowed, ahead_cost, most)
    picked = {"backward": back_cost, "forward": ahead_cost, "nearest": np.minimum(back_cost, ahead_cost)}
    best = picked[direction].argmin(axis=1)
    return np.where(picked[direction].min(axis=1) == most, -1, best)


def tables(place: Any, left: np.ndarray, right: np.ndarray, **options: Any) -> datasets.Dataset:
    with datasets.open(place, "w", **options) as w:
        w.append(time=left, n=np.arange(len(left)))
        w["right"].append(
            time=right,
            price=np.arange(len(right)) / 2,
            size=np.arange(len(right), dtype=np.int16),
            book=np.arange(len(right) * 6, dtype=np.float32).reshape(-1, 3, 2),
            seen=right.astype("M8[s]"),
        )
    return datasets.open(place)


def random_times(random: np.random.Generator) -> np.ndarray:
    return np.sort(random.integers(0, random.integers(1, 200), random.integers(1, 60)))


@pytest.mark.parametrize("seed", range(4))
def test_joins_are_what_they_are_defined_as(seed: int) -> None:
    """Random times with many ties; beside pandas and polars where they are installed."""
    pandas = pytest.importorskip("pandas") if seed == 1 else None
    polars = pytest.importorskip("polars") if seed == 2 else None
    random = np.random.default_rng(seed)
    for _ in range(CASES // 4 // 5):
        left, right = random_times(random), random_times(random)
        ds = tables(datasets.MemoryDirectory(), left, right, superchunk_bytes=4096)
        for _ in range(5):
            direction = DIRECTIONS[random.integers(3)]
            tolerance = None if random.random() < 0.3 else int(random.integers(0, 30))
            exact = bool(random.random() < 0.6)
            found = ds.asof("right", direction=direction, tolerance=tolerance, exact=exact)
            assert np.array_equal(found, joined(left, right, direction, tolerance, exact))
            if pandas is not None:
                theirs = of_pandas(pandas, left, right, direction, tolerance, exact)
                same = found == theirs
                if direction == "nearest":  # pandas takes the last of equal times, and any of two as near
                    same |= (
                        (found >= 0) & (theirs >= 0) & (far(left, right, found) == far(left, right, theirs))
                    )
                assert same.all()
            if polars is not None:
                check_polars(polars, left, right, direction, tolerance, exact, found)


def far(left: np.ndarray, right: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.abs(left - right[np.maximum(rows, 0)])


def of_pandas(
    pandas: Any, left: np.ndarray, right: np.ndarray, direction: str, tolerance: int | None, exact: bool
) -> np.ndarray:
    a = pandas.DataFrame({"time": left})
    b = pandas.DataFrame({"time": right, "row": np.arange(len(right))})
    made = pandas.merge_asof(
        a, b, on="time", direction=direction, tolerance=tolerance, allow_exact_matches=exact
    )
    return made["row"].fillna(-1).to_numpy(np.int64)


def check_polars(
    polars: Any,
    left: np.ndarray,
    right: np.ndarray,
    direction: str,
    tolerance: int | None,
    exact: bool,
    found: np.ndarray,
) -> None:
    """polars says which of equal times it joins for none of its strategies: times are compared."""
    a = polars.DataFrame({"time": left})
    b = polars.DataFrame({"time": right, "at": right})
    made = a.join_asof(
        b, on="time", strategy=direction, tolerance=tolerance, allow_exact_matches=exact, coalesce=True
    )
    theirs = made["at"].fill_null(-1).to_numpy()
    mine = np.where(found < 0, -1, right[found])
    same = mine == theirs
    if direction == "nearest":
        same |= (mine >= 0) & (theirs >= 0) & (np.abs(mine - left) == np.abs(theirs - left))
    assert same.all()


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> tuple[datasets.Dataset, np.ndarray, np.ndarray]:
    """Tables of many superchunks."""
    random = np.random.default_rng(7)
    left = np.sort(random.integers(0, 400_000, 20_000))
    right = np.sort(random.integers(1000, 390_000, 150_000))
    ds = tables(tmp_path_factory.mktemp("long"), left, right, superchunk_bytes=30_000)
    return ds, left, right


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_windows_are_joined_in_the_same_call(
    long: tuple[datasets.Dataset, np.ndarray, np.ndarray], direction: str
) -> None:
    ds, left, right = long
    random = np.random.default_rng(3)
    starts = random.integers(-len(left), len(left) - 16, 300)
    starts[:5] = [0, 0, len(left) - 16, 3, 10]
    starts = np.where((starts < 0) & (starts > -16), 0, starts)
    how = {"columns": ("price", "size", "seen", "book"), "direction": direction, "tolerance": 5}
    found = ds.read_windows(starts, 16, columns=("n",), asof={"right": how})
    rows = (np.where(starts < 0, starts + len(left), starts))[:, None] + np.arange(16)
    assert np.array_equal(found["n"], rows)
    wanted = ds.asof("right", direction=direction, tolerance=5)[rows]
    assert (wanted < 0).any()
    assert np.array_equal(found["right"], wanted)
    none = wanted < 0
    assert np.array_equal(found["right/price"], np.where(none, np.nan, wanted / 2), equal_nan=True)
    assert np.array_equal(found["right/size"], np.where(none, 0, wanted).astype(np.int16))
    assert found["right/size"].dtype == np.int16
    assert np.isnat(found["right/seen"]).sum() == none.sum()
    assert np.array_equal(found["right/seen"][~none], right[wanted[~none]].astype("M8[s]"))
    book = np.arange(len(right) * 6, dtype=np.float32).reshape(-1, 3, 2)
    assert np.array_equal(found["right/book"][~none], book[wanted[~none]])
    assert np.isnan(found["right/book"][none]).all()


def test_levels_and_out_in_joined_windows(long: tuple[datasets.Dataset, np.ndarray, np.ndarray]) -> None:
    ds, _, right = long
    starts = np.array([17, 19_000, 18])
    out = {
        "n": np.empty((3, 8), np.int64),
        "right": np.empty((3, 8), np.int64),
        "right/book": np.empty((3, 8, 2), np.float32),
    }
    how = {"right": ("book", "seen")}
    found = ds.read_windows(starts, 8, columns=["n"], out=out, levels=[2, 0], features=1, asof=how)
    assert all(found[name] is array for name, array in out.items())
    wanted = ds.asof("right")[starts[:, None] + np.arange(8)]
    assert np.array_equal(out["right"], wanted)
    none = wanted < 0
    book = np.arange(len(right) * 6, dtype=np.float32).reshape(-1, 3, 2)[:, [2, 0], 1]
    assert np.array_equal(out["right/book"][~none], book[wanted[~none]])
    assert not none.all()
    table = ds["right"]
    whole = np.arange(len(right) * 6, dtype=np.float32).reshape(-1, 3, 2)
    for levels in (None, 1, slice(0, 2), [2, 0], [True, False, True]):
        for features in (None, -1, slice(1, None)):
            array = whole[starts[:, None] + np.arange(8)]
            if levels is not None:
                array = array[:, :, levels]
            if features is not None:
                array = array[..., features]
            kept = {"book": features} if features is not None else None
            result = table.read_windows(starts, 8, columns=("book", "size"), levels=levels, features=kept)
            assert np.array_equal(result["book"], array)
            assert np.array_equal(result["size"], (starts[:, None] + np.arange(8)).astype(np.int16))


def test_what_does_not_fit(tmp_path: Path) -> None:
    ds = tables(tmp_path, np.arange(10), np.arange(20))
    for error, given in (
        (KeyError, {"asof": {"left": ()}}),
        (KeyError, {"asof": {"right": ("prices",)}}),
        (TypeError, {"asof": {"right": {"column": ("price",)}}}),
        (ValueError, {"asof": {"right": {"columns": ("price",), "direction": "up"}}}),
        (ValueError, {"levels": [0]}),
        (ValueError, {"levels": {"n": 0}}),
        (ValueError, {"levels": {"right/book": 0}}),
        (IndexError, {"levels": {"right/book": 3}, "asof": {"right": ("book",)}}),
        (KeyError, {"out": {"right": np.empty(3)}}),
    ):
        with pytest.raises(error):
            ds.read_windows([0, 5], 3, **given)  # type: ignore[arg-type]
    for starts, rows in (([8], 3), ([-1], 2), ([0], 11), ([10], 1)):
        with pytest.raises(IndexError):
            ds.read_windows(starts, rows, asof={"right": ("price",)})
    nothing = ds.read_windows([], 3, asof={"right": ("price",)})
    assert nothing["right/price"].shape == (0, 3)
    assert nothing["right"].shape == (0, 3)


def test_units_and_empty_tables(tmp_path: Path) -> None:
    with datasets.open(tmp_path, "w") as w:
        w.append(time=np.arange(0, 50, 5).astype("M8[ms]"))
        w["fine"].append(time=(np.arange(40) * 10**6 + 1).astype("M8[ns]"), x=np.arange(40))
        w["empty"].append(time=np.empty(0, "M8[ns]"), x=np.empty(0))
    ds = datasets.open(tmp_path)
    assert ds.asof("fine").tolist() == [-1, *range(4, 40, 5), 39]
    assert ds.asof("fine", tolerance=np.timedelta64(2, "us"), direction="forward").tolist() == [
        *range(0, 40, 5),
        -1,
        -1,
    ]
    assert ds["fine"].asof(ds, exact=False).tolist() == (np.arange(40) // 5).tolist()
    assert ds.asof("empty").tolist() == [-1] * 10
    assert np.isnan(ds.read_windows([0], 10, asof={"empty": ("x",)})["empty/x"]).all()


UNITS = {"W": 604800 * 10**18, "D": 86400 * 10**18, "s": 10**18, "ns": 10**9, "ps": 10**6, "as": 1}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("clock", UNITS)
def test_times_of_any_unit_are_looked_up(clock: str, unit: str) -> None:
    """Also where NumPy has no factor between the two, as of days and picoseconds."""
    ticks = [-(2**63) + 1, -70_000, -1, 0, 1, 2, 86_400, 2**63 - 1]
    memory = datasets.MemoryDirectory()
    with datasets.open(memory, "w") as w:
        w.append(time=np.array(ticks, f"M8[{clock}]"))
    ds = datasets.open(memory)
    rows = np.array(ticks, object) * UNITS[clock]
    for item in (-(2**63) + 1, -86_401, -1, 0, 1, 10**12, 86_400 * 10**12, 2**63 - 1):
        sought = item * UNITS[unit]
        wanted = np.searchsorted(rows, sought, "right") - 1
        given = np.datetime64(item, unit)
        assert ds.between(given, None).start == np.searchsorted(rows, sought)
        if wanted >= 0:
            assert ds.at(given) == wanted
            assert ds.at(np.array([given, given])).tolist() == [wanted, wanted]
        else:
            with pytest.raises(IndexError, match="no row that is not later"):
                ds.at(given)
    sought = 10**12 * UNITS[unit] * 25
    assert ds.between(np.datetime64(10**12, f"25{unit}"), None).start == np.searchsorted(rows, sought)
    assert ds["time"].searchsorted(np.datetime64(0, unit)) == 3


def test_each_column_has_starts_of_its_own(long: tuple[datasets.Dataset, np.ndarray, np.ndarray]) -> None:
    """What the core takes: starts in any order, the same ones or others, and columns that want no rows."""
    ds, left, _ = long
    random = np.random.default_rng(5)
    starts = random.integers(0, len(left) - 33, 500)
    single = np.arange(len(left))[::-1].copy()
    n, time = ds["n"]._core, ds["time"]._core
    outs = [np.empty((500, 0), np.int64), *(np.empty((500, 33), np.int64) for _ in range(2))]
    outs.append(np.empty((len(left), 1), np.int64))
    requests = [(time, starts, 0, outs[0], None), (n, starts, 33, outs[1], None)]
    _cdd.read_columns([*requests, (time, starts, 33, outs[2], None), (time, single, 1, outs[3], None)])
    rows = starts[:, None] + np.arange(33)
    assert np.array_equal(outs[1], rows)
    assert np.array_equal(outs[2], left[rows])
    assert np.array_equal(outs[3][:, 0], left[single])


@pytest.mark.filterwarnings("error")
def test_times_with_a_zone_are_of_utc() -> None:
    """Datetimes and ISO texts; NumPy alone would warn of each."""
    place = datasets.MemoryDirectory()
    first = np.datetime64("2024-05-01T22:00:00.000", "ms")
    with datasets.open(place, "w") as w:
        w.append(time=first + np.arange(4) * np.timedelta64(30, "m"), n=np.arange(4))
        version = w.commit()
    ds = datasets.open(place)
    utc = datetime(2024, 5, 1, 22, 30, tzinfo=UTC)
    east = utc.astimezone(timezone(timedelta(hours=5, minutes=30)))
    west = utc.astimezone(timezone(-timedelta(hours=7)))
    texts = [one.isoformat() for one in (utc, east, west)] + ["2024-05-01 22:30Z", "2024-05-02T04:00+0530"]
    for time in (utc, east, west, utc.replace(tzinfo=None), *texts, "2024-05-01T15:30-07"):
        assert ds.at(time) == 1, time
        assert ds.between(time, None) == slice(1, 4), time
    assert ds.at([east, utc + timedelta(hours=1)]).tolist() == [1, 3]
    assert ds.at(texts).tolist() == [1] * 5
    soon = version.time.astype("M8[us]").astype(object) + timedelta(seconds=1)
    soon = soon.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=9)))
    assert datasets.open(place, as_of=soon).version.number == version.number
    with pytest.raises(datasets.VersionNotFoundError, match="as old as"):
        datasets.open(place, as_of=soon - timedelta(hours=1))
    with pytest.raises(datasets.VersionNotFoundError, match="texts are tags"):
        datasets.open(place, as_of="2024-05-01")
