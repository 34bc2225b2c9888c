"""Text larger than memory: CDD_CSV_GB of it (10 in the soak), made while it is read, in its own process."""

import json
import os
import subprocess
import sys

import pytest

GIGABYTES = float(os.environ.get("CDD_CSV_GB", "0.04"))
MOST_MEMORY = 300e6

CHILD = """
import io, json, re, sys
import cdd, cdd.csv

HEADER = b"id,price,qty,time,side,symbol\\n"
ROWS = b"".join(
    b"%d,%.1f,%.3f,%d,%s,BTCUSDT\\n" % (i, 61800 + i % 91 / 10, i % 997 / 1000, 1723161256322 + 37 * i,
                                       b"buy" if i % 3 else b"sell")
    for i in range(100_000)
)


class Repeated(io.RawIOBase):
    def __init__(self, times):
        self.size, self.at = len(HEADER) + times * len(ROWS), 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, at, whence=0):
        self.at = at
        return at

    def readinto(self, out):
        if self.at < len(HEADER):
            piece = HEADER[self.at : self.at + len(out)]
        else:
            begin = (self.at - len(HEADER)) % len(ROWS)
            piece = ROWS[begin : begin + min(len(out), self.size - self.at)]
        out[: len(piece)] = piece
        self.at += len(piece)
        return len(piece)


times = max(int(float(sys.argv[1]) * 1e9 / len(ROWS)), 1)
source = Repeated(times)
report = cdd.csv.store(source, sys.argv[2])
with cdd.dataset.open(sys.argv[2]) as ds:
    ids = ds["id"]
    ends = [int(ids[0]), int(ids[len(ids) - 1])]
print(json.dumps({"rows": report.rows, "times": times, "bytes": source.size, "ends": ends,
                  "memory": int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory as Linux tells it")
def test_memory_of_store(tmp_path, record_property) -> None:
    command = [sys.executable, "-P", "-c", CHILD, str(GIGABYTES), str(tmp_path / "trades")]
    done = subprocess.run(command, capture_output=True, check=False, env=os.environ | {"CDD_THREADS": "2"})
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["rows"] == 100_000 * found["times"]
    assert found["ends"] == [0, 99_999]
    assert found["memory"] <= MOST_MEMORY
    record_property("csv megabytes stored", found["bytes"] / 1e6)
    record_property("csv megabytes of memory", found["memory"] / 1e6)
