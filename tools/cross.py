"""The core's tests on other platforms and by other compilers: python3 dev.py cross TARGET.

On Debian on x86-64 only. Arm: Debian's cross compilers against a tree of Debian's own target packages (no
script of theirs is run), under QEMU's user mode. Windows: MinGW, with libraries built from source packages,
under Wine. All of it but what Wine keeps lies in .deps/TARGET and build/TARGET; CMakePresets.json says how
each is compiled.
docs/evidence/platforms.md says what was run when. Under an emulator, and with the kernels of one SIMD target
alone, tests take fewer rows of the recorded data. The package's tests are in tools/cross_python.py.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tools.debian import HIGHWAY, apt_install, build_libraries, distribution, installed, mirror_of
from tools.shell import BUILD, DEPS, ROOT, fail, output, quietly, run, say

QEMU = ["mmdebstrap", "qemu-user-static"]
ARM_PACKAGES = ["libc6-dev", "libzstd-dev", "liblz4-dev", "libtbb-dev", "libxxhash-dev"]
ARM_PACKAGES += ["libgtest-dev", "zlib1g-dev"]  # the tests' own
ARM_PACKAGES += ["python3", "libpython3-dev"]  # for tools/cross_python.py
WINDOWS_LIBRARIES = {
    "libzstd": "-DZSTD_BUILD_PROGRAMS=OFF -DZSTD_BUILD_SHARED=OFF -DZSTD_LEGACY_SUPPORT=OFF",
    "lz4": "-DLZ4_BUILD_CLI=OFF -DBUILD_STATIC_LIBS=ON",
    "googletest": "-DBUILD_GMOCK=OFF",
}
# The tests that give every SIMD target the same input: for processors that differ in nothing else.
SIMD_TESTS = "*Target*:NumericKernels/*"
# With the kernels of one target alone: not what takes every target anyhow, nor what takes none.
OTHER_TESTS = "-NumericKernels/*:*EveryTarget*:*EveryWidthAndTarget*:*/Crash.*"
DATA_ROWS = "300"  # of each recorded array, for what is slow or done again

# Processors, by name and by the bytes of an SVE vector, that together have each of Highway's Arm targets.
ARM_CPUS = [
    "max,sve-default-vector-length=16",
    "max,sve-default-vector-length=32",
    "a64fx",
    "neoverse-n1",
    "cortex-a57",
]


@dataclass
class Target:
    packages: list[str]
    architecture: str = ""  # Debian's name, where a tree of its packages is needed
    highway: str = ""  # switches for Highway's own build
    emulator: list[str] = field(default_factory=list)
    cpus: list[str] = field(default_factory=list)  # for QEMU: runs of SIMD_TESTS beside the one of all tests
    each_target: bool = False  # OTHER_TESTS once more for each SIMD target alone


TARGETS = {
    "aarch64": Target(
        packages=[*QEMU, "g++-aarch64-linux-gnu"],
        architecture="arm64",
        emulator=["qemu-aarch64-static", "-L", str(DEPS / "aarch64")],
        cpus=ARM_CPUS,
    ),
    "armhf": Target(
        packages=[*QEMU, "g++-arm-linux-gnueabihf"],
        architecture="armhf",
        highway="-DHWY_CMAKE_ARM7=ON",
        emulator=["qemu-arm-static", "-L", str(DEPS / "armhf")],
        cpus=["cortex-a7"],
    ),
    "mingw": Target(
        packages=["g++-mingw-w64-x86-64-posix", "libz-mingw-w64-dev", "wine64"],
        emulator=["/usr/lib/wine/wine64"],
    ),
    "clang": Target(packages=["clang"], each_target=True),
    "debian13": Target(packages=["mmdebstrap"]),
    "freethreaded": Target(packages=["libffi-dev", "libssl-dev", "zlib1g-dev"]),
    "gcc11": Target(packages=["g++-11"]),
    "targets": Target(packages=[], each_target=True),
}


def need_tree(name: str, target: Target) -> None:
    """Debian's packages for Arm, unpacked in .deps/NAME, and a new enough Highway in its /usr/local."""
    tree = DEPS / name
    stamp = tree / "packages.txt"
    if stamp.exists() and stamp.read_text() == " ".join(ARM_PACKAGES):
        return
    shutil.rmtree(tree, ignore_errors=True)
    tree.parent.mkdir(exist_ok=True)
    compiler = target.packages[-1].removeprefix("g++-") + "-gcc"
    codename = output("sh", "-c", ". /etc/os-release && printf %s $VERSION_CODENAME")
    packages = [*ARM_PACKAGES, f"libstdc++-{output(compiler, '-dumpversion').split('.')[0].strip()}-dev"]
    say(f"unpacking {target.architecture} packages of {codename}")
    quietly(
        *("mmdebstrap", "--variant=extract", f"--architectures={target.architecture}"),
        *("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", f"--include={','.join(packages)}"),
        *(codename, tree, mirror_of("debian", "main")),
    )
    build_for(name, HIGHWAY, tree / "usr/local", target.highway)
    stamp.write_text(" ".join(ARM_PACKAGES))


def need_windows_libraries(name: str, target: Target) -> None:
    """What MinGW's libraries lack: static ones in .deps/NAME."""
    prefix = DEPS / name
    if (prefix / "include/xxhash.h").exists():
        return
    build_for(name, HIGHWAY | WINDOWS_LIBRARIES, prefix, target.highway)
    shutil.copy("/usr/include/xxhash.h", prefix / "include")  # used as a header alone


def build_for(name: str, sources: dict[str, str], prefix: Path, switches: str) -> None:
    toolchain = ROOT / "cmake/toolchains" / f"{name}.cmake"
    build_libraries(sources, prefix, f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", *switches.split())


def need_target(name: str) -> Target:
    target = TARGETS[name]
    if distribution() != "debian":
        fail("cross builds need Debian's cross compilers and packages")
    if missing := sorted(set(target.packages) - installed(target.packages)):
        apt_install(missing)
    if target.architecture:
        need_tree(name, target)
    elif name == "mingw":
        need_windows_libraries(name, target)
    if target.emulator:
        os.environ.setdefault("CDD_DATA_ROWS", DATA_ROWS)
    # Not in build/: Wine links its drive Z to /, which setuptools would search for sources from end to end.
    os.environ |= {"WINEPREFIX": f"{tempfile.gettempdir()}/cdd-wine-{os.getuid()}", "WINEDEBUG": "-all"}
    return target


def configure(name: str) -> None:
    quietly("cmake", "--preset", name, *shlex.split(os.environ.get("CMAKE_ARGS", "")))


def run_tests(*command: str) -> None:
    """Runs a program of GoogleTest in as many shards at once as there are processors."""
    shards = os.cpu_count() or 1
    environments = [{"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(i)} for i in range(shards)]
    started = [subprocess.Popen(command, cwd=ROOT, env=os.environ | shard) for shard in environments]
    codes = [process.wait() for process in started]
    if any(codes):
        fail(f"a test failed: {shlex.join(command)}")


def check(name: str) -> None:
    """Builds the tests for a target and runs them; the program ends when one fails."""
    target = need_target(name)
    if name == "debian13":
        in_debian13("python3 dev.py test")
        return
    if name == "freethreaded":
        fail("freethreaded is a Python, and the core is as with any other: add --python")
    say(f"building the tests in build/{name}")
    configure(name)
    quietly("cmake", "--build", "--preset", name, "--target", "cdd_tests")
    program = BUILD / name / ("cdd_tests.exe" if name == "mingw" else "cdd_tests")
    tests = [*target.emulator, str(program), "--gtest_brief=1"]
    say("core tests")
    run_tests(*tests)
    for cpu in target.cpus:
        say(f"SIMD tests on {cpu}")
        os.environ["QEMU_CPU"] = cpu
        run_tests(*tests, f"--gtest_filter={SIMD_TESTS}")
    if target.each_target:
        os.environ.setdefault("CDD_DATA_ROWS", DATA_ROWS)
        shown = output(str(program), "--gtest_filter=SimdTargets.*")
        for simd in re.findall(r"(?m)^\[ TARGET   \] (\S+)", shown):
            say(f"core tests with the kernels of {simd} alone")
            os.environ["CDD_TEST_TARGET"] = simd
            run_tests(*tests, f"--gtest_filter={OTHER_TESTS}")
        os.environ.pop("CDD_TEST_TARGET", None)


def in_debian13(command: str) -> None:
    """Runs a command on HEAD in a tree of Debian 13, with its compiler, libraries and Python. Needs root."""
    tree = DEPS / "debian13"
    if not (tree / "usr/bin/python3").exists():
        say("unpacking Debian 13")
        shutil.rmtree(tree, ignore_errors=True)
        quietly(
            *("mmdebstrap", "--variant=minbase", "--include=python3,ca-certificates"),
            *(
                "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
                "trixie",
                tree,
                mirror_of("debian", "main"),
            ),
        )
    source = tree / "src/cdd"
    source.mkdir(parents=True, exist_ok=True)
    run("sh", "-c", f"git archive HEAD | tar -x -C {shlex.quote(str(source))}")
    for name in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"):
        if Path("/", name).exists():
            shutil.copy(Path("/", name), tree / name)
    mounts = f"mount -t proc proc {tree}/proc && mount --bind /dev {tree}/dev"
    inside = f"cd /src/cdd && {command}"
    for name in ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"):  # of dev.py, for this machine
        os.environ.pop(name, None)
    os.environ |= {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    # The mounts end with the processes that see them.
    run("unshare", "--mount", "sh", "-c", f"{mounts} && exec chroot {tree} sh -c {shlex.quote(inside)}")
