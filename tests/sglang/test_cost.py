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


@pytest.mark.parametrize("planted", ["ids.item()", "ids.cpu()", "__import__('torch').cuda.synchronize()"])
def test_a_wait_is_seen(build, root, release, tmp_path, planted):
    """The red twin: the adapter as built, with a line that waits."""
    assert release
    other = tmp_path / "build"
    other.mkdir()
    for name in ("slotprobe", "libslotprobe.so"):
        shutil.copy2(build / name, other / name)
    (other / "cpudriver").symlink_to(build / "cpudriver")
    shutil.copytree(build / "probes", other / "probes")
    pools = other / "probes/sglang/slotprobe_sglang/pools.py"
    text = pools.read_text()
    pools.write_text(text.replace('hands out ids of its own."""\n', f'hands out ids of its own."""\n        {planted}\n', 1))
    assert pools.read_text() != text
    status, found, _ = bench(other, root, tmp_path)
    assert status == 1 and any("brought to the host" in m for m in found["missed"])
