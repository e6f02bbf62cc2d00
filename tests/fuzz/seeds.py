#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first inputs of the fuzz targets: small runs of every kind of record and verdict, made by loggen. tests/fuzz/fuzz.py grows
the corpus from them."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import loggen  # noqa: E402
from loggen import Process  # noqa: E402

MANIFEST, PAGE, LOG = range(3)
PLANES = loggen.PLANES[:2]


def serve(wrong=None, requests=3, device_slots=False, **process):
    """A short life: slots are allocated, written, donated, restored, copied, freed. `wrong` spoils one thing."""
    p = Process(**process)
    pool = p.pool(planes=PLANES, slots=8)
    p.watch = [0] if wrong == "watch" else []
    for i in range(requests):
        slot, key, length = 1 + i % 3, 0x1000 + i % 2, 16 * (1 + i % 2)
        p.step(batch=2, padded=4 if i % 2 else 2)
        p.event(loggen.ALLOC, pool, slot)
        p.launch()
        if not (wrong == "zero" and i == 2):
            pool.write(slot, f"{key}/{length}" + ("x" if wrong == "other" and i == 2 else ""))
        if wrong == "nan" and i == 1:
            pool.write(slot, "nan", "ssm")
        p.donate(pool, slot, length, key, key_len=length + (wrong == "length" and i == 1), device_slot=device_slots)
        if i:
            p.restore(pool, slot, length, key)
            pool.write(5, f"{key}/{length}")
            p.event(loggen.COPY, pool, 5, length, key, src=slot)
        if i % 2:
            p.event(loggen.DISCARD, pool, slot, src=2)
            p.event(loggen.FREE, pool, slot)
    return p


def every_record() -> Process:
    """One of each type that serve() does not write."""
    p = serve(requests=1)
    p.put(loggen.GRAPH, 5, 1, 0x7f00, 9, 6, 2, 1, 0, 2)
    p.put(loggen.GRAPH_TOUCH, 1, 3, 0, 0, 0, 2, 0, 0x7f0000000000, 64, 0, 0, "kernel<float>")
    p.put(loggen.GRAPH_TOUCH, 1, 4, 1, 1, 1, 0, 0, 0x7e0000000000, 8, 0, 0, "memcpy")
    p.put(loggen.GRAPH_DESTROY, 6, 1)
    p.put(loggen.REGION, 7, 1, 7, 0x7e0000000000, 256, "indices")
    p.put(loggen.REGION_VALUES, 1, 1, 3, tail=struct.pack("<3q", 1, 2, -1))
    p.put(loggen.KEY_TEXT, 0x1000, 5, 0, "hello")
    p.put(loggen.LAUNCH, 8, 1, 1, 0, 1, 77, 0)
    p.put(loggen.MODULE, 1, 8, 0x400000, tail=b"/bin/toy")
    p.put(loggen.CALLSITE, 1, 2, 6, 0, tail=struct.pack("<QIIQII", 16, 1, 4, 32, 0, 2) + b"mainfo")
    p.put(loggen.CONTROL, 9, 3, 1, "label")
    p.put(loggen.DISK_STOP, 10, 5, 6, 1, 28)
    p.put(loggen.UNROUTED, 11, 12000, 0, 1, "cuGraphLaunch")
    p.put(loggen.POOL_REMOVE, 12, 0, 2)
    return p


def manifest(arm: str, **more) -> bytes:
    return json.dumps({"schema_version": 1, "tool_version": "0.1.0", "arm": arm, "argv": ["toy"], "cwd": "/", "host": "elsewhere",
                       "started": "2026-01-01T00:00:00Z", "ended": None, "exit": 0, "adapters": [], "options": {}, "env": {},
                       **more}).encode()


def page(p: Process) -> bytes:
    return p.page_bytes().rstrip(b"\0")


def part(kind: int, run: int, process: int, data: bytes) -> bytes:
    return struct.pack("<BBBBI", kind, run, process, kind == PAGE, len(data)) + data


def packed(a: list, b: list, arms=("graph-on", "graph-off", "padded-eager"), third=()) -> bytes:
    """Runs as one input; without parts of its own a later one is the first's twin."""
    out = b""
    for run, processes in enumerate((a, b, third)):
        if processes:
            out += part(MANIFEST, run, 0, manifest(arms[run]))
        for i, p in enumerate(processes):
            out += part(PAGE, run, i, page(p)) + part(LOG, run, i, p.log_bytes())
    return out


def pairs() -> dict:
    off = {"starttime": 7}
    seeds = {"equal": packed([serve()], [serve(**off)]), "twin": packed([serve()], []), "aa": packed([serve()], [serve()], ("x", "x")),
             "every": packed([every_record()], [serve()]), "device": packed([serve(device_slots=True)], [serve()])}
    for wrong in ("zero", "other", "nan", "length", "watch"):
        seeds[wrong] = packed([serve(wrong)], [serve()])
    seeds["third"] = packed([serve("other")], [serve()], third=[serve()])
    seeds["noise"] = packed([serve("other")], [serve()], ("graph-on", "graph-off", "graph-off"), [serve("zero")])
    two = [serve(ranks=(("tp", 0, 2),)), serve(pid=4194302, ranks=(("tp", 1, 2),))]
    seeds["ranks"] = packed(two, two)
    late = Process()
    late.hold = True
    pool = late.pool(planes=PLANES, slots=4)
    late.records, kept = late.records[:3], late.records[3:]
    late.donate(pool, 1, 16, 1)
    late.flush_late()
    late.records += kept
    seeds["overtaken"] = packed([late], [serve()])
    small = serve()
    small.chunk, small.end, small.state = 3, False, 1
    seeds["killed"] = packed([small], [serve()])
    for name, log in over_the_bounds().items():
        seeds[name] = part(MANIFEST, 0, 0, manifest("graph-on")) + part(PAGE, 0, 0, page(serve(requests=1))) + part(LOG, 0, 0, log)
    return seeds


def sealed(head: list, body: bytes) -> bytes:
    head[1] = 0
    head[1] = loggen.crc32c(struct.pack(loggen.CHUNK_HEADER, *head))
    return struct.pack(loggen.CHUNK_HEADER, *head) + body


def lz4_repeated(unit: bytes, times: int) -> bytes:
    """An LZ4 block that decodes to `unit` so many times: its literals once, one long match, and the five literals that must end it."""
    def length(n):
        return b"\xff" * ((n - 15) // 255) + bytes([(n - 15) % 255])
    match = len(unit) * (times - 1) - 5
    return (b"\xff" + length(len(unit)) + unit + struct.pack("<H", len(unit)) + length(match - 4) + b"\x50" + unit[-5:])


def over_the_bounds() -> dict:
    """Logs under right checksums, each with one number past what a buffer of the reader holds."""
    head = serve().log_bytes()[:72]
    block = lz4_repeated(loggen.record(loggen.STEP, 1, 1, 5, 1, 1, 1, 0, "decode"), 800)
    raw = 800 * 112
    frames = serve(requests=1)
    frames.put(loggen.CALLSITE, 1, 25, 0, 0, tail=struct.pack("<QII", 16, 0, 0) * 25)
    names = serve(requests=1)
    names.put(loggen.CALLSITE, 1, 2, 6, 0, tail=struct.pack("<QIIQII", 16, 0, 4, 32, 0, 30000) + b"mainfo")
    planes = serve(requests=1)
    planes.put(loggen.PLANE, 0, 65535, 0, 1, 0, 1, 1, 1, "t")
    long = serve(requests=1)
    long.put(loggen.MODULE, 1, 60000, 0x400000, tail=b"/bin/toy")
    return {"raw": head + sealed([0x4b4e4843, 0, 0, 0, 800, raw, len(block), 1, loggen.crc32c(block), 0], block),
            "frames": frames.log_bytes(), "names": names.log_bytes(), "planes": planes.log_bytes(), "long": long.log_bytes()}


def points() -> dict:
    return {"good": b"# probes\nsrv.donate\n  srv.restore  # why\n\n", "bad": b"nodot\n", "long": b"a." + b"x" * 60 + b"\n", "none": b"#\n"}


def manifests() -> dict:
    return {"good": manifest("graph-on"), "rich": manifest("x", adapters=[{"name": "srv", "points": ["srv.donate"]}, "bare"],
                                                           options={"level": 1}, env={"PATH": "/bin"}),
            "version": b'{"schema_version": 2}', "list": b"[]", "kind": manifest("x", argv={}), "deep": b"[" * 3000}


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    logs = {"every": every_record().log_bytes(), "serve": serve().log_bytes(), "empty": serve().log_bytes()[:72], **over_the_bounds()}
    pages = {"good": b"\1" + page(serve()), "cut": b"\0" + page(serve())}
    for target, seeds in {"run": pairs(), "log": logs, "page": pages, "manifest": manifests(), "points": points()}.items():
        (out / target).mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (out / target / name).write_bytes(data)


if __name__ == "__main__":
    main()
