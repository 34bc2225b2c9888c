"""Disks that fail under a sink, and processes that are killed: no row is lost that was acknowledged, none is
there twice, none without its time."""

import asyncio
import errno
import multiprocessing as mp
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import dataset, feeds
from cdd.dataset.collecting.table_writer import TableWriter
from cdd.dataset.collecting.tails import TailTable
from cdd.dataset.collecting.writer import DatasetWriter
from cdd.store.writer import Writer
from tests.ecosystem.feeds_rig import check, received, sink
from tests.ecosystem.okx_stream import Exchange, replay

LIFE_MS = 1_000_000_000  # of the exchange, more than any child gets to
KILLS = int(os.environ.get("CDD_FEEDS_KILLS", "8"))


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "the disk")


class Failing:
    """Calls of a method fail from the `first` on, `count` of them, before or after they did their work."""

    def __init__(self, method: Callable[..., Any], first: int, count: int, after: bool) -> None:
        self.method, self.range, self.after, self.calls = method, range(first, first + count), after, 0

    def bound(self) -> Callable[..., Any]:
        def call(of: Any, *arguments: Any, **named: Any) -> Any:
            number, self.calls = self.calls, self.calls + 1
            if number not in self.range:
                return self.method(of, *arguments, **named)
            if self.after:
                self.method(of, *arguments, **named)
            return full()

        return call


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [(DatasetWriter, "flush"), (DatasetWriter, "append"), (TableWriter, "append"), (TailTable, "roll"),
     (Writer, "append"), (Writer, "flush")],
    ids=lambda value: getattr(value, "__name__", value),
)  # fmt: skip
def test_rows_wait_while_the_disk_fails(
    owner: type, name: str, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = list(Exchange(seed=2).run(170))
    del messages[100]
    later = Exchange(seed=3)
    later.time_ms += 1_000_000
    messages += later.run(20)
    slow = replay(messages)
    for first in (0, 3):
        path = tmp_path / str(first)
        with sink(path, roll="5s") as into:
            failing = Failing(getattr(owner, name), first, 4, after)
            with monkeypatch.context() as patched:
                patched.setattr(owner, name, failing.bound())
                for number, message in enumerate(messages[:140]):
                    into.put(message, received(message))
                    if number % 9 == 8:
                        into.flush()
            for message in messages[140:]:
                into.put(message, received(message))
        check(path, slow)
        if failing.calls <= first:
            assert first > 0
            break


def test_a_disk_that_fails_for_too_long_is_an_error_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = list(Exchange().run(100))
    into = sink(tmp_path / "set", flush_s=0.01, memory_s=0.2)
    with monkeypatch.context() as patched:
        patched.setattr(Writer, "flush", full)
        since = time.monotonic()
        with pytest.raises(OSError, match="No space"):
            for number in range(100):
                into.put(messages[number], received(messages[number]))
                time.sleep(0.01)
        assert number > 0, "the first rows wait"
        assert time.monotonic() - since >= 0.2
        with pytest.raises(OSError, match="No space"):
            into.flush()
    for message in messages[number + 1 :]:
        into.put(message, received(message))
    into.close()
    check(tmp_path / "set", replay(messages))


def test_another_collector_in_between_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = list(Exchange().run(30))
    path = tmp_path / "set"
    with sink(path) as into:
        for message in messages[:10]:
            into.put(message, received(message))
        with monkeypatch.context() as patched:
            patched.setattr(DatasetWriter, "append", full)
            into.flush()
        with sink(path) as other:
            for message in Exchange(seed=1).run(7):
                message["data"][0]["ts"] = str(1_700_000_100_000)
                other.put(message, received(message))
        for message in messages[10:]:
            into.put(message, received(message))
    with dataset.open(path) as ds:
        assert np.array_equal(ds["book"][7:], replay(messages).array())
        assert feeds.sessions(ds).tolist() == [0, 7]


def test_a_loop_waits_only_when_the_disk_is_far_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = DatasetWriter.flush
    messages = list(Exchange().run(200))

    def slow_flush(self: DatasetWriter) -> None:
        time.sleep(0.3)
        flush(self)

    async def collect() -> tuple[float, float]:
        waits = []
        async with sink(tmp_path / "set", flush_s=0.02, memory_s=0.1) as into:
            for message in messages:
                since = time.monotonic()
                await into.aput(message, received(message))
                waits.append(time.monotonic() - since)
                await asyncio.sleep(0.001)
        return sorted(waits)[len(waits) // 2], max(waits)

    with monkeypatch.context() as patched:
        patched.setattr(DatasetWriter, "flush", slow_flush)
        median, longest = asyncio.run(collect())
    assert median < 0.1 < longest, "most calls do not wait for the disk, some do"
    check(tmp_path / "set", replay(messages))


# ------------------------------------------------------------ kills


def life(seed: int) -> list[Any]:
    exchange = Exchange(seed=seed, levels=100)
    messages = []
    for message in exchange.run(400):
        messages.append(message)
        exchange.time_ms += 2_000
    return [message for number, message in enumerate(messages) if number % 97 != 40]


def collect(path: str, seed: int, acknowledged: Any) -> None:
    into = feeds.Sink(
        path, symbol="BTC-USDT", flush_s=3600, memory_s=3600, roll="1m", tail_bytes=20_000, keep="1s"
    )
    dice = random.Random()
    start = seed * LIFE_MS
    while True:  # until it is killed, with times that go on
        for message in life(seed):
            message["data"][0]["ts"] = str(int(message["data"][0]["ts"]) + start)
            into.put(message, received(message))
            if dice.random() < 0.2:
                into.flush()
                acknowledged.value = len(into)
        into.lose("test")
        start += 1_000_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9")
def test_killed_collectors(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["tests.ecosystem.test_feeds_faults"])
    path = tmp_path / "set"
    acknowledged = context.Value("q", 0, lock=False)
    rows, expected_sessions = 0, []
    dice = random.Random(0)
    for seed in range(KILLS):
        child = context.Process(target=collect, args=(str(path), seed, acknowledged))
        before = acknowledged.value
        child.start()
        deadline = time.monotonic() + 60
        while acknowledged.value == before and child.is_alive() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(dice.random() ** 2 * 0.3)
        assert child.pid is not None
        assert child.is_alive()
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        with dataset.open(path) as ds:
            count = len(ds)
            assert count >= acknowledged.value > before
            assert all(len(ds[name]) == count for name in ("time", "received", "book"))
            slow = replay(life(seed))
            wanted = slow.array()
            times = ds["time"][rows:].astype(np.int64) - seed * LIFE_MS * 10**6
            for first in range(rows, count, len(wanted)):
                part = ds["book"][first : first + len(wanted)]
                assert np.array_equal(part, wanted[: len(part)])
                expected_sessions += [first + at for at in slow.sessions if at < len(part)]
                begin = (first - rows) // len(wanted) * 10**12
                wanted_times = np.array(slow.times[: len(part)]) * 10**6 + begin
                assert np.array_equal(times[first - rows :][: len(part)], wanted_times)
            assert np.array_equal(ds["received"][:], ds["time"][:] + np.timedelta64(5, "ns"))
            assert feeds.sessions(ds).tolist() == expected_sessions
            rows = count
    dataset.expire(path, keep=1)
    dataset.prune(path, orphans=True)
    with dataset.open(path) as ds:
        assert ds.verify().ok
        record_property("kills", KILLS)
        record_property("rows", len(ds))
