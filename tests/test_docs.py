"""The documentation: links lead somewhere, commands exist, and parts come from the code."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shlex
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from toolsrv.cli.main import cli
from toolsrv.clients.known import CLIENTS
from toolsrv.settings import REMOVED, Settings
from toolsrv_lab import picture

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")], key=str
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(toolsrv [^`]+)`")
LINK = re.compile(r"(?<!`)\]\((?!\w+:)([^()\s#]*)(#[^()\s]+)?\)")
SHELLS = ("bash", "text", "console")


def load(path: Path) -> ModuleType:
    """A script of the repository that is no part of a package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def command_lines(text: str, languages: tuple[str, ...] = SHELLS) -> Iterator[str]:
    """The lines of fenced blocks that start the program, without what stands before it."""
    for language, block in FENCE.findall(text):
        if language in languages:
            for line in block.replace("\\\n", " ").splitlines():
                found = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S*/)?(toolsrv .*)", line)
                if found:
                    yield found[1]


def inline_commands(text: str) -> Iterator[str]:
    """The commands that stand in a sentence."""
    for one in INLINE.findall(FENCE.sub("", text)):
        yield " ".join(one.split())


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-"))
    return found


def check_line(line: str) -> None:
    """Raise click's own error where a command, an option or a choice is not there."""
    words = []
    for word in shlex.split(line, comments=True)[1:]:
        if word in ("|", ">", "2>", "&&", "&"):  # the shell's, not ours
            break
        words += [] if word in ("…", "...") else [word]
    command: click.Command = cli
    context = click.Context(command, info_name="toolsrv")
    while True:
        values, rest, _ = command.make_parser(context).parse_args(words)
        for param in command.params:
            value = values.get(param.name or "")
            if isinstance(param.type, click.Choice) and isinstance(value, str):
                param.type.convert(value, param, context)
        if not isinstance(command, click.Group):
            if rest and not context.allow_extra_args:
                raise click.UsageError(f"too many arguments: {' '.join(rest)}")
            return
        if not rest:
            return
        below = command.get_command(context, rest[0])
        if below is None:
            raise click.UsageError(f"no command {rest[0]!r}")
        context = click.Context(below, info_name=rest[0], parent=context)
        command, words = below, rest[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.relative_to(ROOT).as_posix())
def test_every_command_that_a_page_shows_exists_with_its_options(page: Path) -> None:
    for line in command_lines(page.read_text("utf-8")):
        _check(line)
    for line in inline_commands(page.read_text("utf-8")):
        with contextlib.suppress(click.BadOptionUsage):  # an option may stand without its value
            _check(line)


def _check(line: str) -> None:
    try:
        check_line(line)
    except click.BadOptionUsage:
        raise
    except (click.UsageError, ValueError) as error:
        pytest.fail(f"{line}: {error}")


@pytest.mark.parametrize("line", ["toolsrv slove x", "toolsrv solve --no-such x", "toolsrv run x"])
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    with pytest.raises(click.UsageError):
        check_line(line)


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.relative_to(ROOT).as_posix())
def test_every_link_between_pages_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text("utf-8")))
    for target, anchor in LINK.findall(text):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        if anchor:
            assert anchor.removeprefix("#") in anchors(file), f"{target}{anchor}"


EXECUTED = [
    (page.stem, line)
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for line in command_lines(page.read_text("utf-8"), ("bash",))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("docs")


@pytest.mark.parametrize(("page", "line"), EXECUTED)
def test_a_command_in_a_bash_block_works(
    page: str, line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(folder))
    monkeypatch.setenv("HOME", str(folder))
    done = CliRunner().invoke(cli, shlex.split(line, comments=True)[1:], prog_name="toolsrv")
    assert done.exit_code == 0, f"{page}: {done.output}"
    assert done.stdout.strip()


def test_the_docs_have_commands_to_execute() -> None:
    assert len(EXECUTED) >= 8


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


def test_the_reference_has_every_setting_command_and_client() -> None:
    reference = load(ROOT / "docs" / "_ext" / "reference.py")
    settings = reference.settings()
    rows = [line for line in settings.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == list(Settings.model_fields)
    assert all(f"| `TOOLSRV_{name.upper()}` | " in settings for name in Settings.model_fields)
    removed = reference.removed_settings()
    assert all(f"| `{name}` | " in removed for name in REMOVED)
    number = {"type": "integer", "minimum": 1, "maximum": 1600}
    assert reference._type(number) == "whole number from 1 to 1,600"
    assert reference._type({"anyOf": [{"type": "string"}, {"type": "null"}]}) == "text or unset"
    assert str(Path.home()) not in settings
    commands = reference.commands()
    context = click.Context(cli, info_name="toolsrv")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command
        assert command.hidden or f"## toolsrv {name}\n" in commands
    clients = reference.clients()
    for client in CLIENTS.values():
        assert f"## {client.title}\n" in clients
        assert f"toolsrv connect {client.id}\n" in clients


def test_every_page_of_the_site_can_be_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    site = load(ROOT / "docs" / "_ext" / "toolsrv_site.py")
    monkeypatch.setitem(sys.modules["reference"].PARTS, "mcp", lambda: "## Tools")
    pages = site.pages()
    for page in set(pages.values()):
        text = site.page_text(page, pages)
        assert not re.search(r"^<!-- (include|generated):", text, re.MULTILINE)
    readme, shown_as = ROOT / "server" / "README.md", ROOT / "docs" / "inside" / "server.md"
    moved = site.relink("[a](../docs/clients.md#b) [c](../LICENSE)", readme, shown_as, pages)
    assert moved == "[a](../clients.md#b) c (`LICENSE`)"
    nowhere = site.relink("[a](nowhere.md)", readme, shown_as, pages)
    assert nowhere == "[a](../../server/nowhere.md)"


def test_a_site_with_a_dead_link_a_lost_anchor_or_a_foreign_script_is_refused(
    tmp_path: Path,
) -> None:
    check = load(ROOT / ".ci" / "check_site.py")
    page = '<p id="here"><a href="b.html#there">b</a> <a href="#here">a</a></p>'
    (tmp_path / "a.html").write_text(page)
    (tmp_path / "b.html").write_text('<h1 id="there"><a href="https://example.com/">x</a></h1>')
    assert check.faults(tmp_path) == []
    (tmp_path / "b.html").write_text('<script src="https://example.com/x.js"></script>')
    (tmp_path / "c.html").write_text('<img src="gone.png">')
    assert check.faults(tmp_path) == [
        "a.html: b.html#there has no such anchor",
        "b.html: loads https://example.com/x.js",
        "c.html: gone.png leads nowhere",
    ]


def test_the_moving_picture_is_what_was_printed_and_loads_nothing() -> None:
    lines = [
        picture.Line(1.0, 'call  A/b/c {"x": "<&>"}', "call"),
        picture.Line(2.5, "the answer is 4", "answer"),
    ]
    drawn = picture.draw("a <task>", lines)
    texts = [one.text for one in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert texts[1:] == ['$ toolsrv solve "a <task>"', lines[0].text, lines[1].text]
    shipped = (ROOT / "docs" / "solve.svg").read_text("utf-8")
    assert ET.fromstring(shipped).find(".//{http://www.w3.org/2000/svg}title") is not None
    for svg in (drawn, shipped):
        assert not re.search(r"(href|src|url)\s*[=(]|@import|<script", svg)
        assert "prefers-reduced-motion" in svg
        assert "prefers-color-scheme: dark" in svg
