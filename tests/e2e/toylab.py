# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests work with: records toy server runs, once for each set of options, and asks slotprobe about them."""
import json
import os
import subprocess

TIMEOUT = 120


class Run:
    """A recorded run and what the toy server itself says of it."""

    def __init__(self, path, journal, done):
        self.path = path
        self.done = done
        self.events = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []

    def of(self, *kinds):
        """The journal's events of these kinds, in order."""
        return [e for e in self.events if e["event"] in kinds]

    @property
    def end(self):
        """The journal's last line: the toy's own counts."""
        assert self.events and self.events[-1]["event"] == "end", "the toy server did not finish"
        return self.events[-1]

    @property
    def slots_differing(self):
        """Slots that the toy handed over or restored with other bytes than it should have."""
        return set(self.end["slots_differing"])

    def first_wrong(self, slot):
        """The first hand-over or restore of that slot with wrong bytes."""
        return next(e for e in self.of("donate", "restore") if e["slot"] == slot and e["differs"])


class Lab:
    """Runs slotprobe and the toy server on one driver."""

    def __init__(self, build, driver, folder):
        self.build, self.driver, self.folder = build, driver, folder
        self.command = build / "slotprobe"
        self.toy = build / "toyserver" / "toyserver"
        self.recorded = {}

    @property
    def env(self):
        """The environment of a server on this driver."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")}
        if self.driver == "cpu":
            env["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(self.build / "cpudriver"), env.get("LD_LIBRARY_PATH")]))
        return env

    def slotprobe(self, *args, timeout=TIMEOUT, **kwargs):
        """Runs the command; returns the finished process, output as text."""
        return subprocess.run([str(self.command), *map(str, args)], capture_output=True, text=True, env=self.env, timeout=timeout,
                              check=False, **kwargs)

    def bare(self, *args, name="bare"):
        """Runs the toy server without slotprobe."""
        journal = self.folder / f"{name}.jsonl"
        done = subprocess.run([str(self.toy), *map(str, args), "--journal", str(journal)], capture_output=True, text=True, env=self.env,
                              timeout=TIMEOUT, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return Run(None, journal, done)

    def record(self, arm, *toy_args, options=(), again=0):
        """Records the toy server with that arm, or hands out the run if it was recorded before. `again` tells apart runs that shall
        be recorded anew."""
        key = (arm, toy_args, tuple(options), again)
        if key not in self.recorded:
            path = self.folder / f"run{len(self.recorded)}"
            journal = path.with_suffix(".jsonl")
            done = self.slotprobe("record", "-o", path, "--arm", arm, *options, "--", self.toy, "--arm", arm, *toy_args, "--journal",
                                  journal)
            assert done.returncode == 0, f"record: {done.returncode}\n{done.stdout}{done.stderr}"
            run = Run(path, journal, done)
            assert run.end["device_agrees"]
            self.recorded[key] = run
        return self.recorded[key]

    def ask(self, verb, *args):
        """A verb with --json: (exit status, object)."""
        done = self.slotprobe(verb, *args, "--json")
        try:
            return done.returncode, json.loads(done.stdout)
        except json.JSONDecodeError:
            raise AssertionError(f"slotprobe {verb}: exit {done.returncode}, no JSON\n{done.stdout}\n{done.stderr}") from None

    def diff(self, a, b, *options):
        """diff of two runs: (exit status, object)."""
        return self.ask("diff", a.path, b.path, *options)

    def check(self, run, *options):
        """check of one run: (exit status, object)."""
        return self.ask("check", run.path, *options)

    def exported(self, run, *types):
        """The log's records of these types, in order."""
        done = self.slotprobe("export", run.path, "--format", "jsonl")
        assert done.returncode == 0 and not done.stderr, done.stderr
        return [r for r in map(json.loads, done.stdout.splitlines()) if r["type"] in types]

    def hashes(self, run, kind):
        """slotprobe's roll-up hashes of the slots of these events, in order."""
        prints = {r["event"]: r["rollup"] for r in self.exported(run, "fingerprint") if r["role"] == "subject"}
        return [prints[e["id"]] for e in self.exported(run, "event") if e["kind"] == kind]

    def probes(self, run):
        """The counters of the run's one process, by name."""
        status, found = self.ask("status", run.path)
        assert status == 0
        assert len(found["processes"]) == 1, found["processes"]
        return {p["name"]: p for p in found["processes"][0]["probes"]}


def codes(found):
    """The reason codes of a verdict."""
    return [r["code"] for r in found["reasons"]]


def slots(found, verdict):
    """The slots with that verdict, by number."""
    return {s["slot"]: s for s in found["slots"] if s["verdict"] == verdict}


def kinds(slot):
    """The kinds of a slot's explanations."""
    return [e["kind"] for e in slot["explain"]]
