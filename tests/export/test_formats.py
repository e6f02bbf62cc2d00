# SPDX-License-Identifier: Apache-2.0
"""What export writes: JSON lines and CSV with one type a column, and a trace that holds to Perfetto's own definitions."""
import collections
import csv
import io
import json
import math
import shutil

import duckdb
import pytest
from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

import loggen

INSTANT, BEGIN, END, COUNTER = (perfetto.TrackEvent.TYPE_INSTANT, perfetto.TrackEvent.TYPE_SLICE_BEGIN, perfetto.TrackEvent.TYPE_SLICE_END,
                                perfetto.TrackEvent.TYPE_COUNTER)


def kind(value):
    return "list" if isinstance(value, list) else "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


@pytest.mark.parametrize("which", ["toy", "odd"])
def test_jsonl_has_one_type_a_name(which, request, export):
    run = request.getfixturevalue(which)
    run = getattr(run, "path", run)
    kinds = collections.defaultdict(set)
    for line in export(run, "jsonl", loss=False).decode().splitlines():
        for name, value in json.loads(line).items():
            if value is not None:
                kinds[name].add(kind(value))
    mixed = {name: found for name, found in kinds.items() if len(found) > 1}
    assert not mixed and len(kinds) > 60
    assert {n for n, found in kinds.items() if found == {"list"}} <= {"planes", "frames", "values"} and kinds["manifest"] == {"dict"}


@pytest.mark.parametrize("which", ["toy", "odd"])
def test_jsonl_in_duckdb(which, request, export, lab):
    """Texts stay texts, counts are integers: as DuckDB guesses them, without being told."""
    run = request.getfixturevalue(which)
    run = getattr(run, "path", run)
    export(run, "jsonl")
    path = str(lab.folder / f"{run.name}.jsonl").replace("'", "''")
    types = {row[0]: row[1] for row in duckdb.sql(f"DESCRIBE SELECT * FROM read_json('{path}', sample_size = -1, maximum_depth = 2)").fetchall()}
    integers = ["pid", "t_ns", "event", "slot", "claimed_len", "attempted", "committed", "launches", "n_slots", "layer", "batch", "number"]
    texts = ["type", "process", "host", "rank", "name", "key", "rollup", "stream", "context", "base", "outcome", "kind", "value", "tensor"]
    assert {name: types[name] for name in integers if types[name] not in ("BIGINT", "HUGEINT")} == {}
    assert {name: types[name] for name in texts if types[name] != "VARCHAR"} == {}
    assert not [name for name, t in types.items() if t == "JSON"]


def test_jsonl_keeps_64_bits(odd, export):
    """A caller's value, a key and flags can be any 64 bits; none is cut to 63."""
    lines = [json.loads(line) for line in export(odd, "jsonl").splitlines()]
    (step,) = [r for r in lines if r["type"] == "step"]
    assert step["value"] == "0x" + "f" * 16
    assert [r["key"] for r in lines if r.get("kind") == "donate"][2] == "0x" + "f" * 16
    assert next(r for r in lines if r["type"] == "unrouted")["lookup_flags"] == "0x" + "f" * 16
    assert next(r for r in lines if r["type"] == "control")["setting"] == 0
    prints = [p for r in lines if r["type"] == "fingerprint" for p in r["planes"]]
    assert "Infinity" in {p["absmax"] for p in prints} and not any(p["absmax"] in ("inf", "nan") for p in prints)
    assert all(float(p["absmax"]) >= 0 for p in prints)


def test_jsonl_has_the_counters(odd, toy, export, lab):
    """One line a probe and process, as status counts them."""
    lines = [json.loads(line) for line in export(toy.path, "jsonl").splitlines()]
    rows = {r["name"]: r for r in lines if r["type"] == "probe"}
    for name, counted in lab.probes(toy).items():
        assert (rows[name]["attempted"], rows[name]["committed"], rows[name]["filtered"]) == (counted["attempted"], counted["committed"], counted["filtered"])
        assert rows[name]["dropped"] == sum(counted["dropped"].values())
    plain = {r["name"]: r["count"] for r in lines if r["type"] == "counter"}
    assert plain["pool_graph_launches"] > 0 and plain["internal_errors"] == 0


def test_csv_of_odd_values(odd, export, lab):
    text = export(odd, "csv").decode()
    rows = [r for r in csv.DictReader(io.StringIO(text)) if r["kind"] == "donate"]
    assert len(rows) == 5 and {r["host"] for r in rows} == {"ho\"st,'x'"} and {r["pool_name"] for r in rows} == {'po"ol,\\x0aname'}
    assert [r["key"] for r in rows[:3]] == ["", "0x0000000000000001", "0x" + "f" * 16]
    assert rows[2]["absmax"] == "Inf" and rows[1]["nan"] == "2" and rows[1]["slot"] == "1"
    by_slot = {r["slot"]: r for r in rows}
    assert (by_slot["5"]["outcome"], by_slot["5"]["rollup"], by_slot["5"]["absmax"]) == ("in_flight", "", "")
    assert by_slot["6"]["outcome"] == "ring_full"
    path = str(lab.folder / f"{odd.name}.csv").replace("'", "''")
    found = duckdb.sql(f"SELECT host, absmax, nan, arm, run FROM read_csv('{path}', types = {{'key': 'VARCHAR', 'rollup': 'VARCHAR'}}) "
                       "WHERE kind = 'donate' AND slot = 2").fetchall()
    assert found == [("ho\"st,'x'", math.inf, 0, 'graph "on", it is', str(odd).replace("'", "'"))]


# ---- Perfetto ----


def unknown(message):
    """Numbers of fields that Perfetto's definitions do not have, anywhere in the message."""
    found = [f.field_number for f in unknown_fields.UnknownFieldSet(message)]
    for field, value in message.ListFields():
        if field.message_type and field.is_repeated:
            found += [n for part in value for n in unknown(part)]
        elif field.message_type:
            found += unknown(value)
    return found


class Trace:
    """A trace as Perfetto reads it: tracks by their uuid, events by track in the order of time."""

    def __init__(self, data):
        self.packets = perfetto.Trace.FromString(data).packet
        self.tracks = {p.track_descriptor.uuid: p.track_descriptor for p in self.packets if p.HasField("track_descriptor")}
        self.events = collections.defaultdict(list)
        for p in self.packets:
            if p.HasField("track_event"):
                self.events[p.track_event.track_uuid].append((p.timestamp, p.track_event))
        for events in self.events.values():
            events.sort(key=lambda e: e[0])

    def track(self, name):
        (found,) = [u for u, t in self.tracks.items() if t.name == name]
        return found


def notes(event):
    return {a.name: getattr(a, a.WhichOneof("value")) for a in event.debug_annotations}


@pytest.mark.parametrize("which", ["toy", "odd", "fleet"])
def test_perfetto_holds_to_the_definitions(which, request, export):
    run = request.getfixturevalue(which)
    run = run / "on" if which == "fleet" else getattr(run, "path", run)
    trace = Trace(export(run, "perfetto"))
    assert len(trace.packets) > 20
    begun = set()
    described = set()
    for packet in trace.packets:
        assert packet.trusted_packet_sequence_id
        cleared = bool(packet.sequence_flags & perfetto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED)
        assert cleared == (packet.trusted_packet_sequence_id not in begun)
        begun.add(packet.trusted_packet_sequence_id)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid and track.uuid not in described and (track.HasField("process") or track.name)
            assert not track.parent_uuid or track.parent_uuid in described
            described.add(track.uuid)
        else:
            assert packet.timestamp and packet.track_event.track_uuid in described and packet.track_event.type
    if which != "fleet":
        assert unknown(perfetto.Trace(packet=trace.packets)) == []
    for uuid, events in trace.events.items():
        depth = 0
        for _, event in events:
            counter = trace.tracks[uuid].HasField("counter")
            assert counter == (event.type == COUNTER) == (event.WhichOneof("counter_value_field") is not None)
            assert event.type in (END, COUNTER) or event.name
            depth += (event.type == BEGIN) - (event.type == END)
            assert depth in (0, 1)


def test_perfetto_says_what_the_run_holds(toy, export):
    """Every donation with its key, hash and abs-max; spans from allocation to free; launches; arrows to restores."""
    rows = list(csv.DictReader(io.StringIO(export(toy.path, "csv").decode())))
    trace = Trace(export(toy.path, "perfetto"))
    first = next(json.loads(line) for line in export(toy.path, "jsonl").splitlines() if b'"type":"process"' in line)
    clock = first["t_real_ns"] - first["t_ns"]
    for slot in {r["slot"] for r in rows if r["slot"]}:
        events = trace.events[trace.track(f"state, slot {slot}")]
        mine = [r for r in rows if r["slot"] == slot and r["kind"] == "donate"]
        donations = [e for _, e in events if e.name == "donate"]
        assert [(notes(e)["rollup"], notes(e)["claimed_len"], notes(e)["key"], notes(e)["step"]) for e in donations] == [
            (r["rollup"], int(r["claimed_len"]), r["key"], int(r["step"])) for r in mine]
        assert all(notes(e)["reported_from"] == "toy_report_donate" for e in donations)
        for edge, kind in ((BEGIN, "alloc"), (END, "free")):
            assert [t - clock for t, e in events if e.type == edge] == [int(r["t_ns"]) for r in rows if r["slot"] == slot and r["kind"] == kind]
        values = [e.double_counter_value for _, e in trace.events[trace.track(f"state, slot {slot} abs-max")]]
        assert [float(r["absmax"]) for r in rows if r["slot"] == slot and r["absmax"]] == values
        restores = [e for _, e in events if e.name == "restore"]
        assert all(set(e.flow_ids) <= {f for d in donations for f in d.flow_ids} and len(e.flow_ids) == 1 for e in restores)
    launches = [e.counter_value for _, e in trace.events[trace.track("graph launches")]]
    assert launches == sorted(launches) and launches[-1] == max(int(r["launches"]) for r in rows)
    (process,) = [t for t in trace.tracks.values() if t.HasField("process")]
    assert process.process.pid == int(rows[0]["pid"])


def test_perfetto_lays_hosts_over_each_other(fleet, export):
    """Processes of other hosts have the same clock, and pids may repeat: times are wall-clock times."""
    trace = Trace(export(fleet / "off", "perfetto"))
    times = [t for events in trace.events.values() for t, _ in events]
    assert min(times) >= 1700000000000000000 and max(times) < 1700000001000000000
    assert len({p.trusted_packet_sequence_id for p in trace.packets}) == 1000


def test_perfetto_of_equal_pids(lab, export):
    """One pid on two hosts is no process of Perfetto's: the tracks are named instead."""
    run = loggen.Run("graph-on", loggen.Process(host="a"), loggen.Process(host="b"))
    for p in run.processes:
        p.donate(p.pool(), 1, 8)
    trace = Trace(export(run.write(lab.folder / "two-hosts"), "perfetto"))
    roots = [t for t in trace.tracks.values() if not t.parent_uuid]
    assert len(roots) == 2 and not any(t.HasField("process") for t in roots) and {t.name[-1] for t in roots} == {"a", "b"}


def test_perfetto_of_a_damaged_run(lab, toy, export):
    run = shutil.copytree(toy.path, lab.folder / "damaged")
    log = next(run.glob("*.log"))
    log.write_bytes(log.read_bytes()[:-300])
    assert Trace(export(run, "perfetto", loss=True)).packets
