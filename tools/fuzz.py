"""Fuzzing for dev.py: every target for its share of the time, and what came out."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from tools.shell import BUILD, ROOT, fail, output, say

PROGRAM = BUILD / "fuzz" / "cdd_fuzz"
FOUND = BUILD / "fuzz" / "findings"  # inputs that broke a promise
GROWN = BUILD / "fuzz" / "corpus"  # inputs that reached something new; kept from run to run
# Bytes of an input, MB of one allocation and of all, seconds of one input: beyond them is a finding. The
# largest block of an index alone has 32 MB.
LIMITS = ["-max_len=6000", "-malloc_limit_mb=160", "-rss_limit_mb=2048", "-timeout=20"]


def fuzz_target(name: str, corpus: str, seconds: int) -> tuple[int, bool]:
    """Runs one target; says how many inputs it tried, and returns that and whether nothing was found."""
    grown = GROWN / corpus
    grown.mkdir(parents=True, exist_ok=True)
    command = [
        *(str(PROGRAM), f"--target={name}", f"-max_total_time={seconds}", *LIMITS),
        *("-print_final_stats=1", f"-artifact_prefix={FOUND / name}-"),
        *(str(grown), str(ROOT / "tests/fuzz/corpus" / corpus)),
    ]
    done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, errors="replace")
    (FOUND / f"{name}.log").write_text(done.stderr)
    counted = re.search(r"number_of_executed_units:\s*(\d+)", done.stderr)
    inputs = int(counted[1]) if counted else 0
    clean = done.returncode == 0 and inputs > 0
    say(f"{name:<16} {inputs:>10,} inputs   {'nothing found' if clean else 'FOUND: ' + str(FOUND / name)}")
    if not clean:
        print(*done.stderr.splitlines()[-40:], sep="\n")
    return inputs, clean


def fuzz(seconds: int) -> None:
    """All targets in `seconds` together, as many at once as there are cores."""
    targets = [line.split() for line in output(str(PROGRAM)).splitlines()]
    if not targets:
        fail(f"{PROGRAM} names no targets")
    FOUND.mkdir(parents=True, exist_ok=True)
    at_once = os.cpu_count() or 1
    share = max(1, seconds * at_once // len(targets))
    say(f"{len(targets)} targets, {share} s each, {at_once} at once")
    with ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda target: fuzz_target(*target, share), targets))
    say(f"{sum(inputs for inputs, _ in results):,} inputs in all")
    if not all(clean for _, clean in results):
        fail("fuzzing found something")
