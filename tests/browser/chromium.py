"""A real headless Chromium, where one is installed, driven as a person drives it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.patience import PATIENCE_SECONDS
from tests.viewer.running import Viewer

NAMES = ("chromium", "chromium-browser", "google-chrome")
WAIT_SECONDS = PATIENCE_SECONDS


class Browser:
    """One window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, viewer: Viewer, path: str = "/") -> None:
        """Go to `path` with the token, and wait until the page is drawn."""
        self.driver.get(f"{viewer.root}{path}{'&' if '?' in path else '?'}token={viewer.token}")
        self.wait(lambda: self.all("main h1, main .problem, main .panel > p"))

    def wait(self, condition: Callable[[], Any]) -> Any:
        """What `condition` gives as soon as it is true."""
        return WebDriverWait(self.driver, WAIT_SECONDS, 0.05, ignored_exceptions=[Exception]).until(
            lambda _: condition()
        )

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        """The element, waited for."""
        element: WebElement = self.wait(lambda: (self.all(selector) or [None])[0])
        return element

    def text(self, selector: str = "main") -> str:
        """Text of the element as it stands in the document, unseen parts included."""
        return str(
            self.driver.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)
        )

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def path(self) -> str:
        """Path and query of the address."""
        return str(self.driver.execute_script("return location.pathname + location.search"))

    def script(self, code: str, *given: Any) -> Any:
        return self.driver.execute_script(code, *given)

    def look(self, *, width: int, dark: bool) -> None:
        """Take a width in CSS pixels and a color scheme."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})

    def complaints(self) -> list[str]:
        """Errors and policy violations since the last call."""
        return [f"{entry['level']} {entry['message']}" for entry in self.driver.get_log("browser")]


def chromium() -> tuple[str, str]:
    """The browser and its driver. Skips the test where they are not installed."""
    browser = os.environ.get("HARNESS_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip(
            "no Chromium with its chromedriver on PATH (Debian: apt-get install chromium chromium-driver): "
            "the viewer's pages are not tried in a real browser"
        )
    return browser, driver


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """A window with a profile of its own."""
    browser, driver = chromium()
    options = Options()
    options.binary_location = browser
    for flag in ("--headless=new", "--disable-gpu", "--window-size=1280,900", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium refuses to sandbox as root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options=options, service=Service(driver, log_output=subprocess.DEVNULL))
    try:
        yield Browser(window)
    finally:
        window.quit()


__all__ = ["Browser", "Keys", "browsing"]
