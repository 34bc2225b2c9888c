"""Running commands for dev.py: in the open, into build/dev.log, or for their output."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
DEPS = ROOT / ".deps"
LOG = BUILD / "dev.log"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

INSTALL_HINT = """\
The build needs a C++20 compiler, CMake 3.25 or newer, Ninja, and with their headers the libraries
zstd, lz4, BLAKE3 (in C), Highway 1.2 or newer, xxhash, oneTBB; for the tests GoogleTest and zlib.
  Debian, Ubuntu   python3 dev.py build, as root or with sudo, installs them
  macOS            brew install cmake ninja zstd lz4 blake3 highway xxhash tbb googletest
  with vcpkg       set CDD_VCPKG_ROOT to its folder; compiler, CMake and Ninja must be there already"""


def fail(text: str) -> NoReturn:
    sys.exit(f"dev.py: {text}")


def say(text: str) -> None:
    print(f"-- {text}", flush=True)


def run(*command: str | Path) -> None:
    """Runs a command in the open; the program ends when it fails."""
    words = [str(word) for word in command]
    try:
        code = subprocess.run(words, cwd=ROOT).returncode
    except FileNotFoundError:
        fail(f"{words[0]} is not installed\n{INSTALL_HINT}")
    if code:
        fail(f"exit code {code} from: {shlex.join(words[:9])}")


def quietly(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    """The same with its output in the log, whose end is shown when the command fails."""
    words = [str(word) for word in command]
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("a+b") as log:
        log.write(f"\n$ {shlex.join(words)}\n".encode())
        log.flush()
        start = log.tell()
        env = os.environ | environment
        try:
            done = subprocess.run(words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        except FileNotFoundError:
            fail(f"{words[0]} is not installed\n{INSTALL_HINT}")
        if done.returncode:
            log.seek(start)
            print(*log.read().decode(errors="replace").splitlines()[-60:], sep="\n", file=sys.stderr)
            fail(f"exit code {done.returncode} from: {shlex.join(words[:9])}; all of its output is in {LOG}")


def output(*command: str) -> str:
    """Standard output of a command in English, empty when it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def version_in(text: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else (0, 0)


def project() -> dict[str, Any]:
    """pyproject.toml."""
    import tomllib  # here, so that an older Python gets as far as dev.py's message

    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def group(name: str) -> list[str]:
    """The packages of a dependency group."""
    return project()["dependency-groups"][name]
