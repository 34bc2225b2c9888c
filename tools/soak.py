"""The reliability tests with large counts: dev.py soak. Each step is a test of every change; what it reached
is printed, and kept in build/soak.txt."""

import os
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from tools.shell import BUILD, ROOT, fail, output, say

CORE = BUILD / "dev"
RESULTS = BUILD / "soak.txt"
STATES = 2_000_000

# name: (gtest filter or Python test, environment)
STEPS: dict[str, tuple[str, dict[str, int]]] = {
    "faults": ("*Fault*:File*:Rewrite*", {"CDD_FAULT_LIVES": 8}),
    "kills and flipped bits": ("*Proof*", {"CDD_PROOF_FLIPS": 2000}),
    "every flipped bit, every length": ("*Damage.*Flipped*:*Damage.*Length*", {"CDD_DAMAGE_STRIDE": 1}),
    "random damage": ("*Damage.*Random*:*Damage.WithoutChecks*", {"CDD_DAMAGE_ROUNDS": 334_000}),
    "appends to damaged files": ("*Damage.Append*", {"CDD_DAMAGE_STRIDE": 1}),
    "kill -9": ("tests/store/test_crash.py", {"CDD_KILLS": 3000}),
    "one writer, many readers": (
        "tests/store/test_swmr.py",
        {"CDD_SWMR_READS": 10_000_000, "CDD_LOCK_RACES": 300},
    ),
    "epochs of workers": ("tests/store/test_fork_epochs.py", {"CDD_FORK_EPOCHS": 1000}),
    "signals": ("tests/store/test_signals.py", {"CDD_SIGNAL_CALLS": 100_000}),
    "logical arrays": (
        "tests/logical/test_crash.py",
        {"CDD_LOGICAL_KILLS": 200, "CDD_LOGICAL_APPENDS": 1000},
    ),
    "logical arrays, random transactions": ("tests/logical/test_model.py", {"CDD_LOGICAL_MODELS": 5000}),
    "datasets, killed": (
        "tests/dataset/test_processes.py",
        {"CDD_DATASET_KILLS": 3000, "CDD_DATASET_TURNS": 200},
    ),
    "datasets, every call": (
        "tests/dataset/test_faults.py",
        {"CDD_DATASET_CALLS": 1, "CDD_DATASET_STOPS": 1_000_000},
    ),
    "datasets, the model": ("tests/dataset/test_model.py", {"CDD_MODEL_STATES": 160_000}),
    "datasets, every damaged byte": ("tests/dataset/test_golden.py", {"CDD_DAMAGE_STRIDE": 1}),
    "datasets, lives": ("tests/dataset/test_lives.py", {"CDD_LIVES": 100, "CDD_LIFE_STEPS": 300}),
    "as-of joins": ("tests/dataset/test_by_time.py", {"CDD_ASOF_CASES": 40_000}),
    "tiles, killed": ("tests/tiles/test_resume.py", {"CDD_TILE_KILLS": 1000}),
    "tiles, memory": ("tests/tiles/test_memory.py", {"CDD_TILE_SECONDS": 3600}),
    "feeds, killed": ("tests/ecosystem/test_feeds_faults.py", {"CDD_FEEDS_KILLS": 300}),
    "csv, every text of up to 8 characters": ("tests/packed/test_csv_rows.py", {"CDD_CSV_LONGEST": 8}),
    "csv larger than memory": ("tests/packed/test_csv_large.py", {"CDD_CSV_GB": 10}),
    "reads beside a writer, on each loop": (
        "tests/async/test_beside_writer.py",
        {"CDD_ASYNC_READS": 100_000},
    ),
    "cancelled reads": ("tests/async/test_cancelling.py", {"CDD_ASYNC_CANCELS": 10_000}),
    "migrations, killed": ("tests/ecosystem/test_migrate_kills.py", {"CDD_MIGRATE_KILLS": 200}),
    "migrations of many files": (
        "tests/ecosystem/test_migrate_faults.py",
        {"CDD_MIGRATE_FILES": 10_000},
    ),
    "writers on object stores, killed": (
        "tests/ecosystem/test_remote_s3.py",
        {"CDD_REMOTE_KILLS": 200},
    ),
    "full disks of plug-ins": ("tests/ecosystem/test_full_disks.py", {"CDD_FULL_DISK_POINTS": 20}),
    "full disk": ("tests/store/test_full_disk.py", {"CDD_FULL_DISK_POINTS": 20}),
}


def _reached(results: Path) -> dict[str, float]:
    """What the tests of a run recorded: sums of numbers."""
    sums: Counter[str] = Counter()
    tests = failed = 0
    for case in ElementTree.parse(results).iter("testcase"):
        tests += case.find("skipped") is None
        failed += case.find("failure") is not None or case.find("error") is not None
        for entry in case.iter("property"):
            sums[entry.get("name", "")] += float(entry.get("value", "0"))  # type: ignore[assignment]
    return {"tests": tests, "failed": failed, **sums}


def _note(text: str) -> None:
    say(text)
    with RESULTS.open("a") as file:
        print(text, file=file)


def _run(name: str, python: Path) -> None:
    what, environment = STEPS[name]
    results = BUILD / f"soak-{name.replace(' ', '-')}.xml"
    results.unlink(missing_ok=True)
    if what.endswith(".py"):
        command = [str(python), "-P", "-m", "pytest", "-q", f"--junitxml={results}"]
        command += ["-o", "junit_family=xunit1", what]  # the one that has properties
    else:
        command = [str(CORE / "cdd_tests"), "--gtest_brief=1", f"--gtest_output=xml:{results}"]
        command.append(f"--gtest_filter={what}")
    start = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {k: str(v) for k, v in environment.items()})
    if not results.exists():
        fail(f"{name}: no results, exit code {done.returncode}")
    counts = ", ".join(f"{key} {value:,.10g}" for key, value in _reached(results).items())
    _note(f"{name}: {counts} ({time.monotonic() - start:.0f} s)")
    if done.returncode:
        fail(f"{name}: exit code {done.returncode}")


def soak(minutes: float, python: Path) -> None:
    """All steps, then the crash simulation: as often as there is time for, with other seeds each time."""
    start = time.monotonic()
    RESULTS.unlink(missing_ok=True)
    _note(f"revision {output('git', 'rev-parse', 'HEAD').strip()}")
    for name in STEPS:
        _run(name, python)
    seed = 1
    while seed == 1 or time.monotonic() - start < 60 * minutes:
        command = [str(CORE / "crash_sim"), str(STATES), str(seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        _note(f"crash simulation, seeds from {seed}: {done.stdout.splitlines()[-1]}")
        if done.returncode:
            fail("the crash simulation found a violation")
        seed += 1_000_000
