# SPDX-License-Identifier: Apache-2.0
"""slotprobe together with what else comes into a server's process, and with what starts it: it counts exactly, or says never_loaded and why,
and doctor says so before."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "routes"))

from routes import Route, run_route  # noqa: E402

PYTHON = "/usr/bin/python3"


class Place:
    """Records commands on the CPU driver."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.out, self.routes, self.slotprobe = build / "tests/composition", build / "tests/routes", build / "slotprobe"
        self.library = build / "libslotprobe.so"

    @property
    def env(self):
        """Of a program on the CPU driver and on the tests' own runtime."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SLOTPROBE_", "LD_", "OTHER_"))}
        return env | {"LD_LIBRARY_PATH": f"{self.build}/cpudriver:{self.out}"}

    def exactly(self, *command, env=None, options=()):
        """The row of this command, all of whose launches must be counted, in each of its processes."""
        env = {"LD_LIBRARY_PATH": self.env["LD_LIBRARY_PATH"]} | (env or {})
        name = f"run {len(list(self.folder.iterdir()))}"
        row = run_route(Route(name, [str(part) for part in command], env=env, options=options), self.build, self.routes, self.folder)
        assert row["ok"], row
        return row

    def record(self, *command, **more):
        """(finished process, run)"""
        run = self.folder / f"record{len(list(self.folder.iterdir()))}"
        done = subprocess.run([self.slotprobe, "record", "-o", run, "--", *command], capture_output=True, text=True, timeout=60,
                              check=False, **({"env": self.env} | more))
        return done, run

    def never_loaded(self, *command, why):
        """Nothing is recorded, the command's own end is untouched, and one line says why."""
        done, run = self.record(*command)
        (line,) = [said for said in done.stderr.splitlines() if "never_loaded" in said]
        assert all(word in line for word in why), line
        assert [f.name for f in run.iterdir()] == ["run.json"]
        return done

    def doctor(self, name, *command, **env):
        """One check of doctor's."""
        done = subprocess.run([self.slotprobe, "doctor", "--json", *(["--", *command] if command else [])], capture_output=True, text=True,
                              timeout=60, env=self.env | env, check=False)
        (check,) = [c for c in json.loads(done.stdout)["checks"] if c["name"] == name]
        assert (check["state"] == "ok") == (check["remedy"] is None)
        return check


@pytest.fixture
def place(build, tmp_path):
    """One."""
    return Place(build, tmp_path)


@pytest.fixture(scope="session")
def saver():
    """torch_memory_saver's preload for CUDA 13, from PyPI."""
    found = list((ROOT / "build" / "pytools").glob("torch_memory_saver_hook_mode_preload_cu13*.so"))
    assert found, "torch_memory_saver is missing: tests/deps.sh check fetches it"
    return found[0]


@pytest.fixture(scope="session")
def alone(build, tmp_path_factory):
    """A program that finds the CPU driver by itself, whatever becomes of the environment."""
    program = tmp_path_factory.mktemp("alone") / "alone"
    subprocess.run(["gcc", "-DLINKED", "-o", program, *[ROOT / "tests/routes" / f for f in ("driver.c", "work.c", "cuda.c")],
                    f"-L{build}/cpudriver", "-lcuda", "-ldl", "-pthread", f"-Wl,-rpath,{build}/cpudriver", "-Wl,--disable-new-dtags"], check=True)
    return program


# ---- other preloads ----

FIRST = 'LD_PRELOAD="$0:$LD_PRELOAD" exec "$@"'  # what a launcher does that puts its own library in front


def test_another_preload_was_there(place):
    """It comes behind slotprobe, and sees what it would see without: launches of a linked program, one each."""
    count = place.folder / "count"
    place.exactly(place.routes / "linked", "linked", "plain", 37, env={"LD_PRELOAD": str(place.out / "other.so"), "OTHER_COUNT": str(count)})
    assert count.read_text() == "launches 37 inits 1\n"
    bare = subprocess.run([place.routes / "linked", "linked", "plain", "37"], capture_output=True, text=True, timeout=60, check=True,
                          env=place.env | {"LD_PRELOAD": str(place.out / "other.so"), "OTHER_COUNT": str(count)})
    assert "launches 37" in bare.stdout and count.read_text() == 2 * "launches 37 inits 1\n"


def test_another_preload_in_front(place):
    """A launcher puts it before slotprobe: RTLD_NEXT reaches ours."""
    count = place.folder / "count"
    place.exactly("sh", "-c", FIRST, place.out / "other.so", place.routes / "linked", "linked", "threads", 37,
                  env={"OTHER_COUNT": str(count)})
    assert count.read_text() == "launches 296 inits 1\n"


@pytest.mark.parametrize("how", ["dlsym", "proc", "proc_v2", "per-thread"])
def test_another_preload_and_looked_up_entries(place, how):
    """Looked up in libcuda's own handle, they pass the other preload by with us as without; we see them in both orders."""
    other = place.out / "other.so"
    place.exactly(place.routes / "driver", how, "plain", 37, env={"LD_PRELOAD": str(other)})
    place.exactly("sh", "-c", FIRST, other, place.routes / "driver", how, "plain", 37)


def test_another_preload_twice_and_audit(place):
    """LD_PRELOAD names it twice, in two spellings; with and without the auditor."""
    other = place.out / "other.so"
    for options in ((), ("--audit",)):
        place.exactly(place.routes / "linked", "linked", "plain", 37, env={"LD_PRELOAD": f"{other} {other.parent}/./{other.name}"},
                      options=options)


def test_torch_memory_saver_was_there(place, saver):
    """Its preload is found by what its Python asserts: one entry with its name; it saves, pauses and resumes memory as without us."""
    env = {"LD_PRELOAD": str(saver)}
    place.exactly(place.out / "saver", 37, env=env)
    done, _ = place.record("sh", "-c", "echo $LD_PRELOAD", env=place.env | env)
    assert [p for p in done.stdout.strip().split(":") if "torch_memory_saver" in p] == [str(saver)]
    assert done.stdout.startswith(str(place.library) + ":")


def test_torch_memory_saver_puts_itself_first(place, saver):
    """As its configure_subprocess does."""
    place.exactly("sh", "-c", FIRST, saver, place.out / "saver", 37)
    place.exactly("sh", "-c", FIRST, saver, place.out / "saver", 37, options=("--audit",))


def test_the_saver_is_really_in_the_process(place):
    """Without it the program ends: the two tests above could not hold by chance."""
    done, _ = place.record(place.out / "saver", "37")
    assert done.returncode == 2 and "not in this process" in done.stderr


def test_doctor_on_what_is_preloaded(place):
    """Fine, beside others, not there, not loadable."""
    assert place.doctor("preload")["state"] == "ok"
    check = place.doctor("preload", LD_PRELOAD=str(place.out / "other.so"))
    assert check["state"] == "warning" and "other.so" in check["text"]
    check = place.doctor("preload", LD_PRELOAD="/no/such.so")
    assert check["state"] == "problem" and "/no/such.so" in check["text"]
    broken = place.folder / "broken.so"
    broken.write_bytes(b"\x7fELF not really")
    check = place.doctor("preload", LD_PRELOAD=str(broken))
    assert check["state"] == "problem" and "broken.so" in check["text"]


# ---- what starts the server ----


def test_static_launcher(place, alone):
    """It hands the environment on, and the server is recorded; or clears it, and record says so."""
    place.exactly(place.out / "launcher", "keep", alone, "linked", "plain", 37)
    done = place.never_loaded(place.out / "launcher", "clear", alone, "linked", "plain", "37", why=["statically linked"])
    assert done.returncode == 0 and "launches 37" in done.stdout
    check = place.doctor("command", place.out / "launcher", "clear", alone)
    assert check["state"] == "problem" and "statically linked" in check["text"] and "only starts" in check["remedy"]


def test_env_that_clears(place):
    """By any of its spellings; and one that does not."""
    for options in (["-i"], ["-"], ["-u", "LD_PRELOAD"], ["-uSLOTPROBE_DIR"], ["--unset=LD_PRELOAD"], ["A=b", "-i"][1:]):
        place.never_loaded("env", *options, f"LD_LIBRARY_PATH={place.env['LD_LIBRARY_PATH']}", place.routes / "driver", "dlsym", "plain", "3",
                           why=["'env' drops LD_PRELOAD"])
        assert place.doctor("launcher", "env", *options, "true")["state"] == "problem"
    place.exactly("env", "-u", "HOME", "A=b", place.routes / "driver", "dlsym", "plain", 37)
    assert place.doctor("launcher", "env", "-u", "HOME", "A=b", "true", "-i")["state"] == "ok"


def test_sudo(place):
    """sudo resets the environment: record says so, doctor too; behind it, it works."""
    program = ["env", f"LD_LIBRARY_PATH={place.env['LD_LIBRARY_PATH']}", place.routes / "driver", "dlsym", "plain", "37"]
    done = place.never_loaded("sudo", "-n", *program, why=["'sudo' starts its command in a new environment", "sudo slotprobe record"])
    assert done.returncode == 0 and "launches 37" in done.stdout
    assert place.doctor("launcher", "sudo", "-n", "true")["state"] == "problem"
    run = place.folder / "behind"
    done = subprocess.run(["sudo", "-n", place.slotprobe, "record", "-o", run, "--", *program], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    status = json.loads(subprocess.run([place.slotprobe, "status", run, "--json"], capture_output=True, timeout=60, check=True).stdout)
    assert [p["attempted"] for p in status["processes"][0]["probes"] if p["name"] == "core.graph_launch"] == [37]


def test_setuid(place, alone):
    """The loader drops the preload of a program that changes its user: it runs, unrecorded, and record says why."""
    assert os.geteuid() == 0, "the tests run as root, or cannot make a setuid program"
    program = place.folder / "elevated"
    shutil.copy(alone, program)
    place.exactly(program, "linked", "plain", 37)
    os.chown(program, 65534, -1)
    program.chmod(0o4755)
    opened = [f for f in (place.folder, *place.folder.parents) if f.stat().st_uid == os.geteuid() and not f.stat().st_mode & 0o001]
    for folder in opened:  # pytest's are for their owner alone, and the program is another user's
        folder.chmod(folder.stat().st_mode | 0o001)
    done = place.never_loaded(program, "linked", "plain", "37", why=["setuid"])
    assert done.returncode == 0 and "launches 37" in done.stdout
    check = place.doctor("command", program)
    assert check["state"] == "problem" and "setuid" in check["text"]


def test_python_that_overlooks_its_environment(place):
    """-E and -I: the preload is no PYTHON variable and works; an adapter on PYTHONPATH is not loaded, doctor says so, and its probes read
    never fired."""
    script = ROOT / "tests/routes/ctypes_route.py"
    adapter = ("--probe", str(ROOT / "tests/adapters/pyprobe"))
    shown = "import sys; print([p for p in sys.path if p.endswith('adapters/pyprobe')])"
    for option in ("-E", "-I", "-uE"):
        place.exactly(PYTHON, option, script, 37, options=adapter)
        check = place.doctor("launcher", PYTHON, option, "x.py")
        assert check["state"] == "warning" and "PYTHONPATH" in check["text"]
        done = subprocess.run([place.slotprobe, "record", "-o", place.folder / f"path{option}", *adapter, "--", PYTHON, option, "-c", shown],
                              capture_output=True, text=True, timeout=60, check=True, env=place.env)
        assert done.stdout == "[]\n"
    done = subprocess.run([place.slotprobe, "record", "-o", place.folder / "path", *adapter, "--", PYTHON, "-c", shown],
                          capture_output=True, text=True, timeout=60, check=True, env=place.env)
    assert done.stdout != "[]\n" and place.doctor("launcher", PYTHON, "-u", "x.py", "-E")["state"] == "ok"
    run = next(r for r in place.folder.iterdir() if r.name.startswith("run-"))
    done = subprocess.run([place.slotprobe, "check", run, "--json"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3 and "pyprobe" in str([r for r in json.loads(done.stdout)["reasons"] if r["code"] == "probe_never_fired"])


def test_venv(place):
    """A virtual environment's python is a link to the system's."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", place.folder / "venv"], check=True, timeout=120)
    place.exactly(place.folder / "venv/bin/python", ROOT / "tests/routes/ctypes_route.py", 37)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_multiprocessing(place, method):
    """Each worker records in files of its own, and so does the parent."""
    row = place.exactly(PYTHON, HERE / "many.py", method, 37)
    assert row["counted"] == 37 + 38 + 3 and row["processes"] >= 3


def test_audit_stands_before_another(place):
    """An auditor that was there stays."""
    mine = place.folder / "mine.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-x", "c", "-", "-o", mine], check=True,
                   input=b"#include <link.h>\nunsigned la_version(unsigned v){return v;}")
    run = place.folder / "run"
    done = subprocess.run([place.slotprobe, "record", "-o", run, "--audit", "--", "sh", "-c", "echo $LD_AUDIT"], capture_output=True, text=True,
                          timeout=60, check=True, env=place.env | {"LD_AUDIT": str(mine)})
    assert done.stdout == f"{place.build}/libslotprobe-audit.so:{mine}\n"
    assert json.loads((run / "run.json").read_text())["options"]["audit"] is True
    place.exactly(place.routes / "driver", "dlsym", "plain", 37, env={"LD_AUDIT": str(mine)}, options=("--audit",))
