"""What registries and desktop hosts install: ``server.json`` and the bundle say what the package is."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from jsonschema import Draft7Validator

import toolsrv

ROOT = Path(__file__).parents[2]
SCHEMAS = Path(__file__).parent / "schemas"


def told(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / name).read_text(encoding="utf-8"))
    return found


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return found


def test_the_manifest_fits_the_schema_of_bundles() -> None:
    schema, manifest = read("mcpb-manifest-v0.4.schema.json"), told("bundle/manifest.json")
    assert [error.message for error in Draft7Validator(schema).iter_errors(manifest)] == []
    wrong = {**manifest, "server": {"type": "snake"}}
    assert not Draft7Validator(schema).is_valid(wrong)


def test_the_registry_entry_fits_the_schema_that_it_names() -> None:
    schema, entry = read("server-2025-12-11.schema.json"), told("server.json")
    assert entry["$schema"] == schema["$id"]
    assert [error.message for error in Draft7Validator(schema).iter_errors(entry)] == []
    without = {key: value for key, value in entry.items() if key != "description"}
    assert not Draft7Validator(schema).is_valid(without)


def test_versions_and_names_are_those_of_the_package() -> None:
    entry, manifest = told("server.json"), told("bundle/manifest.json")
    versions = {entry["version"], manifest["version"], entry["packages"][0]["version"]}
    assert versions == {toolsrv.__version__}, "run bundle/build.py --sync"
    assert f"mcp-name: {entry['name']}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_manifest_lists_the_tools_that_the_server_has() -> None:
    from toolsrv.mcp_server.tools import Tools

    named = [one["name"] for one in told("bundle/manifest.json")["tools"]]
    assert named
    assert all(callable(getattr(Tools, name)) for name in named)
    assert len(set(named)) == 8


def test_settings_of_the_entries_are_settings() -> None:
    from toolsrv.settings import Settings

    variables = [
        *(one["name"] for one in told("server.json")["packages"][0]["environmentVariables"]),
        *told("bundle/manifest.json")["server"]["mcp_config"]["env"],
    ]
    ours = [one.removeprefix("TOOLSRV_").lower() for one in variables if one != "RAPIDAPI_KEY"]
    assert set(ours) <= set(Settings.model_fields)


@pytest.mark.parametrize("wheel", [False, True])
def test_a_bundle_has_the_manifest_and_what_it_starts_and_is_the_same_each_time(
    tmp_path: Path, wheel: bool
) -> None:
    made = tmp_path / "toolsrv-9-py3-none-any.whl"
    made.write_bytes(b"a wheel")
    os.utime(made, (1_800_000_000, 1_800_000_000))
    given = [sys.executable, str(ROOT / "bundle" / "build.py"), "--out"]
    further = ["--wheel", str(made)] if wheel else []
    paths = []
    for name in ("one", "two"):
        done = subprocess.run(
            [*given, str(tmp_path / name), *further], capture_output=True, text=True, check=True
        )
        paths.append(Path(done.stdout.strip()))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with zipfile.ZipFile(paths[0]) as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read("manifest.json"))
        project = archive.read("pyproject.toml").decode()
    assert manifest["server"]["entry_point"] in names
    assert manifest["server"]["mcp_config"]["args"][-1] in names
    assert f'"toolsrv=={toolsrv.__version__}"' in project
    assert (made.name in names) == (made.name in project) == wheel


def test_install_links_start_the_same_program() -> None:
    text = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    links = [urlsplit(one) for one in re.findall(r"\((https://[^)]+)\)", text)]
    coded = [parse_qs(one.query)["config"][0] for one in links if "install-mcp" in one.path]
    inner = [json.loads(base64.b64decode(one)) for one in coded]
    pages = [parse_qs(one.query)["url"][0] for one in links if one.path == "/redirect"]
    inner += [json.loads(unquote(one.partition("?")[2])) for one in pages]
    assert len(inner) == 4
    assert {one["command"] for one in inner} == {"uvx"}
    assert {tuple(one["args"]) for one in inner} == {("toolsrv", "serve")}


@pytest.mark.usefixtures("data_dir")
def test_the_program_of_the_bundle_serves() -> None:
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"},
        },
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "bundle" / "serve.py")],
        input=json.dumps(opening) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "toolsrv"
