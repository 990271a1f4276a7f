"""How an offline API is declared: one function whose signature is its parameter list.

A parameter's annotation carries a ``Field`` that turns the query's text into a value, its
default makes it optional, and a ``Field`` with choices is an enum. Knows nothing about HTTP
beyond parameter names, and nothing about the domains.

Errors, all of ``toolsrv_registry.errors``:
- ``ParameterError`` (a ``UsageError``): a parameter is missing, unknown or malformed.
- ``NotFoundError``: everything is well-formed, but no such thing exists.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from toolsrv_registry.errors import NotFoundError, UsageError

__all__ = [
    "Answer",
    "Endpoint",
    "Endpoints",
    "Field",
    "NotFoundError",
    "Parameter",
    "ParameterError",
    "choice",
    "quoted",
]

Answer = dict[str, Any]
Handler = TypeVar("Handler", bound=Callable[..., Answer])

VALUE_LIMIT = 4000
_QUOTE_LIMIT = 60


class ParameterError(UsageError):
    """One parameter is off; the message names it and says what is accepted."""

    def __init__(self, parameter: str, problem: str) -> None:
        super().__init__(f"parameter {parameter!r}: {problem}")


@dataclass(frozen=True)
class Field:
    """How the text of one parameter becomes a value.

    ``parse`` raises ``UsageError`` for malformed text and ``NotFoundError`` for a well-formed
    name of nothing. ``choices`` lists the allowed texts of an enum.
    """

    parse: Callable[[str], Any]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A declared parameter; ``default`` is the handler's own and is meaningless if required."""

    name: str
    field: Field
    required: bool
    default: Any


@dataclass(frozen=True)
class Endpoint:
    """A handler with its parameters, in the order of its signature."""

    path: str
    handler: Callable[..., Answer]
    parameters: Mapping[str, Parameter]

    def answer(self, query: Iterable[tuple[str, str]]) -> Answer:
        """Validate ``query`` (name, text pairs) and run the handler.

        Raises:
            ParameterError: a parameter is unknown, given twice, missing, empty or malformed.
            NotFoundError: a named thing does not exist.
        """
        given: dict[str, str] = {}
        for name, text in query:
            if name not in self.parameters:
                raise ParameterError(name[:_QUOTE_LIMIT], f"unknown; {self._accepted(name)}")
            if name in given:
                raise ParameterError(name, "given more than once")
            given[name] = text.strip()
        values: Answer = {}
        for parameter in self.parameters.values():
            text = given.get(parameter.name, "")
            if text:
                values[parameter.name] = _parsed(parameter, text)
            elif parameter.required:
                state = "is empty" if parameter.name in given else "is missing"
                raise ParameterError(parameter.name, f"{state}; it is required")
        return self.handler(**values)

    def _accepted(self, name: str) -> str:
        if not self.parameters:
            return "this API takes no parameters"
        close = difflib.get_close_matches(name[:_QUOTE_LIMIT], self.parameters, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        return f"{hint}accepted: {', '.join(self.parameters)}"


def _parsed(parameter: Parameter, text: str) -> Any:
    if len(text) > VALUE_LIMIT:
        raise ParameterError(parameter.name, f"longer than {VALUE_LIMIT} characters")
    try:
        return parameter.field.parse(text)
    except ParameterError:
        raise
    except UsageError as error:
        raise ParameterError(parameter.name, error.message) from error
    except NotFoundError as error:
        raise NotFoundError(f"parameter {parameter.name!r}: {error.message}") from error


class Endpoints:
    """The endpoints of one domain module, by path below the tool's own."""

    def __init__(self) -> None:
        self.endpoints: dict[str, Endpoint] = {}

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """Declare the decorated function as the handler of ``path`` (it may hold ``{name}``)."""

        def register(handler: Handler) -> Handler:
            self.endpoints[path] = Endpoint(path, handler, _parameters(handler))
            return handler

        return register


def _parameters(handler: Callable[..., Answer]) -> dict[str, Parameter]:
    hints = get_type_hints(handler, include_extras=True)
    found: dict[str, Parameter] = {}
    for name, declared in inspect.signature(handler).parameters.items():
        required = declared.default is inspect.Parameter.empty
        found[name] = Parameter(name, _field(hints[name]), required, declared.default)
    return found


def _field(hint: Any) -> Field:
    # ``Annotated[T, Field] | None`` (an optional parameter) keeps its Field one level down.
    for part in (hint, *get_args(hint)):
        if get_origin(part) is Annotated:
            for extra in get_args(part)[1:]:
                if isinstance(extra, Field):
                    return extra
    raise TypeError(f"no Field in {hint!r}")


def choice(*choices: str) -> Field:
    """Return the field of an enum.

    Case, spaces, hyphens and a trailing "case" do not matter, and a beginning that only one
    choice has stands for it: ``F`` for ``fahrenheit``, ``day`` for ``days``.
    """
    table = {_plain(option): option for option in choices}

    def parse(text: str) -> str:
        plain = _plain(text)
        if plain in table:
            return table[plain]
        begun = [option for key, option in table.items() if plain and key.startswith(plain)]
        if len(begun) != 1:
            raise UsageError(f"{quoted(text)} is not one of {', '.join(choices)}")
        return begun[0]

    return Field(parse, choices)


def _plain(text: str) -> str:
    return re.sub(r"[\s_\-\u00b0]", "", text.casefold()).removesuffix("case")


def quoted(text: str) -> str:
    """Return ``text`` in quotes, escaped and cut, fit for an error message."""
    cut = text if len(text) <= _QUOTE_LIMIT else text[:_QUOTE_LIMIT] + "…"
    return ascii(cut) if any(not c.isprintable() for c in cut) else repr(cut)
