"""Our entry in clients' files: it comes and goes, everything else stays as it was."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path, PureWindowsPath

import pytest
from click.testing import Result
from tests.client_files import foreign, machine, parsed

from toolsrv.clients import jsonc
from toolsrv.clients.known import CLIENTS, ServerCommand, server_command
from toolsrv.clients.register import (
    BACKUP,
    command,
    registered,
    registration_change,
    removal_change,
)
from toolsrv_registry.errors import DataError, UsageError

Run = Callable[..., Result]
POSIX = os.name == "posix"
ONE_FILE = [one for one in CLIENTS if one != "windsurf"]
JSON = """{
  // my servers
  "%s": {
    "other": { "command": "x", "args": ["a,b", "}"], }, /* stays */
  },
  "theme": "dark", // last
}
"""
TOML = """# mine
model = "m"

[mcp_servers.other]  # stays
command = "x"

[mcp_servers.toolsrv_two]
command = "y"
"""
YAML = """# mine
GOOSE_MODEL: m
extensions:
    # stays
    other:
        type: stdio  # this too
        cmd: x
keep: [1, 2]
"""


def before(client: str) -> str:
    if client == "codex":
        return TOML
    return YAML if client == "goose" else JSON % CLIENTS[client].keys[0]


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_comes_and_goes_and_nothing_else_changes(client: str, tmp_path: Path) -> None:
    one, at = CLIENTS[client], machine(tmp_path)
    path = one.path(at)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before(client), "utf-8")
    path.chmod(0o640)
    change = registration_change(one, at)
    assert "toolsrv" in change.diff()
    assert change.write() == path.with_name(path.name + BACKUP)
    text = path.read_text("utf-8")
    assert not POSIX or path.stat().st_mode & 0o777 == 0o640
    assert set(before(client).splitlines()) <= set(text.splitlines())
    servers = parsed(client, text)[one.keys[0]]
    assert next(iter(servers)) == "other" or client == "goose"
    assert servers["toolsrv"] == one.entry(command(), ("serve",), home=at.home)
    assert not registration_change(one, at).needed
    removal_change(one, at).write()
    assert path.read_text("utf-8") == before(client)
    assert not removal_change(one, at).needed


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_without_a_file_gets_one(client: str, tmp_path: Path) -> None:
    one, at = CLIENTS[client], machine(tmp_path)
    assert registration_change(one, at).write() is None
    text = one.path(at).read_text("utf-8")
    assert parsed(client, text)[one.keys[0]]["toolsrv"] == one.entry(
        command(), ("serve",), home=at.home
    )
    assert not POSIX or one.path(at).stat().st_mode & 0o777 == 0o600
    removal_change(one, at).write()
    assert not one.path(at).exists()
    assert list(one.path(at).parent.iterdir()) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_an_old_entry_of_ours_is_renewed(client: str, tmp_path: Path) -> None:
    one, at = CLIENTS[client], machine(tmp_path)
    registration_change(one, at, ["serve", "--model", "old.gguf"]).write()
    registration_change(one, at).write()
    text = one.path(at).read_text("utf-8")
    assert parsed(client, text)[one.keys[0]]["toolsrv"] == one.entry(
        command(), ("serve",), home=at.home
    )
    assert "old.gguf" not in text


@pytest.mark.parametrize(
    ("client", "text", "place"),
    [
        ("cursor", '{"mcpServers": {\n  "a": }', "line 2, column 8"),
        ("cursor", '{"mcpServers": {', "line 1"),
        ("cursor", "[]", "not a table"),
        ("cursor", '{"mcpServers": []}', "mcpServers"),
        ("vs-code", '{"a": 1} {"b": 2}', "line 1, column 10"),
        ("codex", "[mcp_servers\n", "line 1"),
        ("goose", "extensions:\n  - a\n b: c\n", "line 3"),
    ],
)
def test_a_damaged_file_is_refused_and_says_where(
    client: str, text: str, place: str, tmp_path: Path
) -> None:
    one, at = CLIENTS[client], machine(tmp_path)
    one.path(at).parent.mkdir(parents=True, exist_ok=True)
    one.path(at).write_text(text)
    with pytest.raises(UsageError, match=place):
        registration_change(one, at)
    assert one.path(at).read_text() == text


def test_a_form_beyond_a_safe_change_is_refused(tmp_path: Path) -> None:
    one, at = CLIENTS["codex"], machine(tmp_path)
    one.path(at).parent.mkdir(parents=True)
    one.path(at).write_text('mcp_servers = { other = { command = "x" } }\n')
    with pytest.raises(DataError, match="safely"):
        registration_change(one, at)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    one, at = CLIENTS["claude-code"], machine(tmp_path)
    one.path(at).write_bytes('{"a": "é"}'.encode("latin-1"))
    with pytest.raises(UsageError, match="UTF-8"):
        registration_change(one, at)


@pytest.mark.skipif(not POSIX, reason="on Windows a link needs a privilege")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    one, at = CLIENTS["claude-code"], machine(tmp_path)
    (tmp_path / "real.json").write_text("{}")
    one.path(at).symlink_to(tmp_path / "real.json")
    registration_change(one, at).write()
    assert one.path(at).is_symlink()
    assert "toolsrv" in (tmp_path / "real.json").read_text()


def test_line_ends_of_windows_stay(tmp_path: Path) -> None:
    one, at = CLIENTS["cursor"], machine(tmp_path)
    one.path(at).parent.mkdir(parents=True)
    text = (JSON % "mcpServers").replace("\n", "\r\n").encode()
    one.path(at).write_bytes(text)
    registration_change(one, at).write()
    removal_change(one, at).write()
    assert one.path(at).read_bytes() == text


def test_any_json_with_comments_keeps_all_but_our_entry() -> None:
    draw = random.Random(5)

    def value(depth: int) -> str:
        if depth > 2 or draw.random() < 0.4:
            return draw.choice(['"a // b"', '"}\\""', "1.5e3", "true", "null", '"é"'])
        gap = draw.choice(["", " ", "\n  ", " /* , } */ ", " // c\n"])
        tail = draw.choice(["", ","])
        if draw.random() < 0.3:
            items = [value(depth + 1) for _ in range(draw.randrange(3))]
            return f"[{gap}{f',{gap}'.join(items)}{tail if items else ''}{gap}]"
        return table({f"k{n}": value(depth + 1) for n in range(draw.randrange(3))}, gap, tail)

    def table(members: dict[str, str], gap: str, tail: str) -> str:
        inner = f",{gap}".join(f'"{key}":{gap}{text}' for key, text in members.items())
        return f"{{{gap}{inner}{tail if members else ''}{gap}}}"

    for _ in range(1_500):
        servers = {"other": value(1)} if draw.random() < 0.7 else {}
        members = {"x": value(0), "s": table(servers, draw.choice(["", "\n "]), ""), "y": value(0)}
        text = table(members, draw.choice(["", "\n", " // c\n"]), draw.choice(["", ","]))
        old = jsonc.parse(text).plain
        added = jsonc.with_entry(text, ("s", "toolsrv"), {"command": "c", "args": ["a"]})
        new = jsonc.parse(added).plain
        assert new["s"].pop("toolsrv") == {"command": "c", "args": ["a"]}
        assert new == old
        assert jsonc.parse(jsonc.without_entry(added, ("s", "toolsrv"))).plain == old


""",
    "toml": """  # mine


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("client", ONE_FILE)
def test_an_entry_of_another_program_is_replaced_only_when_told_and_comes_back(
    client: str, tmp_path: Path, *, edited: bool
) -> None:
    one, at = CLIENTS[client], machine(tmp_path)
    path, text = one.path(at), foreign(client)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match="/opt/mine") as refused:
        registration_change(one, at)
    assert "--replace" in refused.value.hint
    assert not removal_change(one, at).needed
    assert not registered(one, at)
    registration_change(one, at, replace=True).write()
    registration_change(one, at, ["serve", "--model", "m.gguf"]).write()
    assert registered(one, at)
    if edited:  # by its user, since
        path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    removal_change(one, at).write()
    got, was = (parsed(client, now) for now in (path.read_text("utf-8"), text))
    assert got == was
    assert path.with_name(path.name + BACKUP).read_text("utf-8") == text
    assert edited or path.read_text("utf-8") == text


def test_a_former_entry_that_was_removed_since_stays_removed(tmp_path: Path) -> None:
    one, at = CLIENTS["cursor"], machine(tmp_path)
    path = one.path(at)
    path.parent.mkdir(parents=True)
    path.write_text(foreign("cursor"), "utf-8")
    registration_change(one, at, replace=True).write()
    path.write_text('{"mcpServers": {}}', "utf-8")
    registration_change(one, at).write()
    removal_change(one, at).write()
    assert json.loads(path.read_text("utf-8")) == {"mcpServers": {}}


PROGRAM = PureWindowsPath(r"C:\Users\Ann Lee Ünal 😀\AppData\Local\toolsrv\Scripts\toolsrv.exe")
FOLDER = r"D:\new data\tools \u0041 'a' C:\temp"


@pytest.mark.parametrize("client", ONE_FILE)
def test_paths_of_windows_come_back_as_they_were(client: str, tmp_path: Path) -> None:
    one, at = CLIENTS[client], machine(tmp_path, "win32")
    arguments = ("--data-dir", FOLDER, "serve")
    registration_change(one, at, arguments, program=PROGRAM).write()
    entry = parsed(client, one.path(at).read_text("utf-8"))[one.keys[0]]["toolsrv"]
    assert server_command(entry) == ServerCommand(str(PROGRAM), arguments)
    assert registered(one, at)
    assert not registration_change(one, at, arguments, program=PROGRAM).needed
    other = {"command": str(PROGRAM.with_name("other.exe")), "args": [FOLDER]}
    again = registration_change(one, at, ("serve",), program=PROGRAM)
    again.write()
    removal_change(one, at).write()
    assert not registered(one, at)
    if one.form == "json":
        text = jsonc.with_entry("", (*one.keys, "other"), other)
        one.path(at).write_text(text, "utf-8")
        registration_change(one, at, arguments, program=PROGRAM).write()
        removal_change(one, at).write()
        kept = parsed(client, one.path(at).read_text("utf-8"))
        assert kept[one.keys[0]] == {"other": other}


EMPTY = {
    "json": (
        "null", " null\n", "{}", '{"%s": null}', '{"%s": null, "a": 1}', '{\n  "%s": null // x\n}\n',
        "// nothing yet", "// nothing yet\n", "/* a */\n\n// b\n", "/* a */ null // b\n",
        '// a\n{"%s": /* b */ null}\n',
    ),
    "yaml": (
        "null\n", "~", "{}\n", "--- null # x\n", "---\n", "%s: null\n", "%s:\n", "%s: ~ # x\n",
        "%s: {}", "# nothing yet", "# a\nnull # b\n", "a: 1\n%s: null\n",
    ),
    "toml": ("# nothing yet", "# a\n\n# b\n", "[%s]\n", "a = 1\n"),
}  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_file_without_servers_counts_as_an_empty_table(
    client: str, mark: str, line_end: str, tmp_path: Path
) -> None:
    one, at = CLIENTS[client], machine(tmp_path)
    path = one.path(at)
    path.parent.mkdir(parents=True, exist_ok=True)
    for form in ("", " ", "\n\n", " \t\n", *EMPTY[one.form]):
        text = mark + form.replace("%s", one.keys[0]).replace("\n", line_end)
        path.write_bytes(text.encode())
        assert not registered(one, at)
        assert not removal_change(one, at).needed
        registration_change(one, at).write()
        new = path.read_bytes().decode()
        assert new.startswith(mark)
        document = parsed(client, new.removeprefix("\ufeff"))
        assert document[one.keys[0]] == {
            "toolsrv": one.entry(command(), ("serve",), home=at.home)
        }, text
        assert {key for key in document if key != one.keys[0]} <= {"a"}
        for comment in ("// nothing yet", "/* a */", "// b", "# nothing yet", "# x", "# a", "# b"):
            assert (comment in new) is (comment in text), (text, new)
        removal_change(one, at).write()
        assert not registered(one, at)
        path.with_name(path.name + BACKUP).unlink(missing_ok=True)
