# SPDX-License-Identifier: Apache-2.0
"""A server's tests fail where `slotprobe check` does: pytest_plugins = ["slotprobe.pytest_plugin"] in the root conftest.py.

    def test_prefix_reuse(slotprobe_run):
        with slotprobe_run.serve([sys.executable, "-m", "my_server"], arm="graph-on") as server:
            ...  # requests; `server` is a subprocess.Popen

When the test is over, every run that it recorded is checked, and what check finds is the test's error. A test that has failed or was
skipped is not checked.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

NOT_RECORDED = 125  # record's own failure
LAUNCHED = "core.graph_launch>=1"  # what the arm graph-on promises: a server in which no graph ran has shown nothing of graphs
ARMS = (None, "graph-on", "graph-off")
CHECK_TIMEOUT = 600


def pytest_addoption(parser):
    """The command's place, where it is not on the PATH."""
    parser.addini("slotprobe_command", "the slotprobe command; by default the one beside the package or on the PATH", default="")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Leaves the outcome of the test itself where the fixture finds it."""
    outcome = yield
    if call.when == "call":
        item.slotprobe_passed = outcome.get_result().passed


def command(config):
    """The slotprobe command. Fails the test where there is none: a check that is not made must not pass."""
    said = config.getini("slotprobe_command")
    beside = pathlib.Path(__file__).resolve().parents[4] / "bin" / "slotprobe"  # PREFIX/lib/slotprobe/python/slotprobe/
    found = said or (str(beside) if beside.exists() else shutil.which("slotprobe"))
    if not found or not os.access(found, os.X_OK):
        pytest.fail(f"slotprobe: no command {found or 'slotprobe'!r}: put it on the PATH, or set slotprobe_command in pytest.ini", pytrace=False)
    return found


class Recorded:
    """Records commands, each into a run of its own."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.runs = []  # (path, expectations)

    def _line(self, argv, arm, expect, options):
        if arm not in ARMS:
            pytest.fail(f"slotprobe: arm={arm!r}: it is 'graph-on' or 'graph-off'", pytrace=False)
        run = self.folder / f"slotprobe-run.{len(self.runs)}"
        expect = [expect] if isinstance(expect, str) else list(expect)
        self.runs.append((run, expect + [LAUNCHED] * (arm == "graph-on")))
        arm = ["--arm", arm] if arm else []
        return [self.program, "record", "-o", str(run), *arm, *map(str, options), "--", *map(str, argv)]

    def record(self, argv, arm=None, expect=(), options=(), **kwargs):
        """Runs a command to its end; returns subprocess.CompletedProcess, its output as text.

        arm: "graph-on", which then has to launch a graph, or "graph-off". expect: what check is to demand besides, "PROBE>=N". options: more of
        `slotprobe record`. The rest goes to subprocess.run.
        """
        done = subprocess.run(self._line(argv, arm, expect, options), **{"capture_output": True, "text": True, "check": False, **kwargs})
        if done.returncode == NOT_RECORDED or not self.runs[-1][0].exists():
            pytest.fail(f"slotprobe record failed, status {done.returncode}:\n{done.stderr or ''}", pytrace=False)
        return done

    @contextlib.contextmanager
    def serve(self, argv, arm=None, expect=(), options=(), timeout=60, **kwargs):
        """Runs a server for as long as the block lasts, then sends it SIGTERM and waits for its end, at most `timeout` seconds; gives
        subprocess.Popen, which takes the other arguments."""
        server = subprocess.Popen(self._line(argv, arm, expect, options), start_new_session=True, **kwargs)
        try:
            yield server
        finally:
            server.send_signal(signal.SIGTERM)  # nothing where it has ended
            try:
                server.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)  # the server too, not only what records it
                server.wait()
                pytest.fail(f"slotprobe: the server did not end within {timeout} s of SIGTERM: {argv}", pytrace=False)

    def check(self):
        """What is wrong with the runs, as text; empty: nothing."""
        if not self.runs:
            return "the test has slotprobe_run and recorded nothing"
        found = []
        for run, expect in self.runs:
            wanted = [word for one in expect for word in ("--expect", one)]
            done = subprocess.run([self.program, "check", str(run), *wanted, "--color", "never"], capture_output=True, text=True,
                                  timeout=CHECK_TIMEOUT, check=False)
            if done.returncode:
                found.append(f"slotprobe check {run} {' '.join(wanted)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return "\n".join(found)


@pytest.fixture
def slotprobe_run(request, tmp_path):
    """A Recorded; after the test its runs are checked."""
    recorded = Recorded(command(request.config), tmp_path)
    yield recorded
    if getattr(request.node, "slotprobe_passed", False):
        wrong = recorded.check()
        if wrong:
            pytest.fail(wrong, pytrace=False)
