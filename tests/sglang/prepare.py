# SPDX-License-Identifier: Apache-2.0
"""Lays the pinned release of SGLang where the tests of its adapter can import it, once a machine.

Its own Python files run as they are, on the PyTorch and Triton that it asks for. No GPU is needed: NVIDIA's libraries, which PyTorch
names, are stood in for by empty ones whose calls answer "no device" (2.5 GB are not fetched). Prints the folder. Needs the package
index only where the folder is not there yet.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SGLANG = "0.5.23"  # `make drift` says when there is a newer one
WHEELS = {f"sglang=={SGLANG}": (), "torch==2.14.1": ("torch/include/", "torch/share/", "torch/test/"),
          "triton==3.8.0": ("triton/backends/nvidia/bin/", "triton/backends/nvidia/lib/", "triton/backends/amd/lib/", "triton/FileCheck")}
LAYOUT = 1  # of the folder
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so|ld-linux)")
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE, cudaErrorNoDevice


def folder():
    """Where it lies, by what is asked for."""
    asked = repr((LAYOUT, WHEELS, sys.version)) + (HERE / "requirements.txt").read_text()
    name = "sglang-" + hashlib.sha256(asked.encode()).hexdigest()[:12]
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "slotprobe" / name


def pip(*args):
    """pip of this interpreter; its output only where it fails."""
    done = subprocess.run([sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *map(str, args)], capture_output=True, text=True,
                          timeout=1500, check=False)
    if done.returncode:
        sys.exit(f"prepare.py: pip {args[0]} failed: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.stdout}")


def unpack(wheels, site):
    """The wheels, without what no test needs."""
    for asked, unneeded in WHEELS.items():
        pip("download", "--no-deps", "-d", wheels, asked)
        wheel = next(wheels.glob(asked.split("==")[0] + "-*.whl"))
        with zipfile.ZipFile(wheel) as packed:
            for member in packed.infolist():
                if not member.filename.startswith(unneeded or ("\0",)):
                    packed.extract(member, site)
        wheel.unlink()


def tool(*args):
    """The lines that a binutils program prints."""
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()


def wanted(libraries):
    """What PyTorch's libraries want of libraries that are not there: {library: {version or None: names}}."""
    here, defined, loose, found = {p.name for p in libraries}, set(), set(), {}
    for library in libraries:
        file_of, current = {}, None
        for line in tool("readelf", "-dVW", library):
            needed = re.search(r"\(NEEDED\).*\[(.*)\]", line)
            if needed and needed[1] not in here and not SYSTEM.match(needed[1]):
                found.setdefault(needed[1], {})
            begins = re.search(r"File: (\S+)", line)
            current = begins[1] if begins else current
            version = re.search(r"Name: (\S+)\s+Flags", line)
            if version:
                file_of[version[1]] = current
        for line in tool("nm", "-D", library):
            kind, name = line.split()[-2:]
            name, _, version = name.replace("@@", "@").partition("@")
            if kind != "U":
                defined.add(name)
            elif not version:
                loose.add(name)
            elif file_of.get(version) in found or not SYSTEM.match(file_of.get(version) or "libc.so"):
                found.setdefault(file_of[version], {}).setdefault(version, set()).add(name)
    home = next(name for name in sorted(found) if name.startswith("libcudart"))
    found[home].setdefault(None, set()).update(n for n in loose - defined if re.match(r"cu|nccl|nv|__cuda", n))
    return found


def stand_ins(site, to):
    """Builds the empty libraries."""
    to.mkdir()
    libraries = [*(site / "torch" / "lib").glob("*.so*"), *(site / "torch").glob("*.so")]
    for name, versions in wanted(libraries).items():
        source, script = to / f"{name}.c", to / f"{name}.map"
        source.write_text("".join(f"int {n}(void) {{ return {NO_DEVICE}; }}\n" for ns in versions.values() for n in sorted(ns)))
        script.write_text("".join(f"{v} {{ global: {'; '.join(sorted(ns))}; }};\n" for v, ns in versions.items() if v))
        versioned = [f"-Wl,--version-script={script}"] if any(versions) else []
        subprocess.run(["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", "-o", to / name, source, f"-Wl,-soname,{name}", *versioned],
                       check=True, timeout=120)
        source.unlink()
        script.unlink()


def prepare():
    """Makes the folder as a whole or not at all; returns it."""
    done = folder()
    if done.is_dir():
        return done
    done.parent.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="making.", dir=done.parent))
    try:
        print("slotprobe: fetching SGLang, PyTorch and Triton for the adapter's tests (1 GB, once)", file=sys.stderr)
        pip("install", "--no-deps", "--target", work / "site", "-r", HERE / "requirements.txt")
        unpack(work / "wheels", work / "site")
        stand_ins(work / "site", work / "nvidia")
        shutil.rmtree(work / "wheels")
        for old in done.parent.glob("sglang-*"):
            shutil.rmtree(old, ignore_errors=True)
        work.rename(done)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return done


if __name__ == "__main__":
    print(prepare())
