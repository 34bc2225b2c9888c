"""Sanitizers for dev.py: the core's tests, and the package's with an extension that was built for them; the C
interface under valgrind, coroutines by every compiler that is there."""

import os
import shutil
import sysconfig
from pathlib import Path

from tools.debian import apt_install, distribution, installed
from tools.shell import BUILD, ROOT, fail, output, quietly, run, say

PACKAGE = BUILD / "asan" / "package"  # a folder for PYTHONPATH with the package and its extension
# New memory is not zero, so that bytes which nobody wrote are wrong wherever they end up. A huge allocation
# fails as it would without a sanitizer. What CPython does not free at its end is no leak of ours.
ASAN = "detect_leaks=0:allocator_may_return_null=1:max_malloc_fill_size=268435456:malloc_fill_byte=165"
# The tests in which threads meet.
CONCURRENT = [
    "--tests-regex",
    "Live|Thread|Executor|Parallel|Follow|Jobs|Queue|Task|WhenAll|AsyncReader|AsyncWriter|WarmChunks|Tile",
    # ThreadSanitizer does not support threads that begin in a child of a process with threads.
    "--exclude-regex",
    "ForkedChild",
]
# Symmetric transfer and the like depend on the optimiser, so coroutines are compiled without one, too.
COROUTINES = ("-O0", "-O2", "-O0 -fsanitize=address", "-O0 -fsanitize=thread")


def core_tests(preset: str) -> None:
    os.environ["ASAN_OPTIONS"] = ASAN.replace("detect_leaks=0:", "")
    some = CONCURRENT if preset == "tsan" else []
    run("ctest", "--preset", preset, "--progress", "--parallel", str(os.cpu_count() or 1), *some)
    if preset == "asan":
        say("coroutines by each compiler, without optimising and under sanitizers")
        coroutine_tests()
    else:
        say("the C interface under valgrind")
        c_tests()


def need(packages: list[str]) -> None:
    missing = sorted(set(packages) - installed(packages)) if distribution() else []
    if missing and output("apt-cache", "policy", *missing).count("Candidate: (none)") == 0:
        apt_install(missing)


def coroutine_tests() -> None:
    """tests/async/task_test.cpp: among others a loop of 10^6 awaits, and 10^4 of them deep."""
    need(["g++-11", "clang"])
    folder = BUILD / "coroutines"
    folder.mkdir(parents=True, exist_ok=True)
    libraries = ("-lgtest", "-lgtest_main", "-pthread")
    for compiler in ("g++-11", "g++-12", "g++", "clang++"):
        if not shutil.which(compiler):
            say(f"  {compiler} is not there")
            continue
        for flags in COROUTINES:
            test = folder / "task_test"
            source = ROOT / "tests/async/task_test.cpp"
            quietly(compiler, "-std=c++20", f"-I{ROOT}", *flags.split(), source, "-o", test, *libraries)
            # clang's frames take 1.1 kB a level with redzones, more than the usual 8 MB of 10^4 levels.
            stack = ["prlimit", f"--stack={16 << 20}"] if "address" in flags else []
            run(*stack, test, "--gtest_brief=1")
            say(f"  {compiler} {flags}: passed")


def c_tests() -> None:
    """The C tests of build/dev under valgrind: no byte is read that nobody wrote, none is lost."""
    need(["valgrind"])
    quietly("cmake", "--preset", "dev")
    programs = {name: f"capi_{name}_test" for name in ("shared", "packed", "nulls", "sizes")}
    quietly("cmake", "--build", "--preset", "dev", "--target", *programs.values())
    store, header, symbols = BUILD / "valgrind.cdd", ROOT / "capi/cdd.h", ROOT / "tests/capi/symbols.txt"
    arguments = {"shared": [store], "packed": [], "nulls": [header, symbols, store], "sizes": [header, store]}
    how = ["--quiet", "--error-exitcode=9", "--leak-check=full"]
    how += ["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"]  # threads of Jobs never end
    for name, given in arguments.items():
        run("valgrind", *how, BUILD / "dev/tests/capi" / programs[name], *given)


def runtime(name: str) -> str:
    path = output(os.environ.get("CXX", "g++"), f"-print-file-name={name}").strip()
    if not Path(path).is_absolute():
        fail(f"the compiler has no {name}; sanitizing the extension takes g++")
    return path


def python_tests(python: Path, arguments: list[str]) -> None:
    """pytest under AddressSanitizer and UndefinedBehaviorSanitizer."""
    shutil.rmtree(PACKAGE, ignore_errors=True)
    shutil.copytree(ROOT / "cdd", PACKAGE / "cdd", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    quietly(
        *("cmake", "--preset", "asan", "-DCDD_BUILD_EXTENSION=ON", "-DCDD_LIMITED_API=0x030B0000"),
        f"-DCDD_EXT_OUTPUT_DIR={PACKAGE / 'cdd'}",
        f"-DCDD_PYTHON_INCLUDE_DIR={sysconfig.get_path('include')}",
    )
    quietly("cmake", "--build", "--preset", "asan", "--target", "_cdd")
    # The interpreter is not instrumented: the runtimes come first, libstdc++ for what they wrap of it.
    preloaded = ":".join(map(runtime, ("libasan.so", "libubsan.so", "libstdc++.so")))
    settings = {
        "PYTHONPATH": PACKAGE,
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": ASAN,
        "LD_PRELOAD": preloaded,
    }
    environment = ["env", *(f"{name}={value}" for name, value in settings.items())]
    ignored = "--ignore=tests/test_project_rules.py"  # they judge text
    run(*environment, python, "-P", "-m", "pytest", "-p", "no:cacheprovider", ignored, *arguments)
