# SPDX-License-Identifier: Apache-2.0
"""A user's test suite with the plugin: what passes, what fails, and what the failure says."""
import pathlib
import subprocess
import sys
import time

import pytest

SERVER = """
import signal, sys, time
import slotprobe
from fakes import Device, Torch
device = Device()
a = device.alloc(4096)
pool = slotprobe.pool("pool", {"t": Torch(a, (2, 4, 8))})
stream = device.stream()
slotprobe.slot(slotprobe.ALLOC, pool, 1, stream=stream)
if "write" in sys.argv:
    device.finish()  # the allocation is measured by now
    device.write(a + 32, b"written!")
if "idle" not in sys.argv:
    slotprobe.donate(pool, 1, 4, "key", 4, stream)
device.finish()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready", flush=True)
if "serve" in sys.argv:
    time.sleep(60)
"""
SUITE = """
import sys, pytest
def test(slotprobe_run):
{body}
"""
RUN = """
    done = slotprobe_run.record([sys.executable, 'server.py', *{args}], arm='graph-off'{more})
    assert done.returncode == 0 and 'ready' in done.stdout
"""


@pytest.fixture
def suite(lab, tmp_path):
    """Runs a test with this body in a suite of its own; its outcomes and what pytest printed."""
    def run(body, command=None):
        (tmp_path / "server.py").write_text(SERVER)
        (tmp_path / "conftest.py").write_text('pytest_plugins = ["slotprobe.pytest_plugin"]\n')
        (tmp_path / "pytest.ini").write_text(f"[pytest]\nslotprobe_command = {command or lab.command}\n")
        (tmp_path / "test_it.py").write_text(SUITE.format(body=body))
        done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q", "."], capture_output=True, text=True,
                              cwd=tmp_path, env=lab.env, timeout=180, check=False)
        return done.returncode, done.stdout + done.stderr
    return run


def test_a_sound_server_passes(suite):
    """Written between allocation and donation."""
    status, text = suite(RUN.format(args=["write"], more=", expect='core.donate>=1'"))
    assert status == 0 and "1 passed" in text, text


def test_a_broken_server_fails(suite):
    """Never written: check's own words are in the failure."""
    status, text = suite(RUN.format(args=[], more=""))
    assert status == 1 and "1 error" in text and "never written" in text.replace("_", " ").replace("was not written", "never written"), text
    assert "exit status 1" in text


def test_an_arm_keeps_its_promise(suite):
    """Where graphs are promised, one has to be launched; what is no arm is none."""
    status, text = suite(RUN.format(args=["write"], more="").replace("graph-off", "graph-on"))
    assert status == 1 and "exit status 3" in text and "core.graph_launch" in text, text
    status, text = suite(RUN.format(args=["write"], more="").replace("graph-off", "graph_on"))
    assert status == 1 and "arm='graph_on': it is 'graph-on' or 'graph-off'" in text, text


def test_a_command_that_does_not_start_is_named(suite):
    """By record, not by check, which finds no run."""
    status, text = suite("    slotprobe_run.record(['no-such-command'])")
    assert status == 1 and "no-such-command" in text and "record failed, status 127" in text and "cannot open the run" not in text, text


def test_unproven_fails(suite):
    """No donation, and fewer than expected: both name the counter."""
    status, text = suite(RUN.format(args=["idle"], more=""))
    assert status == 1 and "exit status 3" in text and "core.donate" in text, text
    status, text = suite(RUN.format(args=["write"], more=", expect=['core.donate>=2']"))
    assert status == 1 and "exit status 3" in text and "core.donate" in text, text


def test_a_server_is_ended_and_checked(suite):
    """As long as the block lasts; the run is read after its end."""
    body = """
    import subprocess
    with slotprobe_run.serve([sys.executable, "server.py", "serve"{more}], arm="graph-off", stdout=subprocess.PIPE) as server:
        assert server.stdout.readline() == b"ready\\n" and server.poll() is None
    assert server.poll() is not None
"""
    status, text = suite(body.format(more=', "write"'))
    assert status == 0 and "1 passed" in text, text
    status, text = suite(body.format(more=""))
    assert status == 1 and "1 error" in text and "exit status 1" in text, text


def test_nothing_passes_unchecked(suite):
    """No run, no command, a command that cannot be recorded."""
    status, text = suite("    pass")
    assert status == 1 and "recorded nothing" in text, text
    status, text = suite("    pass", command="/nonexistent/slotprobe")
    assert status == 1 and "no command '/nonexistent/slotprobe'" in text, text
    status, text = suite("    slotprobe_run.record(['true'], options=['--no-such-option'])")
    assert status == 1 and "slotprobe record failed" in text, text


def test_other_outcomes_stay(suite):
    """A test that failed or was skipped is that, and no more."""
    status, text = suite("    assert False")
    assert status == 1 and "1 failed" in text and "error" not in text.splitlines()[-1], text
    status, text = suite("    pytest.skip('no reason')")
    assert status == 0 and "1 skipped" in text, text


DEAF = """
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("pid").write_text(str(os.getpid()))
print("ready", flush=True)
time.sleep(60)
"""


def test_a_server_that_does_not_end(suite, tmp_path):
    """It is killed, not only what records it, and the test fails."""
    (tmp_path / "deaf.py").write_text(DEAF)
    status, text = suite("""
    import subprocess
    with slotprobe_run.serve([sys.executable, "deaf.py"], timeout=1, stdout=subprocess.PIPE) as server:
        assert server.stdout.readline()
""")
    assert status == 1 and "did not end within 1 s of SIGTERM" in text, text
    server = pathlib.Path("/proc", (tmp_path / "pid").read_text(), "stat")
    until = time.monotonic() + 10
    while server.exists() and server.read_text().rsplit(")", 1)[1].split()[0] != "Z":
        assert time.monotonic() < until, "the server goes on"
        time.sleep(0.05)
