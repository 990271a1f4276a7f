"""Options of a solve, from the settings and the values of one command or request.

Four of them are settings: ``strategy`` and the budget but for ``max_model_calls``. The defaults of
the others are those of ``SolveOptions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.settings import Settings
    from toolsrv_runtime.options import SolveOptions

_SETTINGS = ("strategy", "max_seconds", "max_calls", "max_tokens")
RUN_OPTIONS = ("seed", "width", "depth", "candidates", "chains", "votes", "switches", "aids",
               "verify", "max_model_calls")  # fmt: skip
"""Options of a solve that are no settings."""
_KNOWN = (*_SETTINGS, *RUN_OPTIONS, "category")
_BUDGET = "max_"


def solve_options(settings: Settings, given: Mapping[str, Any]) -> SolveOptions:
    """Return what is given (not ``None``), else what the settings say, else the default.

    Raises:
        UsageError: there is no such option, or a value is not acceptable.
    """
    from toolsrv_runtime.options import SolveOptions

    value = settings.model_dump(include=set(_SETTINGS))
    value |= {key: one for key, one in given.items() if one is not None}
    if unknown := sorted(value.keys() - set(_KNOWN)):
        raise UsageError(f"a solve has no option {unknown[0]!r}", hint=f"any of {_KNOWN}")
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


def option_defaults(settings: Settings) -> dict[str, Any]:
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
