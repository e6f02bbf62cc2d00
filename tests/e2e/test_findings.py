# SPDX-License-Identifier: Apache-2.0
"""Findings, tolerance, noise, third runs and how the runs were started, on runs made by loggen."""
import math
import struct

import pytest

import loggen
from loggen import ALLOC, CLEAR, COPY, Process, Run, number
from test_compare import bug, codes, proven, serve, two_ranks


def plain(tool, a, b, *options):
    return tool.text("diff", tool.put(a), tool.put(b), *options).stdout


def sentence(said, n=0):
    return said["findings"][n]["sentence"]


# ---- one cause, one finding ----


def thousands(n, arm, content):
    p = Process(pid=4194301 + (arm == "graph-on"))
    p.chunk = 400
    pool = p.pool(planes=[("ssm", 0, 1, 16)], slots=n)
    for slot in range(n):
        p.launch(arm == "graph-on")
        if slot % 2:
            pool.write(slot, f"old {slot}")
        p.event(ALLOC, pool, slot)
        if content(slot):
            pool.write(slot, content(slot))
        p.donate(pool, slot, 64, slot + 1, key_len=64)
    return Run(arm, p)


def test_ten_thousand_slots_of_one_cause_are_one_finding(tool):
    off = thousands(10000, "graph-off", lambda slot: f"right {slot}")
    said = tool.diff(off, thousands(10000, "graph-on", lambda slot: None))
    proven(said, "differs", 1)
    (finding,) = said["findings"]
    assert (finding["cause"], finding["n_slots"], finding["n_rows"]) == ("not_written", 10000, 10000)
    assert finding["kinds"] == {"zero": 5000, "stale": 5000}
    assert len(finding["slots"]) == 16
    assert all(s["finding"] == 0 for s in said["slots"])
    assert len(finding["sentence"]) < 600 and "one cause for 10000 slots" in finding["sentence"]


def test_two_bugs_are_two_findings_in_the_order_of_their_first_rows(tool):
    def what(pool, slot, content, n):
        if n in (2, 8):
            pool.write(slot, "nan " + content)
    said = tool.diff(serve(write=bug([2, 3, 5, 8], what)), serve("graph-off"))
    proven(said, "differs", 1)
    assert [(f["cause"], f["kind"], f["n_rows"]) for f in said["findings"]] == [("non_finite", "non_finite", 1), ("not_written", "zero", 2)]
    assert [s["finding"] for s in said["slots"] if s["verdict"] == "differs"] == [0, 1, 1]
    out = plain(tool, serve(write=bug([2, 3, 5, 8], what)), serve("graph-off"))
    assert f"  1. {sentence(said)}\n     usual cause: a numeric fault" in out and f"  2. {sentence(said, 1)}\n" in out


def test_rows_of_one_cause_without_a_common_tensor_are_two_findings(tool):
    def what(pool, slot, content, n):
        pool.write(slot, content, "ssm" if n < 9 else "conv")
    said = tool.diff(serve(write=bug([7, 8, 10], what)), serve("graph-off"))
    assert [(f["cause"], [p["tensor"] for p in f["planes"]]) for f in said["findings"]] == [("not_written", ["conv"]), ("not_written", ["ssm"])]

    def both(pool, slot, content, n):
        if n != 8:  # which holds the two together
            what(pool, slot, content, n)
    said = tool.diff(serve(write=bug([7, 8, 10], both)), serve("graph-off"))
    assert len(said["findings"]) == 1


def test_a_rank_that_differs_alone(tool):
    off, on = two_ranks("graph-off"), two_ranks("graph-on")
    wrong = serve(process=Process(pid=4194302, ranks=(("tp", 1, 2),)), write=bug([3], lambda *_: None))
    on.processes[1] = wrong.processes[0]
    said = tool.diff(off, on)
    proven(said, "differs", 1)
    (finding,) = said["findings"]
    assert finding["patterns"]["rank"] == "tp1.pp0.dp0" and "only in rank tp1.pp0.dp0" in finding["sentence"]
    assert finding["sentence"].startswith("tp1.pp0.dp0/mamba/4's state at length")
    # both ranks: two rows, one slot
    on.processes[0] = serve(process=Process(pid=4194301, ranks=(("tp", 0, 2),)), write=bug([3], lambda *_: None)).processes[0]
    (finding,) = tool.diff(off, on)["findings"]
    assert (finding["n_rows"], finding["n_slots"], finding["patterns"]["rank"]) == (2, 1, None)


def test_unknown_says_so_and_claims_no_common_cause(tool):
    def what(pool, slot, content, n):
        pool.write(slot, f"other {n}")
    said = tool.diff(serve(write=bug([3, 4], what)), serve("graph-off"))
    assert sentence(said) == ("slot 4's state at length 56 (donation 12 of run A) equals nothing else that either run "
                              "recorded: unknown; the same of 1 other slot")


def test_the_sentence_of_each_kind(tool):
    """Of which question is the wrong state the right answer: with slots, lengths, events and runs."""
    def only(at, what):
        return sentence(tool.diff(serve(write=bug([at], what)), serve("graph-off")))
    nothing = lambda pool, slot, content, n: None  # noqa: E731
    assert only(3, nothing) == "slot 4's state at length 56 (donation 12 of run A) is all zeros, as in a slot that was never written: zero"
    assert only(7, nothing) == ("slot 2's state at length 88 (donation 26 of run A) is bit for bit what the slot held for its previous owner "
                                "(donation 6, length 40): stale, not written since its allocation; only in slots that had an owner before")
    length = lambda pool, slot, content, n: pool.write(slot, "prompt 1 at 40")  # noqa: E731
    assert only(4, length) == ("slot 5's state at length 64 (donation 16 of run A) is bit for bit the checkpoint of length 40 (donation 6 of "
                               "run B, slot 2): wrong length")
    nan = lambda pool, slot, content, n: pool.write(slot, "nan")  # noqa: E731
    assert only(3, nan) == "slot 4's state at length 56 (donation 12 of run A) holds NaN or Inf, which run A had first in slot 4 (donation 12): non-finite"


def test_misplaced_by_the_rows_of_one_step(tool):
    """Two rows of a step that were written into each other's slots."""
    def run(arm):
        p = Process(pid=4194301 + (arm == "graph-on"))
        pool = p.pool()
        for n in range(6):
            slots = (1 + 2 * n, 2 + 2 * n)
            for slot in slots:
                p.event(ALLOC, pool, slot)
            p.step(batch=2, padded=2)
            p.launch(arm == "graph-on")
            for slot, row in zip(slots[::-1] if arm == "graph-on" and n > 3 else slots, "xy"):
                pool.write(slot, f"{row} of {n}")
            for slot, row in zip(slots, "xy"):
                p.donate(pool, slot, 10 * n + (row == "y"), number(row, n), key_len=10 * n + (row == "y"))
        return Run(arm, p)
    said = tool.diff(run("graph-off"), run("graph-on"))
    assert [(f["cause"], f["n_rows"]) for f in said["findings"]] == [("misplaced", 4)]
    assert sentence(said) == ("slot 9's state at length 40 (donation 19 of run B) is wrong, and its right bytes lie in slot 10 (donation 20, "
                              "length 41): misplaced; one cause for 4 slots")


# ---- where it began ----


def test_a_nan_that_spread_is_followed_to_its_first_event_in_any_slot(tool):
    """It came with a copy from a slot that was never donated."""
    def run(arm):
        p = Process(pid=4194301 + (arm == "graph-on"))
        pool = p.pool()
        pool.write(9, "nan" if arm == "graph-on" else "fine")
        origin = p.event(ALLOC, pool, 9)
        for n in range(4):
            p.event(ALLOC, pool, 1 + n)
            p.launch(arm == "graph-on")
            p.event(COPY, pool, 1 + n, src=9)
            pool.write(1 + n, f"nan {n}" if arm == "graph-on" else f"prompt {n}")
            p.donate(pool, 1 + n, 8 + n, number("p", n), key_len=8 + n)
        return Run(arm, p), origin
    (off, _), (on, origin) = run("graph-off"), run("graph-on")
    said = tool.diff(off, on)
    (finding,) = said["findings"]
    (event,) = [e for e in finding["events"] if e["part"] == "origin"]
    assert (int(event["id"], 16), event["slot"], event["kind"], event["run"]) == (origin, 9, "alloc", "b")
    assert f"which run B had first in slot 9 (allocation {origin}): non-finite" in finding["sentence"]


def test_a_nan_that_both_runs_have_is_no_origin(tool):
    def what(pool, slot, content, n):
        pool.write(slot, "nan of old" if n == 1 else content if n != 4 else "nan " + content)
    off = serve("graph-off", write=lambda pool, slot, content, n: pool.write(slot, "nan of old" if n == 1 else content))
    (finding,) = tool.diff(off, serve(write=what))["findings"]
    (event,) = [e for e in finding["events"] if e["part"] == "origin"]
    assert event["claimed_len"] == 32 + 8 * 4


def test_what_came_after_a_wrong_restore_may_follow_from_it(tool):
    def run(arm, early):
        p = Process(pid=4194301 + (arm == "graph-on"))
        pool = p.pool()
        for n in range(5):
            p.event(ALLOC, pool, 1 + n)
            p.launch(arm == "graph-on")
            wrong = arm == "graph-on" and (n == 4 or n == 0 and early)
            if n != 2 or arm == "graph-off":
                pool.write(1 + n, f"wrong {n}" if wrong else f"right {n}")
            p.donate(pool, 1 + n, 8 + n, number("p", n), key_len=8 + n)
            if n == 3:
                p.restore(pool, 3, 10, number("p", 2), key_len=10)
        return Run(arm, p)
    said = tool.diff(run("graph-off", False), run("graph-on", False))
    assert [f["cause"] for f in said["findings"]] == ["not_written", "unknown"]
    assert "all of it came after restore 9, which brought another state back than in run A" in sentence(said, 1)
    # where some of it came before, nothing of the kind is said
    said = tool.diff(run("graph-off", True), run("graph-on", True))
    unknown = next(f for f in said["findings"] if f["cause"] == "unknown")
    assert unknown["n_rows"] == 2 and "restore" not in unknown["sentence"]


# ---- patterns ----


def at_lengths(arm, lengths, wrong):
    p = Process(pid=4194301 + (arm == "graph-on"))
    pool = p.pool(slots=64)
    for n, length in enumerate(lengths):
        p.event(ALLOC, pool, 1 + n)
        p.launch(arm == "graph-on")
        pool.write(1 + n, f"wrong {n}" if arm == "graph-on" and length in wrong else f"right {n}")
        p.donate(pool, 1 + n, length, number("p", n), key_len=length)
    return Run(arm, p)


@pytest.mark.parametrize("lengths, wrong, modulo", [
    ([12, 24, 30, 48, 50, 72], [24, 48, 72], (8, 0)),  # a page
    ([8, 24, 32, 48, 40, 72, 16], [24, 48, 72], (24, 0)),  # a checkpoint interval that is no power of two
    ([8, 24, 32, 48, 40, 72, 96], [24, 48, 72], None),  # 96 is equal
    ([8, 24, 32, 40], [24], None),  # one length is no pattern
], ids=["page", "interval", "not so", "one"])
def test_residues_of_the_length(tool, lengths, wrong, modulo):
    said = tool.diff(at_lengths("graph-off", lengths, wrong), at_lengths("graph-on", lengths, wrong))
    assert said["findings"][0]["patterns"]["length"] == (modulo and {"modulus": modulo[0], "remainder": modulo[1]})
    assert ("modulo" in sentence(said)) == bool(modulo)


def lives(arm, wrong):
    """Slots that are fresh, used again, and restored into."""
    p = Process(pid=4194301 + (arm == "graph-on"))
    pool = p.pool()
    for n in range(12):
        slot = 1 + n % 6
        p.event(ALLOC, pool, slot)
        p.event(CLEAR, pool, slot)
        p.launch(arm == "graph-on")
        if n % 4 == 3:
            p.event(COPY, pool, slot, src=15)
        pool.write(slot, f"wrong {n}" if arm == "graph-on" and wrong(n) else f"right {n}")
        p.donate(pool, slot, 8 + n, number("p", n), key_len=8 + n)
    return Run(arm, p)


@pytest.mark.parametrize("wrong, reused, restored", [(lambda n: n >= 6, True, False), (lambda n: n % 4 == 3, False, True),
                                                     (lambda n: n in (1, 7), False, False)], ids=["reused", "restored", "neither"])
def test_only_reused_and_only_restored_slots(tool, wrong, reused, restored):
    patterns = tool.diff(lives("graph-off", wrong), lives("graph-on", wrong))["findings"][0]["patterns"]
    assert (patterns["reused_only"], patterns["restored_only"]) == (reused, restored)


# ---- tolerance: tails, never equal ----

FACTS = ["absmax", "l2", "nan", "inf", "hash", "s0", "s1", "s2", "s3"]


def f32(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def real(arm, off_by=None, slots=(), pid=0, noise=0.0, planes=(0, 1)):
    """Donations whose samples are real fp32 numbers; off_by: {fact: factor} for these slots."""
    p = Process(pid=4194301 + pid)
    pool = p.pool(planes=[("ssm", 0, 1, 64), ("ssm", 1, 1, 64)])

    def fixed(prints):
        for i, one in enumerate(prints):
            factor = {f: 1 + noise * (1 + i) for f in FACTS}
            if now in slots and i in planes:
                factor |= off_by
            one[0], one[1] = 4.0 * factor["absmax"], 16.0 * factor["l2"]
            one[2] = 1 if factor.get("nan") == "bad" else 0
            one[4] ^= 0 if all(f == 1 for f in factor.values()) else 1
            one[5:9] = [f32(1.5 * (k + 1) * factor[f"s{k}"]) for k in range(4)]
        return prints
    pool.fix = fixed
    for now in range(1, 6):
        pool.write(now, f"state {now}")
        p.event(ALLOC, pool, now)
        p.launch(arm == "graph-on")
        p.donate(pool, now, 8 * now, number("p", now), key_len=8 * now)
    return Run(arm, p)


@pytest.mark.parametrize("off_by", [{"s2": 1.001}, {"l2": 1.001}, {"absmax": 0.999}, {f: 1.0005 for f in FACTS if f != "nan"}],
                         ids=lambda o: "+".join(o))
def test_within_the_tolerance_is_never_equal(tool, off_by):
    off, on = real("graph-off"), real("graph-on", off_by, (2, 3))
    proven(tool.diff(off, on), "differs", 1)
    said = tool.diff(off, on, "--rtol", "0.01")
    proven(said, "not_proven", 3, "within_tolerance")
    assert {s["slot"] for s in said["slots"] if s["verdict"] == "within_tolerance"} == {2, 3}
    assert all(s["near"] == ("tolerance" if s["slot"] in (2, 3) else None) for s in said["slots"])
    assert said["tolerance"].items() >= {"pairs": 2, "within": 2, "over": 0, "fraction_over": 0}.items()
    # one value of many beyond the tolerance is a difference: the tail counts, not the mean
    said = tool.diff(off, on, "--rtol", "0.0001")
    proven(said, "differs", 1)
    assert said["tolerance"]["within"] == 0 and 0 < said["tolerance"]["fraction_over"] <= 1
    assert math.isclose(said["tolerance"]["farthest"], 0.001 if len(off_by) == 1 else 0.0005, rel_tol=0.01)


def test_one_slot_beyond_the_tolerance_differs_beside_others_within(tool):
    on = real("graph-on", {"s2": 1.001}, (2,))
    pool = on.processes[0].pools[0]
    said = tool.diff(real("graph-off"), on, "--rtol", "0.01")
    assert said["verdict"] == "not_proven"
    both = real("graph-on", {"s2": 1.5}, (4,), noise=0.0)
    said = tool.diff(real("graph-off", {"s2": 1.001}, (2,)), both, "--rtol", "0.01")
    proven(said, "differs", 1, "within_tolerance")
    assert {s["slot"]: s["verdict"] for s in said["slots"]} == {1: "equal", 2: "within_tolerance", 3: "equal", 4: "differs", 5: "equal"}
    assert [s["slot"] for f in said["findings"] for s in f["slots"]] == [4]
    assert pool


@pytest.mark.parametrize("fact", ["s0", "s3", "l2", "absmax"])
def test_a_single_value_beyond_the_tolerance_differs(tool, fact):
    said = tool.diff(real("graph-off"), real("graph-on", {fact: 1.02}, (3,), planes=(1,)), "--rtol", "0.01")
    proven(said, "differs", 1)
    assert (said["tolerance"]["values"], said["tolerance"]["over"]) == (6, 1)


def test_no_tolerance_covers_nan(tool):
    proven(tool.diff(real("graph-off"), real("graph-on", {"nan": "bad"}, (2,)), "--rtol", "1000"), "differs", 1)


def test_no_tolerance_covers_raw_bytes(tool):
    def run(arm, content):
        return serve(arm, planes=[("blob", 0, 8, 64)], write=lambda pool, slot, c, n: pool.write(slot, content if n == 5 else c))
    proven(tool.diff(run("graph-off", "x"), run("graph-on", "y"), "--rtol", "1000"), "differs", 1)


def test_equal_stays_equal_with_a_tolerance(tool):
    said = tool.diff(real("graph-off"), real("graph-on"), "--rtol", "0.5")
    proven(said, "equal", 0)
    assert said["tolerance"]["pairs"] == 0


# ---- noise: what two runs of one arm differ in ----


def test_noise_is_listed_and_never_equal(tool):
    a, b, b2 = real("graph-on", noise=1e-6), real("graph-off"), real("graph-off", pid=1, noise=2e-6)
    said = tool.diff(a, b, "--noise", tool.put(b2))
    proven(said, "not_proven", 3, "within_noise")
    assert {(s["verdict"], s["near"]) for s in said["slots"]} == {("within_tolerance", "noise")}
    assert said["noise"].items() >= {"known": True, "run": "b", "noisy": 5, "pairs": 5, "within": 5}.items()


def test_a_difference_beyond_the_noise_differs(tool):
    a, b, b2 = real("graph-on", {"s1": 1.1}, (3,), noise=1e-6), real("graph-off"), real("graph-off", pid=1, noise=2e-6)
    said = tool.diff(a, b, "--noise", tool.put(b2))
    proven(said, "differs", 1, "within_noise")
    assert {s["slot"] for s in said["slots"] if s["verdict"] == "differs"} == {3}


def test_without_noise_nothing_is_excused(tool):
    said = tool.diff(real("graph-on", noise=1e-9), real("graph-off"), "--noise", tool.put(real("graph-off", pid=1)))
    proven(said, "differs", 1)
    assert said["noise"].items() >= {"known": True, "noisy": 0, "within": 0}.items()


def test_noise_of_one_plane_excuses_no_other(tool):
    b2 = real("graph-off", pid=1)
    pool = b2.processes[0].pools[0]
    assert pool
    p = b2.processes[0]
    at = [i for i, r in enumerate(p.records) if struct.unpack_from("<H", r)[0] == loggen.FINGERPRINT]
    for i in at[1::2]:  # of each donation's second plane
        r = bytearray(p.records[i])
        start = 8 + struct.calcsize(loggen.FORMAT[loggen.FINGERPRINT]) + 72
        struct.pack_into("<d", r, start + 8, 17.0)
        p.records[i] = bytes(r)
    said = tool.diff(real("graph-on", noise=1e-3), real("graph-off"), "--noise", tool.put(b2))
    proven(said, "differs", 1)
    assert said["noise"].items() >= {"noisy": 5, "within": 0}.items()


@pytest.mark.parametrize("second", ["another arm", "another workload"])
def test_noise_that_cannot_be_measured_is_not_proven(tool, second):
    b2 = real("padded-eager", pid=1) if second == "another arm" else serve("graph-off")
    said = tool.diff(real("graph-on"), real("graph-off"), "--noise", tool.put(b2))
    proven(said, "not_proven", 3, "noise_unknown")
    assert said["noise"]["known"] is False


def test_noise_and_third_that_are_not_readable(tool):
    a, b = tool.put(real("graph-on")), tool.put(real("graph-off"))
    for option in ("--noise", "--third"):
        done = tool.text("diff", a, b, option, tool.folder / "nowhere")
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert tool.text("diff", a, b, "--noise", b).returncode == 2  # the very same run


# ---- a third arm ----


def started(run, *argv, env=None, **fields):
    """The run, as if it had been started so."""
    run.manifest = {"argv": ["server", *argv], "env": env or {"CUDA_X": "1"}} | fields
    return run


@pytest.mark.parametrize("arm, like, conclusion", [
    ("padded-eager", "graph", "not_capture"), ("padded-eager", "eager", "not_padding"), ("padded-eager", "neither", "several"),
    ("graph-path-eager", "graph", "graph_path_not_replay"), ("graph-path-eager", "eager", "replay"),
    ("graph-path-eager", "neither", "several"), ("own-arm", "graph", "not_told"), ("graph-off", "graph", "not_told"),
])
@pytest.mark.parametrize("swapped", [False, True])
def test_what_a_third_arm_tells(tool, arm, like, conclusion, swapped):
    def write(word):
        return lambda pool, slot, content, n: pool.write(slot, content + (word if n in (4, 9) else ""))
    runs = [started(serve("graph-off"), "--off"), started(serve("graph-on", write=write("graph")), "--on")]
    third = started(serve(arm, write=write({"graph": "graph", "eager": "", "neither": "third"}[like])), "--third")
    said = tool.diff(*(runs[::-1] if swapped else runs), "--third", tool.put(third))
    proven(said, "differs", 1)
    assert said["third"]["conclusion"] == conclusion
    assert [t["verdict"] == "equal" for t in said["third"]["against"]] == [(like == "graph") == (i == (not swapped)) and like != "neither"
                                                                         for i in (0, 1)]
    assert ("capture is not the cause" in said["third"]["text"]) == (conclusion == "not_capture")
    assert ("graph path, not replay" in said["third"]["text"]) == (conclusion == "graph_path_not_replay")


def test_a_third_arm_that_is_not_comparable_tells_nothing(tool):
    p = Process()
    said = tool.diff(serve("graph-off"), serve("graph-on", write=bug([4], lambda *_: None)), "--third", tool.put(Run("padded-eager", p)))
    assert said["third"]["conclusion"] == "not_told"
    said = tool.diff(serve("graph-off"), serve("graph-on"), "--third", tool.put(started(serve("padded-eager"), "--third")))
    proven(said, "equal", 0)
    assert said["third"]["conclusion"] == "no_difference"


# ---- how the runs were started ----


def test_one_thing_that_differs_is_an_experiment(tool):
    said = tool.diff(started(serve("graph-off"), "--model", "m", "--graphs=off"), started(serve("graph-on"), "--graphs", "on", "--model", "m"))
    proven(said, "equal", 0)
    assert said["configuration"] == {"differences": [{"part": "argv", "name": "--graphs", "a": ["off"], "b": ["on"]}],
                                     "single_variable": True, "note": None}


def test_two_things_that_differ_are_said(tool):
    a = started(serve("graph-off"), "--graphs=off", env={"CUDA_X": "1"})
    b = started(serve("graph-on"), "--graphs=on", env={"CUDA_X": "2", "SLOTPROBE_DIR": "elsewhere"})
    said = tool.diff(a, b)
    proven(said, "equal", 0)
    assert said["configuration"]["single_variable"] is False
    assert [(d["part"], d["name"]) for d in said["configuration"]["differences"]] == [("argv", "--graphs"), ("env", "CUDA_X")]
    out = plain(tool, a, b)
    assert "not a single-variable experiment" in out and 'env CUDA_X: "1" and "2"' in out


def test_arms_that_nothing_tells_apart_had_no_switch(tool):
    same = [started(serve(arm), "--x") for arm in ("graph-off", "padded-eager")]
    proven(tool.diff(*same), "not_proven", 3, "switch_had_no_effect")
    proven(tool.diff(started(serve("graph-off"), "--x"), started(serve("padded-eager"), "--x", "--pad")), "equal", 0)
    # launches tell graph-on from the rest, and an arm of one's own promises nothing
    said = tool.diff(started(serve("graph-off"), "--x"), started(serve("graph-on"), "--x"))
    proven(said, "equal", 0)
    assert "where is the switch" in said["configuration"]["note"]
    proven(tool.diff(started(serve("before"), "--x"), started(serve("after"), "--x")), "equal", 0)
    # a run that does not say how it was started
    said = tool.diff(started(serve("graph-off"), env={}, argv=[]), started(serve("padded-eager"), "--x"))
    proven(said, "equal", 0)
    assert said["configuration"]["single_variable"] is None


def test_two_runs_of_one_arm_that_were_not_started_alike(tool):
    said = tool.diff(started(serve("graph-off"), "--x=1"), started(serve("graph-off"), "--x=2"))
    proven(said, "equal", 0)
    assert said["configuration"]["note"].startswith("two runs of one arm")
    assert tool.diff(started(serve("graph-off"), "--x"), started(serve("graph-off"), "--x"))["configuration"]["note"] is None


# ---- alignment ----


def test_a_run_that_moved_its_slots_lines_up_by_key(tool):
    """Nothing collides: no slot of one run is a slot of the other."""
    def run(arm, first):
        p = Process(pid=4194301 + (arm == "graph-on"))
        pool = p.pool(slots=64)
        for n in range(8):
            p.event(ALLOC, pool, first + n)
            p.launch(arm == "graph-on")
            pool.write(first + n, f"state {n}")
            p.donate(pool, first + n, 8 + n, number("p", n), key_len=8 + n)
        return Run(arm, p)
    said = tool.diff(run("graph-off", 1), run("graph-on", 31))
    proven(said, "equal", 0)
    assert said["alignment"]["mode"] == "key"


def test_lengths_alone_are_said_to_prove(tool):
    def run(arm):
        return at_lengths(arm, [8, 16, 24], ())
    keyless = [run("graph-off"), run("graph-on")]
    for r in keyless:
        p = r.processes[0]
        for i, record in enumerate(p.records):
            if struct.unpack_from("<H", record)[0] == loggen.EVENT:
                changed = bytearray(record)
                struct.pack_into("<Q", changed, 8 + struct.calcsize("<QQIiqQqq"), 0)
                p.records[i] = bytes(changed)
    said = tool.diff(*keyless)
    proven(said, "equal", 0)
    assert said["alignment"]["proof"] == {"key_and_length": 0, "length": 3}
    assert "lengths alone" in plain(tool, *keyless)
    assert codes(tool.diff(*keyless, "--align", "key")) & {"slot_missing"}


def test_order_is_proposed_where_it_lines_up_more(tool):
    """No keys, other slots: only the order tells which is which."""
    def run(arm, step):
        p = Process(pid=4194301 + (arm == "graph-on"))
        pool = p.pool(slots=64)
        for n in range(8):
            slot = 1 + n * step % 11
            p.event(ALLOC, pool, slot)
            p.launch(arm == "graph-on")
            pool.write(slot, f"state {n}")
            p.donate(pool, slot, 8 + n)
        return Run(arm, p)
    said = tool.diff(run("graph-off", 1), run("graph-on", 3))
    proven(said, "not_proven", 3)
    assert said["alignment"]["proposal"] == "order"
    proven(tool.diff(run("graph-off", 1), run("graph-on", 3), "--align", "order"), "equal", 0)
