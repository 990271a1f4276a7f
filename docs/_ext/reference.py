"""Markdown made from the code: commands, settings, MCP tools and the entries of MCP clients.

Each part is a function without arguments that returns Markdown. Headings begin at level 2, as each
part stands below the title of a page.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import click
import yaml

from toolsrv.cli.main import cli
from toolsrv.clients.known import CLIENTS, NAME, PASTED_CONFIGS, Client
from toolsrv.clients.places import Machine, System
from toolsrv.config_file import PREFIX
from toolsrv.settings import REMOVED, Settings
from toolsrv_registry.errors import UsageError

_HOME = "~"
_PROGRAM = PurePosixPath("/path/to/.venv/bin/toolsrv")
_SYSTEMS: Mapping[System, str] = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}
_START_S = 120


def commands() -> str:
    """Return every command: usage, what it does, its options, an example."""
    return "\n".join(_command(cli, None, 2))


def settings() -> str:
    """Return a table of every setting: name, type, default, variable, meaning."""
    schema = Settings.model_json_schema()["properties"]
    rows = [
        "| setting | type | default | environment variable | what it does |",
        "|---|---|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True, validated_data={})
        rows.append(
            f"| `{name}` | {_cell(_type(schema[name]))} | {_cell(_default(default))} "
            f"| `{PREFIX}{name.upper()}` | {_cell(field.description or '')} |"
        )
    return "\n".join(rows)


def removed_settings() -> str:
    """Return a table of the settings of earlier releases, and what to use instead."""
    rows = [f"| `{name}` | {_cell(use)} |" for name, use in REMOVED.items()]
    return "\n".join(["| setting of 0.2.0 | use |", "|---|---|", *rows])


def mcp() -> str:
    """Return the tools, prompts and resources of the MCP server, as a client is given them."""
    told = _ask_server("tools/list", "prompts/list", "resources/templates/list")
    parts = ["## Tools", *(line for tool in told[0]["tools"] for line in _tool(tool))]
    parts += ["## Prompts", "| prompt | arguments | what it does |", "|---|---|---|"]
    for prompt in told[1]["prompts"]:
        names = ", ".join(
            f"`{one['name']}`" + ("" if one.get("required") else " (optional)")
            for one in prompt.get("arguments", [])
        )
        parts.append(f"| `{prompt['name']}` | {names} | {_cell(prompt.get('description', ''))} |")
    parts += ["", "## Resources", "| address | type | what it is |", "|---|---|---|"]
    parts += [
        f"| `{one['uriTemplate']}` | {_cell(one.get('mimeType', ''))} "
        f"| {_cell(one.get('description', ''))} |"
        for one in told[2]["resourceTemplates"]
    ]
    return "\n".join(parts)


def clients() -> str:
    """Return a section for each MCP client: the command, its file, the entry, what to do then."""
    lines: list[str] = []
    for client in CLIENTS.values():
        lines += _client(client)
    for id_, printed in PASTED_CONFIGS.items():
        lines += [
            f"## {printed.title}",
            "",
            f"`toolsrv connect {id_}` prints what to paste into: {printed.where}. It writes nothing.",
            "",
        ]
    return "\n".join(lines)


PARTS: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "settings": settings,
    "removed_settings": removed_settings,
    "mcp": mcp,
    "clients": clients,
}
"""The generated parts by the name that a page uses."""


def _command(command: click.Command, parent: click.Context | None, level: int) -> Iterator[str]:
    name = command.name if parent else "toolsrv"
    context = click.Context(command, info_name=name, parent=parent)
    path = context.command_path
    if parent is not None:
        yield f"{'#' * level} {path}\n"
    usage = " ".join((path, *command.collect_usage_pieces(context)))
    yield f"```text\n{usage}\n```\n"
    yield _paragraphs(command.help or command.short_help or "")
    options = [one for one in command.params if not getattr(one, "hidden", False)]
    rows = [row for one in options if (row := one.get_help_record(context)) and row[1]]
    if rows:
        yield "| option | meaning |\n|---|---|"
        yield "\n".join(f"| `{_code(first)}` | {_cell(text)} |" for first, text in rows) + "\n"
    if command.epilog:
        example = inspect.cleandoc(command.epilog.replace("\b", "")).removeprefix("Example:")
        yield f"```text\n{inspect.cleandoc(example)}\n```\n"
    if isinstance(command, click.Group):
        for one in command.list_commands(context):
            below = command.get_command(context, one)
            if below is not None and not below.hidden:
                yield from _command(below, context, min(level + (parent is not None), 4))


def _paragraphs(text: str) -> str:
    text = inspect.cleandoc(text.partition("\f")[0])
    blocks = []
    for block in text.split("\n\n"):
        if block.lstrip().startswith("\b"):
            blocks.append("```text\n" + block.replace("\b", "").strip("\n") + "\n```")
        else:
            blocks.append(_plain(" ".join(block.split())))
    return "\n\n".join(blocks) + "\n"


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a setting in words, from its JSON Schema."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    kind = str(schema.get("type", "any"))
    if schema.get("format") == "path":
        return "path"
    if kind in ("integer", "number"):
        return _range("whole number" if kind == "integer" else "number", schema)
    return {"boolean": "true, false", "string": "text", "null": "unset"}.get(kind, kind)


def _range(kind: str, schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above = schema.get("exclusiveMinimum")
    if above is not None:
        kind += f" above {above:,}"
    elif low is not None:
        kind += f" from {low:,}"
    return kind if high is None else f"{kind} to {high:,}"


def _default(value: object) -> str:
    if value is None:
        return "unset"
    if value == "":
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, Path):
        home = Path.home()
        inside = value.is_relative_to(home)
        return f"`{_HOME}/{value.relative_to(home).as_posix()}`" if inside else f"`{value}`"
    return f"`{value}`"


def _tool(tool: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {tool['name']}\n"
    yield _plain(tool["description"]) + "\n"
    hints = tool.get("annotations", {})
    changes = "only reads" if hints.get("readOnlyHint") else "may change something"
    yield f"It {changes}.\n"
    required = tool["inputSchema"].get("required", [])
    yield "| argument | required | what it is |\n|---|---|---|"
    for name, schema in tool["inputSchema"].get("properties", {}).items():
        needed = "yes" if name in required else "no"
        yield f"| `{name}` | {needed} | {_cell(schema.get('description', ''))} |"
    yield ""
    for key, title in (("inputSchema", "Arguments"), ("outputSchema", "Result")):
        if key in tool:
            schema = json.dumps(tool[key], indent=2, ensure_ascii=False)
            yield f'<details class="schema"><summary>{title} as JSON Schema</summary>\n'
            yield f"```json\n{schema}\n```\n\n</details>\n"


def _ask_server(*methods: str) -> list[dict[str, Any]]:
    """Return the results of ``methods`` of a server on stdio with default settings.

    Raises:
        RuntimeError: The server did not answer one of them.
    """
    start = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "docs", "version": "0"},
    }
    lines: list[dict[str, Any]] = [{"id": 0, "method": "initialize", "params": start}]
    lines += [{"method": "notifications/initialized"}]
    lines += [{"id": n, "method": name} for n, name in enumerate(methods, 1)]
    sent = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in lines)
    with tempfile.TemporaryDirectory() as folder:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "toolsrv", "--data-dir", folder, "serve"],
            input=sent,
            capture_output=True,
            encoding="utf-8",
            env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=_START_S,
            check=False,
        )
    answers = {one.get("id"): one for one in map(json.loads, done.stdout.splitlines())}
    missing = [n for n in range(1, len(methods) + 1) if "result" not in answers.get(n, {})]
    if missing:
        raise RuntimeError(f"no answer to {methods[missing[0] - 1]}: {done.stderr[-2000:]}")
    return [answers[n]["result"] for n in range(1, len(methods) + 1)]


def _client(client: Client) -> Iterator[str]:
    yield f"## {client.title}\n"
    yield f"```text\ntoolsrv connect {client.id}\n```\n"
    yield f"Then, in {client.title}: {client.then}.\n"
    places: dict[str, list[str]] = {}
    for system, name in _SYSTEMS.items():
        places.setdefault(_place(client, system), []).append(name)
    for path, names in places.items():
        yield f"- its file{' on ' + ', '.join(names) if len(places) > 1 else ''}: `{path}`"
    project = client.project_path(Path())
    if project is not None:
        yield f"- a project's file (`--scope project`): `{project.as_posix()}`"
    yield f"- takes `toolsrv serve --http` (`--http`): {'yes' if _takes_http(client) else 'no'}"
    yield "\nThe entry, where you would rather write it yourself:\n"
    language, text = _entry(client)
    yield f"```{language}\n{text}\n```\n"


def _place(client: Client, system: System) -> str:
    """Return the path of a client's file, as a system writes it."""
    path = client.path(Machine(system, Path(_HOME), {})).as_posix()
    if system != "win32":
        return path
    path = path.replace(f"{_HOME}/AppData/Roaming", "%APPDATA%")
    return path.replace(f"{_HOME}/", "%USERPROFILE%/").replace("/", "\\")


def _takes_http(client: Client) -> bool:
    try:
        client.http_entry("http://127.0.0.1:8765/mcp", {})
    except UsageError:
        return False
    return True


def _entry(client: Client) -> tuple[str, str]:
    """Return the language of a client's file and our entry in it."""
    entry = client.entry(_PROGRAM, ("serve",), {}, Path("/home/you"))
    if client.form == "toml":
        lines = [f"[{'.'.join((*client.keys, NAME))}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
        return "toml", "\n".join(lines)
    document: dict[str, Any] = {NAME: entry}
    for key in reversed(client.keys):
        document = {key: document}
    if client.form == "yaml":
        return "yaml", yaml.safe_dump(document, sort_keys=False).rstrip()
    return "json", json.dumps(document, indent=2)


def _plain(text: str) -> str:
    """Return text of the program as Markdown that shows it and formats nothing."""
    return "".join(f"\\{one}" if one in "\\`*_[]<>|$" else one for one in text)


def _code(text: str) -> str:
    return text.replace("|", "\\|")


def _cell(text: str) -> str:
    """Return text as one cell of a table; code spans stay."""
    parts = " ".join(text.split()).split("`")
    return "`".join(_code(one) if n % 2 else _plain(one) for n, one in enumerate(parts))
