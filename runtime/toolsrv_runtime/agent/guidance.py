"""Decisions of the matcher for one solve: shortlist, missing arguments, small talk, refusals.

``Guidance`` applies the aids that a solve enables. Without a matcher, or with an aid disabled, it
decides nothing and the model chooses for itself.

Missing arguments: a required argument is missing where two judges agree. The matcher
(``toolsrv_registry.matcher``) finds its value nowhere, and ``evidence`` cannot trace what the model
wrote to the task, to the person's answers or to a result. Where the matcher sees another value in
the task, or rules the function out, the call is refused instead of asked about. Choices (allowed
values, yes or no) and defaults are the model's to make.

Small talk: greetings, thanks and questions about toolsrv or today's date are described as
functions, so that the matcher can score them against a task. Any other task that no function serves
is given up: world knowledge is never an answer. Calls no model.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.agent import coverage, prompts
from toolsrv_runtime.agent.coverage import EXCLUDED_LOG_ODDS, NEEDED_LOG_ODDS
from toolsrv_runtime.agent.prompts import describe_parameter
from toolsrv_runtime.contract.format import Action, History, Reranker
from toolsrv_runtime.contract.hints import Question
from toolsrv_runtime.contract.models import (
    ChatRequest,
    ReplyConstraints,
    SystemMessage,
    UserMessage,
)
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.evidence.claims import fold, typed_spans
from toolsrv_runtime.values.facts import FULL_LIMIT, facts, response_text, words

ABSENT_PROBABILITY = 0.5
"""Probability of "nowhere" from which on the matcher says that a value is missing.

Of the 790 required arguments of the 564 right calls of tasks_open and tasks_fresh three that cannot
be traced have it, or no likely words (``PRESENT_PROBABILITY``): one of them, a feast's country, is
really not told. Of the 30 values that missing_values leaves out 22 are seen.
"""

PRESENT_PROBABILITY = 0.25
"""Probability of the likeliest words below which a value stands in none of them."""

ASKABLE_LOG_ODDS = -1.5
"""Log-odds that the task asks for a function, below which its arguments are no reason to ask."""

MOST_FACTS_READ = 12
FACT_CHARACTERS = 600
"""What the matcher reads of each result."""

QUESTION_TEXT_LIMIT = 240
PARAMETER_NAME_LIMIT = 80

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass(frozen=True, slots=True)
class KnownTexts:
    """What is known at a node: the task, what else a person or the agent said, the responses."""

    task: str
    said: tuple[str, ...] = ()
    responses: tuple[Any, ...] = ()


def known_texts(view: History, *also: str) -> KnownTexts:
    """Return what is known at a node; ``also`` are further texts, as today's date."""
    said = (*(answer for _, answer in view.answers), *also)
    return KnownTexts(
        "\n".join((view.task, *(text for pair in view.before for text in pair))),
        said,
        tuple(one.response for one in (*view.earlier, *view.path, *view.tried) if one.ok),
    )


def missing_arguments(
    function: Function,
    arguments: Mapping[str, Any],
    held: KnownTexts,
    prior: Reranker,
    asked: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the keys of the required arguments that nobody has given, in the function's order.

    Of those that a person was ``asked`` for before it is known that the task does not say them.
    None where the matcher is silent, or does not see that the task asks for the function.
    """
    api = function.api
    required = {one.name for one in api.required}
    suspects = {
        key: parameter
        for key, parameter in function.parameters.items()
        if parameter.name in required
        and not _is_choice(parameter)
        and not parameter.has_default
        and not is_traced(arguments.get(key), held)
    }
    if not suspects:
        return ()
    readings = list(_readings(api, held, prior))
    if not readings or readings[0].serves < ASKABLE_LOG_ODDS:
        return ()
    return tuple(
        key
        for key, parameter in suspects.items()
        if key in asked or all(_is_nowhere(one, parameter.name) for one in readings)
    )


def contradicted_arguments(
    function: Function, arguments: Mapping[str, Any], held: KnownTexts, prior: Reranker
) -> dict[str, str]:
    """Return key -> what the task says instead of a value that stands nowhere, "" for nothing.

    A model whose call failed likes to try it with another number, or to call something else with
    values of its own. Two judges again: the value cannot be traced, and the matcher sees another
    number for the argument in the task, or rules the function out. Not doubted are a number of the
    same digits (250 g of "0.25 kg"), and dates where the task says none in full: they are counted
    ("in 3 weeks").
    """
    suspects = {
        key: parameter
        for key, parameter in function.parameters.items()
        if key in arguments and not _is_choice(parameter) and not is_traced(arguments[key], held)
    }
    match = (
        next(iter(prior.match(MatchRequest(held.task), [function.api])), None) if suspects else None
    )
    if match is None:
        return {}
    required = {one.name for one in function.api.required}
    found = {}
    for key, parameter in suspects.items():
        slot = match.parameters.get(parameter.name)
        if match.serves < EXCLUDED_LOG_ODDS and parameter.name in required:
            found[key] = ""
        if slot is None or math.exp(slot.none) >= ABSENT_PROBABILITY:
            continue
        spans = slot.best(1)
        words = held.task[spans[0].begin : spans[0].end] if spans and not spans[0].source else ""
        if _differs(str(arguments[key]), words):
            found[key] = _line(words)
    return found


def is_traced(value: Any, held: KnownTexts) -> bool:
    """Whether a value stands in what is known, as it is written or as it may be written otherwise.

    Of a list or an object one part suffices. ``None`` and an empty text are no values.
    """
    leaves = [one for one in _leaves(value) if one not in ("", None)]
    if any(isinstance(one, bool) for one in leaves):
        return True
    text = "\n".join((held.task, *held.said))
    results = list(enumerate(held.responses, 1))
    sources = [
        fold(text),
        *(fold(response_text(one, FULL_LIMIT * 10)[0]) for one in held.responses),
    ]
    tokens = [f" {' '.join(_WORD.findall(one))} " for one in sources]
    for leaf in leaves:
        run = " ".join(_WORD.findall(fold(str(leaf))))
        if run and any(f" {run} " in one for one in tokens):
            return True
        if trace(str(leaf), text, results).supported:
            return True
    return False


def build_question(function: Function, key: str) -> Question:
    """Return the question for an argument, in one sentence made of what the catalog says of it."""
    parameter = function.parameters[key]
    name = _name(words(parameter.name) or key)
    about = _line(parameter.description).rstrip(".")
    about = f" ({about})" if about else ""
    return Question(
        text=f'What is "{name}"{about} for the function "{_name(words(function.api.name))}"?',
        api_id=function.api.id,
        function=function.name,
        parameter=key,
        description=_line(describe_parameter(parameter)),
        json_schema=function.argument_schema()["properties"].get(key, {}),
    )


def missing_questions(
    view: History, move: Action, held: KnownTexts, prior: Reranker, asked: Collection[str] = ()
) -> list[Question]:
    """Return the questions that a call leaves open; ``asked`` are the keys of earlier ones."""
    function = next((one for one in view.functions if one.name == move.function), None)
    if function is None:
        return []
    return [
        build_question(function, key)
        for key in missing_arguments(function, move.parsed, held, prior, asked)
    ]


def supplying_functions(view: History, move: Action, prior: Reranker) -> tuple[str, ...]:
    """Return the other functions that the task asks for and that no call on the path served yet.

    What one of them answers may be the value that a call lacks: of 61 right calls of tasks_open and
    tasks_fresh that lack a value before their turn, 60 have such a function (59 the right one), and
    of the 30 tasks of missing_values one has.
    """
    served = {step.move.function for step in view.path if step.ok}
    others = [one for one in view.functions if one.name not in {*served, move.function}]
    matches = prior.match(MatchRequest(view.task), [one.api for one in others])
    return tuple(
        one.name
        for one, match in zip(others, matches, strict=False)
        if match.serves >= NEEDED_LOG_ODDS
    )


def _readings(api: Api, held: KnownTexts, prior: Reranker) -> Iterator[Match]:
    """Yield what the matcher says of an API: by the whole task, then by its clause and the facts."""
    whole = next(iter(prior.match(MatchRequest(held.task), [api])), None)
    if whole is None:
        return
    yield whole
    spans = whole.clause.best(1)
    if held.responses and spans and not spans[0].source:
        found = [fact for one in held.responses for fact in facts(one, limit=FACT_CHARACTERS)]
        clause = (spans[0].begin, spans[0].end)
        yield from prior.match(
            MatchRequest(held.task, clause, tuple(found[:MOST_FACTS_READ])), [api]
        )


def _is_nowhere(match: Match, name: str) -> bool:
    slot = match.parameters.get(name)
    if slot is None:
        return False
    best = max((math.exp(one.score) for one in slot.best(1)), default=0.0)
    return math.exp(slot.none) >= ABSENT_PROBABILITY or best < PRESENT_PROBABILITY


def _is_choice(parameter: Parameter) -> bool:
    """Whether a parameter takes one of few values, which a model may choose."""
    declared = parameter.json_schema or {}
    return bool(
        parameter.enum
        or "enum" in declared
        or declared.get("type") == "boolean"
        or parameter.type.strip().upper() == "BOOLEAN"
    )


def _leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, dict | list) and depth < 8:
        for one in list(value.values() if isinstance(value, dict) else value)[:50]:
            yield from _leaves(one, depth + 1)
    else:
        yield value


def _differs(value: str, words: str) -> bool:
    """Whether words of the task say another number, or another day of the calendar, than a value."""
    given, said = typed_spans(value), typed_spans(words)
    if any(one.days for one in given):
        return any(None not in day for one in said for day in one.days)
    if any(one.clocks or one.days for one in (*given, *said)):
        return False
    numbers = _digits(words)
    return bool(numbers) and numbers.isdisjoint(_digits(value) or numbers)


def _digits(text: str) -> set[str]:
    """Return the numbers of a text without signs, separators, and zeros at either end."""
    return {one for run in _NUMBER.findall(text) if (one := re.sub(r"\D", "", run).strip("0"))}


def _line(text: str) -> str:
    return " ".join(clean(text, QUESTION_TEXT_LIMIT).split())


def _name(text: str) -> str:
    return " ".join(clean(text, PARAMETER_NAME_LIMIT).replace('"', " ").split())


SMALL_TALK_LOG_ODDS = 0.0
"""Log-odds from which on a task is taken for talk with the assistant itself.

Of 269 tasks over a catalog in other words that the retriever finds something near, one lies above
with no function that fits better.
"""

SMALL_TALK_LOG_ODDS_NO_HITS = -2.0
"""The same where the retriever finds nothing near the task: "hi" is like nothing in a catalog.

With ``FUNCTION_LOG_ODDS_NO_HITS`` 43 of 48 greetings and questions about the assistant are taken
for talk, and one of 19 tasks.
"""

FUNCTION_LOG_ODDS_NO_HITS = 0.0
"""Log-odds from which on a function serves a text that the retriever finds nothing near."""

SMALL_TALK_TOKENS = 160

MOST_EXAMPLES = 5
EXAMPLE_NAME_LIMIT = 60
"""Characters of an API's name among the examples."""


def _api(name: str, tool_description: str, description: str) -> Api:
    return Api(
        id=f"Assistant/toolsrv/{name}",
        category="Assistant",
        tool="toolsrv",
        name=name,
        description=description,
        tool_description=tool_description,
    )


SMALL_TALK = (
    _api(
        "greet",
        "Small talk with the assistant",
        "Answer a greeting, thanks, a goodbye, or a question about what this assistant is and "
        "what it can do.",
    ),
    _api("talk", "Conversation", "Reply to hello, thank you and goodbye"),
    _api("about", "About the assistant", "Tell who the assistant is and what it can do"),
    _api("today", "Calendar of today", "Today's date and weekday"),
)


def is_small_talk(
    task: str, functions: Sequence[Function], prior: Reranker, *, fits: bool = True
) -> bool:
    """Whether a task is talk with the assistant, and no function serves it better.

    ``fits``: the retriever finds something near the task.
    """
    talk = prior.match(MatchRequest(task), SMALL_TALK)
    if not talk:
        return False
    best = max(one.serves for one in talk)
    offered = prior.match(MatchRequest(task), [one.api for one in functions])
    if not fits:
        return best >= SMALL_TALK_LOG_ODDS_NO_HITS and all(
            one.serves < max(best, FUNCTION_LOG_ODDS_NO_HITS) for one in offered
        )
    return best >= SMALL_TALK_LOG_ODDS and all(one.serves < best for one in offered)


def example_names(functions: Sequence[Function]) -> list[str]:
    """Return the names of a few APIs, cleaned: catalogs are untrusted, and these enter instructions."""
    names = (
        " ".join(clean(one.api.name, EXAMPLE_NAME_LIMIT).split())
        for one in functions[:MOST_EXAMPLES]
    )
    return [name for name in names if name]


def small_talk_request(task: str, functions: Sequence[Function], now: datetime) -> ChatRequest:
    """Return the request for a reply without a call."""
    system = prompts.ITSELF.format(
        today=prompts.format_date(now), examples=", ".join(example_names(functions))
    )
    return ChatRequest(
        (SystemMessage(system), UserMessage(task)),
        (),
        ReplyConstraints(),
        SMALL_TALK_TOKENS,
        now=now,
    )


AIDS = frozenset({"coverage", "match", "exclude", "check", "decline", "shortlist", "values", "ask"})
"""What helps a model, each of which can be left out.

``coverage``: needs that the matcher sees in the task are called for before an answer is taken;
``match``: for a subtask only functions are available that the matcher finds to serve it, and the
model cannot begin by saying that none fits; ``exclude``: an identical call on a path is not made
again; ``check``: an answer is checked against the results and written again once; ``decline``: a
task for which the matcher sees no function is given up without asking the model; ``shortlist``:
candidates that the matcher rules out are not shown; ``values``: the model is told which words of
the task the matcher takes for which argument; ``ask``: a person is asked for values that nobody
gave, where without it the model makes them up.
"""


class Guidance:
    """The matcher's decisions in one solve, one method per aid; ``prior`` None: no matcher."""

    def __init__(self, prior: Reranker | None, aids: frozenset[str]) -> None:
        self.prior = prior
        self._aids = aids

    def helps(self, aid: str) -> bool:
        """Whether an aid is in use."""
        return aid in self._aids

    def needs(
        self, view: History
    ) -> tuple[tuple[coverage.Subtask, ...], tuple[coverage.Subtask, ...]]:
        """Return what the matcher sees that the task asks for, and what may follow from it."""
        if self.prior is None or "coverage" not in self._aids:
            return (), ()
        return coverage.find_subtasks(view.task, view.functions, self.prior)

    def shown(self, view: History) -> History:
        """Return the history with the functions that the model is shown."""
        if self.prior is None or "shortlist" not in self._aids:
            return view
        called = {step.move.function for step in (*view.path, *view.tried, *view.earlier)}
        kept = coverage.shortlist(view.task, view.functions, self.prior)
        also = (one for one in view.functions if one.name in called and one not in kept)
        return replace(view, functions=(*kept, *also))

    def declines(self, view: History) -> bool:
        """Whether the matcher finds no available function that serves any of the task, of what still may.

        A function whose calls failed too often may not.
        """
        if self.prior is None or "decline" not in self._aids:
            return False
        failed = Counter(step.move.function for step in view.failed)
        may = [one for one in view.functions if failed[one.name] < coverage.MOST_FAILED]
        # A model that chooses for itself may say so too: it is asked where the matcher only doubts.
        fits = view.fits or not self.helps("match")
        return coverage.is_unserved(view.task, may, self.prior, fits=fits)

    def reading(self, view: History) -> coverage.ArgumentReader | None:
        """Return the matcher's reading of the task behind the results so far."""
        return (
            coverage.ArgumentReader(view.task, (*view.earlier, *view.path), self.prior)
            if self.prior
            else None
        )

    def asks_itself(self, view: History) -> bool:
        """Whether the task is talk with the assistant."""
        prior = None if view.whole else self.prior
        return prior is not None and is_small_talk(view.task, view.functions, prior, fits=view.fits)

    def sees_needs(self, view: History) -> bool:
        """Whether a matcher says what the task asks for."""
        prior = self.prior
        if prior is None or "coverage" not in self._aids:
            return False
        return coverage.has_matcher(view.task, view.functions, prior)

    def missing(
        self, view: History, move: Action, today: str, asked: Collection[str]
    ) -> Sequence[Question]:
        """Return the questions that a call leaves open; see ``Inquirer.missing``."""
        if self.prior is None or "ask" not in self._aids:
            return ()
        return missing_questions(view, move, known_texts(view, today), self.prior, asked)

    def doubts(self, view: History, move: Action, today: str) -> Mapping[str, str]:
        """Return what the task says instead of some arguments; see ``Inquirer.doubts``."""
        function = next((one for one in view.functions if one.name == move.function), None)
        if self.prior is None or function is None or "ask" not in self._aids:
            return {}
        return contradicted_arguments(function, move.parsed, known_texts(view, today), self.prior)

    def suppliers(self, view: History, move: Action) -> Sequence[str]:
        """Return functions whose answers may hold what a call lacks; see ``Inquirer.suppliers``."""
        return supplying_functions(view, move, self.prior) if self.prior is not None else ()
