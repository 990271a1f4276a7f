"""The Berkeley Function Calling Leaderboard as PyPI's ``bfcl-eval`` packs it: data and checker.

The package pins old versions of numpy and faiss and imports some fifty model clients, so it is
installed without its dependencies in a folder of its own, and of its code only the AST checker is
imported. Functions are written there in a dialect of JSON Schema with Python's type names;
``tools`` returns them as closed JSON Schema, ``original`` turns calls back.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    UserMessage,
)

PACKAGE = "bfcl_eval"
AST = (
    "simple_python", "multiple", "parallel", "parallel_multiple",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple",
)  # fmt: skip
"""Categories whose calls the AST checker judges; those in Java and JavaScript are left out."""
NO_CALL, ANY_CALL = ("irrelevance", "live_irrelevance"), ("live_relevance",)
"""Categories in which no call is right, and in which any call is."""
CATEGORIES = (*AST, *NO_CALL, *ANY_CALL)
INSTALL = "pip install --no-deps --target DIR bfcl-eval, then --package DIR"

_MODEL = "toolsrv"
_NAME_LIMIT = 64
_DEPTH = 12
_TYPES = {
    "integer": "integer", "float": "number", "number": "number", "string": "string",
    "boolean": "boolean", "bool": "boolean", "array": "array", "list": "array", "tuple": "array",
    "dict": "object", "object": "object", "any": "string", "null": "null",
}  # fmt: skip
_PYTHON: Mapping[str, tuple[type, ...]] = {
    "integer": (int,), "number": (int, float), "string": (str,), "boolean": (bool,),
    "array": (list,), "object": (dict,), "null": (type(None),),
}  # fmt: skip
_KEPT = ("description", "default", "minimum", "maximum", "minItems", "maxItems")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Case:
    """One test case. ``answers``: possible arguments by function; () where no call is compared."""

    id: str
    category: str
    messages: tuple[Message, ...]
    functions: tuple[dict[str, Any], ...]
    answers: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether a reply's calls are right, and BFCL's type of error where they are not."""

    valid: bool
    error: str = ""


class Bfcl:
    """An installed ``bfcl-eval``; use ``open_package``."""

    def __init__(self, folder: Path, checker: Callable[..., Any], language: Any) -> None:
        self._folder = folder
        self._checker = checker
        self._language = language

    @property
    def version(self) -> str:
        """The package's version, "" where it does not say."""
        found = sorted(self._folder.parent.glob(f"{PACKAGE}-*.dist-info"))
        return (
            found[-1].name.removeprefix(f"{PACKAGE}-").removesuffix(".dist-info") if found else ""
        )

    def cases(self, category: str) -> list[Case]:
        """Return a category's cases.

        Raises:
            UsageError: there is no such category, or it is not one that is judged here.
            DataError: its files cannot be read.
        """
        if category not in CATEGORIES:
            raise UsageError(
                f"there is no category {category!r} here", hint=f"one of {', '.join(CATEGORIES)}"
            )
        data = self._folder / "data"
        named = re.compile(rf"BFCL_v\d+_{category}\.json")
        name = next((one for one in sorted(data.glob("*.json")) if named.fullmatch(one.name)), None)
        if name is None:
            raise DataError(
                f"{data} has no cases of {category!r}", hint="install a current bfcl-eval"
            )
        answers: dict[str, Any] = {}
        if category in AST:
            rows = _rows(data / "possible_answer" / name.name)
            answers = {str(one["id"]): one["ground_truth"] for one in rows}
        try:
            return [_case(one, category, answers) for one in _rows(name)]
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            raise DataError(
                f"{name}: not cases of BFCL ({type(error).__name__}: {error})",
                hint="install a current bfcl-eval",
            ) from None

    def check(self, case: Case, calls: Sequence[Mapping[str, Any]]) -> Checked:
        """Return what BFCL says of calls, each ``{name: arguments}`` with the original name."""
        if case.category in NO_CALL:
            return Checked(not calls, "" if not calls else "irrelevance_error:decoder_success")
        if case.category in ANY_CALL:
            return Checked(bool(calls), "" if calls else "relevance_error:decoder_failed")
        if not calls:
            return Checked(False, "ast_decoder:decoder_failed")
        try:
            found = self._checker(
                list(case.functions),
                [dict(one) for one in calls],
                list(case.answers),
                self._language,
                case.category,
                _MODEL,
            )
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            # The checker takes well-typed arguments for granted: a list of texts for one of
            # objects breaks it. Such a call is wrong.
            return Checked(False, f"checker:{type(error).__name__}")
        valid = bool(found["valid"])
        return Checked(valid, "" if valid else str(found.get("error_type", "")))


def open_package(folder: Path | None = None) -> Bfcl:
    """Return the package in ``folder`` (``pip install --target``), else the installed one.

    Raises:
        UsageError: there is none.
        DataError: it is none that can be used.
    """
    place = _place(folder)
    try:
        with _alone(place.parent):
            checker = importlib.import_module(f"{PACKAGE}.eval_checker.ast_eval.ast_checker")
            enums = importlib.import_module(f"{PACKAGE}.constants.enums")
            return Bfcl(place, checker.ast_checker, enums.Language.PYTHON)
    except (ImportError, AttributeError) as error:
        raise DataError(
            f"the AST checker of {place} cannot be used: {error}", hint=INSTALL
        ) from error


def tools(functions: Sequence[Mapping[str, Any]]) -> tuple[tuple[Tool, ...], dict[str, str]]:
    """Return functions as tools, and the original name of each tool.

    A dot, as in ``math.factorial``, and all else that tool names may not have become underscores,
    as BFCL's own handlers do it; names that are the same then are numbered.
    """
    found: list[Tool] = []
    originals: dict[str, str] = {}
    for function in functions:
        name = base = _NOT_IN_A_NAME.sub("_", str(function["name"]))[:_NAME_LIMIT]
        number = 1
        while name in originals:
            number += 1
            name = f"{base[: _NAME_LIMIT - len(str(number)) - 1]}_{number}"
        originals[name] = str(function["name"])
        schema = json_schema(function.get("parameters") or {"type": "dict"})
        found.append(Tool(name, str(function.get("description", "")), schema))
    return tuple(found), originals


def original(
    calls: Sequence[ToolCall], originals: Mapping[str, str], functions: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return calls as the checker takes them: ``{name: arguments}`` with the original names.

    JSON's ``1`` becomes ``1.0`` where the schema says ``float``: the checker converts it for a
    parameter, but takes it for a type error inside an array, which BFCL's own handlers leave so.
    """
    schemas = {str(one["name"]): one.get("parameters") or {} for one in functions}
    found = []
    for one in calls:
        name = originals.get(one.name, one.name)
        found.append({name: _floats(one.arguments, schemas.get(name, {}))})
    return found


def _floats(value: Any, schema: Any, depth: int = 0) -> Any:
    if not isinstance(schema, dict) or depth > _DEPTH:
        return value
    if isinstance(value, dict) and isinstance(inner := schema.get("properties"), dict):
        return {key: _floats(one, inner.get(key), depth + 1) for key, one in value.items()}
    if isinstance(value, list):
        return [_floats(one, schema.get("items"), depth + 1) for one in value]
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and schema.get("type") == "float" else value


def json_schema(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Return a schema of BFCL's dialect as JSON Schema; objects with properties are closed.

    ``dict``, ``float``, ``tuple`` and ``any`` become object, number, array and string (so BFCL's
    own handlers). An ``enum`` of an array's items stands at the array in the data; values that no
    value of the type can equal are left out.
    """
    kind = _TYPES.get(str(schema.get("type", "")), "string")
    found: dict[str, Any] = {"type": kind}
    found |= {key: schema[key] for key in _KEPT if key in schema}
    properties = schema.get("properties")
    items = schema.get("items")
    if kind == "object" and isinstance(properties, dict) and depth < _DEPTH:
        found["properties"] = {
            str(name): json_schema(one if isinstance(one, dict) else {}, depth + 1)
            for name, one in properties.items()
        }
        required = schema.get("required")
        found["required"] = [
            name for name in (required if isinstance(required, list) else []) if name in properties
        ]
        found["additionalProperties"] = False
    elif kind == "object" and depth == 0:
        found |= {"properties": {}, "required": [], "additionalProperties": False}
    if kind == "array" and isinstance(items, dict) and depth < _DEPTH:
        found["items"] = json_schema(items, depth + 1)
    choices = schema.get("enum")
    if isinstance(choices, list):
        _choose(found, choices)
    return found


def _choose(found: dict[str, Any], choices: list[Any]) -> None:
    """Put the values of an ``enum`` where a value can equal them: at the type, or at its items."""
    for place in (found, found.get("items")):
        fitting = [one for one in choices if _is_a(one, place["type"])] if place else []
        if place and fitting:
            place["enum"] = fitting
            return


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _PYTHON[kind])


def _case(row: Mapping[str, Any], category: str, answers: Mapping[str, Any]) -> Case:
    return Case(
        id=str(row["id"]),
        category=category,
        messages=_messages(row["question"][0]),
        functions=tuple(row["function"]),
        answers=tuple(answers.get(str(row["id"]), ())),
    )


def _messages(turns: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Return a conversation; several system turns become one, at the beginning."""
    system = [str(one["content"]) for one in turns if one["role"] == "system"]
    rest: list[Message] = [
        AssistantMessage(str(one["content"]))
        if one["role"] == "assistant"
        else UserMessage(str(one["content"]))
        for one in turns
        if one["role"] != "system"
    ]
    return (*([SystemMessage("\n\n".join(system))] if system else []), *rest)


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        return [wellformed.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"cannot read {path}: {error}", hint=INSTALL) from None


def _place(folder: Path | None) -> Path:
    if folder is not None:
        place = folder / PACKAGE
        if not place.is_dir():
            raise UsageError(f"there is no {PACKAGE} in {str(folder)!r}", hint=INSTALL)
        return place
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError("this needs the package bfcl-eval, which is not installed", hint=INSTALL)
    return Path(next(iter(spec.submodule_search_locations)))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Import from ``folder`` with a stand-in for the module that lists all model clients."""

    def ours() -> dict[str, ModuleType]:
        return {name: one for name, one in sys.modules.items() if name.split(".", 1)[0] == PACKAGE}

    before = ours()
    for name in before:
        del sys.modules[name]
    config = ModuleType(f"{PACKAGE}.constants.model_config")
    vars(config)["MODEL_CONFIG_MAPPING"] = {_MODEL: SimpleNamespace(underscore_to_dot=False)}
    sys.modules[config.__name__] = config
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in ours():
            del sys.modules[name]
        sys.modules.update(before)
