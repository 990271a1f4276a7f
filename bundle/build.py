"""Build the bundle that desktop hosts install: ``python bundle/build.py --out dist``.

A bundle is a zip of the manifest, a project file and the program that is started; the host runs it
with uv, which installs toolsrv from the package index, or from a wheel inside the bundle
(``--wheel``). Versions in the manifest and in ``server.json`` are those of the package; ``--sync``
writes them there.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
SERVER_JSON = ROOT / "server.json"
MANIFEST = HERE / "manifest.json"
PROJECT = """\
[project]
name = "toolsrv-bundle"
version = "{version}"
requires-python = ">=3.11"
dependencies = ["toolsrv=={version}"]

[tool.uv]
package = false
"""
SOURCE = '\n[tool.uv.sources]\ntoolsrv = {{ path = "{name}" }}\n'
MOMENT = (2026, 1, 1, 0, 0, 0)
"""Of every file in a bundle, so that the same input makes the same bytes."""


def package_version() -> str:
    """Return the version of the package, read without importing it."""
    text = (ROOT / "server/toolsrv/__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit("server/toolsrv/__init__.py names no version")
    return found[1]


def sync(version: str) -> None:
    """Write a version into the manifest and ``server.json``, where it is another one."""
    for path in (MANIFEST, SERVER_JSON):
        text = path.read_text(encoding="utf-8")
        updated = re.sub(r'"version": "[^"]+"', f'"version": "{version}"', text)
        if updated != text:
            path.write_text(updated, encoding="utf-8", newline="\n")


def build(out: Path, wheel: Path | None = None) -> Path:
    """Write the bundle into a folder and return its path."""
    version = package_version()
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    if manifest["version"] != version:
        raise SystemExit(f"the manifest is of {manifest['version']}: run bundle/build.py --sync")
    project = PROJECT.format(version=version)
    if wheel is not None:
        project += SOURCE.format(name=wheel.name)
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"toolsrv-{version}.mcpb"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (
            ("manifest.json", MANIFEST.read_text(encoding="utf-8")),
            ("pyproject.toml", project),
            ("serve.py", (HERE / "serve.py").read_text(encoding="utf-8")),
            ("LICENSE", (ROOT / "LICENSE").read_text(encoding="utf-8")),
        ):
            archive.writestr(zipfile.ZipInfo(name, MOMENT), text, zipfile.ZIP_DEFLATED)
        if wheel is not None:
            archive.write(wheel, wheel.name, zipfile.ZIP_STORED)
    return target


def main() -> None:
    """Read the arguments and build."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the bundle")
    parser.add_argument("--wheel", type=Path, help="wheel of toolsrv to put into the bundle")
    parser.add_argument("--sync", action="store_true", help="write the package's version first")
    given = parser.parse_args()
    if given.sync:
        sync(package_version())
    sys.stdout.write(f"{build(given.out, given.wheel)}\n")


if __name__ == "__main__":
    main()
