"""python -m cdd info and verify on logical arrays."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cdd
from cdd import logical
from cdd.commands import main
from tests.logical.files import BOOKS, of_file


def test_info_and_verify_of_a_json_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_file(tmp_path / "books.json", attrs={"unit": "usd"}, dims=("time", "level", "feature"))
    assert main(["info", str(tmp_path / "books.json")]) == 0
    said = capsys.readouterr().out
    for text in ("(1000, 50, 3)", "float32", "time, level, feature", '"usd"', "2 cdd", "[0:500, 0:50, 0:3]"):
        assert text in said
    assert main(["verify", str(tmp_path / "books.json")]) == 0
    assert "all is well, 2 members, 600,000 bytes read" in capsys.readouterr().out
    member = next((tmp_path / "books.json.members").iterdir())
    data = bytearray(member.read_bytes())
    data[len(data) // 2] ^= 1
    member.write_bytes(data)
    assert main(["verify", "-q", str(tmp_path / "books.json")]) == 1
    assert member.stem in capsys.readouterr().out
    (tmp_path / "books.json").write_text('{"cdd:logical": {}}')
    assert main(["info", str(tmp_path / "books.json")]) == 1
    assert "no field 'version'" in capsys.readouterr().err


def test_info_and_verify_of_repositories_and_stores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("icechunk")
    zarr.create_group(tmp_path / "store")
    for where in (tmp_path / "repo", tmp_path / "store"):
        with logical.transaction(where, create=where.name == "repo") as t:
            for name in ("one", "deep/two"):
                t.create(name, shape=(0, 50, 3), dtype="f4").append(BOOKS[:100])
        assert main(["info", str(where)]) == 0
        said = capsys.readouterr().out
        assert f"{where}: deep/two" in said
        assert f"{where}: one" in said
        assert ("version" in said) == (where.name == "repo")
        assert main(["verify", str(where), "--name", "one"]) == 0
        assert "one: all is well" in capsys.readouterr().out
        assert logical.names(where) == ["deep/two", "one"]
        with logical.transaction(where) as t:
            t["one"].replace(0, codec="cdd")
        members = where.with_name(where.name + ".members")
        cdd.save(members / "m00.cdd", BOOKS[:5])
        assert main(["prune", str(where)]) == 0
        assert f"{members / 'm00.cdd'} deleted" in capsys.readouterr().out
        assert len(list(members.iterdir())) == 1
        assert np.array_equal(logical.open(where, "one")[:], BOOKS[:100])
        with pytest.raises(logical.LogicalError, match="no logical array 'none' in"):
            logical.open(where, "none")
    assert main(["verify", str(tmp_path / "repo"), "--tag", "none"]) == 1
    said = capsys.readouterr().err
    assert "no version 'none'" in said
    assert "not found" in said
    assert "icechunk/src" not in said
    for command in ("info", "prune"):
        assert main([command, str(zarr.create_group(tmp_path / command).store.root)]) == 1
        assert "holds no logical array" in capsys.readouterr().err


def test_the_example_runs() -> None:
    pytest.importorskip("icechunk")
    example = Path(__file__).parent.parent.parent / "examples" / "python" / "logical.py"
    quiet = {**os.environ, "ICECHUNK_LOG": "error"}
    done = subprocess.run([sys.executable, "-P", str(example)], capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr
    assert "all is well, 3 members" in done.stdout
