"""Switches and votes in whole solves: plan, progressive, constraints, self-check; a scripted model."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pytest
from pydantic import ValidationError

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.agent.run import count_votes
from toolsrv_runtime.calls.caller import Caller, default_caller
from toolsrv_runtime.contract.models import ChatReply, ChatRequest, ToolCall, ToolMessage
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.options import SWITCHES, SolveOptions, Switch
from toolsrv_runtime.outcome import Event, Limits, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import Solver
from toolsrv_runtime.stop import Stop

TASK = "What is the capital of Peru, and which currency do people pay with in Chile?"
PARTS = ("What is the capital of Peru?", "Which currency do people pay with in Chile?")
CAPITAL = "capital_city_for_country_facts"
MONEY = "national_currency_for_country_facts"
FLAG = "country_flag_for_country_facts"
LIMA = ToolCall(CAPITAL, {"country": "Peru"})
PESO = ToolCall(MONEY, {"country": "Chile"})
ANSWER = "The capital of Peru is Lima, and in Chile people pay with the Chilean peso."
CHAT = Profile(name="chat", format="chat", context=8192)
IDS = tuple(
    f"Data/country_facts/{name}"
    for name in ("capital_city", "national_currency", "country_flag", "continent", "country_codes")
)


@dataclass
class Hit:
    api: Api
    clause: str = ""
    score: float = 0.5


@dataclass
class Hits:
    hits: list[Hit]
    nothing_fits: bool = False
    nearest_categories: tuple[str, ...] = ()
    dead_left_out: int = 0
    need_consent: tuple[str, ...] = ()
    language: str = ""


@dataclass
class Shelf:
    """A finder without a matcher that has the same APIs for whatever is asked."""

    apis: Sequence[Api]
    asked: list[str] = field(default_factory=list)
    best: Mapping[str, str] = field(default_factory=dict)

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> Hits:
        del category
        self.asked.append(text)
        first = self.best.get(text, "")
        ranked = sorted(self.apis, key=lambda api: not api.id.endswith(first or "?"))
        return Hits([Hit(api) for api in ranked[:limit]])

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:  # noqa: ARG002 - the port
        return []

    def scores(self, text: str, apis: Sequence[Api]) -> list[float]:
        del text
        return [0.5] * len(apis)

    similarities = scores


@pytest.fixture(scope="module")
def shelf() -> Shelf:
    known = {api.id: api for api in load_offline_catalog().apis}
    return Shelf([known[one] for one in IDS])


def task_of(request: ChatRequest) -> str:
    """Return what the user says first."""
    return request.messages[1].text


def called(request: ChatRequest) -> set[str]:
    return {one.call.name for one in request.messages if isinstance(one, ToolMessage)}


def asks_for(request: ChatRequest) -> str:
    """Return the first property of the JSON that is asked for, "" where none is."""
    schema = request.expected.schema
    return next(iter(schema.get("properties", ["a letter"]))) if schema else ""


@dataclass
class Mind:
    """A model that solves ``TASK`` if it is led well; what it says of each kind can be changed."""

    plan: Any = PARTS
    wants: Iterable[str] = (CAPITAL, MONEY)
    conditions: Sequence[str] = ()
    verdicts: list[str] = field(default_factory=list)
    of_results: str = "kept"
    problems: tuple[str, ...] = ()
    corrected: str = ANSWER
    drafts: list[str] = field(default_factory=lambda: [ANSWER])
    call: Callable[[ChatRequest], ScriptedReply] | None = None
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        kind = asks_for(request)
        if kind:
            self.asked.append(kind)
            return json.dumps(self._structured(kind, request))
        if not request.expected.names:
            self.asked.append("draft")
            return self.drafts.pop(0) if len(self.drafts) > 1 else self.drafts[0]
        self.asked.append("call")
        if self.call is not None:
            return self.call(request)
        return self._next(request)

    def _next(self, request: ChatRequest) -> ScriptedReply:
        task, done = task_of(request).split("\n")[0], called(request)
        if "Peru" in task and CAPITAL not in done:
            return LIMA
        if "Chile" in task and MONEY not in done:
            return PESO
        return "That is all."

    def _structured(self, kind: str, request: ChatRequest) -> Any:
        if kind == "a letter":
            return "A"
        if kind == "subtasks":
            return {kind: self.plan}
        if kind == "functions":
            return {kind: list(self.wants)}
        if kind == "conditions":
            return {kind: list(self.conditions)}
        if kind == "problems":
            return {kind: list(self.problems), "answer": self.corrected}
        verdict = self.of_results
        if "\nAnswer:" in request.messages[-1].text:
            verdict = self.verdicts.pop(0) if self.verdicts else "kept"
        schema = request.expected.schema
        assert schema is not None
        return dict.fromkeys(schema["properties"], verdict)


def solve(
    finder: Shelf,
    said: Callable[[ChatRequest], ScriptedReply],
    *,
    profile: Profile = CHAT,
    events: list[Event] | None = None,
    stop: Stop | None = None,
    caller: Caller | None = None,
    seconds: float = 0.0,
    task: str = TASK,
    every_vote: bool = False,
    **options: Any,
) -> tuple[Outcome, ScriptedChat]:
    model = ScriptedChat(said, seconds=seconds)
    heard: list[Event] = [] if events is None else events

    async def main() -> Outcome:
        async with caller or default_caller() as calls:
            solver = Solver(retriever=finder, engine=model, profile=profile, caller=calls)
            chosen = SolveOptions.model_validate(options)
            return await solver.solve(
                task, chosen, on_event=heard.append, stop=stop, every_vote=every_vote
            )

    return asyncio.run(main()), model


def functions(outcome: Outcome) -> list[str]:
    return [one.function for one in outcome.evidence if one.used]


# ---------------------------------------------------------------- each alone and together
@pytest.mark.parametrize("strategy", ["dfsdt", "dfs", "react", "cot"])
@pytest.mark.parametrize(
    "switches",
    [chosen for count in range(len(SWITCHES) + 1) for chosen in combinations(SWITCHES, count)],
    ids="+".join,
)
def test_every_set_of_switches_solves_the_task_with_every_strategy(
    shelf: Shelf, switches: tuple[Switch, ...], strategy: str
) -> None:
    mind = Mind(conditions=["the currency of Chile"])
    outcome, _ = solve(shelf, mind, switches=switches, strategy=strategy)
    assert (outcome.status, outcome.answer) == ("answered", ANSWER)
    assert functions(outcome) == [CAPITAL, MONEY]
    assert outcome.switches == tuple(sorted(switches))
    assert outcome.strategy == strategy
    said = Counter(mind.asked)
    assert (said["subtasks"] == 1) == ("plan" in switches)
    assert (said["functions"] > 0) == ("progressive" in switches)
    assert (said["conditions"] == 1) == ("constraints" in switches)
    drafts = 2 if strategy == "dfs" else 1  # both children are answers
    assert said["problems"] == drafts * ("self-check" in switches)


def test_the_profile_says_which_are_on_where_a_solve_does_not(shelf: Shelf) -> None:
    profile = CHAT.model_copy(update={"switches": frozenset({"self-check"})})
    assert solve(shelf, Mind(), profile=profile)[0].switches == ("self-check",)
    assert solve(shelf, Mind(), profile=profile, switches=())[0].switches == ()


def test_plan_as_a_strategy_is_the_switch_over_dfsdt(shelf: Shelf) -> None:
    outcome, _ = solve(shelf, Mind(), strategy="plan", switches={"self-check"})
    assert (outcome.strategy, outcome.switches) == ("dfsdt", ("plan", "self-check"))


def test_options_are_written_in_one_order_and_read_again() -> None:
    options = SolveOptions(switches=frozenset(SWITCHES), aids=frozenset({"match", "check"}))
    text = options.model_dump_json()
    assert json.loads(text)["switches"] == sorted(SWITCHES)
    assert SolveOptions.model_validate_json(text) == options


@pytest.mark.parametrize("bad", [{"switches": ["guess"]}, {"votes": 0}, {"votes": 17}])
def test_options_that_do_not_exist_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SolveOptions.model_validate(bad)


def test_an_aid_that_does_not_exist_is_a_usage_error(shelf: Shelf) -> None:
    with pytest.raises(UsageError, match="no aid 'luck'"):
        solve(shelf, Mind(), aids={"luck"})


def test_an_answer_is_not_checked_without_that_aid(shelf: Shelf) -> None:
    wrong = "It is Quito, population 12345."
    with_check, without = Mind(drafts=[wrong]), Mind(drafts=[wrong])
    solve(shelf, with_check)
    solve(shelf, without, aids=())
    assert with_check.asked.count("draft") > without.asked.count("draft") == 1


@pytest.mark.parametrize("given", [{"switches": ["plan"]}, {"aids": []}, {"votes": 2}])
def test_models_of_other_formats_refuse_them(shelf: Shelf, given: dict[str, Any]) -> None:
    compact = CHAT.model_copy(update={"format": "compact"})

    async def main() -> None:
        async with default_caller() as caller:
            solver = Solver(
                retriever=shelf, engine=ScriptedEngine([]), profile=compact, caller=caller
            )
            await solver.solve(TASK, SolveOptions.model_validate(given))

    with pytest.raises(UsageError, match="format compact") as error:
        asyncio.run(main())
    assert error.value.hint


# ---------------------------------------------------------------- plan
def test_each_subtask_has_candidates_of_its_own_and_sees_earlier_results() -> None:
    known = {api.id: api for api in load_offline_catalog().apis}
    best = {PARTS[1]: "national_currency"}
    shelf = Shelf([known[one] for one in IDS], best=best)
    events = list[Event]()
    outcome, model = solve(shelf, Mind(), switches=["plan"], candidates=1, events=events)
    assert shelf.asked == [TASK, *PARTS]
    assert outcome.candidates == IDS[:2]
    first, second = (r for r in model.requests if r.expected.names and not called(r))
    assert [one.name for one in first.tools] == [CAPITAL, "no_function_fits"]
    assert [one.name for one in second.tools] == [MONEY, "no_function_fits"]
    assert "Lima" not in task_of(first)
    assert TASK in task_of(second)
    assert "Lima" in task_of(second)
    thoughts = [one.text for one in events if one.kind == "thought"]
    assert thoughts[0] == f"plan: 1. {PARTS[0]}; 2. {PARTS[1]}"
    kinds = [(one.kind, one.thought) for one in outcome.tree if one.kind == "thought"]
    assert kinds == [("thought", text) for part in PARTS for text in (part, f"done: {part}")]
    assert [one.order for one in outcome.tree][:2] == [0, 0]
    orders = [one.order for one in outcome.tree if one.order]
    assert len(orders) == len(set(orders))


@pytest.mark.parametrize(
    "plan",
    [[], ["", "  "], [TASK], [PARTS[0], PARTS[0].upper(), f" {PARTS[0]} "], "none", None, [1, {}]],
    ids=["empty", "blank", "one", "the same", "a text", "null", "no texts"],
)
def test_a_plan_that_is_none_leaves_the_plain_strategy(shelf: Shelf, plan: Any) -> None:
    outcome, _ = solve(shelf, Mind(plan=plan), switches=["plan"])
    assert (outcome.status, functions(outcome)) == ("answered", [CAPITAL, MONEY])
    assert {one.kind for one in outcome.tree} == {"root", "call", "answer"}


def test_a_plan_that_is_no_json_leaves_the_plain_strategy(shelf: Shelf) -> None:
    mind = Mind()

    def said(request: ChatRequest) -> ScriptedReply:
        return "First I would …" if asks_for(request) == "subtasks" else mind(request)

    assert solve(shelf, said, switches=["plan"])[0].status == "answered"


def test_of_fifty_subtasks_few_are_solved(shelf: Shelf) -> None:
    words = [f"the capital of Peru, {chr(97 + at % 26) * (1 + at // 26)}" for at in range(50)]
    mind = Mind(plan=words, call=lambda r: "done" if called(r) else LIMA)
    outcome, _ = solve(shelf, mind, switches=["plan"])
    assert sum(one.text == "" and one.thought in words for one in outcome.tree) == 6
    assert outcome.status == "answered"
    assert outcome.usage.calls == 1  # the same call each time


def test_a_plan_in_another_language_is_followed(shelf: Shelf) -> None:
    plan = ["Was ist die Hauptstadt von Peru?", "Mit welcher Währung zahlt man in Chile?"]
    outcome, model = solve(shelf, Mind(plan=plan), switches=["plan"])
    assert (outcome.status, functions(outcome)) == ("answered", [CAPITAL, MONEY])
    assert any(task_of(one).startswith(plan[1]) for one in model.requests)


def test_a_subtask_that_invents_a_value_is_left_out(shelf: Shelf) -> None:
    plan = [*PARTS, "Convert 5000 pesos"]
    outcome, _ = solve(shelf, Mind(plan=plan), switches=["plan"])
    assert outcome.status == "answered"
    assert not any("5000" in one.thought for one in outcome.tree)


@pytest.mark.parametrize("strategy", ["dfsdt", "dfs", "react"])
def test_a_subtask_that_nothing_serves_is_told_as_open(shelf: Shelf, strategy: str) -> None:
    weather = "What is the weather in Peru?"
    no = ToolCall("no_function_fits", {"reason": "no weather"})

    def call(request: ChatRequest) -> ScriptedReply:
        if task_of(request).startswith(weather):
            return no
        return Mind()._next(request)

    mind = Mind(plan=[weather, *PARTS], call=call)
    outcome, _ = solve(shelf, mind, switches=["plan"], strategy=strategy)
    assert outcome.missing == (weather,)
    assert (outcome.status, outcome.answer) == ("partial", ANSWER)
    assert functions(outcome) == [CAPITAL, MONEY]


def test_a_subtask_makes_few_calls(shelf: Shelf) -> None:
    countries = iter(["Peru", "Chile", "Spain", "Italy", "France", "Japan", "Kenya", "Cuba"])
    mind = Mind(call=lambda _: ToolCall(FLAG, {"country": next(countries)}))
    outcome, _ = solve(shelf, mind, switches=["plan"], strategy="react")
    assert outcome.usage.calls == 6
    assert outcome.status == "answered"


@pytest.mark.parametrize("strategy", ["dfsdt", "dfs", "react", "cot"])
@pytest.mark.parametrize("most", range(1, 8))
def test_a_plan_keeps_the_budget_of_replies(shelf: Shelf, most: int, strategy: str) -> None:
    outcome, model = solve(
        shelf,
        Mind(),
        switches=SWITCHES,
        strategy=strategy,
        limits=Limits(model_calls=most),
        close_search=False,
    )
    assert outcome.status == "partial"
    assert "model call" in outcome.reason
    # What was begun when the last was spent is finished: a call or an answer takes several replies.
    assert len(model.requests) <= most + 8


def test_a_stop_ends_a_plan(shelf: Shelf) -> None:
    stop, mind = Stop(), Mind()

    def said(request: ChatRequest) -> ScriptedReply:
        if task_of(request).startswith(PARTS[1]):
            stop.set()
        return mind(request)

    outcome, _ = solve(shelf, said, switches=["plan"], stop=stop)
    assert outcome.status == "cancelled"
    assert [one.function for one in outcome.evidence] == [CAPITAL]


# ---------------------------------------------------------------- progressive
def test_only_what_the_model_asks_for_is_documented(shelf: Shelf) -> None:
    mind = Mind(wants=[FLAG, CAPITAL, "no_such_function"])
    _, model = solve(shelf, mind, switches=["progressive"])
    listing, call = model.requests[:2]
    assert listing.tools == ()
    for one in shelf.apis:
        name = one.id.rpartition("/")[2]
        assert f"\n- {name}_for_country_facts: " in listing.messages[-1].text
    assert [one.name for one in call.tools] == [CAPITAL, FLAG, "no_function_fits"]


def test_a_model_that_wants_nothing_gets_the_first_few(shelf: Shelf) -> None:
    _, model = solve(shelf, Mind(wants=()), switches=["progressive"])
    assert [one.name for one in model.requests[1].tools] == [
        CAPITAL,
        MONEY,
        FLAG,
        "no_function_fits",
    ]


def test_few_functions_are_shown_at_once(shelf: Shelf) -> None:
    mind = Mind()
    outcome, _ = solve(shelf, mind, switches=["progressive"], candidates=2)
    assert outcome.status == "answered"
    assert "functions" not in mind.asked


# ---------------------------------------------------------------- constraints
@pytest.mark.parametrize("plan", [(), ("plan",)])
def test_conditions_stand_in_the_task_and_broken_ones_are_marked(
    shelf: Shelf, plan: tuple[str, ...]
) -> None:
    mind = Mind(conditions=["pay in Chile", "pay in Chile", ""], of_results="broken")
    outcome, model = solve(shelf, mind, switches=["constraints", *plan])
    first, second, *_ = (task_of(one) for one in model.requests if one.expected.names)
    assert first.endswith("Conditions of the request:\n- pay in Chile")
    assert second.endswith("\n- pay in Chile (the last result breaks this one)")
    assert (outcome.status, outcome.answer, outcome.notes) == ("answered", ANSWER, ())
    assert mind.asked.count("conditions") == 1
    assert mind.asked.count("1") == 3  # each result once, and the answer


def test_a_task_without_conditions_is_checked_for_none(shelf: Shelf) -> None:
    mind = Mind()
    solve(shelf, mind, switches=["constraints"])
    assert "1" not in mind.asked


def test_an_answer_that_breaks_a_condition_is_written_again(shelf: Shelf) -> None:
    german = "Die Hauptstadt von Peru ist Lima."
    mind = Mind(
        conditions=["in German", "in verse"],
        verdicts=["broken", "kept"],
        drafts=[ANSWER, german],
    )
    outcome, model = solve(shelf, mind, switches=["constraints"], task=f"{TASK} In German.")
    assert (outcome.status, outcome.answer, outcome.notes) == ("answered", german, ())
    assert "in German" in model.requests[-2].messages[-1].text
    assert "verse" not in model.requests[-2].messages[-1].text  # the task says nothing of it


def test_a_condition_that_stays_broken_is_noted(shelf: Shelf) -> None:
    mind = Mind(conditions=["in verse"], verdicts=["broken", "broken"])
    outcome, _ = solve(shelf, mind, switches=["constraints"], task=f"{TASK} In verse!")
    assert (outcome.status, outcome.answer) == ("answered", ANSWER)
    assert [one for one in outcome.notes if "in verse" in one]


@pytest.mark.parametrize("verdict", ["unknown", "perhaps"])
def test_a_condition_that_nobody_can_check_changes_nothing(shelf: Shelf, verdict: str) -> None:
    mind = Mind(conditions=["before the sun burns out"], verdicts=[verdict] * 9, of_results=verdict)
    task = f"{TASK} Before the sun burns out."
    outcome, _ = solve(shelf, mind, switches=["constraints"], task=task)
    assert (outcome.answer, outcome.notes) == (ANSWER, ())
    assert mind.asked.count("1") == 3
    assert mind.asked.count("draft") == 1


# ---------------------------------------------------------------- self-check
def test_a_draft_is_corrected_from_the_results(shelf: Shelf) -> None:
    draft = "The capital of Peru is Lima."
    mind = Mind(drafts=[draft], problems=("the currency is missing",))
    outcome, model = solve(shelf, mind, switches=["self-check"])
    assert outcome.answer == ANSWER
    assert "Lima" in model.requests[-1].messages[1].text


@pytest.mark.parametrize(
    ("problems", "corrected"),
    [((), "Quito"), (("wrong",), "It is Quito with 999 people."), (("wrong",), " . ")],
    ids=["no problem", "invented", "nothing"],
)
def test_a_correction_that_is_none_leaves_the_draft(
    shelf: Shelf, problems: tuple[str, ...], corrected: str
) -> None:
    mind = Mind(problems=problems, corrected=corrected)
    assert solve(shelf, mind, switches=["self-check"])[0].answer == ANSWER


# ---------------------------------------------------------------- votes
class Counting(Caller):
    """Counts the calls that are really made."""

    made = 0

    async def call(self, *given: Any, **named: Any) -> Any:
        self.made += 1
        await asyncio.sleep(0.05)
        return await super().call(*given, **named)


def by_seed(answers: Sequence[str]) -> Callable[[ChatRequest], ScriptedReply]:
    """Return a model whose answer depends on the solve that asks."""
    mind = Mind()

    def said(request: ChatRequest) -> ScriptedReply:
        if not request.expected.names and not asks_for(request):
            return answers[request.seed // 1_000_003]
        return mind(request)

    return said


def counting() -> Counting:
    from toolsrv_runtime.calls.transports import offline_transports  # noqa: PLC0415 - heavy

    return Counting(transports=offline_transports())


def test_the_answer_that_most_support_wins(shelf: Shelf) -> None:
    good, bad = ANSWER, "Peru's capital is Lima, and Chile's currency CLP."
    caller, events = counting(), list[Event]()
    outcome, model = solve(shelf, by_seed([bad, good, good]), votes=3, caller=caller, events=events)
    assert (outcome.status, outcome.answer) == ("answered", good)
    assert (outcome.votes, outcome.agreed, outcome.seed) == (3, 2, 1)
    assert outcome.notes[-1] == "2 of 3 solves support this answer"
    assert caller.made == outcome.usage.calls == 2  # identical calls are made once
    assert outcome.usage.model_calls == len(model.requests)
    assert {one.temperature for one in model.requests} == {0.0, 0.5}
    assert all((one.seed < 1_000_003) == (one.temperature == 0) for one in model.requests)
    assert [one.text for one in events if one.kind == "note"] == list(outcome.notes)
    calls = [one for one in events if one.kind == "call"]
    assert len(calls) == 2  # of the first solve alone
    events.clear()
    solve(shelf, by_seed([bad, good, good]), votes=3, events=events, every_vote=True)
    made = Counter(one.vote for one in events if one.kind == "observation" and one.evidence)
    assert made == {0: 2, 1: 2, 2: 2}


def test_a_solve_that_fails_has_no_vote(shelf: Shelf) -> None:
    mind = Mind()

    def said(request: ChatRequest) -> ScriptedReply:
        if request.seed // 1_000_003 == 1:
            raise ModelError("it fell over", hint="")
        return mind(request)

    outcome, _ = solve(shelf, said, votes=3)
    assert (outcome.status, outcome.answer, outcome.agreed) == ("answered", ANSWER, 2)
    assert any("it fell over" in one for one in outcome.notes)


def test_where_all_fail_the_first_error_is_raised(shelf: Shelf) -> None:
    def said(request: ChatRequest) -> ScriptedReply:
        raise ModelError(f"it fell over {request.seed // 1_000_003}", hint="")

    with pytest.raises(ModelError, match="it fell over 0"):
        solve(shelf, said, votes=2)


def test_a_vote_shares_one_budget(shelf: Shelf) -> None:
    outcome, model = solve(shelf, Mind(), votes=4, limits=Limits(model_calls=6))
    assert len(model.requests) <= 6 + 4 * 4
    assert outcome.usage.model_calls == len(model.requests)


def test_solves_of_a_vote_run_at_the_same_time(shelf: Shelf) -> None:
    together = threading.Barrier(3, timeout=20)
    mind, first = Mind(), set[int]()

    def said(request: ChatRequest) -> ScriptedReply:
        if request.seed not in first and request.seed % 1_000_003 == 1:
            first.add(request.seed)
            together.wait()  # fails where they come one after the other
        return mind(request)

    assert solve(shelf, said, votes=3)[0].agreed == 3


def test_a_vote_can_be_stopped(shelf: Shelf) -> None:
    stop = Stop()
    threading.Timer(0.3, stop.set).start()
    started = time.monotonic()
    outcome, _ = solve(shelf, Mind(), votes=4, stop=stop, seconds=60)
    assert outcome.status == "cancelled"
    assert time.monotonic() - started < 30


def test_a_vote_that_is_cancelled_leaves_nothing_running(shelf: Shelf) -> None:
    asked = threading.Semaphore(0)

    class Slow(ScriptedChat):
        def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
            asked.release()
            return super().reply(request, stop=stop)

    model = Slow(Mind(), seconds=60)

    async def main() -> None:
        async with default_caller() as caller:
            solver = Solver(retriever=shelf, engine=model, profile=CHAT, caller=caller)
            work = asyncio.ensure_future(solver.solve(TASK, SolveOptions(votes=3)))
            await asyncio.to_thread(lambda: [asked.acquire(timeout=20) for _ in range(3)])
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_vote_over_a_plan_with_all_switches(shelf: Shelf) -> None:
    outcome, _ = solve(shelf, Mind(), votes=3, switches=SWITCHES)
    assert (outcome.status, outcome.agreed) == ("answered", 3)
    assert functions(outcome) == [CAPITAL, MONEY]


# ---------------------------------------------------------------- the choice
def outcomes(shelf: Shelf, *said: tuple[str, str]) -> list[Outcome]:
    base, _ = solve(shelf, Mind())
    return [base.model_copy(update={"status": s, "answer": a}) for s, a in said]


@pytest.mark.parametrize(
    ("said", "index", "agreed"),
    [
        ([("answered", "12,300 people"), ("answered", "12.3 thousand people")], 0, 2),
        (
            [
                ("answered", "on 3 May 2026"),
                ("answered", "on 4 May 2026"),
                ("answered", "2026-05-03"),
            ],
            0,
            2,
        ),
        ([("gave_up", ""), ("gave_up", ""), ("answered", "It is 7.")], 2, 1),
        ([("answered", "Yes."), ("answered", "No."), ("answered", "no")], 1, 2),
        ([("partial", "7"), ("partial", "")], 0, 1),
        ([("answered", "7"), ("answered", "8")], 0, 1),
    ],
    ids=["numbers", "dates", "status", "words", "something", "first of equals"],
)
def test_the_winner_is_chosen_by_values(
    shelf: Shelf, said: list[tuple[str, str]], index: int, agreed: int
) -> None:
    choice = count_votes(outcomes(shelf, *said))
    assert (choice.index, choice.agreed) == (index, agreed)


def test_nothing_cannot_be_chosen_from() -> None:
    with pytest.raises(ValueError, match="nothing"):
        count_votes([])


def test_a_reply_that_broke_off_is_no_plan(shelf: Shelf) -> None:
    mind = Mind()

    def said(request: ChatRequest) -> ScriptedReply:
        if asks_for(request) == "subtasks":
            return ChatReply(text='{"subtasks": ["What is', finish="length")
        return mind(request)

    assert solve(shelf, said, switches=["plan"])[0].status == "answered"
