# SPDX-License-Identifier: Apache-2.0
"""What the tests of adapters work with: programs recorded with an adapter, and what slotprobe says of the runs."""
import json
import os
import subprocess

import pytest


class Recorder:
    """Runs programs under `slotprobe record`, each into a run of its own."""

    def __init__(self, build, folder):
        self.build, self.folder, self.count = build, folder, 0
        self.programs = build / "tests" / "adapters"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")}

    def slotprobe(self, *args, env=None, **options):
        """The command; the finished process."""
        return subprocess.run([str(self.build / "slotprobe"), *map(str, args)], capture_output=True, text=True, timeout=120,
                              env=self.env | (env or {}), check=False, **options)

    def record(self, *command, probes=(), arm="graph-off", script=None, env=None):
        """Records a command: (run, its output). It must succeed."""
        run = self.folder / f"run{self.count}"
        self.count += 1
        done = self.slotprobe("record", "-o", run, "--arm", arm, *(a for p in probes for a in ("--probe", p)), "--", *command, input=script,
                              env=env)
        assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return run, done.stdout

    def ask(self, verb, *args):
        """A verb with --json: (exit status, object)."""
        done = self.slotprobe(verb, *args, "--json")
        return done.returncode, json.loads(done.stdout)

    def probes(self, run):
        """The counters of the run's one process, by name."""
        status, found = self.ask("status", run)
        assert status == 0 and len(found["processes"]) == 1, found
        return {p["name"]: p for p in found["processes"][0]["probes"]}

    def exported(self, run, *types):
        """The log's records of these types, in order."""
        done = self.slotprobe("export", run, "--format", "jsonl")
        assert done.returncode == 0, done.stderr
        return [r for r in map(json.loads, done.stdout.splitlines()) if r["type"] in types]

    def events(self, run):
        """The events in order, each with the roll-up hash of its fingerprint."""
        hashes = {r["event"]: r["rollup"] for r in self.exported(run, "fingerprint") if r["role"] == "subject"}
        return [e | {"hash": hashes.get(e["id"])} for e in self.exported(run, "event")]


@pytest.fixture(scope="module")
def recorder(build, tmp_path_factory):
    """A place to record in."""
    return Recorder(build, tmp_path_factory.mktemp("adapters"))
