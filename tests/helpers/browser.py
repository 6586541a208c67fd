"""A headless Chromium, told what to do through two pipes (the DevTools protocol): no driver, no package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from queue import Empty, Queue

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
#: Chromium cannot make its sandbox where it is root or in a container; what it opens here is our own.
OPTIONS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-dev-shm-usage", "--remote-debugging-pipe",
]  # fmt: skip


class Browser:
    """One window with one page; `errors` has what the page complained of since it was opened."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The protocol wants its pipes to be file descriptors 3 and 4, whatever numbers they have here.
        script = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, "browser", PROGRAM, *OPTIONS, f"--user-data-dir={self._folder.name}"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._messages, self._number, self._session = Queue(), 0, None
        self.errors = []
        threading.Thread(target=self._listen, daemon=True).start()
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def _listen(self):
        rest = b""
        while part := os.read(self._read, 1 << 16):
            *whole, rest = (rest + part).split(b"\0")
            for message in whole:
                self._messages.put(json.loads(message))

    def _next(self, timeout):
        message = self._messages.get(timeout=timeout)
        method, details = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(
                details["exceptionDetails"].get("exception", {}).get("description", "exception")
            )
        elif method == "Runtime.consoleAPICalled" and details["type"] in {"error", "assert"}:
            self.errors.append(str([value.get("value") for value in details["args"]]))
        elif method == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.errors.append(details["entry"]["text"] + " " + details["entry"].get("url", ""))
        elif method == "Network.loadingFailed" and not details.get("canceled"):
            self.errors.append(f"not loaded: {details['errorText']}")
        return message

    def _ask(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(60)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, url, width=1400, height=1000, *, dark=False):
        """Open a page in a window of a size, and wait until it is loaded."""
        scheme = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},  # a picture is not taken half-way
        ]
        self._ask("Emulation.setEmulatedMedia", features=scheme)
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)  # fmt: skip
        self.errors = []
        self._ask("Page.navigate", url=url)
        while self._next(60).get("method") != "Page.loadEventFired":
            pass
        self.wait("document.readyState === 'complete'")

    def run(self, script):
        """The value of an expression in the page."""
        found = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def wait(self, script, seconds=120):
        """Wait until an expression is true; a page may send any number of messages meanwhile."""
        end = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > end:
                raise TimeoutError(script)
            try:
                self._next(0.1)
            except Empty:
                continue

    def click(self, x, y):
        """Click at a place in the window."""
        self.drag((x, y), (x, y))

    def drag(self, start, end):
        """Press the mouse at a place, move it, release it at another."""
        for kind, (x, y) in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
            self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def tap(self, x, y):
        """Touch a place in the window."""
        self._ask("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self._ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key):
        """Press a key on the part of the page that has the focus."""
        for kind in ("rawKeyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key)

    def picture(self, path):
        """Write what the window shows as a PNG file."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        """End the browser."""
        self._session = None
        self._ask("Browser.close")
        self._process.wait(30)
        for end in (self._read, self._write):
            os.close(end)
        self._folder.cleanup()
