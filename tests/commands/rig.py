"""Commands, run here or as a shell runs them."""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cdd.commands import main

HERE = [sys.executable, "-P", "-m", "cdd"]


class Done(NamedTuple):
    returncode: int
    stdout: bytes
    stderr: bytes


def run(*arguments: object, stdin: bytes = b"") -> Done:
    """Within this process, which takes a tenth of the time."""
    kept = sys.stdin, sys.stdout, sys.stderr
    outputs = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        try:
            with io.TextIOWrapper(given) as sys.stdin:
                sys.stdout, sys.stderr = outputs
                status = main(list(map(str, arguments)))
        except SystemExit as ended:  # by argparse
            status = int(ended.code or 0)
        finally:
            sys.stdin, sys.stdout, sys.stderr = kept
    texts = []
    for output in outputs:
        output.flush()
        texts.append(output.buffer.getvalue())  # type: ignore[attr-defined]
    return Done(status, *texts)


def start(*arguments: object, **how: Any) -> "subprocess.Popen[bytes]":
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*HERE, *map(str, arguments)], **{**pipes, **how}, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )


def well(*arguments: object, stdin: bytes = b"") -> bytes:
    """The output of a command that succeeds and has nothing to complain about."""
    done = run(*arguments, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout


def fails(status: int, *arguments: object, stdin: bytes = b"") -> str:
    """What a command says on standard error, in one line, when it ends with this status."""
    done = run(*arguments, stdin=stdin)
    assert done.returncode == status, done
    text = done.stderr.decode()
    assert "Traceback" not in text
    return text


def books(rows: int = 500, seed: int = 1) -> np.ndarray:
    """Rows like those of books: decimals that repeat, zeros, negative ones, and the edges of float32."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(-2, 3, (rows, 50, 3)) * (rng.random((rows, 50, 3)) < 0.2)
    made = ((30_000 + np.cumsum(steps, axis=0)) / 100).astype(np.float32)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4028235e38, 7.038531e-26, -7.038531e-26, 1e10, 0.1]
    made[rows // 2, : len(edges), 1] = edges
    return made


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
