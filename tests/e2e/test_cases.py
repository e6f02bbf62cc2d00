# SPDX-License-Identifier: Apache-2.0
"""Bugs that people really had: what slotprobe must conclude, held against the toy server's own journal."""
import re
import subprocess

import pytest

from toylab import codes, kinds, slots

STALE = ("--bug", "stale-index-tail")
FULL = ("--waves", "--concurrency", "8", "--slots", "40", "--requests", "32")
CALLS = ["donate", "restore", "alloc", "clear", "copy", "discard", "free", "step"]


def assert_equal(lab, a, b):
    """diff says equal, and the toy has nothing to say against it."""
    status, found = lab.diff(a, b)
    assert (status, found["verdict"], found["exit_status"]) == (0, "equal", 0), found["reasons"]
    assert found["reasons"] == []
    assert found["first_divergence"] is None
    assert not a.slots_differing and not b.slots_differing
    assert {s["verdict"] for s in found["slots"]} == {"equal"}
    assert set(slots(found, "equal")) == {e["slot"] for e in a.of("donate")}
    assert found["summary"]["slots"] == found["summary"]["equal"] == len(found["slots"])
    assert all(s["hash"][0] == s["hash"][1] is not None for s in found["slots"])
    return found


def assert_differs(lab, a, b):
    """diff says differs, and names exactly the slots that the toy says are wrong in the second run."""
    status, found = lab.diff(a, b)
    assert (status, found["verdict"], found["exit_status"]) == (1, "differs", 1), found["reasons"]
    assert not a.slots_differing
    assert b.slots_differing, "this run shows no bug at all"
    assert set(slots(found, "differs")) == b.slots_differing
    assert found["summary"]["differs"] == len(b.slots_differing)
    for slot in slots(found, "differs").values():
        assert slot["hash"][0] != slot["hash"][1]
    return found


def assert_planes(found, run):
    """Of each differing slot, exactly the planes that the toy says are wrong differ."""
    for number, slot in slots(found, "differs").items():
        expected = {tuple(p) for p in run.first_wrong(number)["planes_differing"]}
        assert {(p["tensor"], p["layer"]) for p in slot["planes_differing"]} == expected, f"slot {number}"


def assert_not_proven(lab, a, b, code):
    """diff says not proven, for that reason."""
    status, found = lab.diff(a, b)
    assert (status, found["verdict"], found["exit_status"]) == (3, "not_proven", 3)
    assert code in codes(found)
    assert all(r["text"] and r["remedy"] for r in found["reasons"])
    return found


def assert_counters(lab, run):
    """slotprobe counted what the toy counted, lost nothing and has nothing in flight."""
    probes = lab.probes(run)
    calls = run.end["calls"]
    assert {c: probes[f"core.{c}"]["attempted"] for c in CALLS} == calls
    assert probes["core.graph_launch"]["attempted"] == run.end["graph_launches"]
    assert probes["core.graph_instantiate"]["attempted"] == run.end["graphs"]
    assert run.end["refused"] == dict.fromkeys(CALLS, 0)
    for name, probe in probes.items():
        if probe["attempted"] is None:  # a plain counter
            continue
        assert probe["in_flight"] == 0, name
        assert probe["committed"] == probe["attempted"], name
        assert probe["errors"] == probe["filtered"] == 0, name
        assert not any(probe["skipped"].values()) and not any(probe["dropped"].values()), name
    status = lab.slotprobe("verify", run.path)
    assert status.returncode == 0, status.stdout + status.stderr


# ---- the toy alone ----


def test_without_slotprobe_every_call_is_refused_and_nothing_changes(lab):
    bare = lab.bare("--arm", "graph-on")
    recorded = lab.record("graph-on")
    assert bare.end["refused"] == bare.end["calls"]
    assert {k: v for k, v in bare.end["calls"].items() if k != "discard"} == {k: v for k, v in recorded.end["calls"].items()
                                                                             if k != "discard"}
    assert bare.of("request") == recorded.of("request")
    assert [e["hash"] for e in bare.of("donate")] == [e["hash"] for e in recorded.of("donate")]


def test_workload_is_worth_measuring(lab):
    run = lab.record("graph-on")
    donated = [e["slot"] for e in run.of("donate")]
    assert len(donated) >= 20
    assert len(set(donated)) < len(donated), "no slot was used twice"
    assert run.end["restores"] >= 5
    assert run.end["calls"]["discard"] >= 1
    per_request = [sum(e["request"] == r["request"] for e in run.of("donate")) for r in run.of("request")]
    assert max(per_request) >= 4


# ---- clean ----


def test_clean_is_equal(lab):
    a, b = lab.record("graph-off"), lab.record("graph-on")
    found = assert_equal(lab, a, b)
    assert found["alignment"]["aligned"] == a.end["donations"]
    assert found["alignment"]["unaligned"] == 0
    for side, run in zip(found["runs"], (a, b)):
        assert side["graph_launches"] == run.end["graph_launches"]
        assert side["pool_graph_launches"] == run.end["graph_launches"]
        assert side["donations"] == run.end["donations"]
        assert side["restores"] == run.end["restores"]
    assert [s["arm"] for s in found["runs"]] == ["graph-off", "graph-on"]


@pytest.mark.parametrize("arm", ["graph-on", "graph-off"])
def test_the_same_arm_twice_is_equal(lab, arm):
    assert_equal(lab, lab.record(arm), lab.record(arm, again=1))


def test_clean_breaks_no_invariant(lab):
    for arm in ("graph-on", "graph-off"):
        status, found = lab.check(lab.record(arm))
        assert status == 0, found


@pytest.mark.parametrize("arm", ["padded-eager", "graph-path-eager"])
def test_clean_arms_between_are_equal(lab, arm):
    assert_equal(lab, lab.record("graph-off"), lab.record(arm))
    assert_equal(lab, lab.record(arm), lab.record("graph-on"))


# ---- stale-index-tail ----


def test_stale_index_tail_differs_in_exactly_those_slots(lab):
    a, b = lab.record("graph-off", *STALE), lab.record("graph-on", *STALE)
    found = assert_differs(lab, a, b)
    assert_planes(found, b)
    seen = set()
    for number, slot in slots(found, "differs").items():
        expected = b.first_wrong(number)["expect"]
        assert expected in kinds(slot), f"slot {number}: {slot['explain']}"
        seen.add(expected)
        if expected == "zero":
            assert slot["absmax"][1] == 0 < slot["absmax"][0]
    assert seen == {"zero", "stale"}  # never owned before; owned before


def test_stale_index_tail_first_divergence(lab):
    a, b = lab.record("graph-off"), lab.record("graph-on", *STALE)
    _, found = lab.diff(a, b)
    first = next(e for e in b.of("donate", "restore") if e["differs"])
    assert found["first_divergence"]["slot"] == first["slot"]
    assert slots(found, "differs")[first["slot"]]["claimed_len"] == [first["claimed_len"]] * 2


def test_stale_index_tail_is_found_in_slot_0(lab):
    watch = ("--watch-slot", "0")
    a, b = lab.record("graph-off", options=watch), lab.record("graph-on", *STALE, options=watch)
    found = assert_differs(lab, a, b)
    there = {n for n, s in slots(found, "differs").items()
             if any(e["kind"] == "misplaced" and e["found_in_slot"] == 0 for e in s["explain"])}
    first = {n: b.first_wrong(n)["in_slot0"] for n in b.slots_differing}
    assert {n for n, right in first.items() if right} <= there
    assert there <= {n for n, right in first.items() if right is not False}  # None: two rows wrote slot 0 at once
    assert len(there) >= 5


def test_stale_index_tail_alone_is_never_written(lab):
    status, found = lab.check(lab.record("graph-on", *STALE))
    assert status == 1
    assert any("never_written" in c for c in codes(found)), codes(found)


def test_stale_index_tail_vanishes_in_the_largest_batch(lab):
    run = lab.record("graph-on", *STALE, *FULL)
    assert {e["batch"] for e in run.of("step") if e["name"] == "decode"} == {8}
    assert_equal(lab, lab.record("graph-off", *FULL), run)


def test_stale_index_tail_shows_in_the_same_waves_of_a_smaller_batch(lab):
    smaller = ("--waves", "--concurrency", "4", "--requests", "32")
    assert_differs(lab, lab.record("graph-off", *smaller), lab.record("graph-on", *STALE, *smaller))


def test_stale_index_tail_needs_the_graph_path_not_the_replay(lab):
    off, eager = lab.record("graph-off", *STALE), lab.record("graph-path-eager", *STALE)
    assert_differs(lab, off, eager)
    assert_equal(lab, off, lab.record("padded-eager", *STALE))


def test_stale_index_tail_spreads_through_restores(lab):
    follow = ("--follow-ups", "6")
    a, b = lab.record("graph-off", *follow), lab.record("graph-on", *STALE, *follow)
    assert b.end["wrong_restores"] > 0
    assert a.of("request") != b.of("request"), "the wrong state changed no answer"
    status, found = lab.diff(a, b)
    assert (status, found["verdict"]) == (1, "differs"), found["reasons"]
    assert set(slots(found, "differs")) <= b.slots_differing


def test_stale_index_tail_shows_in_what_the_graphs_bind(lab):
    def offsets(run):
        regions = {r["region"]: r["name"] for r in lab.exported(run, "region")}
        return {t["offset"] for t in lab.exported(run, "graph_touch")
                if t["kernel"] == "toy_track" and t["target"] == 1 and regions[t["id"]] == "track_indices"}

    assert offsets(lab.record("graph-on")) == {0}
    assert offsets(lab.record("graph-on", *STALE)) == {0, 16, 24, 28}  # batches of 8, 4, 2, 1 rows, 4 bytes each


def test_the_captured_kernel_and_the_region_it_read_are_named(lab):
    a, b = lab.record("graph-off"), lab.record("graph-on", *STALE)
    (finding,) = lab.diff(a, b)[1]["findings"]
    first = b.first_wrong(finding["slots"][0]["slot"])
    writer = finding["writer"]
    assert (writer["kernel"], writer["region"], writer["value"]) == ("toy_track", "track_indices", 0)
    assert writer["offset"] in (16, 24, 28) and writer["graphs"] == 3  # not the graph of the largest batch
    assert writer["slot"] == finding["events"][0]["slot"] and writer["slot_at"] in range(0, 16, 4)
    assert f"toy_track (node {writer['node']} of graph {writer['graph']}" in writer["text"] and first["differs"]
    assert f"     written by: {writer['text']}\n" in lab.slotprobe("diff", a.path, b.path).stdout


@pytest.mark.parametrize("bug, options", [("snapshot-too-early", ("--fixed-answers",)), ("conv-leak", ("--fixed-answers", "--chunk", "2", "--track-interval", "2")),
                                          ("wrong-position", ("--fixed-answers", "--chunk", "8"))])
def test_no_kernel_is_blamed_where_the_index_was_right(lab, bug, options):
    findings = lab.diff(lab.record("graph-off", "--bug", bug, *options), lab.record("graph-on", "--bug", bug, *options))[1]["findings"]
    assert findings and all(f["writer"] is None for f in findings)


# ---- bugs that reach the live state ----
# A wrong live state changes the next token, and then nothing that follows has a mate. With fixed answers the prompts decide what is
# handed over, so that every wrong slot can be held against the toy's journal.

FIXED = ("--fixed-answers",)
SLOT_0 = (*FIXED, "--use-slot-0")
THREE = (*SLOT_0, "--waves", "--concurrency", "3")
SHORT = (*FIXED, "--chunk", "2", "--track-interval", "2")
SINGLE = (*FIXED, "--chunk", "1", "--track-interval", "1", "--requests", "6", "--slots", "320")
EIGHTS = (*FIXED, "--chunk", "8")

# bug, options with which it shows, what check says of the run alone
CASES = [
    ("nan-survives-clear", FIXED, {"non_finite"}),
    ("capture-writes-slot0", SLOT_0, set()),
    ("conv-leak", SHORT, set()),
    ("padding-aliases-live", THREE, set()),
    ("wrong-position", EIGHTS, {"never_written", "same_hash_other_key"}),
    ("snapshot-too-early", FIXED, {"never_written", "restore_differs", "same_hash_other_key"}),
    ("graph-wipes-state", SINGLE, {"same_hash_other_key"}),
    ("two-bugs", FIXED, {"never_written", "non_finite", "same_hash_other_key"}),
    ("padded-eager-equal", FIXED, set()),
    ("aliased-write", FIXED, set()),
]
BY_CASE = pytest.mark.parametrize("bug, options, alone", CASES, ids=[c[0] for c in CASES])


def record_both(lab, bug, options, arm="graph-on"):
    """The bug in the graph-off arm and in that one."""
    return lab.record("graph-off", "--bug", bug, *options), lab.record(arm, "--bug", bug, *options)


def assert_zero_or_stale(found, run):
    """What the toy says is zero or stale is explained so, and nothing else is."""
    for number, slot in slots(found, "differs").items():
        expected = run.first_wrong(number)["expect"]
        assert {k for k in kinds(slot) if k in ("zero", "stale")} == {expected} - {"other"}, f"slot {number}: {slot['explain']}"


def lengths_of(run, wrong):
    """Lengths at which the run handed over the very bytes of that event, but as a state of another length."""
    return {e["claimed_len"] for e in run.of("donate") if e["hash"] == wrong["hash"]} - {wrong["claimed_len"]}


def assert_wrong_lengths(a, b, found):
    """Where the wrong bytes are a right checkpoint of another length, that length is named. Returns how many there were."""
    n = 0
    for number, slot in slots(found, "differs").items():
        lengths = lengths_of(a, b.first_wrong(number))
        named = {e["event"]["claimed_len"] for e in slot["explain"] if e["kind"] == "wrong_length"}
        if lengths and b.first_wrong(number)["expect"] == "other":
            assert named and named <= lengths, f"slot {number}: {slot['explain']}, toy: {lengths}"
            n += 1
    return n


def slot_events(run):
    """The journal's lines that stand for reported slot events, in order."""
    return run.of("alloc", "clear", "copy", "donate", "restore", "discard", "free")


@BY_CASE
def test_bug_differs_in_exactly_those_slots(lab, bug, options, alone):
    a, b = record_both(lab, bug, options)
    found = assert_differs(lab, a, b)
    assert codes(found) == ["slot_differs"]
    assert_planes(found, b)
    if bug != "graph-wipes-state":  # which makes one state over and over: the slot's past may hold it too
        assert_zero_or_stale(found, b)
    first = next(e for e in b.of("donate", "restore") if e["differs"])
    assert found["first_divergence"]["slot"] == first["slot"]
    assert found["first_divergence"]["claimed_len"] == first["claimed_len"]
    if bug != "padded-eager-equal":  # of that, full batches have something too
        assert_differs(lab, lab.record("graph-off", *options), b)
    assert_counters(lab, b)
    status, judged = lab.check(b)
    assert (status, set(codes(judged))) == (1 if alone else 0, alone), judged["reasons"]


@BY_CASE
def test_the_same_without_the_bug_is_equal(lab, bug, options, alone):
    a, b = lab.record("graph-off", *options), lab.record("graph-on", *options)
    assert_equal(lab, a, b)
    if bug != "padded-eager-equal":
        assert_equal(lab, a, lab.record("graph-off", "--bug", bug, *options))
    assert lab.check(b)[0] == 0 if alone else lab.check(b)[1]["verdict"] == "holds"


@BY_CASE
def test_bug_is_never_equal_and_never_in_another_slot_when_it_changes_the_answers(lab, bug, options, alone):
    del alone
    a, b = record_both(lab, bug, [o for o in options if o != "--fixed-answers"])
    assert b.slots_differing
    status, found = lab.diff(a, b)
    assert status in (1, 3), found["verdict"]
    assert set(slots(found, "differs")) <= b.slots_differing


@pytest.mark.parametrize("bug, options, arm, differs", [
    ("conv-leak", SHORT, "graph-path-eager", True),
    ("padding-aliases-live", THREE, "graph-path-eager", True),
    ("padding-aliases-live", THREE, "padded-eager", False),
    ("aliased-write", FIXED, "graph-path-eager", True),
    ("aliased-write", FIXED, "padded-eager", False),
    ("nan-survives-clear", FIXED, "graph-path-eager", False),
    ("capture-writes-slot0", SLOT_0, "graph-path-eager", False),
    ("graph-wipes-state", SINGLE, "graph-path-eager", False),
])
def test_bug_needs_the_graph_path_or_the_capture(lab, bug, options, arm, differs):
    (assert_differs if differs else assert_equal)(lab, *record_both(lab, bug, options, arm))


def test_nan_survives_clear_is_non_finite_from_its_first_event_on(lab):
    a, b = record_both(lab, "nan-survives-clear", FIXED)
    _, found = lab.diff(a, b)
    events = list(zip(slot_events(b), lab.exported(b, "event"), strict=True))
    for number, slot in slots(found, "differs").items():
        assert slot["nan"] == [0, b.first_wrong(number)["nan"]]
        assert kinds(slot)[0] == "non_finite", f"slot {number}: {slot['explain']}"
        first = next(event for line, event in events if line["slot"] == number and line["nan"] and event["has_fingerprint"])
        named = slot["explain"][0]["event"]
        assert (int(named["id"], 16), named["kind"]) == (first["id"], first["kind"]), f"slot {number}"
    # the slot that had it before anybody owned it
    origin = next(e["slot"] for e in b.of("alloc") if e["nan"])
    assert slots(found, "differs")[origin]["explain"][0]["event"]["kind"] == "alloc"


def test_nan_survives_clear_dies_in_a_clear_that_writes_zeros(lab):
    b = lab.record("graph-on", "--bug", "nan-survives-clear", *FIXED)
    cleared = [e for e in b.of("clear") if e["nan"]]
    assert len(cleared) >= 2, "no later owner had it"
    assert not any(e["nan"] for e in slot_events(lab.record("graph-on", *FIXED)))


def test_capture_writes_slot0_differs_for_its_first_owner(lab):
    a, b = record_both(lab, "capture-writes-slot0", SLOT_0)
    found = assert_differs(lab, a, b)
    of_slot_0 = [e for e in b.of("donate") if e["slot"] == 0]
    assert [e["differs"] for e in of_slot_0] == [True] + [False] * (len(of_slot_0) - 1) and len(of_slot_0) > 1
    owner = of_slot_0[0]["request"]
    assert slots(found, "differs")[0]["occurrence"] == 1
    # everybody else who is wrong started from a checkpoint that the first owner left
    heirs = {owner}
    for e in b.of("donate", "restore"):
        if e["differs"] and e["event"] == "restore":
            heirs.add(e["request"])
        assert not e["differs"] or e["request"] in heirs
    assert next(e for e in b.of("donate") if e["differs"])["request"] == owner


def test_capture_writes_slot0_is_harmless_while_slot_0_is_reserved(lab):
    assert_equal(lab, *record_both(lab, "capture-writes-slot0", FIXED))


def test_conv_leak_is_only_in_conv_and_only_after_a_previous_owner(lab):
    a, b = record_both(lab, "conv-leak", SHORT)
    found = assert_differs(lab, a, b)
    assert found["patterns"]["planes"] == {"tensors": ["conv"], "first_layer": 0, "last_layer": 3}
    assert {p["tensor"] for s in slots(found, "differs").values() for p in s["planes_differing"]} == {"conv"}
    live, owners, second = {}, {}, {}
    for e in b.of("alloc"):
        owners[e["slot"]] = owners.get(e["slot"], 0) + 1
        if e["use"] == "live":
            second[e["request"]] = owners[e["slot"]] > 1
            live[e["request"]] = e["slot"]
    restored = {e["request"] for e in b.of("restore")}
    first_chunks = [e for e in b.of("donate") if e["claimed_len"] == 2 and e["request"] not in restored]
    assert {second[e["request"]] for e in first_chunks} == {False, True}
    assert all(e["differs"] == second[e["request"]] for e in first_chunks)
    assert all(e in first_chunks for e in b.of("donate") if e["differs"])


def test_conv_leak_is_rolled_out_by_a_longer_first_chunk(lab):
    assert_equal(lab, *record_both(lab, "conv-leak", FIXED))


def test_padding_aliases_live_only_when_padded(lab):
    a, b = record_both(lab, "padding-aliases-live", THREE)
    found = assert_differs(lab, a, b)
    assert found["patterns"]["padded_only"] is True
    assert (found["first_divergence"]["batch"], found["first_divergence"]["padded"]) == (3, 4)
    assert "only in padded batches" in lab.slotprobe("diff", a.path, b.path).stdout
    full = (*SLOT_0, "--waves", "--concurrency", "4")
    a, b = record_both(lab, "padding-aliases-live", full)
    assert all(e["padded"] == e["batch"] for e in b.of("step"))
    assert_equal(lab, a, b)
    assert_equal(lab, *record_both(lab, "padding-aliases-live", (*THREE[:1], *THREE[2:])))  # slot 0 is reserved


def test_wrong_position_is_a_wrong_length_in_prefills_of_several(lab):
    a, b = record_both(lab, "wrong-position", EIGHTS)
    found = assert_differs(lab, a, b)
    assert assert_wrong_lengths(a, b, found) >= 5
    wrong = [e for e in b.of("donate") if e["differs"]]
    assert {e["why"] for e in wrong} == {"prefill"}
    batch = {e["number"]: e["batch"] for e in b.of("step")}
    step = {int(e["id"]): e["step"] for e in lab.exported(b, "event") if e["kind"] == "donate"}
    assert {batch[step[e["id"]]] for e in wrong} == {2}


def test_snapshot_too_early_is_stale_and_another_when_restored(lab):
    a, b = record_both(lab, "snapshot-too-early", FIXED)
    found = assert_differs(lab, a, b)
    assert {k for s in slots(found, "differs").values() for k in kinds(s)} >= {"zero", "stale"}
    assert {e["why"] for e in b.of("donate") if e["differs"]} == {"prefill"}
    assert not any(e["differs"] for e in b.of("restore")), "the forward did write them, later"


def test_graph_wipes_state_to_that_of_one_token(lab):
    a, b = record_both(lab, "graph-wipes-state", SINGLE)
    found = assert_differs(lab, a, b)
    assert {e["why"] for e in b.of("donate") if e["differs"]} <= {"track", "end"}
    assert assert_wrong_lengths(a, b, found) >= 10
    named = {e["event"]["claimed_len"] for s in slots(found, "differs").values() for e in s["explain"] if e["kind"] == "wrong_length"}
    assert named == {1}


def test_two_bugs_are_two_findings(lab):
    a, b = record_both(lab, "two-bugs", FIXED)
    found = assert_differs(lab, a, b)
    of = {"non_finite": set(), "not_written": set()}
    for number, slot in slots(found, "differs").items():
        first = b.first_wrong(number)
        assert ("non_finite" in kinds(slot)) == bool(first["nan"]), f"slot {number}: {slot['explain']}"
        of[found["findings"][slot["finding"]]["cause"]].add("non_finite" if first["nan"] else first["expect"])
    assert of == {"non_finite": {"non_finite"}, "not_written": {"zero", "stale"}}
    for bug, missing in (("stale-index-tail", {"non_finite"}), ("nan-survives-clear", {"zero", "stale"})):
        _, alone = lab.diff(*record_both(lab, bug, FIXED))
        assert not missing & {k for s in slots(alone, "differs").values() for k in kinds(s)}


# ---- the one sentence of each finding ----

# bug, options, causes of its findings in the order of their first rows, kinds of explanation that may occur, what more is said
SENTENCES = [
    ("stale-index-tail", (), ["not_written"], {"zero", "stale"}, ""),
    ("nan-survives-clear", FIXED, ["non_finite"], {"non_finite"}, ""),
    ("capture-writes-slot0", SLOT_0, ["unknown"], {"unknown"}, ""),
    ("conv-leak", SHORT, ["unknown"], {"unknown"}, "only in conv, layers 0 to 3; only in slots that had an owner before"),
    ("padding-aliases-live", THREE, ["unknown"], {"unknown"}, "only in padded batches"),
    ("wrong-position", EIGHTS, ["wrong_length"], {"wrong_length", "misplaced", "zero"}, ""),
    ("snapshot-too-early", FIXED, ["not_written"], {"zero", "stale"}, ""),
    ("graph-wipes-state", SINGLE, ["wrong_length"], {"wrong_length", "misplaced", "stale"}, ""),
    ("two-bugs", FIXED, ["non_finite", "not_written"], {"non_finite", "zero", "stale"}, ""),
    ("padded-eager-equal", FIXED, ["unknown"], {"unknown"}, "only in ssm, layers 0 to 3"),
    ("aliased-write", FIXED, ["unknown"], {"unknown"}, "only in ssm, layers 3 to 3"),
]


def handed_over(run, number):
    """The journal's donation of that id."""
    (line,) = [e for e in run.of("donate") if e["id"] == int(number)]
    return line


SUBJECT = r"slot (\d+)'s state(?: in [a-z and]+)? at length (\d+) \(donation (\d+) of run B\) "


def assert_is_true(sentence, lab, a, b):
    """Each clause names a wrong hand-over of the journal, and what it says of it is what the journal has. Returns what was said."""
    said = []
    events = list(zip(slot_events(b), lab.exported(b, "event"), strict=True))
    for clause in sentence.split("; "):
        of = re.match(SUBJECT, clause)
        if not of:
            continue
        slot, length, number = map(int, of.groups())
        wrong = handed_over(b, number)
        assert (wrong["slot"], wrong["claimed_len"], wrong["differs"]) == (slot, length, True), clause
        rest = clause[of.end():]
        said.append(rest.rsplit(": ", 1)[1].split(",")[0])
        if "all zeros" in rest:
            assert wrong["expect"] == "zero", clause
        elif "previous owner" in rest:
            before = handed_over(b, re.search(r"\(donation (\d+), length (\d+)\)", rest).group(1))
            assert (before["slot"], before["hash"]) == (slot, wrong["hash"]), clause
            assert f"length {before['claimed_len']})" in rest, clause
        elif "checkpoint of length" in rest:
            length, number, where = re.search(r"length (\d+) \(donation (\d+) of run A, slot (\d+)\)", rest).groups()
            right = handed_over(a, number)
            assert (right["claimed_len"], right["slot"], right["hash"]) == (int(length), int(where), wrong["hash"]), clause
        elif "NaN" in rest:
            where, number = re.search(r"first in slot (\d+) \(allocation (\d+)\)", rest).groups()
            line, event = next((line, event) for line, event in events if line["nan"] and event["has_fingerprint"])
            assert wrong["nan"] and (line["slot"], event["id"], event["kind"]) == (int(where), int(number), "alloc"), clause
        elif "right bytes lie" in rest:
            assert wrong["in_slot0"] is not False and "slot 0, which was watched" in rest, clause
        else:
            assert rest.startswith("equals nothing else"), clause
    return said


@pytest.mark.parametrize("bug, options, causes, all_kinds, more", SENTENCES, ids=[c[0] for c in SENTENCES])
def test_each_finding_has_its_one_sentence(lab, bug, options, causes, all_kinds, more):
    a, b = record_both(lab, bug, options)
    found = assert_differs(lab, a, b)
    assert [f["cause"] for f in found["findings"]] == causes
    assert {k for s in slots(found, "differs").values() for k in kinds(s)} == all_kinds
    assert sum(f["n_rows"] for f in found["findings"]) == len(b.slots_differing)
    wrong = [e for e in b.of("donate") if e["differs"]]
    text = lab.slotprobe("diff", a.path, b.path).stdout
    for i, finding in enumerate(found["findings"]):
        sentence = finding["sentence"]
        said = assert_is_true(sentence, lab, a, b)
        assert said and set(said) <= {"zero", "stale", "misplaced", "wrong length", "non-finite", "unknown"}
        assert said[0].replace(" ", "_").replace("-", "_") == finding["kind"]
        if i == 0:  # the earliest hand-over that is wrong, where its own kind leads
            first = next(e for e in found["findings"][0]["events"] if e["part"] == "wrong")
            assert int(first["id"], 16) == wrong[0]["id"]
        assert more in sentence
        assert f"  {i + 1}. {sentence}\n" in text
        assert "reported from toy_report_donate" in sentence


def test_the_sentence_of_a_watched_slot_says_where_the_bytes_went(lab):
    watch = ("--watch-slot", "0")
    a, b = lab.record("graph-off", options=watch), lab.record("graph-on", *STALE, options=watch)
    (finding,) = assert_differs(lab, a, b)["findings"]
    assert assert_is_true(finding["sentence"], lab, a, b) == ["zero", "stale", "misplaced"]
    assert finding["cause"] == "not_written" and finding["kinds"]["misplaced"] >= 5


def test_an_equal_pair_has_no_finding(lab):
    assert lab.diff(lab.record("graph-off"), lab.record("graph-on"))[1]["findings"] == []


# ---- a third arm ----


@pytest.mark.parametrize("bug, options, arm, conclusion", [
    ("padded-eager-equal", FIXED, "padded-eager", "not_capture"),
    ("padded-eager-equal", FIXED, "graph-path-eager", "graph_path_not_replay"),
    ("stale-index-tail", (), "graph-path-eager", "graph_path_not_replay"),
    ("stale-index-tail", (), "padded-eager", "not_padding"),
    ("capture-writes-slot0", SLOT_0, "graph-path-eager", "replay"),
])
def test_what_the_third_arm_tells(lab, bug, options, arm, conclusion):
    a, b = record_both(lab, bug, options)
    third = lab.record(arm, "--bug", bug, *options)
    status, found = lab.diff(a, b, "--third", third.path)
    assert (status, found["verdict"]) == (1, "differs")
    assert found["third"]["conclusion"] == conclusion
    out = lab.slotprobe("diff", a.path, b.path, "--third", third.path).stdout
    assert ("capture is not the cause" in out) == (conclusion == "not_capture")
    assert ("graph path, not replay" in out) == (conclusion == "graph_path_not_replay")


def test_padded_eager_equal_is_equal_to_eager_of_the_padded_size(lab):
    bug = "padded-eager-equal"
    off, on = record_both(lab, bug, FIXED)
    found = assert_differs(lab, off, on)
    assert found["patterns"]["planes"]["tensors"] == ["ssm"]
    for arm in ("padded-eager", "graph-path-eager"):
        eager = lab.record(arm, "--bug", bug, *FIXED)
        status, found = lab.diff(eager, on)
        assert (status, found["verdict"], found["reasons"]) == (0, "equal", [])
        assert [e["hash"] for e in eager.of("donate")] == [e["hash"] for e in on.of("donate")]
        assert_differs(lab, off, eager)
    waves = (*FIXED, "--waves", "--concurrency", "3")
    assert assert_differs(lab, *record_both(lab, bug, waves))["patterns"]["padded_only"] is True
    assert_equal(lab, *record_both(lab, bug, (*FIXED, "--waves", "--concurrency", "4")))


def test_aliased_write_stands_in_no_parameter(lab):
    a, b = record_both(lab, "aliased-write", FIXED)
    found = assert_differs(lab, a, b)
    assert found["patterns"]["planes"] == {"tensors": ["ssm"], "first_layer": 3, "last_layer": 3}
    assert {k for s in slots(found, "differs").values() for k in kinds(s)} == {"unknown"}
    touching = {t["kernel"] for t in lab.exported(b, "graph_touch")}
    assert "toy_track" in touching and "toy_stray" not in touching


# ---- the fingerprint itself ----


def test_fingerprints_are_equal_where_the_toys_own_hash_is(lab):
    pairs = set()
    for run in (lab.record("graph-off"), lab.record("graph-on"), lab.record("graph-on", *STALE), lab.record("graph-on", "--seed", "2")):
        for kind in ("alloc", "donate", "restore"):
            pairs |= set(zip((e["hash"] for e in run.of(kind)), lab.hashes(run, kind), strict=True))
    assert len(pairs) > 150
    assert len({toy for toy, _ in pairs}) == len({ours for _, ours in pairs}) == len(pairs)


# ---- nothing measured, nothing switched ----


def test_path_never_walked_is_not_proven(lab):
    bug = ("--bug", "path-never-walked")
    a, b = lab.record("graph-off", *bug), lab.record("graph-on", *bug)
    assert a.end["donations"] == b.end["donations"] == 0
    assert_not_proven(lab, a, b, "probe_never_fired")
    assert_not_proven(lab, lab.record("graph-off"), b, "probe_never_fired")
    assert_not_proven(lab, a, lab.record("graph-on"), "probe_never_fired")
    for run in (a, b):
        status, found = lab.check(run)
        assert (status, found["verdict"]) == (3, "not_proven") and "probe_never_fired" in codes(found)
    assert lab.diff(a, b)[1]["findings"] == []


def test_a_disabled_probe_is_not_proven(lab):
    run = lab.record("graph-on", *STALE, "--no-donate")
    assert run.end["donations"] > 20 and run.end["calls"]["donate"] == 0
    assert_not_proven(lab, lab.record("graph-off"), run, "probe_never_fired")
    assert_counters(lab, run)


def test_switch_ignored_is_not_proven(lab):
    bug = ("--bug", "switch-ignored")
    a, b = lab.record("graph-off", *bug), lab.record("graph-on", *bug)
    assert a.end["graph_launches"] == b.end["graph_launches"] > 0
    found = assert_not_proven(lab, a, b, "switch_had_no_effect")
    assert found["summary"]["differs"] == 0 and found["findings"] == []
    # alone, each run holds: only two of them tell that the switch did nothing
    assert lab.check(a)[0] == lab.check(b)[0] == 0


def test_graphs_that_were_promised_and_never_launched_are_not_proven(lab):
    # the other way round: the toy is told graph-off, the run is labelled graph-on
    path = lab.folder / "mislabelled"
    done = lab.slotprobe("record", "-o", path, "--arm", "graph-on", "--", lab.toy, "--arm", "graph-off")
    assert done.returncode == 0
    status, found = lab.ask("diff", lab.record("graph-off").path, path)
    assert (status, found["verdict"]) == (3, "not_proven")
    assert "switch_had_no_effect" in codes(found)


# ---- one altered slot ----


def test_one_perturbed_slot_is_found(lab):
    run = lab.record("graph-on", "--perturb-slot", "5")
    assert len(run.of("perturb")) == 1
    found = assert_differs(lab, lab.record("graph-off"), run)
    assert set(slots(found, "differs")) == {5}
    assert_planes(found, run)
    assert [(p["tensor"], p["layer"]) for p in slots(found, "differs")[5]["planes_differing"]] == [("ssm", 3)]


# ---- the counters ----


@pytest.mark.parametrize("arm", ["graph-on", "graph-off", "padded-eager", "graph-path-eager"])
def test_counters_are_the_toys(lab, arm):
    assert_counters(lab, lab.record(arm))


@pytest.mark.parametrize("options", [STALE, ("--bug", "path-never-walked"), FULL, ("--follow-ups", "6")], ids="-".join)
def test_counters_are_the_toys_with_bugs_too(lab, options):
    assert_counters(lab, lab.record("graph-on", *options))


# ---- other ways to drive the driver ----

WAYS = [("--slot-ids", "device"), ("--stream", "default"), ("--stream", "per-thread"), ("--resolve", "proc"),
        ("--slot-ids", "device", "--stream", "default", "--resolve", "proc"), ("--layers", "40")]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_clean_is_equal_every_way(lab, way):
    a, b = lab.record("graph-off", *way), lab.record("graph-on", *way)
    assert_equal(lab, a, b)
    assert_counters(lab, b)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_stale_index_tail_differs_every_way(lab, way):
    a, b = lab.record("graph-off", *way), lab.record("graph-on", *STALE, *way)
    assert_differs(lab, a, b)
    assert_counters(lab, b)


# ---- what the toy refuses ----


@pytest.mark.parametrize("args, words", [
    (("--bug", "sync-hides-it"), ["sync-hides-it", "not built"]),
    (("--bug", "no-such-bug"), ["no-such-bug", "unknown"]),
    (("--no-such-option",), ["--no-such-option", "unknown"]),
    (("--requests",), ["--requests", "value"]),
    (("--slots", "5"), ["--slots", "at least"]),
], ids=lambda a: a[-1] if isinstance(a, tuple) else "")
def test_the_toy_refuses_in_one_line(lab, args, words):
    done = subprocess.run([str(lab.toy), *args], capture_output=True, text=True, env=lab.env, timeout=60, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert all(w in done.stderr for w in words), done.stderr


def test_the_toys_ptx_is_what_its_source_makes(root):
    done = subprocess.run([root / "tests/toyserver/ptx.sh", "check"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
