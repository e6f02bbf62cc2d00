# SPDX-License-Identifier: Apache-2.0
"""What storm.py makes of what it measured: each thing that must not be, and each that must, on made-up measurements. The storm itself is run by
tests/e2e/test_perturb.py."""
import copy
import json
import pathlib
import signal

import pytest

import storm

NONE = {"rounds": 9, "errors": 0, "invalidated": 0, "launches": 0, "donations": 0, "donated": 0, "busy": 0, "other": 0, "restores": 0,
        "first_error": 0, "where": ""}
PROBE = {"filtered": 0, "skipped": {"capturing": 0, "legacy_stream": 0}, "dropped": {"ring_full": 0}, "errors": 0, "in_flight": 0}
BARE = {"final": True,
        "workers": [NONE | {"name": "capture", "launches": 27}, NONE | {"name": "donate", "donations": 8, "other": 8, "restores": 3}]}
RECORDED = {"final": True,
            "workers": [NONE | {"name": "capture", "launches": 27},
                        NONE | {"name": "donate", "donations": 8, "donated": 7, "busy": 1, "restores": 3}],
            "counted": {"core.graph_launch": PROBE | {"attempted": 27, "committed": 27}, "core.restore": PROBE | {"attempted": 3, "committed": 3},
                        "core.donate": PROBE | {"attempted": 8, "committed": 7, "skipped": {"capturing": 1, "legacy_stream": 0}}}}
REFUSED = {"errors": 1, "first_error": 901, "where": "launch in a capture"}
TWIN = {"final": True, "workers": [NONE | REFUSED | {"name": "capture", "invalidated": 1}]}
DEAD = {"final": False, "died": -11}


def judged(change=lambda bare, recorded, twin: None):
    """What the judge has against a good measurement that was changed."""
    parts = copy.deepcopy([BARE, RECORDED, TWIN])
    change(*parts)
    return storm.judge(*parts)


def worker(measured, number, **values):
    """Of one thread."""
    measured["workers"][number].update(values)


def probe(measured, name, **values):
    """Of one probe."""
    measured["counted"][f"core.{name}"].update(values)


def test_a_good_storm_passes():
    assert not judged()


@pytest.mark.parametrize("change", [
    lambda bare, recorded, twin: twin.update(DEAD),
    lambda bare, recorded, twin: twin.update(died=-11),  # at its exit
    lambda bare, recorded, twin: (twin.update(DEAD), worker(twin, 0, invalidated=0)),  # before the capture that was lost had ended
])
def test_a_red_twin_may_die_of_a_loss_that_it_reported(change):
    assert not judged(change)


@pytest.mark.parametrize("change, said", [
    (lambda bare, recorded, twin: worker(bare, 0, errors=1), "bare: capture: 1 errors"),
    (lambda bare, recorded, twin: worker(bare, 0, launches=0), "bare: nothing was launched"),
    (lambda bare, recorded, twin: worker(recorded, 0, invalidated=1), "1 captures invalidated"),
    (lambda bare, recorded, twin: worker(recorded, 1, rounds=0), "donate: not one round"),
    (lambda bare, recorded, twin: (worker(recorded, 1, busy=0, donated=8), probe(recorded, "donate", committed=8, skipped={})), "no busy"),
    (lambda bare, recorded, twin: (worker(recorded, 1, restores=0), recorded["counted"].pop("core.restore")), "core.restore: none was recorded"),
    (lambda bare, recorded, twin: probe(recorded, "graph_launch", committed=0, filtered=27), "core.graph_launch: none was recorded"),  # paused
    (lambda bare, recorded, twin: probe(recorded, "donate", attempted=9), "core.donate: the program 8"),
    (lambda bare, recorded, twin: recorded["counted"].pop("core.donate"), "core.donate: the program 8"),
    (lambda bare, recorded, twin: probe(recorded, "restore", in_flight=1, committed=2), "1 in flight"),
    (lambda bare, recorded, twin: probe(recorded, "donate", errors=1), "does not add up"),
    (lambda bare, recorded, twin: worker(twin, 0, invalidated=0, errors=0, first_error=0, where=""), "ended no capture"),
    (lambda bare, recorded, twin: worker(twin, 0, invalidated=0, first_error=2, where="mem_alloc"), "ended no capture"),
    (lambda bare, recorded, twin: worker(twin, 0, invalidated=0, where="ctx_create"), "ended no capture"),
    (lambda bare, recorded, twin: worker(twin, 0, invalidated=0, first_error=2), "ended no capture"),
    (lambda bare, recorded, twin: twin.update(DEAD, workers=[]), "the program ended with -11"),
    (lambda bare, recorded, twin: twin.update(DEAD, workers=BARE["workers"]), "the program ended with -11"),
    (lambda bare, recorded, twin: bare.update(final=False), "bare: no final counts"),
    (lambda bare, recorded, twin: bare.update(died=-11), "bare: the program ended with -11"),
    (lambda bare, recorded, twin: recorded.update(final=False), "recorded: no final counts"),
    (lambda bare, recorded, twin: recorded.update(died=-11), "recorded: the program ended with -11"),
])
def test_each_fault_is_seen(change, said):
    assert any(said in fault for fault in judged(change)), judged(change)


def acted(folder, printed, end):
    """A storm whose program, bare or recorded, prints that and ends so."""
    (folder / "printed").write_text(printed, encoding="utf-8")
    for path in (folder / "tests/bench/storm", folder / "slotprobe"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ncat {folder}/printed\n{end}\n", encoding="utf-8")
        path.chmod(0o755)
    return storm.Storm(folder, "cuda", folder)


SEGV = "kill -SEGV $$"
QUIET, LOSS = (json.dumps({"final": False, "workers": w["workers"]}) + "\n" for w in (BARE, TWIN))
END = json.dumps(TWIN) + "\n"


@pytest.mark.parametrize("printed, holds", [
    ("", False),
    (QUIET, False),
    (QUIET + LOSS[:-1], False),  # a report that was cut
    (QUIET + LOSS, True),
    (LOSS + QUIET[:99], True),
    (LOSS + END, True),
])
def test_the_last_report_of_a_red_twin_that_died_is_its_evidence(tmp_path, printed, holds):
    found = acted(tmp_path, printed, SEGV).run(1, False, perturb="unsafe")
    assert found["died"] == -signal.SIGSEGV and storm.lost(found) == holds


@pytest.mark.parametrize("recorded", (False, True))
@pytest.mark.parametrize("printed, end", [
    ("", SEGV),
    (QUIET, SEGV),
    (LOSS, SEGV),
    (END, SEGV),  # at its exit
    (END, "exit 139"),  # as `slotprobe record` may tell it
    (QUIET, "exit 0"),  # ended by itself before it had counted
    ("", "exit 0"),
])
def test_a_run_that_is_no_twin_has_to_end_well(tmp_path, printed, end, recorded):
    with pytest.raises(RuntimeError):
        acted(tmp_path, printed, end).run(1, recorded)


def test_a_red_twin_has_to_die_to_have_no_end(tmp_path):
    with pytest.raises(RuntimeError):
        acted(tmp_path, LOSS, "exit 0").run(1, False, perturb="unsafe")


def test_the_program_reports_a_loss_before_it_dies_of_it(build, tmp_path):
    found = storm.Storm(build, "cpu", tmp_path).run(5, False, perturb="deadly")
    assert found["died"] == -signal.SIGSEGV and not found["final"] and storm.lost(found)


def test_a_red_twin_that_cannot_run_is_no_red_twin(build, tmp_path):
    """What is not there ends with a status of its own, which is not the harm that is looked for."""
    with pytest.raises(RuntimeError):
        storm.Storm(pathlib.Path(tmp_path), "cpu", tmp_path).run(1, False, perturb="unsafe")
    assert storm.total(storm.Storm(build, "cpu", tmp_path).run(5, False, perturb="unsafe"), "invalidated") > 0


def test_a_paused_recording_is_no_storm(build, tmp_path, monkeypatch):
    """Nothing is harmed by what is not done."""
    run = storm.subprocess.run

    def paused(command, **how):
        return run([*command[:2], "--paused", *command[2:]] if "record" in command else command, **how)
    monkeypatch.setattr(storm.subprocess, "run", paused)
    _, faults = storm.measure(storm.Storm(build, "cpu", tmp_path), 2)
    assert any("core.donate: none was recorded" in fault for fault in faults) and "recorded: no donated" in faults
