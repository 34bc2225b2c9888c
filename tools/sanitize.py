"""Sanitizers for dev.py: the core's tests, and the package's with an extension that was built for them."""

import os
import shutil
import sysconfig
from pathlib import Path

from tools.shell import BUILD, ROOT, fail, output, quietly, run

PACKAGE = BUILD / "asan" / "package"  # a folder for PYTHONPATH with the package and its extension
# New memory is not zero, so that bytes which nobody wrote are wrong wherever they end up. A huge allocation
# fails as it would without a sanitizer. What CPython does not free at its end is no leak of ours.
ASAN = "detect_leaks=0:allocator_may_return_null=1:max_malloc_fill_size=268435456:malloc_fill_byte=165"
# The tests in which threads meet.
CONCURRENT = ["--tests-regex", "Live|Thread|Executor|Parallel|Follow"]


def core_tests(preset: str) -> None:
    os.environ["ASAN_OPTIONS"] = ASAN.replace("detect_leaks=0:", "")
    some = CONCURRENT if preset == "tsan" else []
    run("ctest", "--preset", preset, "--progress", "--parallel", str(os.cpu_count() or 1), *some)


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
