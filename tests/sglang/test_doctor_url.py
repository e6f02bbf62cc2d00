# SPDX-License-Identifier: Apache-2.0
"""slotprobe doctor --url, against a loopback server that answers as SGLang does."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import jsonschema
import pytest

GOOD = {"version": "0.5.23", "model_path": "m", "disable_radix_cache": False, "mamba_radix_cache_strategy": "extra_buffer",
        "disable_overlap_schedule": False, "mamba_track_interval": 256, "cuda_graph_bs_decode": [1, 2, 4, 8],
        "internal_states": [{"decode_cuda_graph_bs": [1, 2, 4, 8, 16]}]}
PLAN = ("--tokens", "300", "--concurrency", "4")


def doctor(build, *args):
    """(exit status, checks by name)."""
    done = subprocess.run([str(build / "slotprobe"), "doctor", "--json", *map(str, args)], capture_output=True, text=True, timeout=60,
                          check=False)
    found = json.loads(done.stdout)
    schema = json.loads((pathlib.Path(__file__).parents[2] / "docs/schemas/doctor.schema.json").read_text())
    jsonschema.validate(found, schema)
    assert found["exit_status"] == done.returncode
    return done.returncode, {c["name"]: c for c in found["checks"]}


@pytest.fixture(scope="module")
def runs(build, tmp_path_factory):
    """Runs with counters as the adapter leaves them, by name."""
    folder = tmp_path_factory.mktemp("runs")
    code = ("import sys; sys.path.insert(0, sys.argv[1])\nimport slotprobe as s, array\n"
            "a = array.array('b', bytes(64))\nclass T:\n    __array_interface__ = {'typestr': '|i1', 'shape': (8, 8), 'data': (a.buffer_info()[0], False)}\n"
            "s.pool('p', {'t': T()}, layer_axis=None, slot_axis=0)\n"
            "for name in sys.argv[2:]:\n    s.hit(s.point('sglang.' + name))\n")
    made = {}
    for name, points in {"attached": ["hooked"] * 3, "missing": ["hooked", "hook_missing"], "failing": ["hooked", "hook_error"],
                         "silent": []}.items():
        made[name] = folder / name
        done = subprocess.run([str(build / "slotprobe"), "record", "-o", str(made[name]), "--probe", "sglang", "--", sys.executable, "-B", "-c", code,
                               str(build / "probes" / "sglang"), *points], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    return made


def test_a_server_as_it_should_be(build, serve, runs):
    """Nothing but what only requests can show."""
    status, found = doctor(build, "--url", serve({"/server_info": GOOD}), "--run", runs["attached"], *PLAN)
    assert [n for n, c in found.items() if c["state"] != "ok"] == ["graphs"] and status == 1
    assert "16" in found["batch"]["text"] and "3 hooks" in found["plugin"]["text"]
    for off in ({"disable_decode_cuda_graph": True}, {"cuda_graph_backend_decode": "disabled"}):
        status, found = doctor(build, "--url", serve({"/server_info": GOOD | off}) + "/", "--run", runs["attached"], *PLAN)
        assert status == 0 and all(c["state"] == "ok" for c in found.values()), found
    for on in ({"disable_decode_cuda_graph": False}, {"cuda_graph_backend_decode": "full"}):
        _, found = doctor(build, "--url", serve({"/server_info": GOOD | on}), "--run", runs["attached"], *PLAN)
        assert [n for n, c in found.items() if c["state"] != "ok"] == ["graphs"]


@pytest.mark.parametrize("change, check, state", [
    ({"disable_radix_cache": True}, "radix-cache", "problem"),
    ({"mamba_radix_cache_strategy": "no_buffer"}, "extra-buffer", "warning"),
    ({"mamba_radix_cache_strategy": "auto"}, "extra-buffer", "warning"),
    ({"disable_overlap_schedule": True}, "overlap", "warning"),
    ({"mamba_track_interval": 512}, "interval", "problem"),
    ({"mamba_track_interval": None}, "interval", "warning"),
    ({"internal_states": [], "cuda_graph_bs_decode": [1, 2, 4]}, "batch", "problem"),
    ({"internal_states": [], "cuda_graph_bs_decode": None}, "batch", "warning"),
    ({"version": None}, "server", "problem"),
])
def test_each_thing_in_the_way(build, serve, change, check, state):
    """Is found, alone, with what to do."""
    _, good = doctor(build, "--url", serve({"/server_info": GOOD}), *PLAN)
    status, found = doctor(build, "--url", serve({"/server_info": GOOD | change}), *PLAN)
    assert [n for n in found if found[n]["state"] != good[n]["state"]] == [check]
    assert found[check]["state"] == state and found[check]["remedy"] and (status == 1) == (state == "problem")


def test_the_adapter(build, serve, runs):
    """What a run's counters say of it."""
    url = serve({"/server_info": GOOD})
    states = {name: doctor(build, "--url", url, "--run", run)[1]["plugin"]["state"] for name, run in runs.items()}
    assert states == {"attached": "ok", "missing": "problem", "failing": "warning", "silent": "problem"}
    assert doctor(build, "--url", url)[1]["plugin"]["state"] == "warning"


def test_releases(build, serve):
    """The older path, settings nested in groups, what the server does not say."""
    assert doctor(build, "--url", serve({"/get_server_info": GOOD}), *PLAN)[1]["server"]["state"] == "ok"
    nested = {"version": "1", "model_path": "m", "exec": {"mamba": {"mamba_track_interval": 64, "enable_mamba_extra_buffer": True}}}
    _, found = doctor(build, "--url", serve({"/server_info": nested}), *PLAN)
    assert found["interval"]["state"] == found["extra-buffer"]["state"] == "ok"
    assert found["radix-cache"]["state"] == found["overlap"]["state"] == "warning"


@pytest.mark.parametrize("answer", [b"", b"[1]", b"{", b"null", b"\xff\x00", b'{"a":' * 3000, b" " * (5 << 20)],
                         ids=["empty", "array", "cut", "null", "bytes", "deep", "long"])
def test_hostile_answers(build, serve, answer):
    """One problem, no crash."""
    status, found = doctor(build, "--url", serve({"/server_info": answer}))
    assert status == 1 and list(found) == ["server"] and found["server"]["state"] == "problem"


def test_wrong_types(build, serve):
    """Settings of other types are settings that the server does not say."""
    odd = {k: [v, {"x": v}] for k, v in GOOD.items()} | {"version": "\x1b[31m", "model_path": 5}
    _, found = doctor(build, "--url", serve({"/server_info": odd}), *PLAN)
    assert "\x1b" not in json.dumps(found, ensure_ascii=False) and found["radix-cache"]["state"] == "warning"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "file:///etc/passwd", "nonsense://x", "127.0.0.1:notaport"])
def test_no_answer(build, url):
    """Only HTTP is spoken."""
    status, found = doctor(build, "--url", url)
    assert status == 1 and found["server"]["remedy"] and "root:" not in json.dumps(found)


@pytest.mark.parametrize("answers, text, remedy", [
    ({"/server_info": 401}, "HTTP status 401", "SLOTPROBE_API_KEY"),
    ({"/server_info": 403}, "HTTP status 403", "SLOTPROBE_API_KEY"),
    ({}, "HTTP status 404", "without a path"),
    ({"/server_info": 503}, "HTTP status 503", "without a path"),
    ({"/server_info": {"version": None}}, "no server that an adapter knows", "without a path"),
])
def test_each_refusal_has_a_remedy_of_its_own(build, serve, answers, text, remedy):
    status, found = doctor(build, "--url", serve(answers))
    assert status == 1 and text in found["server"]["text"] and remedy in found["server"]["remedy"]
    _, found = doctor(build, "--url", "http://127.0.0.1:1")
    assert remedy not in found["server"]["remedy"]


def test_a_server_that_wants_a_key(build, serve, monkeypatch):
    """It gets the one of the environment, whole, and only if there is one."""
    url = serve({"/server_info": lambda headers: GOOD if headers.get("Authorization") == "Bearer s3 cret" else 401})
    assert "SLOTPROBE_API_KEY" in doctor(build, "--url", url, *PLAN)[1]["server"]["remedy"]
    monkeypatch.setenv("SLOTPROBE_API_KEY", "s3 cret")
    assert doctor(build, "--url", url, *PLAN)[1]["server"]["state"] == "ok"
    sent = []
    monkeypatch.setenv("SLOTPROBE_API_KEY", "")
    doctor(build, "--url", serve({"/server_info": lambda headers: sent.append(headers.get("Authorization")) or GOOD}), *PLAN)
    assert sent == [None]


def test_a_server_that_hangs_is_asked_once(build):
    """It takes the connection and says nothing."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        begun = time.monotonic()
        status, found = doctor(build, "--url", f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert status == 1 and "does not answer" in found["server"]["remedy"] and 10 < time.monotonic() - begun < 28


def test_usage(build, runs):
    """Options that make no sense together."""
    for args in (["--tokens", "5"], ["--run", runs["silent"]], ["--url", "http://127.0.0.1:1", "--", "true"]):
        done = subprocess.run([str(build / "slotprobe"), "doctor", *map(str, args)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    done = subprocess.run([str(build / "slotprobe"), "doctor", "--url", "http://127.0.0.1:1", "--run", "/nowhere"], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"paths": 5}', '{"paths": [5, "/server_info"], "knows": ["version"], "checks": [1, {}, {"clauses": [{}]}]}',
                                  '{"paths": ["/server_info"], "knows": ["version"], "values": {"a": [{"option": "url"}, {"option": "json"}, 3]}, '
                                  '"checks": [{"name": 5, "clauses": [{"if": [[], ["<"], ["unknown", 7], 3, ["is", "a"]], "text": "x"}, '
                                  '{"text": "{a} {b {}' + "y" * 3000 + '", "state": "odd", "remedy": [1]}]}]}'],
                         ids=["empty", "array", "object", "paths", "checks", "clauses"])
def test_a_broken_rules_file(build, serve, tmp_path, monkeypatch, text):
    """Of another adapter: what makes no sense in it is not there, and the server's own is found."""
    (tmp_path / "other.doctor").write_text(text)
    monkeypatch.setenv("SLOTPROBE_PROBE_PATH", str(tmp_path))
    status, found = doctor(build, "--url", serve({"/server_info": GOOD}), *PLAN)
    assert found["server"]["state"] == "ok" and status == int(any(c["state"] == "problem" for c in found.values()))


def test_the_rules_name_what_the_adapter_counts(root):
    """A counter that nobody has would read as 0."""
    rules = json.loads((root / "probes/servers/sglang/sglang.doctor").read_text())
    counters = {p["counter"] for places in rules["values"].values() for p in places if "counter" in p} - {"pool_graph_launches"}
    assert counters and counters <= set((root / "probes/servers/sglang/sglang.points").read_text().split())
    values = set(rules["values"])
    for check in rules["checks"]:
        assert "if" not in check["clauses"][-1], "the last clause counts where no other does"
        for clause in check["clauses"]:
            assert clause["state"] == "ok" or clause["remedy"]
            assert set(__import__("re").findall(r"{(.*?)}", clause["text"])) <= values
            assert all(c[1] in values and (c[0] not in "<>" or isinstance(c[2], int) or c[2] in values) for c in clause.get("if", ()))


def test_nothing_else_needs_libcurl(build):
    """Neither the command nor the preload is linked with it."""
    for file in ("slotprobe", "libslotprobe.so"):
        assert "curl" not in subprocess.run(["readelf", "-d", build / file], capture_output=True, text=True, check=True, timeout=60).stdout


def test_rules_that_are_no_file_are_not_waited_for(build, serve, tmp_path, monkeypatch):
    """A pipe that nobody writes, a device without an end; the good file beside them is read."""
    (tmp_path / "other.doctor").write_text(json.dumps({"knows": ["version"], "paths": ["/info"], "server": "Other", "checks": []}))
    os.mkfifo(tmp_path / "pipe.doctor")
    (tmp_path / "endless.doctor").symlink_to("/dev/zero")
    monkeypatch.setenv("SLOTPROBE_PROBE_PATH", str(tmp_path))
    status, found = doctor(build, "--url", serve({"/info": {"version": "7"}}))
    assert status == 0 and found["server"]["text"] == "Other 7 answers"


def test_only_so_many_paths_are_asked(build, serve, tmp_path, monkeypatch):
    asked = []

    class Answers(dict):
        def get(self, path, default=None):
            asked.append(path)
            return super().get(path, default)
    (tmp_path / "many.doctor").write_text(json.dumps({"knows": ["many"], "paths": [f"/many{i}" for i in range(1000)]}))
    monkeypatch.setenv("SLOTPROBE_PROBE_PATH", str(tmp_path))
    status, _ = doctor(build, "--url", serve(Answers()))
    many = [path for path in asked if path.startswith("/many")]
    assert status == 1 and many == [f"/many{i}" for i in range(8)]


@pytest.mark.parametrize("option", ["--concurrency", "--tokens"])
@pytest.mark.parametrize("value", ["-1", "0", "-9223372036854775808"])
def test_a_number_below_one_is_refused(build, option, value):
    done = subprocess.run([str(build / "slotprobe"), "doctor", "--url", "http://127.0.0.1:9", option, value], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and f"{option} cannot be '{value}'" in done.stderr and not done.stdout
