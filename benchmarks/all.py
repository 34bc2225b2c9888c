"""Every benchmark, and what they found as JSON, plots and one page of tables.

    python3 dev.py bench all [--out docs/evidence/benchmarks] [--gib 4] [--quick]

Takes ten minutes on two cores and 5 GB of disk for a while; --quick is a trial of some minutes, whose
figures mean nothing. Nothing else should run beside it.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gather
import long
import plots
import read
import size
import windows
import write
from arrays import ROOT
from report import machine, table

KERNELS = ROOT / "build/bench/kernels"
QUICK = {
    "read": ("--reads", "50", "--rounds", "1"),
    "write": ("--mb", "4", "--rounds", "1"),
    "windows": ("--reads", "50", "--rounds", "1"),
    "gather": ("--reads", "128", "--rounds", "1"),
    "size": ("--rows", "2000"),
    "long": ("--reads", "500"),
    "kernels": ("--benchmark_min_time=0.01",),
}
FULL = {"read": ("--reads", "1000", "--rounds", "5"), "kernels": ("--benchmark_min_time=0.2",)}


def run_all(out: Path, gib: float, quick: bool) -> None:
    more = QUICK if quick else FULL
    for name, arguments in {
        "read": ["--peers"],
        "windows": [],
        "write": [],
        "gather": [],
        "size": [],
        "long": [str(gib)],
    }.items():
        script = Path(__file__).with_name(f"{name}.py")
        print(f"\n== {name}", flush=True)
        command = [sys.executable, script, *arguments, *more.get(name, ()), "--json", out / f"{name}.json"]
        subprocess.run(command, check=True)
    print("\n== kernels", flush=True)
    told = ("--benchmark_out_format=json", f"--benchmark_out={out / 'kernels.json'}")
    subprocess.run([KERNELS, *more["kernels"], *told], check=True)
    kernels = json.loads((out / "kernels.json").read_text())
    speeds: dict[str, dict[str, float]] = {}
    for found in kernels["benchmarks"]:
        name, _, target = found["name"].rpartition("/")
        speeds.setdefault(name, {})[target] = found["bytes_per_second"] / 1e9
    (out / "kernels.json").write_text(json.dumps({"machine": machine(), "figures": speeds}, indent=1) + "\n")


def kernel_table(figures: dict[str, dict[str, float]]) -> str:
    targets = list(dict.fromkeys(target for speeds in figures.values() for target in speeds))
    rows = [[name, *(speeds.get(target, "") for target in targets)] for name, speeds in figures.items()]
    return "GB of values a second, one core, within its caches:\n\n" + table(("kernel", *targets), rows)


SECTIONS = (
    ("read", "Reading, beside other stores", read.summary),
    ("windows", "Windows of 16, 64 and 256 rows, beside copyto alone", windows.summary),
    ("gather", "Many windows, single rows, checks", gather.summary),
    ("long", "Far beyond the caches", long.summary),
    ("size", "Stored bytes", size.summary),
    ("write", "Appending", write.summary),
    ("kernels", "Kernels by SIMD target", kernel_table),
)


def page(out: Path) -> str:
    """The tables of all files, in Markdown."""
    found: dict[str, Any] = {name: json.loads((out / f"{name}.json").read_text()) for name, _, _ in SECTIONS}
    about = found["read"]["machine"]
    text = [
        "# Benchmark results",
        "",
        "Written by `python3 dev.py bench all`; [benchmarks.md](../benchmarks.md) says what they mean.",
        "",
        f"{about['cpu']}, {about['cores']} cores, {about['system']}, Python {about['python']}, "
        f"NumPy {about['numpy']}, cdd {about['cdd']}.",
    ]
    for name, title, summary in SECTIONS:
        text += ["", f"## {title}", ""]
        text += [f"![{path.stem}]({path.name})\n" for path in sorted(out.glob(f"{name}*.png"))]
        text += [summary(found[name]["figures"]).rstrip()]
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="dev.py bench all", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=ROOT / "docs/evidence/benchmarks", help="folder for what was found"
    )
    parser.add_argument("--gib", type=float, default=4.0, help="of the generated book")
    parser.add_argument("--quick", action="store_true", help="only to see that everything works")
    parser.add_argument("--tables", action="store_true", help="plots and tables of the JSON that is there")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.tables:
        run_all(options.out.resolve(), options.gib, options.quick)
    plots.draw_all(options.out)
    (options.out / "README.md").write_text(page(options.out))
    print(f"\n{options.out / 'README.md'}")


if __name__ == "__main__":
    main()
