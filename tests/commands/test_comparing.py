"""chunks, stats, diff."""

import json
from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset
import cdd.tiles
from tests.commands.rig import books, fails, run, well

BOOKS = books()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cdd.save(tmp_path / "a.cdd", BOOKS, chunk_rows=64)
    return tmp_path / "a.cdd"


def test_chunks(path: Path) -> None:
    told = [json.loads(line) for line in well("chunks", "--json", path).splitlines()]
    with cdd.open(path) as reader:
        assert len(told) == reader.nchunks == 8
        for number, (one, info) in enumerate(zip(told, reader.chunk_infos, strict=True)):
            assert one == {"file": str(path), "chunk": number, "start": info.start, "stop": info.stop,
                           "codec": info.codec, "stored_bytes": info.stored_bytes,
                           "raw_bytes": info.raw_bytes, "offset": info.offset}  # fmt: skip
    first, head, *lines = well("chunks", path).decode().splitlines()
    assert first == f"{path}: 8 chunks"
    assert head.split()[0] == "chunk"
    assert [line.split()[1] for line in lines] == [str(64 * i) for i in range(8)]


def test_info_for_programs(path: Path, tmp_path: Path) -> None:
    with cdd.dataset.open(tmp_path / "day", "w") as w:
        w.append(time=np.arange(5), book=BOOKS[:5])
        w.commit("first")
    with cdd.tiles.open(tmp_path / "camera", "w", shape=(None, 4, 5), dtype="uint16") as t:
        t.append(np.ones((3, 4, 5), np.uint16))
    cdd.open(tmp_path / "new.cdd", "w", attrs={"a": 1}).close()
    names = [path, tmp_path / "day", tmp_path / "camera", tmp_path / "new.cdd"]
    store, dataset, tiles, new = map(json.loads, well("info", "--json", *names).splitlines())
    with cdd.open(path) as reader:
        assert (store["kind"], store["shape"], store["dtype"]) == ("store", [500, 50, 3], "float32")
        assert (store["id"], store["stored_bytes"]) == (reader.id, path.stat().st_size)
        assert sum(codec["chunks"] for codec in store["codecs"].values()) == store["chunks"] == 8
    assert dataset["tables"][""]["clock"] == "time"
    assert dataset["tables"][""]["columns"]["book"]["shape"] == [5, 50, 3]
    assert (tiles["kind"], tiles["scales"][0]["shape"]) == ("tiles", [3, 4, 5])
    assert (new["shape"], new["attrs"], new["rows"]) == (None, {"a": 1}, 0)


def test_verify_for_programs(path: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.cdd"
    good.write_bytes(path.read_bytes())
    content = bytearray(path.read_bytes())
    with cdd.open(path) as reader:
        content[reader.chunk_infos[3].offset + 50] ^= 1
    path.write_bytes(content)
    done = run("verify", "--json", good, path)
    whole, damaged = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 1
    assert whole == {"file": str(good), "ok": True, "text": []}
    assert damaged["ok"] is False
    assert "chunk 3, rows 192 to 255" in damaged["text"][0]


def test_stats(path: Path, tmp_path: Path) -> None:
    clean = np.where(np.isfinite(BOOKS), BOOKS, np.float32(2))
    cdd.save(path, clean)
    told = json.loads(well("stats", "--json", path))
    assert told["shape"] == [500, 50, 3]
    for number, feature in enumerate(told["features"]):
        values = clean[..., number].astype(np.float64)
        assert feature["items"] == values.size
        assert (feature["min"], feature["max"]) == (values.min(), values.max())
        assert feature["zeros"] == np.count_nonzero(values == 0)
        np.testing.assert_allclose(
            [feature["mean"], feature["std"]], [values.mean(), values.std()], rtol=1e-12
        )
    cdd.save(tmp_path / "t.cdd", np.array(["2024-01-02", "NaT", "2024-01-01"], "datetime64[D]"))
    (feature,) = json.loads(well("stats", "--json", tmp_path / "t.cdd"))["features"]
    assert feature == {"items": 3, "nan": 1, "min": "2024-01-01", "max": "2024-01-02"}
    big = np.array([2**63 - 1, -(2**63), 2**53 + 1], np.int64)
    cdd.save(tmp_path / "i.cdd", big)
    (feature,) = json.loads(well("stats", "--json", tmp_path / "i.cdd"))["features"]
    assert (feature["min"], feature["max"]) == (-(2**63), 2**63 - 1)
    cdd.save(tmp_path / "n.cdd", np.array(["2024-01-02", "2024-01-01"], "datetime64[ns]"))
    text = well("stats", path, tmp_path / "t.cdd", tmp_path / "i.cdd", tmp_path / "n.cdd").decode()
    assert text.count("feature") == 4
    assert text.splitlines()[-1].split()[:5] == [
        *("0", "2", "0", "2024-01-01T00:00:00.000000000", "2024-01-02T00:00:00.000000000")
    ]
    assert len(text.splitlines()[-1]) == len(text.splitlines()[-2])


def test_stats_of_large_numbers_keep_their_deviation(tmp_path: Path) -> None:
    """Sums of squares would lose it."""
    values = 1e9 + np.random.default_rng(2).normal(size=3_000_000)
    cdd.save(tmp_path / "a.cdd", values, codec="raw")
    (feature,) = json.loads(well("stats", "--json", tmp_path / "a.cdd"))["features"]
    np.testing.assert_allclose(feature["std"], values.std(), rtol=1e-9)


def test_diff(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.cdd"

    def differs(array: np.ndarray, *arguments: str) -> str:
        cdd.save(other, array)
        done = run("diff", path, other, *arguments)
        assert (done.returncode, done.stderr) == (1, b"")
        return done.stdout.decode()

    cdd.save(other, BOOKS, codec="raw")
    assert well("diff", path, other).decode() == f"{path} and {other} are the same: 500 rows\n"
    changed = BOOKS.copy()
    changed[17, 3, 1] += 1
    changed[400:403] += 1
    text = differs(changed)
    assert (
        f"4 of 500 rows, the first is row 17, item (3, 1): {BOOKS[17, 3, 1]} and {changed[17, 3, 1]}" in text
    )
    told = json.loads(run("diff", "--json", path, other).stdout)
    assert (told["same"], told["rows_different"], told["first_row"]) == (False, 4, 17)
    minus = BOOKS.copy()
    minus[250, 0, 1] = -0.0
    assert "1 of 500 rows" in differs(minus)
    assert "500 and 400 rows, those that both have are the same" in differs(BOOKS[:400])
    assert "dtypes" in differs(BOOKS.astype(np.float64))
    assert "shapes" in differs(BOOKS[:, :7])


def test_diff_with_a_tolerance(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.cdd"
    near = BOOKS + np.float32(0.25)
    near[250, 0, 1] = -0.0
    near[250, 8, 1] = BOOKS[250, 8, 1]
    cdd.save(other, near)
    assert run("diff", path, other).returncode == 1
    assert run("diff", path, other, "--tolerance", "0.26").returncode == 0
    assert run("diff", path, other, "--tolerance", "0.2").returncode == 1
    cdd.save(path, np.array([2**63 - 1, -(2**63)], np.int64))
    cdd.save(other, np.array([2**63 - 3, 2**63 - 1], np.int64))
    assert "1 of 2 rows, the first is row 1" in run("diff", path, other, "--tolerance", "2").stdout.decode()


def test_diff_with_a_column(path: Path, tmp_path: Path) -> None:
    with cdd.dataset.open(tmp_path / "day", "w") as w:
        w.append(book=BOOKS)
    well("diff", path, tmp_path / "day" / "book")


def test_trouble(path: Path, tmp_path: Path) -> None:
    assert "No such file" in fails(2, "diff", path, tmp_path / "none.cdd")
    assert "no order" in fails(1, "stats", _complex(tmp_path))
    assert "No such file" in fails(1, "stats", tmp_path / "none.cdd", path)
    assert "No such file" in fails(1, "chunks", tmp_path / "none.cdd")


def _complex(folder: Path) -> Path:
    cdd.save(folder / "c.cdd", np.ones(3, np.complex64))
    return folder / "c.cdd"
