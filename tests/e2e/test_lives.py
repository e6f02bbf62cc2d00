# SPDX-License-Identifier: Apache-2.0
"""A server, or one rank of it, that was started again in one run only: donations of its lives pair by key with those of the other run's
one life, and where they cannot pair the report says why."""
import pytest

from loggen import ALLOC, PLANES, Process, Run, number
from test_compare import proven

REQUESTS = 40
SLOTS = 6
MAIN = (("tp", 0, 1),)


def life(arm, requests, pid, start, ranks=MAIN, content=None, planes=PLANES, begin=0):
    """One life that serves these requests, in slots of its own: they are handed out anew, from slot 1 on."""
    p = Process(pid=pid, starttime=pid - 4194301, ranks=ranks)
    p.now = begin or start * 1_000_000
    pool = p.pool(planes=planes)
    for i, n in enumerate(requests):
        slot = 1 + i % SLOTS
        p.event(ALLOC, pool, slot)
        p.launch(arm == "graph-on")
        held = content(n) if content else f"prompt {n}"
        if held is not None:
            pool.write(slot, held)
        p.donate(pool, slot, 32 + 8 * n, number("prompt", n), key_len=32 + 8 * n)
    return p


def lives(arm, *cuts, ranks=(MAIN,), **more):
    """A run of so many lives of each rank: cut before these requests, the next begins when the last is over. The graph-on run has other
    processes than the graph-off run."""
    edges = [0, *cuts, REQUESTS]
    pid = 4194301 + 1000 * (arm == "graph-on")
    return Run(arm, *(life(arm, range(a, b), pid + 10 * i + k, 1 + i, rank, **more)
                      for i, (a, b) in enumerate(zip(edges, edges[1:])) for k, rank in enumerate(ranks)))


@pytest.mark.parametrize("a, b, across", [((), (25,), 15), ((25,), (), 15), ((10,), (30,), 20), ((), (10, 20, 39), 30)],
                         ids=["B restarted", "A restarted", "at two places", "three times"])
def test_lives_pair_by_key(tool, a, b, across):
    a, b = tool.put(lives("graph-on", *a)), tool.put(lives("graph-off", *b))
    said = tool.diff(a, b, "--align", "key")
    proven(said, "equal", 0)
    assert said["reasons"] == []
    assert said["alignment"].items() >= {"mode": "key", "aligned": REQUESTS, "unaligned": 0, "across_lives": across}.items()
    # of itself, where not all lines up by slot
    assert tool.diff(a, b)["alignment"]["mode"] == "key"
    assert f"{across} donations line up with one of another life of their rank" in tool.text("diff", a, b).stdout


def test_lives_and_their_number_are_listed(tool):
    ranks = (("tp", 0, 2),), (("tp", 1, 2),)
    a, b = lives("graph-on", ranks=ranks), lives("graph-off", ranks=ranks)
    b.processes[1:] = lives("graph-off", 25, ranks=ranks).processes[1::2]  # of tp 1 alone
    said = tool.diff(a, b)
    proven(said, "equal", 0)
    assert said["alignment"]["lives"] == [{"rank": "tp1.pp0.dp0", "pool": "mamba", "lives": [1, 2]}]
    assert said["alignment"]["aligned"] == 2 * REQUESTS
    assert {s["rank"] for s in said["slots"]} == {"tp0.pp0.dp0", "tp1.pp0.dp0"}
    assert "tp1.pp0.dp0/mamba: 1 life in run A, 2 lives in run B" in tool.text("diff", tool.put(a), tool.put(b)).stdout


def test_by_slot_what_a_life_has_alone_is_said_with_the_way_out(tool):
    said = tool.diff(lives("graph-on"), lives("graph-off", 25), "--align", "slot")
    proven(said, "not_proven", 3, "rank_missing", "slot_missing")
    (missing,) = [r for r in said["reasons"] if r["code"] == "rank_missing"]
    assert missing["text"].startswith("a rank is missing in one of the runs: tp0.pp0.dp0#2/mamba is not in run A, where that rank had 1 life "
                                      "against 2: each life hands its slots out anew")
    assert "align by key" in missing["remedy"]
    assert said["alignment"]["across_lives"] == 0
    assert said["alignment"]["aligned"] == 25
    assert said["alignment"]["proposal"] in ("key", "order")


def test_by_order_lives_follow_on_each_other_where_one_run_has_more(tool):
    said = tool.diff(lives("graph-on"), lives("graph-off", 25), "--align", "order")
    proven(said, "equal", 0)
    assert said["alignment"].items() >= {"mode": "order", "aligned": REQUESTS, "unaligned": 0, "across_lives": 15}.items()
    # as many in both runs: each with its like, and what does not line up there says so
    said = tool.diff(lives("graph-on", 20), lives("graph-off", 25), "--align", "order")
    proven(said, "not_proven", 3)
    assert said["alignment"]["across_lives"] == 0
    # keys prove it before a value is looked at
    said = tool.diff(lives("graph-on"), Run("graph-off", life("graph-off", range(24), 4194301, 1), life("graph-off", range(25, 40), 4194302, 2)),
                     "--align", "order")
    proven(said, "not_proven", 3, "claimed_len_mismatch")


def test_a_difference_in_a_later_life_is_found_and_explained_there(tool):
    """Request 33 is not written: its slot still holds what this life put there for request 27."""
    off, on = lives("graph-off"), lives("graph-on", 25, content=lambda n: None if n == 33 else f"prompt {n}")
    said = tool.diff(off, on)
    proven(said, "differs", 1, "slot_differs")
    found = [s for s in said["slots"] if s["verdict"] == "differs"]
    assert len(found) == 1 and found[0]["claimed_len"] == [32 + 8 * 33] * 2
    (stale,) = [e for e in found[0]["explain"] if e["kind"] == "stale"]
    # the sentence names the slot where the fault is, and run A's by which the row is called
    assert said["findings"][0]["sentence"].startswith(
        "tp0.pp0.dp0#2/mamba/3's state at length 296 (donation 18 of run B; tp0.pp0.dp0/mamba/4 of run A) is bit for bit what the slot "
        "held for its previous owner (donation 6, length 248)")
    assert stale["run"] == "b" and stale["event"]["rank"] == "tp0.pp0.dp0#2" and stale["event"]["claimed_len"] == 32 + 8 * 27
    # and the first life: what it held is another process's memory
    said = tool.diff(off, lives("graph-on", 25, content=lambda n: "prompt 3" if n == 28 else f"prompt {n}"))
    (found,) = [s for s in said["slots"] if s["verdict"] == "differs"]
    assert "stale" not in {e["kind"] for e in found["explain"]}
    assert "wrong_length" in {e["kind"] for e in found["explain"]}  # a checkpoint of another length, of whichever life


def test_the_right_bytes_in_another_life_are_not_misplaced(tool):
    """Request 33 should hold what request 8 did; the wrong run had that too, in a life that was over: no write can have gone there."""
    def same(n):
        return "prompt 8" if n == 33 else f"prompt {n}"
    said = tool.diff(lives("graph-off", content=same), lives("graph-on", 7, 25, content=lambda n: "junk" if n == 33 else same(n)))
    (found,) = [s for s in said["slots"] if s["verdict"] == "differs"]
    assert not [e for e in found["explain"] if e["kind"] == "misplaced" and e["run"] == "b"], found["explain"]


def test_processes_side_by_side_that_say_no_rank_are_no_lives(tool):
    """Two shards of one model have the same keys and other bytes: one is not the other's next life."""
    def shards(arm, n):
        pid = 4194301 + 1000 * (arm == "graph-on")
        return Run(arm, *(life(arm, range(REQUESTS), pid + i, 1, (), content=lambda r, i=i: f"shard {i} of {r}", begin=1_000_000 + i)
                          for i in range(n)))
    said = tool.diff(shards("graph-on", 2), shards("graph-off", 1), "--align", "key")
    proven(said, "not_proven", 3, "rank_missing")
    assert said["summary"]["differs"] == 0 and said["alignment"]["across_lives"] == 0
    assert "ran side by side" in next(r["text"] for r in said["reasons"] if r["code"] == "rank_missing")
    # that came one after the other they are
    said = tool.diff(lives("graph-on", ranks=((),)), lives("graph-off", 25, ranks=((),)), "--align", "key")
    proven(said, "equal", 0)
    assert said["alignment"]["across_lives"] == 15


def test_lives_that_overlap_pair_by_key_alone(tool):
    """The new worker is up before the old one is gone: both say one rank. Which donation came after which is not known."""
    def handed_over(begin):
        return Run("graph-off", life("graph-off", range(25), 4194301, 1), life("graph-off", range(25, REQUESTS), 4194302, 2, begin=begin))
    overlapping = tool.put(handed_over(1_000_100))
    for mode, status in ("key", 0), ("order", 3):
        said = tool.diff(lives("graph-on"), overlapping, "--align", mode)
        assert (said["exit_status"], said["alignment"]["across_lives"]) == (status, 0 if status else 15), said["reasons"]
    proven(tool.diff(lives("graph-on"), handed_over(2_000_000), "--align", "order"), "equal", 0)

    def later(begin):  # the second of three and the third
        pid = 4194301
        return Run("graph-off", life("graph-off", range(10), pid, 1), life("graph-off", range(10, 25), pid + 1, 2),
                   life("graph-off", range(25, REQUESTS), pid + 2, 3, begin=begin))
    said = tool.diff(lives("graph-on"), later(2_000_100), "--align", "order")
    assert (said["exit_status"], said["alignment"]["across_lives"]) == (3, 0), said["reasons"]
    proven(tool.diff(lives("graph-on"), later(3_000_000), "--align", "order"), "equal", 0)


def test_a_life_with_another_layout_pairs_with_none(tool):
    on, off = lives("graph-on"), lives("graph-off", 25)
    off.processes[1] = life("graph-off", range(25, REQUESTS), 4194311, 2, planes=PLANES[:4])
    said = tool.diff(on, off, "--align", "key")
    proven(said, "not_proven", 3, "rank_missing")
    assert said["alignment"].items() >= {"aligned": 25, "across_lives": 0}.items()
    assert "layouts are not the same" in next(r["text"] for r in said["reasons"] if r["code"] == "rank_missing")
    # nor one of the second run's, where both have it
    said = tool.diff(lives("graph-on", 20), off, "--align", "key")
    proven(said, "not_proven", 3, "layout_mismatch")
    assert said["alignment"]["across_lives"] == 0
    # a first life that is another in the two runs has no next one
    off = lives("graph-off", 25)
    off.processes[0] = life("graph-off", range(25), 4194301, 1, planes=PLANES[:4])
    said = tool.diff(on, off, "--align", "key")
    proven(said, "not_proven", 3, "layout_mismatch")
    assert said["alignment"]["across_lives"] == 0


def test_what_a_killed_life_lost_is_not_proven(tool):
    def killed(**lost):
        run = lives("graph-off", 25)
        first = run.processes[0]
        first.end, first.state = False, 1
        for name, n in lost.items():
            if name == "in_flight":
                first.in_flight["core.donate"] = n
        return run
    proven(tool.diff(lives("graph-on"), killed()), "equal", 0)
    proven(tool.diff(lives("graph-on"), killed(in_flight=1)), "not_proven", 3, "in_flight_lost")


def test_more_than_5_percent_of_a_restart_left_over_is_not_proven(tool):
    """What the first life served and the second serves again has no second mate."""
    def again(n):
        return Run("graph-off", life("graph-off", range(25), 4194301, 1), life("graph-off", range(25 - n, REQUESTS), 4194302, 2))
    said = tool.diff(lives("graph-on"), again(2))
    proven(said, "equal", 0)
    assert said["alignment"].items() >= {"aligned": REQUESTS, "unaligned": 2}.items()
    proven(tool.diff(lives("graph-on"), again(4)), "not_proven", 3, "slot_missing")


def test_a_toy_server_that_was_started_again(lab):
    """Real logs: the second life serves what the first had left, with an empty cache; what it prefills again is listed as the rest."""
    off = lab.record("graph-off", "--requests", "100", "--concurrency", "1")

    def restarted(name, *second):
        path = lab.folder / name
        toy = f"{lab.toy} --arm graph-on --concurrency 1 --requests"
        done = lab.slotprobe("record", "-o", path, "--arm", "graph-on", "--", "sh", "-c",
                             f"{toy} 60 && {toy} 100 --first 60 {' '.join(second)}")
        assert done.returncode == 0, done.stdout + done.stderr
        return path
    status, said = lab.ask("diff", off.path, restarted("restarted"))
    assert status == 0
    proven(said, "equal", 0)
    alignment = said["alignment"]
    assert alignment["mode"] == "key" and alignment["aligned"] == said["runs"][0]["donations"] > 300
    assert alignment["lives"] == [{"rank": "tp0.pp0.dp0", "pool": "state", "lives": [1, 2]}]
    assert alignment["across_lives"] > 100
    assert 0 < alignment["unaligned"] == alignment["rest"]["alone"][1] < 18
    # a state of the second life that is not the first run's is found
    status, said = lab.ask("diff", off.path, restarted("perturbed", "--perturb-slot", "3", "--perturb-occurrence", "2"))
    proven(said, "differs", 1, "slot_differs")
    assert said["summary"]["differs"] == 1 and said["first_divergence"]["rank"] == "tp0.pp0.dp0#2"
    assert said["first_divergence"]["slot"] == 3
