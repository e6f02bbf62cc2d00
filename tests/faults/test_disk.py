# SPDX-License-Identifier: Apache-2.0
"""Disks that are full, over quota, read-only, gone, or under a floor or a cap: the server notices nothing, the counters add up, the loss
has a name, and verify's status says it. What needs a mount runs on one, too, where mounting is allowed."""
import errno
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import pytest

from faultlab import FaultyRun, Toy, codes, some

LAST = 10**9


def can_mount():
    """Whether this process may mount a tmpfs."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True, check=False)
        except OSError:
            return False
        if done.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        return done.returncode == 0


mounting = pytest.mark.skipif(not can_mount(), reason="mounting is not allowed here; the preload puts the same faults in above")


def check(lab, run, reason, status=3):
    """The server is unchanged, the counters add up, verify and diff say `reason`."""
    lab.server_unchanged(run)
    verified, found = lab.ask("verify", run.path)
    assert verified == status, found
    assert reason in codes(found), found["reasons"]
    verified, differs, why = lab.honest(run)
    assert differs == 3 and why, (verified, differs, why)
    return lab.probes(run)


# ---- the log cannot be written ----

@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT", "EIO", "EROFS"])
@pytest.mark.parametrize("first", [3, 5])
def test_writes_fail_for_good(toy, error, first):
    run = toy.run(f"{error}-{first}", FAULT=f"pwritev:{first}-:{getattr(errno, error)}")
    probes = check(toy, run, "records_dropped")
    lost = sum(probes["core.donate"]["dropped"].values()) + probes["core.donate"]["skipped"]["disk_stop"]
    assert lost + probes["core.donate"]["committed"] == 97 and lost
    if error in ("ENOSPC", "EDQUOT"):
        _, found = toy.ask("status", run.path)
        assert found["processes"][0]["disk_stop"]


@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT", "EIO"])
def test_one_write_fails(toy, error):
    """The disk has room again: what is written after a full disk is a hole's other side, so nothing is; after another error it goes on."""
    run = toy.run(f"one-{error}", FAULT=f"pwritev:3:{getattr(errno, error)}")
    check(toy, run, "records_dropped")


@pytest.mark.parametrize("name", ["ftruncate", "fstatvfs", "syscall.fstat", "syscall.getdents64"])
def test_what_surrounds_a_write_fails(toy, name):
    """Together with the write itself, so that nothing is put right behind it."""
    run = toy.run(f"around-{name}", FAULT=f"pwritev:3:{errno.EIO},{name}:4-{LAST}")
    check(toy, run, "records_dropped")


# ---- the guard ----

@pytest.mark.parametrize("settings", [{"SLOTPROBE_MIN_FREE": "1000000T"}, {"SLOTPROBE_MAX_SIZE": "80K"}, {"SLOTPROBE_MAX_SIZE": "1K"}])
def test_the_guard_stops(toy, settings):
    run = toy.run("guard-" + "-".join(settings.values()), **settings)
    probes = check(toy, run, "records_dropped")
    assert set(some(probes["core.donate"]["skipped"])) == {"disk_stop"}
    _, found = toy.ask("status", run.path)
    assert found["processes"][0]["disk_stop"]


# ---- the run cannot be made ----

def record(lab, name, path, **settings):
    """As `slotprobe record` has it: the run is there before the process is."""
    journal = lab.folder / f"{name}.jsonl"
    env = lab.env(LD_PRELOAD=lab.build / "faults" / "inject.so", **settings)
    command = [str(lab.build / "slotprobe"), "record", "-o", str(path), "--arm", "graph-on", "--min-free", "0", "--"]
    done = subprocess.run(command + lab.server.command(lab.build, journal, "graph-on"), capture_output=True, text=True, env=env, timeout=60,
                          check=False)
    run = FaultyRun(path, journal, done)
    own = [line for line in run.stderr.splitlines(True) if line.startswith("slotprobe record: ")]
    assert len(own) <= 1
    run.stderr = run.stderr.replace("".join(own), "")
    return run, own


@pytest.mark.parametrize("fault", [f"openat:1-:{errno.EROFS}", f"openat:1-:{errno.EACCES}", f"openat:2-:{errno.ENOSPC}",
                                   f"open:1-:{errno.EACCES}", f"posix_fallocate:1-:{errno.ENOSPC}", f"posix_fallocate:1-:{errno.EDQUOT}",
                                   f"posix_fallocate:1-:{errno.EOPNOTSUPP}", f"pwritev:1-:{errno.ENOSPC}"])
def test_nothing_can_be_made(toy, fault):
    """A read-only directory, a full disk under the counters page, no room for the log's first bytes."""
    run, said = record(toy, f"none-{fault}", toy.folder / f"none-{fault}", FAULT=fault)
    assert said
    assert check(toy, run, "never_loaded") is None
    assert not list(run.path.glob("*.log")) and not list(run.path.glob("*.ctr"))


# ---- the run goes away ----

@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_the_directory_goes(faults, how):
    """While it is recorded into. Another link to the files shows what was written to them."""
    lab = faults(Toy("--requests", "24"), CPUDRIVER_DELAY_US="200")
    started = lab.start("going")
    path, kept = lab.folder / "going", lab.folder / "kept"
    deadline = time.monotonic() + 20
    while not (list(path.glob("*.log")) and (path / "run.json").exists()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    if how == "moved":
        path.rename(kept)
    else:
        kept.mkdir(0o700)
        for file in path.iterdir():
            os.link(file, kept / file.name)
        shutil.rmtree(path)
    assert started[2].poll() is None, "it ended before the directory went"
    run = lab.finish(started)
    lab.server_unchanged(run)
    assert not path.exists()
    run.path = kept
    assert lab.honest(run) == (0, 0, [])


# ---- on a small disk of its own ----

def mounted(folder, options):
    """A tmpfs on that folder."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], check=True)
    return folder


SMALL = {"no room for the page": ("size=32k", "never_loaded"), "no room for the log": ("size=84k", None),
         "some room": ("size=220k", "records_dropped")}


@mounting
@pytest.mark.parametrize("what", SMALL)
def test_small_disk(toy, what):
    options, reason = SMALL[what]
    disk = mounted(toy.folder / f"disk-{options}", options)
    try:
        run, _ = record(toy, f"small-{options}", disk / "run", FAULT_COUNT=toy.folder / "small.count")
        if reason:
            check(toy, run, reason)
        else:
            toy.server_unchanged(run)
            assert toy.honest(run)[1] == 3
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@mounting
def test_read_only_disk(toy):
    disk = mounted(toy.folder / "disk-ro", "size=1m")
    try:
        (disk / "run").mkdir(0o700)
        shutil.copy(toy.good.path / "run.json", disk / "run")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        run = toy.run("ro", SLOTPROBE_DIR=disk / "run")
        run.path = pathlib.Path(disk / "run")
        assert check(toy, run, "never_loaded") is None
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# ---- the writer hangs ----

@pytest.mark.parametrize("fault", ["pwritev:3:hang", "pwritev:4:hang", "syscall.fstat:4:hang", "syscall.futex:1:hang", "open:12:hang"])
def test_the_writer_hangs(toy, fault):
    """A disk that does not answer: nothing that the server calls waits for the writer, but the exit, and that for two seconds."""
    began = time.monotonic()
    run = toy.run(f"hanging-{fault}", FAULT=fault)
    assert time.monotonic() - began < 20
    toy.server_unchanged(run)
    verified, differs, why = toy.honest(run)
    assert differs == 3 and {"in_flight_lost", "records_dropped", "skipped_needed"} & set(why), (verified, why)
    probes = toy.probes(run)
    assert sum(p["in_flight"] for p in probes.values()) or some(probes["core.donate"]["dropped"])
