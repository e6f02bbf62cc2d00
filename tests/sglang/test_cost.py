# SPDX-License-Identifier: Apache-2.0
"""The bench of the adapter's costs (`tests/bench/scheduler.py`) as a test of what does not hang on the machine: every hook is driven through
SGLang's own registry on real tensors, and nothing is brought to the host, waited for, dropped, or wrong."""
import json
import shutil
import subprocess
import sys

import pytest


def bench(build, root, folder):
    """(exit status, the JSON, what it printed)"""
    report = folder / "costs.json"
    done = subprocess.run([sys.executable, "-B", root / "tests/bench/scheduler.py", "--build", build, "--quick", "--json", report],
                          capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, json.loads(report.read_text()), done.stdout + done.stderr


def test_every_hook_is_timed_and_nothing_waits(build, root, release, tmp_path):
    """Each in both ways to schedule; a step costs the same for any batch, of what the adapter and the package take."""
    assert release
    status, found, text = bench(build, root, tmp_path)
    assert status == 0 and not found["missed"], text
    assert {(r["what"], r["overlap"]) for r in found["rows"]} == {(w, o) for w in ("step", "alloc", "free", "clear", "copy", "donate", "restore")
                                                                  for o in (True, False)}
    assert found["record_stream"] == 0
    steps = [r["adapter"] + r["package"] for r in found["rows"] if r["what"] == "step"]
    assert max(steps) < 6 * min(steps)


def planted(build, root, folder, file, before, after):
    """What the bench says of the adapter as built with one line changed."""
    other = folder / "build"
    other.mkdir()
    for name in ("slotprobe", "libslotprobe.so"):
        shutil.copy2(build / name, other / name)
    (other / "cpudriver").symlink_to(build / "cpudriver")
    shutil.copytree(build / "probes", other / "probes")
    path = other / "probes/sglang/slotprobe_sglang" / file
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))
    status, found, _ = bench(other, root, folder)
    return status, found["missed"]


@pytest.mark.parametrize("line", ["ids.item()", "ids.cpu()", "__import__('torch').cuda.synchronize()"])
def test_a_wait_is_seen(build, root, release, tmp_path, line):
    """The red twin: a line that waits."""
    assert release
    doc = 'hands out ids of its own."""\n'
    status, missed = planted(build, root, tmp_path, "pools.py", doc, f"{doc}        {line}\n")
    assert status == 1 and any("brought to the host" in m for m in missed)


def test_a_hook_that_says_nothing_is_seen(build, root, release, tmp_path):
    """It would be the quickest of all."""
    assert release
    doc = '"""free of the slot allocators; afterwards the ids mean nothing. Those on the device are read by nobody."""\n'
    status, missed = planted(build, root, tmp_path, "adapter.py", doc, f"{doc}        return\n")
    assert status == 1 and missed and all("nothing, or not all" in m and ".free" in m for m in missed)
