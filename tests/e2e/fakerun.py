# SPDX-License-Identifier: Apache-2.0
"""Makes RUN directories by hand, so that every field of a run can be what it should not be."""
import ctypes
import json
import os
import pathlib
import struct

U32, U64 = ctypes.c_uint32, ctypes.c_uint64
MAX_ROWS, OUTCOMES, FLIGHT_BITS = 240, 22, 20
CORE_ROWS = ["core.graph_launch", "core.donate", "core.restore", "core.alloc", "core.clear", "core.copy", "core.discard", "core.free",
             "core.step", "core.watch", "core.graph_instantiate", "core.graph_update", "pool_graph_launches",
             "runtime_graph_launches", "runtime_without_driver", "unrouted_entries", "graphs_unreadable", "metadata_lost",
             "launch_records_lost", "callsites_lost", "write_errors", "internal_errors", "bypassed_objects"]
STARTING, RUNNING, DISK_STOP, WRITE_ERROR, ENDED = range(5)


class Row(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 48), ("kind", U32), ("reserved", U32), ("begun", U64), ("outcome", U64 * OUTCOMES),
                ("own_begun", U64), ("own_committed", U64)]


class Page(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_char * 8), ("version", U32), ("byte_order", U32), ("page_bytes", U32), ("row_offset", U32),
                ("row_bytes", U32), ("max_rows", U32), ("pid", U64), ("starttime", U64), ("started_real_ns", U64),
                ("comm", ctypes.c_char * 16), ("host", ctypes.c_char * 64), ("driver", ctypes.c_char * 64),
                ("rank", ctypes.c_char * 64), ("crc", U32), ("n_rows", U32), ("state", U32), ("recording", U32), ("level", U32),
                ("driver_seen", U32), ("heartbeat_ns", U64), ("bytes_written", U64), ("chunks_written", U64),
                ("records_written", U64), ("disk_stop_real_ns", U64), ("flush_done", U64), ("label_done", U64),
                ("reserved_shim", U64 * 4), ("ctl_recording", U32), ("ctl_level", U32), ("ctl_flush", U64),
                ("ctl_label_seq", U64), ("ctl_label", ctypes.c_char * 64), ("reserved_ctl", U64 * 4), ("row", Row * MAX_ROWS)]


def crc32c(data: bytes) -> int:
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def starttime(pid: int) -> int:
    """Field 22 of /proc/PID/stat."""
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def seal(page: Page) -> Page:
    """Puts the checksum right."""
    page.crc = crc32c(bytes(page)[:Page.comm.offset])
    return page


def page(pid: int = 4194300, start: int = 7, host: str = "elsewhere", state: int = ENDED, **fields) -> Page:
    """A sound page in which nothing was counted."""
    p = Page(magic=b"SLPRCTR\n", version=2, byte_order=0x01020304, page_bytes=ctypes.sizeof(Page), row_offset=Page.row.offset,
             row_bytes=ctypes.sizeof(Row), max_rows=MAX_ROWS, pid=pid, starttime=start, comm=b"toy", host=host.encode(),
             state=state, recording=1, n_rows=len(CORE_ROWS))
    for i, name in enumerate(CORE_ROWS):
        p.row[i].name = name.encode()
        p.row[i].kind = 1 if "." in name else 2
    for name, value in fields.items():
        setattr(p, name, value)
    return seal(p)


def count(p: Page, name: str, attempted: int, in_flight: int = 0, **outcomes: int) -> Page:
    """Counts of one row; outcomes by o0, o1, ..."""
    row = next(r for r in p.row if r.name == name.encode())
    row.begun = attempted << FLIGHT_BITS | in_flight
    for key, value in outcomes.items():
        row.outcome[int(key[1:])] = value
    return p


def record(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<HHI", kind, 0, 8 + len(body)) + body


STEP, END = 9, 22


def step(number: int) -> bytes:
    return record(STEP, struct.pack("<QQQiiII64s", 1, number, 5, 1, 1, 1, 0, b"decode"))


def end(records: int) -> bytes:
    return record(END, struct.pack("<QQQ", 1, 1, records))


def chunk(seq: int, first: int, records: list) -> bytes:
    raw = b"".join(records)
    fields = [0x4b4e4843, 0, seq, first, len(records), len(raw), len(raw), 0, crc32c(raw), 0]
    fields[1] = crc32c(struct.pack("<IIQQIIIIII", *fields))
    return struct.pack("<IIQQIIIIII", *fields) + raw


def log(pid: int = 4194300, start: int = 7, chunks: bytes = b"") -> bytes:
    """A sound log: the file header and what follows."""
    def head(crc):
        return struct.pack("<8sIIIIQQ4Q", b"SLPRLOG\n", 2, 0x01020304, 72, crc, pid, start, 0, 0, 0, 0)
    return head(crc32c(head(0))) + chunks


MANIFEST = {"schema_version": 1, "tool_version": "0", "arm": "graph-on", "argv": ["x"], "cwd": "/", "host": "elsewhere",
            "started": "2024-01-01T00:00:00.000Z", "ended": "2024-01-01T00:00:01.000Z", "exit": 0, "adapters": [], "options": {},
            "env": {}}


def make(folder: pathlib.Path, manifest=MANIFEST, p: Page = None, log_bytes: bytes = None) -> pathlib.Path:
    """A RUN with one process, whose files carry the page's identity."""
    folder.mkdir(mode=0o700)
    if manifest is not None:
        (folder / "run.json").write_bytes(manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode())
    if p is not None:
        stem = f"{p.host.decode()}.{p.pid}.{p.starttime}"
        (folder / (stem + ".ctr")).write_bytes(bytes(p))
        (folder / (stem + ".log")).write_bytes(log(p.pid, p.starttime) if log_bytes is None else log_bytes)
    return folder


def live_page(**fields) -> Page:
    """A page of this very process, which is alive."""
    return page(os.getpid(), starttime(os.getpid()), os.uname().nodename, RUNNING, **fields)
