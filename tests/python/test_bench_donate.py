# SPDX-License-Identifier: Apache-2.0
"""bench_donate.py: it measures what it says, and a recording that does not take place is no measurement."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parent / "bench_donate.py"


def bench(lab, build, *options):
    """The finished process."""
    return subprocess.run([sys.executable, "-B", SCRIPT, build, *options], capture_output=True, text=True, env=lab.env, timeout=120, check=False)


def test_it_measures(lab, tmp_path):
    """Bare calls cost nearly nothing, recorded ones more, and none was refused."""
    done = bench(lab, lab.build, "--json", tmp_path / "json")
    assert done.returncode == 0, done.stderr
    said = {name: float(value) for name, value in re.findall(r"^(.+?) +([\d.]+)(?: us)?$", done.stdout, re.M)}
    assert said["refused calls"] == 0 and {"without preload", "step", "recorded, slot a tensor, key str"} < set(said)
    assert said["recorded, slot and key int"] > said["package, slot and key int"] > 0
    written = json.loads((tmp_path / "json").read_text())
    assert {k: round(v, 2) for k, v in written["us_per_call"].items()} | {"refused calls": written["refused_calls"]} == said


@pytest.mark.parametrize("how, said", [('shift 6; exec "$@"', "slotprobe is not there"), ('shift; exec {slotprobe} record --paused "$@"', "refused calls"),
                                       ('shift; exec {slotprobe} record --max-size 1 "$@"', "refused calls")], ids=["not recorded", "paused", "full"])
def test_a_recording_that_does_not_take_place_fails(lab, tmp_path, how, said):
    """With a `slotprobe` that records nothing in the place of the real one."""
    (tmp_path / "cpudriver").symlink_to(lab.build / "cpudriver")
    command = tmp_path / "slotprobe"
    command.write_text("#!/bin/sh\n" + how.format(slotprobe=lab.command) + "\n")
    command.chmod(0o755)
    done = bench(lab, tmp_path)
    assert done.returncode == 1 and said in done.stdout + done.stderr, done.stdout + done.stderr
    assert said != "refused calls" or not re.search(r"refused calls +0.00$", done.stdout, re.M), done.stdout
