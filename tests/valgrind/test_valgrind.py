# SPDX-License-Identifier: Apache-2.0
"""The collector's verbs under valgrind's memcheck: no error, no block definitely or possibly lost, on whole and on damaged runs."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "fuzz"), str(HERE.parent / "e2e")]
import seeds  # noqa: E402
from loggen import Run  # noqa: E402

VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite,possible",
            "--errors-for-leak-kinds=definite,possible"]
VERBS = {"status": ["status"], "status-json": ["status", "--json"], "verify": ["verify"], "verify-json": ["verify", "--json"],
         "check": ["check"], "check-json": ["check", "--json"], "report": ["report"], "report-json": ["report", "--json"],
         "diff": ["diff"], "diff-json": ["diff", "--json"], "diff-key": ["diff", "--align", "key"], "diff-order": ["diff", "--align", "order"],
         "jsonl": ["export", "--format", "jsonl"], "csv": ["export", "--format", "csv"],
         "perfetto": ["export", "--format", "perfetto"], "report-html": ["report", "--format", "html"],
         "check-html": ["check", "--format", "html"], "diff-html": ["diff", "--format", "html"]}


def damaged(data: bytes) -> bytes:
    """A flipped byte in the middle and a torn end."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x40]) + data[middle + 1:-7]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Pairs of runs by name: equal, every type of record against a run that differs, damaged, no run."""
    folder = tmp_path_factory.mktemp("valgrind")
    made = {"whole": seeds.serve(), "every": seeds.every_record(), "nan": seeds.serve("nan"), "damaged": seeds.serve(), "torn": seeds.serve()}
    paths = {name: Run("graph-on" if name != "nan" else "graph-off", p).write(folder / name) for name, p in made.items()}
    for file in paths["damaged"].glob("*.log"):
        file.write_bytes(damaged(file.read_bytes()))
    for file in paths["torn"].glob("*.ctr"):
        file.write_bytes(file.read_bytes()[:20000])
    paths["no run"] = folder / "none"
    paths["no run"].mkdir()
    (paths["no run"] / "run.json").write_text('{"schema_version": 1, "argv": {}}')
    return paths


@pytest.mark.parametrize("pair", [("whole", "nan"), ("every", "whole"), ("damaged", "whole"), ("torn", "whole"), ("no run", "whole")],
                         ids=lambda p: p[0])
@pytest.mark.parametrize("verb", VERBS)
def test_verb(build, runs, verb, pair):
    operands = [runs[pair[0]], runs[pair[1]]] if verb.startswith("diff") else [runs[pair[0]]]
    plain = subprocess.run([build / "slotprobe", *VERBS[verb], *operands], capture_output=True, timeout=60)
    done = subprocess.run([*VALGRIND, build / "slotprobe", *VERBS[verb], *operands], capture_output=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr), done.stderr.decode()[-4000:]


def test_valgrind_would_tell(tmp_path):
    """The red twin: a block that is lost is an error here."""
    source = b"#include <stdlib.h>\nint main(void) { volatile char *p = malloc(9); p = NULL; return p != NULL; }\n"
    subprocess.run(["gcc", "-O0", "-x", "c", "-", "-o", tmp_path / "leaks"], input=source, check=True)
    done = subprocess.run([*VALGRIND, tmp_path / "leaks"], capture_output=True, timeout=60, env=dict(os.environ))
    assert done.returncode == 99 and b"definitely lost" in done.stderr
