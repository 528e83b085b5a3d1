"""A real browser on a real server, and a person who uses it by mouse or by keyboard alone."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect, sync_playwright

from tests.needs import lacking
from tests.server.serving import Server

WIDE: ViewportSize = {"width": 1440, "height": 900}
WIDTHS = (390, 820, 1440)
PATIENCE_MS = 60_000
MOST_TABS = 150
FLAGS = [
    *["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"],
    *["--disable-background-networking", "--disable-component-update", "--disable-sync"],
]


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Start the distribution's chromium; playwright itself downloads nothing."""
    chromium = shutil.which("chromium")
    if chromium is None:
        lacking("chromium")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """A person at a page: `by` says with which hand."""

    def __init__(self, page: Page, url: str, by: Literal["mouse", "keyboard"] = "mouse") -> None:
        self.page = page
        self.by = by
        self._url = url
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda told: self.errors.append(told.text) if _is_violation(told.text) else None)
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))

    def go(self, place: str) -> None:
        """Open a page of the dashboard, such as `modules/calc`."""
        self.page.goto(f"{self._url}/{place}")

    def button(self, name: str) -> Locator:
        """Return a button, a link or what opens a form."""
        page = self.page
        opener = page.locator(f'summary[aria-label^="{name}"], summary:has-text("{name}")')
        found = page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).or_(opener)
        return found.locator("visible=true").first

    def press(self, name: str) -> None:
        """Press a button or follow a link."""
        target = self.button(name)
        expect(target).to_be_visible()
        if self.by == "mouse":
            target.click()
        else:
            self.reach(target)
            self.page.keyboard.press("Enter")

    def write(self, label: str, text: str, *, within: Locator | None = None, exact: bool = True) -> None:
        """Write into a field that is seen."""
        place = within or self.page.locator("body")
        target = place.get_by_label(label, exact=exact).locator("visible=true").first
        if self.by == "mouse":
            target.fill(text)
        else:
            self.reach(target)
            self.page.keyboard.press("Control+A")
            self.page.keyboard.type(text)

    def until(self, expression: str) -> None:
        """Wait until the expression is true; the page's policy lets no script evaluate one there."""
        deadline = time.monotonic() + PATIENCE_MS / 1_000
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, expression
            self.page.wait_for_timeout(50)

    def reach(self, target: Locator) -> None:
        """Press Tab until the element has the focus."""
        for _ in range(MOST_TABS):
            if target.evaluate("node => node === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {target}")

    def require_accessible(self) -> None:
        """Fail for what axe-core finds serious or critical, in light and dark, and where the page scrolls sideways."""
        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found = Axe().run(self.page).response["violations"]
            serious = [_violation(v) for v in found if v["impact"] in ("serious", "critical")]
            assert not serious, "\n".join(serious)
        self.page.emulate_media(color_scheme="light")
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 844})
            wide = "document.documentElement.scrollWidth"
            assert self.page.evaluate(wide) <= width, (self.page.url, width)
        self.page.set_viewport_size(WIDE)


def _is_violation(text: str) -> bool:
    return any(word in text for word in ("Content Security Policy", "Trusted", "Uncaught"))


def _violation(found: dict[str, Any]) -> str:
    places = "; ".join(node["html"][:200] for node in found["nodes"][:3])
    return f"{found['id']} ({found['impact']}): {found['help']}: {places}"


@contextmanager
def visiting(
    browser: Browser, server: Server, by: Literal["mouse", "keyboard"] = "mouse"
) -> Iterator[Visitor]:
    """Open the server's link in a new profile; nothing may go wrong on any page that the visitor sees."""
    context = browser.new_context(viewport=WIDE, locale="en-GB")
    context.set_default_timeout(PATIENCE_MS)
    try:
        page = context.new_page()
        visitor = Visitor(page, server.url, by)
        page.goto(server.link)
        yield visitor
        assert visitor.errors == []
    finally:
        context.close()
