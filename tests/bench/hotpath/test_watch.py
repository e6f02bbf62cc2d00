# SPDX-License-Identifier: Apache-2.0
"""What `status --watch` costs the server that it watches: nothing. Its threads execute the same instructions, and the watcher does nothing
to the run or to its processes but read."""
import os
import re
import signal
import subprocess
import time

import pytest

from callgrind import profile

OURS = "libslotprobe.so"
# What could reach into another process, or change what it has mapped. Signal 0 asks only whether somebody is there.
REACHES = re.compile(r"(?:ptrace|process_vm_\w+|pidfd_\w+|tgkill|tkill|rt_\w*sigqueueinfo|perf_event_open|bpf|ioctl\(\d+, 0x)\(|kill\(\d+, SIG")
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|(?:unlink|rename|link|mkdir|truncate|ftruncate|fallocate|chmod|utime)\w*\(|PROT_WRITE.*MAP_SHARED")


def test_the_server_executes_the_same(build, tmp_path):
    """With a watcher, and status called over and over beside it, while the calls are counted."""
    reads = 0

    def watch(run, process):
        nonlocal reads
        while not list(run.glob("*.ctr")) and process.poll() is None:
            time.sleep(0.02)
        with subprocess.Popen([build / "slotprobe", "status", "--watch", run], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as watcher:
            while process.poll() is None:
                reads += subprocess.run([build / "slotprobe", "status", run], capture_output=True, timeout=60, check=False).returncode == 0
            watcher.send_signal(signal.SIGINT)
    (tmp_path / "watched").mkdir()
    alone, watched = profile(build, tmp_path, "donate", build / OURS).own, profile(build, tmp_path / "watched", "donate", build / OURS, watch).own
    assert reads > 10
    # what libunwind asks of libc follows where things were loaded, and now and then one of ours tries a word again
    for name in alone | watched:
        assert watched[name] == pytest.approx(alone[name], rel=0.05 if name == "libc.so.6" else 0.002), name
    assert alone[OURS] > 100


def what_it_does(run, folder, *words):
    """The system calls of a command that ends, or of a watcher that has looked three times."""
    out = folder / "trace"
    out.unlink(missing_ok=True)
    # strace itself keeps the signal off, and ends with what it traces
    with subprocess.Popen(["strace", "-f", "-o", out, *words], stdout=subprocess.DEVNULL, start_new_session=True) as watcher:
        end = time.monotonic() + 30
        while watcher.poll() is None and time.monotonic() < end and (not out.exists() or out.read_text().count(".ctr") < 3):
            time.sleep(0.1)
        if watcher.poll() is None:
            os.killpg(watcher.pid, signal.SIGINT)
    return [line for line in out.read_text().splitlines() if REACHES.search(line) or (WRITES.search(line) and str(run) in line)], out.read_text()


def test_the_watcher_only_reads(build, tmp_path):
    run = tmp_path / "run"
    # one that lives, since a watcher ends with its run
    with subprocess.Popen([build / "slotprobe", "record", "-o", run, "--", build / "toyserver/toyserver", "--requests", "1000000"], cwd=tmp_path,
                          env={**os.environ, "LD_LIBRARY_PATH": str(build / "cpudriver")}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while not list(run.glob("*.ctr")) and server.poll() is None:
                time.sleep(0.02)
            found, trace = what_it_does(run, tmp_path, build / "slotprobe", "status", "--watch", run)
        finally:
            server.terminate()
    assert trace.count(".ctr") >= 3 and not found, (found, trace[-3000:])
    # the red twin: one that opens the page to write, and one that sends a signal
    (page,) = run.glob("*.ctr")
    assert any("O_RDWR" in line for line in what_it_does(run, tmp_path, "sh", "-c", f": <>{page}")[0])
    assert any("SIGURG" in line for line in what_it_does(run, tmp_path, "sh", "-c", "kill -URG $$")[0])
