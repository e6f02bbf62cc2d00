# SPDX-License-Identifier: Apache-2.0
"""The whole tree passes its linters, and the folders keep to what docs/architecture.md says of them."""
import concurrent.futures
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CASE_IDS = ["stale-index-tail", "wrong-position", "snapshot-too-early", "capture-writes-slot0", "conv-leak", "nan-survives-clear",
            "graph-wipes-state", "padding-aliases-live", "switch-ignored", "path-never-walked", "padded-eager-equal",
            "sync-hides-it", "aliased-write", "two-bugs"]


def ours(path: pathlib.Path) -> bool:
    return not path.relative_to(ROOT).parts[0].startswith(("build", "."))


def tracked(*patterns: str) -> list[pathlib.Path]:
    """Files of the project by glob, without build folders."""
    found = []
    for pattern in patterns:
        found += [p for p in ROOT.rglob(pattern) if ours(p)]
    return sorted(found)


def run(*command, **options):
    return subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True, **options)


def test_clang_format():
    files = tracked("*.c", "*.h")
    assert len(files) > 50
    done = run("clang-format", "--dry-run", "-Werror", *files)
    assert done.returncode == 0, done.stderr[-4000:]


def tidy(path: pathlib.Path) -> str:
    flags = ["-std=gnu11", "-D_GNU_SOURCE", '-DSLOTPROBE_VERSION="0"', "-DSLOTPROBE_NO_SYMVER", "-I.", "-Icollector",
             "-Itests/cpudriver"]
    done = run("clang-tidy", "--quiet", path, "--", *flags, timeout=600)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_clang_tidy():
    files = [p for p in tracked("*.c") if p.relative_to(ROOT).parts[0] in ("shim", "probes", "collector")]
    assert len(files) > 30
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [c for c in pool.map(tidy, files) if c]
    assert not complaints, "\n".join(complaints)[-6000:]


def test_cppcheck():
    done = run("cppcheck", "--quiet", "--enable=warning,portability,performance", "--inline-suppr", "--std=c11", "--error-exitcode=1",
               "-j", os.cpu_count(), "-I", ".", "-I", "collector", "-D_GNU_SOURCE", '-DSLOTPROBE_VERSION="0"', "-D__x86_64__",
               "--suppress=missingIncludeSystem", "--suppress=unknownMacro", "shim", "probes", "collector", timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]


def test_shellcheck():
    scripts = [p for p in ROOT.rglob("*") if ours(p) and p.is_file()
               and p.read_bytes()[:40].startswith((b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash"))]
    scripts.append(ROOT / ".ci" / "run")
    assert len(scripts) >= 3
    done = run("shellcheck", *scripts)
    assert done.returncode == 0, done.stdout[-4000:]


def test_pyflakes():
    done = run("pyflakes3", *tracked("*.py"))
    assert done.returncode == 0, done.stdout[-4000:]


def includes(path: pathlib.Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M)


def resolved(path: pathlib.Path) -> list[str]:
    """What a source includes, as paths from the root."""
    found = []
    for name in includes(path):
        for base in (path.parent, ROOT, ROOT / "collector"):
            if (base / name).exists():
                found.append(str((base / name).resolve().relative_to(ROOT)))
                break
    return found


@pytest.mark.parametrize("folder, allowed", [
    ("shim", lambda p: p.startswith("shim/")),
    ("collector", lambda p: p.startswith("collector/") or p in ("shim/record/log_format.h", "probes/core/slotprobe.h")),
    ("probes/core/kernel", lambda p: p.startswith("probes/core/kernel/")),
    ("tests/toyserver", lambda p: p.startswith(("tests/toyserver/", "tests/cpudriver/cpukernel.h")) or p == "probes/core/slotprobe.h"),
])
def test_layers(folder, allowed):
    """shim includes nothing of probes; collector only the log format; the toy server only slotprobe.h."""
    seen = 0
    for path in tracked("*.c", "*.h", "*.cu"):
        if str(path.relative_to(ROOT)).startswith(folder + "/"):
            seen += 1
            bad = [p for p in resolved(path) if not allowed(p)]
            assert not bad, f"{path} includes {bad}"
    assert seen


def test_server_names_stay_in_their_adapters():
    names = re.compile(r"sglang|vllm|llama|tensorrt", re.I)
    for path in tracked("*.c", "*.h", "*.S", "*.cu"):
        where = str(path.relative_to(ROOT))
        if where.startswith(("shim/", "probes/core/", "collector/")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                assert not names.search(line), f"{where}:{number}: {line.strip()}"


def test_only_the_toy_knows_the_cases(build):
    """No binary but the toy contains a case id: the tool cannot know which bug is played."""
    looked = 0
    for path in build.rglob("*"):
        if not path.is_file() or path.suffix in (".o", ".d") or not path.read_bytes()[:4] == b"\x7fELF" or path.is_symlink():
            continue
        content = path.read_bytes()
        hits = [c for c in CASE_IDS if c.encode() in content]
        looked += 1
        if "toyserver" in path.parts:
            assert hits, f"{path}: the check looks for the wrong names"
        else:
            assert not hits, f"{path} contains {hits}"
    assert looked >= 4


def test_exports(build):
    """The preload exports only the documented names, and needs no CUDA, unwind or lz4 library."""
    lib = build / "libslotprobe.so"
    names = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", lib).stdout.splitlines()}
    stray = {n for n in names if not re.fullmatch(r"cu[A-Z]\w+|cudaGraphLaunch(_ptsz)?|dlsym|slotprobe_\w+", n)}
    assert "cuGraphLaunch" in names and "slotprobe_donate" in names
    assert not stray, stray
    needed = re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", lib).stdout)
    assert needed and set(needed) <= {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}, needed


def test_oldest_glibc(build):
    """Symbol versions no newer than glibc 2.28, so that the preload loads on userlands of 2018 and later."""
    text = run("objdump", "-T", build / "libslotprobe.so").stdout
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+(?:\.\d+)?)", text)}
    assert versions and max(versions) <= (2, 28), max(versions)


def test_links_and_leftovers():
    """Every relative link of every page leads somewhere that is in the repository, and no placeholder is left."""
    kept = set(run("git", "ls-files", "--cached", "--others", "--exclude-standard").stdout.splitlines())
    pages = [p for p in tracked("*.md")]
    assert len(pages) >= 5
    for page in pages:
        text = page.read_text()
        assert "@@" not in text, page
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" in target:
                continue
            path = os.path.normpath(os.path.join(page.parent.relative_to(ROOT), target))
            assert path in kept or any(k.startswith(path + "/") for k in kept), f"{page}: dead link {target}"


def test_toy_ptx():
    """The toy server's committed PTX is what its source makes, where the toolkit is there to tell."""
    done = run("tests/toyserver/ptx.sh", "check")
    assert done.returncode == 0, done.stdout + done.stderr
    if "skipped" in done.stdout:
        pytest.skip(done.stdout.strip())
