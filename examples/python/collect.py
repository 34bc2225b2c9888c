"""A book as OKX sends it, with a gap, into a dataset, and windows of it: python3 dev.py demo collect

python3 dev.py demo collect --live BTC-USDT     60 seconds of OKX itself; it needs websockets
"""

import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cdd

SYMBOL = "BTC-USDT"


def messages(count: int) -> Iterator[str]:
    """A snapshot and its changes, as the channel "books" sends them; one is lost, later a snapshot comes."""
    dice, seq, time_ms = random.Random(1), 100, 1_760_000_000_000

    def level(price: int) -> list[str]:
        return [f"{price / 10:.1f}", f"{dice.uniform(0.01, 5):.4f}", "0", str(dice.randrange(1, 9))]

    for number in range(count):
        time_ms += dice.randrange(20, 180)
        is_snapshot = number in (0, count // 2 + 20)
        if is_snapshot:
            bids, asks = ([level(600_000 + side * (1 + n)) for n in range(50)] for side in (-1, 1))
        else:
            bids, asks = [level(600_000 - dice.randrange(1, 51))], [level(600_000 + dice.randrange(1, 51))]
        data = {"bids": bids, "asks": asks, "ts": str(time_ms), "seqId": seq + 1, "checksum": 0}
        data["prevSeqId"] = -1 if is_snapshot else seq
        seq += 1
        if number == count // 2:
            continue  # lost on the way
        arg = {"channel": "books", "instId": SYMBOL}
        yield json.dumps({"arg": arg, "action": "snapshot" if is_snapshot else "update", "data": [data]})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        if "--live" in sys.argv:
            symbol = sys.argv[-1]
            print(asyncio.run(cdd.feeds.record(folder, [symbol], seconds=60)))
            path = Path(folder) / symbol
        else:
            path = Path(folder) / "btc"
            with cdd.feeds.Sink(path, symbol=SYMBOL) as sink:
                for message in messages(3000):
                    sink.put(message)
            print(f"kept {dict(sink.counts)}, rejected {dict(sink.rejected)}")

        ds = cdd.dataset.open(path)
        print(ds)
        best_bid, best_ask = ds["book"][-1][24], ds["book"][-1][25]
        print(f"at {ds['time'][-1]}: bid {best_bid[0]:.1f} x {best_bid[1]:.4f}, ask {best_ask[0]:.1f}")
        cuts = cdd.feeds.sessions(ds)
        print(f"sessions begin at rows {cuts.tolist()}: {ds['sessions']['reason'].text()}")
        windows = cdd.Windows(ds, 64, columns=("book", "time"), cut=cuts)
        print(
            f"{len(windows):,} windows of 64 rows cross no gap; one has a book of {windows[0]['book'].shape}"
        )
        stored = sum(ds[name].stored_bytes for name in ds.columns)
        raw = sum(ds[name].nbytes for name in ds.columns)
        print(f"{raw / len(ds):.0f} bytes a row are stored in {stored / len(ds):.0f}")


if __name__ == "__main__":
    main()
