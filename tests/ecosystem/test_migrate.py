"""cdd.migrate: whatever the format, dtype, order and byte order, what is stored is the source bit for bit;
whatever cannot be stored is refused by its name, and nothing is lost.
"""

from pathlib import Path

import numpy as np
import pytest

import cdd
import cdd.dataset
from cdd.migrate import migrate
from tests.ecosystem.formats import ATTRS, FORMATS, WITH_ATTRS, book, same, table_of

for library in ("zarr", "h5py", "pyarrow", "blosc2"):
    pytest.importorskip(library)

FREE = {"min_free": 0}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format(name: str, tmp_path: Path) -> None:
    array = book()
    source = FORMATS[name](tmp_path, array)
    report = migrate(source, tmp_path / "t.cdd", slab_bytes=1 << 16, **FREE)
    assert (report.sources, report.rows, report.raw_bytes, report.failed) == (1, 3000, array.nbytes, {})
    with cdd.open(tmp_path / "t.cdd") as reader:
        assert same(reader[:], array)
        if name in WITH_ATTRS:
            assert {key: reader.attrs[key] for key in ATTRS} == ATTRS
    before = (tmp_path / "t.cdd").read_bytes()
    again = migrate(source, tmp_path / "t.cdd", slab_bytes=1 << 16, **FREE)
    assert again.resumed == 1 and (tmp_path / "t.cdd").read_bytes() == before


DTYPES = ["bool", "int8", ">i2", "u4", ">i8", "f2", ">f4", "<f8", "c8", ">c16", "M8[ns]", "m8[s]"]


@pytest.mark.parametrize("name", ["npy", "npz, compressed", "zarr 2", "zarr 3", "hdf5", "blosc2"])
def test_every_dtype(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for number, dtype in enumerate(map(np.dtype, DTYPES)):
        if dtype.kind in "mM" and name in ("hdf5", "blosc2"):
            continue  # these formats have none
        if name == "blosc2" and not dtype.isnative:
            continue
        raw = rng.integers(0, 256, 400 * 3 * dtype.itemsize, np.uint8)
        array = (raw % 2 if dtype.kind == "b" else raw).view(dtype).reshape(400, 3)
        folder = tmp_path / str(number)
        folder.mkdir()
        migrate(FORMATS[name](folder, array), folder / "t.cdd", slab_bytes=1000, **FREE)
        found = cdd.load(folder / "t.cdd")
        assert found.dtype == dtype.newbyteorder("=") and same(found, array), dtype


@pytest.mark.parametrize("name", ["npy", "npz", "zarr 3", "hdf5", "parquet"])
def test_no_rows(name: str, tmp_path: Path) -> None:
    report = migrate(FORMATS[name](tmp_path, book(0)), tmp_path / "t.cdd", **FREE)
    assert report.rows == 0
    with cdd.open(tmp_path / "t.cdd") as reader:
        assert reader.shape == (0, 10, 3) and reader.dtype == np.float32


def test_raw_files(tmp_path: Path) -> None:
    array = book()
    array.tofile(tmp_path / "s.mm")
    migrate(tmp_path / "s.mm", tmp_path / "t.cdd", dtype="float32", row_shape=(10, 3), **FREE)
    assert same(cdd.load(tmp_path / "t.cdd"), array)
    with pytest.raises(ValueError, match="give dtype= and row_shape="):
        migrate(tmp_path / "s.mm", tmp_path / "u.cdd", **FREE)
    with pytest.raises(ValueError, match=r"no whole rows of 28 bytes .*: \d+ are over"):
        migrate(tmp_path / "s.mm", tmp_path / "u.cdd", dtype="float32", row_shape=(7,), **FREE)


def test_csv(tmp_path: Path) -> None:
    rows = [f"2024-01-01T00:{i // 60 % 60:02}:{i % 60:02},{i / 7!r},{i}" for i in range(5000)]
    (tmp_path / "s.csv").write_text("\n".join(["ts,price,n", *rows, ""]))
    migrate(tmp_path / "s.csv", tmp_path / "t", slab_bytes=1 << 14, **FREE)
    assert same(cdd.load(tmp_path / "t/price.cdd"), np.arange(5000) / 7)
    assert same(cdd.load(tmp_path / "t/n.cdd"), np.arange(5000))
    assert cdd.load(tmp_path / "t/ts.cdd")[61] == np.datetime64("2024-01-01T00:01:01")
    migrate(tmp_path / "s.csv", tmp_path / "d", into="dataset", clock=None, **FREE)
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert same(ds["price"][:], np.arange(5000) / 7) and len(ds) == 5000
    (tmp_path / "n.csv").write_text("a,b\n1,2\n3,\n")
    with pytest.raises(ValueError, match="column 'b' has empty fields"):
        migrate(tmp_path / "n.csv", tmp_path / "n", **FREE)


def test_columns_of_tables(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = np.arange(3000).astype("M8[us]")
    columns = {"time": times, "bid": np.arange(3000) / 7, "ask": np.arange(3000) / 3}
    pq.write_table(pa.table(columns), tmp_path / "s.parquet", row_group_size=900)
    migrate(tmp_path / "s.parquet", tmp_path / "t.cdd", path="bid,ask", slab_bytes=4096, **FREE)
    with cdd.open(tmp_path / "t.cdd") as reader:
        assert same(reader[:], np.stack([columns["bid"], columns["ask"]], axis=1))
        assert reader.attrs["columns"] == ["bid", "ask"]
    migrate(tmp_path / "s.parquet", tmp_path / "d", into="dataset", clock="time", slab_bytes=4096, **FREE)
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert all(same(ds[name][:], column) for name, column in columns.items())
    with pytest.raises(ValueError, match="3 columns, time, bid, ask: a store holds one array"):
        migrate(tmp_path / "s.parquet", tmp_path / "u.cdd", **FREE)
    with pytest.raises(ValueError, match="no column 'mid': it has time, bid, ask"):
        migrate(tmp_path / "s.parquet", tmp_path / "u.cdd", path="mid", **FREE)
    with pytest.raises(ValueError, match="one array has one dtype"):
        migrate(tmp_path / "s.parquet", tmp_path / "u.cdd", path="*", **FREE)


def test_what_no_store_can_hold(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    h5py = pytest.importorskip("h5py")

    def refused(source: Path, text: str, kind: type[Exception] = TypeError) -> None:
        with pytest.raises(kind, match=text):
            migrate(source, tmp_path / "t", **FREE)
        assert not list((tmp_path / "t").rglob("*.cdd"))

    for name, column, text, kind in (
        ("text", ["a", "b"], "column 'text' holds string", TypeError),
        ("gaps", [1.0, None], "column 'gaps' has nulls", ValueError),
        ("ragged", [[1], [1, 2]], "column 'ragged' holds lists of any length", TypeError),
    ):
        pq.write_table(pa.table({"good": [1, 2], name: column}), tmp_path / "s.parquet")
        refused(tmp_path / "s.parquet", text, kind)
    np.save(tmp_path / "struct.npy", np.zeros(3, [("a", "f4"), ("b", "i4")]))
    refused(tmp_path / "struct.npy", "structured, of fields a, b")
    np.save(tmp_path / "text.npy", np.array(["a", "b"]))
    refused(tmp_path / "text.npy", "cannot be stored")
    np.save(tmp_path / "scalar.npy", np.float64(3))
    refused(tmp_path / "scalar.npy", "scalar", ValueError)
    np.save(tmp_path / "objects.npy", np.array([{}, []], object), allow_pickle=True)
    refused(tmp_path / "objects.npy", "Python objects", ValueError)
    (tmp_path / "old.cdd").write_bytes((0x0CDDBEEF).to_bytes(4, "little") + bytes(100))
    refused(tmp_path / "old.cdd", "older project", ValueError)
    (tmp_path / "what.xyz").write_bytes(b"?" * 100)
    refused(tmp_path / "what.xyz", "like= names one of", ValueError)
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"], file["b"] = np.arange(3), np.arange(4)
    with pytest.raises(ValueError, match=r"no array 'c': it has 'a', 'b'"):
        migrate(f"{tmp_path}/two.h5::c", tmp_path / "t.cdd", **FREE)
    with pytest.raises(ValueError, match="2 arrays, a store holds one"):
        migrate(tmp_path / "two.h5", tmp_path / "t.cdd", **FREE)
    with pytest.raises(ValueError, match="columns of a dataset have as many rows"):
        migrate(tmp_path / "two.h5", tmp_path / "d", into="dataset", **FREE)


def test_groups(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.attrs["exchange"] = "OKX"
    group.create_array("book", data=book())
    group.create_array("deep/time", data=np.arange(3000))
    assert migrate(tmp_path / "g.zarr", tmp_path / "t", **FREE).sources == 2
    assert same(cdd.load(tmp_path / "t/book.cdd"), book())
    assert same(cdd.load(tmp_path / "t/deep/time.cdd"), np.arange(3000))
    migrate(tmp_path / "g.zarr", tmp_path / "d", into="dataset", slab_bytes=10_000, **FREE)
    with cdd.dataset.open(tmp_path / "d") as ds:
        assert same(ds["book"][:], book()) and same(ds["deep/time"][:], np.arange(3000))
        assert ds.attrs["exchange"] == "OKX"


def test_arrays_that_are_open(tmp_path: Path) -> None:
    import zarr

    array = book()
    migrate(zarr.array(array), tmp_path / "t.cdd", slab_bytes=1 << 15, **FREE)
    assert same(cdd.load(tmp_path / "t.cdd"), array)
    with pytest.raises(TypeError, match="a source is a path or an array, not int"):
        migrate(5, tmp_path / "u.cdd", **FREE)


def test_tables_join_lists(tmp_path: Path) -> None:
    feather = pytest.importorskip("pyarrow.feather")
    feather.write_feather(table_of(book()), tmp_path / "s.feather", chunksize=311)
    migrate(tmp_path / "s.feather", tmp_path / "t", slab_bytes=5000, **FREE)
    assert same(cdd.load(tmp_path / "t/s.cdd"), book())
    assert same(cdd.load(tmp_path / "t/n.cdd"), np.arange(3000))
