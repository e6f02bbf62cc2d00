# SPDX-License-Identifier: Apache-2.0
"""What storm.py makes of what it measured: each thing that must not be, and each that must, on made-up measurements. The storm itself is run by
tests/e2e/test_perturb.py."""
import copy
import pathlib

import pytest

import storm

NONE = {"rounds": 9, "errors": 0, "invalidated": 0, "launches": 0, "donations": 0, "donated": 0, "busy": 0, "other": 0, "restores": 0,
        "first_error": 0, "where": ""}
PROBE = {"filtered": 0, "skipped": {"capturing": 0, "legacy_stream": 0}, "dropped": {"ring_full": 0}, "errors": 0, "in_flight": 0}
BARE = {"workers": [NONE | {"name": "capture", "launches": 27}, NONE | {"name": "donate", "donations": 8, "other": 8, "restores": 3}]}
RECORDED = {"workers": [NONE | {"name": "capture", "launches": 27}, NONE | {"name": "donate", "donations": 8, "donated": 7, "busy": 1, "restores": 3}],
            "counted": {"core.graph_launch": PROBE | {"attempted": 27, "committed": 27}, "core.restore": PROBE | {"attempted": 3, "committed": 3},
                        "core.donate": PROBE | {"attempted": 8, "committed": 7, "skipped": {"capturing": 1, "legacy_stream": 0}}}}
TWIN = {"workers": [NONE | {"name": "capture", "errors": 3, "invalidated": 1, "first_error": 901, "where": "launch in a capture"}]}


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
    (lambda bare, recorded, twin: worker(twin, 0, invalidated=0), "ended no capture"),
    (lambda bare, recorded, twin: twin.update(workers=[], died=-11), "the program ended with -11"),
])
def test_each_fault_is_seen(change, said):
    assert any(said in fault for fault in judged(change)), judged(change)


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
