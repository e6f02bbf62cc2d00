#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slotprobe on a live SGLang server with a small hybrid model of random weights: graphs on and off, a fault put back, and what it costs.

    tests/gpu/sglang/run.py [--slotprobe FOLDER] [--json FILE] [--only CHECK]... [--pairs N] [--seconds S] [--quick] [--keep FOLDER]

Needs an importable SGLang, its kernels, and a GPU; no weights, no tokenizer, no network. All servers start at once and share the GPU.
The JSON is rewritten after each check; whatever hangs ends after --seconds. --quick leaves out the load and the throughput.
Exit status 0 when every check holds.
"""
import argparse
import concurrent.futures
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import load  # noqa: E402
from lab import INTERVAL, LARGE, LARGEST, Lab, as_told, donated_slots, holding_decoded  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
LEAST = 20  # donations that a run must have
PLANTED_ROUNDS = 4  # wrong states make other answers, and those other prompts: later on the two runs are of different workloads
BAR = 0.01  # of the throughput that may be lost
# us of the scheduler's thread that a counted call takes while it is recorded, at most (tests/bench/scheduler.py, tests/python/bench_donate.py); any
# other of the adapter's: as a donation. What else the core counts is what the adapter said.
CALL_US = {"core.graph_launch": 0.2, "sglang.step": 5}
DONATION_US = 20
NEW_TOKENS = 512  # of a request whose throughput is measured
# pairs -> one-sided 95 % quantile of Student's t with one degree less
STUDENT = {10: 1.833, 11: 1.812, 12: 1.796, 13: 1.782, 14: 1.771, 15: 1.761, 16: 1.753, 20: 1.729, 24: 1.714, 30: 1.699}
SERVERS = {
    "on": {"arm": "graph-on"},
    "off": {"arm": "graph-off", "graphs": False},
    "planted": {"arm": "graph-on", "planted": True, "record": ("--level", "launches", "--watch-slot", "0")},
    "load-on": {"arm": "graph-on", "deterministic": True, "slots": 160},
    "load-off": {"arm": "graph-off", "graphs": False, "deterministic": True, "slots": 160},
    "bare": {"shape": LARGE},
    "bare-too": {"shape": LARGE},
    "recorded": {"shape": LARGE, "arm": "graph-on"},
}
NEEDS = {"alone": ("on", "off"), "equal_alone": ("on", "off"), "same_tokens": ("on", "off"), "planted": ("off", "planted"),
         "loaded": ("load-on", "load-off"), "equal_loaded": ("load-on", "load-off"), "throughput": ("bare", "bare-too", "recorded")}
QUICK = ("alone", "equal_alone", "same_tokens", "planted")


def expect(condition, text):
    """A finding that must hold."""
    if not condition:
        raise AssertionError(text)


def codes(found):
    """The reason codes of a verdict."""
    return [r["code"] for r in found["reasons"]]


def brief(found):
    """What of a verdict goes into the report."""
    return {"verdict": found.get("verdict"), "reasons": [{k: r.get(k) for k in ("code", "text")} for r in found["reasons"]][:12]}


class Checks:
    """Each public method is a check: it returns what was measured, or raises."""

    def __init__(self, lab: Lab, pairs: int, servers):
        self.lab, self.pairs = lab, pairs
        self.live = {name: lab.start(name, **SERVERS[name]) for name in servers}
        self.driven = {}

    def drive(self, name):
        """Drives a server once, and stops it; what was answered."""
        if name not in self.driven:
            with self.live[name].ready() as server:
                loaded = name.startswith("load")
                said = load.at_once(server) if loaded else load.one_at_a_time(server, PLANTED_ROUNDS if name == "planted" else load.ROUNDS)
                said["doctor"] = self.lab.doctor(server, LARGEST - 1 if loaded else 1)
                self.driven[name] = said
        return self.driven[name]

    def drive_all(self, names):
        """Some at the same time: each is a server of its own."""
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            return dict(zip(names, pool.map(self.drive, names)))

    def one_run(self, name, graphs):
        """What a recorded run must show."""
        server, said = self.live[name], self.drive(name)
        probes = self.lab.probes(server.run)
        records = self.lab.exported(server.run, "event", "fingerprint")
        events = [r for r in records if r["type"] == "event"]
        donated = [e for e in events if e["kind"] == "donate"]
        launches = probes["core.graph_launch"]["attempted"]
        per_slot = donated_slots(records)
        result = {"start_s": server.seconds, "requests": said["requests"], "cached_tokens": said["cached_tokens"], "graph_launches": launches,
                  "doctor": said["doctor"],
                  "donations": len(donated), "restores": sum(e["kind"] == "restore" for e in events), "slots": len(per_slot),
                  "slots_donated_twice": sum(n > 1 for n in per_slot.values()),
                  "holding_decoded": holding_decoded(donated, said["asked"]),
                  "sglang": {n: {k: v for k, v in p.items() if k != "name" and v} for n, p in probes.items() if n.startswith("sglang.")}}
        expect(all(c["state"] == "ok" for c in said["doctor"].values()) and "graphs" in said["doctor"], f"doctor: {said['doctor']}")
        expect((launches > 0) == graphs, f"{launches} graph launches: {result}")
        expect(len(per_slot) > 1 and sum(per_slot.values()) == len(donated), f"donations without a measured slot: {per_slot}")
        expect(len(donated) >= LEAST and result["restores"] >= LEAST // 2, f"too few: {result}")
        expect(result["cached_tokens"] >= LEAST * INTERVAL, f"too little was reused: {result}")
        expect(result["holding_decoded"] >= LEAST // 2, f"too few donations hold what decode wrote: {result}")
        expect(not probes["sglang.hook_missing"]["attempted"] and not probes["sglang.hook_error"]["attempted"], f"hooks: {result['sglang']}")
        expect(probes["sglang.donate"]["committed"] >= LEAST, f"sglang.donate: {probes['sglang.donate']}")
        return result

    def checked(self, name):
        """`check` of a run must hold."""
        status, found = self.lab.ask("check", self.live[name].run)
        expect(status == 0, f"check of {name}: {status} {json.dumps(brief(found))}")
        return status

    def both(self, on, off):
        """Two arms, each by itself."""
        self.drive_all((on, off))
        result = {"on": self.one_run(on, True), "off": self.one_run(off, False)}
        reused = [result[arm]["slots_donated_twice"] for arm in ("on", "off")]
        return result | {"check": [self.checked(on), self.checked(off)], "slots_donated_twice": reused}

    def equal(self, on, off, *options):
        """diff of two arms must conclude 0."""
        self.drive_all((on, off))
        status, found = self.lab.ask("diff", self.live[off].run, self.live[on].run, *options)
        result = {"exit_status": status, "alignment": found["alignment"], "summary": found["summary"], "runs": found["runs"]} | brief(found)
        expect(status == 0, f"diff: {json.dumps(result)}")
        return result

    # ---- one request at a time ----

    def alone(self):
        """Both arms: launches or none, donations, restores, slots reused; `check` holds."""
        result = self.both("on", "off")
        expect(min(result["slots_donated_twice"]) > 0, f"no slot was donated again: {result}")
        return result

    def equal_alone(self):
        """Graphs or not, the state is the same."""
        return self.equal("on", "off")

    def same_tokens(self):
        """And so are the tokens."""
        said = self.drive_all(("on", "off"))
        answers = said["on"]["answers"]
        tokens = [token for answer in answers for token in answer]
        expect(answers and all(len(a) > INTERVAL for a in answers) and len(set(tokens)) > 1, f"answers that say nothing: {answers}"[:500])
        expect(answers == said["off"]["answers"], "other tokens with graphs than without")
        return {"requests": len(answers), "tokens": len(tokens), "distinct": len(set(tokens))}

    def planted(self):
        """The index tail put back: `check` finds it in that one run, `diff` names slot, length, kernel and region."""
        self.drive_all(("off", "planted"))
        server = self.live["planted"]
        expect("index tail planted" in server.log(), "the fault was not planted")
        status, alone = self.lab.ask("check", server.run)
        verdict, found = self.lab.ask("diff", self.live["off"].run, server.run)
        text = self.lab.text("diff", self.live["off"].run, server.run)
        differs = [s for s in found["slots"] if s["verdict"] == "differs"]
        result = {"check": status, "check_reasons": codes(alone), "diff": verdict, "slots": len(differs),
                  "claimed_len": [s["claimed_len"] for s in differs][:8], "explain": sorted({e["kind"] for s in differs for e in s["explain"]}),
                  "first_divergence": found["first_divergence"], "example": differs[0] if differs else None,
                  "lines": [line.strip()[:300] for line in text.splitlines() if "track" in line][:12], "text": text[:4000]}
        expect(status == 1 and "never_written" in codes(alone), f"check: {json.dumps(result)[:1500]}")
        expect(verdict == 1 and differs, f"diff: {json.dumps(result)[:1500]}")
        expect(all(s["claimed_len"][1] and s["slot"] > 0 for s in differs), f"a slot without its length: {result['claimed_len']}")
        expect("mamba_track_indices_buf" in text and "track_mamba_state" in text, f"kernel and region are not named: {result['lines']}")
        return result

    # ---- under load ----

    def loaded(self):
        """Padded batches of several requests where there are graphs; `check` holds in both arms."""
        result = self.both("load-on", "load-off")
        steps = self.lab.exported(self.live["load-on"].run, "step")
        result["padded_steps"] = sum(1 < s["batch"] < s["padded"] for s in steps)
        result["largest_batch"] = max((s["batch"] for s in steps), default=0)
        expect(result["padded_steps"] > 0, f"no padded batch of several requests: {result}")
        return result

    def equal_loaded(self):
        """By key, the state is the same."""
        return self.equal("load-on", "load-off", "--align", "key")

    # ---- what it costs ----

    @staticmethod
    def parts(n):
        """The CPUs in n parts. The servers change places after each round: CPUs of one machine differ by more than what is sought."""
        cpus = sorted(os.sched_getaffinity(0))
        return [cpus[i * len(cpus) // n:(i + 1) * len(cpus) // n] or cpus for i in range(n)]

    def throughput(self):
        """Tokens per second in turn: two bare servers, a recorded one, and the same recorded one while it is told to stop. Never two at once:
        they share the GPU. Two servers alike differ by about what is sought for as long as they live, which no number of turns averages out.
        So judged is one process, recorded against stopped, and with it what may be left while it is stopped: each call that slotprobe
        counts, at what it costs recorded. Beside it the recorded server may not fall behind both bare ones, which take every other turn."""
        live = {name: self.live[name].ready() for name in NEEDS["throughput"]}
        for other in self.live.values():
            if other.name not in live:
                other.stop()
        ways, rates = ("bare", "recorded", "bare-too", "stopped"), {way: [] for way in ("bare", "bare-too", "recorded", "stopped")}
        places, priced = self.parts(len(live)), 0
        for turn in range(-3, self.pairs):
            for i, server in enumerate(live.values()):
                server.place(places[(i + turn) % len(places)])
            for i in range(len(ways)):
                way = ways[(i + turn) % len(ways)] if turn // 4 % 2 else ways[(turn - i) % len(ways)]
                if way.startswith("bare") and turn % 2:
                    continue
                measured, seconds = self.driven_as(live, way, turn)
                if turn >= 0:  # what comes first warms caches
                    rates[way].append(round(measured, 1))
                    priced = max(priced, seconds)
        donations = self.lab.probes(live["recorded"].run)["sglang.donate"]
        for server in live.values():
            server.stop()
        result = losses(rates) | {"pairs": self.pairs, "bar": BAR, "stopped_at_most": priced / (LARGEST * NEW_TOKENS / max(rates["recorded"])),
                                  "donations": donations["committed"], "batch": LARGEST, "new_tokens": NEW_TOKENS, "layers": len(LARGE["layers"])}
        expect(len(rates["bare"]) >= 10 and donations["committed"] > 0 and priced > 0, f"measured nothing: {result}")
        expect(result["recorded_against_stopped"]["upper_95"] + result["stopped_at_most"] < BAR, f"too large a loss: {result}")
        expect(result["recorded_against_slower_bare"]["upper_95"] < BAR, f"slower than both bare servers: {result}")
        return result

    def driven_as(self, live, way, turn):
        """Tokens per second of one way, and the seconds that what was counted there may have cost."""
        server = live.get(way, live["recorded"])
        if not server.run:
            return load.rate(server, NEW_TOKENS, f"{turn} {way}"), 0
        self.lab.tell(server.run, "stop" if way == "stopped" else "start")
        before = self.lab.probes(server.run)
        rate = load.rate(server, NEW_TOKENS, f"{turn} {way}")
        after = self.lab.probes(server.run)
        expect(as_told(way == "recorded", before, after), f"turn {turn}, {way}: it did otherwise: {before} {after}")
        return rate, price(after) - price(before)


def price(probes) -> float:
    """Seconds of the scheduler's thread that all that was counted may have taken."""
    return sum(p["attempted"] * CALL_US.get(name, DONATION_US) for name, p in probes.items() if name.startswith("sglang.") or name in CALL_US) * 1e-6


def losses(rates) -> dict:
    """The losses between the ways of `throughput`; the bare servers have every other turn."""
    bare, recorded = [(a + b) / 2 for a, b in zip(rates["bare"], rates["bare-too"])], rates["recorded"][::2]
    slower = min(("bare", "bare-too"), key=lambda way: sum(rates[way]))
    return {"tokens_per_s": rates, "recorded_against_stopped": loss(rates["stopped"], rates["recorded"]),
            "recorded_against_bare": loss(bare, recorded), "recorded_against_slower_bare": loss(rates[slower], recorded),
            "stopped_against_bare": loss(bare, rates["stopped"][::2]), "bare_against_bare": loss(rates["bare"], rates["bare-too"])}


def loss(before, after) -> dict:
    """Of rates in pairs: the mean share that is lost, and its one-sided 95 % bounds."""
    losses = [1 - b / a for a, b in zip(before, after)]
    mean = sum(losses) / len(losses)
    deviation = (sum((x - mean) ** 2 for x in losses) / max(1, len(losses) - 1)) ** 0.5
    half = STUDENT.get(len(losses), 1.833) * deviation / len(losses) ** 0.5
    return {"mean": mean, "lower_95": mean - half, "upper_95": mean + half}


def machine() -> dict:
    """GPU, driver and CPU of this machine."""
    gpu = None
    if shutil.which("nvidia-smi"):
        asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], capture_output=True,
                               text=True, check=False, timeout=30)
        gpu = asked.stdout.strip() or None
    return {"gpu": gpu, "cpus": os.cpu_count(), "kernel": platform.release(), "libc": platform.libc_ver()[1],
            "python": platform.python_version()}


def versions() -> dict:
    """Of what is measured."""
    found = {}
    for package in ("sglang", "sglang-kernel", "flashinfer-python", "torch", "triton", "transformers"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


class Report:
    """The one file that is written, again after each check."""

    def __init__(self, path, left_out):
        self.path, self.left_out, self.rows, self.begun = path, left_out, [], time.monotonic()
        self.date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        self.about = {"machine": machine(), "versions": versions()}

    def ok(self):
        """Whether all that ran holds."""
        return bool(self.rows) and all(r["ok"] for r in self.rows)

    def write(self, finished=False):
        """As far as it got."""
        if self.path:
            self.path.write_text(json.dumps({"date": self.date, **self.about, "script": "tests/gpu/sglang/run.py", "finished": finished,
                                             "left_out": self.left_out,
                                             "ok": finished and self.ok(), "seconds": round(time.monotonic() - self.begun, 1),
                                             "checks": self.rows}, indent=1) + "\n")

    def perform(self, checks, name):
        """One check: its row."""
        begun = time.monotonic()
        try:
            result, error = getattr(checks, name)(), None
        except (AssertionError, RuntimeError, OSError, LookupError, TypeError, ValueError, urllib.error.URLError, subprocess.SubprocessError) as failure:
            result, error = None, "".join(traceback.format_exception_only(failure)).strip()[-6000:]
        row = {"check": name, "ok": not error, "seconds": round(time.monotonic() - begun, 1), "result": result, "error": error}
        print(f"{'FAIL' if error else 'ok  '}  {name:14} {row['seconds']:6.1f} s  {(error or json.dumps(result))[:700]}", flush=True)
        self.rows.append(row)
        self.write()


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slotprobe", type=pathlib.Path, default=ROOT / "build", help="the folder that make leaves")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=list(NEEDS))
    parser.add_argument("--pairs", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=570)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="keep runs and server logs here")
    return parser.parse_args()


def give_up(lab, report, garbage):
    """The time is over: whatever hangs is ended, and what was measured stays."""
    print("the time is over", file=sys.stderr, flush=True)
    report.rows.append({"check": "time", "ok": False, "seconds": None, "result": None, "error": "the time was over"})
    report.write()
    lab.stop()
    if garbage:
        shutil.rmtree(garbage, ignore_errors=True)
    os._exit(1)


def main() -> int:
    """Runs the checks."""
    args = arguments()
    wanted = args.only or (list(QUICK) if args.quick else list(NEEDS))
    folder = args.keep or pathlib.Path(tempfile.mkdtemp(prefix="slotprobe-sglang-"))
    folder.mkdir(parents=True, exist_ok=True)
    report, lab = Report(args.json, [name for name in NEEDS if name not in wanted]), Lab(args.slotprobe.resolve(), folder.resolve())
    timer = threading.Timer(args.seconds, give_up, (lab, report, None if args.keep else folder))
    timer.daemon = True
    timer.start()
    try:
        checks = Checks(lab, args.pairs, [s for s in SERVERS if any(s in NEEDS[c] for c in wanted)])
        for name in NEEDS:
            if name in wanted:
                report.perform(checks, name)
    finally:
        timer.cancel()
        lab.stop()
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    report.write(finished=True)
    return 0 if report.ok() else 1


if __name__ == "__main__":
    sys.exit(main())
