# SPDX-License-Identifier: Apache-2.0
"""What the test of llama.cpp's server works with: a server recorded or bare, the requests it is driven with, and what slotprobe and the
server's own log say of the run."""
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

START_SECONDS = 60
REQUEST_SECONDS = 60


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A llama-server, under `slotprobe record` when `run` is given."""

    def __init__(self, lab, model, run=None, arm=None, probes=("llamacpp",), env=None, verbose=True):
        self.port = free_port()
        self.log_path = lab.folder / f"server{lab.count}.log"
        lab.count += 1
        self.log_file = open(self.log_path, "wb")
        command = [lab.programs / "llama-server", "-m", model, "-c", "1024", "-np", "2", "-b", "64", "-ub", "64", "-ngl", "99", "-fa",
                   "off", "--no-warmup", "-cms", "0", "-ctxcp", "8", "-t", "1", "-tb", "1", "--host", "127.0.0.1", "--port", self.port,
                   "-lv", "5" if verbose else "1"]
        if run:
            command = [lab.slotprobe, "record", "-o", run, "--arm", arm, *(a for p in probes for a in ("--probe", p)), "--", *command]
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=self.log_file,
                                        stderr=subprocess.STDOUT, env=lab.env | (env or {}))
        self.wait_until_healthy()

    def wait_until_healthy(self):
        """Returns when the server takes requests."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.02)
        tail = self.log()[-3000:]
        self.stop()
        raise RuntimeError(f"the server did not start:\n{tail}")

    def complete(self, slot: int, prompt: list[int], n: int) -> list[int]:
        """Greedy completion of token ids in a slot: the tokens."""
        body = {"prompt": prompt, "n_predict": n, "temperature": 0, "id_slot": slot, "cache_prompt": True, "return_tokens": True,
                "ignore_eos": True}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/completion", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
            return json.load(answer)["tokens"]

    def stop(self) -> int:
        """Ends the server; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.log_file.close()
        return status

    def log(self) -> str:
        """What the server has printed."""
        return self.log_path.read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


ROUNDS = 6
PROMPT = 44  # tokens of a prompt that branches


def workload(server: Server, rounds: int = ROUNDS) -> list[list[int]]:
    """One request at a time on two slots. Each slot has a prefix of its own, from which requests branch (the server takes a checkpoint four
    tokens before the end of a prompt: it is restored), and answers that the next request continues (its checkpoint holds what decode has
    written). Every other round a slot takes up an old prompt again, which the server has put aside whole. Returns the answers."""
    rnd = random.Random(7)
    prefix = [[rnd.randrange(3, 100) for _ in range(40)] for _ in range(2)]
    other = [[rnd.randrange(3, 100) for _ in range(30)] for _ in range(2)]
    answers = []
    for turn in range(rounds):
        for slot in (0, 1):
            for branch in range(2):
                prompt = prefix[slot] + [10 + turn, 20 + slot, 24 + branch, 30]
                answer = server.complete(slot, prompt, 8)
                answers.append(answer)
            prompt = prompt + answer + [30 + turn, 31, 32, 33]
            answers.append(server.complete(slot, prompt, 6))
            if turn % 2:
                answers.append(server.complete(slot, other[slot] + [40 + turn, 41, 42, 43], 6))
    return answers


class Logged:
    """Donations and restores by the server's own log."""

    def __init__(self, text: str):
        def count(pattern):
            return len(re.findall(pattern, text))

        self.checkpoints = count(r"created context checkpoint \d+ of")
        self.saved = (count(r"- saving prompt with length") - count(r"prompt is already in the cache, skipping")
                      - count(r"exceeds cache size limit"))
        self.checkpoints_restored = count(r"restored context checkpoint \(")
        self.loaded = count(r"found better prompt with f_keep")

    @property
    def donations(self) -> int:
        """States that were handed over."""
        return self.checkpoints + self.saved

    @property
    def restores(self) -> int:
        """States that were taken up again."""
        return self.checkpoints_restored + self.loaded

    def as_dict(self) -> dict:
        """For the report."""
        return vars(self) | {"donations": self.donations, "restores": self.restores}


class Lab:
    """Records servers and asks slotprobe about the runs."""

    def __init__(self, build: pathlib.Path, programs: pathlib.Path, folder: pathlib.Path):
        self.build, self.programs, self.folder = build, programs, folder
        self.slotprobe = build / "slotprobe"
        self.fault = build / "tests" / "llamacpp" / "fault"
        self.count = 0
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLOTPROBE_", "GGML_CUDA_DISABLE", "FAULT_"))}

    def record(self, name, model, arm, env=None, probes=("llamacpp",), drive=workload):
        """Records a driven server: (run, answers, what the server logged)."""
        run = self.folder / name
        with Server(self, model, run, arm, probes, env) as server:
            answers = drive(server)
        return run, answers, Logged(server.log())

    def bare(self, model, env=None, drive=workload):
        """Drives a server without slotprobe: answers."""
        with Server(self, model, env=env) as server:
            return drive(server)

    def ask(self, verb, *args):
        """A verb with --json: (exit status, object)."""
        done = subprocess.run([str(self.slotprobe), verb, *map(str, args), "--json"], capture_output=True, text=True, timeout=120,
                              check=False)
        try:
            return done.returncode, json.loads(done.stdout)
        except json.JSONDecodeError:
            raise AssertionError(f"slotprobe {verb}: exit {done.returncode}, no JSON\n{done.stdout}\n{done.stderr}") from None

    def exported(self, run, *types):
        """The log's records of these types, in order."""
        done = subprocess.run([str(self.slotprobe), "export", str(run), "--format", "jsonl"], capture_output=True, text=True, timeout=120,
                              check=True)
        return [r for r in map(json.loads, done.stdout.splitlines()) if r["type"] in types]

    def probes(self, run):
        """The counters of the run's one process that has a pool, by name."""
        _, found = self.ask("status", run)
        assert len(found["processes"]) == 1, [p["comm"] for p in found["processes"]]
        return {p["name"]: p for p in found["processes"][0]["probes"]}

    def events(self, run):
        """Donations and restores in order, each with its fingerprint."""
        prints = {}
        for record in self.exported(run, "fingerprint"):
            if record["role"] == "subject":
                prints.setdefault(record["event"], []).append(record)
        return [e | {"prints": prints.get(e["id"], [])} for e in self.exported(run, "event") if e["kind"] in ("donate", "restore")]
