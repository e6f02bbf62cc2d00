#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Grows the committed corpus: fuzzes each target for a while from what is there, keeps the smallest set of inputs that covers as much, and
packs it. `make fuzz-programs` first.

    tests/fuzz/fuzz.py [--seconds N] [--build FOLDER] [--from FOLDER] [TARGET]...

--from adds inputs found elsewhere: FOLDER/TARGET/*. A crash leaves its input in FOLDER/fuzz/found, and the corpus as it was."""
import argparse
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = {"log": 16384, "page": 8192, "manifest": 4096, "points": 2048, "run": 65536}  # longest input


def fuzzer(build: pathlib.Path, target: str, *arguments) -> str:
    found = build / "fuzz" / "found"
    found.mkdir(exist_ok=True)
    done = subprocess.run([build / "fuzz" / f"fuzz_{target}", "-rss_limit_mb=1024", "-timeout=20", f"-max_len={TARGETS[target]}",
                           f"-artifact_prefix={found}/{target}-", *map(str, arguments)], stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"}, check=False)
    if done.returncode:
        sys.exit(done.stderr[-6000:])
    return done.stderr


def pack(folder: pathlib.Path, archive: pathlib.Path) -> None:
    """The same inputs always make the same archive."""
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for data in sorted(p.read_bytes() for p in folder.iterdir()):
            entry = tarfile.TarInfo(hashlib.sha256(data).hexdigest()[:16])
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))


def grow(build: pathlib.Path, target: str, seconds: int, more: pathlib.Path | None) -> None:
    archive = HERE / "corpus" / f"{target}.tar.xz"
    with tempfile.TemporaryDirectory() as place:
        seeds, grown, least = (pathlib.Path(place, n) for n in ("seeds", "grown", "least"))
        subprocess.run([sys.executable, "-B", HERE / "seeds.py", seeds], check=True)
        grown.mkdir()
        least.mkdir()
        if archive.exists():
            with tarfile.open(archive) as packed:
                packed.extractall(grown)
        if seconds:
            said = fuzzer(build, target, f"-max_total_time={seconds}", "-print_final_stats=1", grown, seeds / target)
            print(target, [line for line in said.splitlines() if "DONE" in line or "executed_units" in line])
        fuzzer(build, target, "-set_cover_merge=1", least, grown, seeds / target, *([more / target] if more else []))
        archive.parent.mkdir(exist_ok=True)
        pack(least, archive)
        print(f"{target}: {len(list(least.iterdir()))} inputs, {archive.stat().st_size} bytes packed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    parser.add_argument("--from", dest="more", type=pathlib.Path)
    parser.add_argument("target", nargs="*", default=list(TARGETS))
    args = parser.parse_args()
    for target in args.target:
        grow(args.build, target, args.seconds, args.more)


if __name__ == "__main__":
    main()
