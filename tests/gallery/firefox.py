"""A headless Firefox driven by its Marionette protocol, with the methods of the Chromium of ``browser``."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from .browser import LIMIT, Browser, Chromium
from .browser import PROGRAM as CHROMIUM

PROGRAM = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
_KEYS = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Home": "\ue011"}
_KEYS |= {"End": "\ue010", "Enter": "\ue006", "Escape": "\ue00c", "Backspace": "\ue003", "Delete": "\ue017"}
_KEYS |= {"Tab": "\ue004"}
_SHIFT, _CONTROL = "\ue008", "\ue009"
_MOTION = "ui.prefersReducedMotion"
_POINTER = "ui.primaryPointerCapabilities"
_PREFERENCES = {
    "marionette.port": 0,  # any that is free
    "security.fileuri.strict_origin_policy": False,  # pictures of files may be read back
    "ui.useOverlayScrollbars": 1,  # as on phones
    "browser.download.folderList": 2,
    "browser.download.alwaysOpenPanel": False,
    "browser.download.always_ask_before_handling_new_types": False,
    "app.normandy.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
}
_ERRORS = """
const found = Services.console.getMessageArray().filter((message) => message instanceof Ci.nsIScriptError);
Services.console.reset();
return found.filter((error) => !(error.flags & error.warningFlag) && /^file:/.test(error.sourceName)).map(String);
"""
_SIZE = """
const [width, height, scale] = arguments, shown = gBrowser.selectedBrowser;
window.resizeTo(Math.max(width, 500) + 50, height + 200);
for (const [side, pixels] of [["width", width], ["height", height]])
  for (const limit of ["min", "max"]) shown.style.setProperty(`${limit}-${side}`, `${pixels}px`);
shown.browsingContext.overrideDPPX = scale;
"""
_DROP = """((files) => {
  const dataTransfer = new DataTransfer(), target = document.elementFromPoint(200, 200);
  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  for (const [name, text] of files) dataTransfer.items.add(new File([bytes(text)], name));
  for (const kind of ["dragenter", "dragover", "drop"])
    target.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
})"""


class Firefox(Browser):
    """One page of a browser; files are dropped by events that a script makes, all other events are real."""

    def __init__(self, profile: Path, width: int = 1280, height: int = 800):
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in _PREFERENCES.items()]
        (profile / "user.js").write_text("".join(lines), encoding="utf-8")
        command = [PROGRAM, "--headless", "--marionette", "--remote-allow-system-access", "--no-remote"]
        command += ["--profile", str(profile), "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._number, self._errors = 0, []
        try:
            self._begin(_port(profile), width, height)
        except BaseException:
            self._process.kill()
            raise

    def _begin(self, port: int, width: int, height: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), LIMIT)
        self._file = self._socket.makefile("rb")
        self._receive()  # a greeting
        self.call("WebDriver:NewSession")
        self.call("WebDriver:SetTimeouts", script=int(1000 * LIMIT), pageLoad=int(1000 * LIMIT))
        self.resize(width, height)

    def _end(self) -> None:
        with suppress(AssertionError, OSError):  # it has ended
            self.call("Marionette:Quit", flags=["eForceQuit"])
        self._file.close()
        self._socket.close()

    @property
    def errors(self) -> list[str]:
        """The errors of pages."""
        self._errors += self._inside(_ERRORS)
        return self._errors

    def resize(self, width: int, height: int, scale: float = 1, mobile: bool = False) -> None:
        self._inside(_SIZE, width, height, scale)
        self._inside(f"Services.prefs.setIntPref('{_POINTER}', arguments[0])", 1 if mobile else 6)  # a finger, a mouse
        self.wait(f"innerWidth === {width} && innerHeight === {height}")

    def prefer(self, **features: str) -> None:
        scheme = features.get("prefers_color_scheme", "none")
        self._inside("gBrowser.selectedBrowser.browsingContext.prefersColorSchemeOverride = arguments[0]", scheme)
        reduced = int(features.get("prefers_reduced_motion") == "reduce")
        self._inside(f"Services.prefs.setIntPref('{_MOTION}', {reduced})")

    def evaluate(self, expression: str) -> Any:
        code = "return (async () => JSON.stringify(await window.eval(arguments[0])))()"
        value = self.call("WebDriver:ExecuteScript", script=code, args=[expression])["value"]
        return None if value is None else json.loads(value)

    def key(self, key: str, down: bool, shift: bool = False, control: bool = False) -> None:
        keys = [*[_SHIFT] * shift, *[_CONTROL] * control, _KEYS.get(key, key)]
        kind = "keyDown" if down else "keyUp"
        self._act("key", [{"type": kind, "value": value} for value in (keys if down else keys[::-1])])

    def drag(self, *points: tuple[float, float], button: str = "left", shift: bool = False) -> None:
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y)} for x, y in points]
        number = {"left": 0, "right": 2}[button]
        moves.insert(1, {"type": "pointerDown", "button": number})
        if shift:
            self.key(_SHIFT, True)
        self._act("pointer", [*moves, {"type": "pointerUp", "button": number}])
        if shift:
            self.key(_SHIFT, False)

    def drop(self, *paths: Path) -> None:
        files = [[path.name, base64.b64encode(path.read_bytes()).decode()] for path in paths]
        self.evaluate(f"{_DROP}({json.dumps(files)})")

    def download(self, folder: Path) -> None:
        self._inside("Services.prefs.setStringPref('browser.download.dir', arguments[0])", str(folder))

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("WebDriver:TakeScreenshot", full=False)["value"]))

    def call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = json.dumps([0, self._number, method, parameters]).encode()
        self._socket.sendall(b"%d:%b" % (len(message), message))
        _, number, error, result = self._receive()
        assert number == self._number
        assert error is None, f"{method}: {error}"
        return result

    def navigate(self, url: str) -> None:
        self.call("WebDriver:Navigate", url=url)

    def _inside(self, script: str, *arguments: Any) -> Any:
        """Return the value of JavaScript in the browser's own window."""
        self.call("Marionette:SetContext", value="chrome")
        try:
            return self.call("WebDriver:ExecuteScript", script=script, args=arguments)["value"]
        finally:
            self.call("Marionette:SetContext", value="content")

    def _act(self, kind: str, actions: list[dict[str, Any]]) -> None:
        self.call("WebDriver:PerformActions", actions=[{"type": kind, "id": kind, "actions": actions}])

    def _receive(self) -> Any:
        length = b""
        while (byte := self._file.read(1)) != b":":
            assert byte, "the browser has ended"
            length += byte
        return json.loads(self._file.read(int(length)))


def _port(profile: Path) -> int:
    """Return the port on which the browser listens."""
    end = time.monotonic() + LIMIT
    while not (file := profile / "MarionetteActivePort").exists() or not file.read_text(encoding="utf-8"):
        assert time.monotonic() < end, "the browser does not start"
        time.sleep(0.05)
    return int(file.read_text(encoding="utf-8"))


_NO_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium, chromium-browser or google-chrome")
_NO_FIREFOX = pytest.mark.skipif(PROGRAM is None, reason="there is no firefox-esr or firefox")
BROWSERS = [
    pytest.param(Chromium, marks=_NO_CHROMIUM, id="Chromium"),
    pytest.param(Firefox, marks=[_NO_FIREFOX, pytest.mark.slow], id="Firefox"),
]
