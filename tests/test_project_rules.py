"""The rules of CONTRIBUTING.md that a program can check: layers, includes, names, lengths, comments.

They read the sources as text and need neither the compiler nor the package.
"""

import ast
import re
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Which folders a file of each folder may include files of, beside its own.
BASE, OS, SIMD = "core/base", "core/os", "core/simd"
FORMATS = ("core/format/cdd", "core/format/packed", "core/format/zarr")
CODECS = ("core/codec", *(f"core/codec/{name}" for name in ("plain", "book", "levels", "numeric", "blosc")))
INDEX = "core/store/index"
SYSTEMS = ("core/store", "core/tiles", "core/packed")
WITHOUT_KERNELS = (BASE, OS, "core/storage", "core/threads", *CODECS, *SYSTEMS, "core/store/rescue",
                   "core/dataset", "core/async")  # fmt: skip
MAY_INCLUDE: dict[str, tuple[str, ...]] = {
    BASE: (),
    OS: (BASE,),
    SIMD: (BASE,),
    **dict.fromkeys(FORMATS, (BASE,)),
    "core/storage": (BASE, OS, SIMD),
    "core/threads": (BASE, OS),
    **dict.fromkeys(CODECS, (BASE, SIMD, *FORMATS, *CODECS)),
    INDEX: (BASE, OS, SIMD, FORMATS[0], "core/storage", *CODECS),
    "core/store": (BASE, OS, SIMD, FORMATS[0], "core/storage", "core/threads", *CODECS, INDEX),
    "core/store/rescue": (BASE, OS, FORMATS[0], "core/storage", "core/threads", *CODECS, INDEX, "core/store"),
    "core/tiles": (BASE, OS, SIMD, FORMATS[2], "core/storage", "core/threads", *CODECS),
    "core/packed": (BASE, OS, SIMD, FORMATS[1], "core/storage", "core/threads", *CODECS),
    "core/dataset": (BASE, OS, SIMD, "core/storage", "core/threads", *CODECS, "core/store"),
    "core/async": (BASE, OS, "core/storage", "core/threads", *CODECS, *SYSTEMS, "core/dataset"),
    "capi": (*WITHOUT_KERNELS, FORMATS[1]),
    "ext": (*WITHOUT_KERNELS, FORMATS[0], FORMATS[1]),
}

# Which packages of cdd/ a system's package may import, beside its own and the modules at the top. Commands
# may import every system, nothing imports commands; a plug-in is a module at the top that imports a library.
SYSTEM_IMPORTS: dict[str, tuple[str, ...]] = {
    "store": (),
    "dataset": ("store",),
    "tiles": ("store",),
    "packed": ("store",),
    "logical": ("store", "dataset"),
    "windows": ("store", "dataset"),
}
# Plug-ins: nothing imports them but commands.
PLUGINS = {"csv", "dask", "feeds", "migrate", "plot", "remote", "torch", "xarray", "zarr_codec"}
# Modules at the top of cdd/ that all systems share; they import each other and _cdd alone.
SHARED = {
    "arguments",
    "arrow",
    "attrs",
    "compared",
    "dtypes",
    "durable",
    "indexing",
    "manifests",
    "options",
    "out",
    "progress",
    "row_parts",
    "tables",
}
SHARED |= {"aio", "awaited", "strand", "threads"}

# Headers from outside and the places of the core that may see each.
OUTSIDE: dict[str, tuple[str, ...]] = {
    r"hwy/.*": ("core/simd/",),
    r"(zstd|zstd_errors|zdict|lz4|lz4hc|lz4frame)\.h": ("core/codec/compressor.cpp",),
    r"(blake3|xxhash)\.h": ("core/base/hash.cpp",),
    r"(tbb|oneapi)/.*": ("core/threads/for_each.cpp",),
    r"(unistd|fcntl|dirent|pthread|poll|windows|winsock2|io|share|fileapi|winbase)\.h": ("core/os/",),
    r"(sys|linux|mach)/.*\.h": ("core/os/",),
    r"Python\.h": ("ext/",),
}

C_HEADERS = {"capi/cdd.h"}  # which C compilers take

MAX_LINES = 400
# Files that may be longer, with the reason.
LONGER: dict[str, str] = {}

# Nothing that names one machine, and nothing left to do.
FORBIDDEN = {
    "a reminder": re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"),
    "a path of one machine": re.compile(
        r"(?<![\w.$}])/(work|root|home|mnt|Users|tmp/\w)[/\w]*|\b[A-Z]:\\\\?Users"
    ),
    "an address": re.compile(
        r"https?://(?!github\.com/|raw\.githubusercontent\.com/|docs\.python\.org/)[^\s\"')>]+"
    ),
}
FORBIDDEN_NAMES = re.compile(r"(utils?|helpers?|misc|common)", re.IGNORECASE)
FORBIDDEN_TYPES = re.compile(r"\b(?:class|struct)\s+(?:final\s+)?(\w*(?:Manager|Helper|Utils?))\b")
NOT_IN_CPP = {
    "std::format needs gcc 13": re.compile(
        r"\bstd::(v?format(_to)?(_n)?|print(ln)?)\s*\(|#include <(format|print)>"
    ),
    "MinGW's libstdc++ loses wake-ups of these: core/threads/latch.h": re.compile(
        r"#include <(latch|semaphore|barrier)>|\batomic(_flag)?_(wait|notify)"
    ),
    "std::expected needs C++23": re.compile(r"\bstd::expected\b"),
    "a GNU extension": re.compile(r"\b(__int128|__auto_type|typeof|__thread)\b|#include <bits/"),
}

FOLDERS = ("core", "ext", "capi", "bindings", "packaging", "cdd", "tests", "examples")
FOLDERS += ("benchmarks", "docs", "cmake", ".ci", ".github")
TEXT = {".h", ".cpp", ".py", ".pyi", ".md", ".txt", ".cmake", ".yml", ".toml", ".json"}
SKIPPED = {"tests/test_project_rules.py"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def files(*suffixes: str, folders: tuple[str, ...] = FOLDERS) -> list[Path]:
    found = [
        p for folder in folders for p in (ROOT / folder).rglob("*") if p.is_file() and p.suffix in suffixes
    ]
    return sorted(p for p in found if "__pycache__" not in p.parts)


def text_files() -> list[Path]:
    top = [p for p in ROOT.iterdir() if p.is_file() and p.suffix in TEXT]
    return [p for p in [*files(*TEXT), *top, ROOT / ".ci/run"] if name_of(p) not in SKIPPED]


def includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


def folder_of(name: str) -> str:
    """The layer's folder: core/codec/levels for core/codec/levels/plan.h, ext for ext/store/x.h."""
    parent = PurePosixPath(name).parent
    while parent.parts and parent.as_posix() not in MAY_INCLUDE:
        parent = parent.parent
    return parent.as_posix()


CPP = files(".h", ".cpp", folders=("core", "ext", "capi"))
CPP_TESTS = files(".h", ".cpp", folders=("tests", "benchmarks"))
PYTHON = files(".py", ".pyi", folders=("cdd", "tests", "examples", "benchmarks"))


def by_name(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=name_of)


def test_there_is_something_to_check() -> None:
    assert any(name_of(p).startswith("core/base/") for p in CPP)
    assert CPP_TESTS
    assert PYTHON


@by_name(CPP)
def test_file_includes_only_what_its_folder_may(path: Path) -> None:
    own = folder_of(name_of(path))
    assert own in MAY_INCLUDE, f"{name_of(path)} belongs to no layer"
    for name in includes(path):
        if not name.startswith(("core/", "ext/", "capi/")):
            continue
        assert (ROOT / name).is_file(), f"{name}: no such file"
        other = folder_of(name)
        assert other == own or other in MAY_INCLUDE[own], f"{own} must not see {other} ({name})"


@by_name(CPP)
def test_local_includes_start_at_the_root(path: Path) -> None:
    local = re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE)
    assert [n for n in local if not n.startswith(("core/", "ext/", "capi/", "hwy/"))] == []


@by_name(CPP)
def test_outside_headers_stay_in_their_place(path: Path) -> None:
    for name in includes(path):
        for pattern, places in OUTSIDE.items():
            if re.fullmatch(pattern, name):
                assert name_of(path).startswith(places), f"{name} belongs to {' or '.join(places)}"


def imported(path: Path) -> set[str]:
    """store for `from cdd.store.reader import Reader`, `import cdd.store` and `from cdd import store`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("cdd.")}


@by_name([p for p in PYTHON if name_of(p).startswith("cdd/")])
def test_module_imports_only_what_its_package_may(path: Path) -> None:
    own = path.relative_to(ROOT / "cdd").parts[0].removesuffix(".py")
    found = imported(path)
    if own in SYSTEM_IMPORTS:
        allowed = {"_cdd", own, *SHARED, *SYSTEM_IMPORTS[own]}
        assert found <= allowed, f"cdd.{own} must not import {', '.join(sorted(found - allowed))}"
    elif own in SHARED:
        assert found <= {"_cdd", *SHARED}, f"cdd.{own} is below the systems"
    assert own in ("commands", "__main__") or "commands" not in found
    assert own in ("commands", *PLUGINS) or not found & PLUGINS, "nothing imports a plug-in"


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports within functions and those of types alone count too: a circle that runs is one to be read."""
    paths = {module_name(path): path for path in files(".py", folders=("cdd",))}
    imports: dict[str, set[str]] = {}
    for name, path in paths.items():
        found: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                parts = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
                is_whole = any(part not in paths and key != "_cdd" for key, part in parts.items())
                found |= {*parts.values(), *([node.module or ""] if is_whole else [])}
        imports[name] = (found & paths.keys()) - {name}

    def reached(start: str) -> set[str]:
        seen, waiting = set(), [start]
        while waiting:
            new = imports[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    everything = {name: reached(name) for name in paths}
    circles = {
        frozenset({name, *(other for other in others if name in everything[other])})
        for name, others in everything.items()
        if name in others
    }
    assert [sorted(circle) for circle in circles] == []


def test_the_protocol_of_datasets_is_below_the_rest() -> None:
    for path in (ROOT / "cdd/dataset/protocol").glob("*.py"):
        found = set(re.findall(r"from cdd\.dataset(?:\.(\w+))? import", path.read_text()))
        assert found <= {"protocol"}, name_of(path)


def has_header(source: Path) -> bool:
    """core/os/publish.h is that of core/os/publish.cpp and of core/os/posix/publish.cpp, too."""
    folder = source.parent.parent if source.parent.name in ("posix", "win32") else source.parent
    return (folder / f"{source.stem}.h").exists() or source.with_suffix(".h").exists()


@by_name([p for p in CPP if p.suffix == ".h" or not has_header(p)])
def test_file_opens_with_a_comment(path: Path) -> None:
    first, second = path.read_text().splitlines()[:2]
    assert first.startswith("/* " if name_of(path) in C_HEADERS else "// ")
    assert len(first) > 20 or second.startswith("//"), "say what the file is, what it is not, what holds"


@by_name([p for p in PYTHON if p.suffix == ".py"])
def test_module_opens_with_a_docstring(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines, "empty file"
    assert lines[1 if lines[0].startswith("#!") else 0].startswith('"""')


@by_name([p for p in CPP if p.suffix == ".h"])
def test_header_is_guarded(path: Path) -> None:
    # Highway includes an -inl.h once per target, so those guard themselves by HWY_TARGET_TOGGLE.
    guard = "HWY_TARGET_TOGGLE" if path.name.endswith("-inl.h") else "#pragma once"
    assert ("#ifndef CDD_H" if name_of(path) in C_HEADERS else guard) in path.read_text()


@by_name([*CPP, *CPP_TESTS, *PYTHON, ROOT / "dev.py", ROOT / "setup.py"])
def test_file_is_short_enough_to_read(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_LINES or name_of(path) in LONGER, f"{lines} lines, {MAX_LINES} at most"


@by_name([*CPP, *CPP_TESTS])
def test_cpp_is_what_every_supported_compiler_takes(path: Path) -> None:
    text = path.read_text()
    for what, pattern in NOT_IN_CPP.items():
        assert not pattern.search(text), what
    if not name_of(path).startswith(("core/simd/", "tests/", "benchmarks/")):
        assert "__builtin_" not in text
        assert "HWY_" not in text


@by_name([*CPP, *CPP_TESTS, *PYTHON])
def test_names_say_something(path: Path) -> None:
    for part in path.relative_to(ROOT).with_suffix("").parts:
        assert not FORBIDDEN_NAMES.fullmatch(part), f"{part} says nothing"
    assert FORBIDDEN_TYPES.findall(path.read_text()) == []


@by_name(text_files())
def test_text_holds_nothing_of_one_machine_or_day(path: Path) -> None:
    text = path.read_text()
    for what, pattern in FORBIDDEN.items():
        found = pattern.search(text)
        assert not found, f"{what} in line {text.count(chr(10), 0, found.start()) + 1}: {found[0]}"


@by_name([p for p in text_files() if p.suffix == ".md"])
def test_links_lead_to_files(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", path.read_text())
    assert [t for t in targets if "://" not in t and not (path.parent / t).exists()] == []


def test_every_source_is_built() -> None:
    """By a CMakeLists.txt or .cmake file that names it by its path from there, or from the root."""
    built = set()
    lists = [p for p in files(".txt", ".cmake") if p.name == "CMakeLists.txt" or p.suffix == ".cmake"]
    for p in [ROOT / "CMakeLists.txt", *lists]:
        folder = p.parent if p.name == "CMakeLists.txt" else ROOT
        named = re.findall(r"(?<![\w/.])[\w/]+\.cpp", p.read_text())
        built |= {name_of(path) for name in named for path in (folder / name, ROOT / name) if path.is_file()}
    sources = [name_of(p) for p in [*CPP, *CPP_TESTS] if p.suffix == ".cpp"]
    assert [s for s in sources if s not in built] == []
