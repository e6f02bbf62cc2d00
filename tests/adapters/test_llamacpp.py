# SPDX-License-Identifier: Apache-2.0
"""The llama.cpp adapter on a stand-in for its library: exact keys, lengths, slots, and blobs that are not what they should be."""
import pytest

PARTIAL, WHOLE, ON_DEVICE = 1, 0, 3


@pytest.fixture(name="play", scope="module")
def fixture_play(recorder):
    """Plays a script: (run, events, probes)."""
    def play(script, program="standin"):
        run, output = recorder.record(recorder.programs / program, probes=["llamacpp"], script=script)
        assert output == "done\n"
        return run, recorder.events(run), recorder.probes(run)
    return play


def outcome(probes, name):
    """(attempted, committed, filtered, errors) of a point."""
    p = probes[f"llamacpp.{name}"]
    return p["attempted"], p["committed"], p["filtered"], p["errors"]


@pytest.mark.parametrize("kind", ["recurrent", "hybrid"])
@pytest.mark.parametrize("verb", ["run", "plain"])
def test_checkpoint_and_restore(recorder, play, kind, verb):
    """A partial state: key of the exact prefix, length as claimed, the same bytes back."""
    run, events, probes = play(f"""
        context 0 {kind}
        {verb} 0 5 6 7
        get 0 {PARTIAL} a 3
        {verb} 0 8 9
        set 0 {PARTIAL} a
        rm 0 3 -1
        {verb} 0 8
        get 0 {PARTIAL} b 4
        {verb} 1 5 6 7
        get 1 {PARTIAL} c 3
    """)
    a, restore, b, c = events
    assert [e["kind"] for e in events] == ["donate", "restore", "donate", "donate"]
    assert [e["slot"] for e in events] == [0, 0, 0, 1]
    assert [e["claimed_len"] for e in events] == [e["key_len"] for e in events] == [3, 3, 4, 3]
    assert restore["key"] == a["key"] == c["key"] != b["key"]
    assert restore["hash"] == a["hash"] == c["hash"] != b["hash"]
    assert outcome(probes, "donate") == (3, 3, 0, 0) and outcome(probes, "restore") == (1, 1, 0, 0)
    assert outcome(probes, "checkpoint") == (3, 3, 0, 0) and outcome(probes, "decode") == (4, 4, 0, 0)
    assert outcome(probes, "seq_rm") == (1, 1, 0, 0) and outcome(probes, "symbols")[3] == 0
    pool, = recorder.exported(run, "pool")
    assert (pool["name"], pool["device"], pool["n_slots"], pool["n_planes"]) == ("llama.cpp", -1, 4, 4)
    planes = [(p["tensor"], p["layer"], p["dtype"], p["elems"]) for p in recorder.exported(run, "plane")]
    assert planes == [("r", 0, 1, 12), ("r", 1, 1, 12), ("s", 0, 1, 20), ("s", 1, 1, 20)]
    assert recorder.ask("check", run)[0] == 0


@pytest.mark.parametrize("kind", ["recurrent", "hybrid"])
def test_whole_states_move_between_sequences(recorder, play, kind):
    """A whole state brings its own tokens to another sequence; it is restored as the slot's that donated it."""
    run, events, _ = play(f"""
        context 0 {kind}
        run 0 1 2 3 4
        get 0 {WHOLE} all
        run 0 5
        run 1 9 9
        set 1 {WHOLE} all
        run 1 5
        get 1 {PARTIAL} x 5
        get 0 {PARTIAL} y 5
    """)
    whole, restore, x, y = events
    assert (whole["slot"], restore["slot"], x["slot"]) == (0, 0, 1)
    assert whole["key"] == restore["key"] and whole["hash"] == restore["hash"] and whole["claimed_len"] == 4
    assert x["key"] == y["key"] and x["hash"] == y["hash"]
    assert recorder.ask("check", run)[0] == 0


def test_the_length_is_the_server_s_claim(recorder, play):
    """A server that claims more than its state holds is found by the lengths."""
    run, events, _ = play(f"context 0 hybrid\nrun 0 1 2 3\nget 0 {PARTIAL} a 4\n")
    assert (events[0]["claimed_len"], events[0]["key_len"]) == (4, 3)
    status, found = recorder.ask("check", run)
    assert status == 1 and [r["code"] for r in found["reasons"]] == ["length_disagrees"]


def test_a_claim_is_for_the_next_state_only(play):
    """After a batch the claim is not the next state's."""
    _, events, _ = play(f"context 0 hybrid\nrun 0 1 2\nget 0 {PARTIAL} a 7\nrun 0 3\nget 0 {PARTIAL} b\n")
    assert [e["claimed_len"] for e in events] == [7, 3]


def test_unknown_tokens_have_no_key(recorder, play):
    """Embeddings, shifted positions, batches that broke off: no key, never a wrong one; known again from where it is known."""
    run, events, _ = play(f"""
        context 0 hybrid
        run 0 1 2
        embed 0
        get 0 {PARTIAL} a 3
        run 1 1 2 3
        shift 1
        run 1 4
        get 1 {PARTIAL} b 4
        run 2 1 2
        fail -3
        run 2 3
        fail 0
        get 2 {PARTIAL} c 2
        run 2 3
        get 2 {PARTIAL} d 3
        clear
        run 2 1 2
        get 2 {PARTIAL} e 2
    """)
    known = [int(e["key"], 16) != 0 for e in events]
    assert known == [False, False, True, False, True]
    assert events[2]["key"] == events[4]["key"]
    assert [e["key_len"] for e in events] == [-1, -1, 2, -1, 2]
    assert recorder.ask("check", run)[0] == 0


def test_a_batch_that_did_not_run_changes_nothing(play):
    """Status 1 leaves the memory as it was: the server tries again."""
    _, events, probes = play(f"""
        context 0 hybrid
        fail 1
        run 0 1 2
        fail 0
        run 0 1 2
        get 0 {PARTIAL} a 2
        run 1 1 2
        get 1 {PARTIAL} b 2
    """)
    assert events[0]["key"] == events[1]["key"] != "0x0000000000000000"
    assert outcome(probes, "decode") == (3, 2, 1, 0)


def test_copied_sequences(play):
    """seq_cp gives the copy the key of its source."""
    _, events, probes = play(f"context 0 hybrid\nrun 0 1 2\ncp 0 2\nrun 2 3\nget 2 {PARTIAL} a 3\nrun 0 3\nget 0 {PARTIAL} b 3\n")
    assert events[0]["key"] == events[1]["key"] and events[0]["hash"] == events[1]["hash"]
    assert outcome(probes, "seq_cp") == (1, 1, 0, 0)


def test_a_refused_removal_is_none(play):
    """A recurrent state cannot go back: the tokens stay."""
    _, events, probes = play(f"context 0 hybrid\nrun 0 1 2 3\nrm 0 1 -1\nget 0 {PARTIAL} a 3\n")
    assert int(events[0]["key"], 16) and events[0]["key_len"] == 3
    assert outcome(probes, "seq_rm") == (1, 0, 1, 0)


def test_contexts_are_pools(recorder, play):
    """A second context (a draft model's) is a pool of its own; one that comes after another went takes its place."""
    run, events, _ = play(f"""
        context 0 hybrid
        run 0 1 2
        get 0 {PARTIAL} a 2
        context 1 recurrent
        run 0 1 2
        get 0 {PARTIAL} b 2
        use 0
        free
        context 2 hybrid
        run 0 1 2
        get 0 {PARTIAL} c 2
    """)
    assert [p["name"] for p in recorder.exported(run, "pool")] == ["llama.cpp", "llama.cpp.1", "llama.cpp"]
    assert [e["pool"] for e in events] == [0, 1, 2]
    assert [r["pool"] for r in recorder.exported(run, "pool_remove")] == [0]


def test_what_has_no_recurrent_bytes_is_filtered(play):
    """Attention alone, states that stay on the device, and states of nothing: counted, not measured, no error."""
    _, events, probes = play(f"""
        context 0 attention
        run 0 1 2
        get 0 {PARTIAL} a 2
        get 0 {WHOLE} a
        context 1 hybrid
        run 0 1 2
        get 0 {ON_DEVICE} b 2
        get 3 {PARTIAL} c 0
        get 0 {PARTIAL} d 2
    """)
    assert len(events) == 1
    assert outcome(probes, "donate") == (5, 1, 4, 0)


SHORT = {"cut in a row": "cut a 100", "header only": "cut a 8", "half a header": "cut a 5", "nothing": "cut a 0", "zeros": "make a 200",
         "no magic": "poke a 0 1"}
FIELDS = {"two cells": "poke a 8 2", "transposed": "poke a 20 1", "negative position": "poke a 15 255",
           "row length wraps": "poke a 39 255", "row length too long": "poke a 33 2", "type": "poke a 31 255"}
HOSTILE = [(flags, name, spoil) for flags in (PARTIAL, WHOLE) for name, spoil in SHORT.items()]
HOSTILE += [(PARTIAL, name, spoil) for name, spoil in FIELDS.items()]


@pytest.mark.parametrize("flags, _, spoil", HOSTILE)
def test_hostile_blobs(play, flags, _, spoil):
    """A blob that is not laid out as it should be is an error at the point, no measurement, and no end of the server."""
    _, events, probes = play(f"""
        context 0 hybrid
        run 0 1 2 3
        get 0 {PARTIAL} good 3
        get 0 {flags} a 3
        {spoil}
        set 0 {flags} a
        run 1 1 2 3
        get 1 {PARTIAL} after 3
    """)
    assert outcome(probes, "restore") == (1, 0, 0, 1)
    assert [e["kind"] for e in events] == ["donate"] * 3
    assert events[0]["hash"] == events[2]["hash"] and events[0]["key"] == events[2]["key"]


def test_a_blob_of_another_sequence_is_an_error(play):
    """A donated state must be of the sequence that was asked for."""
    _, events, probes = play(f"context 0 hybrid\nrun 0 1 2 3\nlie 1\nget 0 {PARTIAL} a 3\n" + f"lie -1\nget 0 {PARTIAL} a 3\n")
    assert [e["slot"] for e in events] == [0]
    assert outcome(probes, "donate") == (2, 1, 0, 1)


def test_another_layout_is_an_error(play):
    """A blob of other rows than the context's first one is not measured as if it were the same."""
    _, events, probes = play(f"""
        context 0 hybrid
        run 0 1 2 3
        get 0 {PARTIAL} a 3
        poke a 28 1
        set 0 {PARTIAL} a
    """)
    assert len(events) == 1 and outcome(probes, "restore") == (1, 0, 0, 1)


def test_an_altered_state_differs(recorder, play):
    """One byte of a state, altered between donation and restore."""
    script = f"context 0 hybrid\nrun 0 1 2 3\nget 0 {PARTIAL} a 3\n%s\nset 0 {PARTIAL} a\n"
    clean, _, _ = play(script % "")
    altered, events, _ = play(script % "poke a 45 77")
    assert events[0]["hash"] != events[1]["hash"]
    status, found = recorder.ask("check", altered)
    assert status == 1 and [r["code"] for r in found["reasons"]] == ["restore_differs"]
    assert recorder.ask("check", clean)[0] == 0
    assert recorder.ask("diff", clean, altered)[0] == 1


def test_static_build_says_so(recorder, build):
    """Calls that reach no symbol: nothing is measured, the run says never fired, and the needed functions are counted as missing."""
    script = f"cuda\ncontext 0 hybrid\nrun 0 1 2 3\nget 0 {PARTIAL} a 3\nset 0 {PARTIAL} a\n"
    run, output = recorder.record(recorder.programs / "llama-static", probes=["llamacpp"], script=script,
                                  env={"LD_LIBRARY_PATH": str(build / "cpudriver")})
    assert output == "done\n"
    probes = recorder.probes(run)
    assert outcome(probes, "symbols") == (7, 0, 0, 7) and outcome(probes, "donate") == (0, 0, 0, 0)
    status, found = recorder.ask("check", run)
    assert status == 3 and [r["code"] for r in found["reasons"]] == ["adapter_error", "probe_never_fired"]
    status, found = recorder.ask("check", run, "--expect", "llamacpp.donate>=1")
    assert status == 3 and any("llamacpp.donate" in r["text"] for r in found["reasons"])


def test_other_programs_are_left_alone(recorder, build):
    """A program without llama.cpp that uses CUDA lacks nothing."""
    run, _ = recorder.record(recorder.programs / "kvserver", probes=["llamacpp", recorder.programs / "kvprobe"])
    assert outcome(recorder.probes(run), "symbols") == (0, 0, 0, 0)


def test_points_file_lists_the_points(recorder, build):
    """llamacpp.points is what the adapter registers."""
    listed = (build / "probes" / "llamacpp.points").read_text().split()
    run, _ = recorder.record(recorder.programs / "standin", probes=["llamacpp"], script="context 0 hybrid\nrun 0 1\nget 0 1 a 1\n")
    assert [p for p in recorder.probes(run) if p.startswith("llamacpp.")] == listed and len(listed) == 8
