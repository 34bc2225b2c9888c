"""Builds the extension module with CMake; setuptools only packs it.

Environment: CMAKE_ARGS is passed on to CMake; CDD_BUILD_DIR names a build folder to keep, which makes the
next build incremental; CDD_LICENCES a folder of texts to be packed. Everything else is CMake's own
(CMAKE_GENERATOR, CMAKE_BUILD_PARALLEL_LEVEL, ...).
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
# Before 3.15 there is no stable ABI for free-threaded builds: they get a module for their version alone.
LIMITED_API = not sysconfig.get_config_var("Py_GIL_DISABLED")


def copy_licences(installed: Path, folder: Path) -> None:
    """What the licences of vcpkg's ports ask to be told wherever they are inside; nothing without vcpkg."""
    for text in sorted(installed.glob("*/share/*/copyright")):
        port = text.parent.name
        if not port.startswith("vcpkg-"):  # what vcpkg builds with
            folder.mkdir(exist_ok=True)
            shutil.copyfile(text, folder / f"{port}.txt")


class CMakeBuild(build_ext):
    def build_extension(self, ext: Extension) -> None:
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        build_dir = Path(os.environ.get("CDD_BUILD_DIR") or Path(self.build_temp, ext.name)).resolve()
        build_type = "Debug" if self.debug else "Release"
        configure = [
            *("cmake", "-S", str(ROOT), "-B", str(build_dir)),
            f"-DCMAKE_BUILD_TYPE={build_type}",
            "-DCDD_BUILD_EXTENSION=ON",
            f"-DCDD_LIMITED_API={'0x030B0000' if LIMITED_API else ''}",
            f"-DCDD_EXT_OUTPUT_DIR={target.parent.as_posix()}",
            f"-DCDD_EXT_SUFFIX={target.name.removeprefix('_cdd')}",
            *self.python_arguments(),
            *self.generator_arguments(),
            *shlex.split(os.environ.get("CMAKE_ARGS", "")),
        ]
        build = ["cmake", "--build", str(build_dir), "--target", "_cdd", "--config", build_type]
        if self.parallel or "CMAKE_BUILD_PARALLEL_LEVEL" not in os.environ:
            build += ["--parallel", str(self.parallel or os.cpu_count() or 1)]
        subprocess.run(configure, check=True)
        subprocess.run(build, check=True)
        copy_licences(build_dir / "vcpkg_installed", target.parent / "licenses")
        if given := os.environ.get("CDD_LICENCES"):
            shutil.copytree(given, target.parent / "licenses", dirs_exist_ok=True)

    def python_arguments(self) -> list[str]:
        """CMake 3.25 cannot find the stable ABI's library and header itself (3.26 can)."""
        arguments = [f"-DCDD_PYTHON_INCLUDE_DIR={Path(sysconfig.get_path('include')).as_posix()}"]
        if sys.platform == "win32":
            version = "3" if LIMITED_API else f"{sys.version_info[0]}{sys.version_info[1]}t"
            library = Path(sys.base_prefix, "libs", f"python{version}.lib")
            arguments.append(f"-DCDD_PYTHON_LIBRARY={library.as_posix()}")
        return arguments

    def generator_arguments(self) -> list[str]:
        arguments = []
        if sys.platform == "darwin" and "ARCHFLAGS" in os.environ:
            archs = [a for a in os.environ["ARCHFLAGS"].split() if a != "-arch"]
            arguments.append(f"-DCMAKE_OSX_ARCHITECTURES={';'.join(archs)}")
        if os.environ.get("CMAKE_GENERATOR", "Ninja") != "Ninja":
            return arguments
        if sys.platform == "win32" and "CMAKE_GENERATOR" not in os.environ:
            arch = {"win-amd64": "x64", "win-arm64": "ARM64", "win32": "Win32"}[self.plat_name]
            return [*arguments, "-A", arch]
        arguments += ["-G", "Ninja"]
        # pip's isolated environment is another folder each time; the Ninja CMake has cached may be gone.
        if ninja := shutil.which("ninja"):
            arguments.append(f"-DCMAKE_MAKE_PROGRAM={Path(ninja).as_posix()}")
        return arguments


setup(
    ext_modules=[Extension("cdd._cdd", sources=[], py_limited_api=LIMITED_API)],
    cmdclass={"build_ext": CMakeBuild},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED_API else {},
)
