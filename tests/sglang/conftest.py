# SPDX-License-Identifier: Apache-2.0
"""What the tests of the SGLang adapter share: the pinned release, and a scheduler's life recorded on it."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "probes" / "servers" / "sglang")]


class Lab:
    """Runs server.py, bare or recorded."""

    def __init__(self, build, folder, release):
        self.build, self.folder, self.count = build, folder, 0
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLOTPROBE_", "SGLANG_")) and k != "LD_PRELOAD"}
        self.env |= {"PYTHONPATH": f"{release / 'site'}:{HERE}", "LD_LIBRARY_PATH": f"{build / 'cpudriver'}:{release / 'nvidia'}",
                     "PYTHONPYCACHEPREFIX": str(release / "compiled"), "PYTHONHASHSEED": "random"}
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)

    def slotprobe(self, *args):
        """The command; the finished process."""
        return subprocess.run([str(self.build / "slotprobe"), *map(str, args)], capture_output=True, text=True, env=self.env, timeout=500,
                              check=False)

    def record(self, asked, *options):
        """A scheduler's life: (run, what the tree said, what went to stderr)."""
        run = self.folder / f"run{self.count}"
        self.count += 1
        done = self.slotprobe("record", "-o", run, "--arm", "graph-off", "--probe", "sglang", *options, "--", sys.executable,
                              HERE / "server.py", json.dumps(asked))
        assert done.returncode == 0, done.stdout + done.stderr[-6000:]
        return run, json.loads(done.stdout.splitlines()[-1]), done.stderr

    def ask(self, verb, *args):
        """A verb with --json: (exit status, object)."""
        done = self.slotprobe(verb, *args, "--json")
        return done.returncode, json.loads(done.stdout)

    def exported(self, run, *types):
        """The log's records of these types, in order."""
        return [r for r in map(json.loads, self.slotprobe("export", run, "--format", "jsonl").stdout.splitlines()) if r["type"] in types]

    def events(self, run):
        """The events in the order of their calls, with the slot that the fingerprint names where there is one."""
        prints = {r["event"]: r for r in self.exported(run, "fingerprint") if r["role"] == "subject"}
        return sorted((e | {"slot": prints[e["id"]]["slot"] if e["id"] in prints else e["slot"]} for e in self.exported(run, "event")),
                      key=lambda e: e["id"])

    def probes(self, run):
        """The counters of the run's one process, by name."""
        return {p["name"]: p for p in self.ask("status", run)[1]["processes"][0]["probes"]}


@pytest.fixture(scope="session")
def release():
    """The pinned release of SGLang, laid where it can be imported. Fetched where it is not there: the tests never go without."""
    import prepare
    return prepare.prepare()


@pytest.fixture(scope="session")
def sglang(build, release, tmp_path_factory):
    """A place to record in."""
    return Lab(build, tmp_path_factory.mktemp("sglang"), release)
