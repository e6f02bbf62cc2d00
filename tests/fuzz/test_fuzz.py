# SPDX-License-Identifier: Apache-2.0
"""Hostile input to everything that the collector reads: the committed corpus through sanitized fuzz targets, some seconds of fuzzing with a
fixed seed, a run cut at every byte, and sizes that no memory holds."""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tarfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
import loggen  # noqa: E402
import seeds  # noqa: E402
from seeds import lz4_repeated, sealed  # noqa: E402

TARGETS = ["log", "page", "manifest", "points", "run"]
LIMIT = 512 << 20
FUZZ_SECONDS = int(os.environ.get("FUZZ_SECONDS", "12"))  # of each target
ENV = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}


@pytest.fixture(scope="module")
def programs(build):
    """The folder of the fuzz targets, up to date."""
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "-C", str(ROOT), "fuzz-programs", f"BUILD={build.name}", "SAN="],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return build


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The committed corpus, unpacked, with the seeds that it grew from."""
    folder = tmp_path_factory.mktemp("corpus")
    subprocess.run([sys.executable, "-B", HERE / "seeds.py", folder], check=True)
    for target in TARGETS:
        with tarfile.open(HERE / "corpus" / f"{target}.tar.xz") as packed:
            packed.extractall(folder / target)
    return folder


def fuzz(programs, target, *arguments):
    return subprocess.run([programs / "fuzz" / f"fuzz_{target}", "-rss_limit_mb=1024", "-timeout=20", *map(str, arguments)], capture_output=True,
                          text=True, env=ENV, timeout=600)


def test_the_corpus_is_small():
    assert sum(p.stat().st_size for p in (HERE / "corpus").iterdir()) < 300 << 10


@pytest.mark.parametrize("target", TARGETS)
def test_corpus(programs, corpus, target):
    files = sorted((corpus / target).iterdir())
    assert len(files) > 10
    done = fuzz(programs, target, *files)
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stderr.count("Executed ") == len(files)


@pytest.mark.parametrize("target", TARGETS)
def test_some_seconds_of_fuzzing(programs, corpus, tmp_path, target):
    grown = tmp_path / "grown"
    grown.mkdir()
    done = fuzz(programs, target, f"-max_total_time={FUZZ_SECONDS}", "-seed=1", "-max_len=65536", "-print_final_stats=1",
                f"-artifact_prefix={tmp_path}/", grown, corpus / target)
    assert done.returncode == 0, done.stderr[-6000:]
    assert int(re.search(r"number_of_executed_units: (\d+)", done.stderr).group(1)) > 100


# ---- cut at every byte ----


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    return loggen.Run("graph-on", seeds.serve()).write(tmp_path_factory.mktemp("cut") / "run")


def cut(programs, run, kind, *more):
    return subprocess.run([programs / "tests" / "fuzz" / "truncate", run, kind, *map(str, more)], capture_output=True, text=True, timeout=900)


@pytest.mark.parametrize("kind", ["log", "json"])
def test_cut_at_every_byte(programs, small_run, kind):
    done = cut(programs, small_run, kind)
    assert done.returncode == 0, done.stderr
    size = next(small_run.glob(f"*.{kind}")).stat().st_size
    assert done.stdout.startswith(f"{size} cuts")


def test_a_counters_page_cut(programs, small_run):
    """At every byte of its head and of the rows in use, and every 61st of the empty rows that follow; FUZZ_WHOLE=1: at every byte of its
    62 kB, which takes a minute or two."""
    page = next(small_run.glob("*.ctr")).read_bytes()
    used = len(page.rstrip(b"\0")) + 300
    for step, first, last in [(1, 0, len(page))] if os.environ.get("FUZZ_WHOLE") else [(1, 0, used), (61, used, len(page))]:
        done = cut(programs, small_run, "ctr", step, first, last)
        assert done.returncode == 0 and int(done.stdout.split()[0]) >= (last - first) // step, done.stdout + done.stderr


def test_a_whole_run_is_not_taken_for_a_cut_one(programs, small_run, tmp_path):
    """The red twin: a file that lost nothing but what nobody needs fails the same program."""
    whole = loggen.Run("graph-on", seeds.serve()).write(tmp_path / "run")
    log = next(whole.glob("*.log"))
    log.write_bytes(log.read_bytes() + b"\0")  # cut by that one byte it is whole again
    done = cut(programs, whole, "log", 1, log.stat().st_size - 1)
    assert done.returncode == 1 and "status 0" in done.stderr


# ---- the command itself, under a limit of memory ----

VERBS = [["status"], ["verify"], ["check"], ["report"], ["diff"], ["report", "--format", "html"],
         ["export", "--format", "jsonl"], ["export", "--format", "csv"], ["export", "--format", "perfetto"]]


def limited(build, words, *runs):
    return subprocess.run([build / "slotprobe", *words, *runs], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)))


def answers(build, run, other, allowed):
    for words in VERBS:
        done = limited(build, words, *([run, other] if words == ["diff"] else [run]))
        judges = words[0] in ("verify", "check", "report", "diff")
        assert done.returncode in (allowed if judges else {0, 2}), (words, done.returncode, done.stderr)
        said = done.stderr.splitlines()
        fewest, most = (1, 1) if done.returncode == 2 else (0, 0 if judges else 1)
        assert fewest <= len(said) <= most, (words, done.returncode, done.stderr)


@pytest.mark.parametrize("kind, at", [("log", a) for a in (0, 7, 8, 71, 72, 100, 0.5, 0.99)] + [("ctr", a) for a in (0, 8, 100, 0.5)]
                         + [("json", a) for a in (0, 1, 0.5)])
def test_cut_command(build, small_run, tmp_path, kind, at):
    """The same by the command itself, at some places."""
    run = loggen.Run("graph-on", seeds.serve()).write(tmp_path / "run")
    file = next(run.glob(f"*.{kind}"))
    data = file.read_bytes()
    file.write_bytes(data[:int(at * len(data)) if isinstance(at, float) else at])
    for words in VERBS:
        done = limited(build, words, *([run, small_run] if words == ["diff"] else [run]))
        judges = words[0] in ("verify", "check", "report", "diff")
        wanted = 2 if kind == "json" else 3 if judges else 0
        lines = 1 if wanted == 2 or not (judges or (kind == "ctr" and words[-1] in ("csv", "perfetto"))) else 0
        assert (done.returncode, len(done.stderr.splitlines())) == (wanted, lines), (words, done.returncode, done.stderr)


def chunk_with(at: int, value: int) -> bytes:
    """One chunk of one record, whose header claims `value` in field `at`, under a right checksum."""
    body = loggen.record(loggen.STEP, 1, 1, 5, 1, 1, 1, 0, "decode")
    head = [0x4b4e4843, 0, 0, 0, 1, len(body), len(body), 0, loggen.crc32c(body), 0]
    head[at] = value
    return sealed(head, body)


def hostile_logs() -> dict:
    p = loggen.Process()
    head = p.log_bytes()[:72]
    pools = loggen.Process()
    for i in range(64):
        pools.put(loggen.POOL, 1, i, 0, 0, 1 << 62, 65536, 0, 1 << 63, 0, 0, "huge")
        pools.put(loggen.PLANE, i, 65535, 0, 1, 0, 1, 1 << 60, 1 << 62, "t")
    over = loggen.Process()
    for i in range(5000):
        over.put(loggen.POOL, 1, i, 0, 0, 1, 1, 0, 1, 0, 0, "p")
    planes = loggen.Process()
    pool = planes.pool(slots=2)
    planes.put(loggen.FINGERPRINT, 1, 1, 1, pool.index, 0, 0, 0, 0, 0x7fffffff, 7)
    planes.put(loggen.FINGERPRINT, 2, 1, 1, pool.index, 0, 0, 0xffffffff, 1, 0xffffffff, 7)
    return {"records": head + chunk_with(4, 0xffffffff), "raw": head + chunk_with(5, 0xffffffff), "stored": head + chunk_with(6, 0xffffffff),
            "seq": head + chunk_with(2, (1 << 64) - 1), "first": head + chunk_with(3, (1 << 64) - 1), "pools": pools.log_bytes(),
            "many pools": over.log_bytes(), "planes": planes.log_bytes()}


@pytest.mark.parametrize("which", hostile_logs())
def test_huge_claims(build, small_run, tmp_path, which):
    run = loggen.Run("graph-on", seeds.serve()).write(tmp_path / "run")
    next(run.glob("*.log")).write_bytes(hostile_logs()[which])
    answers(build, run, small_run, {2, 3})


@pytest.mark.parametrize("kind, size", [("log", 1 << 40), ("log", 3 << 30), ("ctr", 1 << 40), ("json", 1 << 40)])
def test_files_with_huge_holes(build, small_run, tmp_path, kind, size):
    run = loggen.Run("graph-on", seeds.serve()).write(tmp_path / "run")
    os.truncate(next(run.glob(f"*.{kind}")), size)
    answers(build, run, small_run, {2, 3})


@pytest.mark.parametrize("words, status", [(["status"], 0), (["verify"], 3), (["check"], 2), (["report"], 2), (["diff"], 2)],
                         ids=lambda w: w[0] if isinstance(w, list) else None)
def test_a_small_file_that_holds_more_than_memory(build, small_run, tmp_path, words, status):
    """Two million events in a file of some hundred kilobytes: what keeps them all says that there is no memory, in one line."""
    run = loggen.Run("graph-on", seeds.serve()).write(tmp_path / "run")
    event = loggen.record(loggen.EVENT, 1, 1, loggen.DONATE, 0, 1, 0, 16, 16, 1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    times = 65536 // len(event)
    block = lz4_repeated(event, times)
    chunks = [sealed([0x4b4e4843, 0, seq, seq * times, times, len(event) * times, len(block), 1, loggen.crc32c(block), 0], block)
              for seq in range(5000)]
    log = next(run.glob("*.log"))
    log.write_bytes(log.read_bytes()[:72] + b"".join(chunks))
    assert log.stat().st_size < 3 << 20
    done = limited(build, words, *([run, small_run] if words == ["diff"] else [run]))
    said = done.stderr.decode().splitlines()
    assert done.returncode == status and len(said) == (status == 2), said
    assert status != 2 or "out of memory" in said[0], said
