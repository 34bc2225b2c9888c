"""Sources that are damaged or are not what they say: a typed error that names the file, and no target."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from cdd.migrate import UnreadableError, migrate

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("blosc2")

FREE: dict[str, Any] = {"min_free": 0}
Made = dict[str, Any]  # arguments of migrate(), but for the target


def flipped(path: Path, *places: int) -> None:
    data = bytearray(path.read_bytes())
    for place in places:
        data[place] ^= 0x5A
    path.write_bytes(data)


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def npy(here: Path) -> Path:
    np.save(here / "a.npy", np.arange(1000))
    return here / "a.npy"


def an_empty_npy(here: Path) -> Made:
    (here / "a.npy").touch()
    return {"source": here / "a.npy"}


def a_cut_npy(here: Path) -> Made:
    half(npy(here))
    return {"source": here / "a.npy"}


def no_npz(here: Path) -> Made:
    (here / "a.npz").write_bytes(b"PK and so on")
    return {"source": here / "a.npz"}


def a_damaged_npz(here: Path) -> Made:
    np.savez_compressed(here / "a.npz", x=np.arange(1000))
    flipped(here / "a.npz", 200)
    return {"source": here / "a.npz"}


def a_cut_member(here: Path) -> Made:
    with zipfile.ZipFile(here / "a.npz", "w") as file:
        file.writestr("x.npy", npy(here).read_bytes()[:-80])
    return {"source": here / "a.npz"}


def no_hdf5(here: Path) -> Made:
    (here / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(50))
    return {"source": here / "a.h5"}


def damaged_chunks_of_hdf5(here: Path) -> Made:
    with h5py.File(here / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(100_000), chunks=(1000,), compression="gzip")
    size = (here / "a.h5").stat().st_size
    flipped(here / "a.h5", *range(size // 2, size // 2 + 3000))
    return {"source": here / "a.h5"}


def nothing_in_hdf5(here: Path) -> Made:
    with h5py.File(here / "a.h5", "w") as file:
        file["x"] = h5py.Empty("f4")
    return {"source": f"{here / 'a.h5'}::x"}


def z(here: Path) -> Path:
    zarr.create_array(store=str(here / "a.zarr"), shape=(1000, 3), chunks=(100, 3), dtype="f4")[:] = 1
    return here / "a.zarr"


def a_damaged_chunk_of_zarr(here: Path) -> Made:
    flipped(z(here) / "c/3/0", 10)
    return {"source": here / "a.zarr"}


def a_cut_chunk_of_zarr(here: Path) -> Made:
    half(z(here) / "c/3/0")
    return {"source": here / "a.zarr"}


def no_json_of_zarr(here: Path) -> Made:
    (z(here) / "zarr.json").write_text("{ and so on")
    return {"source": here / "a.zarr"}


def fields_that_zarr_lacks(here: Path) -> Made:
    (z(here) / "zarr.json").write_text('{"node_type": "array", "zarr_format": 3}')
    return {"source": here / "a.zarr"}


def a_codec_that_nobody_has(here: Path) -> Made:
    about = json.loads((z(here) / "zarr.json").read_bytes())
    about["codecs"].append({"name": "nocodec"})
    (here / "a.zarr/zarr.json").write_text(json.dumps(about))
    return {"source": here / "a.zarr"}


def a_cut_parquet(here: Path) -> Made:
    pq.write_table(pa.table({"a": [1, 2]}), here / "a.parquet")
    half(here / "a.parquet")
    return {"source": here / "a.parquet"}


def a_page_with_a_wrong_checksum(here: Path) -> Made:
    table = pa.table({"a": np.random.default_rng(1).random(5000)})
    pq.write_table(
        table, here / "a.parquet", compression="none", use_dictionary=False, write_page_checksum=True
    )
    flipped(here / "a.parquet", 2000)
    return {"source": here / "a.parquet"}


def two_columns_of_one_name(here: Path) -> Made:
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), here / "a.parquet")
    return {"source": here / "a.parquet"}


def no_feather(here: Path) -> Made:
    (here / "a.feather").write_bytes(b"ARROW1\0\0" + bytes(20))
    return {"source": here / "a.feather"}


def a_csv_with_a_short_row(here: Path) -> Made:
    (here / "a.csv").write_text("x,y\n1,2\n3\n")
    return {"source": here / "a.csv"}


def no_blosc2(here: Path) -> Made:
    (here / "a.b2nd").write_bytes(b"nonsense")
    return {"source": here / "a.b2nd"}


def no_store(here: Path) -> Made:
    (here / "a.cdd").write_bytes(b"nonsense")
    return {"source": here / "a.cdd"}


def another_format(here: Path) -> Made:
    return {"source": npy(here), "like": "hdf5"}


def a_dtype_for_npy(here: Path) -> Made:
    return {"source": npy(here), "dtype": "f4"}


def a_path_in_npy(here: Path) -> Made:
    return {"source": npy(here), "path": "x"}


def raw(**options: Any) -> Callable[[Path], Made]:
    def made(here: Path) -> Made:
        (here / "a.raw").write_bytes(bytes(24))
        return {"source": here / "a.raw", **options}

    return made


BAD: list[tuple[Callable[[Path], Made], type[Exception], str]] = [
    (an_empty_npy, UnreadableError, "a.npy cannot be read: EOFError: No data left"),
    (a_cut_npy, ValueError, "a.npy: mmap length"),
    (no_npz, UnreadableError, "a.npz cannot be read: BadZipFile"),
    (a_damaged_npz, UnreadableError, "a.npz::x cannot be read: "),
    (a_cut_member, ValueError, "a.npz::x ends after 990 of 1000 rows"),
    (no_hdf5, UnreadableError, "a.h5 cannot be read: OSError"),
    (damaged_chunks_of_hdf5, UnreadableError, "a.h5::x, rows .*000, cannot be read: OSError"),
    (nothing_in_hdf5, ValueError, "a.h5::x is empty"),
    (a_damaged_chunk_of_zarr, UnreadableError, "a.zarr, chunk c/3/0, cannot be read: "),
    (a_cut_chunk_of_zarr, UnreadableError, "a.zarr, chunk c/3/0, cannot be read: "),
    (no_json_of_zarr, UnreadableError, "zarr.json is not JSON"),
    (fields_that_zarr_lacks, UnreadableError, "a.zarr cannot be read: KeyError"),
    (a_codec_that_nobody_has, UnreadableError, "a.zarr cannot be read: .*nocodec"),
    (a_cut_parquet, UnreadableError, "a.parquet cannot be read: ArrowInvalid"),
    (a_page_with_a_wrong_checksum, UnreadableError, "a.parquet cannot be read: .*(CRC|checksum)"),
    (two_columns_of_one_name, ValueError, "a.parquet has more than one column 'a'"),
    (no_feather, UnreadableError, "a.feather cannot be read: ArrowInvalid"),
    (a_csv_with_a_short_row, UnreadableError, "a.csv cannot be read: FormatError: row 2"),
    (no_blosc2, UnreadableError, "a.b2nd cannot be read: "),
    (no_store, UnreadableError, "a.cdd cannot be read: FormatError"),
    (another_format, UnreadableError, "a.npy cannot be read: OSError"),
    (a_dtype_for_npy, ValueError, "dtype= and row_shape= say what raw files hold: .*a.npy is npy"),
    (a_path_in_npy, ValueError, "a.npy is npy, of one array: path= 'x'"),
    (raw(), ValueError, "a.raw says nothing of what it holds"),
    (raw(dtype="hello"), TypeError, "dtype='hello': "),
    (raw(dtype="O"), TypeError, "a.raw: dtype object cannot be stored"),
    (raw(dtype="i8", row_shape=(-3,)), ValueError, "a.raw: row_shape is .-3,., each"),
    (raw(dtype="i8", row_shape=(2,)), ValueError, "a.raw has 24 bytes, which are no whole rows of 16"),
    (raw(dtype="i8", min_free=1.5), ValueError, "min_free is bytes or a share"),
    (raw(dtype="i8", client=object()), TypeError, "client is one of dask.distributed"),
]


@pytest.mark.parametrize(("make", "kind", "text"), BAD, ids=[f"{b[0].__name__} {b[2][:30]}" for b in BAD])
def test_bad_sources(make: Callable[[Path], Made], kind: type[Exception], text: str, tmp_path: Path) -> None:
    into = {"npz": "t", "csv": "t", "parquet": "t"}
    made = make(tmp_path)
    source = made.pop("source")
    target = tmp_path / into.get(Path(str(source).partition("::")[0]).suffix[1:], "t.cdd")
    with pytest.raises(kind, match=text) as caught:
        migrate(source, target, **{**FREE, **made})
    assert type(caught.value) is kind or kind is OSError
    rows = sum(len(cdd.load(path)) for path in [target, *target.rglob("*.cdd")] if path.is_file())
    assert rows < 1000 or "damaged" in make.__name__ or "checksum" in make.__name__


@pytest.mark.parametrize("text", ["{ and so on", "{}", '{"node_type": "tensor"}', "[1]"])
def test_no_array_of_a_group_is_left_out(text: str, tmp_path: Path) -> None:
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    for name in ("a", "b"):
        group.create_array(name, shape=(10,), dtype="i4", chunks=(10,))[:] = 1
    (tmp_path / "g.zarr/b/zarr.json").write_text(text)
    with pytest.raises(UnreadableError, match=r"b/zarr\.json"):
        migrate(tmp_path / "g.zarr", tmp_path / "t", delete_source=True, **FREE)
    assert (tmp_path / "g.zarr/a/zarr.json").exists()


def test_a_bad_file_of_many_keeps_no_other_from_being_migrated(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    np.save(folder / "good.npy", np.arange(5))
    (folder / "bad.cdd").write_bytes(b"nonsense")
    (folder / "bad.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(50))
    looked = migrate(folder, tmp_path / "t", dry_run=True, glob="*.[nc]*", **FREE)
    assert looked.sources == 1 and [Path(name).name for name in looked.failed] == ["bad.cdd"]
    report = migrate(folder, tmp_path / "t", glob="*.[nc]*", progress=lambda *_: None, **FREE)
    assert report.sources == 1 and "FormatError" in str(report)


@pytest.mark.parametrize("workers", [1, 2])
def test_of_many_files_of_every_format_only_the_bad_ones_fail(workers: int, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    np.save(folder / "good.npy", np.arange(5))
    np.savez(folder / "good.npz", x=np.arange(6))
    for made, name in (
        (an_empty_npy, "a.npy"), (no_npz, "a.npz"), (no_hdf5, "a.h5"), (no_json_of_zarr, "a.zarr"),
        (a_cut_parquet, "a.parquet"), (no_feather, "a.feather"), (a_csv_with_a_short_row, "a.csv"),
        (no_blosc2, "a.b2nd"), (no_store, "a.cdd"),
    ):  # fmt: skip
        (folder / name[2:]).mkdir()
        made(folder / name[2:])
        assert (folder / name[2:] / name).exists()
    with h5py.File(folder / "none.h5", "w"):
        pass
    (folder / "old.cdd").write_bytes((0x0CDDBEEF).to_bytes(4, "little") + bytes(100))
    bad = {"none.h5", "old.cdd", *(f"a.{path.name}" for path in folder.iterdir() if path.is_dir())}
    assert len(bad) == 11
    looked = migrate(folder, tmp_path / "t", dry_run=True, **FREE)
    assert looked.sources == 2 and {Path(name).name for name in looked.failed} == bad
    report = migrate(folder, tmp_path / "t", workers=workers, delete_source=True, **FREE)
    assert report.sources == 2 and {Path(name).name for name in report.failed} == bad
    assert all(name.endswith(Path(name).name) and name in why for name, why in report.failed.items())
    assert "UnreadableError: " in report.failed[str(folder / "npz/a.npz")]
    assert not list(folder.glob("good*")) and {path.name for path in folder.glob("*/a.*")} < bad
    assert cdd.load(tmp_path / "t/good/x.cdd").tolist() == [0, 1, 2, 3, 4, 5]
    for name in ("a.npz", "a.h5"):
        with pytest.raises(UnreadableError, match=name):
            migrate(folder, tmp_path / "d", into="dataset", glob=f"*/{name}", **FREE)
    with pytest.raises(ValueError, match="like is 'what'"):
        migrate(folder, tmp_path / "d", like="what", **FREE)
