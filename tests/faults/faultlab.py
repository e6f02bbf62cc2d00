# SPDX-License-Identifier: Apache-2.0
"""What the fault tests work with: servers under a preload that makes single calls of libslotprobe.so fail, and what must be true of any
such run: the server notices nothing, the counters add up, and nothing that was lost passes for measured."""
import json
import os
import struct
import subprocess

COUNTED = struct.Struct("56sQ")
EVENTS = ("donate", "restore", "alloc", "clear", "copy", "discard", "free")
TOY = ("--requests", "6", "--layers", "1", "--slots", "12", "--concurrency", "2")


class Server:
    """A program to record: how it is called, and what it tells of itself that no preload may change."""

    arms = ("graph-on", "graph-on")  # of the run that it is compared with, and of its own
    status = 0

    def command(self, build, journal, arm):
        """The command line."""
        raise NotImplementedError

    def told(self, run):
        """Its own account of what it did."""
        return run.stdout


class Toy(Server):
    """The toy server: its journal, without what slotprobe's answers change: ids of donations, the discards that name
    one, refusals."""

    arms = ("graph-off", "graph-on")

    def __init__(self, *options):
        self.options = options or TOY

    def command(self, build, journal, arm):
        return [str(build / "toyserver" / "toyserver"), "--arm", arm, *self.options, "--journal", str(journal)]

    def told(self, run):
        lines = [json.loads(line) for line in run.journal.read_text().splitlines()]
        answers = {"donate": {"id"}, "end": {"refused", "calls"}}
        return [{k: v for k, v in line.items() if k not in answers.get(line["event"], ())} for line in lines if line["event"] != "discard"]


class Tour(Server):
    """server.c"""

    status = 5

    def __init__(self, how="tour"):
        self.how = how

    def command(self, build, journal, arm):
        return [str(build / "faults" / "server"), self.how]


class FaultyRun:
    """A finished process and its files."""

    def __init__(self, path, journal, done):
        self.path, self.journal = path, journal
        self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr


class Faults:
    """Runs a server bare and with faults, on the CPU driver. `settings` are environment of all of its runs."""

    def __init__(self, build, folder, server, settings=None):
        self.build, self.folder, self.server, self.settings = build, folder, server, settings or {}
        self.bare = self.run("bare", preload=False)
        assert self.bare.status == server.status and not self.bare.stderr, self.bare.stderr
        self.other = self.run("other", server.arms[0])
        self.good = self.run("good", FAULT_COUNT=folder / "good.count")
        self.good_probes = self.probes(self.good)
        self.good_hashes = self.measured(self.good)

    def env(self, **more):
        """The environment of a process on the CPU driver."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SLOTPROBE_", "FAULT", "CPUDRIVER_"))}
        env["LD_LIBRARY_PATH"] = str(self.build / "cpudriver")
        return env | {k: str(v) for k, v in (self.settings | more).items()}

    def recorded_env(self, name, arm, **more):
        """The environment in which the server records into the run of that name."""
        preload = f"{self.build / 'libslotprobe.so'} {self.build / 'faults' / 'inject.so'}"
        own = {"LD_PRELOAD": preload, "SLOTPROBE_DIR": self.folder / name, "SLOTPROBE_ARM": arm, "SLOTPROBE_RECORDING": "1",
               "SLOTPROBE_MIN_FREE": "0"}
        return self.env(**own | more)

    def start(self, name, arm=None, preload=True, **settings):
        """Starts the server; hand what it returns to `finish`."""
        arm = arm or self.server.arms[1]
        journal = self.folder / f"{name}.jsonl"
        env = self.recorded_env(name, arm, **settings) if preload else self.env()
        return name, journal, subprocess.Popen(self.server.command(self.build, journal, arm), stdout=subprocess.PIPE,
                                               stderr=subprocess.PIPE, text=True, env=env)

    def finish(self, started, timeout=60):
        """The run that was started, when it has ended."""
        name, journal, process = started
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return FaultyRun(self.folder / name, journal, subprocess.CompletedProcess(process.args, process.returncode, out, err))

    def run(self, name, arm=None, preload=True, **settings):
        """One run of the server; `settings` are environment."""
        return self.finish(self.start(name, arm, preload, **settings))

    def slotprobe(self, *args):
        """The command, on what was recorded."""
        return subprocess.run([str(self.build / "slotprobe"), *map(str, args)], capture_output=True, text=True, env=self.env(), timeout=60,
                              check=False)

    def ask(self, verb, *args):
        """A verb with --json: (exit status, object or None where there is no run to speak of)."""
        done = self.slotprobe(verb, *args, "--json")
        assert done.returncode in (0, 1, 2, 3), (verb, done.returncode, done.stderr)
        assert done.returncode != 2 or done.stderr.count("\n") == 1, done.stderr
        return done.returncode, json.loads(done.stdout) if done.stdout else None

    # ---- what must be true ----

    def server_unchanged(self, run):
        """The server's status, output and own account are those of the bare run."""
        assert run.status == self.bare.status, (run.status, run.stderr)
        assert run.stdout == self.bare.stdout
        assert run.stderr == ""
        assert self.server.told(run) == self.server.told(self.bare)

    def probes(self, run):
        """The counters of the run's process by name, each adding up; None: the process was not recorded."""
        _, found = self.ask("status", run.path)
        if not found or not found["processes"]:
            return None
        assert len(found["processes"]) == 1
        probes = {p["name"]: p for p in found["processes"][0]["probes"]}
        for p in probes.values():
            ended = p["committed"] + p["filtered"] + sum(p["skipped"].values()) + sum(p["dropped"].values()) + p["errors"]
            assert p["attempted"] == ended + p["in_flight"], p
        return probes

    def measured(self, run):
        """What the log holds of each kind of event, in order: the roll-up of its fingerprint, None where there is none."""
        done = self.slotprobe("export", run.path, "--format", "jsonl")
        assert done.returncode == 0, done.stderr
        records = [json.loads(line) for line in done.stdout.splitlines()]
        prints = {r["event"]: r["rollup"] for r in records
                  if r["type"] == "fingerprint" and r["role"] == "subject" and r["outcome"] == "committed"}
        return {kind: [prints.get(r["id"]) for r in records if r["type"] == "event" and r["kind"] == kind] for kind in EVENTS}

    def complete(self, run, probes):
        """Does what a verdict needs stand in the log as in the good run: every donation, every restore, with the same bytes; and is of
        everything else no attempt uncounted?"""
        good, hashes = self.good_probes, self.measured(run)
        return (all(probes[p]["attempted"] == good[p]["attempted"] for p in good)
                and all(probes[p]["committed"] == good[p]["committed"] for p in ("core.donate", "core.restore", "core.graph_launch"))
                and all(hashes[kind] == self.good_hashes[kind] for kind in ("donate", "restore")))

    def honest(self, run):
        """Judges the verdicts on a run with faults. Returns (verify's status, diff's status, diff's reason codes)."""
        verified, whole = self.ask("verify", run.path)
        probes = self.probes(run)
        differs, found = self.ask("diff", self.other.path, run.path)
        assert differs in (0, 2, 3), found
        if probes is None:
            assert verified in (2, 3) and differs in (2, 3)
        else:
            assert verified in (0, 3) and differs in (0, 3)
            assert verified == 0 or whole["reasons"]
            assert differs == 0 or found["reasons"]
            assert differs == 3 or self.complete(run, probes), "equal, with a silent loss"
        return verified, differs, codes(found)


def codes(found):
    """The reason codes of a verdict."""
    return sorted({r["code"] for r in found["reasons"]}) if found else []


def some(counted):
    """The rows of a group that are not zero."""
    return {name: n for name, n in counted.items() if n}


def calls(path):
    """The calls that a run made, by name, as the preload counted them."""
    data = path.read_bytes()
    rows = [COUNTED.unpack_from(data, at) for at in range(0, len(data), COUNTED.size)]
    return {name.rstrip(b"\0").decode(): n for name, n in rows if n}
