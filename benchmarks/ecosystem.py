"""Each plug-in beside what it stands in for: what is asked of it, and what was measured.

    python3 dev.py bench ecosystem [PART ...] [--json FILE]

A part is a module benchmarks/ecosystem_PART.py with a function measure() that yields a Goal as soon as it is
measured. What is compared runs in turns in one process.
"""

import argparse
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # -P leaves it out

import report
from goals import Goal

PARTS = sorted(p.stem.removeprefix("ecosystem_") for p in Path(__file__).parent.glob("ecosystem_*.py"))


def goals(part: str) -> Iterator[Goal]:
    module = importlib.import_module(f"ecosystem_{part}")
    yield from module.measure()


def main() -> None:
    parser = argparse.ArgumentParser(prog="dev.py bench ecosystem", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--json", type=Path, help="the figures, with machine and settings")
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"no part {unknown[0]!r}: {', '.join(PARTS)}")
    figures: dict[str, list[dict[str, object]]] = {}
    for part in options.parts or PARTS:
        print(f"{part}", flush=True)
        for goal in goals(part):
            print(f"  {goal}", flush=True)
            figures.setdefault(part, []).append(goal.figures())
    report.write(options.json, vars(options), figures)


if __name__ == "__main__":
    main()
