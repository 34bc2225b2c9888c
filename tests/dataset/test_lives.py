"""Lives of datasets: every operation there is, in random order, with crashes, in a folder and in memory;
beside arrays of NumPy for each version."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets

Arrays = dict[str, np.ndarray]
Tables = dict[str, Arrays]

STEPS = int(os.environ.get("CDD_LIFE_STEPS", "60"))
LIVES = int(os.environ.get("CDD_LIVES", "2"))
SEED = int(os.environ.get("CDD_SEED", "1"))

FEES = np.dtype([("maker", np.float32), ("taker", np.int64)])
VENUES = np.array(["okx", "binance", "", "kraken", "börse"])


def new_rows(table: str, random: np.random.Generator, first: int, count: int, extra: Arrays) -> Arrays:
    """What one append gives: times with ties, texts, a structured column."""
    times = first + np.cumsum(random.integers(0, 3, count))
    made: Arrays = {"time": times, "x": random.integers(-1000, 1000, count).astype(np.int32)}
    if table:
        made["fee"] = np.zeros(count, FEES)
        made["fee"]["maker"] = random.normal(size=count)
        made["fee"]["taker"] = random.integers(0, 9, count)
    else:
        made["ob"] = random.normal(size=(count, 3, 2)).astype(np.float32)
        made["venue"] = VENUES[random.integers(0, len(VENUES), count)]
    for name, like in extra.items():
        if name not in made:
            made[name] = random.integers(0, 99, (count, *like.shape[1:])).astype(like.dtype)
    return {name: made[name] for name in (extra or made)}


class Life:
    """One dataset, and what must be in it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.folder = folder
        self.in_memory = seed % 3 == 0
        place = datasets.MemoryDirectory() if self.in_memory else datasets.LocalDirectory(folder / "set")
        self.place: datasets.Directory = place
        self.now: Tables = {}
        self.flushed: dict[str, int] = {}
        self.versions: dict[int, Tables] = {}
        self.tags: dict[str, int] = {}
        self.names = 0
        self.options: dict[str, Any] = {
            "superchunk_bytes": int(self.random.choice([3000, 20_000, 1 << 20])),
            "tail_bytes": int(self.random.choice([1000, 5000, 1 << 20])),
        }
        self.w: datasets.DatasetWriter | None = None
        self.log: list[str] = []

    # ------------------------------------------------------------ what is known

    def writer(self) -> datasets.DatasetWriter:
        if self.w is None:
            self.w = datasets.open(self.place, "a", **self.options)
        return self.w

    def close(self) -> None:
        if self.w is not None:
            self.w.close()
            self.w = None
            self.flushed = {table: len(arrays["time"]) for table, arrays in self.now.items()}

    def note(self, version: datasets.Version | None) -> None:
        """What a version has, of tables with as many rows as it says. A commit that had nothing new gives the
        version that the collector knows, as its compactor may have made it before a modification."""
        if version is not None and int(version) > max(self.versions, default=0):
            self.versions[int(version)] = {
                name: {key: array[: version.rows[name]] for key, array in arrays.items()}
                for name, arrays in self.now.items()
                if name in version.rows
            }

    def own(self, table: str) -> Arrays:
        """Arrays that may be changed: versions keep the ones before."""
        self.now[table] = {name: array.copy() for name, array in self.now[table].items()}
        return self.now[table]

    def some_table(self) -> str | None:
        tables = [name for name, arrays in self.now.items() if len(arrays["time"])]
        return str(self.random.choice(tables)) if tables else None

    def free_name(self) -> str:
        """A new name, or one of a few that come and go."""
        self.names += 1
        return str(self.random.choice([f"c{self.names}", "again", "once/more"]))

    def open(self, **options: Any) -> datasets.Dataset:
        return datasets.open(self.place, allow=[self.folder], **options)

    def change(self, work: Any, alone: bool = True) -> None:
        if alone:
            self.close()
        with datasets.transaction(self.place, allow=[self.folder]) as t:
            work(t)
        self.note(t.version)

    # ------------------------------------------------------------ operations

    def append(self) -> None:
        table = str(self.random.choice(["", "trades"]))
        old = self.now.get(table, {})
        first = int(old["time"][-1]) if old and len(old["time"]) else 0
        rows = new_rows(table, self.random, first, int(self.random.integers(0, 80)), old)
        w: Any = self.writer()[table] if table else self.writer()
        w.append(rows)
        self.now[table] = {
            name: np.concatenate((old[name], array)) if old else array for name, array in rows.items()
        }

    def flush(self) -> None:
        self.writer().flush()
        self.flushed = {table: len(arrays["time"]) for table, arrays in self.now.items()}

    def commit(self) -> None:
        self.note(self.writer().commit("x" if self.random.random() < 0.5 else ""))
        self.flushed = {table: len(arrays["time"]) for table, arrays in self.now.items()}

    def crash(self) -> None:
        if self.w is None:
            return
        self.w._let_go()
        self.w = None
        with datasets.open(self.place, "a", **self.options) as w:
            for table, arrays in self.now.items():
                if not arrays:
                    continue
                there: Any = w[table] if table else w
                rows = len(there)
                assert self.flushed.get(table, 0) <= rows <= len(arrays["time"])
                self.now[table] = {name: array[:rows] for name, array in arrays.items()}
        self.flushed = {table: len(arrays["time"]) for table, arrays in self.now.items()}

    def modify(self) -> None:
        """Rows of the newest version; a collector may have the table open."""
        if (table := self.some_table()) is None:
            return
        self.commit()
        alone = bool(self.random.random() < 0.3)
        rows = len(self.now[table]["time"])
        name = str(
            self.random.choice([key for key in self.now[table] if key not in ("time", "venue", "fee")])
        )
        picked = self.random.integers(0, rows, int(self.random.integers(1, 20)))
        key: Any = picked if self.random.random() < 0.5 else slice(int(picked.min()), int(picked.max()) + 1)
        value = int(self.random.integers(0, 99))
        self.own(table)[name][key] = value

        def work(t: Any) -> None:
            (t[table] if table else t)[name][key] = value

        self.change(work, alone)

    def cut(self) -> None:
        if (table := self.some_table()) is None:
            return
        self.close()
        rows = len(self.now[table]["time"])
        start, stop = sorted(int(n) for n in self.random.integers(0, rows + 1, 2))
        if self.random.random() < 0.5:
            stop = rows

        def work(t: Any) -> None:
            view = t[table] if table else t
            if stop == rows:
                view.trim(start)
            else:
                view.delete(start, stop)

        kept = np.r_[0:start, stop:rows]
        self.now[table] = {name: array[kept] for name, array in self.now[table].items()}
        self.change(work)
        self.flushed[table] = len(kept)

    def add(self) -> None:
        self.close()
        if "" not in self.now:
            return
        name, rows = self.free_name(), len(self.now[""]["time"])
        if name in self.now[""]:
            return
        values = self.random.integers(0, 50, (rows, 2)).astype(np.int16)
        is_fill = bool(self.random.random() < 0.3)
        if is_fill:
            values = np.full(rows, 7, np.int64)
        self.own("")[name] = values
        self.change(lambda t: t.add_column(name, fill=np.int64(7)) if is_fill else t.add_column(name, values))

    def drop_or_rename(self) -> None:
        self.close()
        names = [name for name in self.now.get("", {}) if name not in ("time", "venue", "x")]
        if not names:
            return
        name = str(self.random.choice(names))
        if self.random.random() < 0.5:
            del self.own("")[name]
            self.change(lambda t: t.drop_column(name))
            return
        new = self.free_name()
        if new in self.now[""]:
            return
        self.now[""] = {new if key == name else key: array for key, array in self.now[""].items()}
        self.change(lambda t: t.rename_column(name, new))

    def attach(self) -> None:
        self.close()
        name = self.free_name()
        if self.in_memory or "" not in self.now or name in self.now[""]:
            return
        file = self.folder / f"elsewhere{self.names}.cdd"
        values = self.random.integers(0, 50, len(self.now[""]["time"])).astype(np.int64)
        if len(values) == 0:
            return
        cdd.save(file, values)
        self.own("")[name] = values
        self.change(lambda t: t.attach(name, file))

    def adopt(self) -> None:
        if self.in_memory:
            return
        self.names += 1
        table, files = f"adopted{self.names}", {}
        arrays = {"time": np.arange(30), "x": self.random.integers(0, 9, 30).astype(np.int32)}
        for name, array in arrays.items():
            files[name] = self.folder / f"{table}.{name}.cdd"
            cdd.save(files[name], array)
        version = datasets.adopt(self.place, table=table, **files)
        self.now[table] = arrays
        self.flushed[table] = 30
        if self.w is None:
            self.note(version)

    def compact(self) -> None:
        options = {"profile": "dense"} if self.random.random() < 0.2 else {}
        alone = bool(self.random.random() < 0.5)
        self.change(lambda t: t.compact(**options), alone)  # the collector joins tails beside it

    def tag(self) -> None:
        if self.versions:
            number = int(self.random.choice(list(self.versions)))
            self.names += 1
            datasets.tag(self.place, f"tag{self.names}", number)
            self.tags[f"tag{self.names}"] = number

    def untag(self) -> None:
        if self.tags:
            name = str(self.random.choice(list(self.tags)))
            datasets.untag(self.place, name)
            del self.tags[name]
            self.forget()

    def expire(self) -> None:
        if self.versions:
            datasets.expire(self.place, keep=int(self.random.integers(1, 12)))
            self.forget()

    def forget(self) -> None:
        """Versions that are expired now."""
        kept = {int(v) for v in self.open().versions(None)}
        assert set(self.tags.values()) <= kept
        self.versions = {number: arrays for number, arrays in self.versions.items() if number in kept}

    def prune(self) -> None:
        if self.versions or self.w is not None:
            if not self.in_memory and self.random.random() < 0.2:
                (self.folder / "set" / "meta" / "pruned").unlink(missing_ok=True)
            datasets.prune(self.place, orphans=bool(self.random.random() < 0.4))

    # ------------------------------------------------------------ what must hold

    def compare(self, ds: datasets.Dataset, wanted: Tables) -> None:
        for table, arrays in wanted.items():
            view: Any = ds[table] if table else ds
            for name, array in arrays.items():
                got = view[name].text(0, len(view)) if name == "venue" else view[name][:]
                assert np.array_equal(got, array), (table, name)
            if len(view) > 40:
                starts = self.random.integers(0, len(view) - 30, 9)
                found = view.read_windows(starts, 30, columns=("x", "time"))
                assert np.array_equal(found["x"], arrays["x"][starts[:, None] + np.arange(30)])
                middle = arrays["time"][len(view) // 2]
                assert view.at(middle) == np.searchsorted(arrays["time"], middle, "right") - 1

    def check(self) -> None:
        numbers = list(self.versions)
        some = {*numbers[-1:], *self.random.choice(numbers, min(2, len(numbers)))} if numbers else set()
        for number in some:
            ds = self.open(as_of=int(number))
            self.compare(ds, self.versions[number])
            if self.random.random() < 0.1:
                assert ds.verify().ok
        if self.now:
            ds = self.open()
            live: Tables = {}
            for table, arrays in self.now.items():
                rows = len(ds[table] if table else ds)
                assert self.flushed.get(table, 0) <= rows <= len(arrays["time"])
                live[table] = {name: array[:rows] for name, array in arrays.items()}
            self.compare(ds, live)


OPERATIONS = {
    "append": 8, "flush": 3, "commit": 4, "crash": 2, "modify": 4, "cut": 1, "add": 2, "drop_or_rename": 2,
    "attach": 1, "adopt": 1, "compact": 2, "tag": 1, "untag": 1, "expire": 2, "prune": 2,
}  # fmt: skip


@pytest.mark.parametrize("seed", range(SEED, SEED + LIVES))
def test_a_life(tmp_path: Path, seed: int, record_property: Any) -> None:
    life = Life(tmp_path, seed)
    chances = np.array(list(OPERATIONS.values())) / sum(OPERATIONS.values())
    life.append()
    life.commit()
    for _ in range(STEPS):
        name = str(life.random.choice(list(OPERATIONS), p=chances))
        life.log.append(name)
        getattr(life, name)()
        life.check()
    life.close()
    assert life.open().verify().ok
    record_property("operations", STEPS)
