# SPDX-License-Identifier: Apache-2.0
"""No recorded fact may change and leave two runs equal: each field of each record, of the log's own headers and of the counters page is
changed in one of two equal runs, the checksums made right again, and the verdict must not be equal. What may change is in ALLOWED, with
why."""
import concurrent.futures
import fnmatch
import json
import re
import shutil
import struct
import subprocess

import pytest

import loggen
from loggen import ALLOC, CLEAR, COPY, DISCARD, FREE, Process, Run, number, record

# The fields of each record, as in log_format.h, in the order of loggen.FORMAT.
FIELDS = {
    "PROCESS": "pid ppid starttime t_ns t_real_ns flags reserved tool_version comm host",
    "DEVICE": "context ordinal driver_version memory_bytes multiprocessors capability uuid name",
    "POOL": "t_ns pool device first_slot n_slots n_planes reserved slot_bytes launches pool_launches name",
    "PLANE": "pool index layer dtype base slot_stride elems bytes tensor",
    "POOL_REMOVE": "t_ns pool why",
    "EVENT": "id t_ns kind pool slot slot_ptr claimed_len key_len key src stream context step launches pool_launches outcome "
             "has_fingerprint callsite tid",
    "KEY_TEXT": "key offset bytes text",
    "FINGERPRINT": "event t_ns slot pool role outcome first_plane n_planes total_planes rollup",
    "STEP": "t_ns number value batch padded mode reserved name",
    "RANK": "index count axis",
    "REGION": "t_ns region dtype base bytes name",
    "REGION_VALUES": "event region n_values",
    "GRAPH": "t_ns graph handle nodes kernels memcpys memsets flags touches",
    "GRAPH_TOUCH": "graph node node_type target id param param_offset address offset plane reserved kernel",
    "GRAPH_DESTROY": "t_ns graph",
    "LAUNCH": "t_ns number graph stream step tid result",
    "MODULE": "module bytes_path base",
    "CALLSITE": "callsite n_frames text_bytes reserved",
    "CONTROL": "t_ns what value label",
    "DISK_STOP": "t_ns free_bytes run_bytes why error",
    "UNROUTED": "t_ns version reserved flags name",
    "END": "t_ns t_real_ns records",
}
KIND = {name: getattr(loggen, name) for name in FIELDS}
NAME = {kind: name for name, kind in KIND.items()}
EVENT_NAME = ["", "donate", "restore", "alloc", "clear", "copy", "discard", "free"]

# What may change in an equal pair: globs of NAME.FIELD, and why it is no fact of the comparison.
ALLOWED = {
    "*.t_ns": "when something happened: no two runs share a clock",
    "*.t_real_ns": "the same",
    "PROCESS.*": "who recorded; the file's own header is what binds a log to its process",
    "DEVICE.*": "on which machine: two may be compared",
    "POOL.device": "which of the machine's devices",
    "PLANE.base": "an address",
    "PLANE.slot_stride": "how far apart slots lie in memory, not what they hold",
    "POOL.*launches": "graphs launched before the pool was there: arms differ in it, and one launch more or less proves nothing",
    "EVENT:*.launches": "the same, before an event",
    "EVENT:*.pool_launches": "the same: that the compared donations had any is what counts",
    "EVENT:*.slot_ptr": "an address",
    "EVENT:*.stream": "a handle",
    "EVENT:*.context": "a handle",
    "EVENT:*.tid": "a thread's number",
    "EVENT:*.callsite": "where in the code: explains only",
    "EVENT:*.step": "which step: explains only",
    "EVENT:donate.src": "says nothing of a donation",
    "EVENT:restore.src": "says nothing of a restore",
    **{f"{what}:{kind}.{field}": "only donations and restores are compared; what else happened to a slot shows in them, or harmed nobody"
       for kind in ("alloc", "clear", "copy", "discard", "free") for what, field in (
           ("EVENT", "slot"), ("EVENT", "claimed_len"), ("EVENT", "key"), ("EVENT", "key_len"), ("EVENT", "src"), ("EVENT", "id"),
           ("FINGERPRINT", "rollup"), ("FINGERPRINT", "absmax"), ("FINGERPRINT", "l2"), ("FINGERPRINT", "nan"), ("FINGERPRINT", "inf"),
           ("FINGERPRINT", "hash"), ("FINGERPRINT", "sample"))},
    "FINGERPRINT:watched.*": "watched slots explain, and are never compared",
    "FINGERPRINT:source.*": "a copy's source: 'check' holds it against the copy",
    "KEY_TEXT.*": "the text behind a key: the key itself is compared",
    "STEP.*": "how the server batched: arms differ in it; explains only",
    "REGION.*": "explains only",
    "REGION_VALUES.*": "explains only",
    "GRAPH*": "which graphs there were: arms differ in it",
    "LAUNCH.*": "the same",
    "MODULE.*": "names of call sites",
    "CALLSITE.*": "call sites explain only",
    "CONTROL.*": "how the recording was steered: what it left out is counted",
    "POOL_REMOVE.*": "how the pool went",
    "PAGE.comm": "who recorded",
    "PAGE.host": "the same: the files' names bind them to it",
    "PAGE.started_real_ns": "when it was recorded",
    "ROW:core.*.in_flight": "an attempt that was counted and not yet taken off the flight when the process went: attempted is the outcomes",
    "ROW:core.*.own_in_flight": "the same, of the thread that counts in words of its own",
    "PAGE.driver": "on which machine",
    "PAGE.rank": "the log's own records say the rank; the page's is for logs that lost theirs",
    "PAGE.heartbeat_ns": "when the writer last turned",
    "PAGE.*_done": "how often it was steered",
    "PAGE.ctl_*": "what it was asked to do; what it did is counted",
    "PAGE.level": "how much more than the donations was recorded",
    "PAGE.recording": "whether it was paused at the end: what was left out is counted",
    "PAGE.driver_seen": "a host pool needs no driver",
    "PAGE.bytes_written": "of the file: the log's records are counted",
    "PAGE.chunks_written": "the same",
    "PAGE.state": "a process that was killed and lost nothing is as good as one that ended",
    "ROW:*graph_launches.*": "arms and timing differ in it",
    "ROW:graphs_unreadable.*": "the same: makes each launch count for each pool",
    "ROW:launch_records_lost.*": "of level launches: explains only",
    "ROW:callsites_lost.*": "explains only",
}


def fields_of(kind):
    """(name, offset in the record, bytes) of each field."""
    out, at = [], 8
    for name, code in zip(FIELDS[NAME[kind]].split(), split(loggen.FORMAT[kind]), strict=True):
        out.append((name, at, struct.calcsize("<" + code)))
        at += struct.calcsize("<" + code)
    return out, at


def split(form):
    """'<QI16s' -> ['Q', 'I', '16s']"""
    out, digits = [], ""
    for c in form.lstrip("<"):
        if c.isdigit():
            digits += c
        elif c == "s":
            out.append(digits + "s")
            digits = ""
        else:
            out += [c] * int(digits or 1)
            digits = ""
    return out


def served(arm):
    """A life in which every kind of record and of event occurs."""
    p = Process(pid=4194301 + (arm == "graph-on"), ranks=(("tp", 0, 1),))
    p.callsite, p.watch = 9, [0]
    pool = p.pool()
    p.put(loggen.MODULE, 1, 11, 0x5000, tail=b"/opt/server")
    p.put(loggen.CALLSITE, 9, 1, 5, 0, tail=struct.pack("<QII", 0x40, 1, 5) + b"serve")
    p.put(loggen.REGION, p.tick(), 0, 7, 0x7e0000, 64, "indices")
    p.put(loggen.CONTROL, p.tick(), 1, 1, "go")
    p.put(loggen.GRAPH, p.tick(), 1, 0x77, 3, 3, 0, 0, 0, 1)
    p.put(loggen.GRAPH_TOUCH, 1, 0, 0, 0, 0, 0, 0, 0x7f0000000000, 0, 0, 0, "update")
    for n in range(6):
        slot, live, length, key = 2 + n % 3, 8, 32 + 8 * n, number("prompt", n)
        p.event(ALLOC, pool, live)
        p.event(CLEAR, pool, live)
        p.event(ALLOC, pool, slot)
        p.step(batch=1 + n % 2, padded=2)
        if arm == "graph-on":
            p.launch()
            p.put(loggen.LAUNCH, p.tick(), n + 1, 1, 0x51, n + 1, 77, 0)
        pool.write(live, f"prompt {n}")
        pool.write(slot, f"prompt {n}")
        p.put(loggen.KEY_TEXT, key, 0, 6, f"text {n}")
        donation = p.donate(pool, slot, length, key, key_len=length)
        p.put(loggen.REGION_VALUES, donation, 0, 2, tail=struct.pack("<qq", slot, 0))
        if n % 3 == 1:
            p.restore(pool, slot, length, key, key_len=length)
            p.event(COPY, pool, live, src=slot)
            pool.write(live, f"prompt {n}")
        if n == 4:
            p.event(DISCARD, pool, slot, src=donation)
        p.event(FREE, pool, slot)
    p.put(loggen.GRAPH_DESTROY, p.tick(), 1)
    p.put(loggen.POOL_REMOVE, p.tick(), 0, 0)
    return Run(arm, p)


def event_kinds(records):
    """Event id -> name of its kind."""
    out = {}
    for r in records:
        if struct.unpack_from("<H", r)[0] == loggen.EVENT:
            out[struct.unpack_from("<Q", r, 8)[0]] = EVENT_NAME[struct.unpack_from("<I", r, 24)[0]]
    return out


def flips(at, size, text):
    """A field's lowest and highest bit; of a text its first byte."""
    return [(at, 1)] if text else [(at, 1), (at + size - 1, 0x80)]


def changes_of_records(records):
    """(name of the field, record, offset, mask) of every field of every record."""
    of_event = event_kinds(records)
    for index, r in enumerate(records):
        kind = struct.unpack_from("<H", r)[0]
        fields, end = fields_of(kind)
        name = NAME[kind]
        if kind == loggen.EVENT:
            name += ":" + of_event[struct.unpack_from("<Q", r, 8)[0]]
        if kind == loggen.FINGERPRINT:
            role = struct.unpack_from("<I", r, 36)[0]
            name += ":" + (of_event[struct.unpack_from("<Q", r, 8)[0]] if not role else ["", "watched", "source"][role])
        yield from ((f"{name}.head", index, at, mask) for at, mask in ((0, 1), (2, 1), (4, 1)))
        for field, at, size in fields:
            text = split(loggen.FORMAT[kind])[[f[0] for f in fields].index(field)].endswith("s")
            yield from ((f"{name}.{field}", index, at, mask) for at, mask in flips(at, size, text))
        if kind == loggen.FINGERPRINT:
            for at in range(end, len(r), 8):
                part = ["absmax", "l2", "nan", "inf", "hash", "sample", "sample", "sample", "sample"][(at - end) // 8 % 9]
                yield from ((f"{name}.{part}", index, at, mask) for at, mask in flips(at, 8, False))
        elif len(r) > end:
            yield f"{name}.tail", index, end, 1


# ---- the counters page ----

HEAD = ("magic version byte_order page_bytes row_offset row_bytes max_rows pid starttime started_real_ns comm host driver rank crc n_rows "
        "state recording level driver_seen heartbeat_ns bytes_written chunks_written records_written disk_stop_real_ns flush_done label_done "
        "reserved reserved reserved reserved ctl_recording ctl_level ctl_flush ctl_label_seq ctl_label reserved_ctl reserved_ctl "
        "reserved_ctl reserved_ctl").split()


def changes_of_page(page):
    """(name of the field, offset, mask) of every field of the page, and of every row that has a name."""
    at = 0
    for name, code in zip(HEAD, split(loggen.PAGE_HEAD), strict=True):
        size = struct.calcsize("<" + code)
        if name != "crc":  # which is made right anyway
            yield from ((f"PAGE.{name}", o, mask) for o, mask in flips(at, size, code.endswith("s")))
        at += size
    for i in range(len(loggen.CORE_ROWS)):
        row = at + i * struct.calcsize(loggen.ROW)
        name = f"ROW:{loggen.CORE_ROWS[i][0]}"
        for field, offset, size in [("name", 0, 0), ("kind", 48, 4), ("reserved", 52, 4), ("in_flight", 56, 1), ("attempted", 59, 5),
                                    ("own_in_flight", 240, 1), ("own_attempted", 243, 5), ("own_committed", 248, 8),
                                    *((f"outcome{o}", 64 + 8 * o, 8) for o in range(len(loggen.OUTCOMES)))]:
            yield from ((f"{name}.{field}", row + o, mask) for o, mask in flips(offset, size, field == "name"))


def sealed_page(page):
    """The page with its checksum made right."""
    page = bytearray(page)
    covered = struct.calcsize("<8sIIIIIIQQQ")
    at = covered + 16 + 3 * 64
    page[at:at + 4] = struct.pack("<I", loggen.crc32c(bytes(page[:covered])))
    return bytes(page)


# ---- the log's own headers ----


def changes_of_headers(log):
    """(name, the log with one field of its header or of its first chunk's changed and the checksums made right)."""
    def flipped(start, form, names, crc_at, covered):
        at = start
        for name, code in zip(names.split(), split(form), strict=True):
            size = struct.calcsize("<" + code)
            for o, mask in flips(at, size, code.endswith("s")):
                out = bytearray(log)
                out[o] ^= mask
                if name != "crc":
                    out[crc_at:crc_at + 4] = bytes(4)
                    out[crc_at:crc_at + 4] = struct.pack("<I", loggen.crc32c(bytes(out[start:start + covered])))
                yield f"{name}", bytes(out)
            at += size
    yield from (("FILE." + n, o) for n, o in flipped(0, loggen.FILE_HEADER, "magic version byte_order header_bytes crc pid starttime r r r r",
                                                    20, struct.calcsize(loggen.FILE_HEADER)))
    start = struct.calcsize(loggen.FILE_HEADER)
    yield from (("CHUNK." + n, o) for n, o in flipped(
        start, loggen.CHUNK_HEADER, "magic crc seq first_record record_count raw_bytes stored_bytes codec payload_crc reserved", start + 4,
        struct.calcsize(loggen.CHUNK_HEADER)))


# ---- all of it ----


class Pair:
    """Two equal runs, of which one is written again and again with something changed."""

    def __init__(self, command, folder, changed):
        self.command, self.folder, self.n, self.arm = command, folder, 0, changed
        runs = {arm: served(arm) for arm in ("graph-off", "graph-on")}
        for i, run in enumerate(runs.values()):
            run.processes[0].recorded = 1 + i
        self.other = runs.pop("graph-off" if changed == "graph-on" else "graph-on").write(folder / "other")
        (self.run,) = runs.values()
        self.process = self.run.processes[0]
        self.process.records.append(record(loggen.END, self.process.now + 1, 3000, len(self.process.records)))
        self.process.end = False
        self.page = bytearray(self.process.page_bytes())
        self.log = self.process.log_bytes()
        self.run.write(folder / "whole")
        self.manifest = (folder / "whole/run.json").read_text()

    def write(self, log=None, page=None):
        self.n += 1
        folder = self.folder / f"changed{self.n}"
        folder.mkdir(mode=0o700)
        (folder / "run.json").write_text(self.manifest)
        (folder / (self.process.name() + ".log")).write_bytes(log or self.log)
        (folder / (self.process.name() + ".ctr")).write_bytes(page or bytes(self.page))
        return folder

    def with_record(self, index, at, mask):
        changed = bytearray(self.process.records[index])
        changed[at] ^= mask
        records = self.process.records[:index] + [bytes(changed)] + self.process.records[index + 1:]
        before = self.process.records
        self.process.records = records
        log = self.process.log_bytes()
        self.process.records = before
        return self.write(log=log)

    def with_page(self, at, mask):
        page = bytearray(self.page)
        page[at] ^= mask
        return self.write(page=sealed_page(page))

    def is_equal(self, folder):
        """The exit status is 0 exactly when the verdict is equal."""
        done = subprocess.run([self.command, "diff", "--json", self.other, folder], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in (0, 1, 2, 3), done.stderr
        shutil.rmtree(folder)
        assert (done.returncode == 0) == (bool(done.stdout) and json.loads(done.stdout)["verdict"] == "equal")
        return done.returncode == 0


def rule_of(name):
    return next((rule for rule in ALLOWED if fnmatch.fnmatchcase(name, rule)), None)


@pytest.fixture(scope="module", params=["graph-on", "graph-off"])
def pair(request, build, tmp_path_factory):
    made = Pair(build / "slotprobe", tmp_path_factory.mktemp("pair"), request.param)
    assert made.is_equal(made.write())
    return made


def thinned(changes, most):
    """Of the changes of one name at most that many, spread over all of them."""
    by_name = {}
    for change in changes:
        by_name.setdefault(change[0], []).append(change)
    for some in by_name.values():
        step = max(1, -(-len(some) // most))
        yield from some[::step] + some[1:2] + some[-1:]


def judge(pair, made):
    """made: (name, folder). Every change that leaves the runs equal has its rule; returns the rules that were needed."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        equal = [name for (name, _), same in zip(made, pool.map(lambda m: pair.is_equal(m[1]), made)) if same]
    missed = sorted({name for name in equal if not rule_of(name)})
    assert not missed, f"changed, and still equal: {missed}"
    return {rule_of(name) for name in equal}


def test_each_field_of_each_record(pair):
    changes = list(thinned(changes_of_records(pair.process.records), 2))
    assert {re.split("[.:]", c[0])[0] for c in changes} >= set(FIELDS) - {"DISK_STOP", "UNROUTED", "LAUNCH"}
    needed = judge(pair, [(c[0], pair.with_record(*c[1:])) for c in changes])
    if pair.arm == "graph-off":
        return
    # a rule that nothing needs hides something
    assert {r for r in ALLOWED if not r.startswith(("PAGE", "ROW"))} <= needed | {
        f"EVENT:{k}.{f}" for k in ("alloc", "clear", "copy", "discard", "free") for f in ("id", "slot", "src")} | {
        f"FINGERPRINT:{k}.{f}" for k in ("discard", "free") for f in ("rollup", "absmax", "l2", "nan", "inf", "hash", "sample")}


def test_each_field_of_the_counters_page(pair):
    changes = list(changes_of_page(pair.page))[pair.arm == "graph-on"::2]  # either the low or the high bits
    judge(pair, [(name, pair.with_page(at, mask)) for name, at, mask in changes])


def test_each_field_of_the_logs_headers(pair):
    judge(pair, [(name, pair.write(log=log)) for name, log in changes_of_headers(pair.log)])


def test_a_record_too_many_and_one_too_few(pair):
    """No record of what is compared, and none that is counted, may be missing or come twice."""
    kept = []
    for index, r in enumerate(pair.process.records[:-1]):
        kind = struct.unpack_from("<H", r)[0]
        for records in (pair.process.records[:index] + pair.process.records[index + 1:],
                        pair.process.records[:index] + [r] + pair.process.records[index:]):
            before, pair.process.records = pair.process.records, records
            kept.append((f"{NAME[kind]}.count", pair.write(log=pair.process.log_bytes())))
            pair.process.records = before
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        equal = {name for (name, _), same in zip(kept, pool.map(lambda m: pair.is_equal(m[1]), kept)) if same}
    assert not equal, equal
