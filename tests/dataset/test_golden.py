"""Golden datasets: each feature of the files once, written by the first version and never written again. They
are read as ever, and each damaged byte of them gives an error, or the right data.

dataset_v1         tables, clocks, texts, nested and renamed columns, fills, attributes, tags, expiry
dataset_v1_pages   a column of so many extents that they stand in a page
dataset_v1_pack    more than 1,024 versions
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
import cdd.dataset as datasets
from cdd import _cdd
from cdd.dataset.protocol.manifest import canonical

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
STRIDE = int(os.environ.get("CDD_DAMAGE_STRIDE", "0"))


def make(path: Any) -> None:
    """What dataset_v1 was made by."""
    rows = np.arange(300)
    with datasets.open(path, "w", clock={"": "time", "trades": "at"}, columns={"s": {"codes": "uint8"}}) as w:
        w.append(
            time=(rows * 10**9).astype("M8[ns]"),
            ob=(rows[:, None, None] + np.arange(6).reshape(3, 2)).astype(np.float32),
            price=rows / 4,
            s=[f"text {i % 7}" for i in rows],
            fees=np.rec.fromarrays([rows.astype(np.int16), -rows], names="maker,taker"),
        )
        w["trades"].append(at=rows[:50] * 3, size=rows[:50].astype(np.uint8))
        w["plain"].append(x=rows[:20].astype(np.int8))
        w.commit("made")
        w.tag("first")
        w.append(
            time=(rows[:3] * 10**9 + 400 * 10**9).astype("M8[ns]"),
            ob=np.zeros((3, 3, 2), np.float32),
            price=np.ones(3),
            s=["new", "text 0", "new"],
            fees=np.rec.fromarrays([np.zeros(3, np.int16), np.zeros(3, np.int64)], names="maker,taker"),
        )
        w.commit("more")
    with datasets.transaction(path, "changed") as t:
        t["price"][[3, 50, 51]] = [-1.0, -2.0, -3.0]
        t.attrs["venue"] = "okx"
        t["ob"].attrs["levels"] = 3
        t["trades"].attrs["unit"] = "BTC"
    with datasets.transaction(path, "columns") as t:
        t.rename_column("price", "last")
        t.add_column("flag", fill=True)
        t["plain"].resize(25, fill={"x": 7})
        t["trades"].delete(10, 15)
    datasets.expire(path, keep=2)
    datasets.prune(path)


def make_pages(path: Any) -> None:
    with datasets.open(path, "w") as w:
        w.append(time=np.arange(600), x=np.zeros(600))
    with datasets.transaction(path) as t:
        t["x"][::3] = 1.0


def make_pack(path: Any) -> None:
    with datasets.open(path, "w", durability="none") as w:
        w.append(x=np.arange(1))
        for i in range(1026):
            w.commit(f"{i}")
        w.append(x=np.arange(1, 5))


def shown(ds: datasets.Dataset) -> dict[str, Any]:
    """All that a dataset says and has."""
    found: dict[str, Any] = {"tables": ds.tables, "tags": sorted(ds.tags), "versions": len(ds.versions(40))}
    if int(ds.version) > 1024:  # this one is in a pack
        found["packed"] = datasets.open(ds._session.directory, as_of=500).version.message
    found["messages"] = [(v.message, v.op, v.rows) for v in ds.versions(5)]
    for name in ds.tables:
        table = ds[name] if name else ds
        found[f"table {name}"] = (len(table), table.clock, table.columns, table.attrs)
        for key in table.columns:
            column = table[key]
            rows = column[:]
            found[f"{name}/{key}"] = (rows.dtype.str, rows.shape, rows.tobytes(), column.attrs)
            if column.is_text:
                found[f"{name}/{key} texts"] = column.text()
    return found


@pytest.mark.parametrize(
    ("name", "made"),
    [("dataset_v1", make), ("dataset_v1_pages", make_pages), ("dataset_v1_pack", make_pack)],
)
def test_golden_datasets_are_read(name: str, made: Any, tmp_path: Path) -> None:
    golden = datasets.open(GOLDEN / name)
    assert golden.verify().ok
    place = datasets.MemoryDirectory()
    made(place)
    new = datasets.open(place)
    assert shown(golden) == shown(new)
    numbers = [v.number for v in golden.versions(None)]
    assert numbers == [v.number for v in new.versions(None)]
    for number in {*numbers[:3], *numbers[-2:]}:
        old = datasets.open(GOLDEN / name, as_of=number)
        assert shown(old) == shown(datasets.open(place, as_of=number))
    shutil.copytree(GOLDEN / name, tmp_path / "copy")
    with datasets.open(tmp_path / "copy", "a") as w:
        before = len(w)
        row = {column: golden[column][-1:] for column in golden.columns if not golden[column].is_text}
        row |= {column: golden[column].text(-1) for column in golden.columns if golden[column].is_text}
        w.append(row)
    assert len(datasets.open(tmp_path / "copy")) == before + 1


def test_golden_datasets_have_every_feature() -> None:
    text = "".join(p.read_text() for p in (GOLDEN / "dataset_v1" / "meta" / "manifests").iterdir())
    for field in ("attrs", "category", "folder", "hidden", "clock", "order", "tags", "floor"):
        assert f'"{field}":' in text
    assert "[0,0," in text  # an extent without a file
    text = "".join(p.read_text() for p in (GOLDEN / "dataset_v1_pages" / "meta" / "manifests").iterdir())
    assert '"pages":[[' in text
    assert list((GOLDEN / "dataset_v1_pages" / "meta" / "pages").iterdir())
    assert list((GOLDEN / "dataset_v1_pack" / "meta" / "log" / "packs").iterdir())


def places(size: int, most: int) -> Iterator[int]:
    """Bytes to be damaged: all by CDD_DAMAGE_STRIDE=1, else about `most`, those at both ends among them."""
    step = STRIDE or max(1, size // most)
    yield from sorted({*range(0, size, step), *range(min(4, size)), size - 1})


def files_of(name: str) -> list[str]:
    paths = [p for p in (GOLDEN / name).rglob("*") if p.is_file()]
    return sorted(p.relative_to(GOLDEN / name).as_posix() for p in paths)


# Of a damaged file at the end a warning tells when the dataset is opened; the rest of it is what it was.
unseen = pytest.mark.filterwarnings("ignore:.*rows that were flushed after version:RuntimeWarning")


@unseen
@pytest.mark.parametrize("name", ["dataset_v1", "dataset_v1_pages", "dataset_v1_pack"])
def test_each_damaged_byte_gives_an_error_or_the_right_data(name: str, tmp_path: Path) -> None:
    """Of every file. What is only for people, and hints, never hurt."""
    shutil.copytree(GOLDEN / name, tmp_path / "set")
    wanted = shown(datasets.open(tmp_path / "set"))
    errors = 0
    for file in files_of(name):
        path = tmp_path / "set" / file
        data = path.read_bytes()
        is_needed = not file.startswith(("meta/head", "meta/pruned")) and not file.endswith(
            ("sizes.json", "storage.json", "attributes.json")
        )
        for at in places(len(data), 12 if is_needed else 4):
            for bit in (1, 0x80) if at % 2 else (0x20,):
                path.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
                try:
                    assert shown(datasets.open(tmp_path / "set")) == wanted, (file, at)
                except cdd.CddError:
                    assert is_needed, (file, at)
                    errors += 1
        for cut in sorted({0, 1, len(data) // 2, len(data) - 1}):
            path.write_bytes(data[:cut])
            try:
                assert shown(datasets.open(tmp_path / "set")) == wanted, (file, cut)
            except cdd.CddError:
                assert is_needed, (file, cut)
        path.write_bytes(data)
    assert errors > 25
    assert shown(datasets.open(tmp_path / "set")) == wanted


@unseen
def test_missing_files_are_told(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "dataset_v1", tmp_path / "set")
    wanted = shown(datasets.open(tmp_path / "set"))
    for file in files_of("dataset_v1"):
        path = tmp_path / "set" / file
        data = path.read_bytes()
        path.unlink()
        if file == "meta/log/00000000000000000009.json":  # the newest version was never committed then
            assert int(datasets.open(tmp_path / "set").version) == 8
            path.write_bytes(data)
            continue
        try:
            assert shown(datasets.open(tmp_path / "set")) == wanted, file
        except (cdd.CddError, FileNotFoundError) as error:
            assert str(tmp_path) in str(error), file
        path.write_bytes(data)


def test_a_stranger_names_no_files_elsewhere(tmp_path: Path) -> None:
    """Manifests whose checks hold, but which name what no writer names."""
    shutil.copytree(GOLDEN / "dataset_v1", tmp_path / "set")
    (manifest,) = (
        p
        for p in (tmp_path / "set" / "meta" / "manifests").iterdir()
        if p.stem == datasets.open(tmp_path / "set")._state.manifest
    )
    good = json.loads(manifest.read_bytes())

    def with_column(**changed: Any) -> dict[str, Any]:
        body = json.loads(json.dumps(good))
        body["tables"][""]["columns"][1][1].update(changed)
        return body

    for body in (
        with_column(folder="../../other"),
        with_column(folder="/etc"),
        with_column(elsewhere={"1": "/etc/passwd"}),
        with_column(elsewhere={"1": "s3://bucket/x.cdd"}),
        with_column(elsewhere={"1": "../../x.cdd"}),
        with_column(pages=[["../../x", 0, 3]]),
        with_column(extents=[[1, 0, None, "00" * 16], [1, 0, None, "00" * 16]]),
        with_column(dtype="object"),
        with_column(shape=[1 << 40]),
        {**good, "tables": {**good["tables"], "../x": good["tables"]["plain"]}},
        {**good, "unknown": 1},
        {**good, "version": 2},
    ):
        body.pop("check", None)
        body["check"] = _cdd.content_hash(canonical(body)).hex()
        manifest.write_text(json.dumps(body))
        with pytest.raises(cdd.CddError):
            shown(datasets.open(tmp_path / "set"))
