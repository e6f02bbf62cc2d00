# SPDX-License-Identifier: Apache-2.0
"""Donations, restores, slot events, steps and the rest arrive as they were said; what a framework holds is used and never read."""
POOL = """
import struct
a = device.alloc(4096)
pool = slotprobe.pool("pool", {"t": Torch(a, (2, 4, 8))})
stream = device.stream()
def id_at(slot, dtype="int64", kind=Torch):
    at = device.alloc(8)
    device.write(at, slot.to_bytes(8, "little", signed=True) if dtype == "int64" else struct.pack("<ii", slot, 7))  # 7: not to be read
    return kind(at, (1,), dtype)
"""


def test_claims_arrive(lab):
    """Lengths, keys, slots, streams, order."""
    run, said = lab.record(POOL + """
said["stream"] = stream
said["donate"] = slotprobe.donate(pool, 3, 17, 0xabc, 16, stream)
said["restore"] = slotprobe.restore(pool, slot=2, claimed_len=5, key=-1, key_len=4, stream=stream)
said["slot"] = [slotprobe.slot(slotprobe.ALLOC, pool, 1, stream=stream), slotprobe.slot(slotprobe.CLEAR, pool, 1, stream=stream),
                slotprobe.slot(slotprobe.COPY, pool, 1, 3, stream), slotprobe.slot(slotprobe.DISCARD, pool, 3, said["donate"], stream),
                slotprobe.slot(slotprobe.FREE, pool, 1, stream=stream)]
""")
    assert said["donate"] == 1 and said["restore"] == 0 and said["slot"] == [0] * 5
    events = lab.exported(run, "event")
    assert [e["kind"] for e in events] == ["donate", "restore", "alloc", "clear", "copy", "discard", "free"]
    assert [e["slot"] for e in events] == [3, 2, 1, 1, 1, 3, 1]
    assert [(e["claimed_len"], e["key_len"], int(e["key"], 16)) for e in events[:2]] == [(17, 16, 0xabc), (5, 4, 2**64 - 1)]
    assert events[4]["src"] == 3 and events[5]["src"] == said["donate"]
    assert {int(e["stream"], 16) for e in events} == {said["stream"]} and {e["outcome"] for e in events} == {"committed"}
    assert len(lab.prints(run)) == 5


def test_keys(lab):
    """Equal keys are equal, others are not, of any kind; no key is no key."""
    run, said = lab.record(POOL + """
class Whole:
    def __index__(self):
        return 2**64
keys = ["prefix", b"prefix", "pr\\u00e4fix", b"a\\0b", b"a\\0c", bytearray(b"a\\0b"), "x" * (1 << 20) + "a", "x" * (1 << 20) + "b", 2**64 + 5, 5,
        -7, 0, "", b"", True, 2**64, "\\ud800", Whole()]
said["d"] = [slotprobe.donate(pool, 1, 1, key, stream=stream) for key in keys]
""")
    key = [int(e["key"], 16) for e in lab.exported(run, "event")]
    assert len(key) == 18 and min(said["d"]) > 0
    assert key[0] == key[1] and key[3] == key[5] and key[8] == key[9] == 5
    assert key[10] == 2**64 - 7 and key[11:15] == [0, 0, 0, 1] and key[15]
    assert len(set(key[1:5] + key[6:9])) == 7 and all(key[:11]) and key[16] and key[17]


def test_keys_are_kept(lab):
    """A str is hashed by the library, and kept where the run keeps keys."""
    run, _ = lab.record(POOL + 'slotprobe.donate(pool, 1, 1, "a prefix", stream=stream)', "--keep-keys")
    (text,), (event,) = lab.exported(run, "key_text"), lab.exported(run, "event")
    assert text["text"] == "a prefix" and text["key"] == event["key"]


def test_slot_ids_on_the_device(lab):
    """int32 and int64, of both kinds of tensors: read by the kernel, never on the host (the fakes would fail)."""
    run, said = lab.record(POOL + """
device.write(a + 3 * 32, struct.pack("<f", 6.5))  # slot 3, layer 0
said["d"] = [slotprobe.donate(pool, id_at(3), 1, stream=stream), slotprobe.donate(pool, id_at(3, "int32"), 2, stream=stream),
             slotprobe.donate(pool, id_at(3, "int64", Interface), 3, stream=stream), slotprobe.donate(pool, id_at(1), 4, stream=stream),
             slotprobe.donate(pool, id_at(-1), 5, stream=stream)]
host = __import__("array").array("q", [2])
said["d"].append(slotprobe.donate(pool, Torch(host.buffer_info()[0], (1,), "int64", device="cpu"), 6, stream=stream))
said["e"] = slotprobe.restore(pool, id_at(3), 1, stream=stream), slotprobe.slot(slotprobe.FREE, pool, id_at(3), stream=stream)
""")
    prints = lab.prints(run)
    assert all(d > 0 for d in said["d"]) and said["e"] == [0, 0]
    assert [prints[d]["slot"] for d in said["d"][:4]] == [3, 3, 3, 1] and prints[said["d"][5]]["slot"] == 2
    assert [prints[d]["planes"][0]["absmax"] for d in said["d"][:4]] == [6.5, 6.5, 6.5, 0]
    assert lab.probes(run)["core.donate"]["filtered"] == 1


def test_the_source_of_a_copy_on_the_device(lab):
    """Is read by the kernel, like the slot."""
    run, said = lab.record(POOL + """
device.write(a + 3 * 32, struct.pack("<f", 6.5))  # slot 3, layer 0
said["r"] = [slotprobe.slot(slotprobe.COPY, pool, id_at(1), id_at(3), stream), slotprobe.slot(slotprobe.COPY, pool, 1, id_at(2, "int32"), stream)]
""")
    assert said["r"] == [0, 0]
    sources = [r for r in lab.exported(run, "fingerprint") if r["role"] == "source"]
    assert [(r["slot"], r["planes"][0]["absmax"]) for r in sources] == [(3, 6.5), (2, 0)]
    assert all(e["src"] is None for e in lab.exported(run, "event"))


def test_slots_of_a_tensor(lab):
    """One event each, as if each had been said alone: of device and host tensors, lists, with strides, with sources; and what is refused."""
    run, said = lab.record(POOL + """
at = device.alloc(64)
device.write(at, struct.pack("<8q", 0, 1, 2, 3, 2, 1, 0, 3))
ids, some, narrow = Torch(at, (4,), "int64"), Torch(at, (4,), "int64", strides=(2,)), Torch(device.alloc(64), (2,), "int32")
device.write(narrow.address, struct.pack("<2i", 3, 1))
class Cuda(Torch):
    is_cuda = True
    def dim(self):
        return len(self.shape)
    def stride(self, axis=None):
        return self.strides if axis is None else self.strides[axis]
fast = Cuda(at, (4,), "int64", strides=(2,))
S = slotprobe
said["refused"] = [S.slots(S.ALLOC, pool, ids, stream=stream), S.slots(S.CLEAR, pool, some, stream=stream), S.slots(S.ALLOC, pool, fast, stream=stream),
                   S.slots(S.ALLOC, pool, narrow, stream=stream), S.slots(S.FREE, pool, [2, 3], stream=stream),
                   S.slots(S.COPY, pool, [0, 1], [2, 3], stream), S.slots(S.COPY, pool, [0, 1], narrow, stream), S.slots(S.ALLOC, pool, [], stream=stream)]
said["lost"] = [S.slots(S.COPY, pool, [1, 2, 3], [2**70, 2, 3], stream)]
said["bad"] = [S.slots(S.ALLOC, pool, [0, 99, 2**70], stream=stream), S.slots(9, pool, [1], stream=stream), S.slots(2**32 + 1, pool, [1], stream=stream), S.slots(S.ALLOC, 77, [1, 1], stream=stream)]
def raises(*args, **kwargs):
    try:
        S.slots(*args, **kwargs)
    except (TypeError, ValueError) as e:
        return type(e).__name__
said["raises"] = [raises(S.COPY, pool, [0, 1], [1], stream), raises(S.ALLOC, pool, Torch(at, (2, 2), "int64")), raises(S.ALLOC, pool, 5),
                  raises(S.ALLOC, pool, Torch(at, (4,), "float32")), raises(S.ALLOC, pool, ["x"]), raises(S.ALLOC, pool, [1], stream=1.5)]
""")
    assert said["lost"] == [1]
    assert said["refused"] == [0] * 8 and said["bad"] == [2, 1, 1, 2], "what is good of a batch is taken"
    assert said["raises"] == ["ValueError", "ValueError", "TypeError", "TypeError", "TypeError", "TypeError"]
    prints = {r["event"]: r["slot"] for r in lab.exported(run, "fingerprint") if r["role"] == "subject"}
    sources = {r["event"]: r["slot"] for r in lab.exported(run, "fingerprint") if r["role"] == "source"}
    events = [e for e in lab.exported(run, "event") if e["outcome"] == "committed"]
    assert (events[-1]["kind"], prints[events.pop()["id"]]) == ("alloc", 0)
    measured = [(e["kind"], prints[e["id"]]) for e in events if e["id"] in prints]
    assert measured == [*[("alloc", i) for i in (0, 1, 2, 3)], *[("clear", i) for i in (0, 2, 2, 0)], *[("alloc", i) for i in (0, 2, 2, 0)],
                        ("alloc", 3), ("alloc", 1), *[("copy", 0), ("copy", 1)] * 2, ("copy", 2), ("copy", 3)]
    assert [sources[e["id"]] for e in events if e["kind"] == "copy"] == [2, 3, 3, 1, 2, 3]
    assert [e["slot"] for e in events if e["kind"] == "free"] == [2, 3] and len({e["stream"] for e in events}) == 1


def test_slots_of_whatever_holds_them(lab):
    """Ids on the host; sources at strides of their own; tensors of another stream, which the allocator hears of if they are its own; and tensors
    that hold more slots than one, or more sources than slots."""
    run, said = lab.record(POOL + """
import types
N, S = types.SimpleNamespace, slotprobe
at = device.alloc(64)
device.write(at, struct.pack("<8q", 0, 1, 2, 3, 2, 1, 0, 3))
class Host(Torch):
    def tolist(self):
        return [2, 3]
class Cuda(Torch):
    is_cuda = True
class Foreign(Torch):
    def record_stream(self, stream):
        raise RuntimeError("not allocated here")
here, there = N(cuda_stream=stream), N(cuda_stream=device.stream())
sys.modules["torch"] = N(cuda=N(is_initialized=lambda: True, current_stream=lambda device: here, current_device=lambda: 0))
ids, srcs = Torch(at, (2,), "int64"), Torch(at + 8, (2,), "int64", strides=(2,))
said["refused"] = [S.slots(S.FREE, pool, Host(4096, (2,), "int64", device="cpu")), S.slots(S.COPY, pool, ids, srcs, there),
                   S.slot(S.FREE, pool, Foreign(at, (1,), "int64"), stream=there)]
said["held"] = [one.recorded == [there] for one in (ids, srcs)]
def raises(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except (TypeError, ValueError) as e:
        return type(e).__name__
said["raises"] = [raises(S.slots, S.COPY, pool, [0], [1, 2], stream), raises(S.donate, pool, Cuda(at, (2,), "int64"), 1, stream=stream)]
""")
    assert said["refused"] == [0] * 3 and said["held"] == [True] * 2 and said["raises"] == ["ValueError"] * 2
    events = [(e["kind"], e["slot"]) for e in lab.exported(run, "event")]
    assert events == [("free", 2), ("free", 3), ("copy", None), ("copy", None), ("free", None)]
    assert [r["slot"] for r in lab.exported(run, "fingerprint") if r["role"] == "source"] == [1, 3]


def test_wrong_arguments(lab):
    """TypeError and ValueError for the wrong kind; a negative errno, counted, for values that make no sense."""
    run, said = lab.record(POOL + """
def refused(call, *args, **more):
    try:
        return call(*args, **more)
    except (TypeError, ValueError) as e:
        return f"{type(e).__name__}: {e}"
class Broken(Torch):
    def data_ptr(self):
        raise RuntimeError("no storage")
d = slotprobe.donate
said["kind"] = [refused(d, pool, "1", 1), refused(d, pool, 1.0, 1), refused(d, pool, None, 1), refused(d, pool, id_at(1, "int32"), id_at(5)),
                refused(d, None, 1, 1), refused(d, pool, 1, 1, 1.5), refused(d, pool, 1, 1, stream="s"),
                refused(d, pool, Torch(a, (1,), "float32"), 1), refused(d, pool, Torch(a, (2,), "int64"), 1), refused(d, pool, Interface(a, (2,), "int64"), 1),
                refused(d, pool, Broken(a, (1,), "int64"), 1), refused(d, pool, 1, 1, id_at(1)),
                refused(slotprobe.slot, slotprobe.DISCARD, pool, 1, id_at(1)), refused(slotprobe.slot, "x", pool, 1), refused(slotprobe.step, 5, 1),
                refused(slotprobe.step, "n", "v"), refused(slotprobe.step, "n", id_at(1)), refused(slotprobe.rank, 1, 0, 1),
                refused(slotprobe.region, "r", 5), refused(slotprobe.region, "r", Torch(a, (4,), "int64", strides=(2,))), refused(slotprobe.point, 7),
                refused(slotprobe.hit, "x"), refused(slotprobe.tap, "t", 5), refused(slotprobe.pool_remove, "x"), refused(d, pool, 1, 1, stream=1.5)]
said["value"] = [d(pool, 4, 1), d(pool, 2**70, 1), d(77, 1, 1), d(-22, 1, 1), d(2**40, 1, 1), d(pool, 1, 2**63), d(pool, 1, 1, stream=-5),
                 d(pool, 1, 1, key_len=2**80), slotprobe.slot(9, pool, 1), slotprobe.slot(-1, pool, 1), slotprobe.slot(2**32 + 1, pool, 1),
                 slotprobe.slot(slotprobe.COPY, pool, 1, 2**70),
                 slotprobe.step("n", 1, mode=77), slotprobe.step("n", 1, batch=2**40), slotprobe.rank("tp", 2, 2), slotprobe.rank("tp", 0, 2**40),
                 slotprobe.rank("tp", 0, 2**32 + 2), slotprobe.hit(slotprobe.point("mine.x"), 2**32),
                 slotprobe.point("nodot"), slotprobe.hit(0), slotprobe.hit(2**40)]
said["padding"] = d(pool, -1, 1, stream=stream)
""")
    assert len(said["kind"]) == 25
    for i, text in enumerate(said["kind"]):
        assert isinstance(text, str) and text.startswith(("TypeError: ", "ValueError: ")), (i, text)
    assert said["value"] == [-22] * 21 and said["padding"] == 0
    probes = lab.probes(run)
    assert probes["core.donate"]["errors"] == 8 and probes["core.copy"]["errors"] == 1 and probes["core.step"]["errors"] == 2


def test_the_rest_arrives(lab):
    """Steps, ranks, regions, points; taps are not there yet."""
    run, said = lab.record(POOL + """
said["step"] = slotprobe.step("decode", 12, 3, 4, slotprobe.MODE_GRAPH), slotprobe.step("decode", -2**64 + 7), slotprobe.step(b"extend", 2**64 + 9)
said["rank"] = slotprobe.rank("tp", 1, 4), slotprobe.rank("dp", 0, 2)
ids = Torch(device.alloc(64), (2, 3), "int64")
mask = Torch(device.alloc(64), (5,), "bool")
said["at"] = ids.address, mask.address
said["region"] = slotprobe.region("ids", ids), slotprobe.region("mask", mask), slotprobe.region("i32", Interface(device.alloc(64), (4,), "int32")), slotprobe.region("u32", Torch(device.alloc(64), (2,), "uint32"))
said["tap"] = slotprobe.tap("x", Torch(a, (4,)))
said["ids"] = [slotprobe.donate(pool, 1, 1, stream=stream) for _ in range(200)]
p = slotprobe.point("mine.put")
said["hit"] = slotprobe.hit(p), slotprobe.hit(p, slotprobe.HIT_FILTERED), slotprobe.hit(p, slotprobe.HIT_ERROR)
""")
    assert said["step"] == [0] * 3 and said["rank"] == [0] * 2 and said["region"] == [0, 1, 2, 3] and said["hit"] == [0] * 3 and said["tap"] == -38
    assert said["ids"] == list(range(1, 201))
    steps = lab.exported(run, "step")
    assert [(s["name"], int(s["value"], 16), s["batch"], s["padded"], s["mode"]) for s in steps] == [
        ("decode", 12, 3, 4, 2), ("decode", 7, -1, -1, 0), ("extend", 9, -1, -1, 0)]
    regions = lab.exported(run, "region")
    assert [(r["name"], r["bytes"], r["dtype"]) for r in regions] == [("ids", 48, 8), ("mask", 5, 6), ("i32", 16, 7), ("u32", 8, 7)]
    assert [int(r["base"], 16) for r in regions[:2]] == said["at"]
    mine = lab.probes(run)["mine.put"]
    assert (mine["attempted"], mine["committed"], mine["filtered"], mine["errors"]) == (3, 1, 1, 1)
    assert lab.ask("status", run)["processes"][0]["rank"] == "tp1.pp0.dp0"


def test_streams(lab):
    """Objects of frameworks, handles, and the framework's current stream where none is given, on the pool's device."""
    run, said = lab.record(POOL + """
import types
streams = [device.stream() for _ in range(5)]
N = types.SimpleNamespace
slotprobe.donate(pool, 1, 1)
slotprobe.donate(pool, 1, 1, stream=N(cuda_stream=streams[0]))
slotprobe.donate(pool, 1, 1, stream=N(ptr=streams[1]))
slotprobe.donate(pool, 1, 1, stream=N(__cuda_stream__=lambda: (0, streams[2])))
slotprobe.donate(pool, 1, 1, stream=N(__cuda_stream__=(0, streams[2])))
slotprobe.donate(pool, 1, 1, stream=N(handle=types.SimpleNamespace(value=None)))  # a ctypes handle of the null stream
class Cupy:
    class Device:
        id = 0
    @staticmethod
    def get_current_stream():
        return N(ptr=streams[3])
sys.modules["cupy"] = N(cuda=Cupy)
slotprobe.donate(pool, 1, 1)
class Other:
    id = 1
    def __init__(self, *device):
        said.setdefault("entered", []).extend(device)
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
current, Cupy.Device = Cupy.Device, Other
slotprobe.donate(pool, 1, 1)
Cupy.Device = current
cuda = N(is_initialized=lambda: False, current_stream=lambda device: said.setdefault("device", device) or N(cuda_stream=streams[4]))
sys.modules["torch"] = N(cuda=cuda)
slotprobe.donate(pool, 1, 1)  # CUDA is not initialised: torch is not asked
cuda.is_initialized = lambda: True
slotprobe.donate(pool, 1, 1)
class Array(Interface):
    pass
Array.__module__ = "cupy.core"
other = slotprobe.pool("other", {"t": Array(device.alloc(4096), (2, 4, 8))})
slotprobe.donate(other, 1, 1)  # both are there: the tensors' own is asked
def fails(device):
    raise RuntimeError("no")
cuda.current_stream = fails
said["failed"] = slotprobe.donate(pool, 1, 1)
host = __import__("array").array("f", [0] * 64)
said["host"] = slotprobe.donate(slotprobe.pool("host", {"t": Torch(host.buffer_info()[0], (2, 4, 8), device="cpu")}), 1, 1)
said["streams"] = streams
""")
    assert said["failed"] == -22 and said["host"] > 0 and said["device"] == 0
    at = said["streams"]
    donated = [int(e["stream"], 16) for e in lab.exported(run, "event") if e["pool"] == 0]
    assert [int(e["stream"], 16) for e in lab.exported(run, "event") if e["pool"] == 1] == [at[3]]
    assert donated == [0, at[0], at[1], at[2], at[2], 0, at[3], at[3], at[3], at[4]] and said["entered"] == [0]


def test_a_slot_id_of_another_stream_is_held(lab):
    """The allocator hears of a stream that is not the current one, and of no other."""
    _, said = lab.record(POOL + """
import types
N = types.SimpleNamespace
here, there = N(cuda_stream=stream), N(cuda_stream=device.stream())
sys.modules["torch"] = N(cuda=N(is_initialized=lambda: True, current_stream=lambda device: here, current_device=lambda: 0))
ids = [id_at(1), id_at(1), id_at(1)]
said["d"] = [slotprobe.donate(pool, ids[0], 1), slotprobe.donate(pool, ids[1], 1, stream=here), slotprobe.donate(pool, ids[2], 1, stream=there)]
said["recorded"] = [[s is there for s in i.recorded] for i in ids]
""")
    assert min(said["d"]) > 0 and said["recorded"] == [[], [], [True]]


def test_threads(lab):
    """Claims of many threads do not mix."""
    run, said = lab.record(POOL + """
import threading
refused = []
def work(i):
    for n in range(50):
        if slotprobe.slot(slotprobe.FREE, pool, i, stream=1000 * i + n) or slotprobe.step(f"t{i}", n):
            refused.append(i)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
sys.setswitchinterval(1e-5)
[t.start() for t in threads], [t.join() for t in threads]
said["refused"] = len(refused)
""")
    assert said["refused"] == 0
    seen = [(e["slot"], int(e["stream"], 16)) for e in lab.exported(run, "event")]
    assert sorted(seen) == [(i, 1000 * i + n) for i in range(4) for n in range(50)]
    assert sorted((s["name"], int(s["value"], 16)) for s in lab.exported(run, "step")) == [(f"t{i}", n) for i in range(4) for n in range(50)]
