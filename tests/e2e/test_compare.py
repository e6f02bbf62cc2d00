# SPDX-License-Identifier: Apache-2.0
"""diff, check and report on runs made by loggen: every verdict, exit status, reason and explanation, without a server."""
import json
import re
import struct
import subprocess

import jsonschema
import pytest

import loggen
from loggen import (ALLOC, COPY, DISCARD, FREE, PLANES, Process, Run, number)

SCHEMAS = loggen.ROOT / "docs/schemas"
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


class Tool:
    """The command, and what it said."""

    def __init__(self, command, folder):
        self.command, self.folder, self.n = command, folder, 0

    def put(self, run):
        if not isinstance(run, Run):
            return run
        self.n += 1
        return run.write(self.folder / f"run{self.n}")

    def text(self, *arguments):
        return subprocess.run([self.command, *map(str, arguments)], capture_output=True, text=True, timeout=60)

    def json(self, verb, *arguments):
        done = self.text(verb, "--json", *arguments)
        assert done.stdout, done.stderr
        said = json.loads(done.stdout)
        jsonschema.Draft7Validator(json.loads((SCHEMAS / f"{verb}.schema.json").read_text())).validate(said)
        assert said["exit_status"] == done.returncode
        return said

    def diff(self, a, b, *options):
        a, b = self.put(a), self.put(b)
        said = self.json("diff", a, b, *options)
        # the text twin agrees
        plain = self.text("diff", a, b, *options)
        assert plain.returncode == said["exit_status"]
        assert plain.stdout.startswith({"equal": "EQUAL", "differs": "DIFFERS", "not_proven": "NOT PROVEN"}[said["verdict"]])
        for reason in said["reasons"]:
            assert reason["code"] in plain.stdout and reason["remedy"] in plain.stdout
        return said

    def check(self, run, *options):
        return self.json("check", self.put(run), *options)


@pytest.fixture
def tool(build, tmp_path):
    return Tool(build / "slotprobe", tmp_path)


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
    assert said["alignment"] == {"mode": "slot", "aligned": REQUESTS, "unaligned": 0}
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
    # without watching it is zero alone
    assert kinds(tool.diff(serve(write=both), serve("graph-off")), 1) == ["zero"]


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
    assert said["patterns"] == {"planes": {"tensors": ["conv"], "first_layer": 0, "last_layer": 2},
                                "length": {"modulus": 2, "remainder": 1}, "padded_only": True}
    plain = tool.text("diff", tool.folder / "run1", tool.folder / "run2").stdout
    for line in ("only in conv, layers 0 to 2", "only at lengths that leave 1 modulo 2", "only in padded batches"):
        assert line in plain
    # one length alone is no pattern
    said = tool.diff(serve(write=bug([5], what), lengths=odd), serve("graph-off", lengths=odd))
    assert said["patterns"]["length"] is None
    # where everything differs nothing is told apart
    said = tool.diff(serve(write=lambda pool, slot, content, n: pool.write(slot, "x")), serve("graph-off"))
    assert said["patterns"] == {"planes": None, "length": None, "padded_only": False}


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
    proven(tool.diff(a, b), "not_proven", 3, "probe_never_fired")
    b.processes[0].points = {"toy.track": {"COMMITTED": 1}}
    proven(tool.diff(a, b), "equal", 0)
    b.processes[0].points = {}
    proven(tool.diff(a, b), "not_proven", 3, "probe_never_fired")


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


def test_what_is_not_built_is_refused(tool):
    a, b = tool.put(serve()), tool.put(serve("graph-off"))
    for more in (["--rtol", "0.1"], ["--noise", b], ["--third", b]):
        done = tool.text("diff", a, b, *more)
        assert done.returncode == 2 and "not built" in done.stderr
    assert tool.text("report", a, "--format", "html").returncode == 2


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
    assert said["alignment"] == {"mode": "key", "aligned": REQUESTS, "unaligned": 0}
    assert tool.diff(a, b, "--align", "slot")["verdict"] == "not_proven"
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
