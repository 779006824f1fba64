"""A headless Chromium, driven over a pipe by its DevTools protocol; without any library."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_LIMIT = 60.0  # seconds


class BrowserError(Exception):
    """The browser refused a command, or does not answer."""


def find() -> str:
    """Returns the path of a Chromium; FileNotFoundError without one."""
    path = next((path for path in map(shutil.which, NAMES) if path), None)
    if path is None:
        raise FileNotFoundError(f"no Chromium on the PATH ({', '.join(NAMES)}): apt-get install chromium")
    return path


@contextlib.contextmanager
def started(profile: Path) -> Iterator[Browser]:
    """Yields a browser; leaving the block ends it."""
    commands_out, commands_in = os.pipe()
    answers_out, answers_in = os.pipe()
    arguments = [
        *(find(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *("--disable-dev-shm-usage", f"--user-data-dir={profile}", "about:blank"),
    ]
    # The browser reads from descriptor 3 and writes to 4.
    shell = ["bash", "-c", f'exec "$@" 3<&{commands_out} 4>&{answers_in}', "chromium", *arguments]
    process = subprocess.Popen(shell, pass_fds=(commands_out, answers_in), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(commands_out)
    os.close(answers_in)
    try:
        with open(commands_in, "wb", buffering=0) as commands, open(answers_out, "rb", buffering=0) as answers:
            yield Browser(commands, answers)
    finally:
        process.terminate()
        process.wait(_LIMIT)


class Browser:
    """One page of the browser."""

    def __init__(self, commands: Any, answers: Any) -> None:
        self._commands, self._answers = commands, answers
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.complaints: list[str] = []  # of its console, and what it refused to load or failed in
        self.requests: list[str] = []  # addresses, but for those that hold their own data
        self._loaded = False
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, path: Path | str, *, width: int, height: int = 900, dark: bool = False, scripts: bool = True) -> None:
        """Loads a page (of a file or an address), and waits until all of it is there."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Emulation.setScriptExecutionDisabled", value=not scripts)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **size)
        self.complaints.clear()
        self.requests.clear()
        self._loaded = False
        self._call("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        while not self._loaded:
            self._take()
        self.evaluate("Promise.all([...document.images].map(image => image.decode())).then(() => 0)")

    def evaluate(self, expression: str) -> Any:
        """Returns the value of an expression in the page, awaited where it is a promise."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(answer)
        return answer["result"].get("value")

    def picture(self, selector: str, height: float) -> bytes:
        """Returns a PNG of the page, as wide as the window, from the top of an element to its end, or `height` pixels of it."""
        box = "(box => [box.top + scrollY, box.bottom + scrollY, document.documentElement.clientWidth])"
        top, bottom, width = self.evaluate(f"{box}(document.querySelector({json.dumps(selector)}).getBoundingClientRect())")
        clip = {"x": 0, "y": top, "width": width, "height": min(bottom - top, height), "scale": 1}
        answer = self._call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def move_to(self, x: float, y: float) -> None:
        """Moves the pointer to a place in the window."""
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._take()
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(answer)
                result: dict[str, Any] = answer["result"]
                return result

    def _take(self) -> dict[str, Any]:
        """Returns the next message, and keeps what it tells of the page."""
        limit = time.monotonic() + _LIMIT
        while b"\0" not in self._rest:
            part = self._answers.read(1 << 16)
            if not part:
                raise BrowserError("the browser is gone")
            if time.monotonic() > limit:
                raise BrowserError("the browser does not answer")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, parameters: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(parameters))
        elif method == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith("data:"):
            self.requests.append(parameters["request"]["url"])
