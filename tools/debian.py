"""Debian's and Ubuntu's packages for dev.py: installing them, and building libraries from source packages."""

import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.shell import INSTALL_HINT, fail, output, quietly, run, say

# The release of each distribution to take the source of libraries from when its own are too old or not there,
# the archive's component that holds Highway, and the keys that apt is to check it with.
SOURCES = {
    "debian": ("trixie", "main", "/usr/share/keyrings/debian-archive-keyring.gpg"),
    "ubuntu": ("resolute", "universe", "/usr/share/keyrings/ubuntu-archive-keyring.gpg"),
}
# For build_libraries().
HIGHWAY = {"highway": "-DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF"}


def distribution() -> str:
    """debian or ubuntu where apt serves, else an empty string."""
    release = Path("/etc/os-release")
    if not shutil.which("apt-get") or not release.exists():
        return ""
    fields = dict(line.split("=", 1) for line in release.read_text().splitlines() if "=" in line)
    names = [fields.get(key, "").strip('"') for key in ("ID", "ID_LIKE")]
    return next((d for name in " ".join(names).split() for d in SOURCES if d == name), "")


def as_root(*commands: list[str]) -> None:
    prefix: list[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            fail(f"no root rights and no sudo; as root run:\n  {' && '.join(map(shlex.join, commands))}")
        prefix = ["sudo", *(["-n"] if os.environ.get("CI") or not sys.stdin.isatty() else [])]
        run(*prefix, "true")  # asks for the password here, not into the log
    for command in commands:
        quietly(*prefix, "env", "DEBIAN_FRONTEND=noninteractive", *command)


def apt_install(packages: list[str]) -> None:
    say(f"installing {' '.join(packages)}")
    as_root(["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", *packages])


def need_mono() -> None:
    """Mono, by which C# is tested where the distribution has it: 16 packages, 7 MB."""
    packages = ["mono-mcs", "mono-runtime"]
    if not distribution() or (shutil.which("mcs") and shutil.which("mono")):
        return
    if not output("apt-cache", "policy", *packages):
        as_root(["apt-get", "update"])
    offered = output("apt-cache", "policy", *packages)
    if offered.count("Candidate:") - offered.count("Candidate: (none)") == len(packages):
        apt_install(packages)


def installed(packages: list[str]) -> set[str]:
    return {
        name for name in packages if output("dpkg-query", "-Wf", "${db:Status-Status}", name) == "installed"
    }


def mirror_of(system: str, component: str) -> str:
    """The address that this machine's apt takes the distribution's own packages from."""
    fields = "$(ORIGIN) $(RELEASE) $(COMPONENT) $(REPO_URI)"
    targets = output("apt-get", "indextargets", "--format", fields, "Created-By: Packages")
    # A release with a suffix (-updates, -security) can lie elsewhere.
    found = re.search(rf"(?im)^{system} \w+ {component} (\S+)$", targets)
    if not found:
        fail(f"apt has no {system} mirror to take sources from\n{INSTALL_HINT}")
    return found[1]


@contextmanager
def source_packages() -> Iterator[Callable[[str], Path]]:
    """A function that unpacks a source package of a newer release and gives its folder, which is there until
    the end; by the mirror that this machine uses already.

    apt works in a folder of its own: it checks the signature of the release and the hash of the source as it
    always does, and nothing in /etc or /var changes.
    """
    suite, component, keyring = SOURCES[distribution()]
    mirror = mirror_of(distribution(), component)
    with tempfile.TemporaryDirectory(prefix="cdd-source-") as folder:
        work = Path(folder)
        for name in ("lists/partial", "cache/archives/partial"):
            (work / name).mkdir(parents=True)
        (work / "sources.list").write_text(f"deb-src [signed-by={keyring}] {mirror} {suite} {component}\n")
        options = {
            "Dir::Etc::SourceList": work / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": work / "lists",
            "Dir::Cache": work / "cache",
            "APT::Sandbox::User": "",  # the download user cannot write to this folder
        }
        apt = ["apt-get", *(f"-o{key}={value}" for key, value in options.items())]
        quietly(*apt, "update", cwd=work)

        def unpacked(name: str) -> Path:
            say(f"building {name} from the source package of {suite}")
            quietly(*apt, "source", "--download-only", "--tar-only", name, cwd=work)
            (archive,) = work.glob(f"{name}_*.orig.tar.[gx]z")
            (work / name).mkdir()
            quietly("tar", "-xf", archive, "--strip-components=1", "-C", name, cwd=work)
            return work / name

        yield unpacked


def build_libraries(sources: dict[str, str], prefix: Path, *switches: str) -> None:
    """Static libraries from source packages. `sources` maps the name of one to switches of its own."""
    with source_packages() as unpacked:
        for name, own in sources.items():
            folder = unpacked(name)
            # Upstream's CMakeLists.txt of zstd and lz4 is not at the top.
            source = next(p for p in (folder / "build/cmake", folder) if (p / "CMakeLists.txt").exists())
            common = """-G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF
                -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON"""
            made = folder.with_name(f"build-{name}")
            configure = ["cmake", "-S", source, "-B", made, f"-DCMAKE_INSTALL_PREFIX={prefix}"]
            quietly(*configure, *common.split(), *own.split(), *switches)
            quietly("cmake", "--build", made, "--target", "install")
            texts = prefix / "share/licenses" / name
            texts.mkdir(parents=True, exist_ok=True)
            for text in folder.glob("LICEN[CS]E*"):
                shutil.copyfile(text, texts / text.name)


def collect_licences(packages: list[str], prefix: Path, folder: Path) -> None:
    """A text for each library whose code ends up in a wheel: of Debian's packages, and of those built into
    `prefix`. The program ends where one is missing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for package in packages:
        text = Path("/usr/share/doc", package, "copyright")
        if not text.exists():
            fail(f"{package} has no {text}: a wheel must have the licences of what it holds")
        shutil.copyfile(text, folder / f"{package}.txt")
        # Debian's texts name the licences that every system of it has.
        for name in set(re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", text.read_text())):
            shutil.copyfile(Path("/usr/share/common-licenses", name), folder / f"{name}.txt")
    for library in sorted((prefix / "share/licenses").glob("*")):
        texts = [text.read_text() for text in sorted(library.iterdir())]
        (folder / f"{library.name}.txt").write_text("\n".join(texts))
