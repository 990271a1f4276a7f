"""docs/clients.md names the releases that the nightly gate runs, with their transports."""

from __future__ import annotations

from pathlib import Path

from tests.clients.model_clients import MODEL_CLIENTS
from tests.clients.tool_clients import PROXY, REMOTE, TOOL_CLIENTS

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text("utf-8")


def _transports(*, http: bool, project: bool = False) -> str:
    return ", ".join(["stdio", *(["HTTP"] if http else []), *(["project"] if project else [])])


def _rows(heading: str) -> list[str]:
    """Return the rows of the first table after a heading or sentence."""
    rest = PAGE[PAGE.index(heading) :].splitlines()
    first = next(number for number, line in enumerate(rest) if line.startswith("|---"))
    rows = []
    for line in rest[first + 1 :]:
        if not line.startswith("|"):
            break
        rows.append(line)
    return rows


def test_the_page_has_a_row_for_each_client_with_a_model() -> None:
    rows = _rows("## Clients that were run")
    for row, client in zip(rows, MODEL_CLIENTS, strict=True):
        title, package, entry, transports, shown, _ = row.strip("| ").split(" | ", 5)
        assert title == client.title
        assert package == f"{client.package.name} {client.package.version}"
        assert entry == (f"`connect {client.connect}`" if client.connect else "pasted")
        assert transports == _transports(http=client.http, project=client.trust is not None)
        assert shown == client.shown


def test_the_page_has_a_row_for_each_client_without_a_model() -> None:
    rows = _rows("These have no model")
    named = [row.strip("| ").split(" | ")[:3] for row in rows]
    expected = [
        [one.title, f"{one.package.name} {one.package.version}", _transports(http=one.http)]
        for one in TOOL_CLIENTS
    ]
    assert named == [
        *expected,
        ["mcp-remote", f"{REMOTE.name} {REMOTE.version}", "HTTP"],
        ["mcpo", f"{PROXY.name} {PROXY.version}", "stdio"],
    ]
