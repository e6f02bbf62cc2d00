#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slotprobe on an unmodified llama-server, with CUDA graphs and without: what must be seen, each fault beside its clean twin.

    tests/gpu/llamacpp/run.py [--cpu] [--source FOLDER] [--build FOLDER] [--planted FOLDER] [--models FOLDER] [--slotprobe FOLDER]
                              [--json FILE] [--only CHECK]... [--model NAME]... [--pairs N] [--prepare] [--keep FOLDER]

Without --build the server is built from --source, or the source that PyPI has (kept in ~/.cache/slotprobe-llamacpp). --build names a folder
with llama-server, test-llama-archs and their libraries; --planted one with the libggml-cuda.so.0 that has a graph-only fault (made with the
build if there is a CUDA compiler). --prepare only builds. --cpu takes a build without CUDA and shows what can then be concluded.
Exit status 0 when every check holds.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import source  # noqa: E402
from lab import PROMPT, Lab, Server, workload  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
NO_GRAPHS = {"GGML_CUDA_DISABLE_GRAPHS": "1"}
STUDENT = {10: 1.833, 20: 1.729}  # pairs -> one-sided 95 % quantile
BAR = 0.01  # of the throughput that may be lost
LEAST = 20  # donations and restores that a run must have


def expect(condition, text):
    """A finding that must hold."""
    if not condition:
        raise AssertionError(text)


def codes(found):
    """The reason codes of a verdict."""
    return [r["code"] for r in found["reasons"]]


def said_something(answers):
    """Whether there are answers of more than one token, none of them empty."""
    return all(answers) and len({token for answer in answers for token in answer}) > 1


def slots(found, verdict):
    """Slots with that verdict, by number."""
    return {s["slot"]: s for s in found["slots"] if s["verdict"] == verdict}


class Checks:
    """Each public method is a check: it returns what was measured, or raises."""

    def __init__(self, lab: Lab, models: dict, cuda: bool, planted, pairs: int):
        self.lab, self.models, self.cuda, self.planted, self.pairs = lab, models, cuda, planted, pairs
        self.on = "graph-on" if cuda else "graph-off"  # without CUDA nothing can launch a graph: both arms promise none
        self.runs = {}

    def run(self, name: str, model: str, arm: str, **options):
        """Records once for each name."""
        key = f"{model}-{name}"
        if key not in self.runs:
            self.runs[key] = self.lab.record(key, self.models[model], arm, **options)
        return self.runs[key]

    def off(self, model):
        """The clean run without graphs."""
        return self.run("off", model, "graph-off", env=NO_GRAPHS)

    def clean(self, model):
        """The clean run with graphs, where there are any."""
        return self.run("on", model, self.on)

    # ---- one model ----

    def seen(self, model):
        """Both arms: launches, donations and restores as the server's own log has them, slots reused, every plane non-zero, different
        prefixes different hashes, steps marked."""
        result = {}
        for arm, (run, _, logged) in (("on", self.clean(model)), ("off", self.off(model))):
            result[arm] = self.one_run(run, logged, self.cuda and arm == "on")
        return result

    def one_run(self, run, logged, graphs):
        """What one recorded run must show."""
        probes, events = self.lab.probes(run), self.lab.events(run)
        donated = [e for e in events if e["kind"] == "donate"]
        restored = [e for e in events if e["kind"] == "restore"]
        launches = probes["core.graph_launch"]["attempted"]
        expect((launches > 0) == graphs, f"{launches} graph launches")
        expect(len(donated) == logged.donations, f"{len(donated)} donations, the server's log has {logged.donations}")
        expect(len(restored) == logged.restores, f"{len(restored)} restores, the server's log has {logged.restores}")
        expect(logged.donations >= LEAST and logged.restores >= LEAST, f"too few: {logged.as_dict()}")
        expect(logged.loaded >= 1 and logged.saved >= 1, f"no whole prompt was saved and loaded: {logged.as_dict()}")
        per_slot = {s: sum(e["slot"] == s for e in donated) for s in {e["slot"] for e in donated}}
        expect(len(per_slot) == 2 and min(per_slot.values()) >= 2, f"slots were not reused: {per_slot}")
        for probe in ("llamacpp.donate", "llamacpp.restore", "core.donate", "core.restore"):
            p = probes[probe]
            expect(p["committed"] == p["attempted"] > 0, f"{probe}: {p}")
        expect(probes["llamacpp.symbols"]["errors"] == 0, f"{probes['llamacpp.symbols']}")
        expect(probes["llamacpp.checkpoint"]["committed"] == logged.checkpoints, f"{probes['llamacpp.checkpoint']}")
        smallest = min(p["absmax"] for e in donated for f in e["prints"] for p in f["planes"])
        expect(smallest > 0, "a plane is all zero")
        expect(all(int(e["key"], 16) and e["key_len"] == e["claimed_len"] > 0 for e in events), "an event without its exact prefix")
        by_hash = {}
        for e in events:
            by_hash.setdefault(e["prints"][0]["rollup"], set()).add((e["key"], e["claimed_len"]))
        expect(all(len(keys) == 1 for keys in by_hash.values()), "different prefixes with the same hash")
        modes = [s["mode"] for s in self.lab.exported(run, "step")]
        expect(1 in modes and (2 in modes) == graphs and set(modes) <= {1, 2}, f"step modes {sorted(set(modes))}")
        # answers were written by decode: without states that hold them, equal would say nothing of it
        decoded = sum(e["claimed_len"] > PROMPT for e in donated)
        expect(decoded >= LEAST, f"only {decoded} donations hold what decode wrote")
        status, found = self.lab.ask("check", run)
        expect(status == 0, f"check: {status} {codes(found)}")
        return {"graph_launches": launches, "donations": len(donated), "restores": len(restored), "log": logged.as_dict(),
                "keys": len({e["key"] for e in events}), "hashes": len(by_hash), "least_absmax": smallest,
                "holding_decoded": decoded, "planes": events[0]["prints"][0]["total_planes"], "steps_graph": modes.count(2),
                "steps_eager": modes.count(1), "check": status}

    def equal(self, model):
        """diff of the two arms: equal, and the tokens are."""
        (a, answers_off, _), (b, answers_on, _) = self.off(model), self.clean(model)
        status, found = self.lab.ask("diff", a, b)
        expect(status == 0, f"diff: {status} {codes(found)} {sorted(slots(found, 'differs'))}")
        expect(said_something(answers_off) and answers_off == answers_on, f"other tokens, or none: {answers_off[:3]} {answers_on[:3]}")
        return {"exit_status": status, "alignment": found["alignment"], "summary": found["summary"], "same_tokens": True}

    def switch_without_effect(self, model):
        """Graphs switched off in both runs, and on a machine without CUDA in any run: an arm that promised launches had none."""
        broken, _, _ = self.run("disabled", model, "graph-on", env=NO_GRAPHS)
        status, found = self.lab.ask("diff", self.off(model)[0], broken)
        expect(status == 3 and "switch_had_no_effect" in codes(found), f"diff: {status} {codes(found)}")
        return {"exit_status": status, "reasons": codes(found)}

    def altered(self, model):
        """One bit of one checkpoint of slot 1 flipped before the adapter sees it: found, and only there."""
        run, _, _ = self.run("altered", model, self.on, env={"FAULT_ALTER": "1,4"}, probes=("llamacpp", self.lab.fault))
        expect(self.lab.probes(run)["fault.done"]["attempted"] == 1, "the fault was not planted")
        status, found = self.lab.ask("diff", self.off(model)[0], run)
        differs = slots(found, "differs")
        expect(status == 1 and set(differs) == {1}, f"diff: {status} {codes(found)} {sorted(differs)}")
        twin, _ = self.lab.ask("diff", self.off(model)[0], self.clean(model)[0])
        expect(twin == 0, f"the clean twin: {twin}")
        return {"exit_status": status, "slots": sorted(differs), "planes": differs[1]["planes_differing"],
                "explain": [e["kind"] for e in differs[1]["explain"]], "clean_twin": twin}

    def nan(self, model):
        """One NaN in a state as it is restored to slot 0: non-finite from that event on, in that slot."""
        run, _, _ = self.run("nan", model, self.on, env={"FAULT_NAN": "0,3"}, probes=(self.lab.fault, "llamacpp"))
        expect(self.lab.probes(run)["fault.done"]["attempted"] == 1, "the fault was not planted")
        events = self.lab.events(run)
        bad = [i for i, e in enumerate(events) if any(p["nan"] or p["inf"] for f in e["prints"] for p in f["planes"])]
        expect(bad, "no NaN was seen")
        first = events[bad[0]]
        expect(first["kind"] == "restore" and first["slot"] == 0, f"the first NaN: {first['kind']} of slot {first['slot']}")
        expect(all(events[i]["slot"] == 0 for i in bad), "a NaN in another slot")
        after = [e for e in events[bad[0] + 1:] if e["kind"] == "donate" and e["slot"] == 0]
        spread = [any(p["nan"] for f in e["prints"] for p in f["planes"]) for e in after]
        expect(spread and spread[0], "the donation after the restore is finite")
        status, found = self.lab.ask("check", run)
        expect(status == 1 and "non_finite" in codes(found), f"check: {status} {codes(found)}")
        differs, verdict = self.lab.ask("diff", self.off(model)[0], run)
        expect(differs == 1, f"diff: {differs} {codes(verdict)}")
        kinds = [e["kind"] for s in slots(verdict, "differs").values() for e in s["explain"]]
        expect("non_finite" in kinds, f"explained as {kinds}")
        twin, _ = self.lab.ask("check", self.clean(model)[0])
        expect(twin == 0, f"the clean twin: {twin}")
        return {"first": {k: first[k] for k in ("id", "kind", "slot", "claimed_len")}, "events": len(events), "non_finite": len(bad),
                "later_donations": len(after), "of_them_nan": sum(spread), "check": status, "diff": differs, "clean_twin": twin}

    def graph_only(self, model):
        """A private build whose graph replays wipe a bit of state: found with graphs, and not there without."""
        if not self.cuda:
            return None
        expect(self.planted, "no planted build: give --planted, or a CUDA compiler")
        env = {"LD_LIBRARY_PATH": f"{self.planted}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
        run, _, _ = self.run("planted-on", model, "graph-on", env=env)
        twin, _, _ = self.run("planted-off", model, "graph-off", env=env | NO_GRAPHS)
        status, found = self.lab.ask("diff", twin, run)
        differs = slots(found, "differs")
        expect(status == 1 and differs, f"diff: {status} {codes(found)}")
        tensors = sorted({(p["tensor"], p["layer"]) for s in differs.values() for p in s["planes_differing"]})
        same, again = self.lab.ask("diff", self.off(model)[0], twin)
        expect(same == 0, f"the clean twin: {same} {codes(again)}")
        return {"exit_status": status, "slots": sorted(differs), "planes": tensors, "first_divergence": found["first_divergence"],
                "explain": sorted({e["kind"] for s in differs.values() for e in s["explain"]}), "clean_twin": same}

    def same_tokens(self, model):
        """The preload changes no token, in either arm."""
        result = {}
        for arm, env, recorded in (("on", {}, self.clean(model)), ("off", NO_GRAPHS, self.off(model))):
            bare = self.lab.bare(self.models[model], env)
            expect(said_something(bare) and bare == recorded[1], f"{arm}: other tokens with the preload, or none")
            result[arm] = {"answers": len(bare), "tokens": sum(map(len, bare))}
        return result

    # ---- once ----

    def throughput(self, model):
        """Requests per second with the preload and without, in interleaved pairs, each in a server of its own."""
        rates = {"bare": [], "recorded": []}
        for pair in range(self.pairs + 1):
            order = ("bare", "recorded") if pair % 2 else ("recorded", "bare")
            for kind in order:
                rate = self.rate(model, self.lab.folder / f"rate{pair}" if kind == "recorded" else None)
                if pair:  # the first warms the file cache
                    rates[kind].append(rate)
        losses = [1 - r / b for b, r in zip(rates["bare"], rates["recorded"])]
        mean = sum(losses) / len(losses)
        deviation = (sum((x - mean) ** 2 for x in losses) / max(1, len(losses) - 1)) ** 0.5
        half = STUDENT.get(len(losses), 2.0) * deviation / len(losses) ** 0.5
        noise = (max(rates["bare"]) - min(rates["bare"])) / (sum(rates["bare"]) / len(rates["bare"]))
        expect(len(losses) >= 10 and mean + half < BAR, f"a loss of {mean:.4f} +- {half:.4f} in {len(losses)} pairs, spread of bare ones {noise:.3f}")
        return {"requests_per_s": rates, "mean_loss": mean, "lower_95": mean - half, "upper_95": mean + half, "bare_spread": noise, "pairs": self.pairs}

    def rate(self, model, run):
        """Requests a second of one server over the workload, after one that warms it."""
        with Server(self.lab, self.models[model], run, self.on, verbose=False) as server:
            workload(server, 2)
            begun, n = time.perf_counter(), 0
            for _ in range(3):
                n += len(workload(server))
            rate = n / (time.perf_counter() - begun)
        donate = self.lab.probes(run)["core.donate"] if run else {"committed": LEAST}
        expect(donate["committed"] >= LEAST, f"nothing was recorded: {donate}")
        return rate

    def host_fingerprint(self, _):
        """The fingerprint of host memory against memcpy of the same bytes."""
        best = None
        for attempt in range(3):
            done = subprocess.run([str(self.lab.slotprobe), "record", "-o", str(self.lab.folder / f"host{attempt}"), "--arm", "graph-off",
                                   "--", str(self.lab.build / "tests" / "llamacpp" / "host_bench")], capture_output=True, text=True,
                                  env=self.lab.env, timeout=120, check=True)
            found = json.loads(done.stdout)
            ratios = {k: round(v["fingerprint_gb_s"] / v["copy_gb_s"], 3) for k, v in found.items() if isinstance(v, dict)}
            if not best or min(ratios.values()) > min(best["ratio"].values()):
                best = found | {"ratio": ratios}
        expect(min(best["ratio"].values()) >= 0.5, f"{best['ratio']} of memcpy")
        return best

    def without_cuda(self, model):
        """A process without CUDA: measured, but an arm that promises launches is not believed, and the driver is not made up."""
        if self.cuda:
            return None
        run, _, _ = self.run("unproven", model, "graph-on")
        status, found = self.lab.ask("diff", self.off(model)[0], run)
        expect(status == 3 and "switch_had_no_effect" in codes(found), f"diff: {status} {codes(found)}")
        _, report = self.lab.ask("report", run)
        _, live = self.lab.ask("status", run)
        text = subprocess.run([str(self.lab.slotprobe), "report", str(run)], capture_output=True, text=True, check=False).stdout
        expect("never fired" in next(line for line in text.splitlines() if "core.graph_launch" in line), "graph launches read as measured")
        expect(not live["processes"][0]["driver"], f"driver {live['processes'][0]['driver']}")
        return {"diff_with_an_arm_that_promises_launches": {"exit_status": status, "reasons": found["reasons"]},
                "report_reasons": report["reasons"], "driver": live["processes"][0]["driver"]}


PER_MODEL = ["seen", "equal", "switch_without_effect", "altered", "nan", "graph_only", "same_tokens"]
ONCE = ["without_cuda", "host_fingerprint", "throughput"]


def machine() -> dict:
    """GPU, driver and CPU of this machine."""
    gpu = None
    if shutil.which("nvidia-smi"):
        asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], capture_output=True,
                               text=True, check=False)
        gpu = asked.stdout.strip() or None
    return {"gpu": gpu, "cpus": os.cpu_count(), "kernel": platform.release(), "libc": platform.libc_ver()[1]}


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--source", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--planted", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--slotprobe", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=PER_MODEL + ONCE)
    parser.add_argument("--model", action="append", choices=source.ARCHITECTURES)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="keep runs and server logs here")
    parser.epilog = "Checks: " + ", ".join(PER_MODEL + ONCE)
    return parser.parse_args()


def prepare(args):
    """The programs, the planted library (None without CUDA), and the models."""
    cache = source.cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    programs = args.build.resolve() if args.build else source.build(cache, args.source, not args.cpu)
    planted = args.planted.resolve() if args.planted else None
    if not planted and not args.cpu and (programs.parent / "compile_commands.json").exists():
        planted = source.plant(programs.parent, cache / "planted")
    return programs, planted, source.models(programs, args.models or cache / "models")


def perform(checks, name, model):
    """One check: its row of the report. `ok` is null where it did not apply."""
    begun = time.monotonic()
    try:
        result, error = getattr(checks, name)(model), None
    except (AssertionError, RuntimeError, OSError, KeyError, StopIteration, subprocess.SubprocessError) as failure:
        result, error = None, "".join(traceback.format_exception_only(failure)).strip()
    seconds = round(time.monotonic() - begun, 1)
    word = "FAIL" if error else "ok  " if result else "none"
    print(f"{word}  {model or '-':14} {name:22} {seconds:6.1f} s  {error or json.dumps(result)[:150]}", flush=True)
    return {"check": name, "model": model, "ok": False if error else True if result else None, "seconds": seconds, "result": result, "error": error}


def main() -> int:
    """Runs the checks."""
    args = arguments()
    programs, planted, models = prepare(args)
    if args.prepare:
        print(f"programs: {programs}\nplanted: {planted}\nmodels: {[str(m) for m in models.values()]}")
        return 0
    wanted = args.model or source.ARCHITECTURES
    folder = args.keep or pathlib.Path(tempfile.mkdtemp(prefix="slotprobe-llamacpp-"))
    folder.mkdir(parents=True, exist_ok=True)
    checks = Checks(Lab(args.slotprobe.resolve(), programs, folder), models, not args.cpu, planted, args.pairs)
    rows = []
    try:
        for model in wanted:
            rows += [perform(checks, name, model) for name in PER_MODEL if name in (args.only or PER_MODEL)]
        rows += [perform(checks, name, wanted[0]) for name in ONCE if name in (args.only or ONCE)]
    finally:
        if not args.keep:
            source.free(folder)
    ok = not any(r["ok"] is False for r in rows) and any(r["ok"] for r in rows)
    if args.json:
        today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        args.json.write_text(json.dumps({"date": today, "machine": machine(), "script": "tests/gpu/llamacpp/run.py",
                                         "server": source.PACKAGE, "cuda": not args.cpu, "ok": ok, "checks": rows}, indent=1) + "\n")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
