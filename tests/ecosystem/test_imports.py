"""`import cdd` brings NumPy alone; a plug-in says what it needs."""

import importlib
import subprocess
import sys

import pytest

LIBRARIES = {
    "blosc2",
    "dask",
    "h5py",
    "matplotlib",
    "obstore",
    "pandas",
    "polars",
    "pyarrow",
    "torch",
    "xarray",
}
LIBRARIES |= {"websockets", "zarr"}


def test_import_of_cdd_brings_none_of_the_libraries() -> None:
    script = "import sys, cdd; cdd.Windows; print(*sorted({n.partition('.')[0] for n in sys.modules}))"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & LIBRARIES == set()


@pytest.mark.parametrize(("plug_in", "library"), [("torch", "torch"), ("zarr_codec", "zarr")])
def test_a_plug_in_without_its_library_says_what_to_install(
    plug_in: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"cdd.{plug_in}", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf'cdd\.{plug_in} needs {library}: pip install "cdd\[{library}\]"'):
        importlib.import_module(f"cdd.{plug_in}")
    with pytest.raises(ImportError):
        importlib.import_module("cdd").__getattr__(plug_in)


def test_commands_need_none_of_the_libraries() -> None:
    script = f"import sys; sys.modules.update(dict.fromkeys({sorted(LIBRARIES)!r})); import cdd.commands"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
