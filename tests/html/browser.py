# SPDX-License-Identifier: Apache-2.0
"""Chromium without a screen, as the tests of pages, their measurement and docs/screenshots.py use it."""
import pathlib
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.service import Service


def start(width: int = 1280, height: int = 900, flags: tuple = ()) -> webdriver.Chrome:
    """A browser; a machine without one is a failure, tests/deps.sh installs it."""
    driver = shutil.which("chromedriver")
    assert driver, "chromedriver is missing: tests/deps.sh check installs it"
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 f"--window-size={width},{height}", *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service(driver), options=options)
    browser.set_page_load_timeout(120)
    browser.set_script_timeout(120)
    return browser


def scheme(browser, which: str) -> None:
    """Light or dark."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": which}]})


def opened(browser, page: pathlib.Path) -> None:
    """Opens a page; its script must have come to its end, and nothing may have been complained about."""
    browser.get(page.resolve().as_uri())
    assert browser.execute_script("return document.documentElement.dataset.ready") == "1", browser.get_log("browser")
    assert not browser.get_log("browser")
