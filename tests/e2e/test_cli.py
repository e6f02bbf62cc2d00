# SPDX-License-Identifier: Apache-2.0
"""The command line: every verb with bad input, and what record, status, ctl, verify and export do with good input. No GPU, no CUDA."""
import contextlib
import csv
import ctypes
import importlib.util
import io
import json
import mmap
import os
import pathlib
import pty
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time

import jsonschema
import pytest

import fakerun

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
READERS = {"status": ["status"], "report": ["report"], "check": ["check"], "verify": ["verify"], "export": ["export", "--format", "jsonl"],
           "csv": ["export", "--format", "csv"], "perfetto": ["export", "--format", "perfetto"], "page": ["report", "--format", "html"],
           "check_page": ["check", "--format", "html"], "ctl": ["ctl"]}


@pytest.fixture(scope="session")
def command(request) -> pathlib.Path:
    """The slotprobe command; SLOTPROBE_CMD names one that is built already."""
    given = os.environ.get("SLOTPROBE_CMD")
    return pathlib.Path(given).resolve() if given else pathlib.Path(request.getfixturevalue("build")) / "slotprobe"


@pytest.fixture
def slotprobe(command, tmp_path):
    """Runs slotprobe in an empty folder."""
    def run(*arguments, env=None, **options):
        options = {"capture_output": True, "timeout": 60, "cwd": tmp_path, **options}
        clean = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_") and k not in ("LD_PRELOAD", "NO_COLOR")}
        return subprocess.run([command, *map(os.fspath, arguments)], env={**clean, **(env or {})}, **options)
    return run


def refused(done, status=2, *words):
    """Ended with this status, said one line on stderr that holds the words, and nothing on stdout."""
    said = done.stderr.decode()
    assert done.returncode == status, (done.returncode, said, done.stdout)
    assert said.count("\n") == 1 and said.endswith("\n") and said.startswith(("slotprobe ", "slotprobe: ")), said
    assert len(said) > 25
    for word in words:
        assert word in said, said
    assert not done.stdout, done.stdout


def arguments_for(verb, run):
    """A verb and the operands that make it read this run."""
    if verb == "diff":
        return ["diff", run, run]
    return READERS[verb] + [run] + (["start"] if verb == "ctl" else [])


EVERY_READER = sorted([*READERS, "diff"])

# ---- usage ----


@pytest.mark.parametrize("arguments, words", [
    ([], ["verb is missing", "--help"]),
    (["frobnicate"], ["unknown verb 'frobnicate'"]),
    (["--frobnicate"], ["unknown option '--frobnicate'"]),
    (["kl"], ["not built yet"]),
    (["ab", "x"], ["not built yet"]),
    (["st\x1b[31matus"], ["\\x1b"]),
])
def test_no_verb(slotprobe, arguments, words):
    done = slotprobe(*arguments)
    refused(done, 2, *words)
    if "not built yet" not in words:
        assert done.stderr.startswith(b"slotprobe: ")


VERBS = ["record", "status", "ctl", "report", "check", "diff", "verify", "selftest", "export", "doctor"]


@pytest.mark.parametrize("verb", VERBS)
def test_unknown_option(slotprobe, verb):
    status = 125 if verb == "record" else 2
    refused(slotprobe(verb, "--frobnicate", "x"), status, "'--frobnicate'")
    refused(slotprobe(verb, "-Z", "x"), status, "'-Z'")
    refused(slotprobe(verb, "--color", "mauve", "x"), status, "mauve", "auto/always/never")
    refused(slotprobe(verb, "--color"), status, "--color needs a value")
    refused(slotprobe(verb, "--color="), status, "--color")
    refused(slotprobe(verb, "--help=yes"), status, "--help takes no value")


@pytest.mark.parametrize("verb", [v for v in VERBS if v not in ("selftest", "doctor")])
def test_missing_operands(slotprobe, verb):
    refused(slotprobe(verb), 125 if verb == "record" else 2, "missing")


@pytest.mark.parametrize("verb", ["status", "report", "check", "verify", "export", "diff", "selftest"])
def test_too_many_operands(slotprobe, verb):
    refused(slotprobe(verb, "a", "b", "c"), 2, "too many")


@pytest.mark.parametrize("arguments, words", [
    (["diff", "a", "b", "--align", "sideways"], ["sideways", "auto/slot/key/order"]),
    (["diff", "a", "b", "--rtol", "-1"], ["--rtol"]),
    (["diff", "a", "b", "--rtol", "nan"], ["--rtol"]),
    (["diff", "a", "b", "--rtol", "1e999"], ["--rtol"]),
    (["diff", "a", "b", "--allow-missing", "("], ["regular expression"]),
    (["diff", "a", "b", "--expect", "core.donate"], ["PROBE>=N"]),
    (["check", "a", "--expect", ">=3"], ["PROBE>=N"]),
    (["verify", "a", "--expect", "x>=99999999999999999999"], ["PROBE>=N"]),
    (["verify", "a", "--expect", "x>=-1"], ["PROBE>=N"]),
    (["verify", "a", "--expect", "x>=1 "], ["PROBE>=N"]),
    (["verify", "a", "--expect", "a b>=1"], ["PROBE>=N"]),
    (["status", "a", "--json", "--format", "text"], ["contradict"]),
    (["verify", "a", "--format", "json", "--format", "text"], ["twice"]),
    (["report", "a", "--format", "pdf"], ["text/json/html"]),
    (["export", "a"], ["--format is missing"]),
    (["export", "a", "--format", "xml"], ["jsonl/csv/perfetto"]),
    (["selftest", "--driver", "opencl"], ["auto/cuda/cpu"]),
    (["ctl", "a", "explode"], ["explode"]),
    (["ctl", "a", "start", "now"], ["too many"]),
    (["ctl", "a", "label"], ["missing"]),
    (["ctl", "a", "label", "x" * 64], ["at most 63"]),
    (["ctl", "a", "level", "nodes"], ["not built yet"]),
    (["ctl", "a", "level", "9"], ["unknown level"]),
])
def test_bad_values(slotprobe, arguments, words):
    refused(slotprobe(*arguments), 2, *words)


@pytest.mark.parametrize("verb", VERBS)
def test_help_and_version(slotprobe, verb):
    for done in slotprobe(verb, "--help"), slotprobe(verb, "-h"):
        assert done.returncode == 0 and not done.stderr
        assert done.stdout.decode().startswith(f"usage: slotprobe {verb} ")
        assert b"exit status" in done.stdout
    done = slotprobe(verb, "--version")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == slotprobe("--version").stdout


def test_overview_names_every_verb(slotprobe):
    done = slotprobe("--help")
    assert done.returncode == 0
    assert all(f"  {verb} " in done.stdout.decode() for verb in VERBS)


def test_help_is_a_verb_too(slotprobe):
    assert slotprobe("help").stdout == slotprobe("--help").stdout
    for verb in VERBS:
        done = slotprobe("help", verb)
        assert (done.returncode, done.stdout) == (0, slotprobe(verb, "--help").stdout)
    refused(slotprobe("help", "frobnicate"), 2, "frobnicate")
    refused(slotprobe("help", "diff", "check"), 2, "too many")
    assert b"help" in slotprobe("--help").stdout


@pytest.mark.parametrize("verb, marks", [("diff", []), ("record", ["nodes is"])])
def test_help_and_man_page_mark_what_is_not_built(slotprobe, verb, marks):
    lines = [line for line in slotprobe(verb, "--help").stdout.decode().splitlines() if "not built yet" in line]
    assert len(lines) == len(marks) and all(m in line for m, line in zip(marks, lines)), lines
    assert (ROOT / "docs" / "man" / f"slotprobe-{verb}.1").read_text().count("not built yet") == len(marks)


def test_record_says_that_it_has_no_json(slotprobe):
    assert b"no --json" in slotprobe("record", "--help").stdout


# ---- a RUN that is none ----


def bad_runs(tmp_path):
    """Name, path, words that the line must hold."""
    make, page, manifest = fakerun.make, fakerun.page, fakerun.MANIFEST
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "fifo-run").mkdir()
    os.mkfifo(tmp_path / "fifo-run" / "run.json")
    (tmp_path / "link-run").mkdir()
    (tmp_path / "link-run" / "run.json").symlink_to("/etc/passwd")
    yield "absent", tmp_path / "absent", ["absent"]
    yield "file", tmp_path / "file", ["not a directory"]
    yield "empty", tmp_path / "empty", ["run.json", "missing"]
    yield "fifo", tmp_path / "fifo-run", ["regular"]
    yield "link", tmp_path / "link-run", ["run.json"]
    yield "garbage", make(tmp_path / "garbage", b"\x00\xff{[garbage"), ["not JSON"]
    yield "nothing", make(tmp_path / "nothing", b""), ["not JSON"]
    yield "array", make(tmp_path / "array", b"[]"), ["not a JSON object"]
    yield "deep", make(tmp_path / "deep", b"[" * 500000), ["not JSON"]
    yield "twice", make(tmp_path / "twice", b'{"schema_version": 1, "schema_version": 1}'), ["not JSON"]
    yield "huge", make(tmp_path / "huge", b" " * (1 << 20) + b"{}"), ["over the limit"]
    yield "no version", make(tmp_path / "noversion", {}), ["schema_version"]
    yield "later", make(tmp_path / "later", {**manifest, "schema_version": 2}), ["schema_version 2"]
    yield "float", make(tmp_path / "float", {**manifest, "schema_version": 1.0}), ["schema_version"]
    yield "arm", make(tmp_path / "arm", {**manifest, "arm": 3}), ["'arm'"]
    yield "argv", make(tmp_path / "argv", {**manifest, "argv": "x"}), ["'argv'"]
    yield "adapters", make(tmp_path / "adapters", {**manifest, "adapters": [{"points": [1]}]}), ["'adapters'"]
    yield "magic", make(tmp_path / "magic", p=page(magic=b"ELFELFEL")), ["magic"]
    yield "version", make(tmp_path / "version", p=page(version=99)), ["version 99"]
    yield "order", make(tmp_path / "order", p=page(byte_order=0x04030201)), ["byte order"]
    run = make(tmp_path / "big", p=page())
    with open(next(run.glob("*.ctr")), "r+b") as f:
        f.truncate(1 << 40)
    yield "big", run, ["over the limit"]
    run = make(tmp_path / "ctrlink", p=page())
    target = next(run.glob("*.ctr"))
    target.rename(tmp_path / "elsewhere.ctr")
    target.symlink_to(tmp_path / "elsewhere.ctr")
    yield "ctrlink", run, ["symbolic link"]
    run = make(tmp_path / "ctrdir", p=page())
    target = next(run.glob("*.ctr"))
    target.unlink()
    target.mkdir()
    yield "ctrdir", run, ["regular"]


BAD_RUNS = ["absent", "file", "empty", "fifo", "link", "garbage", "nothing", "array", "deep", "twice", "huge", "no version", "later",
            "float", "arm", "argv", "adapters", "magic", "version", "order", "big", "ctrlink", "ctrdir"]


def test_bad_runs_are_all_listed(tmp_path):
    assert [name for name, _, _ in bad_runs(tmp_path)] == BAD_RUNS


@pytest.mark.parametrize("verb", EVERY_READER)
@pytest.mark.parametrize("which", BAD_RUNS)
def test_bad_run(slotprobe, tmp_path, verb, which):
    _, path, words = next(b for b in bad_runs(tmp_path) if b[0] == which)
    refused(slotprobe(*arguments_for(verb, path)), 2, *words)


@pytest.mark.parametrize("verb", ["verify", "export", "csv", "report", "check", "diff", "status"])
@pytest.mark.parametrize("change", [lambda b: b"NOTALOG\n" + b[8:], lambda b: b[:8] + b"\x63" + b[9:]], ids=["magic", "version"])
def test_foreign_log(slotprobe, tmp_path, verb, change):
    run = fakerun.make(tmp_path / "run", p=fakerun.page(), log_bytes=change(fakerun.log()))
    refused(slotprobe(*arguments_for(verb, run)), 2, ".log")


@pytest.mark.parametrize("verb", ["verify", "export", "csv", "report", "check", "diff"])
def test_a_failed_verb_leaves_an_older_output(slotprobe, tmp_path, verb):
    (tmp_path / "kept").write_text("older")
    run = fakerun.make(tmp_path / "run", p=fakerun.page(), log_bytes=b"NOTALOG\n" * 20)
    refused(slotprobe(*arguments_for(verb, run), "-o", "kept"), 2)
    assert (tmp_path / "kept").read_text() == "older"


def test_no_text_of_a_file_reaches_the_terminal(slotprobe, tmp_path):
    evil = b"\x1b]0;pwned\x07\xff\xc2\x9b31m\xe2\x80\xae"
    p = fakerun.page(comm=evil[:15], rank=evil, driver=evil, ctl_label=evil)
    p.row[2].name = evil
    run = fakerun.make(tmp_path / "run", {**fakerun.MANIFEST, "arm": "\x1b[31m\u009b\u202e"}, p)
    for arguments in (["status", run], ["status", "--json", run], ["verify", run], ["export", "--format", "csv", run]):
        done = slotprobe(*arguments)
        said = (done.stdout + done.stderr).decode()  # valid UTF-8
        assert not [c for c in said if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"], said
    assert "\\x1b]0;pwned\\x07" in slotprobe("status", run).stdout.decode()


# ---- output that does not get out ----


@pytest.fixture
def good(tmp_path):
    """A run of one ended process with two steps."""
    chunks = fakerun.chunk(0, 0, [fakerun.step(1), fakerun.step(2)]) + fakerun.chunk(1, 2, [fakerun.end(2)])
    p = fakerun.count(fakerun.page(records_written=3), "core.step", 2, o0=2)
    return fakerun.make(tmp_path / "good", p=p, log_bytes=fakerun.log(chunks=chunks))


@pytest.mark.parametrize("verb", ["verify", "export", "csv", "report", "check", "diff"])
def test_unwritable_output(slotprobe, good, tmp_path, verb):
    arguments = arguments_for(verb, good)
    if verb == "diff":
        arguments[-1] = shutil.copytree(good, tmp_path / "twin")
    refused(slotprobe(*arguments, "-o", "/dev/full"), 2, "/dev/full")
    refused(slotprobe(*arguments, "-o", "no/such/folder"), 2, "no/such/folder")
    refused(slotprobe(*arguments, "-o", "."), 2)


def test_a_run_is_not_compared_with_itself(slotprobe, good, tmp_path):
    (tmp_path / "link").symlink_to(good)
    for other in (good, tmp_path / "link", good / ".", f"{good}/../good"):
        refused(slotprobe("diff", good, other), 2, "cannot be compared with itself")
    twin = shutil.copytree(good, tmp_path / "twin")
    assert slotprobe("diff", good, twin).returncode == 3  # two runs of one arm, in which nothing was donated


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone who may not write")
def test_read_only_output(command, good, tmp_path):
    """As somebody who may read the run and not write beside it. The checkout may be closed to them: they get a copy of the command."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    good.chmod(0o755)
    for file in good.iterdir():
        file.chmod(0o644)
    own = shutil.copy(command, tmp_path / "slotprobe")
    done = subprocess.run([own, "verify", good, "-o", "out"], user=65534, group=65534, cwd=tmp_path, capture_output=True, timeout=60)
    refused(done, 2, "Permission denied")


@pytest.mark.parametrize("arguments", [["status"], ["status", "--json"], ["verify"], ["export", "--format", "csv"]])
def test_full_stdout(slotprobe, good, arguments):
    with open("/dev/full", "wb") as full:
        done = slotprobe(*arguments, good, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    refused(subprocess.CompletedProcess([], done.returncode, b"", done.stderr), 2, "stdout")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["diff", "--help"]])
def test_full_stdout_of_help(slotprobe, arguments):
    with open("/dev/full", "wb") as full:
        done = slotprobe(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1


def into_a_closed_pipe(slotprobe, *arguments, **options):
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = slotprobe(*arguments, capture_output=False, stdout=write_end, stderr=subprocess.PIPE, **options)
    os.close(write_end)
    return done


@pytest.mark.parametrize("arguments", [["status"], ["verify"], ["report"], ["check"], ["export", "--format", "csv"]])
def test_text_into_a_closed_pipe_ends_quietly(slotprobe, good, arguments):
    """As any command before `head` does, even where whoever started it ignores the signal."""
    for before in (None, lambda: ignore(signal.SIGPIPE)):
        done = into_a_closed_pipe(slotprobe, *arguments, good, preexec_fn=before)
        assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def test_json_into_a_closed_pipe_is_trouble(slotprobe, good):
    done = into_a_closed_pipe(slotprobe, "status", "--json", good)
    refused(subprocess.CompletedProcess([], done.returncode, b"", done.stderr), 2, "stdout")


def test_closed_standard_files(command, good):
    script = f'"{command}" status "{good}" <&- >&- 2>/dev/null; echo $?'
    done = subprocess.run(["sh", "-c", script], capture_output=True, timeout=60)
    assert done.stdout == b"2\n"


# ---- status, verify and export of what can be read ----


def schema(name):
    return json.loads((ROOT / "docs" / "schemas" / f"{name}.schema.json").read_text())


def valid(name, done):
    """The JSON on stdout, which must be what its schema says."""
    value = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(schema(name))
    jsonschema.validate(value, schema(name), jsonschema.Draft202012Validator)
    return value


def probe(status, name):
    return next(p for p in status["processes"][0]["probes"] if p["name"] == name)


def test_status_counts(slotprobe, tmp_path):
    p = fakerun.page(driver=b"CUDA 13.0, X", rank=b"tp0.pp0.dp0", bytes_written=123)
    fakerun.count(p, "core.donate", 21, in_flight=1, o0=10, o1=1, o2=2, o4=3, o10=1, o15=2, o16=1)
    run = fakerun.make(tmp_path / "run", p=p)
    status = valid("status", slotprobe("status", "--json", run))
    process, row = status["processes"][0], probe(status, "core.donate")
    assert (status["arm"], status["state"], process["state"], process["bytes"]) == ("graph-on", "ended", "ended", 123)
    assert (process["rank"], process["driver"], process["heartbeat_age_s"]) == ("tp0.pp0.dp0", "CUDA 13.0, X", None)
    assert (row["attempted"], row["committed"], row["filtered"], row["errors"], row["in_flight"]) == (21, 10, 3, 3, 1)
    assert row["skipped"]["capturing"] == 3 and row["dropped"]["ring_full"] == 1 and row["reconciled"]
    text = slotprobe("status", run).stdout.decode()
    assert "core.donate" in text and "capturing 3" in text


def test_a_thread_killed_between_two_counts_is_taken_off_in_flight(slotprobe, tmp_path):
    p = fakerun.count(fakerun.page(state=fakerun.RUNNING), "core.donate", 10, in_flight=3, o0=9)
    row = probe(valid("status", slotprobe("status", "--json", fakerun.make(tmp_path / "run", p=p))), "core.donate")
    assert (row["attempted"], row["committed"], row["in_flight"], row["reconciled"]) == (10, 9, 1, True)


@pytest.mark.parametrize("counts", [{"attempted": 10, "o0": 9}, {"attempted": 10, "o0": 13, "in_flight": 2},
                                    {"attempted": 1, "o0": 2**64 - 1, "o2": 2}, {"attempted": 1, "o0": 0, "o21": 2}])
def test_unreconciled_counters(slotprobe, tmp_path, counts):
    attempted = counts.pop("attempted")
    run = fakerun.make(tmp_path / "run", p=fakerun.count(fakerun.page(), "core.donate", attempted, **counts))
    done = slotprobe("status", "--json", run)
    assert done.returncode == 0 and done.stderr.count(b"\n") == 1 and b"readable with loss" in done.stderr
    assert not probe(valid("status", done), "core.donate")["reconciled"]
    done = slotprobe("verify", "--json", run)
    assert done.returncode == 3
    assert "counters_unreconciled" in [r["code"] for r in valid("verify", done)["reasons"]]


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b[:500], lambda b: b[:12], lambda b: b[:40] + b"\x01" + b[41:],
                                    lambda b: b"", lambda b: bytes(len(b))],
                         ids=["short", "head", "stub", "crc", "nothing", "zeros"])
def test_damaged_page_is_loss(slotprobe, tmp_path, change):
    run = fakerun.make(tmp_path / "run", p=fakerun.page())
    ctr = next(run.glob("*.ctr"))
    ctr.write_bytes(change(ctr.read_bytes()))
    done = slotprobe("status", "--json", run)
    status = valid("status", done)
    assert done.returncode == 0 and b"readable with loss" in done.stderr
    assert status["processes"][0]["probes"] is None and status["processes"][0]["problem"]
    done = slotprobe("verify", "--json", run)
    assert done.returncode == 3 and [r["code"] for r in valid("verify", done)["reasons"]] == ["counters_damaged"]
    assert slotprobe("export", "--format", "jsonl", run).returncode == 0


def test_every_single_byte_of_the_head_may_be_anything(slotprobe, tmp_path):
    run = fakerun.make(tmp_path / "run", p=fakerun.page())
    ctr = next(run.glob("*.ctr"))
    good = ctr.read_bytes()
    for i in range(0, 420, 7):
        ctr.write_bytes(good[:i] + bytes([good[i] ^ 0xff]) + good[i + 1:])
        assert slotprobe("status", run).returncode in (0, 2), i
        assert slotprobe("verify", run).returncode in (0, 2, 3), i


CUT = [("torn", lambda b: b[:-5]), ("garbage", lambda b: b + b"CHNK"), ("checksum", lambda b: b[:200] + b"\xff" + b[201:]),
       ("gap", lambda b: b[:72] + b[72 + 48 + 2 * 112:])]


@pytest.mark.parametrize("mangle", [c[1] for c in CUT], ids=[c[0] for c in CUT])
def test_status_warns_of_a_damaged_log(slotprobe, tmp_path, mangle):
    whole = steps_run(tmp_path / "whole", 2, {}, attempted=3, o0=3)
    assert slotprobe("status", whole).stderr == b""
    done = slotprobe("status", "--json", steps_run(tmp_path / "run", 2, {}, mangle, attempted=3, o0=3))
    assert done.returncode == 0 and valid("status", done)
    assert done.stderr.count(b"\n") == 1 and b"readable with loss: 1 log damaged" in done.stderr


def test_status_warns_of_a_missing_log(slotprobe, good):
    next(good.glob("*.log")).unlink()
    done = slotprobe("status", good)
    assert done.returncode == 0 and b"1 log damaged or missing, 0 counters pages" in done.stderr


def test_status_knows_a_torn_tail_of_a_live_log_from_damage(slotprobe, tmp_path):
    chunks = fakerun.chunk(0, 0, [fakerun.step(1)])
    run = fakerun.make(tmp_path / "torn", p=fakerun.live_page(), log_bytes=fakerun.log(chunks=chunks + b"CHNK"))
    assert slotprobe("status", run).stderr == b""
    bad = bytearray(chunks)
    bad[60] ^= 1
    run = fakerun.make(tmp_path / "bad", p=fakerun.live_page(), log_bytes=fakerun.log(chunks=bytes(bad)))
    assert b"1 log damaged" in slotprobe("status", run).stderr


def test_status_watch_reads_the_logs_once(command, tmp_path):
    chunks = b"".join(fakerun.chunk(i, 0, []) for i in range(3000))
    run = fakerun.make(tmp_path / "run", p=fakerun.live_page(), log_bytes=fakerun.log(chunks=chunks))
    size = next(run.glob("*.log")).stat().st_size
    with subprocess.Popen([command, "status", "--watch", run], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        def turn():
            while not child.stdout.readline().startswith(b"run "):
                pass
            return int(pathlib.Path(f"/proc/{child.pid}/io").read_text().split()[1])  # rchar
        first, _, third = turn(), turn(), turn()
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 0
    assert size > 100000 and first > size and third - first < size * 1.6, (size, first, third)  # two turns read two pages, no log


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_status_watch_ends_with_the_run(command, tmp_path, json_too):
    with subprocess.Popen(["sleep", "60"]) as server:
        page = fakerun.page(server.pid, fakerun.starttime(server.pid), os.uname().nodename, fakerun.RUNNING)
        run = fakerun.make(tmp_path / "run", p=page)
        with subprocess.Popen([command, "status", "--watch", *json_too, run], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            first = child.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(2.5)
            server.kill()
            server.wait()
            rest = first + child.stdout.read()
            assert child.wait(20) == 0
    assert rest.count(b"killed") and (json_too or rest.splitlines()[0].startswith(b"run ") and b"running" in rest.splitlines()[0])


def test_status_watch_of_a_run_that_has_ended_prints_it_once(slotprobe, good):
    done = slotprobe("status", "--watch", good)
    assert (done.returncode, done.stdout) == (0, slotprobe("status", good).stdout) and b": ended" in done.stdout


def test_a_log_with_an_end_says_that_its_process_ended(slotprobe, good):
    next(good.glob("*.ctr")).unlink()
    process = valid("status", slotprobe("status", "--json", good))["processes"][0]
    assert (process["state"], process["comm"]) == ("ended", None)
    assert " unknown: ended" in slotprobe("status", good).stdout.decode()


def test_a_log_without_its_end_and_page(slotprobe, tmp_path):
    gone = subprocess.Popen(["true"])
    start = fakerun.starttime(gone.pid)
    gone.wait()
    run = fakerun.make(tmp_path / "run", p=fakerun.page(gone.pid, start, os.uname().nodename),
                       log_bytes=fakerun.log(gone.pid, start, fakerun.chunk(0, 0, [fakerun.step(1)])))
    next(run.glob("*.ctr")).unlink()
    assert valid("status", slotprobe("status", "--json", run))["processes"][0]["state"] == "killed"


@pytest.mark.parametrize("logs", [1, 2])
def test_plurals(slotprobe, tmp_path, logs):
    run = fakerun.make(tmp_path / "run", p=fakerun.page())
    for n in range(logs):
        (run / f"elsewhere.{n + 1}.1.ctr").write_bytes(bytes(fakerun.page(n + 1, 1)))
    for words, what in ((["status"], b"log"), (["export", "--format", "csv"], b"file")):
        said = slotprobe(*words, run).stderr
        assert (b"1 %s damaged" % what if logs == 1 else b"2 %ss damaged" % what) in said, said


def test_states(slotprobe, tmp_path):
    gone = subprocess.Popen(["true"])
    pid, start = gone.pid, fakerun.starttime(gone.pid)
    gone.wait()
    host = os.uname().nodename
    for name, p, state in [("live", fakerun.live_page(), "running"), ("killed", fakerun.page(pid, start, host, fakerun.RUNNING), "killed"),
                           ("reused", fakerun.page(os.getpid(), 1, host, fakerun.RUNNING), "killed"),
                           ("ended", fakerun.page(pid, start, host), "ended"),
                           ("foreign", fakerun.page(state=fakerun.RUNNING), "unknown")]:
        run = fakerun.make(tmp_path / name, {**fakerun.MANIFEST, "ended": None}, p)
        status = valid("status", slotprobe("status", "--json", run))
        assert (status["processes"][0]["state"], status["state"]) == (state, state), name


def test_a_zombie_is_not_alive(slotprobe, tmp_path):
    zombie = subprocess.Popen(["true"])
    start = fakerun.starttime(zombie.pid)
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    run = fakerun.make(tmp_path / "run", p=fakerun.page(zombie.pid, start, os.uname().nodename, fakerun.RUNNING))
    assert valid("status", slotprobe("status", "--json", run))["processes"][0]["state"] == "killed"
    zombie.wait()


def test_lives_of_one_process(slotprobe, tmp_path):
    run = fakerun.make(tmp_path / "run", p=fakerun.live_page())
    for file in list(run.glob("*.*.*.???")):
        (run / file.name.replace(".ctr", "-1.ctr").replace(".log", "-1.log")).write_bytes(file.read_bytes())
    processes = valid("status", slotprobe("status", "--json", run))["processes"]
    assert [p["state"] for p in processes] == ["killed", "running"]


def test_verify_good(slotprobe, good):
    done = slotprobe("verify", "--json", good, "--expect", "core.step>=2", "--expect", "core.*>=2")
    result = valid("verify", done)
    assert (done.returncode, result["verdict"], result["reasons"]) == (0, "whole", [])
    assert result["processes"][0]["log"]["records"] == 3 and result["processes"][0]["log"]["ended"]
    assert slotprobe("verify", good).stdout.decode().startswith("WHOLE")


@pytest.mark.parametrize("expect, code", [("core.step>=3", "below_expected"), ("core.donate>=1", "probe_never_fired"),
                                          ("core.nothing>=1", "probe_never_fired"), ("sglang.*>=1", "probe_never_fired")])
def test_verify_expect(slotprobe, good, expect, code):
    done = slotprobe("verify", "--json", good, "--expect", expect)
    assert done.returncode == 3 and [r["code"] for r in valid("verify", done)["reasons"]] == [code]


def test_verify_adapter_that_never_fired(slotprobe, tmp_path):
    manifest = {**fakerun.MANIFEST, "adapters": [{"name": "srv", "points": ["srv.donate", "srv.flush"]}]}
    p = fakerun.page(n_rows=len(fakerun.CORE_ROWS) + 1)
    p.row[len(fakerun.CORE_ROWS)] = fakerun.Row(name=b"srv.flush", kind=1)
    done = slotprobe("verify", "--json", fakerun.make(tmp_path / "a", manifest, p))
    assert done.returncode == 3 and [r["code"] for r in valid("verify", done)["reasons"]] == ["probe_never_fired"]
    fakerun.count(p, "srv.flush", 1, o0=1)
    assert slotprobe("verify", fakerun.make(tmp_path / "b", manifest, p)).returncode == 0


def steps_run(folder, steps, page_fields, mangle=lambda b: b, **counts):
    chunks = fakerun.chunk(0, 0, [fakerun.step(i + 1) for i in range(steps)]) + fakerun.chunk(1, steps, [fakerun.step(steps + 1)])
    p = fakerun.count(fakerun.page(**page_fields), "core.step", **counts)
    return fakerun.make(folder, p=p, log_bytes=mangle(fakerun.log(chunks=chunks)))


@pytest.mark.parametrize("counts, fields, code", [
    ({"attempted": 3, "o0": 3}, {}, None),
    ({"attempted": 4, "o0": 4}, {}, "log_counters_disagree"),
    ({"attempted": 2, "o0": 2}, {}, "log_counters_disagree"),
    ({"attempted": 3, "o0": 2, "in_flight": 1}, {"state": fakerun.RUNNING}, None),
    ({"attempted": 4, "o0": 3, "in_flight": 1}, {"state": fakerun.RUNNING}, None),
    ({"attempted": 3, "o0": 1, "in_flight": 1, "o10": 1}, {"state": fakerun.RUNNING}, "log_counters_disagree"),
    ({"attempted": 4, "o0": 3, "o11": 1}, {}, "records_dropped"),
    ({"attempted": 3, "o0": 3}, {"records_written": 4}, "log_truncated"),
    ({"attempted": 3, "o0": 3}, {"disk_stop_real_ns": 4}, "records_dropped"),
])
def test_verify_holds_the_log_against_the_counters(slotprobe, tmp_path, counts, fields, code):
    done = slotprobe("verify", "--json", steps_run(tmp_path / "run", 2, fields, **counts))
    codes = [r["code"] for r in valid("verify", done)["reasons"]]
    assert done.returncode == (3 if code else 0), codes
    assert (code in codes) if code else not codes


def test_verify_names_what_was_lost_in_flight(slotprobe, tmp_path):
    """Counted to the last one: whole, and said."""
    run = steps_run(tmp_path / "run", 2, {"state": fakerun.RUNNING}, attempted=5, o0=3, in_flight=2)
    done = slotprobe("verify", "--json", run)
    (process,) = valid("verify", done)["processes"]
    assert (done.returncode, process["in_flight"], process["lost_in_flight"]) == (0, 2, {"core.step": 2})
    text = slotprobe("verify", run).stdout.decode()
    (line,) = [n for n in text.splitlines() if "lost in flight" in n]
    assert text.startswith("WHOLE") and "core.step: 2 attempts" in line
    # what is alive has lost nothing, and what reconciles not is not whole
    p = fakerun.count(fakerun.live_page(), "core.step", 5, in_flight=5)
    live = fakerun.make(tmp_path / "live", p=p)
    (process,) = valid("verify", slotprobe("verify", "--json", live))["processes"]
    assert (process["in_flight"], process["lost_in_flight"]) == (5, {})
    assert "lost in flight" not in slotprobe("verify", live).stdout.decode()
    bad = steps_run(tmp_path / "bad", 2, {"state": fakerun.RUNNING}, attempted=6, o0=3, in_flight=2)
    assert slotprobe("verify", bad).returncode == 3


def test_verify_of_an_adapter_with_errors(slotprobe, tmp_path):
    p = fakerun.page(n_rows=len(fakerun.CORE_ROWS) + 1)
    p.row[len(fakerun.CORE_ROWS)] = fakerun.Row(name=b"srv.symbols", kind=1)
    fakerun.count(p, "srv.symbols", 2, o0=1, o18=1)
    done = slotprobe("verify", "--json", fakerun.make(tmp_path / "run", p=p))
    (reason,) = valid("verify", done)["reasons"]
    assert done.returncode == 3 and reason["code"] == "adapter_error" and "srv.symbols: 1 of 2" in reason["text"]


@pytest.mark.parametrize("committed, code", [(4, "log_counters_disagree"), (2, None)])
def test_verify_of_a_live_process(slotprobe, tmp_path, committed, code):
    """The log may have grown since the counters were read; it must not hold less than they say."""
    chunks = fakerun.chunk(0, 0, [fakerun.step(i) for i in (1, 2, 3)])
    p = fakerun.count(fakerun.live_page(), "core.step", committed, o0=committed)
    done = slotprobe("verify", "--json", fakerun.make(tmp_path / "run", p=p, log_bytes=fakerun.log(p.pid, p.starttime, chunks + b"CHNK")))
    assert [r["code"] for r in valid("verify", done)["reasons"]] == ([code] if code else [])


@pytest.mark.parametrize("mangle, code", [
    (lambda b: b[:-5], "log_truncated"),
    (lambda b: b + b"CHNK", "log_truncated"),
    (lambda b: b[:200] + b"\xff" + b[201:], "log_damaged"),
    (lambda b: b[:72] + b[72 + 48 + 2 * 112:], "log_damaged"),
])
def test_verify_damaged_log(slotprobe, tmp_path, mangle, code):
    run = steps_run(tmp_path / "run", 2, {}, mangle, attempted=3, o0=3)
    done = slotprobe("verify", "--json", run)
    assert done.returncode == 3 and code in [r["code"] for r in valid("verify", done)["reasons"]]
    done = slotprobe("export", "--format", "jsonl", run)
    assert done.returncode == 0 and b"readable with loss" in done.stderr and done.stderr.count(b"\n") == 1


def test_verify_missing_log(slotprobe, good):
    next(good.glob("*.log")).unlink()
    done = slotprobe("verify", "--json", good)
    assert done.returncode == 3 and [r["code"] for r in valid("verify", done)["reasons"]] == ["log_truncated"]


def test_export(slotprobe, good):
    lines = [json.loads(line) for line in slotprobe("export", "--format", "jsonl", good).stdout.splitlines()]
    assert [line["type"] for line in lines if line["type"] not in ("probe", "counter")] == ["run", "step", "step", "end"]
    assert {line["name"] for line in lines if line["type"] in ("probe", "counter")} == set(fakerun.CORE_ROWS)
    lines = [line for line in lines if line["type"] not in ("probe", "counter")]
    assert (lines[1]["number"], lines[1]["name"], lines[1]["batch"]) == (1, "decode", 1)
    assert lines[0]["manifest"] == fakerun.MANIFEST
    assert lines[3]["t_real_ns"] == 1 and lines[1]["t_ns"] == 1  # as the man page says: plain integers
    assert "plain integers" in (ROOT / "docs" / "man" / "slotprobe-export.1").read_text()
    rows = list(csv.reader(io.StringIO(slotprobe("export", "--format", "csv", good).stdout.decode())))
    assert len(rows) == 1 and rows[0][:4] == ["host", "pid", "starttime", "rank"]
    assert slotprobe("export", "--format", "jsonl", good, "-o", "out").returncode == 0


def test_color(slotprobe, good):
    def colored(*arguments, **env):
        return b"\033[" in slotprobe("status", good, *arguments, env=env).stdout
    assert not colored() and colored("--color", "always") and colored(CLICOLOR_FORCE="1")
    assert not colored(CLICOLOR_FORCE="1", NO_COLOR="1") and not colored("--color", "never", CLICOLOR_FORCE="1")
    assert not colored(CLICOLOR_FORCE="0") and not colored("--json", "--color", "always")


# ---- ctl ----


class Obeys(contextlib.AbstractContextManager):
    """Plays the preload of this process: obeys the control words of a page until the block ends."""

    def __init__(self, run, obeys=True):
        self.file = open(next(run.glob("*.ctr")), "r+b")
        self.map = mmap.mmap(self.file.fileno(), ctypes.sizeof(fakerun.Page))
        self.page = fakerun.Page.from_buffer(self.map)
        self.obeys, self.stop, self.labels = obeys, threading.Event(), []
        self.thread = threading.Thread(target=self.turn)

    def turn(self):
        p = self.page
        while not self.stop.wait(0.005):
            if not self.obeys:
                continue
            p.recording, p.level, p.flush_done = p.ctl_recording, p.ctl_level, p.ctl_flush
            if p.ctl_label_seq != p.label_done and p.ctl_label_seq % 2 == 0:
                self.labels.append(p.ctl_label)
                p.label_done = p.ctl_label_seq

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        del self.page
        self.map.close()
        self.file.close()


def test_ctl_is_obeyed(slotprobe, tmp_path):
    run = fakerun.make(tmp_path / "run", p=fakerun.live_page(recording=0))
    with Obeys(run) as preload:
        for words in (["start"], ["level", "launches"], ["flush"], ["flush"], ["label", "warm up"], ["label", "x" * 63]):
            done = slotprobe("ctl", run, *words)
            assert (done.returncode, done.stderr) == (0, b""), done
            assert b"obeyed" in done.stdout
        status = valid("status", slotprobe("status", "--json", run))["processes"][0]
        assert (status["recording"], status["level"], status["label"]) == (True, "launches", "x" * 63)
        assert preload.page.ctl_flush == 2 and preload.labels == [b"warm up", b"x" * 63]
        assert slotprobe("ctl", run, "stop").returncode == 0 and preload.page.recording == 0


def test_ctl_waits_no_longer_than_two_seconds(slotprobe, tmp_path):
    run = fakerun.make(tmp_path / "run", p=fakerun.live_page())
    with Obeys(run, obeys=False):
        begun = time.monotonic()
        done = slotprobe("ctl", run, "stop")
        assert 1.5 < time.monotonic() - begun < 5
    assert done.returncode == 2 and b"not obeyed" in done.stdout and b"0 of 1" in done.stderr


def test_ctl_json(slotprobe, tmp_path):
    run = fakerun.make(tmp_path / "run", p=fakerun.live_page(recording=0))
    with Obeys(run) as preload:
        done = slotprobe("ctl", run, "start", "--json")
        assert (done.returncode, done.stderr) == (0, b"")
        assert valid("ctl", done) == {"schema_version": 1, "run": str(run), "exit_status": 0,
                                      "processes": [{"host": os.uname().nodename, "pid": os.getpid(), "obeyed": True}]}
        preload.obeys = False
        done = slotprobe("ctl", "--format", "json", run, "stop")
        result = valid("ctl", done)
        assert done.returncode == result["exit_status"] == 2 and not result["processes"][0]["obeyed"]


def test_ctl_without_a_live_process(slotprobe, good):
    refused(slotprobe("ctl", good, "stop"), 2, "no live process")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_ctl_of_somebody_elses_run(slotprobe, tmp_path):
    run = fakerun.make(tmp_path / "run", p=fakerun.live_page())
    before = next(run.glob("*.ctr")).read_bytes()
    os.chown(run, 65534, 65534)
    refused(slotprobe("ctl", run, "stop"), 2, "belongs to user 65534")
    assert next(run.glob("*.ctr")).read_bytes() == before


# ---- record ----


def never_loaded(done, status=0):
    """The command's status, and the one line for a run in which nothing recorded."""
    assert done.returncode == status, (done.returncode, done.stderr)
    assert done.stderr.count(b"\n") == 1 and b"never_loaded" in done.stderr, done.stderr
    return done


def manifest_of(run):
    return json.loads((run / "run.json").read_text())


def test_record_says_which_directory_it_chose(slotprobe, tmp_path):
    (tmp_path / "slotprobe-run.1").mkdir()
    done = slotprobe("record", "true")
    assert done.stderr.decode().splitlines()[0] == "slotprobe record: recording into 'slotprobe-run.2'"
    never_loaded(slotprobe("record", "-o", "mine", "true"))  # and says nothing of one that it was given


@pytest.mark.parametrize("arm, like", [("GRAPH_OFF", "graph-off"), ("graph on", "graph-on"), ("grahp-on", "graph-on"), ("grahp-no", "graph-on"),
                                       ("graph-onn", "graph-on"), ("off", "graph-off"), ("graph-off", None),
                                       ("graph-off-2", None), ("tuned", None)])
def test_record_says_before_it_begins_that_an_arm_is_nearly_known(slotprobe, tmp_path, arm, like):
    done = slotprobe("record", "-o", tmp_path / "run", "--arm", arm, "true")
    assert done.returncode == 0
    said = done.stderr.decode()
    assert (f"the arm '{arm}' is nearly {like} and is not" in said) if like else "nearly" not in said


def test_record_true(slotprobe, tmp_path):
    assert b"never_loaded" in slotprobe("record", "--arm", "graph-on", "true").stderr
    run = tmp_path / "slotprobe-run.1"
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    assert [f.name for f in run.iterdir()] == ["run.json"]
    assert stat.S_IMODE((run / "run.json").stat().st_mode) == 0o600
    m = manifest_of(run)
    jsonschema.validate(m, schema("run"), jsonschema.Draft202012Validator)
    assert (m["arm"], m["argv"], m["exit"], m["cwd"]) == ("graph-on", ["true"], 0, str(tmp_path))
    assert m["started"] < m["ended"] and m["host"] == os.uname().nodename
    slotprobe("record", "true")
    assert manifest_of(tmp_path / "slotprobe-run.2")["arm"] is None


@pytest.mark.parametrize("script, status", [("exit 0", 0), ("exit 7", 7), ("exit 125", 125), ("kill -TERM $$", 143), ("kill -KILL $$", 137),
                                            ("kill -SEGV $$", 139)])
def test_record_status(slotprobe, tmp_path, script, status):
    said = never_loaded(slotprobe("record", "-o", "r", "--", "/bin/sh", "-c", script), status).stderr.decode()
    how = f"was ended by signal {status - 128}" if status > 128 else f"failed with status {status}"
    assert said.endswith(f"; the command itself {how}\n") if status else "the command itself" not in said
    assert manifest_of(tmp_path / "r")["exit"] == status


@pytest.mark.parametrize("cmd, status", [("no-such-command", 127), ("./no/such", 127), ("/etc/passwd", 126), ("/tmp", 126), ("", 127)])
def test_record_cannot_run(slotprobe, tmp_path, cmd, status):
    refused(slotprobe("record", "-o", "r", "--", cmd), status, "cannot run")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("arguments, words", [
    (["--level", "nodes", "true"], ["not built yet"]),
    (["--level", "lots", "true"], ["donations/launches/nodes"]),
    (["--min-free", "2X", "true"], ["--min-free"]),
    (["--max-size", "-1", "true"], ["--max-size"]),
    (["--max-size", "99999999T", "true"], ["--max-size"]),
    (["--watch-slot", "three", "true"], ["integer"]),
    (["--probe", "nonesuch", "true"], ["unknown probe 'nonesuch'", "/probes"]),
    (["--probe", "./nonesuch", "true"], ["./nonesuch"]),
    (["--arm", "x" * 128, "true"], ["--arm"]),
    (["--arm", "a\nb", "true"], ["control character"]),
    (["--label", "x" * 64, "true"], ["--label"]),
    (["--arm", "--level", "launches", "true"], ["--arm needs a value"]),
    (["--arm", "a", "--arm", "b", "true"], ["twice"]),
    (["--watch-slot", "1"] * 65 + ["true"], ["at most 64"]),
    (["-o", "no/such/folder/r", "true"], ["no/such/folder/r"]),
    (["-o", "/proc/r", "true"], ["/proc/r"]),
])
def test_record_refuses(slotprobe, tmp_path, arguments, words):
    refused(slotprobe("record", *arguments), 125, *words)
    assert not list(tmp_path.iterdir())


def test_record_never_into_an_existing_run(slotprobe, tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "l").symlink_to("nowhere")
    refused(slotprobe("record", "-o", "r", "touch", "ran"), 125, "there already")
    refused(slotprobe("record", "-o", "l", "touch", "ran"), 125, "there already")
    assert not (tmp_path / "ran").exists() and not list((tmp_path / "r").iterdir())


def test_record_leaves_options_of_the_command_alone(slotprobe):
    done = never_loaded(slotprobe("record", "-o", "r", "echo", "--arm", "-o", "--", "x"))
    assert done.stdout == b"--arm -o -- x\n"


def test_record_leaves_the_standard_files_alone(slotprobe):
    done = slotprobe("record", "-o", "r", "sh", "-c", "cat; echo err >&2; ls /proc/self/fd | wc -l", input=b"in\n")
    assert done.stdout.startswith(b"in\n") and done.stderr.startswith(b"err\n")
    bare = subprocess.run(["sh", "-c", "cat; echo err >&2; ls /proc/self/fd | wc -l"], input=b"in\n", capture_output=True)
    assert done.stdout == bare.stdout


def adapter(folder, name, library=True, package=False, points="# mine\nsrv.donate\n\n  srv.flush # later\n"):
    folder.mkdir(exist_ok=True)
    if library:
        source = f"int slotprobe_test_{name};"
        subprocess.run(["gcc", "-shared", "-x", "c", "-", "-o", folder / f"{name}.so"], input=source.encode(), check=True)
    if package:
        (folder / name).mkdir()
    if points is not None:
        (folder / f"{name}.points").write_text(points)
    return folder


def environment_of(done):
    return dict(line.split("=", 1) for line in done.stdout.decode().split("\0") if line)


def test_record_environment(slotprobe, command, tmp_path):
    folder = adapter(tmp_path / "p", "srv", package=True)
    extra = adapter(tmp_path / "q", "extra", points=None) / "extra.so"
    done = never_loaded(slotprobe("record", "-o", "r", "--arm", "graph-off", "--probe", "srv", "--level", "launches", "--paused",
                                  "--watch-slot", "0", "--watch-slot", "-7", "--min-free", "1K", "--max-size", "3m", "--label", "a b",
                                  "--keep-keys", "env", "-0",
                                  env={"SLOTPROBE_PROBE_PATH": f"/nowhere:{folder}", "LD_PRELOAD": str(extra), "PYTHONPATH": "/py"}))
    e = environment_of(done)
    assert e["LD_PRELOAD"] == f"{command.parent}/libslotprobe.so:{folder}/srv.so:{extra}"
    assert e["PYTHONPATH"] == f"{folder}/srv:/py"
    names = ["DIR", "ARM", "RECORDING", "LEVEL", "PROBES", "WATCH", "LABEL", "MIN_FREE", "MAX_SIZE", "KEEP_KEYS"]
    assert [e["SLOTPROBE_" + n] for n in names] == [str(tmp_path / "r"), "graph-off", "0", "launches", "srv.donate,srv.flush", "0,-7", "a b",
                                                    "1024", str(3 << 20), "1"]
    m = manifest_of(tmp_path / "r")
    assert m["adapters"] == [{"name": "srv", "library": f"{folder}/srv.so", "package": f"{folder}/srv", "points": ["srv.donate", "srv.flush"]}]
    assert m["options"]["watch_slots"] == [0, -7] and m["options"]["label"] == "a b" and m["options"]["paused"] is True


def test_record_does_not_inherit_what_was_not_asked_for(slotprobe, tmp_path):
    e = environment_of(slotprobe("record", "-o", "r", "env", "-0", env={"SLOTPROBE_ARM": "graph-on", "SLOTPROBE_LABEL": "x", "SLOTPROBE_WATCH": "3"}))
    assert not {"SLOTPROBE_ARM", "SLOTPROBE_LABEL", "SLOTPROBE_WATCH", "PYTHONPATH"} & e.keys() and e["SLOTPROBE_RECORDING"] == "1"


def test_record_watches_what_the_adapter_asks_for(slotprobe, tmp_path):
    """Unless the user names slots."""
    folder = adapter(tmp_path / "p", "srv", points="watch 0 # strays\n a.b\nwatch\t12\n")
    e = environment_of(never_loaded(slotprobe("record", "-o", "r", "--probe", folder / "srv", "env", "-0")))
    assert (e["SLOTPROBE_WATCH"], e["SLOTPROBE_PROBES"]) == ("0,12", "a.b")
    assert manifest_of(tmp_path / "r")["options"]["watch_slots"] == [0, 12]
    e = environment_of(never_loaded(slotprobe("record", "-o", "s", "--watch-slot", "5", "--probe", folder / "srv", "env", "-0")))
    assert e["SLOTPROBE_WATCH"] == "5" and manifest_of(tmp_path / "s")["options"]["watch_slots"] == [5]


def test_record_probe_by_path(slotprobe, tmp_path):
    folder = adapter(tmp_path / "p", "srv")
    for i, given in enumerate([f"{folder}/srv", f"{folder}/srv.so", "./p/srv"]):
        e = environment_of(never_loaded(slotprobe("record", "-o", f"r{i}", "--probe", given, "env", "-0")))
        assert f"{folder}/srv.so" in e["LD_PRELOAD"]


@pytest.mark.parametrize("points", [None, "", "nodot\n", "a.b c.d\n", "a." + "x" * 60 + "\n", "a.b\x1b\n", "\n".join(f"a.b{i}" for i in range(300)),
                                    "a.b\nwatch x\n", "a.b\nwatch -1\n", "a.b\nwatch 1 2\n", "a.b\nwatch 99999999999999999999\n", "watch 1\n",
                                    "a.b\n# " + "x" * 509 + "c.d\n"],
                         ids=["none", "empty", "nodot", "two", "long", "control", "many", "watch", "negative", "slots", "huge", "watch-only", "cut"])
def test_record_bad_points(slotprobe, tmp_path, points):
    folder = adapter(tmp_path / "p", "srv", points=points)
    refused(slotprobe("record", "-o", "r", "--probe", folder / "srv", "true"), 125, "srv.points")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("name", ["with space", "with:colon"])
def test_record_says_what_ld_preload_cannot_carry(slotprobe, tmp_path, name):
    folder = adapter(tmp_path / name, "srv")
    refused(slotprobe("record", "-o", "r", "--probe", folder / "srv.so", "true"), 125, "LD_PRELOAD cannot carry")


def test_record_from_a_folder_without_the_library(command, tmp_path):
    copy = tmp_path / "slotprobe"
    copy.write_bytes(command.read_bytes())
    copy.chmod(0o755)
    done = subprocess.run([copy, "record", "true"], cwd=tmp_path, capture_output=True, timeout=60)
    refused(done, 125, "libslotprobe.so was not found")


def test_record_keeps_secrets_out_of_the_manifest(slotprobe, tmp_path):
    folder = adapter(tmp_path / "p", "srv")
    env = {"SRV_API_KEY": "s3cret1", "CUDA_TOKEN_X": "s3cret2", "SRV_PORT": "8000", "CUDA_MODE": "x", "HOME_SECRET": "s3cret3", "OTHER": "unlisted"}
    never_loaded(slotprobe("record", "-o", "r", "--probe", folder / "srv", "true", "--api-key", "s3cret4", "--Password=s3cret5", "x",
                           "serve --hf-token s3cret6 --port 1; MY_SECRET=s3cret7 run", env=env))
    text, listed = (tmp_path / "r" / "run.json").read_text(), manifest_of(tmp_path / "r")["env"]
    assert "s3cret" not in text and "--port 1" in text
    assert (listed["SRV_PORT"], listed["CUDA_MODE"], listed["SRV_API_KEY"]) == ("8000", "x", "[redacted]")
    assert not {"OTHER", "HOME_SECRET"} & listed.keys()


def test_record_of_a_static_program(slotprobe, tmp_path):
    subprocess.run(["gcc", "-static", "-x", "c", "-", "-o", tmp_path / "st"], input=b"int main(void){return 4;}", check=True)
    done = never_loaded(slotprobe("record", "-o", "r", "./st"), 4)
    assert b"statically linked" in done.stderr
    done = slotprobe("doctor", "--json", "--", "./st")
    command = next(c for c in valid("doctor", done)["checks"] if c["name"] == "command")
    assert done.returncode == 1 and command["state"] == "problem" and "statically" in command["text"] and command["remedy"]


FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGALRM", "SIGCONT", "SIGRTMIN"]
CATCHER = """import signal, sys
names = sys.argv[1:]
signal.pthread_sigmask(signal.SIG_BLOCK, [getattr(signal, n) for n in names])
print("ready", flush=True)
for _ in names:
    print(signal.sigwait([getattr(signal, n) for n in names]), flush=True)
"""


@contextlib.contextmanager
def recording(command, tmp_path, *arguments):
    child = subprocess.Popen([command, "record", "-o", tmp_path / "r", *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, process_group=0)  # of an orphaned group, CI's perhaps, nobody is stopped
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        child.stderr.close()


@pytest.mark.parametrize("name", FORWARDED)
def test_record_forwards(command, tmp_path, name):
    with recording(command, tmp_path, sys.executable, "-c", CATCHER, name) as child:
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(getattr(signal, name))
        assert int(child.stdout.readline().split(b".")[-1].strip() or 0) == getattr(signal, name)
        assert child.wait(20) == 0


def test_record_dies_as_its_command_does(command, tmp_path):
    with recording(command, tmp_path, "sh", "-c", "echo ready; exec sleep 60") as child:
        child.stdout.readline()
        child.terminate()
        assert child.wait(20) == 143
    assert manifest_of(tmp_path / "r")["exit"] == 143


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def until(condition, seconds=30):
    """Whether it came true; long enough for a sanitizer's build on a machine that has other work."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("script", ["rm -rf r; ln -s elsewhere r", "rm -rf r; mkdir r", "rm -rf r"])
def test_record_writes_nothing_into_what_took_the_place_of_its_run(slotprobe, tmp_path, script):
    (tmp_path / "elsewhere").mkdir()
    done = slotprobe("record", "-o", "r", "sh", "-c", script)
    assert done.returncode == 0 and b"is not the directory that was made any more" in done.stderr
    assert not list((tmp_path / "elsewhere").iterdir()) and not (tmp_path / "r" / "run.json").exists()


def test_record_stops_and_goes_on_with_its_command(command, tmp_path):
    with recording(command, tmp_path, "sh", "-c", "echo $$; exec sleep 60") as child:
        pid = int(child.stdout.readline())
        child.send_signal(signal.SIGTSTP)
        assert until(lambda: state_of(pid) == "T" and state_of(child.pid) == "T")
        child.send_signal(signal.SIGCONT)
        assert until(lambda: state_of(pid) == "S" and state_of(child.pid) == "S")
        child.terminate()
        assert child.wait(20) == 143


COUNTS = """import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print("ready", flush=True)
while signal.sigtimedwait([signal.SIGINT], 3):
    print("interrupt", flush=True)
"""


def test_record_under_a_terminal_passes_ctrl_c_once(command, tmp_path):
    """The terminal reaches the command itself: record must not send the signal a second time."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(tmp_path)
        os.execv(command, ["slotprobe", "record", "-o", "r", sys.executable, "-c", COUNTS])
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1000)
    os.kill(pid, signal.SIGSTOP)  # so that a second one cannot melt into the first
    assert until(lambda: state_of(pid) == "T")
    os.write(terminal, b"\x03")
    while b"interrupt" not in said:
        said += os.read(terminal, 1000)
    os.kill(pid, signal.SIGCONT)
    with contextlib.suppress(OSError):
        while True:
            said += os.read(terminal, 1000)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    assert said.count(b"interrupt") == 1, said


def ignore(*signals):
    for s in signals:
        signal.signal(s, signal.SIG_IGN)


def test_record_gives_ignored_signals_on(slotprobe):
    """As nohup does: what was ignored before stays ignored, and SIGCHLD ignored does not lose the status."""
    done = slotprobe("record", "-o", "r", "sh", "-c", "grep SigIgn /proc/self/status; exit 5",
                     preexec_fn=lambda: ignore(signal.SIGHUP, signal.SIGCHLD))
    assert done.returncode == 5
    ignored = int(done.stdout.split()[1], 16)
    assert ignored & 1 << (signal.SIGHUP - 1)


# ---- selftest, doctor ----


def test_selftest_without_a_driver(slotprobe):
    done = slotprobe("selftest", "--driver", "cuda", env={"LD_LIBRARY_PATH": "/nonexistent"})
    if done.returncode == 0:
        pytest.skip("this machine has a CUDA driver that works")
    refused(done, 1)


def test_selftest_never_hides_a_broken_driver(slotprobe, tmp_path):
    """A libcuda.so.1 that is there and whose cuInit fails: auto must fail with it, not fall back to the CPU."""
    source = b"int cuInit(unsigned f){(void)f;return 999;}int cuDriverGetVersion(int*v){*v=13000;return 0;}int cuDeviceGetCount(int*n){*n=0;return 0;}" \
             b"int cuDeviceGet(int*d,int i){*d=i;return 0;}int cuDeviceGetName(char*n,int l,int d){(void)l;(void)d;*n=0;return 0;}"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "libcuda.so.1"], input=source, check=True)
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    refused(slotprobe("selftest", env=env), 1, "cuInit returned 999")
    done = slotprobe("doctor", "--json", env=env)
    driver = next(c for c in valid("doctor", done)["checks"] if c["name"] == "driver")
    assert done.returncode == 1 and driver["state"] == "problem" and "999" in driver["text"]
    (tmp_path / "libcuda.so.1").write_bytes(b"\x7fELF not really")
    refused(slotprobe("selftest", env=env), 1, "does not work")


def test_selftest_survives_a_driver_that_crashes(slotprobe, tmp_path):
    source = b"#include <stdlib.h>\n__attribute__((constructor)) static void boom(void){abort();}"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "libcuda.so.1"], input=source, check=True)
    refused(slotprobe("selftest", env={"LD_LIBRARY_PATH": str(tmp_path)}), 1, "crashed")


@pytest.fixture(scope="session")
def toy(command):
    """The toy server and the CPU driver beside the command."""
    server, driver = command.parent / "toyserver" / "toyserver", command.parent / "cpudriver"
    if not server.exists():
        pytest.skip("the toy server is not built beside the command")
    return server, {"LD_LIBRARY_PATH": str(driver)}


def test_export_writes_no_binary_to_a_terminal(command, tmp_path):
    main, terminal = os.openpty()
    done = subprocess.run([command, "export", "--format", "perfetto", tmp_path], stdout=terminal, stderr=subprocess.PIPE, check=False)
    os.close(terminal)
    os.close(main)
    assert done.returncode == 2 and b"give -o FILE" in done.stderr


def test_record_says_what_was_not_measured(slotprobe, toy, tmp_path):
    server, env = toy
    for options, said in (("--max-size", "10"), ["slotprobe record: 113 of 113 donations and restores were not measured (the disk guard had stopped the "
                           f"payload): 'slotprobe status {tmp_path / 'r'}' shows all counters"]), ((), []), (("--paused",), []):
        done = slotprobe("record", "-o", tmp_path / "r", *options, "--", server, env=env)
        assert (done.returncode, done.stderr.decode().splitlines()) == (0, said)
        shutil.rmtree(tmp_path / "r")


def test_selftest_on_the_cpu(slotprobe, toy, tmp_path):
    done = slotprobe("selftest", "--driver", "cpu", "--json", env={"TMPDIR": str(tmp_path)})
    result = valid("selftest", done)
    assert done.returncode == 0 and not done.stderr and not list(tmp_path.iterdir())
    assert [(c["expected"], c["got"], c["held"]) for c in result["controls"]] == [(0, 0, True), (1, 1, True), (3, 3, True)]
    assert result["driver"] == "cpu" and result["device"]
    for control in result["controls"]:
        said = control["text"].split(";")[0].partition(": ")[2].split(", ")
        assert len(said) == len(set(said)), control


def test_the_stand_in_is_no_cuda_driver(slotprobe, toy, tmp_path):
    """With the CPU driver where the loader finds it: cuda fails, auto says cpu, doctor says what to do."""
    env = {**toy[1], "TMPDIR": str(tmp_path)}
    refused(slotprobe("selftest", "--driver", "cuda", env=env), 1, "stand-in", "LD_LIBRARY_PATH")
    done = slotprobe("selftest", "--json", env=env)
    assert done.returncode == 0 and valid("selftest", done)["driver"] == "cpu"
    done = slotprobe("doctor", "--json", env=env)
    checks = {c["name"]: c for c in valid("doctor", done)["checks"]}
    assert done.returncode == 1 and checks["driver"]["state"] == "problem" and "stand-in" in checks["driver"]["text"]
    assert "remove it from LD_LIBRARY_PATH" in checks["driver"]["remedy"] and checks["ptx"]["state"] == "warning"


def test_selftest_leaves_nothing_behind_when_nobody_listens(slotprobe, toy, tmp_path):
    done = into_a_closed_pipe(slotprobe, "selftest", "--driver", "cpu", env={"TMPDIR": str(tmp_path)})
    assert done.returncode == -signal.SIGPIPE and not list(tmp_path.iterdir())


def test_selftest_says_when_it_cannot_record(slotprobe, toy, tmp_path):
    refused(slotprobe("selftest", "--driver", "cpu", env={"TMPDIR": str(tmp_path / "absent")}), 1, "TMPDIR")


@contextlib.contextmanager
def serving(slotprobe, command, toy, tmp_path, *options):
    """A toy server that is being recorded, and its pid."""
    server, env = toy
    child = subprocess.Popen([command, "record", "-o", tmp_path / "r", *options, "--", server, "--requests", "1000000"], cwd=tmp_path,
                             env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        def donating():
            status = slotprobe("status", "--json", tmp_path / "r")
            processes = json.loads(status.stdout)["processes"] if status.returncode == 0 else []
            rows = {p["name"]: p["attempted"] for p in (processes[0]["probes"] or []) if processes} if processes else {}
            return rows.get("core.donate", 0) > 200 and processes[0]["pid"]
        assert until(donating)
        yield child, donating()
    finally:
        child.terminate()
        child.wait(20)
        child.stderr.close()


def row_of(slotprobe, run, name):
    return probe(valid("status", slotprobe("status", "--json", run)), name)


def test_a_served_run_is_steered_read_and_killed(slotprobe, command, toy, tmp_path):
    run = tmp_path / "r"
    with serving(slotprobe, command, toy, tmp_path, "--paused", "--label", "first") as (child, pid):
        assert row_of(slotprobe, run, "core.donate")["committed"] == 0
        assert slotprobe("ctl", run, "start").returncode == 0
        assert until(lambda: row_of(slotprobe, run, "core.donate")["committed"] > 100)
        assert slotprobe("ctl", run, "label", "second").returncode == 0
        assert slotprobe("ctl", run, "flush").returncode == 0
        assert slotprobe("verify", run, "--expect", "core.donate>=100").returncode == 0
        for _ in range(20):
            assert row_of(slotprobe, run, "core.donate")["reconciled"]
        os.kill(pid, signal.SIGKILL)
        assert child.wait(20) == 137
    status = valid("status", slotprobe("status", "--json", run))
    row = row_of(slotprobe, run, "core.donate")
    assert (status["state"], status["processes"][0]["state"], status["processes"][0]["label"]) == ("ended", "killed", "second")
    done = slotprobe("verify", "--json", run)
    codes = {r["code"] for r in valid("verify", done)["reasons"]}
    # A chunk may have been torn, and a writer that came to no turn in time have dropped, which then is counted; nothing else.
    dropped = sum(sum(p["dropped"].values()) for p in status["processes"][0]["probes"])
    assert codes <= ({"log_truncated", "records_dropped"} if dropped else {"log_truncated"}), codes
    rows = list(csv.DictReader(io.StringIO(slotprobe("export", "--format", "csv", run).stdout.decode())))
    measured = [r for r in rows if r["kind"] == "donate" and r["outcome"] == "committed" and r["rollup"]]
    assert row["committed"] <= len(measured) <= row["committed"] + row["in_flight"]
    labels = [json.loads(line)["label"] for line in slotprobe("export", "--format", "jsonl", run).stdout.splitlines() if b'"control"' in line]
    assert "second" in labels


def test_status_watch(command, tmp_path):
    run = fakerun.make(tmp_path / "run", p=fakerun.live_page())
    with subprocess.Popen([command, "status", "--watch", run], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        first = child.stdout.readline()
        assert first.startswith(b"run ")
        while child.stdout.readline() != first:  # the second time that it is printed
            pass
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 0


def test_doctor(slotprobe):
    done = slotprobe("doctor", "--json")
    result = valid("doctor", done)
    assert [c["name"] for c in result["checks"]] == ["driver", "ptx", "library", "preload", "command", "launcher", "audit", "libunwind", "disk",
                                                    "permissions"]
    assert done.returncode == int(any(c["state"] == "problem" for c in result["checks"]))
    assert all(c["remedy"] for c in result["checks"] if c["state"] != "ok")
    done = slotprobe("doctor", "--json", "--", "no-such-command")
    assert "problem" in [c["state"] for c in valid("doctor", done)["checks"] if c["name"] == "command"]
    done = slotprobe("doctor", "--json", env={"LD_PRELOAD": "/no/such.so"})
    assert "problem" in [c["state"] for c in valid("doctor", done)["checks"] if c["name"] == "preload"]


# ---- what is made from the tables ----


def test_man_pages_and_completion_are_those_of_the_tables(command):
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "man" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    sys.dont_write_bytecode = before
    made = generate.pages(command)
    assert len(made) == 3 + len(VERBS)
    for path, text in made.items():
        assert (ROOT / "docs" / path).read_text() == text, f"docs/{path} is stale: run docs/man/generate.py build/slotprobe"


def test_completion_completes(command):
    script = (f'source "{ROOT}/docs/completions/slotprobe.bash"; COMP_WORDS=(slotprobe diff --align ""); COMP_CWORD=3; _slotprobe; '
              'echo "${COMPREPLY[@]}"; COMP_WORDS=(slotprobe di); COMP_CWORD=1; _slotprobe; echo "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60)
    assert done.stdout.decode().splitlines() == ["auto slot key order", "diff"], done


@pytest.mark.parametrize("words, offered", [("slotprobe report --format ''", "text json html"), ("slotprobe export --format ''", "jsonl csv perfetto"),
                                            ("slotprobe record --level ''", "donations launches"), ("slotprobe diff --no", "--noise"),
                                            ("slotprobe diff --rt", "--rtol"), ("slotprobe diff --th", "--third"), ("slotprobe help veri", "verify")])
def test_completion_offers_nothing_that_is_not_built(words, offered):
    script = (f'source "{ROOT}/docs/completions/slotprobe.bash"; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _slotprobe; '
              'echo "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60)
    assert done.stdout.decode().strip() == offered, done


@pytest.mark.parametrize("page, words", [
    ("slotprobe", ["SLOTPROBE_DIR", "SLOTPROBE_ARM", "SLOTPROBE_RECORDING", "SLOTPROBE_LEVEL", "SLOTPROBE_WATCH", "SLOTPROBE_LABEL",
                   "SLOTPROBE_MIN_FREE", "SLOTPROBE_MAX_SIZE", "SLOTPROBE_DEBUG", ".SH FILES", ".SH EXAMPLES", "run.json"]),
    ("slotprobe-ctl", ["start", "stop", "label TEXT", "level L", "flush", ".SH FILES", ".SH EXAMPLES"]),
    ("slotprobe-record", ["K, M, G or T", ".SH FILES", ".SH EXAMPLES"]),
    ("slotprobe-verify", ["quotes", ".SH EXAMPLES"]), ("slotprobe-check", ["quotes", ".SH EXAMPLES"]), ("slotprobe-diff", ["quotes"]),
])
def test_man_pages_say(page, words):
    text = (ROOT / "docs" / "man" / f"{page}.1").read_text()
    assert not [w for w in words if w not in text]
