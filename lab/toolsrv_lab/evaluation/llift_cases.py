"""Forty C functions, each with a use of a variable that may come before its initialisation or not.

The cases of an LLift evaluation (arXiv 2308.00245), written for it: the analysed function is in the
task, the functions and macros that it calls are APIs whose response is their source. A ``CaseWorld``
stands in for retriever and caller, so that the agent's own tool loop asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from toolsrv_catalogs.layout import api_place
from toolsrv_lab.given_apis import GivenApi, GivenApis
from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.calls.result import CallResult, Consent
from toolsrv_runtime.files import read_text

Label = Literal["before", "safe"]

MOST_BYTES = 16 << 20
_CATEGORY, _TOOL = "Source_Code", "source"
_HINT = "give JSON lines with id, function, variable, use, prelude, code, label and needs"

TASK = """\
Static analysis reports a use of a variable in C that may come before its initialisation.

Function: {function}
Variable: {variable}
Use: {use}

Declarations:
{prelude}
Function under analysis:
{code}

Find out whether there is a path on which {variable} is used there before anything was stored in it. \
The sources of the functions and macros that {function} calls can be read with the functions offered: \
look at those through which {variable} may be written. Take into account which results of a \
call lead to the use at all. Answer with one of "before" (some path uses it before initialisation) and \
"safe" (it is initialised on every path to the use), and why."""


class Case(BaseModel):
    """One case. ``code`` has the analysed ``function`` and what it calls, by name.

    ``needs`` are the names without which the case cannot be decided.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    function: str
    variable: str
    use: str
    prelude: str
    code: Mapping[str, str]
    label: Label
    needs: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Case:
        if missing := sorted({self.function, *self.needs} - self.code.keys()):
            raise ValueError(f"its code lacks {missing[0]}")
        return self

    @property
    def task(self) -> str:
        """The task in words, with the analysed function alone."""
        return TASK.format(
            function=self.function,
            variable=self.variable,
            use=self.use.strip(),
            prelude=self.prelude,
            code=self.code[self.function],
        )

    @property
    def apis(self) -> tuple[Api, ...]:
        """An API for the source of each function and macro but the analysed one."""
        return tuple(
            Api(
                id=api_place(_CATEGORY, _TOOL, name),
                category=_CATEGORY,
                tool=_TOOL,
                name=name,
                description=f"Return the C source of {name}, which {self.function} can reach.",
            )
            for name in self.code
            if name != self.function
        )

    def asked(self, called: Sequence[str]) -> tuple[str, ...]:
        """Return the names whose source was asked for, of the ids of APIs that were called."""
        names = {api.id: api.name for api in self.apis}
        return tuple(dict.fromkeys(names[one] for one in called if one in names))


@cache
def shipped_cases() -> tuple[Case, ...]:
    """Return the forty cases that ship: 13 with a use before initialisation."""
    path = files("toolsrv_lab.evaluation") / "data" / "llift_cases.jsonl"
    return tuple(_cases(path.read_text("utf-8"), "llift_cases.jsonl"))


def read_cases(path: Path) -> tuple[Case, ...]:
    """Return the cases of a file of the same form.

    Raises:
        NotFoundError: there is no such file.
        DataError: it cannot be read, or a line is no case; names the line.
    """
    text = read_text(path, MOST_BYTES, hint=_HINT)
    found = tuple(_cases(text, str(path)))
    if not found:
        raise DataError(f"{path} holds no cases", hint=_HINT)
    if len({one.id for one in found}) < len(found):
        raise DataError(f"{path} has an id twice", hint="give each case an id of its own")
    return found


def _cases(text: str, where: str) -> list[Case]:
    found = []
    for at, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found.append(Case.model_validate(wellformed.loads(line)))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            raise DataError(f"{where}, line {at}, {place}: {first['msg']}", hint=_HINT) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}, line {at}: not JSON: {error}", hint=_HINT) from None
    return found


@dataclass(slots=True)
class CaseWorld:
    """Retriever and caller of the case that is open: every source is offered, and answers."""

    case: Case
    _schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> GivenApis:
        """Return the sources, in the order of the case."""
        del text, category
        return GivenApis(tuple(GivenApi(one) for one in self.case.apis[:limit]))

    def scores(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return that every source is as near to the task as any other."""
        del text
        return [1.0] * len(apis)

    similarities = scores

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
        """Return nothing: the matcher knows requests to services, not programs."""
        del asked, apis
        return []

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
    ) -> CallResult:
        """Return the source."""
        del tainted, consent
        source = self.case.code.get(api.name)
        return CallResult(
            api_id=api.id,
            arguments=dict(arguments),
            url="",
            status=404 if source is None else 200,
            response=source,
            error="no such source" if source is None else "",
            source="offline",
            seconds=0.0,
        )

    def schema(self, api: Api) -> Any:
        """Return that a response is text."""
        del api
        return self._schema
