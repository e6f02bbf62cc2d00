# SPDX-License-Identifier: Apache-2.0
"""The adapter on SGLang's own files: plugin loading, hook registry, tree (Rust as shipped, and Python), cache, pools, allocators, requests."""
import json
import pathlib
import subprocess
import sys

import pytest

LONG = list(range(1, 10))
REQUESTS = [[LONG, 3], [LONG + [10, 11, 12, 13], 2], [LONG[::-1], 0], [LONG, 3]]
KINDS = {
    "rust": {"backend": "rust", "requests": REQUESTS},
    "python-extra-buffer": {"backend": "python", "extra_buffer": True, "page": 4, "requests": REQUESTS},
    "rust-int8": {"backend": "rust", "int8": True, "requests": REQUESTS},
}


@pytest.fixture(scope="module", params=KINDS)
def life(sglang, request):
    """One recorded life of each kind."""
    run, said, stderr = sglang.record(KINDS[request.param])
    return request.param, run, said, stderr


def test_what_the_tree_has_is_what_was_said(sglang, life):
    """Slot and length of every hand-over, whether it was taken, and what was taken up, against the radix tree's own state."""
    kind, run, said, _ = life
    events = sglang.events(run)
    donated = [e for e in events if e["kind"] == "donate"]
    refused = {e["src"] for e in events if e["kind"] == "discard"}
    assert len(donated) == len(said["donated"]) == 7 and len(refused) == sum(not taken for *_, taken in said["donated"]) > 0
    for event, (slot, length, taken) in zip(donated, said["donated"]):
        assert (event["claimed_len"], event["key_len"]) == (length, length), kind
        assert (event["id"] not in refused) == taken
        if taken:
            assert event["slot"] == slot
    restored = [(e["claimed_len"], e["key"]) for e in events if e["kind"] == "restore"]
    assert [length for length, _ in restored] == [length for _, length in said["restored"]] and restored
    keys = {e["key"]: e["claimed_len"] for e in donated}
    assert all(keys[key] == length for length, key in restored), "a request goes on from the prefix that was donated"


def test_every_hook_is_in_place(sglang, life):
    """Nothing was missed, nothing failed, and attempts are what the server made."""
    _, run, said, stderr = life
    probes = sglang.probes(run)
    assert probes["sglang.hooked"]["committed"] >= 20
    assert not probes["sglang.hook_missing"]["attempted"] and not probes["sglang.hook_error"]["attempted"], stderr[-4000:]
    assert probes["sglang.cache_finished_req"]["committed"] == 4 and probes["sglang.cache_unfinished_req"]["committed"] == 3
    assert probes["sglang.donate"]["committed"] == probes["core.donate"]["committed"] == 7
    assert probes["sglang.step"]["committed"] == 8 and probes["sglang.scheduler"]["committed"] == 1
    assert all(p["attempted"] == p["committed"] for name, p in probes.items() if name.startswith("sglang."))


def test_the_invariants_hold(sglang, life):
    """Of one run. A state that went through int8 is not the one that was quantized, and nothing says that it is."""
    _, run, _, _ = life
    status, found = sglang.ask("check", run, "--expect", "sglang.donate>=7", "--expect", "sglang.restore>=1")
    assert status == 0, found["reasons"]


def test_pools(sglang, life):
    """True shapes, and the slots that the adapter watches unless the user says other ones."""
    kind, run, _, _ = life
    pools = {p["pool"]: p for p in sglang.ask("report", run)[1]["pools"]}
    assert set(pools) == ({"mamba", "mamba_int8"} if kind == "rust-int8" else {"mamba"})
    assert {(p["tensor"], p["layer"]) for p in pools["mamba"]["planes"]} == {(t, i) for t in ("conv.0", "temporal") for i in (0, 1)}
    assert sglang.probes(run)["core.watch"]["committed"] == 7
    assert {r["slot"] for r in sglang.exported(run, "fingerprint") if r["role"] == "watched"} == {0}


def test_two_lives_are_equal_and_a_spoilt_one_is_found(sglang):
    """The positive control on SGLang's own cache: one checkpoint that is never written."""
    asked = {"backend": "rust", "extra_buffer": True, "page": 4, "requests": REQUESTS}
    a, b = sglang.record(asked)[0], sglang.record(asked)[0]
    status, found = sglang.ask("diff", a, b)
    assert status == 0, found["reasons"]
    spoilt, said, _ = sglang.record(asked | {"spoil": 1})
    status, found = sglang.ask("diff", a, spoilt)
    slot = said["donated"][1][0]
    assert status == 1 and [s["slot"] for s in found["slots"] if s["verdict"] == "differs"][0] == slot
    status, found = sglang.ask("check", spoilt)
    assert status == 1, "the state at the donation is the one at the allocation"


def test_a_hook_that_is_lost_is_counted(sglang):
    """The function is there and takes something else: it is left alone, said, and the server goes on."""
    asked = KINDS["rust"] | {"break": ["sglang.srt.mem_cache.memory_pool", "MambaPool", "clear_slots"],
                             "requests": [[LONG, 0]]}
    run, _, stderr = sglang.record(asked, "--watch-slot", "3")
    probes = sglang.probes(run)
    assert probes["sglang.hook_missing"]["errors"] == 1 and "slots that are zeroed" in stderr
    assert {r["slot"] for r in sglang.exported(run, "fingerprint") if r["role"] == "watched"} == {3}


def test_without_a_recording_nothing_is_hooked(sglang, build):
    """The folder may stay on the path."""
    env = sglang.env | {"PYTHONPATH": f"{build / 'probes' / 'sglang'}:{sglang.env['PYTHONPATH']}"}
    done = subprocess.run([sys.executable, "-c", "import standins; standins.install()\nimport sglang.srt.managers.scheduler\n"
                           "from sglang.srt.plugins import load_plugins, hook_registry as h\nload_plugins()\nprint(len(h.HookRegistry._hooks))"],
                          capture_output=True, text=True, env=env, cwd=pathlib.Path(__file__).parent, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == 0
