"""The plug-ins beside the libraries they serve: dev.py ecosystem, dev.py bench ecosystem.

In an environment of its own, .venv-ecosystem, with the built wheel, since torch and the like are large and
nothing else needs them. PyPI's wheel of torch for Linux on x86-64 is the CUDA build. It works without a GPU,
but loads nearly all of the CUDA libraries that it names, 3 GB: there is no small set to install. Where pip
knows of an index or a folder with CPU builds (PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS), it takes that of the
version in the group `training` by itself, since 2.13.0+cpu comes after 2.13.0: 0.2 GB.
"""

import hashlib
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

from tools import wheel as wheels
from tools.shell import BUILD, ROOT, fail, group, output, quietly, run, say

VENV = ROOT / ".venv-ecosystem"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
GROUPS = ("test", "demo", "ecosystem", "training")
TESTS = ("tests/ecosystem",)
# Whatever else a test skips for, it must not skip here.
ALLOWED = ("no recorded data",)


def need(build_wheel: Callable[[Path], Path]) -> None:
    """.venv-ecosystem with its groups and the built wheel."""
    if not output(str(PYTHON), "--version"):
        say("making .venv-ecosystem")
        quietly(sys.executable, "-m", "venv", "--clear", VENV)
    packages = sorted({package for name in GROUPS for package in group(name)})
    stamp = VENV / "groups.stamp"
    if not stamp.exists() or stamp.read_text() != "\n".join(packages):
        say("installing torch, dask and the others (minutes the first time)")
        quietly(PYTHON, "-m", "pip", "--disable-pip-version-check", "install", *packages)
        stamp.write_text("\n".join(packages))
    (wheel, *_) = wheels.glob(BUILD / "wheel") or [build_wheel(BUILD / "wheel")]
    stamp, digest = VENV / "package.stamp", hashlib.sha256(wheel.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        how = ("--disable-pip-version-check", "install", "--force-reinstall", "--no-deps")
        quietly(PYTHON, "-m", "pip", *how, wheel)
        stamp.write_text(digest)


def test(build_wheel: Callable[[Path], Path], arguments: list[str]) -> None:
    """Fails where a test fails, and where one skips for more than missing data."""
    need(build_wheel)
    results = BUILD / "ecosystem.xml"
    results.unlink(missing_ok=True)
    named = [*TESTS] if not any(Path(a.split("::")[0]).exists() for a in arguments) else []
    command = [PYTHON, "-P", "-m", "pytest", f"--junitxml={results}", *named, *arguments]
    command += ["-o", "junit_family=xunit1"]  # the one that has properties
    done = subprocess.run([str(word) for word in command], cwd=ROOT)
    if done.returncode:
        fail(f"exit code {done.returncode} from the tests of the plug-ins")
    skipped = [
        f"{case.get('classname')}.{case.get('name')}: {found.get('message')}"
        for case in ElementTree.parse(results).iter("testcase")
        for found in case.iter("skipped")
        if not any(text in (found.get("message") or "") + (found.text or "") for text in ALLOWED)
    ]
    if skipped:
        fail("\n  ".join(["nothing may skip here:", *skipped]))


def bench(build_wheel: Callable[[Path], Path], arguments: list[str]) -> None:
    need(build_wheel)
    run(PYTHON, "-P", "benchmarks/ecosystem.py", *arguments)
