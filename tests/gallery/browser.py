"""Headless browsers: what they have in common, and Chromium, driven by its DevTools protocol over two pipes."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections import deque
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LIMIT = 300.0  # seconds for an answer: a busy machine is slow
_KEYS = {" ": (32, "Space"), "ArrowLeft": (37, "ArrowLeft"), "ArrowRight": (39, "ArrowRight")}
_KEYS |= {"ArrowDown": (40, "ArrowDown"), "ArrowUp": (38, "ArrowUp"), "End": (35, "End"), "Home": (36, "Home")}
_KEYS |= {"Enter": (13, "Enter"), "Escape": (27, "Escape"), "Backspace": (8, "Backspace"), "Tab": (9, "Tab")}
_KEYS |= {"Delete": (46, "Delete")}


class Browser:
    """One page of a browser; errors of the page are collected in ``errors``."""

    errors: list[str]
    _process: subprocess.Popen[bytes]

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def open(self, path: Path, anchor: str = "") -> None:
        """Open a file, if need be again; wait until it is loaded, and the simulator, if it has one, is ready."""
        self.navigate("about:blank")
        self.navigate(path.resolve().as_uri() + anchor)
        loaded = f"location.href.startsWith({json.dumps(path.resolve().as_uri())})"
        loaded += " && document.readyState === 'complete'"
        self.wait(f"{loaded} && (!document.body.matches('.level') || document.body.dataset.ready === '')")

    def wait(self, expression: str) -> None:
        """Wait until JavaScript returns true."""
        end = time.monotonic() + LIMIT
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"waited in vain for {expression}"
            time.sleep(0.02)

    def press(self, key: str, shift: bool = False, control: bool = False) -> None:
        self.key(key, True, shift, control)
        self.key(key, False, shift, control)

    def click(self, selector: str) -> None:
        box = "(e => { e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); "
        box += f"return [r.x + r.width / 2, r.y + r.height / 2] }})(document.querySelector({json.dumps(selector)}))"
        self.drag(self.evaluate(box))

    def evaluate(self, expression: str) -> Any:
        """Return the value of JavaScript."""
        raise NotImplementedError

    def key(self, key: str, down: bool, shift: bool = False, control: bool = False) -> None:
        """Press a key and keep it down, or let it go."""
        raise NotImplementedError

    def drag(self, *points: tuple[float, float], button: str = "left", shift: bool = False) -> None:
        """Press a button of the mouse at the first point of the window, move to the others, and let it go."""
        raise NotImplementedError

    def heap(self) -> int:
        """Return the bytes of the page's objects that are in use, 0 where the browser does not say."""
        return 0

    def navigate(self, url: str) -> None:
        """Go to an address; ``open`` waits longer."""
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError


class Chromium(Browser):
    """Chromium or Chrome."""

    def __init__(self, profile: Path, width: int = 1280, height: int = 800, *switches: str):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *switches]
        command += [f"--user-data-dir={profile}", "--remote-debugging-pipe", "--no-first-run", "--mute-audio"]
        wrapped = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", wrapped, "bash", *command, "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._messages, self._number, self._session = b"", deque(), 0, None
        self.errors = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def _end(self) -> None:
        os.close(self._write)
        os.close(self._read)

    def resize(self, width: int, height: int, scale: float = 1, mobile: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setTouchEmulationEnabled", enabled=mobile)

    def prefer(self, **features: str) -> None:
        """Set media features, such as ``prefers_color_scheme="dark"``."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=wanted)

    def navigate(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def key(self, key: str, down: bool, shift: bool = False, control: bool = False) -> None:
        number, code = _KEYS.get(key, (ord(key[0].upper()), f"Key{key.upper()}" if key.isalpha() else ""))
        modifiers = 8 * shift + 2 * control
        names = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        text = {"text": key} if len(key) == 1 and not control else {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown" if down else "keyUp", **names, **(text if down else {}))

    def drag(self, *points: tuple[float, float], button: str = "left", shift: bool = False) -> None:
        kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, (*points, points[-1])):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1, modifiers=8 * shift)

    def drop(self, *paths: Path) -> None:
        """Drop files onto the page."""
        data = {"items": [], "files": [str(path.resolve()) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=200, y=200, data=data)

    def download(self, folder: Path) -> None:
        """Save files into a folder from now on."""
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def heap(self) -> int:
        self.call("HeapProfiler.collectGarbage")
        return self.call("Runtime.getHeapUsage")["usedSize"]

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            self._note(answer)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _note(self, event: dict[str, Any]) -> None:
        """Keep what the console of the page would show as an error."""
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(str(parameters["entry"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.errors.append(str(parameters["args"]))

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + LIMIT
        while not self._messages:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser has ended"
            *messages, self._buffer = (self._buffer + data).split(b"\0")
            self._messages.extend(map(json.loads, messages))
        return self._messages.popleft()
