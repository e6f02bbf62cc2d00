# SPDX-License-Identifier: Apache-2.0
"""The interposition layer alone: preloaded with a test observer into small programs, over a fake libcuda that counts."""

import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
WARN = "-Wall -Wextra -Werror -Wshadow".split()
CFLAGS = ["-std=gnu11", "-O2", "-g", "-D_GNU_SOURCE", f"-I{ROOT}", f"-I{HERE}", *WARN]
CC = os.environ.get("CC", "gcc")
RUNNER = os.environ.get("TEST_RUNNER", "").split()  # another architecture: CC its compiler, this its static emulator


def cc(*args):
    done = subprocess.run([CC, *CFLAGS, *map(str, args)], capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.exit(f"cannot compile:\n{done.stderr}", returncode=1)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Everything, compiled once: the preload, the fake drivers and runtimes, the other preloads, the programs."""
    out = tmp_path_factory.mktemp("hook")
    stub = out / "stub"
    stub.mkdir()
    hook = ROOT / "shim/hook"
    preload = ["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wvla", "-fPIC", "-fvisibility=hidden",
               "-ftls-model=initial-exec", "-fno-plt"]
    sources = [*sorted(hook.glob("*.[cS]")), HERE / "observer.c"]
    link = ["-shared", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,-z,nodelete"]
    cc(*preload, *link, "-Wl,-soname,preload.so", "-o", out / "preload.so", *sources)
    sources.remove(hook / "capture.c")
    cc(*preload, "-finstrument-functions", "-c", "-o", out / "capture.o", hook / "capture.c")
    cc(*preload, *link, "-Wl,-soname,paused.so", "-o", out / "paused.so", *sources, out / "capture.o")

    def lib(path, source, *args):
        cc("-fPIC", "-shared", "-o", path, HERE / source, f"-Wl,-soname,{path.name}", *args)

    lib(out / "libcuda.so.1", "fake_cuda.c", "-Wl,-Bsymbolic-functions")  # as the real one is
    lib(stub / "libcuda.so.1", "fake_cuda.c", "-DSTUB", "-Wno-attribute-alias")
    lib(out / "libcudart.so.12", "fake_cudart.c", "-DID=12", f"-Wl,--version-script={HERE / 'fake_cudart.map'}")
    lib(out / "libcudart.so.13", "fake_cudart.c", "-DID=13", f"-Wl,--version-script={HERE / 'fake_cudart.map'}")
    hidden = out / "hidden"
    hidden.mkdir()
    lib(hidden / "libcudart.so.13", "fake_cudart.c", "-DID=13", "-DHIDDEN")
    lib(out / "libplugin.so", "plugin.c")
    for n in ("12", "13"):
        lib(out / f"libplugin{n}.so", "plugin.c", "-DWITH_RUNTIME", out / f"libcudart.so.{n}")
    lib(out / "libstranger.so", "stranger.c")
    for name in ("libquiet.so", "libquiet-too.so"):
        lib(out / name, "quiet.c")
    for kind in ("NEXT", "HANDLE", "DLSYM"):
        lib(out / f"other_{kind}.so", "other.c", f"-D{kind}", "-Wl,-Bsymbolic-functions")
    for program, libs in {"linked": [out / "libcuda.so.1"], "capture": [out / "libcuda.so.1"], "dynamic": [],
                          "weak": [], "runtime": [], "bypass": []}.items():
        cc("-o", out / program, HERE / f"{program}.c", *libs, "-pthread")
    cc("-DLINKED", "-o", out / "runtime_linked", HERE / "runtime.c", out / "libcudart.so.13")
    return out


def run(built, program, *args, preload=("preload.so",), path=(), timeout=60, **env):
    preloads = " ".join(str(built / p) for p in preload)
    env = {**os.environ, "LD_PRELOAD": preloads, "LD_LIBRARY_PATH": ":".join([*map(str, path), str(built)]), **env}
    done = subprocess.run([*RUNNER, built / program, *args], env=env, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_every_entry_linked_and_looked_up(built):
    run(built, "linked", "every")


def test_what_the_observer_is_told(built):
    run(built, "linked", "told")


def test_launches_of_eight_threads_are_counted_exactly(built):
    run(built, "linked", "threads")


@pytest.mark.parametrize("what", ["absent", "v1", "v2", "dlvsym", "old", "stranger", "untouched"])
@pytest.mark.parametrize("bind", ["", "1"])
def test_dynamic(built, what, bind):
    run(built, "dynamic", what, **({"LD_BIND_NOW": bind} if bind else {}))


def test_stub_library_whose_functions_share_an_address(built):
    run(built, "dynamic", "stub", path=[built / "stub"])


def test_weak_references_without_a_driver(built):
    run(built, "weak")


def counted(text):
    rows = {}
    for line in text.splitlines():
        name, *pairs = line.split()
        rows[name] = {k: int(v) for k, v in (p.split("=") for p in pairs)}
    return rows


def test_next_preload_is_reached_as_without_us(built):
    """The linked call and the scope go on to the other preload; libcuda's own handle does not, here or without us."""
    rows = counted(run(built, "linked", "chain", preload=("preload.so", "other_NEXT.so")))
    assert rows["linked"] == {"ours": 1, "other": 1, "driver": 1}
    assert rows["scope"] == {"ours": 2, "other": 2, "driver": 2}
    assert rows["handle"] == {"ours": 3, "other": 2, "driver": 3, "unrouted": 0}


def test_preload_in_front_of_us(built):
    rows = counted(run(built, "linked", "chain", preload=("other_NEXT.so", "preload.so")))
    assert rows["linked"] == {"ours": 1, "other": 1, "driver": 1}
    assert rows["scope"] == {"ours": 2, "other": 2, "driver": 2}
    assert rows["handle"] == {"ours": 3, "other": 2, "driver": 3, "unrouted": 0}


@pytest.mark.parametrize("order", [("preload.so", "other_HANDLE.so"), ("other_HANDLE.so", "preload.so")])
def test_one_launch_is_one_hit_through_a_preload_that_asks_dlsym(built, order):
    rows = counted(run(built, "linked", "chain", preload=order))
    assert rows["linked"] == {"ours": 1, "other": 1, "driver": 1}
    assert rows["scope"] == {"ours": 2, "other": 2, "driver": 2}
    assert rows["handle"] == {"ours": 3, "other": 2, "driver": 3, "unrouted": 0}


def test_preload_that_overrides_dlsym_keeps_what_it_hooks(built):
    """Behind us it still gets every route that it would have got, and we see each launch once."""
    rows = counted(run(built, "linked", "chain", preload=("preload.so", "other_DLSYM.so")))
    assert rows["linked"] == {"ours": 1, "other": 1, "driver": 1}
    assert rows["scope"]["ours"] == 2 and rows["scope"]["driver"] == 2
    assert rows["handle"] == {"ours": 3, "other": 3, "driver": 3, "unrouted": 0}


def test_three_preloads(built):
    rows = counted(run(built, "linked", "chain", preload=("preload.so", "other_DLSYM.so", "other_NEXT.so")))
    assert rows["linked"]["ours"] == 1 and rows["linked"]["driver"] == 1
    assert rows["handle"]["ours"] == 3 and rows["handle"]["driver"] == 3


def test_runtime_launches_are_attributed(built):
    run(built, "runtime_linked")


def test_runtime_launch_past_the_hooks_shows(built):
    run(built, "runtime_linked", "hidden", path=[built / "hidden"])


def test_each_caller_gets_its_own_runtime(built):
    run(built, "runtime")


@pytest.mark.parametrize("what", ["begin", "failing", "abandoned", "per-thread", "many", "wait", "gate", "stuck"])
def test_capture(built, what):
    run(built, "capture", what)


def test_capture_that_begins_between_two_looks(built):
    run(built, "capture", "between", preload=["paused.so"])


@pytest.mark.parametrize("what", ["found", "lazy", "forks"])
def test_bypass(built, what):
    run(built, "bypass", what, **({"LD_BIND_NOW": ""} if what == "lazy" else {}))


def test_without_the_preload_the_programs_would_notice(built):
    """The counts come from the preload: without it the programs must fail, or the tests above could not."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(built)}
    for args in (["linked", "told"], ["dynamic", "v2"], ["capture", "begin"]):
        done = subprocess.run([*RUNNER, built / args[0], *args[1:]], env=env, capture_output=True, timeout=60)
        assert done.returncode != 0


def table_symbols():
    text = (ROOT / "shim/hook/entry.h").read_text()
    return set(re.findall(r"^\tX\((\w+),", text, re.M))


def test_exports(built):
    done = subprocess.run(["nm", "-D", "--defined-only", built / "preload.so"], capture_output=True, text=True,
                          check=True)
    names = {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}
    names = {n for n in names if not n.startswith("slotprobe_")}
    assert names == table_symbols() | {"dlsym", "cudaGraphLaunch", "cudaGraphLaunch_ptsz"}


CUDA_H = [p / "include" for p in (Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")), Path("/usr"))
          if (p / "include/cuda.h").exists()]


@pytest.mark.skipif(not CUDA_H, reason="no cuda.h here")
@pytest.mark.parametrize("wrong", [None, ("unsigned ptr)", "cu_deviceptr ptr)"), ("int mode)", "long mode)")])
def test_abi_against_the_toolkit(tmp_path, wrong):
    """Our declarations are those of cuda.h; and a wrong one would be seen."""
    hook = tmp_path / "shim/hook"
    hook.mkdir(parents=True)
    for header in (ROOT / "shim/hook").glob("*.h"):
        text = header.read_text()
        if wrong and header.name == "entry.h":
            assert wrong[0] in text
            text = text.replace(*wrong)
        (hook / header.name).write_text(text)
    done = subprocess.run([CC, "-std=gnu11", *WARN, "-D_GNU_SOURCE", "-fsyntax-only", f"-I{tmp_path}", f"-I{CUDA_H[0]}",
                           ROOT / "tests/unit/abi_check.c"], capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == bool(wrong), done.stderr


def test_needs_only_libc(built):
    done = subprocess.run(["readelf", "-d", built / "preload.so"], capture_output=True, text=True, check=True)
    needed = re.findall(r"NEEDED.*\[(.*)\]", done.stdout)
    assert all(re.match(r"lib(c|dl|pthread)\.so|ld-linux", n) for n in needed), needed
    assert "TEXTREL" not in done.stdout


def test_no_constructor(tmp_path):
    """Nothing of ours runs at load."""
    for source in sorted((ROOT / "shim/hook").glob("*.c")):
        cc("-fPIC", "-fvisibility=hidden", "-c", "-o", tmp_path / "o", source)
        done = subprocess.run(["readelf", "-SW", tmp_path / "o"], capture_output=True, text=True, check=True)
        assert ".text" in done.stdout and "init_array" not in done.stdout, source.name


def test_loads_on_old_libc(built):
    done = subprocess.run(["readelf", "-sW", "--dyn-syms", built / "preload.so"], capture_output=True, text=True,
                          check=True)
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"@GLIBC_([0-9.]+)", done.stdout)}
    assert versions and max(versions) <= (2, 28), versions
