# SPDX-License-Identifier: Apache-2.0
"""Writes whole runs (manifest, logs, counters pages) as a recorded server would, so that any scenario can be made without one.

A Process keeps the memory of its slots: what a slot holds is a content (any text; None is zeros, "nan..." has a NaN in it), by plane.
Its methods are the server's calls; each writes its records and counts. The sizes come from struct formats here; test_compare holds
them against log_format.h."""
import copy
import hashlib
import json
import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = (ROOT / "shim/record/log_format.h").read_text()
U64 = (1 << 64) - 1
NO_SLOT = -(1 << 63)

(PROCESS, DEVICE, POOL, PLANE, POOL_REMOVE, EVENT, KEY_TEXT, FINGERPRINT, STEP, RANK, REGION, REGION_VALUES, GRAPH, GRAPH_TOUCH,
 GRAPH_DESTROY, LAUNCH, MODULE, CALLSITE, CONTROL, DISK_STOP, UNROUTED, END) = range(1, 23)
DONATE, RESTORE, ALLOC, CLEAR, COPY, DISCARD, FREE = range(1, 8)
SUBJECT, WATCHED, SOURCE = range(3)

# Bodies, after the 8 bytes of the record's header.
FORMAT = {
    PROCESS: "<5QII16s16s64s", DEVICE: "<QiiQii16s64s", POOL: "<QiiqqIIQQQ64s", PLANE: "<iIiIQqQQ64s", POOL_REMOVE: "<QiI",
    EVENT: "<QQIiqQqqQqQQQQQIIII", KEY_TEXT: "<QII200s", FINGERPRINT: "<QQqiIIIIIQ", STEP: "<QQQiiII64s", RANK: "<ii16s",
    REGION: "<QIIQQ64s", REGION_VALUES: "<QII", GRAPH: "<QQQIIIIII", GRAPH_TOUCH: "<QIIIiIIQQII128s", GRAPH_DESTROY: "<QQ",
    LAUNCH: "<QQQQQIi", MODULE: "<IIQ", CALLSITE: "<IIII", CONTROL: "<QII64s", DISK_STOP: "<QQQIi", UNROUTED: "<QiIQ64s", END: "<QQQ",
}
PRINT = "<ddQQQ4Q"
FILE_HEADER = "<8sIIIIQQ4Q"
CHUNK_HEADER = "<IIQQIIIIII"
PAGE_HEAD = "<8sIIIIIIQQQ16s64s64s64sIIIIIIQQQQQQQ4QIIQQ64s4Q"
ROW = "<48sIIQ24Q"
PLANES_IN_PART = 56


def rows(macro: str) -> list:
    """The rows of an X-macro of log_format.h: a list of their arguments."""
    text = ""
    for line in HEADER[HEADER.index("#define " + macro):].split("\n"):
        text += line.rstrip("\\") + "\n"
        if not line.endswith("\\"):
            break
    return [[a.strip().strip('"') for a in row.split(",", 3)] for row in re.findall(r'X\(([A-Z].*?")\)', text, re.S)]


CORE_ROWS = [(r[1], 1 if r[2] == "CTR_PROBE" else 2) for r in rows("CTR_CORE_ROWS(X)")]
OUTCOMES = [r[0] for r in rows("CTR_OUTCOMES(X)")]
MAX_ROWS = int(re.search(r"CTR_MAX_ROWS\s+(\d+)", HEADER).group(1))


def _table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    return table


CRC = _table()


def crc32c(data: bytes) -> int:
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def mix64(x: int) -> int:
    for _ in range(2):
        x ^= x >> 32
        x = x * 0xd6e8feb86659fd93 & U64
    return x ^ x >> 32


def record(kind: int, *values, tail: bytes = b"") -> bytes:
    body = struct.pack(FORMAT[kind], *[v.encode() if isinstance(v, str) else v for v in values]) + tail
    body += bytes(-len(body) % 8)
    return struct.pack("<HHI", kind, 0, len(body) + 8) + body


def number(*parts) -> int:
    return int.from_bytes(hashlib.sha256("|".join(map(str, parts)).encode()).digest()[:8], "little")


def plane_print(content, tensor: str, layer: int) -> list:
    """What the kernel would say of one plane: absmax, l2, nan, inf, hash, samples."""
    if content is None:
        return [0.0, 0.0, 0, 0, number("zero", tensor, layer), 0, 0, 0, 0]
    seed = number(content, tensor, layer)
    bad = 1 if str(content).startswith("nan") else 0
    return [1 + seed % 97 / 7, 10 + seed % 89 / 3, bad, 0, seed, *(number(seed, i) & 0xffff for i in range(4))]


class Pool:
    def __init__(self, index, name, planes, slots, first=0):
        self.index, self.name, self.planes, self.slots, self.first = index, name, planes, slots, first
        self.memory = {}  # slot -> list of contents, one a plane
        self.fix = lambda prints: prints

    def prints(self, slot):
        held = self.memory.get(slot, [None] * len(self.planes))
        return [plane_print(c, p[0], p[1]) for c, p in zip(held, self.planes)]

    def write(self, slot, content, tensor=None):
        """The whole slot, or only the planes of one tensor, now hold this."""
        held = self.memory.setdefault(slot, [None] * len(self.planes))
        for i, p in enumerate(self.planes):
            if tensor in (None, p[0]):
                held[i] = content

    def rollup(self, prints):
        total = 0x736c6f7470726f62
        for i in sorted(range(len(self.planes)), key=lambda k: (self.planes[k][1], self.planes[k][0])):
            total = mix64((total * 0x9e3779b97f4a7c15 + prints[i][4]) & U64)
        return total


PLANES = [(t, layer, 3 if t == "conv" else 1, 64 if t == "conv" else 256) for layer in range(3) for t in ("conv", "ssm")]


class Process:
    def __init__(self, pid=4194301, starttime=7, host="elsewhere", ranks=(("tp", 0, 1),), driver=13000):
        self.pid, self.starttime, self.host, self.ranks = pid, starttime, host, ranks
        self.records, self.pools, self.ids, self.now = [], [], 0, 1000
        self.launches = self.pool_launches = self.steps = 0
        self.watch = []
        self.callsite = 0
        self.count = {name: {} for name, _ in CORE_ROWS}
        self.points = {}  # an adapter's own probes
        self.in_flight = {}
        self.state, self.end, self.page, self.log = 4, True, True, True
        self.chunk = 40  # records in a chunk
        self.recorded = 5  # started_real_ns: tells two recordings apart
        self.late = []  # fingerprints that have not come yet
        self.hold = False
        self.put(PROCESS, pid, 1, starttime, self.tick(), 2000, 0, 0, "0.1.0", "toy", host)
        self.put(DEVICE, 1, 0, driver, 1 << 37, 132, 90, bytes(16), "NVIDIA H200")
        for axis, index, count in ranks:
            self.put(RANK, index, count, axis)

    def tick(self):
        self.now += 10
        return self.now

    def put(self, kind, *values, tail=b""):
        self.records.append(record(kind, *values, tail=tail))

    def counted(self, row, outcome="COMMITTED", n=1):
        self.count[row][outcome] = self.count[row].get(outcome, 0) + n

    def pool(self, name="mamba", planes=PLANES, slots=16, first=0) -> Pool:
        pool = Pool(len(self.pools), name, planes, slots, first)
        self.pools.append(pool)
        width = [8, 4, 2, 2, 1, 1, 1, 4, 1]
        sizes = [p[3] * width[p[2]] for p in planes]
        self.put(POOL, self.tick(), pool.index, 0, first, slots, len(planes), 0, sum(sizes), self.launches, self.pool_launches, name)
        for i, (tensor, layer, dtype, elems) in enumerate(planes):
            self.put(PLANE, pool.index, i, layer, dtype, 0x7f0000000000 + i * 65536, sizes[i], elems, sizes[i], tensor)
        return pool

    def launch(self, n=1, touching=True):
        self.launches += n
        self.pool_launches += n if touching else 0
        self.counted("core.graph_launch", n=n)

    def step(self, batch=1, padded=1, mode=2, name="decode"):
        self.steps += 1
        self.put(STEP, self.tick(), self.steps, 0, batch, padded, mode, 0, name)
        self.counted("core.step")

    def fingerprint(self, event, pool, slot, role, outcome=0):
        prints = pool.fix(pool.prints(slot)) if outcome == 0 else []
        total = len(prints)
        out = []
        for first in range(0, max(total, 1), PLANES_IN_PART):
            part = prints[first:first + PLANES_IN_PART]
            tail = b"".join(struct.pack(PRINT, *p) for p in part)
            out.append(record(FINGERPRINT, event, self.tick(), slot, pool.index, role, outcome, first, len(part), total,
                              pool.rollup(prints) if prints else 0, tail=tail))
        (self.late if self.hold else self.records).extend(out)

    def flush_late(self):
        """Fingerprints that were held back come now, the last first."""
        self.records += self.late[::-1]
        self.late = []

    def event(self, kind, pool, slot, length=0, key=0, key_len=-1, src=-1, outcome="COMMITTED", device_slot=False, prints=True,
              lose_print=False):
        self.ids += 1
        name = {DONATE: "donate", RESTORE: "restore", ALLOC: "alloc", CLEAR: "clear", COPY: "copy", DISCARD: "discard",
                FREE: "free"}[kind]
        self.counted("core." + name, outcome)
        has = prints and kind not in (DISCARD, FREE) and outcome in ("COMMITTED", "ERROR_SLOT", "FILTERED_PADDING")
        said = 0 if has else OUTCOMES.index(outcome)
        self.put(EVENT, self.ids, self.tick(), kind, pool.index, NO_SLOT if device_slot else slot, 0x7e00 if device_slot else 0, length,
                 key_len, key, src, 0x51, 1, self.steps, self.launches, self.pool_launches, said, int(has), self.callsite, 77)
        if has and not lose_print:
            self.fingerprint(self.ids, pool, slot, SUBJECT, OUTCOMES.index(outcome))
            if kind == DONATE and outcome == "COMMITTED":
                for watched in self.watch:
                    self.counted("core.watch")
                    self.fingerprint(self.ids, pool, watched, WATCHED)
            if kind == COPY:
                self.fingerprint(self.ids, pool, src, SOURCE)
        return self.ids

    def donate(self, pool, slot, length, key=0, **more):
        return self.event(DONATE, pool, slot, length, key, **more)

    def restore(self, pool, slot, length, key=0, **more):
        return self.event(RESTORE, pool, slot, length, key, **more)

    # ---- files ----

    def name(self):
        return f"{self.host}.{self.pid}.{self.starttime}"

    def chunks(self, records):
        out, seq, first = [], 0, 0
        while first < len(records):
            some = records[first:first + self.chunk]
            raw = b"".join(some)
            while len(raw) > 65536:
                some = some[:-1]
                raw = b"".join(some)
            head = [0x4b4e4843, 0, seq, first, len(some), len(raw), len(raw), 0, crc32c(raw), 0]
            head[1] = crc32c(struct.pack(CHUNK_HEADER, *head))
            out.append(struct.pack(CHUNK_HEADER, *head) + raw)
            seq, first = seq + 1, first + len(some)
        return out

    def log_bytes(self):
        records = list(self.records)
        if self.end:
            records.append(record(END, self.now + 1, 3000, len(records)))
        head = [b"SLPRLOG\n", 2, 0x01020304, struct.calcsize(FILE_HEADER), 0, self.pid, self.starttime, 0, 0, 0, 0]
        head[4] = crc32c(struct.pack(FILE_HEADER, *head))
        return struct.pack(FILE_HEADER, *head) + b"".join(self.chunks(records))

    def page_bytes(self):
        rank = ".".join(f"{a}{i}" for a, i, _ in self.ranks)
        plain = {"pool_graph_launches": self.pool_launches}
        out = []
        for name, kind in CORE_ROWS + [(n, 1) for n in self.points]:
            counts = self.points[name] if name in self.points else self.count[name]
            outcome = [0] * 24
            for label, n in counts.items():
                outcome[OUTCOMES.index(label)] = n
            flight = self.in_flight.get(name, 0)
            if kind == 2 and name in plain:
                outcome[0] += plain[name]
            begun = (sum(outcome) + flight) << 20 | flight if kind == 1 else 0
            out.append(struct.pack(ROW, name.encode(), kind, 0, begun, *outcome))
        n = len(out)
        out += [bytes(struct.calcsize(ROW))] * (MAX_ROWS - n)
        written = len(self.records) + int(self.end)
        size = struct.calcsize(PAGE_HEAD) + MAX_ROWS * struct.calcsize(ROW)
        head = [b"SLPRCTR\n", 2, 0x01020304, size, struct.calcsize(PAGE_HEAD), struct.calcsize(ROW), MAX_ROWS, self.pid, self.starttime,
                self.recorded, b"toy", self.host.encode(), b"CUDA 13.0, NVIDIA H200", rank.encode(), 0, n, self.state, 1, 0, 1, 9,
                1000, 1, written, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, b"", 0, 0, 0, 0]
        packed = struct.pack(PAGE_HEAD, *head)
        head[14] = crc32c(packed[:struct.calcsize("<8sIIIIIIQQQ")])
        return struct.pack(PAGE_HEAD, *head) + b"".join(out)


class Run:
    def __init__(self, arm="graph-on", *processes):
        self.arm, self.processes = arm, list(processes)
        self.manifest = {}  # fields that shall read otherwise

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        folder.mkdir(mode=0o700)
        manifest = {"schema_version": 1, "tool_version": "0.1.0", "arm": self.arm, "argv": ["toy"], "cwd": "/", "host": "elsewhere",
                    "started": "2026-01-01T00:00:00Z", "ended": "2026-01-01T00:01:00Z", "exit": 0, "adapters": [], "options": {},
                    "env": {}}
        (folder / "run.json").write_text(json.dumps(manifest | self.manifest))
        for p in self.processes:
            if p.log:
                (folder / (p.name() + ".log")).write_bytes(p.log_bytes())
            if p.page:
                (folder / (p.name() + ".ctr")).write_bytes(p.page_bytes())
        return folder

    def copy(self):
        return copy.deepcopy(self)
