# SPDX-License-Identifier: Apache-2.0
"""Pages in Chromium: accessible in light and dark, usable from the keyboard, and shut off from the network."""
import http.server
import pathlib
import threading

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import browser as chromium
import loggen

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
AXE = ROOT / "build" / "pytools" / "axe_playwright_python" / "axe.min.js"


def violations(browser, *rules):
    """What axe-core complains about, by all of its rules or by these."""
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    options = {"runOnly": list(rules)} if rules else {}
    found = browser.execute_async_script("axe.run(document, arguments[0]).then(arguments[1], e => arguments[1](String(e)))", options)
    assert isinstance(found, dict) and (rules or len(found["passes"]) > 20), found
    return [f"{v['id']}: {v['help']}: {[n['html'][:120] for n in v['nodes']][:3]}" for v in found["violations"]]


@pytest.mark.parametrize("verb", ["diff", "equal", "check", "report"])
def test_accessible(browser, pages, verb):
    """All rules in light, and what depends on colours in dark."""
    for which, rules in (("light", []), ("dark", ["color-contrast", "link-in-text-block"])):
        chromium.scheme(browser, which)
        chromium.opened(browser, pages[verb])
        browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert violations(browser, *rules) == []


def test_axe_would_find_something(browser, pages):
    """The check itself: a page that lacks a label and a language, and is too pale, is complained about."""
    chromium.opened(browser, pages["check"])
    browser.execute_script("document.querySelector('label[for=slots-filter]').remove(); document.documentElement.removeAttribute('lang');"
                           "document.body.style.color = '#bbb'; document.body.style.background = '#fff'")
    rules = ["label", "html-has-lang", "color-contrast"]
    assert {v.split(":")[0] for v in violations(browser, *rules)} == set(rules)


def test_light_and_dark_differ(browser, pages):
    shown = {}
    for which in ("light", "dark"):
        chromium.scheme(browser, which)
        chromium.opened(browser, pages["diff"])
        shown[which] = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert shown == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}


def readout(browser, name):
    return browser.find_element(By.ID, name).text


def test_keyboard(browser, pages):
    """Map and timeline are read with the arrow keys, and a slot is chosen without a pointer."""
    chromium.opened(browser, pages["diff"])
    canvas = browser.find_element(By.ID, "map-canvas")
    canvas.send_keys(Keys.HOME, Keys.PAGE_UP, Keys.PAGE_UP, Keys.PAGE_UP)
    assert readout(browser, "map-readout").startswith("tp0.pp0.dp0/state/1, conv, layer 0: ")
    canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert readout(browser, "map-readout").startswith("tp0.pp0.dp0/state/3, ssm, layer 0: differs")
    canvas.send_keys(Keys.ENTER)
    assert browser.find_element(By.ID, "trace-slot").get_attribute("value") == "tp0.pp0.dp0/state/3"
    line = browser.find_element(By.ID, "timeline-canvas")
    line.send_keys(Keys.HOME)
    seen = set()
    for _ in range(80):
        line.send_keys(Keys.ARROW_RIGHT)
        seen.add(readout(browser, "timeline-readout").rsplit(": ", 1)[1])
    assert "nothing" in seen and any("donation" in s or "event" in s for s in seen)


def rows(browser):
    return browser.execute_script("return [...document.querySelectorAll('#slots-table tbody tr')].map(r => [...r.cells].map(c => c.textContent))")


def test_filter_sort_and_choose(browser, pages):
    chromium.opened(browser, pages["diff"])
    assert len(rows(browser)) == 24
    field = browser.find_element(By.ID, "slots-filter")
    field.send_keys("zero misplaced")
    some = rows(browser)
    assert 0 < len(some) < 24 and all("zero" in r[12] and "misplaced" in r[12] for r in some)
    assert readout(browser, "slots-shown") == f"{len(some)} slots of 24 shown."
    field.clear()
    field.send_keys("state/")
    head = browser.find_element(By.CSS_SELECTOR, "#slots-table thead th:nth-child(6) button")
    head.click()
    values = [float(r[5]) for r in rows(browser)]
    assert values == sorted(values) and head.find_element(By.XPATH, "..").get_attribute("aria-sort") == "ascending"
    button = browser.find_element(By.CSS_SELECTOR, "#slots-table tbody th button")
    name = button.text
    button.click()
    assert browser.find_element(By.ID, "trace-slot").get_attribute("value") == name
    table = browser.execute_script("return [...document.querySelectorAll('#trace-table tbody tr')].map(r => r.cells.length)")
    assert table and set(table) == {3}


def test_nothing_leaves_the_page(browser, pages):
    """No resource is asked for, and the page's policy lets nothing out even when asked."""
    asked = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        chromium.opened(browser, pages["diff"])
        assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
        url = f"http://127.0.0.1:{server.server_port}"
        outcome = browser.execute_async_script(
            "const done = arguments[1]; const image = new Image(); image.src = arguments[0] + '/image';"
            "fetch(arguments[0] + '/fetch').then(() => done('reached'), () => done('refused'))", url)
        added = browser.execute_script(
            "const s = document.createElement('script'); s.textContent = 'document.documentElement.dataset.owned = 1';"
            "document.body.append(s); return document.documentElement.dataset.owned")
        assert outcome == "refused" and added is None and not asked
    finally:
        server.shutdown()
        browser.get_log("browser")


@pytest.mark.parametrize("verb", ["diff", "check", "report"])
def test_hostile_names_do_nothing(browser, hostile_pages, verb):
    chromium.opened(browser, hostile_pages[verb])
    assert browser.execute_script("return document.documentElement.dataset.owned") is None
    assert browser.execute_script("return document.images.length + document.querySelectorAll('main script, u, b').length") == 0
    assert "<img src=x onerror" in browser.find_element(By.ID, "slots-table").text
    browser.find_element(By.ID, "map-canvas").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert "<" in readout(browser, "map-readout")


def test_without_its_script(browser, pages):
    """Verdict, coverage, findings and rows are there; what only the script can draw is not promised."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(pages["diff"].resolve().as_uri())
        assert "DIFFERS" in browser.find_element(By.ID, "verdict").text
        assert browser.find_element(By.ID, "slots-table").is_displayed() and not browser.find_element(By.ID, "map").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_empty_page(browser, lab, make_page):
    chromium.opened(browser, make_page("empty-browser", "report", loggen.Run("graph-on", loggen.Process()).write(lab.folder / "none"),
                                       status=3))
    assert "No slot was donated." in browser.find_element(By.ID, "map").text and violations(browser) == []


def test_large_page(browser, large, make_page):
    chromium.opened(browser, make_page("large-browser", "check", large, status=0))
    assert browser.find_element(By.ID, "slots-shown").text.startswith("The first 500 of 2500 matching slots")
