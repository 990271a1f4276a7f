"""A small hand-made catalog and open registries on it, each in its own data directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolsrv_registry import names
from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.registry import Registry
from toolsrv_registry.storage.store import Store

MakeApi = Callable[..., Api]
MakeCatalog = Callable[..., Catalog]

# category, tool, API, description, required parameters
_ROWS = (
    ("Weather", "Sky Watch", "Forecast", "Daily weather forecast for a city", ("city", "days")),
    ("Weather", "Sky Watch", "Current Conditions", "Temperature and wind right now", ("city",)),
    ("Weather", "Sun and Moon", "Sunrise", "When the sun rises and sets at a place", ("city",)),
    ("Finance", "Money", "Convert Currency", "Convert an amount of money to another currency",
     ("amount", "from", "to")),
    ("Finance", "Money", "List Currencies", "All currency codes with their names", ()),
    ("Travel", "Rooms", "Search Hotels", "Find hotels in a city for some nights",
     ("city", "nights")),
    ("Travel", "Rooms", "Museum Hours", "Opening hours of museums", ("museum",)),
    ("Text_Analysis", "Letters", "Count Words", "Count the words and letters of a text",
     ("text",)),
    ("Text_Analysis", "Letters", "Reverse Text", "Write a text backwards", ("text",)),
    ("Tools", "Hash", "SHA-256", "Digest of a text in hexadecimal", ("text",)),
    ("Tools", "Units", "convertUnit", "Convert a quantity such as miles to kilometres",
     ("quantity", "unit")),
    ("News_Media", "Press", "Headlines", "Latest newspaper headlines about a topic", ("topic",)),
)  # fmt: skip


def _api(
    category: str, tool: str, name: str, description: str = "", required: tuple[str, ...] = ()
) -> Api:
    return Api(
        id=f"{category}/{names.standardize(tool)}/{names.api_name(name)}",
        category=category,
        tool=tool,
        name=name,
        description=description,
        required=tuple(Parameter(name=parameter) for parameter in required),
    )


def _catalog(*apis: Api, name: str = "small") -> Catalog:
    tools: dict[tuple[str, str], list[Api]] = {}
    for api in apis:
        tools.setdefault((api.category, api.tool), []).append(api)
    return Catalog(
        name=name,
        tools=tuple(
            Tool(category=category, name=tool, apis=tuple(members))
            for (category, tool), members in tools.items()
        ),
    )


@pytest.fixture
def make_api() -> MakeApi:
    return _api


@pytest.fixture
def make_catalog() -> MakeCatalog:
    return _catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return _catalog(*(_api(*row) for row in _ROWS))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "registry.sqlite3") as opened:
        yield opened


@pytest.fixture
def filled(store: Store, catalog: Catalog) -> Store:
    store.put_catalog(catalog)
    return store


@pytest.fixture
def hashed(tmp_path: Path, catalog: Catalog) -> Iterator[Registry]:
    """A registry with the fake encoder: fast, and vectors mean equal words."""
    with Registry.open(tmp_path / "data", [catalog], encoder=HashingEncoder()) as opened:
        yield opened


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory, catalog: Catalog) -> Iterator[Registry]:
    """A registry with the encoder that ships, indexed once."""
    with Registry.open(tmp_path_factory.mktemp("real"), [catalog]) as opened:
        opened.ensure_index()
        yield opened
