# SPDX-License-Identifier: Apache-2.0
"""What the tests of exports share: pinned readers of the formats, runs of a fleet, a toy recording."""
import math
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "build" / "pytools"), str(ROOT / "tests" / "e2e")]

import loggen  # noqa: E402
from toylab import Lab  # noqa: E402


@pytest.fixture(scope="session")
def lab(build, tmp_path_factory) -> Lab:
    """The CPU driver is enough."""
    return Lab(pathlib.Path(build), "cpu", tmp_path_factory.mktemp("export"))


@pytest.fixture(scope="session")
def toy(lab):
    """A recording with every record type that the toy can cause."""
    return lab.record("graph-on", "--bug", "stale-index-tail", options=("--watch-slot", "0", "--keep-keys", "--level", "launches"))


@pytest.fixture(scope="session")
def fleet(build, tmp_path_factory):
    """off and on: two runs of 1,000 processes, the second with what biglog calls flawed; with their exports."""
    folder = tmp_path_factory.mktemp("fleet")
    for run, arm, *flawed in (("off", "graph-off"), ("on", "graph-on", "flawed")):
        subprocess.run([build / "tests/export/biglog", run, arm, "1000", "48", "8", "4", *flawed], cwd=folder, check=True, timeout=60)
        for name in ("csv", "jsonl"):
            done = subprocess.run([build / "slotprobe", "export", run, "--format", name, "-o", f"{run}.{name}"], cwd=folder,
                                  capture_output=True, text=True, timeout=60)
            assert (done.returncode, done.stderr) == (0, ""), done
    return folder


@pytest.fixture(scope="session")
def export(lab):
    """The bytes of one format; the run may be read with loss."""
    def run(path, name, loss=False):
        out = lab.folder / f"{path.name}.{name}"
        done = lab.slotprobe("export", path, "--format", name, "-o", out)
        assert done.returncode == 0 and bool(done.stderr) == loss, done
        return out.read_bytes()
    return run


@pytest.fixture(scope="session")
def odd(lab):
    """Every record type, names that want to be something else, and the largest values."""
    p = loggen.Process(host="ho\"st,'x'")
    pool = p.pool(name='po"ol,\nname', planes=[("t\"\\", -1, 1, 8), ("u", 1, 1, 8)])
    p.put(loggen.STEP, p.tick(), 1, loggen.U64, 3, 4, 2, 0, "de\"code")
    p.steps += 1
    p.counted("core.step")
    p.put(loggen.CONTROL, p.tick(), 3, 0, "label, with \"quotes\"")
    p.put(loggen.UNROUTED, p.tick(), 12000, 0, loggen.U64, "cuGraphLaunch")
    p.put(loggen.REGION, p.tick(), 1, 7, 0x7e00, 64, "region")
    p.put(loggen.GRAPH, p.tick(), 1, 0xabc, 3, 2, 1, 0, 0, 1)
    p.put(loggen.GRAPH_TOUCH, 1, 0, 0, 0, pool.index, 1, 0, 0x7f0000000000, 0, 0, 0, "kernel<int>")
    p.put(loggen.LAUNCH, p.tick(), 1, 1, 0x51, 0, 77, 0)
    p.put(loggen.POOL_REMOVE, p.tick(), 99, 0)
    for n, key in enumerate((0, 1, loggen.U64)):
        p.event(loggen.ALLOC, pool, n)
        pool.write(n, "nan of " + str(n) if n == 1 else f"state {n}")
        pool.fix = (lambda prints: [[math.inf, *prints[0][1:]], *prints[1:]]) if n == 2 else (lambda prints: prints)
        p.donate(pool, n, 8 * n, key=key, device_slot=n == 1)
        p.restore(pool, n, 8 * n, key=key)
        if n:
            p.event(loggen.FREE, pool, n)
    p.donate(pool, 5, 8, lose_print=True)
    p.donate(pool, 6, 8, outcome="DROPPED_RING")
    return loggen.Run("graph \"on\", it is", p).write(lab.folder / "od\"d, run")
