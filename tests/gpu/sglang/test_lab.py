# SPDX-License-Identifier: Apache-2.0
"""What the script for a live SGLang server reads out of a run, held against what another server, which runs here, wrote down itself."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import types
import urllib.parse

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import load  # noqa: E402
from lab import Lab, as_told, donated_slots, holding_decoded  # noqa: E402


@pytest.mark.parametrize("ids", ["host", "device"])
def test_donated_slots(build, tmp_path, ids):
    """The slots that were donated, and which of them again, wherever their ids were."""
    run, journal = tmp_path / "run", tmp_path / "journal"
    done = subprocess.run([build / "slotprobe", "record", "-o", run, "--", build / "toyserver/toyserver", "--slot-ids", ids, "--journal", journal],
                          env=os.environ | {"LD_LIBRARY_PATH": str(build / "cpudriver")}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in journal.read_text().splitlines()]
    slots = collections.Counter(s["slot"] for s in said if s.get("event") == "donate")
    assert max(slots.values()) > 1 and len(slots) > 1
    assert donated_slots(Lab(build, tmp_path).exported(run, "event", "fingerprint")) == slots


def counters(donated=0, filtered=0, in_flight=0, launched=0):
    """Of a scheduler."""
    return {"core.donate": {"committed": donated, "filtered": filtered, "in_flight": in_flight, "attempted": donated + filtered + in_flight},
            "core.graph_launch": {"committed": launched, "filtered": 0, "attempted": launched}}


def test_a_turn_goes_as_told():
    """What is called recorded was, and what is called stopped was not."""
    none, some, stopped = counters(5, 5, 2, 5), counters(21, 5, 0, 500), counters(7, 21, 0, 5)
    assert as_told(True, none, some) and as_told(False, none, stopped)
    assert not as_told(True, none, none) and not as_told(False, none, none), "nothing happened"
    assert not as_told(True, none, stopped) and not as_told(False, none, some), "the other way round"
    assert not as_told(True, none, counters(21, 5, 0, 5)), "without graphs"
    assert not as_told(False, none, counters(8, 21, 0, 5)), "more than was in flight"


def test_steering_a_toy_server_moves_its_counters_so(build, tmp_path):
    """The real counters; and a run that nobody can be told of."""
    lab, run = Lab(build, tmp_path), tmp_path / "run"
    with subprocess.Popen([build / "slotprobe", "record", "-o", run, "--arm", "graph-on", "--", build / "toyserver/toyserver", "--requests", "1000000"],
                          env=os.environ | {"LD_LIBRARY_PATH": str(build / "cpudriver")}, cwd=tmp_path, stdout=subprocess.DEVNULL) as server:
        try:
            def probes():
                return {p["name"]: p for process in lab.ask("status", run)[1]["processes"] for p in process["probes"]}

            def until(recording, end=time.monotonic() + 30):
                before = probes()
                while not as_told(recording, before, probes()) and time.monotonic() < end:
                    assert not as_told(not recording, before, probes())
                    time.sleep(0.05)
                return time.monotonic() < end
            while not list(run.glob("*.ctr")) and server.poll() is None:
                time.sleep(0.02)
            assert until(True)
            for what, recording in (("stop", False), ("start", True)):
                lab.tell(run, what)
                assert until(recording), what
        finally:
            server.terminate()
    with pytest.raises(AssertionError):
        lab.tell(tmp_path / "nowhere", "start")


ANSWERS = [[c] * 40 + list(range(c, c + 40)) for c in range(4)]


@pytest.mark.parametrize("on, off, holds", [(ANSWERS, ANSWERS, True), (ANSWERS, ANSWERS[::-1], False), ([], [], False), ([[]] * 4, [[]] * 4, False),
                                            ([[7] * 80] * 4, [[7] * 80] * 4, False)], ids=["same", "other", "none", "empty", "one token"])
def test_same_tokens(script, tmp_path, on, off, holds):
    """Of answers that say something."""
    checks = script("gpu/sglang/run.py").Checks(Lab(tmp_path, tmp_path), 0, ())
    checks.driven = {"on": {"answers": on}, "off": {"answers": off}}
    if holds:
        assert checks.same_tokens() == {"requests": 4, "tokens": 320, "distinct": 43}
    else:
        with pytest.raises(AssertionError):
            checks.same_tokens()


@pytest.mark.parametrize("rates, deaf, why", [
    ({}, False, None), ({"bare": 1021.0}, False, None), ({}, True, "recorded: it did otherwise"),
    ({"bare": 980.0, "bare-too": 980.0, "recorded": 990.0}, False, "too large a loss"), ({"bare": 1021.0, "bare-too": 1015.0}, False, "slower than both"),
    ({"dearest": 1e3}, False, "too large a loss")], ids=["alike", "two bare servers apart", "deaf", "dear", "attached", "dear calls"])
def test_throughput_is_that_of_a_server_that_records(script, tmp_path, monkeypatch, rates, deaf, why):
    """Rates of servers that are played. One that does not start again after it was stopped is the quickest."""
    run = script("gpu/sglang/run.py")
    monkeypatch.setitem(run.CALL_US, "core.graph_launch", rates.get("dearest", 0.2))

    class Played:
        def __init__(self, name):
            self.name, self.run, self.now = name, "run" if name == "recorded" else None, counters()

        def ready(self):
            return self

        def place(self, _cpus):
            pass

        def stop(self):
            pass

    class PlayedLab:
        recording = True

        def start(self, name, **_options):
            self.server = Played(name)
            return self.server

        def tell(self, _run, what):
            self.recording = what == "start" and not deaf

        def probes(self, _run):
            return self.server.now | {"sglang.donate": {"committed": 9, "attempted": 9}}
    lab = PlayedLab()

    def rate(server, n, _seed):
        if server.run:
            done = server.now["core.donate"]["committed"], server.now["core.donate"]["filtered"], server.now["core.graph_launch"]["committed"]
            server.now = counters(done[0] + 16 * lab.recording, done[1] + 16 * (not lab.recording), 0, done[2] + n * lab.recording)
            return rates.get("recorded", 1000.0) if lab.recording else 1000.0
        return rates.get(server.name, 1000.0)
    monkeypatch.setattr(run.load, "rate", rate)
    checks = run.Checks(lab, 20, run.NEEDS["throughput"])
    lab.server = checks.live["recorded"]
    checks.live = {name: Played(name) if name != "recorded" else lab.server for name in checks.live}
    if not why:
        found = checks.throughput()
        assert found["recorded_against_stopped"]["upper_95"] == found["recorded_against_slower_bare"]["upper_95"] == 0 < found["stopped_at_most"]
    else:
        with pytest.raises(AssertionError, match=why):
            checks.throughput()


def test_clients_of_one_that_failed_do_not_wait(script):
    """For the next turn."""
    class Played:
        def post(self, _path):
            pass

        def generate(self, tokens, n):
            if n == 64 + 10 + 7 and len(tokens) > 200:
                raise OSError("it is gone")
            return [7] * n, 0
    with pytest.raises((OSError, threading.BrokenBarrierError)):
        load.at_once(Played())


def test_donations_that_hold_what_decode_wrote():
    """And not those of a long prompt, of another time, or of more tokens than there are."""
    asked = [{"from": 10, "to": 20, "prompt": 200, "new": 84}, {"from": 21, "to": 30, "prompt": 320, "new": 84}]
    assert holding_decoded([{"t_ns": 15, "claimed_len": 256}, {"t_ns": 25, "claimed_len": 384}], asked) == 2
    assert holding_decoded([{"t_ns": 15, "claimed_len": 192}, {"t_ns": 25, "claimed_len": 320}, {"t_ns": 25, "claimed_len": 256},
                            {"t_ns": 31, "claimed_len": 384}, {"t_ns": 15, "claimed_len": 320}], asked) == 0
    assert holding_decoded([], asked) == holding_decoded([{"t_ns": 15, "claimed_len": 256}], []) == 0


@pytest.mark.parametrize("drive, requests", [(load.one_at_a_time, 32), (load.at_once, 21)])
def test_a_log_has_the_clock_of_the_requests(build, tmp_path, drive, requests):
    """A server that is played, at each answer a donation by a program that is recorded: it falls into its request, as long as that one's prompt
    and half of its answer."""
    lab, run = Lab(build, tmp_path), tmp_path / "run"
    code = ("import sys; sys.path.insert(0, sys.argv[1])\nimport slotprobe as s, array\na = array.array('b', bytes(64))\n"
            "class T:\n    __array_interface__ = {'typestr': '|i1', 'shape': (8, 8), 'data': (a.buffer_info()[0], False)}\n"
            "p = s.pool('p', {'t': T()}, layer_axis=None, slot_axis=0)\nprint('ready', flush=True)\n"
            "for line in sys.stdin:\n    print(s.donate(p, 1, int(line)), flush=True)\n")
    with subprocess.Popen([build / "slotprobe", "record", "-o", run, "--arm", "graph-off", "--", sys.executable, "-B", "-c", code,
                           pathlib.Path(__file__).parents[3] / "probes/python"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "ready\n"
        lock = threading.Lock()

        class Played:
            def post(self, _path):
                pass

            def generate(self, tokens, n):
                with lock:
                    program.stdin.write(f"{len(tokens) + n // 2}\n")
                    program.stdin.flush()
                    assert int(program.stdout.readline()) > 0
                return [7] * n, 0
        said = drive(Played())
        program.stdin.close()
        assert program.wait(30) == 0
    donated = [e for e in lab.exported(run, "event") if e["kind"] == "donate"]
    assert len(said["asked"]) == said["requests"] == requests <= len(donated) == holding_decoded(donated, said["asked"]) + (drive is load.at_once)


def test_doctor_is_asked_of_the_run_too(build, serve, tmp_path):
    """Of a server that answers as SGLang does, and of a run that no adapter was in."""
    settings = {"version": "0", "model_path": "m", "disable_radix_cache": False, "mamba_radix_cache_strategy": "extra_buffer", "disable_overlap_schedule": False,
                "mamba_track_interval": 64, "disable_decode_cuda_graph": True}

    run = tmp_path / "run"
    subprocess.run([build / "slotprobe", "record", "-o", run, "--", build / "toyserver/toyserver", "--arm", "graph-off", "--requests", "2"], check=True,
                   env=os.environ | {"LD_LIBRARY_PATH": str(build / "cpudriver")}, stdout=subprocess.DEVNULL, timeout=60)
    port = urllib.parse.urlsplit(serve({"/server_info": settings})).port
    found = Lab(build, tmp_path).doctor(types.SimpleNamespace(port=port, run=run), 7)
    states = {name: c["state"] for name, c in found.items()}
    assert states.pop("plugin") == "problem"
    assert states == dict.fromkeys(["server", "radix-cache", "extra-buffer", "overlap", "interval", "batch", "graphs"], "ok"), found
