"""onnxruntime does not call home: it is loaded in one place, which keeps it from that."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("server", "runtime", "registry", "catalogs", "lab")
LOADED = """
import sys
from toolsrv_registry.{module} import {names}
{work}
assert "onnxruntime" in sys.modules
"""


def imports_it(path: Path) -> bool:
    """Whether a file imports onnxruntime, or has it imported by its name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            names = [str(node.args[0].value)] if called in {"import_module", "load"} else []
        else:
            continue
        if any(name.partition(".")[0] == "onnxruntime" for name in names):
            return True
    return False


def test_one_module_loads_it() -> None:
    files = [path for part in PARTS for path in (ROOT / part).rglob("*.py")]
    assert len(files) > 300
    assert [path.name for path in files if imports_it(path)] == []
    text = (ROOT / "registry/toolsrv_registry/onnx_runtime.py").read_text(encoding="utf-8")
    assert "importlib.import_module(module)" in text


@pytest.mark.parametrize(
    ("module", "names", "work"),
    [
        ("encoder", "OnnxEncoder", "OnnxEncoder().encode(['a'])"),
        ("matcher", "Matcher", "Matcher().load()"),
        ("ranker", "Ranker", "Ranker().load()"),
        (
            "index.flat",
            "Int8Product, quantize",
            "import numpy as np; Int8Product(*quantize(np.ones((2, 4), np.float32)))",
        ),
    ],
)
def test_nothing_is_written_to_the_users_home(
    module: str, names: str, work: str, tmp_path: Path
) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module, names=names, work=work)],
        env=environment | {"HOME": str(tmp_path)},
        check=True,
        timeout=120,
    )
    assert list(tmp_path.rglob("*")) == []
