"""The catalog that ships in other words: the same 170 APIs behind other names and descriptions.

Whether a model reads what is offered or knows the catalog by heart shows when the names change.
Categories, tools, APIs and parameters are named and described anew (``data/other_words.json``,
written by hand); types, defaults, allowed values and responses stay. What a search and a model see
of a parameter is its new name, and its ``wire`` is the old one, so that a call goes where it went:
every caller that answers for the catalog that ships answers for the copy. Nothing is trained on
these words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter

from toolsrv_catalogs.layout import api_place
from toolsrv_catalogs.offline import OFFLINE_HOST, load_offline_catalog
from toolsrv_lab.solving import GoldCall, Task, check_tasks
from toolsrv_registry import names
from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.registry import Registry

OTHER_WORDS = "other_words"
"""Name of the copy as a catalog."""


class ParameterWords(BaseModel):
    """What a parameter is called in the copy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str


class ApiWords(BaseModel):
    """What an API is called in the copy; ``parameters`` by their names in the original."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    category: str
    tool: str
    tool_description: str
    name: str
    description: str
    parameters: Mapping[str, ParameterWords]


@cache
def words() -> Mapping[str, ApiWords]:
    """Return what each API is called in the copy, by its id in the original."""
    data = (files("toolsrv_lab.evaluation") / "data" / "other_words.json").read_bytes()
    return TypeAdapter(dict[str, ApiWords]).validate_json(data)


@cache
def apis() -> tuple[Api, ...]:
    """Return the APIs of the copy, in the original's order."""
    return tuple(_in_other_words(api) for api in load_offline_catalog().apis)


@cache
def ids() -> Mapping[str, str]:
    """Return the id of each API in the original -> its id in the copy."""
    pairs = zip(load_offline_catalog().apis, apis(), strict=True)
    return {api.id: copied.id for api, copied in pairs}


@cache
def catalog() -> Catalog:
    """Return the copy as a catalog."""
    tools = []
    for (category, name), group in groupby(apis(), key=lambda one: (one.category, one.tool)):
        members = tuple(group)
        tools.append(
            Tool(
                category=category,
                name=name,
                description=members[0].tool_description,
                host=OFFLINE_HOST,
                apis=members,
            )
        )
    return Catalog(name=OTHER_WORDS, tools=tuple(tools))


def open_registry(folder: Path) -> Registry:
    """Return a registry in an empty folder that has the copy and nothing else, not indexed yet.

    Raises:
        DataError: the folder cannot be used.
    """
    return Registry.open(folder, [catalog()])


def tasks(given: Sequence[Task]) -> list[Task]:
    """Return tasks over the catalog that ships with their calls in the words of the copy.

    Raises:
        DataError: a task names an API that the catalog does not have; or see ``check_tasks``.
    """
    check_tasks(given, ids())
    return [
        task.model_copy(
            update={
                "calls": tuple(_call(one) for one in task.calls),
                "fails": tuple(ids()[one] for one in task.fails),
            }
        )
        for task in given
    ]


def _call(call: GoldCall) -> GoldCall:
    said = words()[call.api].parameters
    arguments = {
        said[name].name if name in said else name: value for name, value in call.arguments.items()
    }
    return call.model_copy(update={"api": ids()[call.api], "arguments": arguments})


def _in_other_words(api: Api) -> Api:
    said = words()[api.id]
    category = names.standardize_category(said.category)

    def renamed(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
        return tuple(
            one.model_copy(
                update=said.parameters[one.name].model_dump() | {"wire": one.wire or one.name}
            )
            for one in parameters
        )

    return api.model_copy(
        update={
            "id": api_place(category, said.tool, said.name),
            "category": category,
            "tool": said.tool,
            "name": said.name,
            "description": said.description,
            "tool_description": said.tool_description,
            "required": renamed(api.required),
            "optional": renamed(api.optional),
        }
    )
