# SPDX-License-Identifier: Apache-2.0
"""The exported trace opened in Perfetto itself: its trace processor finds every track, slice, counter, argument and arrow that was
written, imports them without a complaint, and its timeline shows each track."""
import collections
import re

import pytest

import loggen
from perfetto_ui import ROOT, Perfetto
from test_formats import BEGIN, COUNTER, END, INSTANT, Trace, notes


@pytest.fixture(scope="module")
def perfetto():
    """One browser for all traces."""
    one = Perfetto()
    yield one
    one.close()


@pytest.fixture(scope="module")
def hosts(lab):
    """One pid on two hosts: named tracks instead of processes."""
    run = loggen.Run("graph-on", loggen.Process(host="a"), loggen.Process(host="b"))
    for p in run.processes:
        pool = p.pool()
        p.event(loggen.ALLOC, pool, 1)
        p.donate(pool, 1, 8, key=7)
        p.restore(pool, 1, 8, key=7)
    return run.write(lab.folder / "two-hosts-shown")


def place(trace, uuid):
    """A track and what it is under: by name, and by pid where that is a process."""
    track = trace.tracks[uuid]
    parent = trace.tracks[track.parent_uuid]
    return (parent.process.pid if parent.HasField("process") else None), track.name


def written(trace):
    """Slices by place and name, and how many of them never ended."""
    slices, unended = collections.Counter(), collections.Counter()
    for uuid, events in trace.events.items():
        for _, event in events:
            if event.type in (BEGIN, INSTANT):
                slices[(*place(trace, uuid), event.name)] += 1
        unended[place(trace, uuid)] += sum(e.type == BEGIN for _, e in events) - sum(e.type == END for _, e in events)
    return slices, +unended


SLICES = """SELECT p.pid AS pid, t.name AS track, s.name AS name, count(*) AS n, sum(s.dur = -1) AS unended FROM slice s
 JOIN track t ON t.id = s.track_id LEFT JOIN process_track pt ON pt.id = t.id LEFT JOIN process p USING (upid) GROUP BY 1, 2, 3"""
COUNTERS = """SELECT p.pid AS pid, t.name AS track, count(*) AS n, max(c.value) AS most FROM counter c JOIN counter_track t ON t.id = c.track_id
 LEFT JOIN process_counter_track pt ON pt.id = t.id LEFT JOIN process p USING (upid) GROUP BY 1, 2"""
DONATIONS = """SELECT ts, extract_arg(arg_set_id, 'debug.event') AS event, extract_arg(arg_set_id, 'debug.claimed_len') AS claimed_len,
 extract_arg(arg_set_id, 'debug.key') AS key, extract_arg(arg_set_id, 'debug.rollup') AS rollup,
 extract_arg(arg_set_id, 'debug.absmax') AS absmax FROM slice WHERE name = 'donate' ORDER BY ts, event"""


def pid(row):
    return None if row["pid"] is None else int(row["pid"])


@pytest.mark.parametrize("which", ["toy", "odd", "hosts"])
def test_perfetto_shows_what_was_exported(which, request, perfetto, export):
    run = request.getfixturevalue(which)
    data = export(getattr(run, "path", run), "perfetto")
    trace = Trace(data)
    perfetto.open(data)
    # nothing to complain about: neither while it was parsed nor in the interface
    assert perfetto.ask("SELECT name, value FROM stats WHERE value != 0 AND severity IN ('error', 'data_loss')") == []
    assert perfetto.browser.execute_script("return [app.trace.loadingErrors.length, Number(app.trace.traceInfo.importErrors)]") == [0, 0]
    # slices
    slices, unended = written(trace)
    found = perfetto.ask(SLICES)
    assert {(pid(r), r["track"], r["name"]): int(r["n"]) for r in found} == slices
    of_track = collections.Counter()
    for r in found:
        of_track[(pid(r), r["track"])] += int(r["unended"])
    assert +of_track == unended
    # counters, to the last value
    counters = collections.defaultdict(list)
    for uuid, events in trace.events.items():
        counters[place(trace, uuid)] += [e.double_counter_value if e.HasField("double_counter_value") else e.counter_value
                                         for _, e in events if e.type == COUNTER]
    assert {(pid(r), r["track"]): (int(r["n"]), r["most"]) for r in perfetto.ask(COUNTERS)} == {
        where: (len(values), pytest.approx(max(values))) for where, values in counters.items() if values}
    # what was measured of each donation, and when
    donations = sorted((t, notes(e)) for events in trace.events.values() for t, e in events if e.name == "donate")
    said = perfetto.ask(DONATIONS)
    assert len(said) == len(donations) > 0
    for row, (t, note) in zip(said, donations):
        assert (int(row["ts"]), int(row["event"]), int(row["claimed_len"])) == (t, note["event"], note["claimed_len"])
        assert (row["key"], row["rollup"]) == (note.get("key"), note.get("rollup"))
        assert row["absmax"] == (pytest.approx(note["absmax"]) if "absmax" in note else None) or note["absmax"] == float("inf")
    # arrows from donations to restores: one to each further event of a flow
    flows = collections.Counter(f for events in trace.events.values() for _, e in events for f in e.flow_ids)
    arrows = perfetto.ask("SELECT a.name AS a, b.name AS b FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in")
    assert len(arrows) == sum(n - 1 for n in flows.values())
    assert {r["b"] for r in arrows} <= {"restore"}
    # the timeline: each process by its name and pid, and each track that has something on it
    shown = perfetto.shown()
    tracks = [t.name for u, t in trace.tracks.items() if t.parent_uuid and trace.events[u]]
    assert [n for n in shown if n in tracks] == sorted(tracks)
    for root in (t for t in trace.tracks.values() if not t.parent_uuid):
        name = f"{root.process.process_name} {root.process.pid}" if root.HasField("process") else root.name
        assert name in shown, shown
    # the query of docs/fleet.md
    query = re.search(r"```\n(SELECT.*?)\n```", (ROOT / "docs/fleet.md").read_text(), re.S).group(1)
    assert [int(r["ts"]) for r in perfetto.ask(query)] == [t for t, note in donations if note.get("nan")]
    assert bool(perfetto.ask(query)) == (which == "odd")
