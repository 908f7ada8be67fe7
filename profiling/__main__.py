"""List the scripts below this folder; ``python -m profiling.GROUP.NAME --help`` describes one."""

from __future__ import annotations

import ast
from pathlib import Path


def scripts() -> dict[str, str]:
    """Return the first line of each script's docstring by ``group.name``; scripts are the modules with a ``main``."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*/*.py")):
        tree = ast.parse(path.read_text())
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            found[f"{path.parent.name}.{path.stem}"] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


if __name__ == "__main__":
    print("python -m profiling.GROUP.NAME --help describes a script:")
    for name, summary in scripts().items():
        print(f"  {name:<32}{summary}")
