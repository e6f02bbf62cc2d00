# SPDX-License-Identifier: Apache-2.0
"""Without a preload, or in a process that is not recorded, the package does nothing, quickly, and loads nothing."""
import json

EVERY_CALL = """
import json, sys
before = set(sys.modules)
import slotprobe
calls = [slotprobe.pool("p", {"t": None}), slotprobe.pool_remove(0), slotprobe.donate(0, 1, 2, "key"), slotprobe.restore(0, object(), 2),
         slotprobe.slot(slotprobe.FREE, 0, 1), slotprobe.slots(slotprobe.FREE, 0, [1]), slotprobe.step("decode", 1), slotprobe.rank("tp", 0, 1), slotprobe.region("r", None),
         slotprobe.tap("t", None), slotprobe.point("a.b"), slotprobe.hit(0), slotprobe.batch_invariance(None)]
print(json.dumps([slotprobe.available(), calls, sorted(m for m in set(sys.modules) - before if m in ("torch", "cupy", "numpy", "pytest"))]))
"""


def test_without_preload(lab):
    """-38 whatever the arguments are."""
    assert json.loads(lab.bare(EVERY_CALL)) == [False, [-38] * 13, []]


def test_preloaded_and_not_recorded(lab):
    """The library is in the process, and nobody asked for a recording."""
    assert json.loads(lab.bare(EVERY_CALL, LD_PRELOAD=str(lab.build / "libslotprobe.so"))) == [False, [-38] * 13, []]


def test_recorded(lab):
    """The red twin: available, and still no framework."""
    _, said = lab.record("said.update(available=slotprobe.available(), loaded=[m for m in ('torch', 'cupy', 'numpy') if m in sys.modules])")
    assert said == {"available": True, "loaded": []}


def test_quick_without_preload(lab):
    """A call costs a function call: less than 2 us, generously."""
    best = float(lab.bare("import slotprobe, timeit; print(min(timeit.repeat('f(0, 1, 2, 3)', 'from slotprobe import donate as f', number=20000))"
                          " / 20000 * 1e6)"))
    assert best < 2
