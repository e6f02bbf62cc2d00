# SPDX-License-Identifier: Apache-2.0
"""What every test folder shares: the repository's root, the build folder, a make that builds once, scripts as modules, a server that answers."""
import http.server
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAN = os.environ.get("SAN", "")  # asan, tsan: everything is built with sanitizers, and the tests run that

# The preload comes before its sanitizer's runtime, which therefore is not the first library; it still is before libc. The server's
# own exit status must not hide a finding: whoever finds one ends the process at once.
if SAN:
    os.environ.setdefault("ASAN_OPTIONS", "verify_asan_link_order=0:abort_on_error=1:detect_leaks=0:handle_segv=0")
    os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:abort_on_error=1")
    os.environ.setdefault("TSAN_OPTIONS", "halt_on_error=1:abort_on_error=1:handle_segv=0:die_after_fork=0")


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def before_ours() -> str:
    """What stands before libslotprobe.so in the LD_PRELOAD of a program that is not built with the thread sanitizer, Python: its runtime, which
    otherwise comes behind libc, and is passed over."""
    if SAN != "tsan":
        return ""
    done = subprocess.run([os.environ.get("CC", "gcc"), "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True)
    return str(pathlib.Path(done.stdout.strip()).resolve()) + ":"


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    """The build folder; all but the unit tests in it is up to date."""
    folder = ROOT / (f"build-{SAN}" if SAN else os.environ.get("BUILD", "build"))
    done = subprocess.run(["make", "-s", "-C", str(ROOT), "tests-programs", f"SAN={SAN}", f"BUILD={folder.name}"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def script():
    """A script under tests/ as a module. Several are called run.py and lab.py, so that none can be imported by its name; what lies beside it is
    its own."""
    def load(path):
        if path not in made:
            file = ROOT / "tests" / path
            beside = {p.stem for p in file.parent.glob("*.py")}
            spec = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), file)
            made[path] = importlib.util.module_from_spec(spec)
            others, places = {name: sys.modules.pop(name) for name in beside & set(sys.modules)}, sys.path[:]
            sys.path.insert(0, str(file.parent))
            spec.loader.exec_module(made[path])
            sys.path[:] = places
            for name in beside:
                sys.modules.pop(name, None)
            sys.modules.update(others)
        return made[path]
    made = {}
    return load


@pytest.fixture()
def serve():
    """Starts HTTP servers on the loopback: answers by path, bytes, an object, a status, or what a function of the request's headers says; others
    are 404. Returns the URL."""
    servers = []

    def start(answers):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                answer = answers.get(self.path)
                answer = answer(self.headers) if callable(answer) else answer
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(404 if answer is None else answer if isinstance(answer, int) else 200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
