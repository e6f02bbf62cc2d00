# SPDX-License-Identifier: Apache-2.0
"""What the test of SGLang works with: a live server, recorded or bare, and what slotprobe says of its run."""
import collections
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS, REQUEST_SECONDS, STOP_SECONDS, ASK_SECONDS = 170, 60, 20, 60
INTERVAL = 64  # tokens between two checkpoints of a decoding request: page, chunk and track interval alike
LARGEST = 8  # requests of the largest captured batch

# Random weights: layers of attention and of Mamba2, whose kernels are Triton's. The larger one takes about as long for a step as small
# models that people serve.
SMALL = {"hidden_size": 256, "heads": 4, "layers": ["attention", "mamba", "mamba", "attention", "mamba", "mamba"]}
LARGE = {"hidden_size": 4096, "heads": 64, "layers": (["attention"] + ["mamba"] * 5) * 6}
HEAD, KEY_HEADS, VOCABULARY = 64, 2, 4096


def configuration(shape: dict) -> dict:
    """config.json of a GraniteMoeHybrid without experts and without position embeddings."""
    hidden = shape["hidden_size"]
    return {
        "architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid", "torch_dtype": "bfloat16",
        "vocab_size": VOCABULARY, "tie_word_embeddings": False, "hidden_size": hidden, "intermediate_size": 2 * hidden,
        "shared_intermediate_size": 2 * hidden, "num_hidden_layers": len(shape["layers"]), "layer_types": shape["layers"],
        "num_attention_heads": shape["heads"], "num_key_value_heads": KEY_HEADS, "hidden_act": "silu", "initializer_range": 0.02,
        "rms_norm_eps": 1e-05, "max_position_embeddings": 8192, "attention_bias": False, "position_embedding_type": "nope",
        "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_d_head": HEAD, "mamba_n_heads": 2 * hidden // HEAD,
        "mamba_n_groups": 1, "mamba_chunk_size": INTERVAL, "mamba_conv_bias": True, "mamba_proj_bias": False,
        "embedding_multiplier": 12.0, "logits_scaling": 8.0, "attention_multiplier": 0.125, "residual_multiplier": 0.22,
        "num_local_experts": 0, "num_experts_per_tok": 0, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def free_port() -> int:
    """A port that nobody listens on. SGLang derives others from it."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A live SGLang server, under `slotprobe record` when `arm` is given."""

    def __init__(self, lab, name, shape=None, arm=None, graphs=True, deterministic=False, planted=False, slots=40, record=()):
        self.lab, self.name, self.run = lab, name, lab.folder / f"run-{name}" if arm else None
        self.log_path, self.port, self.answered = lab.folder / f"server-{name}.log", free_port(), False
        model = lab.folder / f"model-{name}"
        model.mkdir()
        (model / "config.json").write_text(json.dumps(configuration(shape or SMALL), indent=1))
        command = [sys.executable, "-m", "sglang.launch_server", "--model-path", model, "--load-format", "dummy", "--skip-tokenizer-init",
                   "--attention-backend", "triton", "--sampling-backend", "pytorch", "--grammar-backend", "none", "--host", "127.0.0.1",
                   "--port", self.port, "--mem-fraction-static", "0.6", "--max-total-tokens", "65536", "--context-length", "4096",
                   "--mamba-radix-cache-strategy", "extra_buffer", "--mamba-track-interval", INTERVAL, "--page-size", INTERVAL,
                   "--max-running-requests", LARGEST, "--max-mamba-cache-size", slots, "--cuda-graph-max-bs-decode", LARGEST,
                   "--skip-server-warmup", "--random-seed", "1", "--watchdog-timeout", "120", "--disable-prefill-cuda-graph"]
        command += [] if graphs else ["--disable-decode-cuda-graph"]
        command += ["--enable-deterministic-inference"] if deterministic else []
        if arm:
            command = [lab.slotprobe, "record", "-o", self.run, "--arm", arm, "--probe", "sglang", *record, "--", *command]
        plugins = [HERE / "weights", *([HERE / "index_tail"] if planted else [])]
        env = lab.env | {"PYTHONPATH": ":".join([*map(str, plugins), *filter(None, [lab.env.get("PYTHONPATH")])])}
        self.command, self.begun = [str(c) for c in command], time.monotonic()
        self.log_file = open(self.log_path, "wb")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log_file, stderr=subprocess.STDOUT, env=env,
                                        start_new_session=True)

    def ready(self):
        """Waits until the server takes requests; itself."""
        if self.answered:
            return self
        while time.monotonic() < self.begun + START_SECONDS and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2).close()
                self.answered = True
                self.seconds = round(time.monotonic() - self.begun, 1)
                return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError(f"server {self.name} did not start ({self.process.poll()}): {self.log()[-1500:]}")

    def post(self, path, body=None):
        """The answer to a request."""
        data = json.dumps(body).encode() if body is not None else b""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
            return answer.read()

    def generate(self, tokens: list, n: int) -> tuple:
        """Greedy: (the new tokens, how many of the prompt came from the cache)."""
        said = json.loads(self.post("/generate", {"input_ids": tokens, "sampling_params": {
            "temperature": 0, "max_new_tokens": n, "ignore_eos": True}}))
        return said["output_ids"], said["meta_info"].get("cached_tokens", 0)

    def place(self, cpus: list) -> None:
        """All threads of all processes of the server run on these CPUs from now on."""
        for process in pathlib.Path("/proc").iterdir():
            try:
                if process.name.isdigit() and os.getsid(int(process.name)) == self.process.pid:
                    for thread in (process / "task").iterdir():
                        os.sched_setaffinity(int(thread.name), cpus)
            except OSError:  # it ended meanwhile
                pass

    def log(self) -> str:
        """What the server has printed."""
        return self.log_path.read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends the server and all its processes; what was recorded is flushed first."""
        if self.log_file.closed:
            return
        if self.process.poll() is None:
            if self.run and self.answered:
                subprocess.run([str(self.lab.slotprobe), "ctl", str(self.run), "flush"], capture_output=True, timeout=ASK_SECONDS, check=False)
                time.sleep(1)
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # its session: stragglers too
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log_file.close()


def holding_decoded(donated: list, asked: list) -> int:
    """How many donations hold what decode wrote: longer than the prompt of a request that was under way then, and no longer than what it got.
    Without them, equal would say nothing of captured kernels. Events have the time of the clock that requests were taken by."""
    return sum(any(a["from"] <= e["t_ns"] <= a["to"] and a["prompt"] < e["claimed_len"] <= a["prompt"] + a["new"] for a in asked) for e in donated)


def donated_slots(records: list) -> collections.Counter:
    """How often each slot was donated and measured, by a run's events and fingerprints. The fingerprint names the slot; the event does not where
    the id is on the device."""
    named = {(r["process"], r["event"]): r["slot"] for r in records if r["type"] == "fingerprint" and r["role"] == "subject"}
    donated = [(r["process"], r["id"]) for r in records if r["type"] == "event" and r["kind"] == "donate"]
    return collections.Counter(named[d] for d in donated if d in named)


def as_told(recording: bool, before: dict, after: dict) -> bool:
    """Whether the counters of a server moved in between as they must: donations and graph launches are recorded while it is to record, and none
    is but what was in flight, though there are some, while it is not."""
    donated, launched = ({k: after[name][k] - before[name][k] for k in ("committed", "filtered")} for name in ("core.donate", "core.graph_launch"))
    if recording:
        return donated["committed"] > donated["filtered"] and launched["committed"] > 0
    return donated["filtered"] > 0 and donated["committed"] <= before["core.donate"]["in_flight"]


class Lab:
    """Where servers are started, and what slotprobe is asked about their runs."""

    def __init__(self, build: pathlib.Path, folder: pathlib.Path):
        self.slotprobe, self.folder, self.servers = build / "slotprobe", folder, []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")}
        self.env.setdefault("FLASHINFER_USE_CUDA_NORM", "1")
        self.env |= {"PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1", "SGLANG_USE_IPC_POOL_HANDLE_CACHE": "0"}

    def start(self, name, **options) -> Server:
        """A server on its way up."""
        self.servers.append(Server(self, name, **options))
        return self.servers[-1]

    def stop(self):
        """All of them."""
        for server in self.servers:
            try:
                server.stop()
            except (OSError, subprocess.SubprocessError) as failure:
                print(f"server {server.name}: {failure}", file=sys.stderr)

    def ask(self, verb, *args) -> tuple:
        """A verb with --json: (exit status, object)."""
        done = subprocess.run([str(self.slotprobe), verb, *map(str, args), "--json"], capture_output=True, text=True, timeout=ASK_SECONDS,
                              check=False)
        try:
            return done.returncode, json.loads(done.stdout)
        except json.JSONDecodeError:
            raise AssertionError(f"slotprobe {verb}: exit {done.returncode}, no JSON: {done.stderr.strip()[-500:]}") from None

    def tell(self, run, what) -> None:
        """Steers a running server, which must hear it."""
        done = subprocess.run([str(self.slotprobe), "ctl", str(run), what], capture_output=True, text=True, timeout=ASK_SECONDS, check=False)
        if done.returncode:
            raise AssertionError(f"slotprobe ctl {what}: exit {done.returncode}: {done.stderr.strip()[-500:]}")

    def doctor(self, server, concurrency) -> dict:
        """What `doctor --url` finds of a live server and its run, by the name of the check."""
        run = ["--run", server.run] if server.run else []
        _, found = self.ask("doctor", "--url", f"http://127.0.0.1:{server.port}", *run, "--tokens", INTERVAL + 20, "--concurrency", concurrency)
        return {c["name"]: c for c in found["checks"]}

    def text(self, verb, *args) -> str:
        """A verb's text."""
        return subprocess.run([str(self.slotprobe), verb, *map(str, args), "--color", "never"], capture_output=True, text=True,
                              timeout=ASK_SECONDS, check=False).stdout

    def exported(self, run, *kinds) -> list:
        """The log's records of these types."""
        done = subprocess.run([str(self.slotprobe), "export", str(run), "--format", "jsonl"], capture_output=True, text=True,
                              timeout=ASK_SECONDS, check=True)
        return [r for r in map(json.loads, done.stdout.splitlines()) if r["type"] in kinds]

    def probes(self, run) -> dict:
        """Counters of the scheduler, the one process of a run that has a pool."""
        _, found = self.ask("status", run)
        named = [{p["name"]: p for p in one["probes"]} for one in found["processes"]]
        schedulers = [n for n in named if n.get("sglang.pool", {}).get("attempted")]
        assert len(schedulers) == 1, f"{len(schedulers)} of {[p['comm'] for p in found['processes']]} registered a pool"
        return schedulers[0]
