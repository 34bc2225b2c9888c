"""Fuzzing for dev.py: every target for its share of the time, and what came out."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tools.debian import apt_install, distribution, installed
from tools.shell import BUILD, ROOT, fail, output, say, version_in

PROGRAM = BUILD / "fuzz" / "cdd_fuzz"
FOUND = BUILD / "fuzz" / "findings"  # inputs that broke a promise
GROWN = BUILD / "fuzz" / "corpus"  # inputs that reached something new; kept from run to run
# Bytes of an input, MB of one allocation and of all, seconds of one input: beyond them is a finding. The
# largest block of an index alone has 32 MB.
LIMITS = ["-max_len=6000", "-malloc_limit_mb=160", "-rss_limit_mb=2048", "-timeout=20"]


def need_clang() -> None:
    """clang++ with libFuzzer and the sanitizers, which Debian has in a package of their own."""
    if not shutil.which("clang++"):
        if not distribution():
            fail("fuzzing takes clang++ with libFuzzer, which is not installed")
        apt_install(["clang"])
    runtime = f"libclang-rt-{version_in(output('clang++', '--version'))[0]}-dev"
    if distribution() and not installed([runtime]):
        apt_install([runtime])


class Result(NamedTuple):
    inputs: int
    cpu_seconds: float
    is_clean: bool


def fuzz_target(name: str, corpus: str, seconds: int) -> Result:
    """Runs one target and says how many inputs it tried, in how much time of a CPU."""
    grown = GROWN / corpus
    grown.mkdir(parents=True, exist_ok=True)
    command = [
        *(str(PROGRAM), f"--target={name}", f"-max_total_time={seconds}", *LIMITS),
        *("-print_final_stats=1", f"-artifact_prefix={FOUND / name}-"),
        *(str(grown), str(ROOT / "tests/fuzz/corpus" / corpus)),
    ]
    log = FOUND / f"{name}.log"
    with log.open("w") as stream:
        process = subprocess.Popen(command, cwd=BUILD, stdout=subprocess.DEVNULL, stderr=stream)
        # Not process.wait(): only wait4 tells what this process used, whatever runs beside it.
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(errors="replace")
    counted = re.search(r"number_of_executed_units:\s*(\d+)", text)
    inputs = int(counted[1]) if counted else 0
    result = Result(inputs, usage.ru_utime + usage.ru_stime, process.returncode == 0 and inputs > 0)
    found = "nothing found" if result.is_clean else f"FOUND: {FOUND / name}"
    say(f"{name:<16} {inputs:>10,} inputs {result.cpu_seconds:>6.0f} s of a CPU   {found}")
    if not result.is_clean:
        print(*text.splitlines()[-40:], sep="\n")
    return result


def fuzz(seconds: int, only: list[str]) -> None:
    """These targets, or all, in `seconds` together, as many at once as there are cores."""
    targets: dict[str, str] = dict(re.findall(r"(\S+) (\S+)", output(str(PROGRAM))))
    if not targets:
        fail(f"{PROGRAM} names no targets")
    for name in only:
        if name not in targets:
            fail(f"no fuzz target is called {name}; there are {', '.join(targets)}")
    names = only or list(targets)
    FOUND.mkdir(parents=True, exist_ok=True)
    at_once = os.cpu_count() or 1
    share = max(1, seconds * min(at_once, len(names)) // len(names))
    say(f"{len(names)} targets, {share} s each, {at_once} at once")
    with ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda name: fuzz_target(name, targets[name], share), names))
    say(f"{sum(result.inputs for result in results):,} inputs in all")
    if not all(result.is_clean for result in results):
        fail("fuzzing found something")
