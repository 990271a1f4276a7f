"""Options of a solve, from the settings and the values of one command or request.

Four of them are settings: ``strategy`` and the budget but for ``max_model_calls``. The defaults of
the others are those of ``SolveOptions``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from pydantic import BaseModel, ValidationError

from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_runtime.options import SolveOptions, StrategyName

_SETTINGS = ("strategy", "max_seconds", "max_calls", "max_tokens")
_BUDGET = "max_"


class SolveArguments(TypedDict, total=False):
    """Options of a solve, each as ``SolveOptions`` has it; None is the setting or the default.

    ``max_…`` are its limits. ``switches`` and ``aids`` may be one text with commas, or ``none``.
    """

    category: str | None
    strategy: StrategyName | None
    seed: int | None
    width: int | None
    depth: int | None
    candidates: int | None
    chains: int | None
    votes: int | None
    switches: str | Collection[str] | None
    aids: str | Collection[str] | None
    verify: bool | None
    max_seconds: float | None
    max_calls: int | None
    max_model_calls: int | None
    max_tokens: int | None


_KNOWN = SolveArguments.__annotations__.keys()
RUN_OPTIONS = tuple(key for key in _KNOWN if key not in (*_SETTINGS, "category"))
"""Those that are no settings."""


def solve_options(settings: BaseModel, given: Mapping[str, Any]) -> SolveOptions:
    """Return what is given (not ``None``), else what the settings say, else the default.

    Raises:
        UsageError: there is no such option, or a value is not acceptable.
    """
    from toolsrv_runtime.options import SolveOptions

    value = settings.model_dump(include=set(_SETTINGS))
    value |= {key: one for key, one in given.items() if one is not None}
    if unknown := sorted(value.keys() - _KNOWN):
        raise UsageError(
            f"a solve has no option {unknown[0]!r}", hint=f"any of {', '.join(_KNOWN)}"
        )
    for key in ("switches", "aids"):
        if isinstance(text := value.get(key), str):
            value[key] = _names(key, text)
    budget = [key for key in value if key.startswith(_BUDGET)]
    value["limits"] = {key.removeprefix(_BUDGET): value.pop(key) for key in budget}
    try:
        return SolveOptions.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"])).replace("limits.", _BUDGET)
        raise UsageError(
            f"{name} = {str(first['input'])[:80]!r} is not acceptable: {first['msg']}",
            hint="toolsrv solve --help says what it takes",
        ) from error


def option_defaults(settings: BaseModel) -> dict[str, Any]:
    """Return the value of each option where a request names none, by name."""
    from toolsrv_runtime.options import SolveOptions

    value = SolveOptions().model_dump(mode="json")
    limits = {f"{_BUDGET}{name}": one for name, one in value.pop("limits").items()}
    return value | limits | settings.model_dump(include=set(_SETTINGS))


def _names(key: str, text: str) -> frozenset[str] | None:
    from toolsrv_runtime.options import SWITCHES, parse_names

    if key == "switches":
        return parse_names(text, SWITCHES, "switch")
    from toolsrv_runtime.agent.guidance import AIDS

    return parse_names(text, AIDS, "aid")
