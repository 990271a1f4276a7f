"""The house rule: imports run downhill only, and there is no import circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = {
    "toolsrv_registry": ("registry", set[str]()),
    "toolsrv_catalogs": ("catalogs", {"toolsrv_registry"}),
    "toolsrv_runtime": ("runtime", {"toolsrv_registry", "toolsrv_catalogs"}),
    "toolsrv": ("server", {"toolsrv_registry", "toolsrv_catalogs", "toolsrv_runtime"}),
    "toolsrv_lab": ("lab", {"toolsrv_registry", "toolsrv_catalogs", "toolsrv_runtime"}),
}
OURS = frozenset(ROOMS)


@cache
def modules(package: str) -> dict[str, Path]:
    folder = ROOT / ROOMS[package][0]
    found = {}
    for path in sorted((folder / package).rglob("*.py")):
        dotted = ".".join(path.relative_to(folder).with_suffix("").parts)
        found[dotted.removesuffix(".__init__")] = path
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(module: str, path: Path) -> frozenset[str]:
    """Every module of ours that a file names in an import, at any depth, also for types."""
    names: set[str] = set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[: 1 - node.level or None], base]).strip(".")
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return frozenset(name for name in names if name.split(".")[0] in OURS)


@pytest.mark.parametrize("package", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(package: str) -> None:
    allowed = ROOMS[package][1] | {package}
    wrong = {
        (module, name)
        for module, path in modules(package).items()
        for name in imported(module, path)
        if name.split(".")[0] not in allowed
        # The command line opens the laboratory, when it is called.
        and not (name.startswith("toolsrv_lab") and module.startswith("toolsrv.cli."))
    }
    assert wrong == set()


def runtime_imports(inside: str) -> set[tuple[str, str]]:
    """Return (module, imported module of the runtime) for the modules of one of its packages."""
    package = f"toolsrv_runtime.{inside}"
    return {
        (module, name)
        for module, path in modules("toolsrv_runtime").items()
        if module == package or module.startswith(f"{package}.")
        for name in imported(module, path)
        if name.startswith("toolsrv_runtime.")
    }


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("contract", ("contract", "stop", "errors")),
        ("values", ("values",)),
        ("evidence", ("evidence", "values", "outcome")),
        ("planner.reading", ("planner.reading", "values")),
    ],
)
def test_a_package_below_the_agent_imports_only_what_is_named(
    package: str, allowed: tuple[str, ...]
) -> None:
    wrong = {
        (module, name)
        for module, name in runtime_imports(package)
        if not f"{name}.".startswith(tuple(f"toolsrv_runtime.{one}." for one in allowed))
    }
    assert wrong == set()


def test_only_what_builds_the_compact_format_imports_the_planner() -> None:
    """Nor at import time: models of every other format solve without its rules being read."""
    importing = {
        module
        for room in ("toolsrv_runtime", "toolsrv")
        for module, path in modules(room).items()
        if not module.startswith("toolsrv_runtime.planner")
        and any(name.startswith("toolsrv_runtime.planner") for name in imported(module, path))
    }
    assert importing == {"toolsrv_runtime.solve"}
    probe = (
        "import sys, toolsrv_runtime.solve as solve; "
        "from toolsrv_runtime.profiles import Profile; "
        "solve.build_hints(Profile(name='chat', format='chat', context=1), None); "
        "print(*(one for one in sys.modules if one.startswith('toolsrv_runtime.planner')))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_only_the_command_line_names_the_laboratory() -> None:
    named = {
        module
        for module, path in modules("toolsrv").items()
        if "toolsrv_lab" in path.read_text(encoding="utf-8")
    }
    assert named <= {name for name in named if name.startswith("toolsrv.cli")}


def test_there_is_no_import_circle() -> None:
    known = {name: path for package in ROOMS for name, path in modules(package).items()}
    graph: dict[str, set[str]] = {}
    for module, path in known.items():
        needs = {name for name in imported(module, path) if name in known}
        # A package is no need of its own modules: they import from each other, not through it.
        graph[module] = {name for name in needs if not module.startswith(f"{name}.")} - {module}
    tuple(TopologicalSorter(graph).static_order())


def test_every_package_is_typed_and_every_module_says_what_it_is() -> None:
    for package in ROOMS:
        folder = ROOT / ROOMS[package][0]
        assert (folder / package / "py.typed").exists()
        assert not (folder / "__init__.py").exists()
        assert (folder / "README.md").exists()
        for path in modules(package).values():
            assert ast.get_docstring(parsed(path)), path
