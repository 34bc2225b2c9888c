"""A collector, a follower, a trainer and a correction: python3 dev.py demo dataset"""

import tempfile
import time
from pathlib import Path

import numpy as np

import cdd

ROWS = 200_000


def main() -> None:
    random = np.random.default_rng(1)
    times = np.cumsum(random.integers(1, 200, ROWS)).astype("M8[ms]")
    steps = random.normal(0, 0.01, (ROWS, 1)).cumsum(0)
    book = np.stack((100 + steps + np.arange(20) / 100, random.integers(1, 99, (ROWS, 20))), axis=2)
    book = book.astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "btc"
        with cdd.dataset.open(path, "w", attrs={"venue": "demo"}) as w:
            follower = None
            for at in range(0, ROWS, 20_000):
                part = slice(at, at + 20_000)
                w.append(time=times[part], ob=book[part], mid=book[part, :, 0].mean(axis=1))
                w.flush()
                follower = follower or cdd.dataset.open(path)
                follower.refresh()
            print(f"a follower sees {len(follower):,} rows before there is a version of them")
            first = w.commit("first day")
            w["trades"].append(
                time=times[::50], size=np.arange(ROWS // 50), side=["buy", "sell"] * (ROWS // 100)
            )

        ds = cdd.dataset.open(path)
        print(ds)
        starts = random.integers(0, ROWS - 64, 4096)
        begin = time.perf_counter()
        windows = ds.read_windows(starts, 64, columns=("ob", "time", "mid"))
        print(
            f"4,096 windows of 64 rows, 3 columns: {time.perf_counter() - begin:.3f} s, {windows['ob'].shape}"
        )
        noon = times[ROWS // 2]
        minute = ds["ob"][ds.between(noon, noon + 60_000)]
        print(f"at {noon}: row {ds.at(noon):,}; the minute after it has {len(minute):,} rows")
        joined = ds.asof("trades")
        print(f"row 1,234 is joined with trade {joined[1234]}, a {ds['trades']['side'].text()[joined[1234]]}")

        with cdd.dataset.transaction(path, "bad ticks") as t:
            t["mid"][1000:1010] = 0.0
        ds.refresh()
        old = cdd.dataset.open(path, as_of=first)
        print(f"row 1,005 is {ds['mid'][1005]} now and was {old['mid'][1005]:.3f} in version {int(first)}")
        for version in ds.versions():
            print(f"  version {version.number}: {version.op}, {version.rows} {version.message}")


if __name__ == "__main__":
    main()
