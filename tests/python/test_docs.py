# SPDX-License-Identifier: Apache-2.0
"""docs/python.md: its server runs as it stands, and what it says is recorded is."""
import re

SERVE = """
class Sliced(Torch):
    def __getitem__(self, at):
        return None
    def __setitem__(self, at, value):
        pass
conv, temporal = Sliced(device.alloc(4096), (2, 4, 8), "bfloat16"), Sliced(device.alloc(4096), (2, 4, 16))
cache = Cache(conv, temporal)
cache.alloc(1)
said["donation"] = cache.insert(1, [5, 6, 7], 3)
cache.start_from(1, [5, 6, 7], 2)
cache.forward(1, 3, 4, True)
"""


def test_the_example_runs(lab, root):
    """Word for word."""
    blocks = re.findall(r"```python\n(.*?)```", (root / "docs" / "python.md").read_text(), re.S)
    assert len(blocks) == 4
    run, said = lab.record(blocks[0] + SERVE)
    assert said["donation"] > 0
    events = lab.exported(run, "event")
    assert [(e["kind"], e["slot"], e["src"]) for e in events] == [("alloc", 1, -1), ("donate", 1, -1), ("restore", 1, -1), ("copy", 2, 1)]
    assert events[1]["key"] == events[2]["key"] and events[1]["claimed_len"] == events[1]["key_len"] == 3
    assert [s["mode"] for s in lab.exported(run, "step")] == [2]
    for block in blocks[1:]:
        compile(block, "docs/python.md", "exec")
    assert "def test_prefix_reuse(slotprobe_run)" in blocks[3]
