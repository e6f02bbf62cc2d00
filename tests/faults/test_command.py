# SPDX-License-Identifier: Apache-2.0
"""Every call of the command for memory, a file or a process fails once, each in a run of its own. It never crashes and never concludes
something else: it says the very same, or says in one line that it could not.

`make faults` (FAULTS=all) fails every call; without it those after the first few of each name are a spread sample."""
import json
import os
import re
import resource
import shutil
import subprocess

import pytest

from commandlab import Command, in_parallel, spread

ALL = os.environ.get("FAULTS") == "all"
VERBS = {
    "check": ("check", "{off}", "--color", "always"),
    "check_json": ("check", "{on}", "--json"),
    "check_broken": ("check", "{bug}", "--json"),
    "diff": ("diff", "{off}", "{on}"),
    "diff_json": ("diff", "{off}", "{bug}", "--json"),
    "diff_third": ("diff", "{off}", "{bug}", "--third", "{on}", "--noise", "{on}", "--rtol", "0.1", "--allow-missing", "^tp0", "--align", "order",
                   "-o", "{file}"),
    "diff_html": ("diff", "{off}", "{bug}", "--format", "html", "-o", "{file}"),
    "report": ("report", "{off}"),
    "report_json": ("report", "{on}", "--json"),
    "report_html": ("report", "{on}", "--format", "html", "-o", "{file}"),
    "export_jsonl": ("export", "{on}", "--format", "jsonl"),
    "export_csv": ("export", "{on}", "--format", "csv", "-o", "{file}"),
    "export_perfetto": ("export", "{on}", "--format", "perfetto", "-o", "{file}"),
    "status": ("status", "{on}"),
    "status_json": ("status", "{on}", "--json"),
    "verify": ("verify", "{on}", "--expect", "core.*>=1"),
    "verify_json": ("verify", "{on}", "--json"),
    "doctor": ("doctor", "--", "{toy}"),
    "doctor_json": ("doctor", "--json", "--", "{toy}"),
    "ctl": ("ctl", "{on}", "label", "x"),
    "help": ("--help",),
}
# doctor asks the driver in a process of its own, in which the driver and the loader say what they lack.
OF_THE_DRIVER = ("cpudriver: ", "cannot allocate memory for thread-local data")


@pytest.fixture(scope="module")
def command(build, tmp_path_factory):
    """The command and what it is asked about."""
    return Command(build, tmp_path_factory.mktemp("command"))


def wrong_with(verb, good, got):
    """None, or how this answer is neither the good one nor an honest failure."""
    lines = [line for line in got.err.splitlines() if verb != "doctor" or not line.startswith(OF_THE_DRIVER)]
    ours = len(lines) == 1 and lines[0].startswith("slotprobe")
    if got.said == good.said:
        return None
    if got.status == 2 and ours:
        return None
    if got.status == 3 and verb in ("check", "diff", "report", "verify") and len(lines) <= 1 and (got.out or got.file or ours):
        return None
    if got.status == good.status == 0 and verb in ("status", "export") and ours and "readable with loss" in got.err:
        return None
    if verb == "doctor" and got.status == 1 and not lines and got.out:
        return None
    return str(got)


def fail_each(which, made, whole, fault):
    """Each call that was made, or of many all up to `whole` and every so many-th, fails once: fault(name of the run, call) says what is wrong then."""
    def fail(name, k):
        try:
            wrong = fault(f"{which}-{name}-{k}", f"{name}:{k}")
        except subprocess.TimeoutExpired:
            wrong = "hangs"
        return wrong and f"{name} call {k}: {wrong}"

    jobs = [(name, k) for name, n in made.items() for k in (range(1, n + 1) if ALL else spread(n, whole, 1 + n // whole))]
    wrong = in_parallel(fail, jobs)
    print(f"{which}: {len(jobs)} calls failed")
    assert not wrong, f"{len(wrong)} of {len(jobs)}\n" + "\n".join(wrong)


@pytest.mark.parametrize("which", VERBS)
def test_each_call_fails_once(command, which):
    words = VERBS[which]
    good, made = command.count(words)
    assert good.status < 4 and made["malloc" if words[0] != "--help" else "fflush"] > 0

    fail_each(which, made, 20, lambda run, call: wrong_with(words[0], good, command.faulty(words, run, FAULT=call)))


def test_a_check_whose_questions_go_to_a_file(command, tmp_path):
    """The disk is full, the file cannot be made, nor one with a name, nor read: it says the same, in several readings or with all in memory; and
    nothing is left there."""
    words, where = ("check", "{many}", "--json"), {"SLOTPROBE_CHECK_MEMORY": "40000", "SLOTPROBE_MIN_FREE": "0", "TMPDIR": tmp_path}
    good, made = command.count(words, **where)
    plain = command.run(words)
    assert good.said == plain.said and good.status == 0 and made["pwritev"] > 2

    def fault(run, call):
        return wrong_with("check", good, command.faulty(words, run, FAULT=call, **where))

    fail_each("spilling", made, 20, fault)
    fail_each("nameless", {"open": made["open"]}, 20, lambda run, call: fault(run, f"{call},mkostemp:1"))
    assert command.faulty(words, "full", FAULT="pwritev:2-", **where).said == good.said
    for size in (0, 4096, 50000):
        assert command.run(words, f"cut-{size}", preexec=cut(size), **{k: str(v) for k, v in where.items()}).said == good.said
    for least in ("1000000T", "3G"):  # more than there is, and what is left of itself
        assert command.faulty(words, "low", **(where | {"SLOTPROBE_MIN_FREE": least})).said == good.said
    assert command.faulty(words, "nowhere", **(where | {"TMPDIR": tmp_path / "absent"})).said == good.said
    assert list(tmp_path.iterdir()) == []


def test_every_import_is_known(build, root):
    """A function that the command begins to call is failed, or said to be harmless, before this passes."""
    done = subprocess.run(["nm", "-D", "--undefined-only", str(build / "slotprobe")], capture_output=True, text=True, check=True)
    imported = {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()} - {"__gmon_start__"}
    imported = {name for name in imported if not name.startswith(("_ITM_", "json_"))}  # jansson's own calls are failed
    known = set(re.findall(r"\bX\((\w+)", (root / "tests" / "faults" / "command.c").read_text()))
    assert len(imported) > 50 and imported <= known, imported - known


# ---- record ----

RECORD = ("record", "-o", "{run}", "--arm", "graph-on", "--min-free", "0", "--probe", "{probe}", "--", "{toy}", "--arm", "graph-on", "--requests", "2",
          "--layers", "1", "--slots", "4", "--concurrency", "1")


class Recorded:
    """What a run of `record` left behind."""

    def __init__(self, command, name, got):
        self.got, self.path = got, command.folder / f"run-{name}"
        self.verified = command.run(("verify", str(self.path))) if self.path.exists() else None
        manifest = self.path / "run.json"
        self.points = json.loads(manifest.read_text())["adapters"][0]["points"] if manifest.exists() else None
        shutil.rmtree(self.path, ignore_errors=True)


def wrong_recording(good, got, recorded):
    """None, or how this is neither the recording asked for nor an honest failure: the server's own answer, and all of the run or a word
    of what is not there; or 125, one line and no run."""
    lines = got.err.splitlines()
    whole = recorded.verified is not None and recorded.verified.status == 3 and recorded.points == ["srv.one", "srv.two"]
    if got.status == good.status and got.out == good.out:
        return None if (whole and not lines) or (lines and all(line.startswith("slotprobe") for line in lines)) else f"{got}, unsaid"
    if got.status in (125, 126, 127) and not got.out:
        return None if len(lines) == 1 and lines[0].startswith("slotprobe") and recorded.verified is None else f"{got}, {recorded.verified}"
    if got.status == 125 and got.out == good.out and len(lines) == 1:
        return None
    return str(got)


def test_record(command):
    """Each call of `record` itself; what it runs is left alone."""
    good, made = command.count(RECORD)
    assert good.status == 0 and good.out and not good.err and made["fork"] == 1
    recorded = Recorded(command, "count", good)
    assert recorded.verified.status == 3 and b"adapter srv" in recorded.verified.out and recorded.points  # which never fired

    def fault(run, call):
        got = command.faulty(RECORD, run, FAULT=call)
        return wrong_recording(good, got, Recorded(command, run, got))

    fail_each("record", made, 8, fault)


# ---- where the output goes ----

PRINTING = [which for which in VERBS if which not in ("ctl",)]


def cut(size):
    """No file grows over so many bytes. What tries that is sent a signal, which ends whoever has not said otherwise."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


@pytest.mark.parametrize("which", PRINTING)
def test_output_that_does_not_get_out(command, which):
    """A full device, a stdout that is closed, a disk that fills up at any of several places: status 2 and one line."""
    words = VERBS[which]
    to_file = "{file}" in words
    good = command.run(words)
    size = len(good.file if to_file else good.out)

    def closed():
        os.close(1)

    tried = []
    if not to_file:
        with open("/dev/full", "wb") as full:
            tried.append(("a full device", command.run(words, stdout=full)))
        tried.append(("no stdout", command.run(words, stdout=None, preexec=closed)))
    for at in sorted({0, 1, size // 3, size // 2, size - 1}):
        with open(command.folder / "stdout", "wb") as out:
            tried.append((f"cut at {at} of {size}", command.run(words, stdout=out, preexec=cut(at))))
    wrong = [f"{how}: {got}" for how, got in tried
             if got.status != 2 or len(got.err.splitlines()) != 1 or not got.err.startswith("slotprobe")]
    assert len(tried) >= 5 and not wrong, "\n".join(wrong)
    with open(command.folder / "stdout", "wb") as out:
        assert command.run(words, stdout=out, preexec=cut(size)).status == good.status
