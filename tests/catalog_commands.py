"""``toolsrv catalog`` on the command line: a folder of tools and a document to import, and what is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result
from tests.openapi_documents import document

Run = Callable[..., Result]
FORECAST = "Weather/sky_desk/tidal_forecast"
BERTHS = "Other/harbours/freeberths"


def seaside(
    description: str = "Tides of a harbour", *, apis: tuple[Any, ...] = ()
) -> dict[str, Any]:
    """Return a tool file with one API that can be read, one that cannot, and ``apis``."""
    return {
        "tool_name": "Sky Desk",
        "tool_description": "About the sea",
        "api_list": [
            {
                "name": "Tidal forecast",
                "description": description,
                "method": "GET",
                "url": "https://sea.example/tides",
                "required_parameters": [{"name": "harbour", "type": "STRING"}],
                "optional_parameters": [],
            },
            {"name": "Broken", "required_parameters": "x"},
            *apis,
        ],
    }


class Seaside:
    """A folder to import: the tool file, and one that ends early."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.file = folder / "tools" / "Weather" / "sky_desk.json"

    def __call__(self, description: str = "Tides of a harbour", *apis: Any) -> Path:
        """Write the tool file (again) and return the folder."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(seaside(description, apis=apis)))
        (self.file.parent / "cut.json").write_text('{"tool_name": ')
        return self.path


def harbours(
    server: str = "https://harbours.example", summary: str = "Berths", name: str = "freeBerths"
) -> str:
    """Return an OpenAPI document of one API, ``BERTHS``."""
    about = {"operationId": name, "summary": summary}
    title = {"title": "Harbours", "version": "1"}
    return json.dumps(document(about, "/berths", info=title, servers=[{"url": server}]))


def told(result: Result) -> Any:
    """Return the JSON of a command that must succeed."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def imported(run: Run, source: Path | str, *options: str) -> dict[str, Any]:
    """Import, and return what is told of it."""
    found: dict[str, Any] = told(run("catalog", "import", str(source), "--json", *options))
    return found


def hits(run: Run, text: str) -> list[str]:
    """Return the APIs that a search finds."""
    return [hit["id"] for hit in told(run("search", text, "--json"))["hits"]]
