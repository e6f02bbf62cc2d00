# SPDX-License-Identifier: Apache-2.0
"""From tensors of every layout to the planes that slotprobe records."""
import pytest


def planes(lab, code, name="pool"):
    """(the pool, its planes, what the code said) of code that registers one pool."""
    run, said = lab.record(code)
    pool = lab.pools(run)[name]
    return pool, pool["planes"], said


def place(plane, base):
    """(offset from base, stride, elements, bytes, dtype) of a plane."""
    return int(plane["base"], 16) - base, plane["stride"], plane["elems"], plane["bytes"], plane["dtype"]


def test_layer_major(lab):
    """[layers, slots, ...], a list of tensors, several dtypes; the first slot's id."""
    pool, found, said = planes(lab, """
said["a"], said["b"], said["c"] = device.alloc(4096), device.alloc(4096), device.alloc(4096)
said["id"] = slotprobe.pool("pool", {"conv": [Torch(said["a"], (2, 5, 3, 4), "bfloat16"), Torch(said["b"], (2, 5, 7), "int32")],
                                     "temporal": Torch(said["c"], (3, 5, 2, 2))}, first_slot=10)
""")
    assert said["id"] == 0
    assert (pool["device"], pool["first_slot"], pool["n_slots"], pool["n_planes"]) == (0, 10, 5, 7)
    assert set(found) == {("conv.0", 0), ("conv.0", 1), ("conv.1", 0), ("conv.1", 1), ("temporal", 0), ("temporal", 1), ("temporal", 2)}
    assert place(found["conv.0", 1], said["a"]) == (120, 24, 12, 24, "bf16")
    assert place(found["conv.1", 0], said["b"]) == (0, 28, 7, 28, "i32")
    assert place(found["temporal", 2], said["c"]) == (160, 16, 4, 16, "f32")


def test_page_major_unified(lab):
    """[slots, layers, ...] views into one buffer: strides are the tensors' own."""
    _, found, said = planes(lab, """
said["a"] = a = device.alloc(8192)  # a slot: 2 layers of (24 bytes conv, 40 bytes temporal)
slotprobe.pool("pool", {"conv": Torch(a, (6, 2, 12), "bfloat16", strides=(64, 32, 1)),
                        "temporal": Torch(a + 24, (6, 2, 2, 5), strides=(32, 16, 5, 1))}, layer_axis=1, slot_axis=0)
""")
    assert place(found["conv", 1], said["a"]) == (64, 128, 12, 24, "bf16")
    assert place(found["temporal", 0], said["a"]) == (24, 128, 10, 40, "f32")


def test_without_layers_and_negative_axes(lab):
    """layer_axis None: layer -1; axes count from the back; axes by name."""
    _, found, said = planes(lab, """
said["a"], said["b"], said["c"] = device.alloc(4096), device.alloc(4096), device.alloc(4096)
slotprobe.pool("pool", {"plain": Torch(said["a"], (4, 6), "float64"), "vector": Torch(said["c"], (4,), "float16"),
                        "layered": Torch(said["b"], (3, 4, 2))},
               layer_axis={"plain": None, "vector": None, "layered": -3}, slot_axis={"plain": 0, "vector": -1, "layered": 1})
""")
    assert place(found["plain", -1], said["a"]) == (0, 48, 6, 48, "f64")
    assert place(found["vector", -1], said["c"]) == (0, 2, 1, 2, "f16")
    assert place(found["layered", 2], said["b"]) == (64, 8, 2, 8, "f32")


def test_cuda_array_interface(lab):
    """Strides in bytes, or none for C order; negative strides; dtypes without a type string."""
    pool, found, said = planes(lab, """
said["a"], said["b"], said["c"] = device.alloc(4096), device.alloc(4096), device.alloc(4096)
slotprobe.pool("pool", {"c": Interface(said["a"], (2, 3, 5)), "half": Interface(said["b"], (2, 3, 4), "bfloat16"),
                        "back": Interface(said["c"] + 44, (1, 3, 4), "int8", strides=(48, -16, -1))})
""")
    assert pool["device"] == 0
    assert place(found["c", 1], said["a"]) == (60, 20, 5, 20, "f32")
    assert place(found["half", 1], said["b"]) == (24, 8, 4, 8, "bf16")
    assert place(found["back", 0], said["c"]) == (41, -16, 4, 4, "i8")


@pytest.mark.parametrize("dtype, name, size", [("float64", "f64", 8), ("float32", "f32", 4), ("float16", "f16", 2), ("bfloat16", "bf16", 2),
                                               ("float8_e4m3fn", "f8e4m3", 1), ("float8_e5m2", "f8e5m2", 1), ("int8", "i8", 1),
                                               ("int32", "i32", 4), ("int64", "raw", 8), ("uint8", "raw", 1), ("int16", "raw", 2),
                                               ("bool", "raw", 1)])
def test_dtypes(lab, dtype, name, size):
    """Those with a value, and bytes for all others."""
    _, found, said = planes(lab, f"said['a'] = device.alloc(4096)\nslotprobe.pool('pool', {{'t': Torch(said['a'], (2, 3, 5), '{dtype}')}})")
    assert place(found["t", 1], said["a"]) == (15 * size, 5 * size, 5 * size if name == "raw" else 5, 5 * size, name)


def test_elements_in_another_order_are_one_plane(lab):
    """A transposed inner part has no gaps."""
    _, found, said = planes(lab, """
said["a"] = device.alloc(4096)
slotprobe.pool("pool", {"t": Torch(said["a"], (2, 3, 4, 5), strides=(60, 20, 1, 4))})
""")
    assert set(found) == {("t", 0), ("t", 1)}
    assert place(found["t", 1], said["a"]) == (240, 80, 20, 80, "f32")


def test_gaps_become_planes(lab):
    """Each dense run of a slot is a plane, and what lies in the gaps is not measured."""
    run, said = lab.record("""
said["a"] = a = device.alloc(8192)
p = slotprobe.pool("pool", {"t": Torch(a, (2, 3, 2, 4), strides=(96, 32, 16, 1))})  # 16 bytes of 64
stream = device.stream()
import struct
device.write(a + 1 * 128 + 16, struct.pack("<f", 99.0))  # slot 1, layer 0: in the gap
device.write(a + 384 + 1 * 128 + 64 + 12, struct.pack("<f", -3.0))  # layer 1, the last element of run 1
said["d"] = slotprobe.donate(p, 1, 5, stream=stream)
""")
    found = lab.pools(run)["pool"]["planes"]
    assert set(found) == {("t@0", 0), ("t@1", 0), ("t@0", 1), ("t@1", 1)}
    assert place(found["t@1", 1], said["a"]) == (384 + 64, 128, 4, 16, "f32")
    by_plane = dict(zip(sorted(found, key=lambda k: (k[1], k[0])), (p["absmax"] for p in lab.prints(run)[said["d"]]["planes"])))
    assert sorted(by_plane.values()) == [0, 0, 0, 3]


def test_as_many_runs_as_are_taken(lab):
    """One more is refused: see WRONG."""
    _, found, _ = planes(lab, """
slotprobe.pool("pool", {"t": Torch(device.alloc(4096), (2, 3, 64), strides=(390, 130, 2))})
""")
    assert len(found) == 2 * 64


def test_gaps_and_backward_axes(lab):
    """Planes begin at their lowest byte, and are named by the tensor's own indices."""
    _, found, said = planes(lab, """
said["a"] = device.alloc(4096)
slotprobe.pool("pool", {"t": Interface(said["a"] + 60, (3, 2, 4), strides=(128, -32, -4))}, layer_axis=None, slot_axis=0)
""")
    assert place(found["t@0", -1], said["a"]) == (48, 128, 4, 16, "f32")
    assert place(found["t@1", -1], said["a"]) == (16, 128, 4, 16, "f32")


def test_empty_tensors(lab):
    """A tensor of a pool may have no elements."""
    _, found, said = planes(lab, """
said["a"] = device.alloc(4096)
said["id"] = slotprobe.pool("pool", {"conv": Torch(said["a"], (2, 3, 4)), "temporal": Torch(0, (2, 3, 0, 4))})
""")
    assert said["id"] == 0 and found["temporal", 1]["bytes"] == 0 and found["conv", 1]["bytes"] == 16


def test_host_pools(lab):
    """Memory of the host, of both kinds of tensors, is fingerprinted in place."""
    run, said = lab.record("""
import array, struct
a, b = array.array("f", [0.0] * 24), array.array("f", [0.0] * 24)
p = slotprobe.pool("torch", {"t": Torch(a.buffer_info()[0], (2, 3, 4), device="cpu")})
q = slotprobe.pool("numpy", {"t": Interface(b.buffer_info()[0], (3, 8), host=True)}, layer_axis=None, slot_axis=0)
a[12 + 4 + 1], b[8] = -7.5, 2.0
said["d"] = slotprobe.donate(p, 1, 5), slotprobe.donate(q, 1, 5)
""")
    assert {p["device"] for p in lab.pools(run).values()} == {-1}
    prints = lab.prints(run)
    assert [max(p["absmax"] for p in prints[d]["planes"]) for d in said["d"]] == [7.5, 2]


WRONG = {
    "no dict": ("[Torch(a, (2, 3, 4))]", "", TypeError, "dict"),
    "no tensor": ("{'t': 5}", "", TypeError, "t: a tensor is expected"),
    "name": ("{5: Torch(a, (2, 3, 4))}", "", TypeError, "names are str"),
    "empty": ("{}", "", ValueError, "there is none"),
    "same axis": ("{'t': Torch(a, (2, 3, 4))}", "layer_axis=1", ValueError, "both 1"),
    "axis range": ("{'t': Torch(a, (2, 3, 4))}", "slot_axis=3", ValueError, "slot_axis 3"),
    "axis kind": ("{'t': Torch(a, (2, 3, 4))}", "slot_axis='x'", TypeError, "int or None"),
    "no slots": ("{'t': Torch(a, (2, 3, 4))}", "slot_axis=None", TypeError, "slot_axis"),
    "slots differ": ("{'t': Torch(a, (2, 3, 4)), 'u': Torch(a, (2, 4, 4))}", "", ValueError, "4 slots, but t has 3"),
    "devices differ": ("{'t': Torch(a, (2, 3, 4)), 'u': Torch(a, (2, 3, 4), device='cpu')}", "", ValueError, "device"),
    "meta": ("{'t': Torch(a, (2, 3, 4), device='meta')}", "", ValueError, "meta"),
    "expanded slots": ("{'t': Torch(a, (2, 3, 4), strides=(4, 0, 1))}", "", ValueError, "one place"),
    "expanded inner": ("{'t': Torch(a, (2, 3, 4), strides=(12, 4, 0))}", "", ValueError, "one place"),
    "not dense": ("{'t': Torch(a, (2, 3, 65), strides=(390, 130, 2))}", "", ValueError, "65 runs of 4 bytes"),
    "long name": ("{'n' * 64: Torch(a, (2, 3, 4))}", "", ValueError, "63"),
    "long name in bytes": ("{'\u00e4' * 32: Torch(a, (2, 3, 4))}", "", ValueError, "63"),
    "zero byte": ("{'t': Torch(a, (2, 3, 4))}", "name='a\\0b'", ValueError, "zero byte"),
    "name kind": ("{'t': Torch(a, (2, 3, 4))}", "name=5", TypeError, "name"),
    "first slot": ("{'t': Torch(a, (2, 3, 4))}", "first_slot=1.5", TypeError, "first_slot"),
}


def test_wrong_arguments(lab):
    """Each says what is wrong, and registers nothing."""
    code = "a = device.alloc(4096)\n"
    for i, (tensors, more, kind, _) in enumerate(WRONG.values()):
        name = "" if "name=" in more else "'pool', "
        code += f"try:\n    slotprobe.pool({name}tensors={tensors}, {more})\nexcept {kind.__name__} as e:\n    said['{i}'] = str(e)\n".replace(
            "'pool', tensors", "'pool', tensors")
    run, said = lab.record(code)
    for i, (name, (*_, text)) in enumerate(WRONG.items()):
        assert text in said[str(i)], name
    assert not lab.pools(run)


def test_refused_by_the_library(lab):
    """A negative errno."""
    _, said = lab.record("""
a = device.alloc(4096)
said["too many planes"] = slotprobe.pool("p", {"t": Torch(a, (1025, 2, 1), "int8", strides=(0, 1, 1))})
said["first slot"] = slotprobe.pool("p", {"t": Torch(a, (2, 3, 4))}, first_slot=-1)
said["far first slot"] = slotprobe.pool("p", {"t": Torch(a, (2, 3, 4))}, first_slot=2**70)
said["no slots"] = slotprobe.pool("p", {"t": Torch(a, (2, 0, 4))})
said["no name"] = slotprobe.pool("", {"t": Torch(a, (2, 3, 4))})
said["removed"] = slotprobe.pool_remove(slotprobe.pool("p", {"t": Torch(a, (2, 3, 4))}))
said["unknown"] = slotprobe.pool_remove(4)
""")
    assert said == {"too many planes": -28, "first slot": -22, "far first slot": -22, "no slots": -22, "no name": -22, "removed": 0,
                    "unknown": -22}
