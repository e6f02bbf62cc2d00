# SPDX-License-Identifier: Apache-2.0
"""diff, check and report on runs made by loggen: every verdict, exit status, reason and explanation, without a server."""
import json
import os
import re
import shutil
import struct
import subprocess
import time

import pytest

import fakerun
import loggen
from loggen import (ALLOC, COPY, DISCARD, FREE, PLANES, Process, Run, number)

REQUESTS, SLOTS = 12, 6


def serve(arm="graph-on", write=None, process=None, requests=REQUESTS, lengths=None, on_donate=None, pool_name="mamba", planes=PLANES,
          n_slots=16, watch=(), full=lambda n: False):
    """A small server's life: requests one at a time, slots in turn, each donated, every third restored.

    write(pool, slot, content, n): what the forward does instead of filling the slot. on_donate(p, pool, slot, n): instead of the
    donation; returns True to have it done anyway."""
    p = process or Process()
    p.watch = list(watch)
    pool = p.pool(pool_name, planes, n_slots)
    for n in range(requests):
        slot = 1 + n % SLOTS
        length = lengths[n] if lengths else 32 + 8 * n
        key = number("prompt", n)
        p.event(ALLOC, pool, slot)
        p.step(batch=4 if full(n) else 1 + n % 3, padded=4)
        if arm == "graph-on":
            p.launch()
        content = f"prompt {n} at {length}"
        if write:
            write(pool, slot, content, n)
        else:
            pool.write(slot, content)
        if on_donate is None or on_donate(p, pool, slot, n):
            p.donate(pool, slot, length, key, key_len=length)
        if n % 3 == 0:
            p.restore(pool, slot, length, key, key_len=length)
        p.event(FREE, pool, slot)
    return Run(arm, p)


def codes(said):
    return {r["code"] for r in said["reasons"]}


def row(said, slot, pool="mamba"):
    (found,) = [s for s in said["slots"] if s["slot"] == slot and s["pool"] == pool]
    return found


def kinds(said, slot):
    return [e["kind"] for e in row(said, slot)["explain"]]


def proven(said, verdict, status, *reasons):
    assert (said["verdict"], said["exit_status"]) == (verdict, status), said["reasons"]
    for code in reasons:
        assert code in codes(said), said["reasons"]


# ---- the generator itself ----


def test_generator_matches_the_header(tmp_path):
    """Sizes and offsets of log_format.h, as the compiler has them."""
    structs = {kind: name for name, kind in vars(loggen).items() if isinstance(kind, int) and kind in loggen.FORMAT and name.isupper()
               and name not in ("SUBJECT", "WATCHED", "SOURCE", "DONATE", "RESTORE", "ALLOC", "CLEAR", "COPY", "DISCARD", "FREE")}
    source = '#include <stdio.h>\n#include "shim/record/log_format.h"\nint main(void) {\n'
    for kind, name in structs.items():
        source += f'printf("{kind} %d %zu\\n", LOG_{name}, sizeof(struct log_{name.lower()}));\n'
    source += ('printf("page %zu %zu\\n", offsetof(struct ctr_page, row), sizeof(struct ctr_page));'
               'printf("print %zu\\n", sizeof(struct log_plane_print)); return 0; }\n')
    (tmp_path / "sizes.c").write_text(source)
    subprocess.run(["gcc", "-std=gnu11", "-I", str(loggen.ROOT), "-o", str(tmp_path / "sizes"), str(tmp_path / "sizes.c")], check=True)
    lines = subprocess.run([str(tmp_path / "sizes")], capture_output=True, text=True, check=True).stdout.split("\n")
    assert len(structs) == len(loggen.FORMAT)
    for line in lines[:len(structs)]:
        kind, value, size = map(int, line.split())
        assert kind == value
        assert -(-(struct.calcsize(loggen.FORMAT[kind]) + 8) // 8) * 8 == size, structs[kind]
    assert lines[-3] == f"page {struct.calcsize(loggen.PAGE_HEAD)} {len(Process().page_bytes())}"
    assert lines[-2] == f"print {struct.calcsize(loggen.PRINT)}"


def test_verify_finds_generated_runs_whole(tool):
    done = tool.text("verify", tool.put(serve()))
    assert done.returncode == 0, done.stdout + done.stderr


# ---- equal ----


def test_equal(tool):
    said = tool.diff(serve(), serve("graph-off"))
    proven(said, "equal", 0)
    assert said["reasons"] == []
    assert said["alignment"] == {"mode": "slot", "aligned": REQUESTS, "unaligned": 0, "proof": {"key_and_length": REQUESTS, "length": 0},
                                 "rest": {"other_claim": 0, "alone": [0, 0], "without_key": [0, 0], "restores_alone": [0, 0]},
                                 "across_lives": 0, "lives": [], "tried": [{"mode": "slot", "aligned": REQUESTS, "unaligned": 0}], "proposal": None}
    assert said["summary"] == {"slots": SLOTS, "equal": SLOTS, "differs": 0, "not_proven": 0}
    assert said["first_divergence"] is None
    a, b = said["runs"]
    assert (a["arm"], a["donations"], a["restores"], a["graph_launches"], a["pool_graph_launches"]) == ("graph-on", 12, 4, 12, 12)
    assert (b["arm"], b["graph_launches"], b["pool_graph_launches"]) == ("graph-off", 0, 0)
    assert (a["driver"], a["device"]) == ("CUDA 13.0", "NVIDIA H200")
    one = row(said, 1)
    assert (one["verdict"], one["occurrences"], one["occurrence"], one["shown"]) == ("equal", 2, 2, "donate")
    assert one["rank"] == "tp0.pp0.dp0"
    assert re.fullmatch("0x[0-9a-f]{16}", one["hash"][0]) and one["hash"][0] == one["hash"][1]


def test_two_runs_of_one_arm(tool):
    proven(tool.diff(serve(), serve()), "equal", 0)
    proven(tool.diff(serve("graph-off"), serve("graph-off")), "equal", 0)
    proven(tool.diff(serve("nightly"), serve("nightly")), "equal", 0)


def test_slot_ids_on_the_device_and_late_fingerprints(tool):
    def late(p, pool, slot, n):
        length = 32 + 8 * n
        p.hold = True
        p.donate(pool, slot, length, number("prompt", n), key_len=length, device_slot=True)
        p.hold = False
        if n == REQUESTS - 1:
            p.flush_late()
        return False
    said = tool.diff(serve(on_donate=late), serve("graph-off"))
    proven(said, "equal", 0)
    assert row(said, 6)["occurrences"] == 2


def test_planes_registered_in_another_order(tool):
    said = tool.diff(serve(), serve("graph-off", planes=PLANES[::-1]))
    proven(said, "equal", 0)

    def write(pool, slot, content, n):
        pool.write(slot, content)
        if n == 4:
            pool.memory[slot][PLANES[::-1].index(PLANES[3])] = "other"
    said = tool.diff(serve(), serve("graph-off", write=write, planes=PLANES[::-1]))
    proven(said, "differs", 1)
    assert row(said, 5)["planes_differing"] == [{"tensor": PLANES[3][0], "layer": PLANES[3][1]}]


MANY = [(t, layer, 1, 64) for layer in range(70) for t in ("conv", "ssm")]


def test_fingerprints_in_parts(tool):
    """140 planes do not fit into one record."""
    proven(tool.diff(serve(planes=MANY), serve("graph-off", planes=MANY)), "equal", 0)

    def write(pool, slot, content, n):
        pool.write(slot, content)
        if n == 7:
            pool.memory[slot][130] = pool.memory[1][130]  # what slot 1 got in request 6
    said = tool.diff(serve(planes=MANY, write=write), serve("graph-off", planes=MANY))
    proven(said, "differs", 1)
    assert row(said, 2)["planes_differing"] == [{"tensor": "conv", "layer": 65}]
    assert kinds(said, 2) == ["misplaced", "wrong_length"]


def test_planes_that_come_after_their_first_fingerprint(tool):
    """A result may overtake the description of its planes in the writer: the verdict is the same."""
    def moved(run):
        p = run.processes[0]
        planes = [r for r in p.records if struct.unpack_from("<H", r)[0] == loggen.PLANE]
        p.records = [r for r in p.records if r not in planes] + planes
        return run
    proven(tool.diff(moved(serve()), serve("graph-off")), "equal", 0)


# ---- differs, and why ----


def bug(at, what, tensor=None):
    def write(pool, slot, content, n):
        if n in at:
            what(pool, slot, content, n)
        else:
            pool.write(slot, content)
    return write


def test_one_plane_differs(tool):
    def what(pool, slot, content, n):
        pool.write(slot, content)
        pool.memory[slot][2] = "something else"
    said = tool.diff(serve(write=bug([7], what)), serve("graph-off"))
    proven(said, "differs", 1, "slot_differs")
    two = row(said, 2)
    assert (two["verdict"], two["occurrence"], two["occurrences"]) == ("differs", 2, 2)
    assert two["planes_differing"] == [{"tensor": "conv", "layer": 1}]
    assert kinds(said, 2) == ["unknown"]
    assert said["summary"] == {"slots": SLOTS, "equal": SLOTS - 1, "differs": 1, "not_proven": 0}
    first = said["first_divergence"]
    assert (first["run"], first["slot"], first["occurrence"], first["claimed_len"]) == ("a", 2, 2, 32 + 8 * 7)
    assert (first["batch"], first["padded"]) == (2, 4)
    assert first["last_equal"]["claimed_len"] == 32 + 8 * 6


def test_zero_then_stale_and_found_in_watched_slot(tool):
    """Every checkpoint of the graph run goes to slot 0: zero on first use, the previous owner's bytes later."""
    def both(pool, slot, content, n):
        pool.write(0, content)
        if n == 5:
            pool.write(slot, "the old owner")  # slot 6 was written once
    watched = serve(write=both, watch=[0])
    said = tool.diff(watched, serve("graph-off", watch=[0]))
    proven(said, "differs", 1)
    assert kinds(said, 1) == ["zero", "misplaced"]
    zero, misplaced = row(said, 1)["explain"]
    assert zero["run"] == misplaced["run"] == "a"
    assert (misplaced["found_in_slot"], misplaced["watched"]) == (0, True)
    assert misplaced["event"]["id"] == zero["event"]["id"]
    assert said["first_divergence"]["last_equal"] is None
    plain = tool.text("diff", tool.folder / "run1", tool.folder / "run2").stdout
    assert "the right bytes lie in slot 0 of run A (watched)" in plain
    assert said["hints"] == [] and "hint" not in plain
    # without watching it is zero alone, and the next step is said
    said = tool.diff(serve(write=both), serve("graph-off"))
    assert kinds(said, 1) == ["zero"]
    assert said["hints"] == ["record again with --watch-slot 0: a write that went to slot 0 would be seen there"]
    plain = tool.text("diff", tool.folder / f"run{tool.n - 1}", tool.folder / f"run{tool.n}").stdout
    assert "  hint: " + said["hints"][0] in plain


def many(n, what=lambda i: None):
    """Two runs of one donation a slot; `what` says what graph-on writes into slot i instead."""
    runs = []
    for arm in ("graph-on", "graph-off"):
        p = Process()
        pool = p.pool(slots=64, first=5)
        for i in range(n):
            p.event(ALLOC, pool, 5 + i)
            p.launch(1 if arm == "graph-on" else 0)
            pool.write(5 + i, f"right {i}" if arm == "graph-off" else what(i))
            p.donate(pool, 5 + i, 32 + i, number("prompt", i), key_len=32 + i)
        runs.append(Run(arm, p))
    return runs


def test_many_slots_are_counted_and_not_listed(tool):
    said = tool.diff(*many(12))
    assert len([s for s in said["slots"] if s["verdict"] == "differs"]) == 12
    assert "--watch-slot 5:" in said["hints"][0]
    plain = tool.text("diff", tool.folder / "run1", tool.folder / "run2").stdout
    assert plain.count("planes differ:") == 8
    assert "  why: zero in 12 slots: one cause for all\n" in plain
    assert "  and 4 more slots: zero in 4 slots; --json lists them all\n" in plain
    mixed = tool.diff(*many(9, lambda i: f"other {i}" if i == 8 else None))
    assert kinds(mixed, 13) == ["unknown"] and mixed["hints"]
    plain = tool.text("diff", tool.folder / "run3", tool.folder / "run4").stdout
    assert "  why: zero in 8 slots, unknown in 1 slot\n" in plain
    assert "  and 1 more slot: unknown in 1 slot; " in plain
    tool.diff(*many(8))
    assert " more slot" not in tool.text("diff", tool.folder / "run5", tool.folder / "run6").stdout


def test_stale(tool):
    def what(pool, slot, content, n):
        pass  # the second owner writes nothing
    said = tool.diff(serve(write=bug(range(6, 12), what)), serve("graph-off"))
    proven(said, "differs", 1)
    for slot in range(1, 7):
        (stale,) = row(said, slot)["explain"]
        assert (stale["kind"], stale["run"], stale["never_written_since_alloc"]) == ("stale", "a", True)
        assert stale["event"]["claimed_len"] == 32 + 8 * (slot - 1)
        assert stale["event"]["kind"] in ("donate", "restore")
    assert codes(tool.check(serve(write=bug(range(6, 12), what)))) >= {"never_written", "same_hash_other_key"}


def test_stale_on_the_other_side_is_said(tool):
    def what(pool, slot, content, n):
        pass
    said = tool.diff(serve(), serve("graph-off", write=bug([8], what)))
    proven(said, "differs", 1)
    (stale,) = row(said, 3)["explain"]
    assert (stale["kind"], stale["run"], stale["event"]["run"]) == ("stale", "b", "b")


def test_stale_speaks_of_the_differing_planes_only(tool):
    """Only conv leaks from the previous owner."""
    def what(pool, slot, content, n):
        pool.write(slot, content, "ssm")
    said = tool.diff(serve(write=bug(range(6, 12), what)), serve("graph-off"))
    proven(said, "differs", 1)
    assert kinds(said, 4) == ["stale"]
    assert {p["tensor"] for p in row(said, 4)["planes_differing"]} == {"conv"}


def test_what_the_differences_share(tool):
    """Only conv, only in padded batches, only at lengths of one remainder."""
    def what(pool, slot, content, n):
        pool.write(slot, content, "ssm")
        pool.write(slot, "wrong", "conv")
    odd = [33 + 16 * n if n in (2, 5, 8) else 32 + 8 * n for n in range(REQUESTS)]
    said = tool.diff(serve(write=bug([2, 5, 8], what), lengths=odd, full=lambda n: n not in (2, 5, 8)),
                     serve("graph-off", lengths=odd, full=lambda n: n not in (2, 5, 8)))
    proven(said, "differs", 1)
    nothing = {"planes": None, "length": None, "padded_only": False, "reused_only": False, "restored_only": False, "rank": None}
    assert said["patterns"] == nothing | {"planes": {"tensors": ["conv"], "first_layer": 0, "last_layer": 2},
                                          "length": {"modulus": 2, "remainder": 1}, "padded_only": True}
    plain = tool.text("diff", tool.folder / "run1", tool.folder / "run2").stdout
    for line in ("only in conv, layers 0 to 2", "only at lengths that leave 1 modulo 2", "only in padded batches"):
        assert line in plain
    # one length alone is no pattern
    said = tool.diff(serve(write=bug([5], what), lengths=odd), serve("graph-off", lengths=odd))
    assert said["patterns"]["length"] is None
    # where everything differs nothing is told apart
    said = tool.diff(serve(write=lambda pool, slot, content, n: pool.write(slot, "x")), serve("graph-off"))
    assert said["patterns"] == nothing


def test_the_future_is_not_stale(tool):
    """Bytes that the slot is to hold later, rightly, for another length."""
    def what(pool, slot, content, n):
        pool.write(slot, f"prompt {n + SLOTS} at {32 + 8 * (n + SLOTS)}")
    said = tool.diff(serve(write=bug([1], what)), serve("graph-off"))
    proven(said, "differs", 1)
    assert kinds(said, 2) == ["wrong_length"]


def test_non_finite_on_both_sides_explains_nothing(tool):
    def nan(word):
        return bug([2], lambda pool, slot, content, n: pool.write(slot, "nan " + word))
    said = tool.diff(serve(write=nan("here")), serve("graph-off", write=nan("there")))
    proven(said, "differs", 1)
    assert kinds(said, 3) == ["unknown"]


def test_non_finite_points_to_the_first(tool):
    def what(pool, slot, content, n):
        pool.write(slot, "nan " + content)
    said = tool.diff(serve(write=bug([2, 8], what)), serve("graph-off"))
    proven(said, "differs", 1)
    (first,) = [e for e in row(said, 3)["explain"] if e["kind"] == "non_finite"]
    assert row(said, 3)["explain"][0] == first
    assert first["event"]["claimed_len"] == 32 + 8 * 2
    assert row(said, 3)["nan"] == [len(PLANES), 0]
    assert "non_finite" in codes(tool.check(serve(write=bug([2], what))))


def test_misplaced_holds_what_belongs_to_another_slot(tool):
    def what(pool, slot, content, n):
        pool.write(slot, f"prompt {n + 1} at {32 + 8 * (n + 1)}")
    said = tool.diff(serve(write=bug([7], what)), serve("graph-off"))
    proven(said, "differs", 1)
    assert "misplaced" in kinds(said, 2)
    misplaced = row(said, 2)["explain"][kinds(said, 2).index("misplaced")]
    assert (misplaced["event"]["run"], misplaced["found_in_slot"]) == ("b", 3)


def test_wrong_length(tool):
    """The state of a one-token prompt, that both runs checkpointed in another slot."""
    lengths = [1] + [32 + 8 * n for n in range(1, REQUESTS)]

    def what(pool, slot, content, n):
        pool.write(slot, "prompt 0 at 1")
    said = tool.diff(serve(write=bug([9], what), lengths=lengths), serve("graph-off", lengths=lengths))
    proven(said, "differs", 1)
    assert "wrong_length" in kinds(said, 4)
    assert row(said, 4)["explain"][-1]["event"]["claimed_len"] == 1


def test_restore_that_differs(tool):
    """The donation is equal, and what is restored from it is not."""
    def spoil(p, pool, slot, n):
        length = 32 + 8 * n
        p.donate(pool, slot, length, number("prompt", n), key_len=length)
        if n == 6:
            pool.write(slot, "overwritten")
        return False
    said = tool.diff(serve(on_donate=spoil), serve("graph-off"))
    proven(said, "differs", 1)
    assert (row(said, 1)["shown"], row(said, 1)["occurrence"]) == ("restore", 2)
    assert "restore_differs" in codes(tool.check(serve(on_donate=spoil)))


def test_difference_in_one_arm_run_twice(tool):
    def what(pool, slot, content, n):
        pass
    said = tool.diff(serve(write=bug([8], what)), serve())
    proven(said, "differs", 1)
    assert [(e["kind"], e["run"]) for e in row(said, 3)["explain"]] == [("stale", "a")]


# ---- not proven ----


def no_donation(p, pool, slot, n):
    return False


def test_probe_never_fired(tool):
    silent = serve(on_donate=no_donation)
    off = serve("graph-off", on_donate=no_donation)
    said = tool.diff(silent, off)
    proven(said, "not_proven", 3, "probe_never_fired")
    assert {s["verdict"] for s in said["slots"]} <= {"never_fired_both", "unpaired", "equal"}
    said = tool.diff(serve(), off)
    proven(said, "not_proven", 3, "probe_never_fired")
    assert "run B" in [r["text"] for r in said["reasons"] if r["code"] == "probe_never_fired"][0]
    proven(tool.diff(silent, serve("graph-off")), "not_proven", 3, "probe_never_fired")
    proven(tool.check(silent), "not_proven", 3, "probe_never_fired")


def test_probe_never_fired_where_there_is_not_even_a_pool(tool):
    p = Process()
    p.launch()
    said = tool.diff(Run("graph-on", p), serve("graph-off"))
    proven(said, "not_proven", 3, "probe_never_fired")
    assert "core.donate in run A" in said["reasons"][0]["text"]


def quiet(arm):
    """Allocates, and never donates nor restores."""
    p = Process()
    pool = p.pool()
    if arm == "graph-on":
        p.launch()
    for slot in range(1, 4):
        p.event(ALLOC, pool, slot)
    return Run(arm, p)


def test_never_fired_rows(tool):
    said = tool.diff(quiet("graph-on"), quiet("graph-off"))
    proven(said, "not_proven", 3, "probe_never_fired")
    assert [s["verdict"] for s in said["slots"]] == ["never_fired_both"] * 3
    assert row(said, 2)["hash"] == [None, None] and row(said, 2)["absmax"] == [None, None]
    said = tool.diff(serve(), quiet("graph-off"))
    assert {s["verdict"] for s in said["slots"]} == {"never_fired_b"}
    assert row(said, 2)["hash"][0] is not None and row(said, 2)["hash"][1] is None
    said = tool.diff(quiet("graph-on"), serve("graph-off"))
    assert {s["verdict"] for s in said["slots"]} == {"never_fired_a"}


def test_expectations(tool):
    a, b = tool.put(serve()), tool.put(serve("graph-off"))
    proven(tool.diff(a, b, "--expect", "core.donate>=12"), "equal", 0)
    proven(tool.diff(a, b, "--expect", "core.donate>=13"), "not_proven", 3, "below_expected")
    proven(tool.diff(a, b, "--expect", "core.copy>=1"), "not_proven", 3, "probe_never_fired")
    proven(tool.diff(a, b, "--expect", "sglang.*>=1"), "not_proven", 3, "probe_never_fired")
    proven(tool.diff(a, b, "--expect", "core.do*>=12"), "equal", 0)
    proven(tool.check(a, "--expect", "core.donate>=13"), "not_proven", 3, "below_expected")


def test_a_probe_that_fired_in_the_other_run(tool):
    a, b = serve(), serve("graph-off")
    a.processes[0].points = {"toy.track": {"COMMITTED": 5}}
    b.processes[0].points = {"toy.track": {}}
    said = tool.diff(a, b)
    proven(said, "not_proven", 3, "probe_never_fired")
    assert [r["text"] for r in said["reasons"]] == ["a probe never fired: toy.track: 0 in run B, 5 in run A"]
    b.processes[0].points = {"toy.track": {"COMMITTED": 1}}
    proven(tool.diff(a, b), "equal", 0)
    b.processes[0].points = {}
    proven(tool.diff(a, b), "not_proven", 3, "probe_never_fired")


def coverage_rows(plain):
    return [line.split() for line in plain[plain.index("Coverage"):].splitlines()[2:]]


def test_coverage_shows_a_probe_in_both_runs_where_one_has_it(tool):
    b = serve("graph-off")
    b.processes[0].event(DISCARD, b.processes[0].pools[0], 1, src=1)
    tool.diff(serve(), b)
    plain = tool.text("diff", tool.folder / "run1", tool.folder / "run2").stdout
    discard = [r for r in coverage_rows(plain) if "core.discard" in r]
    assert [r[:3] for r in discard] == [["A", "core.discard", "0"], ["B", "core.discard", "1"]]
    assert discard[0][-2:] == ["never", "fired"]
    assert not [r for r in coverage_rows(plain) if "core.copy" in r]


def test_no_launch_is_what_graph_off_promises(tool):
    tool.diff(serve(), serve("graph-off"))
    plain = tool.text("diff", tool.folder / "run1", tool.folder / "run2").stdout
    (launches,) = [r for r in coverage_rows(plain) if r[:2] == ["B", "core.graph_launch"]]
    assert launches[2] == "0" and " ".join(launches[9:]) == "none, as graph-off promises"
    assert "never fired" not in plain
    (launches,) = [r for r in coverage_rows(tool.text("check", tool.folder / "run2").stdout) if "core.graph_launch" in r]
    assert launches[-1] == "promises"
    run = serve("graph-off")
    run.arm = "graph-on"
    assert "never fired" in tool.text("check", tool.put(run)).stdout


def sited(run, known=True):
    """The run, all of whose events came from one call site of four frames."""
    p = run.processes[0]
    path = b"/opt/server"
    if known:
        p.put(loggen.MODULE, 1, len(path), 0x5000, tail=path)
        names = [b"donate_it", b"", b"serve", b"main"]
        frames = b"".join(struct.pack("<QII", 0x40 + i, 1 if i != 2 else 0, len(n)) for i, n in enumerate(names))
        p.put(loggen.CALLSITE, 9, len(names), sum(map(len, names)), 0, tail=frames + b"".join(names))
    return run


def at_site(arm, **more):
    p = Process()
    p.callsite = 9
    return serve(arm, process=p, **more)


def test_the_first_divergence_names_its_call_site(tool):
    def what(pool, slot, content, n):
        pool.write(slot, "wrong")
    a, b = tool.put(sited(at_site("graph-on", write=bug([3], what)))), tool.put(sited(at_site("graph-off")))
    first = tool.diff(a, b)["first_divergence"]
    assert [f["symbol"] for f in first["callsite"]] == ["donate_it", None, "serve", "main"]
    lines = tool.text("diff", a, b).stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("First divergence"))
    assert [line.strip() for line in lines[at + 1:at + 4]] == ["at donate_it (/opt/server+0x40)", "at /opt/server+0x41", "at serve (?+0x42)"]
    assert not lines[at + 4].strip().startswith("at ")
    # a site that the log does not describe
    a = tool.put(sited(at_site("graph-on", write=bug([3], what)), known=False))
    assert tool.diff(a, b)["first_divergence"]["callsite"] is None


def test_a_sentence_takes_its_call_site_from_any_row_of_the_cause(tool):
    def late(known):
        p = Process()

        def nothing(pool, slot, content, n):
            p.callsite = 9 if n == 5 else 0  # the unwinder was loaded late
        return tool.put(sited(serve("graph-on", process=p, write=bug([3, 5], nothing)), known))
    b = tool.put(serve("graph-off"))
    (finding,) = tool.diff(late(True), b)["findings"]
    assert finding["n_rows"] == 2 and finding["sentence"].endswith("; reported from donate_it")
    (finding,) = tool.diff(late(False), b)["findings"]
    assert "reported from" not in finding["sentence"]


def test_the_first_broken_event_names_its_call_site(tool):
    def nothing(pool, slot, content, n):
        pool.write(0, content)
    run = tool.put(sited(at_site("graph-on", write=nothing)))
    (written,) = [i for i in tool.check(run)["invariants"] if i["name"] == "written"]
    assert written["examples"][0]["callsite"][0] == {"symbol": "donate_it", "module": "/opt/server", "offset": "0x0000000000000040"}
    plain = tool.text("check", run).stdout
    written = plain[plain.index("  broken"):plain.index("  holds")]
    assert written.count("at donate_it (/opt/server+0x40)") == 1 and "at /opt/server+0x41" in written and "main" not in written


def test_report_says_what_came_from_a_call_site(tool):
    run = tool.put(sited(at_site("graph-on")))
    (site,) = tool.json("report", run)["call_sites"]
    assert (site["events"], site["kinds"]) == (40, {"donate": 12, "restore": 4, "alloc": 12, "free": 12})
    plain = tool.text("report", run).stdout
    assert "call site 9: donate 12, restore 4, alloc 12, free 12\n" in plain
    assert "      at donate_it (/opt/server+0x40)\n      at /opt/server+0x41\n" in plain


def test_report_heads_every_column_of_its_pools(tool):
    run = serve()
    run.processes[0].put(loggen.POOL_REMOVE, run.processes[0].tick(), 0, 0)
    plain = tool.text("report", tool.put(run)).stdout
    lines = plain[plain.index("Pools"):].splitlines()
    assert lines[1].split()[-1] == "removed" and lines[2].split()[-1] == "yes"


def test_arm_unknown(tool):
    proven(tool.diff(serve(None), serve("graph-off")), "not_proven", 3, "arm_unknown")
    # it stands before a difference

    def what(pool, slot, content, n):
        pool.write(slot, "wrong")
    proven(tool.diff(serve(None, write=bug([3], what)), serve("graph-off")), "not_proven", 3, "arm_unknown")


@pytest.mark.parametrize("arm", ["graph-off", "padded-eager", "graph-path-eager"])
def test_switch_had_no_effect(tool, arm):
    ignored = serve()
    ignored.arm = arm
    proven(tool.diff(serve(), ignored), "not_proven", 3, "switch_had_no_effect")


def test_switch_stands_before_a_difference(tool):
    def what(pool, slot, content, n):
        pool.write(slot, "wrong")
    ignored = serve(write=bug([3], what))
    ignored.arm = "graph-off"
    proven(tool.diff(serve(), ignored), "not_proven", 3, "switch_had_no_effect")


def test_graph_arm_without_launches(tool):
    idle = serve("graph-off")
    idle.arm = "graph-on"
    proven(tool.diff(idle, serve("graph-off")), "not_proven", 3, "switch_had_no_effect")


def test_no_launch_before_what_was_compared(tool):
    """Launches there were, but all before the slots were set up."""
    p = Process()
    p.launch(3)
    run = serve("graph-off", process=p)
    run.arm = "graph-on"
    proven(tool.diff(run, serve("graph-off")), "not_proven", 3, "no_launch_before_donation")


@pytest.mark.parametrize("row_name", ["core.donate", "core.restore"])
@pytest.mark.parametrize("outcome,code", [("DROPPED_RING", "records_dropped"), ("DROPPED_QUEUE", "records_dropped"),
                                          ("SKIPPED_CAPTURING", "skipped_needed"), ("SKIPPED_DISK", "skipped_needed"),
                                          ("ERROR_DRIVER", "skipped_needed")])
def test_losses_that_only_the_counters_know(tool, row_name, outcome, code):
    lossy = serve()
    lossy.processes[0].counted(row_name, outcome)
    said = tool.diff(lossy, serve("graph-off"))
    proven(said, "not_proven", 3, code)
    proven(tool.diff(serve("graph-off"), lossy), "not_proven", 3, code)
    proven(tool.check(lossy), "not_proven", 3, code)
    assert tool.text("report", tool.folder / "run1").returncode == 3


def test_in_flight_when_killed(tool):
    killed = serve()
    killed.processes[0].in_flight = {"core.donate": 1}
    killed.processes[0].end, killed.processes[0].state = False, 1
    proven(tool.diff(killed, serve("graph-off")), "not_proven", 3, "in_flight_lost")


def test_in_flight_while_it_runs(tool):
    """Nobody was killed: it had not finished."""
    pid = os.getpid()
    alive = Process(pid=pid, starttime=fakerun.starttime(pid), host=os.uname().nodename)
    running = serve(process=alive)
    alive.in_flight = {"core.donate": 1}
    alive.end, alive.state = False, 1
    said = tool.diff(running, serve("graph-off"))
    proven(said, "not_proven", 3, "not_finished")
    assert codes(said) == {"not_finished"} and "killed" not in json.dumps(said["reasons"])
    assert codes(tool.check(running)) == {"not_finished"}
    # and a fingerprint that has not come is not cut off
    alive = Process(pid=pid, starttime=fakerun.starttime(pid), host=os.uname().nodename)
    running = serve(process=alive, on_donate=skipping([9], "COMMITTED", lose_print=True))
    alive.count["core.donate"]["COMMITTED"] -= 1
    alive.in_flight = {"core.donate": 1}
    alive.end, alive.state = False, 1
    assert codes(tool.diff(running, serve("graph-off"))) == {"not_finished"}


def test_an_adapter_that_reports_errors(tool):
    """Of any of its points: what it did not understand it did not report."""
    a, b = serve(), serve("graph-off")
    for run in (a, b):
        run.processes[0].points = {"toy.donate": {"COMMITTED": 5}, "toy.symbols": {"COMMITTED": 1}}
    proven(tool.diff(a, b), "equal", 0)
    for outcome in ("ERROR_ADAPTER", "ERROR_ARGUMENT"):
        b.processes[0].points["toy.symbols"] = {"COMMITTED": 1, outcome: 1}
        said = tool.diff(a, b)
        proven(said, "not_proven", 3, "adapter_error")
        assert "toy.symbols: 1 of 2" in said["reasons"][0]["text"]
        proven(tool.check(b), "not_proven", 3, "adapter_error")


def test_a_killed_server_that_lost_nothing(tool):
    killed = serve()
    killed.processes[0].end, killed.processes[0].state = False, 1
    proven(tool.diff(killed, serve("graph-off")), "equal", 0)
    assert tool.text("report", tool.folder / "run1").returncode == 0


def skipping(at, outcome, **more):
    def on_donate(p, pool, slot, n):
        if n not in at:
            return True
        length = 32 + 8 * n
        p.donate(pool, slot, length, number("prompt", n), key_len=length, outcome=outcome, **more)
        return False
    return on_donate


def test_a_skipped_donation_has_its_row(tool):
    said = tool.diff(serve(on_donate=skipping([8], "SKIPPED_CAPTURING")), serve("graph-off"))
    proven(said, "not_proven", 3, "skipped_needed")
    three = row(said, 3)
    assert (three["verdict"], three["occurrence"]) == ("lost", 2)
    assert three["hash"][0] is None and three["hash"][1] is not None
    assert row(said, 2)["verdict"] == "equal"


def test_a_donation_whose_slot_never_came_back(tool):
    said = tool.diff(serve(on_donate=skipping([11], "DROPPED_RING", device_slot=True)), serve("graph-off"))
    proven(said, "not_proven", 3, "records_dropped")
    (lost,) = [s for s in said["slots"] if s["slot"] is None]
    assert lost["verdict"] == "lost"


def test_a_fingerprint_that_never_came(tool):
    said = tool.diff(serve(on_donate=skipping([9], "COMMITTED", lose_print=True)), serve("graph-off"))
    proven(said, "not_proven", 3, "log_counters_disagree")
    killed = serve(on_donate=skipping([9], "COMMITTED", lose_print=True))
    killed.processes[0].end = False
    said = tool.diff(killed, serve("graph-off"))
    proven(said, "not_proven", 3, "log_truncated")
    assert row(said, 4)["verdict"] == "truncated"


def test_slot_ids_out_of_range_on_both_sides(tool):
    """A fingerprint came, and says that there is none."""
    bad = skipping([9], "ERROR_SLOT", device_slot=True)
    said = tool.diff(serve(on_donate=bad), serve("graph-off", on_donate=bad))
    proven(said, "not_proven", 3, "skipped_needed")
    (lost,) = [s for s in said["slots"] if s["slot"] is None]
    assert (lost["verdict"], lost["hash"]) == ("lost", [None, None])


def test_padding_is_no_donation(tool):
    padding = skipping([9], "FILTERED_PADDING", device_slot=True)
    said = tool.diff(serve(on_donate=padding), serve("graph-off", on_donate=padding))
    proven(said, "equal", 0)
    assert said["alignment"]["aligned"] == REQUESTS - 1


def test_a_fingerprint_without_its_last_part(tool):
    def without(run):
        p = run.processes[0]
        parts = [i for i, r in enumerate(p.records) if struct.unpack_from("<H", r)[0] == loggen.FINGERPRINT
                 and struct.unpack_from("<I", r, 8 + 36)[0] > 0]
        del p.records[parts[-1]]
        return run
    a, b = without(serve(planes=MANY, requests=6)), without(serve("graph-off", planes=MANY, requests=6))
    said = tool.diff(a, b)
    proven(said, "not_proven", 3, "log_counters_disagree")
    assert row(said, 6)["verdict"] == "lost"
    assert row(said, 6)["hash"] == [None, None]


def test_parts_of_a_fingerprint_out_of_order(tool):
    """Parts come in order; anything else was not written by us."""
    run = serve(planes=MANY, requests=6)
    p = run.processes[0]
    parts = [i for i, r in enumerate(p.records) if struct.unpack_from("<H", r)[0] == loggen.FINGERPRINT
             and struct.unpack_from("<I", r, 8 + 36)[0] > 0]
    p.records[parts[2]], p.records[parts[3]] = p.records[parts[3]], p.records[parts[2]]
    proven(tool.diff(run, serve("graph-off", planes=MANY, requests=6)), "not_proven", 3, "log_damaged")


def test_a_fingerprint_of_another_pool(tool):
    """Its layout is the same, and it is not the pool that was donated."""
    def two(arm, pool_of_print):
        p = Process()
        pools = [p.pool("one"), p.pool("two")]
        for n, pool in enumerate(pools):
            p.launch() if arm == "graph-on" else None
            pool.write(1, f"state {n}")
            p.donate(pool, 1, 32 + n)
        run = Run(arm, p)
        return changed(run, loggen.FINGERPRINT, (0, 24, "i"), lambda old: pool_of_print)
    proven(tool.diff(two("graph-on", 0), two("graph-off", 0)), "equal", 0)
    proven(tool.diff(two("graph-on", 1), two("graph-off", 0)), "not_proven", 3, "log_damaged")
    proven(tool.diff(two("graph-on", 1), two("graph-off", 1)), "not_proven", 3, "log_damaged")


def test_a_difference_is_found_beside_a_loss(tool):
    """A measured difference stands before what was lost."""
    def what(pool, slot, content, n):
        pool.write(slot, "wrong")
    said = tool.diff(serve(write=bug([3], what), on_donate=skipping([8], "SKIPPED_CAPTURING")), serve("graph-off"))
    proven(said, "differs", 1, "slot_differs", "skipped_needed")


def test_allow_missing(tool):
    a, b = tool.put(serve(on_donate=skipping([8], "SKIPPED_CAPTURING"))), tool.put(serve("graph-off"))
    proven(tool.diff(a, b, "--allow-missing", "/mamba/3$"), "equal", 0)
    proven(tool.diff(a, b, "--allow-missing", "/mamba/4$"), "not_proven", 3, "skipped_needed")
    fewer = tool.put(serve("graph-off", requests=11))
    proven(tool.diff(a, fewer, "--allow-missing", "/mamba/[36]$"), "equal", 0)
    assert tool.text("diff", a, b, "--allow-missing", "(").returncode == 2
    # it excuses what is missing, never a difference

    def what(pool, slot, content, n):
        pool.write(slot, "wrong")
    proven(tool.diff(serve(write=bug([3], what)), b, "--allow-missing", "."), "differs", 1)


def test_unpaired_donations(tool):
    said = tool.diff(serve(), serve("graph-off", requests=11))
    proven(said, "not_proven", 3, "slot_missing")
    assert row(said, 6)["verdict"] == "unpaired"
    assert said["alignment"]["unaligned"] == 1
    said = tool.diff(serve(requests=5), serve("graph-off", requests=6))
    proven(said, "not_proven", 3, "slot_missing")
    assert row(said, 6)["verdict"] == "never_fired_a"


def test_a_restore_without_a_partner(tool):
    def no_restore(p, pool, slot, n):
        return True
    a, b = serve(), serve("graph-off")
    p = b.processes[0]
    p.restore(p.pools[0], 6, 32 + 8 * 11, number("prompt", 11), key_len=32 + 8 * 11)
    said = tool.diff(a, b)
    proven(said, "not_proven", 3, "slot_missing")
    assert (row(said, 6)["verdict"], row(said, 6)["shown"]) == ("unpaired", "restore")


def test_other_lengths(tool):
    lengths = [32 + 8 * n for n in range(REQUESTS)]
    lengths[4] += 1
    said = tool.diff(serve(), serve("graph-off", lengths=lengths), "--align", "slot")
    proven(said, "not_proven", 3, "claimed_len_mismatch")
    assert row(said, 5)["verdict"] == "incomparable"
    assert row(said, 5)["claimed_len"] == [64, 65]

    def of_another_key(p, pool, slot, n):
        if n == 4:
            p.donate(pool, slot, 64, 99, key_len=64)
        return n != 4
    said = tool.diff(serve(), serve("graph-off", on_donate=of_another_key), "--align", "slot")
    proven(said, "not_proven", 3, "claimed_len_mismatch")
    assert "mamba/5: occurrence 1 claims one length, 64, for two keys" in next(r["text"] for r in said["reasons"]
                                                                             if r["code"] == "claimed_len_mismatch")


def test_another_workload(tool):
    p = Process()
    pool = p.pool()
    for n in range(REQUESTS):
        pool.write(1 + n % SLOTS, f"other {n}")
        p.donate(pool, 1 + n % SLOTS, 500 + n, number("other", n))
    proven(tool.diff(serve(), Run("graph-off", p)), "not_proven", 3, "workload_mismatch")


def test_no_common_slots(tool):
    def shifted(p, pool, slot, n):
        length = 32 + 8 * n
        pool.write(slot + 8, f"prompt {n} at {length}")
        p.donate(pool, slot + 8, length, number("prompt", n), key_len=length)
        return False
    a, b = tool.put(serve(lengths=[9] * 12)), tool.put(serve("graph-off", on_donate=shifted))
    proven(tool.diff(a, b, "--align", "slot"), "not_proven", 3, "no_common_slots")


@pytest.mark.parametrize("change", ["slots", "dtype", "elems", "fewer", "tensor", "layer"])
def test_layout_mismatch(tool, change):
    planes = [list(p) for p in PLANES]
    if change == "dtype":
        planes[1][2] = 0
    if change == "elems":
        planes[1][3] += 1
    if change == "fewer":
        planes.pop()
    if change == "tensor":
        planes[1][0] = "temporal"
    if change == "layer":
        planes[1][1] = 9
    said = tool.diff(serve(), serve("graph-off", planes=[tuple(p) for p in planes], n_slots=17 if change == "slots" else 16))
    proven(said, "not_proven", 3, "layout_mismatch")


def test_a_pool_of_another_name(tool):
    proven(tool.diff(serve(), serve("graph-off", pool_name="other")), "not_proven", 3, "layout_mismatch")


# ---- ranks ----


def two_ranks(arm, missing=False, count=2):
    a = serve(arm, process=Process(pid=4194301, ranks=(("tp", 0, count),)))
    if not missing:
        a.processes += serve(arm, process=Process(pid=4194302, ranks=(("tp", 1, count),))).processes
    return a


def test_ranks(tool):
    said = tool.diff(two_ranks("graph-on"), two_ranks("graph-off"))
    proven(said, "equal", 0)
    assert {s["rank"] for s in said["slots"]} == {"tp0.pp0.dp0", "tp1.pp0.dp0"}
    assert said["summary"]["slots"] == 2 * SLOTS
    said = tool.diff(two_ranks("graph-on"), two_ranks("graph-off", missing=True))
    proven(said, "not_proven", 3, "rank_missing")
    # where no axis says how many there are, the other run does
    said = tool.diff(two_ranks("graph-on", count=0), two_ranks("graph-off", count=0, missing=True))
    proven(said, "not_proven", 3, "rank_missing")
    assert "layout_mismatch" not in codes(said)
    # both lack it: an axis says how many there must be
    proven(tool.diff(two_ranks("graph-on", missing=True), two_ranks("graph-off", missing=True)), "not_proven", 3, "rank_missing")


def test_processes_that_report_no_rank(tool):
    def run(arm):
        parts = [serve(arm, process=Process(pid=4194301 + i, starttime=7 + i, ranks=())) for i in range(2)]
        return Run(arm, *(p for r in parts for p in r.processes))
    said = tool.diff(run("graph-on"), run("graph-off"))
    proven(said, "equal", 0)
    assert {s["rank"] for s in said["slots"]} == {"tp0.pp0.dp0", "tp0.pp0.dp0#2"}


# ---- damage ----


def test_a_log_cut_anywhere_is_never_equal(tool):
    whole = serve("graph-off").processes[0].log_bytes()
    a = tool.put(serve())
    b = tool.put(serve("graph-off"))
    (log,) = b.glob("*.log")
    for cut in [0, 3, 40, 71, 72, 73, *range(200, len(whole), len(whole) // 23), len(whole) - 100, len(whole) - 33, len(whole) - 1]:
        log.write_bytes(whole[:cut])
        done = tool.text("diff", "--json", a, b)
        said = json.loads(done.stdout)
        assert done.returncode == 3, cut
        assert "log_truncated" in codes(said), cut
        assert tool.text("check", b).returncode == 3, cut
        assert tool.text("report", b).returncode == 3, cut


def test_a_log_cut_between_two_chunks(tool):
    run = serve("graph-off")
    p = run.processes[0]
    a, b = tool.put(serve()), tool.put(run)
    (log,) = b.glob("*.log")
    chunks = p.chunks(p.records + [loggen.record(loggen.END, p.now + 1, 3000, len(p.records))])
    assert len(chunks) > 2
    at = 72
    for chunk in chunks[:-1]:
        at += len(chunk)
        log.write_bytes(p.log_bytes()[:at])
        said = tool.diff(a, b)
        proven(said, "not_proven", 3, "log_truncated")


def test_every_flipped_byte_of_a_log_is_noticed(tool):
    whole = serve("graph-off").processes[0].log_bytes()
    a, b = tool.put(serve()), tool.put(serve("graph-off"))
    (log,) = b.glob("*.log")
    for at in [*range(0, 72), *range(72, 130), *range(130, len(whole), len(whole) // 61)]:
        log.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1:])
        assert tool.text("diff", a, b).returncode in (2, 3), at


def test_a_lost_chunk_in_the_middle(tool):
    run = serve("graph-off")
    p = run.processes[0]
    a, b = tool.put(serve()), tool.put(run)
    (log,) = b.glob("*.log")
    whole = p.log_bytes()
    second = 72 + len(p.chunks(p.records)[0])
    third = second + len(p.chunks(p.records)[1])
    log.write_bytes(whole[:second] + whole[third:])
    proven(tool.diff(a, b), "not_proven", 3, "log_damaged")
    log.write_bytes(whole[:second + 60] + bytes([whole[second + 60] ^ 1]) + whole[second + 61:])
    proven(tool.diff(a, b), "not_proven", 3, "log_damaged")


def test_records_that_contradict_each_other(tool):
    """An event that comes twice, with sound checksums."""
    run = serve("graph-off")
    p = run.processes[0]
    p.records.append([r for r in p.records if struct.unpack_from("<H", r)[0] == loggen.EVENT][1])
    said = tool.diff(serve(), run)
    proven(said, "not_proven", 3, "log_damaged")
    assert codes(said) == {"log_damaged"}


def test_a_log_or_a_page_that_is_gone(tool):
    gone = serve("graph-off")
    gone.processes[0].log = False
    proven(tool.diff(serve(), gone), "not_proven", 3, "log_truncated")
    gone = serve("graph-off")
    gone.processes[0].page = False
    said = tool.diff(serve(), gone)
    proven(said, "not_proven", 3, "counters_damaged")
    assert said["runs"][1]["pool_graph_launches"] is None
    proven(tool.diff(serve(), Run("graph-off")), "not_proven", 3, "never_loaded")
    proven(tool.check(Run("graph-off")), "not_proven", 3, "never_loaded")


def test_hooks_that_were_missed(tool):
    for name in ("unrouted_entries", "runtime_without_driver"):
        run = serve("graph-off")
        run.processes[0].count[name] = {"COMMITTED": 2}
        proven(tool.diff(serve(), run), "not_proven", 3, "unrouted_entry")


def test_lost_metadata(tool):
    run = serve("graph-off")
    run.processes[0].count["metadata_lost"] = {"COMMITTED": 1}
    proven(tool.diff(serve(), run), "not_proven", 3, "records_dropped")


def test_not_readable(tool):
    a = tool.put(serve())
    for b, what in [(tool.folder / "absent", "absent"), (tool.folder, "manifest")]:
        done = tool.text("diff", a, b)
        assert (done.returncode, done.stdout) == (2, ""), what
        assert done.stderr.count("\n") == 1
    foreign = tool.put(serve("graph-off"))
    (log,) = foreign.glob("*.log")
    log.write_bytes(b"GIF89a" + log.read_bytes()[6:])
    for arguments in (["diff", a, foreign], ["check", foreign], ["report", foreign]):
        done = tool.text(*arguments)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, arguments


def test_output_file(tool):
    a, b = tool.put(serve()), tool.put(serve("graph-off"))
    out = tool.folder / "out.json"
    done = tool.text("diff", "--json", "-o", out, a, b)
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(out.read_text())["verdict"] == "equal"
    assert tool.text("diff", "-o", "/dev/full", a, b).returncode == 2


# ---- nothing recorded may change and stay equal ----


def changed(run, kind, at, new):
    """The run with one field of one record of a kind changed: at = (which record, byte offset after the header, format)."""
    which, offset, form = at
    p = run.processes[0]
    found = [i for i, r in enumerate(p.records) if struct.unpack_from("<H", r)[0] == kind]
    r = bytearray(p.records[found[which]])
    (old,) = struct.unpack_from("<" + form, r, 8 + offset)
    struct.pack_into("<" + form, r, 8 + offset, new(old))
    p.records[found[which]] = bytes(r)
    return run


def flip(old):
    return old ^ 1 if isinstance(old, int) else old + 0.5


HEAD = struct.calcsize(loggen.FORMAT[loggen.FINGERPRINT])
E = {name: struct.calcsize(loggen.FORMAT[loggen.EVENT][:1 + i]) for i, name in enumerate(
    ["id", "t_ns", "kind", "pool", "slot", "slot_ptr", "claimed_len", "key_len", "key", "src", "stream", "context", "step", "launches",
     "pool_launches", "outcome", "has"])}
DONATION = 1  # the second event: alloc, then donate


@pytest.mark.parametrize("field,form", [("absmax", "d"), ("l2", "d"), ("nan", "Q"), ("inf", "Q"), ("hash", "Q"), ("sample0", "Q"),
                                        ("sample1", "Q"), ("sample2", "Q"), ("sample3", "Q")])
@pytest.mark.parametrize("plane", [0, 5])
@pytest.mark.parametrize("which", [1, 2])
def test_each_fact_of_a_plane_counts(tool, field, form, plane, which):
    """Of a donation (the second fingerprint) and of a restore (the third)."""
    offset = HEAD + 72 * plane + 8 * ["absmax", "l2", "nan", "inf", "hash", "sample0", "sample1", "sample2", "sample3"].index(field)
    said = tool.diff(changed(serve(), loggen.FINGERPRINT, (which, offset, form), flip), serve("graph-off"))
    proven(said, "differs", 1)


@pytest.mark.parametrize("form,offset", [("Q", 0), ("q", 16), ("i", 24), ("I", 28), ("I", 32), ("I", 36), ("I", 40), ("I", 44),
                                         ("Q", 48)])
@pytest.mark.parametrize("which", [1, 2])
def test_each_field_of_a_fingerprint_counts(tool, form, offset, which):
    said = tool.diff(changed(serve(), loggen.FINGERPRINT, (which, offset, form), flip), serve("graph-off"))
    assert said["verdict"] != "equal"


@pytest.mark.parametrize("field,form", [("id", "Q"), ("kind", "I"), ("pool", "i"), ("slot", "q"), ("claimed_len", "q"), ("key_len", "q"),
                                        ("key", "Q"), ("outcome", "I"), ("has", "I")])
@pytest.mark.parametrize("which", [1, 2])
def test_each_field_of_an_event_counts(tool, field, form, which):
    new = flip if field != "id" else lambda old: old + 1000
    said = tool.diff(changed(serve(), loggen.EVENT, (which, E[field], form), new), serve("graph-off"))
    assert said["verdict"] != "equal"


@pytest.mark.parametrize("offset,form", [(8, "i"), (12, "i"), (16, "q"), (24, "q"), (32, "I"), (40, "Q"), (64, "B")])
def test_each_field_of_a_pool_counts(tool, offset, form):
    fine = offset == 12  # the device's number may differ
    said = tool.diff(changed(serve(), loggen.POOL, (0, offset, form), flip), serve("graph-off"))
    assert (said["verdict"] == "equal") == fine


@pytest.mark.parametrize("offset,form", [(0, "i"), (4, "I"), (8, "i"), (12, "I"), (32, "Q"), (40, "Q"), (48, "B")])
@pytest.mark.parametrize("plane", [0, 5])
def test_each_field_of_a_plane_counts(tool, offset, form, plane):
    said = tool.diff(changed(serve(), loggen.PLANE, (plane, offset, form), flip), serve("graph-off"))
    assert said["verdict"] != "equal"


def test_addresses_times_and_streams_do_not_count(tool):
    for kind, at in [(loggen.PLANE, (0, 16, "Q")), (loggen.PLANE, (0, 24, "q")), (loggen.EVENT, (1, E["t_ns"], "Q")),
                     (loggen.EVENT, (1, E["stream"], "Q")), (loggen.FINGERPRINT, (1, 8, "Q"))]:
        proven(tool.diff(changed(serve(), kind, at, flip), serve("graph-off")), "equal", 0)


def test_a_donation_that_was_not_taken_on_one_side(tool):
    def discard(p, pool, slot, n):
        length = 32 + 8 * n
        donation = p.donate(pool, slot, length, number("prompt", n), key_len=length)
        if n == 4:
            p.event(DISCARD, pool, slot, src=donation)
        return False
    proven(tool.diff(serve(on_donate=discard), serve("graph-off", on_donate=discard)), "equal", 0)
    assert tool.diff(serve(on_donate=discard), serve("graph-off"))["verdict"] == "not_proven"


def test_slots_that_hold_nothing_measure_nothing(tool):
    empty = [("conv", 0, 3, 0)]
    said = tool.diff(serve(planes=empty), serve("graph-off", planes=empty))
    assert said["verdict"] == "not_proven"


# ---- by key and by order ----


def shuffled(arm, write=None):
    """The same requests in other slots, as timing under load would have it."""
    def elsewhere(p, pool, slot, n):
        length = 32 + 8 * n
        other = 1 + (n * 5 + 3) % 12
        pool.memory[other] = pool.memory[slot]
        p.donate(pool, other, length, number("prompt", n), key_len=length)
        return False
    run = Process()
    return serve(arm, on_donate=elsewhere, process=run, write=write)


def no_restores(run):
    p = run.processes[0]
    keep = []
    gone = set()
    for r in p.records:
        kind = struct.unpack_from("<H", r)[0]
        if kind == loggen.EVENT and struct.unpack_from("<I", r, 8 + E["kind"])[0] == loggen.RESTORE:
            gone.add(struct.unpack_from("<Q", r, 8)[0])
            continue
        if kind == loggen.FINGERPRINT and struct.unpack_from("<Q", r, 8)[0] in gone:
            continue
        keep.append(r)
    p.records = keep
    p.count["core.restore"] = {}
    return run


def test_by_key(tool):
    a, b = tool.put(no_restores(serve())), tool.put(no_restores(shuffled("graph-off")))
    said = tool.diff(a, b)
    proven(said, "equal", 0)
    assert said["alignment"].items() >= {"mode": "key", "aligned": REQUESTS, "unaligned": 0, "proposal": None}.items()
    said = tool.diff(a, b, "--align", "slot")
    proven(said, "not_proven", 3)
    # what was asked for leaves a rest: why, and what would not
    alignment = said["alignment"]
    rest = alignment["rest"]
    assert alignment["unaligned"] == rest["other_claim"] + sum(rest["alone"]) > 0
    assert alignment["proposal"] == "key"
    assert {t["mode"]: (t["aligned"], t["unaligned"]) for t in alignment["tried"]}["key"] == (REQUESTS, 0)
    assert f"--align key would line up {REQUESTS}" in tool.text("diff", a, b, "--align", "slot").stdout
    proven(tool.diff(a, b, "--align", "order"), "equal", 0)

    def what(pool, slot, content, n):
        pool.write(slot, "wrong")
    said = tool.diff(a, no_restores(shuffled("graph-off", write=bug([4], what))))
    proven(said, "differs", 1)
    assert row(said, 5)["verdict"] == "differs"


# ---- check ----


def test_check_holds(tool):
    said = tool.check(serve())
    proven(said, "holds", 0)
    state = {i["name"]: i["state"] for i in said["invariants"]}
    assert state == {"written": "holds", "restore": "holds", "copy": "not_checked", "length": "holds", "finite": "holds",
                     "distinct": "holds"}
    assert said["invariants"][2]["checked"] is None
    assert said["noise"] == 0


def test_check_never_written(tool):
    def nothing(pool, slot, content, n):
        pool.write(0, content)
    said = tool.check(serve(write=nothing))
    proven(said, "broken", 1, "never_written")
    (written,) = [i for i in said["invariants"] if i["name"] == "written"]
    assert written["broken"] == REQUESTS
    assert written["examples"][0]["against"]["kind"] == "alloc"
    plain = tool.text("check", tool.folder / "run1")
    assert plain.returncode == 1 and plain.stdout.startswith("BROKEN")


def test_check_accepts_the_same_state_written_again(tool):
    """The same prompt in the same slot: equal to what lay there, and rightly so."""
    p = Process()
    pool = p.pool()
    for _ in range(2):
        p.event(ALLOC, pool, 1)
        pool.write(1, "the prompt")
        p.donate(pool, 1, 32, number("prompt"), key_len=32)
    proven(tool.check(Run("graph-on", p)), "holds", 0)
    # another key with these bytes was not written
    p.event(ALLOC, pool, 1)
    p.donate(pool, 1, 40, number("another"), key_len=40)
    proven(tool.check(Run("graph-on", p)), "broken", 1, "never_written", "same_hash_other_key")


def test_check_lengths(tool):
    p = Process()
    pool = p.pool()
    pool.write(1, "x")
    p.donate(pool, 1, 32, number("prompt"), key_len=33)
    proven(tool.check(Run("graph-on", p)), "broken", 1, "length_disagrees")


def test_check_keys_that_are_no_prefixes(tool):
    """Two requests with one prompt: their keys name the request, and nothing says that they are prefixes."""
    p = Process()
    pool = p.pool()
    for slot in (1, 2):
        pool.write(slot, "same")
        p.donate(pool, slot, 32, number("request", slot))
    proven(tool.check(Run("graph-on", p)), "holds", 0)
    for slot in (3, 4):
        pool.write(slot, "same")
        p.donate(pool, slot, 32, number("prefix", slot), key_len=32)
    proven(tool.check(Run("graph-on", p)), "broken", 1, "same_hash_other_key")


def test_check_copies(tool):
    p = Process()
    pool = p.pool()
    pool.write(1, "x")
    pool.write(2, "x")
    p.donate(pool, 1, 32)
    p.event(COPY, pool, 2, src=1)
    proven(tool.check(Run("graph-on", p)), "holds", 0)
    pool.write(3, "y")
    p.event(COPY, pool, 3, src=1)
    proven(tool.check(Run("graph-on", p)), "broken", 1, "copy_differs")


def test_check_keeps_several_lengths_of_a_slot_apart(tool):
    p = Process()
    pool = p.pool()
    pool.write(1, "at 32")
    p.donate(pool, 1, 32, number("k"))
    pool.write(1, "at 64")
    p.donate(pool, 1, 64, number("k"))
    p.restore(pool, 1, 64, number("k"))
    proven(tool.check(Run("graph-on", p)), "holds", 0)
    p.restore(pool, 1, 32, number("k"))  # holds the bytes of 64
    proven(tool.check(Run("graph-on", p)), "broken", 1, "restore_differs")


def test_check_noise(tool):
    p = Process()
    pool = p.pool()
    for content in ("prefill", "decode"):
        pool.write(1, content)
        p.donate(pool, 1, 32, number("k"), key_len=32)
    said = tool.check(Run("graph-on", p))
    proven(said, "holds", 0)
    assert said["noise"] == 1


def test_check_broken_stands_before_a_loss(tool):
    def nothing(pool, slot, content, n):
        pass
    lossy = serve(write=nothing)
    lossy.processes[0].counted("core.donate", "DROPPED_RING")
    proven(tool.check(lossy), "broken", 1, "never_written", "records_dropped")


# ---- report ----


def test_report(tool):
    run = serve()
    p = run.processes[0]
    p.put(loggen.REGION, p.tick(), 0, 7, 0x9000, 64, "track_indices")
    p.put(loggen.GRAPH, p.tick(), 1, 0xabc, 5, 3, 1, 1, 0, 2)
    p.put(loggen.GRAPH_TOUCH, 1, 2, 0, 0, 0, 1, 0, 0x7f0000000010, 16, 1, 0, "track_states")
    p.put(loggen.GRAPH_TOUCH, 1, 2, 0, 1, 0, 2, 0, 0x9000, 0, 0, 0, "track_states")
    path = b"/opt/server"
    p.put(loggen.MODULE, 1, len(path), 0x5000, tail=path)
    names = b"donate_it"
    p.put(loggen.CALLSITE, 1, 1, len(names), 0, tail=struct.pack("<QII", 0x40, 1, len(names)) + names)
    a = tool.put(run)
    said = tool.json("report", a)
    assert said["exit_status"] == 0 and said["reasons"] == []
    assert said["slots"][0]["donations"] == 2 and said["slots"][0]["restores"] == 2
    assert [t["name"] for t in said["graphs"][0]["touches"]] == ["mamba", "track_indices"]
    assert said["call_sites"][0]["frames"] == [{"symbol": "donate_it", "module": "/opt/server", "offset": "0x0000000000000040"}]
    (donate,) = [x for x in said["processes"][0]["probes"] if x["name"] == "core.donate"]
    assert (donate["attempted"], donate["committed"]) == (12, 12)
    plain = tool.text("report", a)
    assert plain.returncode == 0
    order = [plain.stdout.index(word) for word in ("Coverage", "Pools", "Slots", "Donations", "Graphs", "Call sites")]
    assert order == sorted(order)
    assert "track_states" in plain.stdout and "track_indices" in plain.stdout and "donate_it" in plain.stdout


def test_names_from_a_log_never_reach_the_terminal_raw(tool):
    a = tool.put(serve(pool_name="pool\x1b[31m\nEQUAL"))
    b = tool.put(serve("graph-off", pool_name="pool\x1b[31m\nEQUAL"))
    for arguments in (["diff", a, b], ["check", a], ["report", a], ["diff", "--json", a, b]):
        out = tool.text(*arguments).stdout
        assert "\x1b" not in out and "\nEQUAL" not in out


# ---- hostile input with sound checksums ----


def mutated(run, seed):
    """The run with a few bytes of a few records changed; the checksums fit."""
    import random
    rng = random.Random(seed)
    p = run.processes[0]
    for _ in range(rng.choice([1, 1, 2, 5])):
        i = rng.randrange(len(p.records))
        r = bytearray(p.records[i])
        at = rng.randrange(len(r))
        how = rng.randrange(4)
        if how == 0:
            r[at] = rng.randrange(256)
        elif how == 1:
            r[at & ~7:(at & ~7) + 8] = rng.choice([bytes(8), b"\xff" * 8, b"\0" * 7 + b"\x80", b"\xff" * 7 + b"\x7f"])
        elif how == 2:
            p.records.insert(rng.randrange(len(p.records)), bytes(r))
        else:
            del p.records[i]
            continue
        p.records[i] = bytes(r)
    return run


@pytest.mark.parametrize("seeds", [range(n, n + 10) for n in range(0, 60, 10)])
def test_hostile_records(tool, seeds):
    """Whatever the records say: an answer or one line, never a crash."""
    b = tool.put(serve("graph-off", planes=MANY if seeds.start % 20 else PLANES, watch=[0]))
    for seed in seeds:
        a = tool.put(mutated(serve(planes=MANY if seeds.start % 20 else PLANES, watch=[0]), seed))
        for arguments in (["diff", a, b], ["diff", "--json", b, a], ["check", "--json", a], ["report", a], ["report", "--json", a]):
            done = tool.text(*arguments)
            assert done.returncode in (0, 1, 2, 3), (seed, arguments, done.stderr)
            assert "Sanitizer" not in done.stderr, (seed, done.stderr)
            if done.returncode == 2:
                assert done.stderr.count("\n") == 1 and done.stdout == ""


# ---- what must never pass as equal ----


def with_lone_restore(arm):
    """The shuffled server, and a request restored once more."""
    run = shuffled(arm)
    p = run.processes[0]
    p.pools[0].write(4, "prompt 0 at 32")
    p.restore(p.pools[0], 4, 32, number("prompt", 0), key_len=32)
    return run


def test_by_key_restores_pair_wherever_they_are(tool):
    """Also those that came before any donation of their slot, and after a donation of another key."""
    said = tool.diff(serve(), shuffled("graph-off"))
    proven(said, "equal", 0)
    assert said["alignment"]["mode"] == "key"

    def never_donated(arm, slot, content):
        run = shuffled(arm)
        p = run.processes[0]
        p.pools[0].write(slot, content)
        p.restore(p.pools[0], slot, 500, number("early"), key_len=500)
        return run
    off = tool.put(never_donated("graph-off", 13, "state"))
    proven(tool.diff(never_donated("graph-off", 14, "state"), off, "--align", "key"), "equal", 0)
    said = tool.diff(never_donated("graph-off", 14, "wrong"), off, "--align", "key")
    proven(said, "differs", 1)
    assert (row(said, 14)["verdict"], row(said, 14)["shown"]) == ("differs", "restore")


def test_by_key_restores_without_a_mate_are_counted(tool):
    """5 % of each run's: 1 of 5 is more."""
    said = tool.diff(serve(), with_lone_restore("graph-off"))
    proven(said, "not_proven", 3, "slot_missing")
    proven(tool.diff(with_lone_restore("graph-off"), serve()), "not_proven", 3, "slot_missing")
    assert tool.diff(serve(), with_lone_restore("graph-off"), "--align", "slot")["verdict"] == "not_proven"


def long_run(arm, donations, restores=0, shift=0, lone=None):
    """Donations by key, one a slot; the first `restores` are restored; `lone` is what an extra restore of the last holds."""
    p = Process()
    pool = p.pool(slots=400)
    for n in range(donations):
        slot = (n + shift) % 300
        p.event(ALLOC, pool, slot)
        p.launch(1 if arm == "graph-on" else 0)
        pool.write(slot, f"state {n}")
        p.donate(pool, slot, 32 + n, number("prompt", n), key_len=32 + n)
        if n < restores:
            p.restore(pool, slot, 32 + n, number("prompt", n), key_len=32 + n)
    if lone:
        pool.write(slot, lone)
        p.restore(pool, slot, 32 + n, number("prompt", n), key_len=32 + n)
    return Run(arm, p)


def test_a_lone_restore_is_held_against_its_own_run(tool):
    last = "state 39"
    few, same = long_run("graph-on", 40, 30), long_run("graph-off", 40, 30, 7, lone=last)
    proven(tool.diff(few, same, "--align", "key"), "equal", 0)
    said = tool.diff(few, long_run("graph-off", 40, 30, 7, lone="overwritten"), "--align", "key")
    proven(said, "not_proven", 3, "lone_restore_differs")
    assert codes(said) == {"lone_restore_differs"}
    # and nothing excuses it
    said = tool.diff(few, long_run("graph-off", 40, 30, 7, lone="overwritten"), "--align", "key", "--allow-missing", ".")
    proven(said, "not_proven", 3, "lone_restore_differs")


def test_by_key_95_percent_of_each_run(tool):
    """Of 100 donations 5 may be alone, whatever the other run has; of both runs together 10 of 200 were once enough."""
    runs = {n: tool.put(long_run("graph-on" if n == 100 else "graph-off", n, shift=0 if n == 100 else 3)) for n in (95, 94, 90, 100)}
    proven(tool.diff(runs[100], runs[95], "--align", "key"), "equal", 0)
    proven(tool.diff(runs[100], runs[94], "--align", "key"), "not_proven", 3, "slot_missing")
    proven(tool.diff(runs[90], runs[100], "--align", "key"), "not_proven", 3, "slot_missing")


def ranked(arm, *parts):
    """A run of several ranks: each part makes what one rank did, of its process."""
    out = []
    for i, part in enumerate(parts):
        p = Process(pid=4194301 + i, starttime=7 + i, ranks=(("tp", i, len(parts)),))
        part(arm, p)
        out.append(p)
    return Run(arm, *out)


def honest(arm, p):
    serve(arm, process=p)


def test_each_rank_keeps_what_its_arm_promises(tool):
    def ignores(arm, p):
        serve("graph-off" if arm == "graph-on" else "graph-on", process=p)
    off = ranked("graph-off", honest, honest)
    said = tool.diff(ranked("graph-on", honest, ignores), off)
    proven(said, "not_proven", 3, "switch_had_no_effect")
    assert "rank tp1.pp0.dp0" in said["reasons"][0]["text"] and "tp0." not in json.dumps(said["reasons"])
    said = tool.diff(ranked("graph-on", honest, honest), ranked("graph-off", honest, ignores))
    proven(said, "not_proven", 3, "switch_had_no_effect")
    assert "rank tp1.pp0.dp0" in said["reasons"][0]["text"]


def test_each_rank_launched_before_what_was_compared(tool):
    def too_early(arm, p):
        p.launch(3 if arm == "graph-on" else 0)
        serve("graph-off", process=p)
    said = tool.diff(ranked("graph-on", honest, too_early), ranked("graph-off", honest, too_early))
    proven(said, "not_proven", 3, "no_launch_before_donation")
    assert "rank tp1.pp0.dp0" in said["reasons"][0]["text"]


def test_silence_on_both_sides(tool):
    """Ranks of which nothing was measured, alike in both runs."""
    def no_pool(arm, p):
        pass

    def paused(arm, p):
        def donate(q, pool, slot, n):
            q.counted("core.donate", "FILTERED_PAUSED")
        pool = p.pool()
        p.launch(1 if arm == "graph-on" else 0)
        donate(p, pool, 1, 0)
    said = tool.diff(ranked("graph-on", honest, no_pool), ranked("graph-off", honest, no_pool))
    proven(said, "not_proven", 3, "probe_never_fired")
    assert "tp1.pp0.dp0" in said["reasons"][0]["text"] and "no pool" in said["reasons"][0]["text"]
    said = tool.diff(ranked("graph-on", honest, paused), ranked("graph-off", honest, paused))
    proven(said, "not_proven", 3, "nothing_measured")
    assert codes(said) == {"nothing_measured"}
    assert "none was recorded (paused 1)" in said["reasons"][0]["text"]
    proven(tool.check(ranked("graph-on", honest, paused)), "not_proven", 3, "nothing_measured")


def two_pools(arm, of_second=0):
    p = Process()
    run = serve(arm, process=p)
    second = p.pool("second")
    for n in range(of_second):
        second.write(n, f"second {n}")
        p.donate(second, n, 700 + n, number("second", n), key_len=700 + n)
    return run


def test_pools_from_which_nothing_was_donated(tool):
    said = tool.diff(two_pools("graph-on"), two_pools("graph-off"))
    proven(said, "equal", 0)
    assert said["pools_without_donations"] == [{"rank": "tp0.pp0.dp0", "pool": "second"}]
    assert "pool tp0.pp0.dp0/second: no donation in either run\n" in tool.text("diff", tool.folder / "run1", tool.folder / "run2").stdout
    said = tool.diff(two_pools("graph-on", 1), two_pools("graph-off"))
    proven(said, "not_proven", 3, "probe_never_fired")
    assert said["pools_without_donations"] == []
    assert tool.diff(two_pools("graph-on", 1), two_pools("graph-off", 1))["pools_without_donations"] == []
    # by key 5 % may be alone, and not a whole pool
    a, b = long_run("graph-on", 100), long_run("graph-off", 100, shift=3)
    for run in (a, b):
        run.processes[0].pool("second")
    a.processes[0].donate(a.processes[0].pools[1], 1, 9, number("x"), key_len=9)
    proven(tool.diff(a, b, "--align", "key"), "not_proven", 3, "probe_never_fired")
    proven(tool.diff(a, b, "--align", "key", "--allow-missing", "/second/"), "equal", 0)


def test_what_is_allowed_excuses_nothing_else(tool):
    """A loss of another rank, kind or outcome that only the counters know."""
    def losing(row_name, outcome, rank=0, ranks=1):
        def lossy(arm, p):
            serve(arm, process=p, on_donate=skipping([8], "SKIPPED_CAPTURING"))
        run = ranked("graph-on", lossy, *[honest] * (ranks - 1))
        run.processes[0].restore(run.processes[0].pools[0], 3, 1, number("r"), outcome="SKIPPED_CAPTURING")
        if row_name:
            p = run.processes[rank]
            # the excused event takes no place: the counters know as many as before, of another kind
            p.counted(row_name, outcome)
        return run
    off, off2 = tool.put(ranked("graph-off", honest)), tool.put(ranked("graph-off", honest, honest))
    proven(tool.diff(losing(None, None), off, "--allow-missing", "/mamba/3$"), "equal", 0)
    for row_name, outcome in [("core.donate", "SKIPPED_LEGACY"), ("core.restore", "SKIPPED_LEGACY"), ("core.restore", "SKIPPED_CAPTURING"),
                              ("core.donate", "DROPPED_RING")]:
        run = losing(row_name, outcome)
        # one sum over kinds and outcomes would hold: a loss fewer of what is excused
        run.processes[0].count["core.donate"]["SKIPPED_CAPTURING"] -= 1
        assert tool.diff(run, off, "--allow-missing", "/mamba/3$")["verdict"] == "not_proven", (row_name, outcome)
    run = losing("core.donate", "SKIPPED_CAPTURING", rank=1, ranks=2)
    proven(tool.diff(run, off2, "--allow-missing", "tp0.pp0.dp0/mamba/3$"), "not_proven", 3, "skipped_needed")


@pytest.mark.parametrize("row_name", ["core.graph_launch", "core.alloc", "core.free", "core.step", "core.watch", "toy.point"])
@pytest.mark.parametrize("outcome", ["DROPPED_QUEUE", "SKIPPED_DISK"])
def test_diff_says_no_less_than_verify(tool, row_name, outcome):
    run = serve("graph-off")
    p = run.processes[0]
    p.points = {"toy.point": {"COMMITTED": 1}}
    on = serve()
    on.processes[0].points = {"toy.point": {"COMMITTED": 1}}
    proven(tool.diff(on, run), "equal", 0)
    (p.points[row_name] if row_name in p.points else p.count[row_name])[outcome] = 1
    assert tool.text("verify", tool.put(run)).returncode == 3
    assert tool.diff(on, run)["exit_status"] == 3
    assert tool.check(run)["exit_status"] == 3


def test_an_adapter_that_skips(tool):
    runs = [serve(), serve("graph-off")]
    for run in runs:
        run.processes[0].points = {"toy.point": {"COMMITTED": 1, "SKIPPED_CAPTURING": 1}}
    proven(tool.diff(*runs), "not_proven", 3, "skipped_needed")


@pytest.mark.parametrize("row_name", ["core.donate", "core.restore", "core.alloc", "core.free", "core.step"])
@pytest.mark.parametrize("by", [1, -1])
def test_log_and_counters_disagree(tool, row_name, by):
    """The log may hold neither less than was committed nor more than was begun."""
    run = serve("graph-off")
    run.processes[0].count[row_name]["COMMITTED"] += by
    assert tool.text("verify", tool.put(run)).returncode == 3
    proven(tool.diff(serve(), run), "not_proven", 3, "log_counters_disagree")
    proven(tool.check(run), "not_proven", 3, "log_counters_disagree")


@pytest.mark.parametrize("counter,code", [("write_errors", "records_dropped"), ("internal_errors", "internal_error"),
                                          ("metadata_lost", "records_dropped")])
def test_trouble_that_was_counted(tool, counter, code):
    run = serve("graph-off")
    run.processes[0].count[counter] = {"COMMITTED": 1}
    proven(tool.diff(serve(), run), "not_proven", 3, code)
    proven(tool.check(run), "not_proven", 3, code)
    assert tool.text("verify", tool.put(run)).returncode == 3


def test_an_adapter_that_was_asked_for_and_never_fired(tool):
    folders = []
    for arm in ("graph-on", "graph-off"):
        run = serve(arm)
        run.processes[0].points = {"toy.one": {}, "toy.two": {}}
        folders.append(tool.put(run))
    proven(tool.diff(*folders), "equal", 0)
    for folder in folders:
        manifest = json.loads((folder / "run.json").read_text())
        manifest["adapters"] = [{"name": "toy", "path": "/x/toy.so", "points": ["toy.one", "toy.two"]}]
        (folder / "run.json").write_text(json.dumps(manifest))
    assert tool.text("verify", folders[0]).returncode == 3
    proven(tool.diff(*folders), "not_proven", 3, "probe_never_fired")


def test_a_copy_of_a_recording_is_no_second_recording(tool):
    a = tool.put(serve("graph-off"))
    b = tool.folder / "copy"
    shutil.copytree(a, b)
    said = tool.diff(a, b)
    proven(said, "not_proven", 3, "same_process")
    # relabelled or not
    (b / "run.json").write_text((b / "run.json").read_text().replace("graph-off", "nightly"))
    proven(tool.diff(a, b), "not_proven", 3, "same_process")
    # pids and start times come again after a boot
    proven(tool.diff(a, serve("graph-off")), "equal", 0)


def test_every_combination_of_the_axes(tool):
    def grid(arm, *places):
        runs = [serve(arm, process=Process(pid=4194301 + i, starttime=7 + i, ranks=(("tp", t, 2), ("pp", s, 2))))
                for i, (t, s) in enumerate(places)]
        return Run(arm, *(p for r in runs for p in r.processes))
    whole = [(0, 0), (0, 1), (1, 0), (1, 1)]
    proven(tool.diff(grid("graph-on", *whole), grid("graph-off", *whole)), "equal", 0)
    said = tool.diff(grid("graph-on", (0, 0), (1, 1)), grid("graph-off", (0, 0), (1, 1)))
    proven(said, "not_proven", 3, "rank_missing")
    assert "2 of the 4 combinations" in said["reasons"][0]["text"]
    proven(tool.check(grid("graph-on", *whole[:3])), "not_proven", 3, "rank_missing")
    # an index that is not there, or a rank twice, is no other rank
    said = tool.diff(grid("graph-on", *whole[:3], (2, 0)), grid("graph-off", *whole[:3], (2, 0)))
    proven(said, "not_proven", 3, "rank_missing")


def test_what_was_left_out_is_said(tool):
    def pausing(arm, n, outcome="FILTERED_PAUSED"):
        run = serve(arm)
        run.processes[0].counted("core.donate", outcome, n)
        return run
    said = tool.diff(pausing("graph-on", 100), pausing("graph-off", 100))
    proven(said, "equal", 0)
    assert said["not_recorded"] == [{"attempted": 112, "paused": 100, "adapter": 0}] * 2
    plain = tool.text("diff", tool.folder / "run1", tool.folder / "run2").stdout
    for run in "AB":
        assert f"  run {run}: 100 of 112 donations were not recorded (paused 100)\n" in plain
    for outcome in ("FILTERED_PAUSED", "FILTERED_ADAPTER"):
        said = tool.diff(pausing("graph-on", 99, outcome), pausing("graph-off", 100, outcome))
        proven(said, "not_proven", 3, "filtered_differs")
    # padded rows follow the batch
    said = tool.diff(pausing("graph-on", 3, "FILTERED_PADDING"), serve("graph-off"))
    proven(said, "equal", 0)
    assert "not recorded" not in tool.text("diff", tool.folder / f"run{tool.n - 1}", tool.folder / f"run{tool.n}").stdout


@pytest.mark.parametrize("arm", ["GRAPH-OFF", "graph_off", "graph-off ", "Graph Off", "graphoff", "Padded_Eager", "grahp-on", "graph-onn", "graph-no",
                                 "graph", "cuda-graph-off", "on", "Off"])
def test_arms_that_are_nearly_known(tool, arm):
    """The switch was ignored, and the misspelt arm promises nothing that would tell."""
    ignored = serve()
    ignored.arm = arm
    said = tool.diff(serve(), ignored)
    proven(said, "not_proven", 3, "arm_unknown")
    assert "nearly " in said["reasons"][0]["text"] and "--arm graph-off" in said["reasons"][0]["remedy"]
    for fine in ("graph-off-2", "graph-off2", "nightly", "eager", "of", "of the old kernel"):
        ignored.arm = fine
        said = tool.diff(serve(), ignored)
        proven(said, "equal", 0)
        assert not said["hints"]  # one arm keeps its promise


def test_two_arms_that_promise_nothing_are_told_what_that_proves(tool):
    old, new = serve("graph-off"), serve("graph-off")
    old.arm, new.arm = "old", "new"
    said = tool.diff(new, old)
    proven(said, "equal", 0)
    assert said["hints"] == ["neither arm promises graphs or none: with --arm graph-on and --arm graph-off it would be proven that one had them"]
    new.arm = "old"  # an A/A
    assert not tool.diff(new, old)["hints"]


def test_what_may_only_follow_is_said_last(tool):
    """The log of a rank is gone: that it is missing and that nothing was measured follow."""
    a, b = tool.put(serve()), tool.put(serve("graph-off"))
    for log in a.glob("*.log"):
        log.unlink()
    codes = [r["code"] for r in tool.diff(a, b)["reasons"]]
    follow = {"rank_missing", "nothing_measured", "probe_never_fired", "slot_missing"}
    assert codes[0] not in follow and follow & set(codes)
    assert [c in follow for c in codes] == sorted(c in follow for c in codes)


def test_a_log_of_another_process(tool):
    """Swapped between two ranks, or brought from elsewhere."""
    a, b = tool.put(two_ranks("graph-on")), tool.put(two_ranks("graph-off"))
    proven(tool.diff(a, b), "equal", 0)
    one, two = sorted(b.glob("*.log"))
    held = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(held)
    proven(tool.diff(a, b), "not_proven", 3, "log_damaged")
    assert tool.text("verify", b).returncode == 3
    proven(tool.check(b), "not_proven", 3, "log_damaged")


@pytest.mark.parametrize("change", [lambda host, pid, start: f"{host}.00{pid}.{start}", lambda host, pid, start: f"{host}.{pid}.0{start}",
                                    lambda host, pid, start: f"{host}.{pid}.{start}-0"])
def test_names_that_are_not_ours(tool, change):
    """A second file under another spelling of one name was dropped in silence."""
    b = tool.put(serve("graph-off"))
    (log,) = b.glob("*.log")
    (b / (change("elsewhere", 4194301, 7) + ".log")).write_bytes(log.read_bytes())
    for arguments in (["diff", tool.put(serve()), b], ["check", b], ["verify", b], ["report", b]):
        done = tool.text(*arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), arguments


def test_a_log_with_a_hole_that_nobody_can_read(tool):
    b = tool.put(serve("graph-off"))
    (log,) = b.glob("*.log")
    os.truncate(log, 1 << 40)
    for arguments in (["report", b], ["verify", b], ["check", b]):
        started = time.monotonic()
        assert tool.text(*arguments).returncode == 3
        assert time.monotonic() - started < 5
    # nor does a little that lies in it make it longer
    with open(log, "r+b") as f:
        f.seek((1 << 39) + 17)
        f.write(b"CHNK is not a header")
    assert tool.text("report", b).returncode == 3


def test_control_characters_of_the_manifest_are_escaped(tool):
    a = tool.put(serve())
    manifest = json.loads((a / "run.json").read_text())
    manifest["argv"] = ["a\x7fb", "c\u009bd"]
    manifest["env"] = {"k\x7f": "\u202ev"}
    (a / "run.json").write_text(json.dumps(manifest, ensure_ascii=False))
    out = subprocess.run([tool.command, "export", "--format", "jsonl", a], capture_output=True, timeout=60).stdout
    assert b"\x7f" not in out and b"\xc2\x9b" not in out and "\u202e".encode() not in out
    first = json.loads(out.splitlines()[0])["manifest"]
    assert first["argv"] == ["a\\x7fb", "c\\xc2\\x9bd"] and first["env"] == {"k\\x7f": "\\xe2\\x80\\xaev"}
