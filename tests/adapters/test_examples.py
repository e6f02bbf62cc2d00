# SPDX-License-Identifier: Apache-2.0
"""The adapters of docs/write-a-probe.md, as they stand there, on servers that know nothing of slotprobe."""
import json
import os
import re
import subprocess
import sys

import pytest


def c_server(recorder, *args):
    """The C server with the C adapter."""
    return recorder.record(recorder.programs / "kvserver", *args, probes=[recorder.programs / "kvprobe"])


def python_server(recorder, *args):
    """The Python server with the Python adapter."""
    here = recorder.build.parent / "tests" / "adapters"
    return recorder.record(sys.executable, "-B", here / "pyserver" / "pyserver.py", *args, probes=[here / "pyprobe"])


SERVERS = [(c_server, "kvprobe.save", "kvprobe.load", "saves", "loads"),
           (python_server, "pyprobe.donate", "pyprobe.restore", "puts", "gets")]


@pytest.mark.parametrize("server, put, get, puts, gets", SERVERS)
class TestExamples:
    """Both examples show the same things."""

    def test_counts_are_the_server_s_own(self, recorder, server, put, get, puts, gets):
        """Every hand-over is seen, measured, and nothing else."""
        run, output = server(recorder)
        said, probes = json.loads(output), recorder.probes(run)
        assert said[puts] > 0 and said[gets] > 0
        for point, core, n in ((put, "core.donate", said[puts]), (get, "core.restore", said[gets])):
            assert probes[point]["committed"] == probes[point]["attempted"] == n
            assert probes[core]["committed"] == probes[core]["attempted"] == n
        events = recorder.events(run)
        assert len({e["hash"] for e in events if e["kind"] == "donate"}) == len({e["key"] for e in events}) == said[puts]

    def test_invariants_hold(self, recorder, server, put, get, puts, gets):
        """What is restored is what was donated."""
        run, _ = server(recorder)
        status, found = recorder.ask("check", run, "--expect", f"{put}>=1", "--expect", f"{get}>=1")
        assert status == 0, found["reasons"]

    def test_equal_runs_are_equal(self, recorder, server, put, get, puts, gets):
        """Two runs of one arm."""
        status, found = recorder.ask("diff", server(recorder)[0], server(recorder)[0])
        assert status == 0, found["reasons"]

    def test_a_spoilt_state_is_found(self, recorder, server, put, get, puts, gets):
        """The session, and no other."""
        status, found = recorder.ask("diff", server(recorder)[0], server(recorder, "1,2")[0])
        assert status == 1
        assert [s["slot"] for s in found["slots"] if s["verdict"] == "differs"] == [1]
        assert found["first_divergence"]["slot"] == 1

    def test_silence_is_not_proof(self, recorder, server, put, get, puts, gets):
        """A point that exists and is never reached."""
        here = recorder.build.parent / "tests" / "adapters"
        probe = here / "pyprobe" if server is python_server else recorder.programs / "kvprobe"
        run, _ = recorder.record("true", probes=[probe])
        status, found = recorder.ask("check", run)
        assert status == 3 and found["reasons"]


def test_without_the_preload_the_adapters_do_nothing(recorder):
    """They may stay where they are."""
    here = recorder.build.parent / "tests" / "adapters"
    bare = subprocess.run([recorder.programs / "kvserver"], capture_output=True, text=True, check=True, timeout=60)
    loaded = subprocess.run([recorder.programs / "kvserver"], capture_output=True, text=True, check=True, timeout=60,
                            env={**os.environ, "LD_PRELOAD": str(recorder.programs / "kvprobe.so")})
    assert loaded.stdout == bare.stdout and not loaded.stderr
    alone = subprocess.run([sys.executable, "-B", here / "pyserver" / "pyserver.py"], capture_output=True, text=True, check=True,
                           timeout=60, env={**os.environ, "PYTHONPATH": str(here / "pyprobe")})
    assert json.loads(alone.stdout)["puts"] > 0 and not alone.stderr


def test_the_page_shows_the_files(root):
    """docs/write-a-probe.md quotes the files whole, and the quoted code is what runs."""
    page = (root / "docs" / "write-a-probe.md").read_text()
    quoted = dict(re.findall(r"`(tests/adapters/[\w/.]+)`:\n\n```\w+\n(.*?)```", page, re.S))
    assert set(quoted) == {"tests/adapters/kvprobe.c", "tests/adapters/kvprobe.points", "tests/adapters/pyprobe/sitecustomize.py",
                           "tests/adapters/pyprobe.points"}
    for name, text in quoted.items():
        assert (root / name).read_text() == text, f"{name} is not what the page shows"


def test_floating_pools(recorder):
    """Pools without fixed places take a state with each claim, and refuse what they cannot measure; structures from before they grew
    still work."""
    run, output = recorder.record(recorder.programs / "floating")
    said = {line.split()[0]: int(line.split()[1]) for line in output.splitlines()}
    assert said == {"unknown_flag": -22, "floating_on_a_device": -22, "floating": 0, "placed": 1, "donate": 1, "restore": 0,
                    "without_state": -22, "slot_out_of_range": -22, "copy": -22, "alloc": 0, "free_without_state": 0,
                    "old_claim_of_floating": -22, "state_of_placed": -22, "old_claim_of_placed": 1, "short_claim": -22}
    donate, restore = [e for e in recorder.events(run) if e["slot"] == 1 and e["hash"] and e["kind"] in ("donate", "restore")]
    assert donate["hash"] == restore["hash"]  # the bytes before the plane's offset do not count
    placed = next(e for e in recorder.events(run) if e["pool"] == 1 and e["hash"])
    prints = next(r for r in recorder.exported(run, "fingerprint") if r["event"] == placed["id"])
    assert prints["planes"][0]["absmax"] == 3
