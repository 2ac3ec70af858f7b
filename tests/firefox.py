"""A headless Firefox, driven by WebDriver BiDi, which it speaks itself: Playwright needs a patched one."""

import base64
import contextlib
import io
import itertools
import json
import re
import shutil
import subprocess
import time

import pytest


class Firefox:
    """A window of Firefox."""

    def __init__(self, connection):
        self._connection = connection
        self._ids = itertools.count(1)
        self.errors = []
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded"])
        self.context = self.send("browsingContext.getTree")["contexts"][0]["context"]

    def send(self, method, **params):
        number = next(self._ids)
        self._connection.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._connection.recv())
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.errors.append(message["params"]["text"])
            if message.get("id") == number:
                assert message["type"] == "success", message
                return message["result"]

    def open(self, path, *, width=1100, height=760):
        self.send("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height})
        self.send("browsingContext.navigate", context=self.context, url=path.as_uri(), wait="complete")
        self.wait("Boolean(window.explorer && explorer.firstFrame)")

    def read(self, expression):
        """The value of an expression, by way of JSON."""
        code = f"Promise.resolve({expression}).then((value) => JSON.stringify(value ?? null))"
        target = {"context": self.context}
        result = self.send("script.evaluate", expression=code, target=target, awaitPromise=True)
        assert result["type"] == "success", result
        return json.loads(result["result"]["value"])

    def pixels(self):
        """The window as an array of colours from 0 to 1."""
        from matplotlib.image import imread

        shot = self.send("browsingContext.captureScreenshot", context=self.context)
        return imread(io.BytesIO(base64.b64decode(shot["data"])))[..., :3]

    def wait(self, expression, seconds=30):
        end = time.monotonic() + seconds
        while not self.read(expression):
            assert time.monotonic() < end, f"{expression} does not come true; {self.errors}"
            time.sleep(0.05)

    def drag(self, places, key=None):
        """Drag the mouse from place to place, in pixels of the window."""
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 30} for x, y in places]
        mouse = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        pointer = {"type": "pointer", "id": "mouse", "actions": mouse}
        if key is None:
            return self.send("input.performActions", context=self.context, actions=[pointer])
        pauses = [{"type": "pause"}] * (len(mouse) - 1)
        keys = [{"type": "keyDown", "value": key}, *pauses, {"type": "keyUp", "value": key}]
        pointer["actions"] = [{"type": "pause"}, *mouse]
        actions = [{"type": "key", "id": "keys", "actions": keys}, pointer]
        return self.send("input.performActions", context=self.context, actions=actions)


@contextlib.contextmanager
def firefox(profile):
    """A window of Firefox; the test is skipped where there is none."""
    websocket = pytest.importorskip("websocket", reason="websocket-client is not installed")
    found = shutil.which("firefox-esr") or shutil.which("firefox")
    if found is None:
        pytest.skip("the explorer is not tested in Firefox: apt-get install firefox-esr")
    command = [found, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
    log = profile / "stderr"
    with log.open("wb") as file:  # not a pipe, which blocks Firefox when it is full
        process = subprocess.Popen(command, stderr=file, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while not (address := re.search(r"BiDi listening on (ws://\S+)", log.read_text(errors="replace"))):
            if process.poll() is not None or time.monotonic() > end:
                pytest.skip("Firefox does not start here")
            time.sleep(0.1)
        connection = websocket.create_connection(f"{address[1]}/session", timeout=60, suppress_origin=True)
        yield Firefox(connection)
        connection.close()
    finally:
        process.terminate()
        process.wait(timeout=30)
