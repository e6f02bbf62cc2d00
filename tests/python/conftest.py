# SPDX-License-Identifier: Apache-2.0
"""Runs pieces of Python that use the package under `slotprobe record`, on the CPU driver, and says what was recorded."""
import json
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "probes", "python")
BEFORE = """
import json, sys
import slotprobe
from fakes import Device, Interface, Torch
device = Device()
said = {}
"""
AFTER = """
device.finish()
print(json.dumps(said))
"""


class Lab:
    """Runs code with the package; asks slotprobe."""

    def __init__(self, build, folder):
        self.build, self.folder, self.count = build, folder, 0
        self.command = build / "slotprobe"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_") and k != "LD_PRELOAD"}
        self.env.update(LD_LIBRARY_PATH=str(build / "cpudriver"), PYTHONPATH=f"{PACKAGE}:{HERE}", PYTHONDONTWRITEBYTECODE="1")

    def bare(self, code, **env):
        """Without slotprobe: what the code printed."""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=self.env | env, timeout=120, check=False)
        assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
        return done.stdout

    def slotprobe(self, *args):
        """The command; the finished process."""
        return subprocess.run([str(self.command), *map(str, args)], capture_output=True, text=True, env=self.env, timeout=120, check=False)

    def record(self, code, *options):
        """Records the code, between BEFORE and AFTER: (run, what it left in `said`)."""
        run = self.folder / f"run{self.count}"
        self.count += 1
        done = self.slotprobe("record", "-o", run, "--arm", "graph-off", *options, "--", sys.executable, "-c", BEFORE + code + AFTER)
        assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
        return run, json.loads(done.stdout)

    def ask(self, verb, run):
        """A verb with --json: the object."""
        return json.loads(self.slotprobe(verb, run, "--json").stdout)

    def pools(self, run):
        """The run's pools by name, each with its planes by (tensor, layer)."""
        found = {}
        for pool in self.ask("report", run)["pools"]:
            found[pool["pool"]] = pool | {"planes": {(p["tensor"], p["layer"]): p for p in pool["planes"]}}
        return found

    def exported(self, run, *types):
        """The log's records of these types, in order."""
        done = self.slotprobe("export", run, "--format", "jsonl")
        assert done.returncode == 0, done.stderr
        return [r for r in map(json.loads, done.stdout.splitlines()) if r["type"] in types]

    def prints(self, run):
        """The subjects' fingerprints by event."""
        return {r["event"]: r for r in self.exported(run, "fingerprint") if r["role"] == "subject"}

    def probes(self, run):
        """The counters of the run's one process, by name."""
        return {p["name"]: p for p in self.ask("status", run)["processes"][0]["probes"]}


@pytest.fixture(scope="module")
def lab(build, tmp_path_factory):
    """A place to record in."""
    return Lab(build, tmp_path_factory.mktemp("python"))
