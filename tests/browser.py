"""A headless Chromium that draws in software and may request nothing but files."""

import contextlib
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ARGUMENTS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextlib.contextmanager
def chromium():
    """A browser; the test is skipped where there is none."""
    api = pytest.importorskip(
        "playwright.sync_api", reason='the explorer is not tested without Playwright: pip install ".[test]"'
    )
    with api.sync_playwright() as playwright:
        found = next((path for name in NAMES if (path := shutil.which(name))), playwright.chromium.executable_path)
        if not Path(found).exists():
            pytest.skip("the explorer is not tested without a browser: apt-get install chromium")
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page with what went wrong on it."""

    page: object
    errors: list = field(default_factory=list)
    requests: list = field(default_factory=list)

    def read(self, expression):
        return self.page.evaluate(expression)

    def wait(self, expression, seconds=30):
        """Wait until an expression holds. The page's policy forbids what Playwright's own way of waiting does."""
        end = time.monotonic() + seconds
        while not self.read(expression):
            assert time.monotonic() < end, f"{expression} does not come true"
            time.sleep(0.02)

    def place(self, row):
        """Where a row is drawn, in pixels of the page."""
        box = self.page.locator("#map").bounding_box()
        x, y = self.read(f"explorer.screen({row})")
        return box["x"] + x, box["y"] + y

    def pixels(self):
        """The map as an array of colours."""
        import io

        from matplotlib.image import imread

        picture = self.page.screenshot(clip=self.page.locator("#stage").bounding_box())
        return (imread(io.BytesIO(picture))[..., :3] * 255).round().astype(int)

    def settle(self):
        """Wait until what was asked for is drawn, and nothing moves any more."""
        frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.read(frames)
        self.wait("explorer.settled")
        self.read(frames)

    def drag(self, places):
        self.page.mouse.move(*places[0])
        self.page.mouse.down()
        for place in places[1:]:
            self.page.mouse.move(*place, steps=4)
        self.page.mouse.up()


@contextlib.contextmanager
def opened(browser, path, *, width=1100, height=760, **options):
    """Open a file as a page; at the end nothing may have failed on it or been requested by it."""
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    it = Opened(context.new_page())
    it.page.on("console", lambda message: it.errors.append(message.text) if message.type == "error" else None)
    it.page.on("pageerror", lambda error: it.errors.append(str(error)))
    it.page.on("request", lambda request: it.requests.append(request.url))
    it.page.goto(path.as_uri())
    it.wait("Boolean(window.explorer && explorer.firstFrame)")
    it.settle()
    yield it
    assert it.errors == []
    assert [url for url in it.requests if url != path.as_uri() and not url.startswith(("blob:", "data:"))] == []
    context.close()
