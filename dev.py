#!/usr/bin/env python3
"""Everything a developer runs: python3 dev.py demo | test | bench | lint | build | wheel | fuzz | ...

Standard library only. Each command first brings what it needs: system packages (on Debian and Ubuntu;
elsewhere it says what to install, or takes vcpkg's by CDD_VCPKG_ROOT), Highway in .deps/ where the
distribution's is too old, Python packages in .venv/, the compiled core in build/. What is there already is
not made again. Output of quiet steps goes to build/dev.log. Compiler and CMAKE_ARGS come from the
environment.
"""

import argparse
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import sys
import sysconfig
import time
from pathlib import Path

from tools import cross as cross_builds
from tools import cross_python
from tools import ecosystem as ecosystems
from tools import fuzz as fuzzing
from tools import sanitize as sanitizers
from tools import wheel as wheels
from tools.debian import (
    HIGHWAY,
    apt_install,
    as_root,
    build_libraries,
    collect_licences,
    distribution,
    installed,
    need_mono,
)
from tools.shell import (
    BUILD,
    DEPS,
    INSTALL_HINT,
    ROOT,
    VENV,
    VENV_PYTHON,
    fail,
    group,
    output,
    quietly,
    run,
    say,
    version_in,
)
from tools.soak import soak as run_soak

HIGHWAY_MIN = (1, 2)
CMAKE_MIN = (3, 25)
WHEEL_LIBRARIES = ["libzstd-dev", "liblz4-dev", "librust-blake3-dev", "libxxhash-dev", "libtbb-dev"]
LIBRARIES = [*WHEEL_LIBRARIES, "libgtest-dev", "zlib1g-dev"]  # the last are the tests' own
BENCHMARKS = ("all", "csv", "dataset", "ecosystem", "gather", "kernels", "keys", "logical", "long", "read")
BENCHMARKS += ("async", "size", "tiles", "windows", "write")

# ---------------------------------------------------------------- small things


def pip(*arguments: str | Path, **environment: str) -> None:
    quietly(VENV_PYTHON, "-m", "pip", "--disable-pip-version-check", *arguments, **environment)


def fingerprint(*names: str, salt: str = "") -> str:
    """Changes with any file under these paths: what a stamp file holds."""
    digest = hashlib.sha256(salt.encode())
    for name in names:
        path = ROOT / name
        for file in sorted(path.rglob("*") if path.is_dir() else [path]):
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(ROOT).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


def is_stamped(stamp: Path, value: str) -> bool:
    return stamp.exists() and stamp.read_text() == value


# ---------------------------------------------------------------- system packages


def need_system() -> None:
    """Compiler, CMake, Ninja and the libraries."""
    if not distribution() or os.environ.get("CDD_VCPKG_ROOT"):
        missing = [tool for tool in ("cmake", "ninja") if not shutil.which(tool)]
        if missing:
            fail(f"{' and '.join(missing)} not found\n{INSTALL_HINT}")
    else:
        tools = {os.environ.get("CXX", "g++"): "g++", "cmake": "cmake", "ninja": "ninja-build"}
        wanted = [package for tool, package in tools.items() if not output(tool, "--version")]
        wanted += sorted(set(LIBRARIES) - installed(LIBRARIES))
        if not Path(sysconfig.get_path("include"), "Python.h").exists():
            wanted.append("python3-dev")
        if wanted:
            apt_install(wanted)
        need_highway()
    found = version_in(output("cmake", "--version"))
    if found < CMAKE_MIN:
        fail(f"CMake {'.'.join(map(str, found))} is too old, at least 3.25 is needed: pip install cmake")


def need_highway() -> None:
    prefixes = [DEPS, *map(Path, os.environ.get("CMAKE_PREFIX_PATH", "").split(os.pathsep))]
    if any((prefix / "lib/cmake/hwy/hwy-config.cmake").exists() for prefix in prefixes):
        return
    if version_in(output("dpkg-query", "-Wf", "${Version}", "libhwy-dev")) >= HIGHWAY_MIN:
        return
    if not output("apt-cache", "policy", "libhwy-dev"):  # images come without apt's lists
        as_root(["apt-get", "update"])
    offered = re.sub(r"(?s).*Candidate:", "", output("apt-cache", "policy", "libhwy-dev"))
    if version_in(offered) >= HIGHWAY_MIN:
        apt_install(["libhwy-dev"])
    else:
        build_libraries(HIGHWAY, DEPS)


def need_licences() -> None:
    """The texts that a wheel with the distribution's libraries inside must have, for setup.py."""
    is_ours = (DEPS / "lib/cmake/hwy").exists()
    if is_ours and not (DEPS / "share/licenses/highway").exists():
        build_libraries(HIGHWAY, DEPS)
    packages = [*WHEEL_LIBRARIES, *([] if is_ours else ["libhwy-dev"])]
    collect_licences(packages, DEPS, BUILD / "licences")
    os.environ["CDD_LICENCES"] = str(BUILD / "licences")


# ---------------------------------------------------------------- Python packages, building


def need_venv(*groups: str) -> None:
    """.venv with these dependency groups of pyproject.toml."""
    if not output(str(VENV_PYTHON), "--version"):
        if distribution() and not importlib.util.find_spec("ensurepip"):
            apt_install(["python3-venv"])
        say(f"making .venv with Python {sys.version.split()[0]}")
        quietly(sys.executable, "-m", "venv", "--clear", VENV)
    wanted = [name for name in groups if not is_stamped(VENV / f"{name}.stamp", "\n".join(group(name)))]
    if wanted:
        say(f"installing Python packages for {', '.join(wanted)}")
        pip("install", *sorted({package for name in wanted for package in group(name)}))
    for name in wanted:
        (VENV / f"{name}.stamp").write_text("\n".join(group(name)))


def need_core(preset: str) -> None:
    """Configures and builds one preset of CMakePresets.json."""
    need_system()
    say(f"building the core in build/{preset} (some minutes the first time)")
    quietly("cmake", "--preset", preset, *shlex.split(os.environ.get("CMAKE_ARGS", "")))
    quietly("cmake", "--build", "--preset", preset)


def build_wheel(folder: Path) -> Path:
    """A wheel in `folder`, compiled in the folder of the dev preset: the core is compiled once for both."""
    need_venv("build")
    # setuptools would pack what it finds in its folder, files deleted since included.
    for old in [*wheels.glob(folder), *BUILD.glob("lib.*"), *BUILD.glob("bdist.*")]:
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    pip("wheel", "--no-build-isolation", "--no-deps", "-w", folder, ROOT, CDD_BUILD_DIR=str(BUILD / "dev"))
    return wheels.glob(folder)[0]


def need_package() -> None:
    """The built wheel, installed in .venv."""
    code = ("core", "capi", "ext", "cdd", "cmake", "CMakeLists.txt", "setup.py")
    text = ("pyproject.toml", "README.md", "LICENSE")
    stamp = VENV / "package.stamp"
    value = fingerprint(*code, *text, salt=os.environ.get("CMAKE_ARGS", ""))
    if not is_stamped(stamp, value):
        say("building the wheel and installing it in .venv (some minutes the first time)")
        pip("install", "--force-reinstall", "--no-deps", build_wheel(BUILD / "wheel"))
        stamp.write_text(value)


# ---------------------------------------------------------------- commands


def build(_: argparse.Namespace) -> None:
    need_core("dev")
    need_package()


def core_tests(preset: str, quiet: bool = False) -> None:
    how = quietly if quiet else run
    how("ctest", "--preset", preset, "--progress", "--parallel", str(os.cpu_count() or 1))


def test(options: argparse.Namespace) -> None:
    build(options)
    need_venv("test", "dataset", "logical", "tiles", "ecosystem")
    need_mono()
    say("core tests")
    core_tests("dev", quiet="-q" in options.rest or "--quiet" in options.rest)
    say("Python tests")
    # -P keeps the sources in cdd/ from hiding the installed package.
    run(VENV_PYTHON, "-P", "-m", "pytest", *options.rest)


def ecosystem(options: argparse.Namespace) -> None:
    need_system()
    need_package()
    ecosystems.test(build_wheel, options.rest)


def lint(options: argparse.Namespace) -> None:
    need_venv("lint", *(["tidy"] if options.tidy else []))
    tool = VENV_PYTHON.parent
    folders = ("core", "capi", "ext", "examples", "tests", "benchmarks")
    cpp = sorted(
        p for name in folders for p in (ROOT / name).rglob("*") if p.suffix in (".c", ".h", ".hpp", ".cpp")
    )
    say("clang-format")
    run(tool / "clang-format", *(["-i"] if options.fix else ["--dry-run", "-Werror"]), *cpp)
    say("ruff")
    run(tool / "ruff", "check", "--quiet", *(["--fix"] if options.fix else []), ".")
    run(tool / "ruff", "format", "--quiet", *([] if options.fix else ["--check"]), ".")
    say("mypy")
    run(tool / "mypy")
    say("project rules")
    run(VENV_PYTHON, "-P", "-m", "pytest", "-q", "tests/test_project_rules.py")
    if options.tidy:
        need_core("dev")
        say("clang-tidy")
        sources = [p for p in cpp if p.suffix == ".cpp" and p.is_relative_to(ROOT / "core")]
        run(tool / "clang-tidy", "--quiet", "-p", BUILD / "dev", *sources)


def demo(options: argparse.Namespace) -> None:
    need_system()
    need_package()
    names = {"tiles": "camera", "csv": "csv_to_dataset"}
    named = options.rest[:1] and ROOT / f"examples/python/{names.get(options.rest[0], options.rest[0])}.py"
    if named and named.exists():
        need_venv("demo", *({"logical": ["logical"], "camera": ["tiles"]}.get(named.stem, [])))
        return run(VENV_PYTHON, "-P", named, *options.rest[1:])
    need_venv("demo")
    run(VENV_PYTHON, "-P", "examples/demo.py", *options.rest)
    return None


def bench(options: argparse.Namespace) -> None:
    if options.rest[:1] in (["-h"], ["--help"]):
        say(f"bench [--peers] [{' | '.join(BENCHMARKS)}] [arguments]; `bench NAME --help` has those of each")
        return None
    need_system()
    need_package()
    named = options.rest[:1] and options.rest[0] in BENCHMARKS
    name, *rest = options.rest if named else ["read", *options.rest]
    if name == "ecosystem":
        return ecosystems.bench(build_wheel, rest)
    groups = ["peers", "plots"] if name == "all" else ["peers"] if options.peers else []
    groups = [f"{name}_peers"] if name in ("csv", "dataset") and options.peers else groups
    name = {"async": "async_reads", "csv": "csv_text"}.get(name, name)
    need_venv("demo", *groups, *([name] if name in ("logical", "tiles") else []))
    if name in ("all", "gather", "kernels"):
        if distribution() and not installed(["libbenchmark-dev"]):
            apt_install(["libbenchmark-dev"])
        say("building the C++ benchmarks")
        quietly("cmake", "--preset", "bench", *shlex.split(os.environ.get("CMAKE_ARGS", "")))
        quietly("cmake", "--build", "--preset", "bench", "--target", "kernels", "one_row")
    if name == "kernels":
        return run(BUILD / "bench/kernels", *rest)
    run(VENV_PYTHON, f"benchmarks/{name}.py", *(["--peers"] if options.peers else []), *rest)
    return None


def wheel(options: argparse.Namespace) -> None:
    need_system()
    need_venv("wheel")
    say("building the wheel")
    linux = sys.platform == "linux"
    if distribution() and not os.environ.get("CDD_VCPKG_ROOT"):
        need_licences()
    path = build_wheel(BUILD / "raw-wheel" if linux else ROOT / "dist")
    if linux:
        path = wheels.repair(VENV_PYTHON, path, ROOT / "dist")
    if "-abi3-" in path.name:
        say("abi3audit")
        quietly(VENV_PYTHON, "-m", "abi3audit", "--strict", path)
    if linux:
        wheels.inspect(path)
        wheels.test(path, ["test", *(["beside"] if options.beside else [])], options.rest)
    say(f"pip install {path.relative_to(ROOT)}")


def sdist(_: argparse.Namespace) -> None:
    need_system()
    need_venv("build", "wheel")
    say("building the source archive")
    folder = ROOT / "dist"
    for old in wheels.glob(folder, ".tar.gz"):
        old.unlink()
    how = ("--no-isolation", "--skip-dependency-check", "--sdist", "--outdir")
    quietly(VENV_PYTHON, "-m", "build", *how, folder, ROOT)
    (path,) = wheels.glob(folder, ".tar.gz")
    say(f"building a wheel from {path.name} alone")
    # The archive is unpacked elsewhere, where CMake would not find .deps by itself.
    prefixes = os.pathsep.join([str(DEPS), os.environ.get("CMAKE_PREFIX_PATH", "")])
    folder = BUILD / "wheel-of-sdist"
    pip("wheel", "--no-build-isolation", "--no-deps", "-w", folder, path, CMAKE_PREFIX_PATH=prefixes)
    say(f"{path.relative_to(ROOT)} ({path.stat().st_size / 1e3:.0f} kB)")


def sanitize(options: argparse.Namespace) -> None:
    need_core("asan")
    say("core tests under AddressSanitizer and UndefinedBehaviorSanitizer")
    sanitizers.core_tests("asan")
    need_venv("build", "test")
    say("Python tests under both, with the extension built for them")
    sanitizers.python_tests(VENV_PYTHON, options.rest)
    need_core("tsan")
    say("threads of the core under ThreadSanitizer")
    sanitizers.core_tests("tsan")


def fuzz(options: argparse.Namespace) -> None:
    fuzzing.need_clang()
    need_core("fuzz")
    fuzzing.fuzz(options.seconds, options.targets)


def soak(options: argparse.Namespace) -> None:
    build(options)
    need_venv("test", "dataset", "logical")
    run_soak(options.minutes, VENV_PYTHON)


def cross(options: argparse.Namespace) -> None:
    need_system()
    if options.python:
        need_venv("build")
        cross_python.check(options.target, options.rest)
    else:
        cross_builds.check(options.target)


COMMANDS = {
    demo: "write a book, read random windows of it, compare with others; or examples/python/NAME.py",
    test: "run the core's tests and the package's; further arguments go to pytest",
    ecosystem: "test the plug-ins beside torch, dask and all others; further arguments go to pytest",
    bench: "run benchmarks/read.py, or the one named: all (into docs/), gather, kernels, logical, tiles",
    lint: "check formatting, types and the project's rules",
    build: "build the core, its tests and the package",
    wheel: "build a self-contained wheel into dist/, audit it, test it; further arguments go to pytest",
    sdist: "pack the sources into dist/ and build a wheel from the archive",
    sanitize: "run the core's tests and the package's under sanitizers; further arguments go to pytest",
    fuzz: "run every fuzz target for its share of the seconds",
    soak: "run the reliability tests with large counts, half an hour or more",
    cross: "run the core's tests for another platform or by another compiler",
}


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036
        fail(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    parser = argparse.ArgumentParser(prog="dev.py", description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for function, text in COMMANDS.items():
        # A benchmark says itself what it takes.
        has_help = function is not bench
        commands.add_parser(function.__name__, help=text, add_help=has_help).set_defaults(function=function)
    commands.choices["lint"].add_argument("--fix", action="store_true", help="repair what can be repaired")
    commands.choices["lint"].add_argument("--tidy", action="store_true", help="clang-tidy too")
    commands.choices["bench"].add_argument("--peers", action="store_true", help="against other stores too")
    commands.choices["fuzz"].add_argument("seconds", type=int, help="for all targets together")
    commands.choices["fuzz"].add_argument(
        "targets", nargs="*", metavar="TARGET", help="only these; build/fuzz/cdd_fuzz, once built, lists them"
    )
    commands.choices["soak"].add_argument(
        "minutes", nargs="?", type=float, default=0, help="crash simulation goes on until then"
    )
    commands.choices["wheel"].add_argument(
        "--beside", action="store_true", help="in one process with PyArrow, PyTorch and numba too"
    )
    commands.choices["cross"].add_argument("target", choices=cross_builds.TARGETS)
    commands.choices["cross"].add_argument(
        "--python", action="store_true", help="the package's tests, or those named, in that machine's Python"
    )
    options, rest = parser.parse_known_args()
    takes_rest = options.command in ("demo", "test", "ecosystem", "bench", "sanitize", "wheel")
    if rest and not takes_rest and not getattr(options, "python", False):
        parser.error(f"unknown arguments: {' '.join(rest)}")
    options.rest = rest
    if shutil.which("ccache"):
        os.environ.setdefault("CMAKE_C_COMPILER_LAUNCHER", "ccache")
        os.environ.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    os.environ.setdefault("CMAKE_GENERATOR", "Ninja")
    start = time.monotonic()
    options.function(options)
    say(f"{options.command}: done in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
