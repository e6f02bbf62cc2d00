# SPDX-License-Identifier: Apache-2.0
"""What a server may do to its own process: memory that goes, threads that end, limits, forks, execs. Under the preload it gets on as it
does without, and what could not be measured is counted."""
import json
import os
import subprocess
import time

import pytest

# Its runtime has a thread of its own, for which the last thread of the program is never alone, and holds signals back.
not_under_tsan = pytest.mark.skipif(os.environ.get("SAN") == "tsan", reason="the thread sanitizer's own thread and its late signals")

BARE = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")}


@pytest.fixture(scope="module")
def host(root, tmp_path_factory):
    """The server's program."""
    program = tmp_path_factory.mktemp("hostile") / "hostile_host"
    san = {"asan": ["-fsanitize=address,undefined"], "tsan": ["-fsanitize=thread"]}.get(os.environ.get("SAN", ""), [])
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *san, "-I", root,
                    root / "tests/e2e/hostile_host.c", "-o", program, "-ldl", "-lpthread"], check=True)
    return program


class Place:
    """A run directory, and what is in it."""

    def __init__(self, build, host, folder):
        self.build, self.host, self.folder, self.path = build, host, folder, folder / "run"

    def run(self, *args, recorded=True, **options):
        """The program's end: status, and the lines that it said."""
        env = BARE | ({"LD_PRELOAD": str(self.build / "libslotprobe.so"), "SLOTPROBE_DIR": str(self.path), "SLOTPROBE_ARM": "graph-off"}
                      if recorded else {})
        done = subprocess.run([self.host, *args], capture_output=True, text=True, timeout=20, env=env, cwd=self.folder, check=False, **options)
        return done.returncode, done.stdout.splitlines()

    def ask(self, *args):
        """slotprobe's status and output."""
        return subprocess.run([self.build / "slotprobe", *args], capture_output=True, text=True, timeout=60, env=BARE, check=False)

    def processes(self):
        """The counters of every process, in the order of their files."""
        return json.loads(self.ask("status", self.path, "--json").stdout)["processes"]

    def donations(self):
        """Of the run's one process."""
        (process,) = self.processes()
        return point(process, "core.donate")

    def events(self):
        """All events."""
        lines = map(json.loads, self.ask("export", self.path, "--format", "jsonl").stdout.splitlines())
        return [r for r in lines if r["type"] == "event"]


def point(process, name):
    """A probe's row."""
    return next(p for p in process["probes"] if p["name"] == name)


@pytest.fixture
def place(build, host, tmp_path):
    """An empty one."""
    return Place(build, host, tmp_path)


# ---- threads that end ----

@pytest.mark.parametrize("how", ["alone", "staying", "exiting"])
@not_under_tsan
def test_a_main_thread_may_end_first(place, how):
    """By pthread_exit: the process ends when its last thread does, with the same status."""
    bare, _ = place.run("leave", how, recorded=False)
    status, said = place.run("leave", how)
    assert status == bare == (7 if how == "exiting" else 0)
    assert said == ["good 1"] * (1 if how == "alone" else 2)  # our thread did not end the others
    (process,) = place.processes()
    assert process["state"] == "ended"
    assert point(process, "core.donate")["committed"] == len(said)


@not_under_tsan
def test_no_signal_is_lost_on_a_process_without_threads(place):
    """What comes when only our thread is left ends the process, as does the lack of others."""
    env = BARE | {"LD_PRELOAD": str(place.build / "libslotprobe.so"), "SLOTPROBE_DIR": str(place.path)}
    with subprocess.Popen([place.host, "leave", "alone"], stdout=subprocess.PIPE, env=env) as server:
        server.stdout.readline()
        time.sleep(0.1)
        server.terminate()
        try:
            assert server.wait(timeout=10) in (0, -15)
        finally:
            server.kill()


# ---- memory that goes ----

@pytest.mark.parametrize("pages", ["2", "40"])
@pytest.mark.parametrize("how", ["unmapped", "protected", "truncated", "tail"])
def test_memory_that_cannot_be_read_is_an_error_and_no_crash(place, how, pages):
    """Pools that lie where nothing is, states that are gone, rows whose last page is missing."""
    status, said = place.run("vanish", how, pages)
    assert (status, said) == (0, ["bad -22", "floating -22", "nowhere -22", "good 1"])
    row = place.donations()
    assert (row["attempted"], row["committed"], row["errors"]) == (4, 1, 3)
    assert [e["outcome"] for e in place.events()] == ["argument"] * 3 + ["committed"]


# ---- limits ----

@pytest.mark.parametrize("how", ["plain", "pending"])
def test_a_limit_on_file_sizes_kills_nobody(place, how):
    """SIGXFSZ is ours where our write drew it, the server's where it was there before, and the mask is as it was."""
    status, said = place.run("small-files", how)
    own = "1" if how == "pending" else "0"
    assert (status, said) == (0, ["refused 1", f"pending {own}", f"blocked {own}"])
    assert not list(place.path.glob("*.ctr"))


@not_under_tsan
def test_a_limit_that_the_writer_meets_kills_nobody(place):
    """Not at once, and not when the writer is the last thread."""
    status, said = place.run("small-log")
    assert (status, said) == (0, [])
    row = place.donations()
    assert row["attempted"] == 3000 and row["committed"] < 3000


# ---- children ----

def test_a_child_that_speaks_of_its_parent_s_pool_is_seen(place):
    """It gets files of its own, the donation is counted and logged, and the run proves nothing."""
    status, said = place.run("family", "donates")
    assert (status, said) == (0, ["parent 1", "child -22", "parent 1"])
    rows = sorted((point(p, "core.donate") for p in place.processes()), key=lambda r: r["attempted"])
    assert [(r["attempted"], r["committed"], r["skipped"].get("pool_gone", 0)) for r in rows] == [(1, 0, 1), (2, 2, 0)]
    assert sorted(e["outcome"] for e in place.events()) == ["committed", "committed", "pool_gone"]
    first, place.path = place.path, place.folder / "again"
    place.run("family", "donates")
    assert place.ask("diff", first, place.path).returncode == 3


def test_a_pool_of_the_child_s_own_is_never_taken_for_the_parent_s(place):
    """Ids are not used again in a child."""
    status, said = place.run("family", "owns")
    assert (status, said) == (0, ["parent 1", "good 1", "child -22", "parent 1"])


def test_a_child_s_steps_are_counted(place):
    """Whatever it says first starts its recording."""
    assert place.run("family", "steps") == (0, ["parent 1", "child 0", "parent 1"])
    assert sorted(point(p, "core.step")["committed"] for p in place.processes()) == [0, 1]


def test_a_child_that_says_nothing_leaves_no_files(place):
    """The red twin of the above."""
    assert place.run("family", "silent") == (0, ["parent 1", "parent 1"])
    assert len(place.processes()) == len(list(place.path.glob("*.ctr"))) == 1


# ---- lives ----

def test_every_life_of_a_process_that_execs_is_recorded(place):
    """More than ten, and more than a hundred."""
    status, said = place.run("lives", "110")
    assert status == 0 and len(said) == 111
    assert [point(p, "core.donate")["attempted"] for p in place.processes()] == [1] * 111
