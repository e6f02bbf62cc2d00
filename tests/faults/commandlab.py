# SPDX-License-Identifier: Apache-2.0
"""What the command's own fault tests work with: recorded runs, each verb on them once well, then once for each of its calls that fails, and
what must be true of every such run."""
import concurrent.futures
import os
import subprocess

from faultlab import calls

TOY = ("--requests", "4", "--layers", "1", "--slots", "12", "--concurrency", "2")
ARMS = {"off": ("graph-off",), "on": ("graph-on",), "bug": ("graph-on", "--bug", "stale-index-tail")}
TIMEOUT = 60


class Answer:
    """What one run of the command said, and left in its -o FILE."""

    def __init__(self, done, file):
        self.status, self.out, self.err = done.returncode, done.stdout or b"", done.stderr
        self.file = file.read_bytes() if file.exists() else None
        file.unlink(missing_ok=True)

    @property
    def said(self):
        """All of it."""
        return self.status, self.out, self.err, self.file

    def __str__(self):
        return f"status {self.status}, {self.err[:200]!r}, {len(self.out)} bytes"


class Command:
    """Runs the command on recorded runs, which stand in its arguments as {off}, {on}, {bug}, {many}; {file} is its -o FILE."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLOTPROBE_", "FAULT"))}
        self.env |= {"LD_LIBRARY_PATH": str(build / "cpudriver"), "LC_ALL": "C"}
        (folder / "srv").mkdir()
        (folder / "srv.points").write_text("srv.one\nsrv.two\nwatch 3\n")
        for name, (arm, *options) in ARMS.items():
            done = subprocess.run([build / "slotprobe", "record", "-o", folder / name, "--arm", arm, "--min-free", "0", "--", self.toy, "--arm",
                                   arm, *TOY, *options], capture_output=True, text=True, env=self.env, timeout=TIMEOUT, check=False)
            assert done.returncode == 0, done.stderr
        subprocess.run([build / "tests/export/biglog", folder / "many", "graph-off", "1", "4000", "50", "1", "lz4"], stdout=subprocess.DEVNULL, check=True)

    @property
    def toy(self):
        """The toy server."""
        return str(self.build / "toyserver" / "toyserver")

    def run(self, words, name="x", stdout=subprocess.PIPE, preexec=None, **environment):
        """The command with these words once."""
        file = self.folder / f"{name}.out"
        places = {arm: str(self.folder / arm) for arm in (*ARMS, "many")} | {"file": str(file), "toy": self.toy, "probe": str(self.folder / "srv"), "run": str(self.folder / f"run-{name}")}
        command = [str(self.build / "slotprobe"), *(word.format(**places) for word in words)]
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=self.env | environment,
                              timeout=TIMEOUT, preexec_fn=preexec, check=False)
        done.stderr = done.stderr.decode()
        return Answer(done, file)

    def faulty(self, words, name, **environment):
        """The same under the failing preload."""
        preload = str(self.build / "faults" / "command.so")
        return self.run(words, name, LD_PRELOAD=preload, **{k: str(v) for k, v in environment.items()})

    def count(self, words, **environment):
        """Its answer without a fault, and the calls that it makes."""
        counts = self.folder / "count"
        good = self.faulty(words, "count", FAULT_COUNT=counts, **environment)
        return good, calls(counts)


def spread(n, whole, step):
    """The numbers from 1 to n: all up to `whole`, then each `step`-th, and the last."""
    return sorted({*range(1, min(n, whole) + 1), *range(whole + step, n + 1, step), n})


def in_parallel(do, jobs):
    """Does them, two at a time; returns what is wrong."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(filter(None, pool.map(lambda job: do(*job), jobs)))
