"""Solver: solve a task with evidence from retriever, model, format and caller.

``Run`` does the work of one solve; this module checks the task and chooses the format.
"""

from __future__ import annotations

from collections.abc import Callable

from toolsrv_catalogs.text import clean
from toolsrv_registry.errors import UsageError
from toolsrv_runtime import TASK_LIMIT, outcome
from toolsrv_runtime import outcome as out
from toolsrv_runtime.agent.call_executor import ApiCaller
from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.agent.run import Run
from toolsrv_runtime.agent.state import Budget
from toolsrv_runtime.calls.result import AskConsent
from toolsrv_runtime.contract.format import Configurable, Format, Reranker, Verifier
from toolsrv_runtime.contract.hints import AskValue, TaskHints
from toolsrv_runtime.contract.models import ChatModel, Engine
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.toolbench.prompts import Prompts
from toolsrv_runtime.toolbench.reference import ReferenceMode

__all__ = ["TASK_LIMIT", "ApiRetriever", "SolveOptions", "Solver", "build_format", "build_hints"]


VOTE_TEMPERATURE = 0.5
"""Of the second solve of a vote and those after it, where the profile takes the likeliest token."""


def build_format(
    engine: Engine | ChatModel,
    profile: Profile,
    *,
    prior: Reranker | None,
    prompts: Prompts | None = None,
    fidelity: ReferenceMode | None = None,
) -> Format:
    """Return the format a profile names; every chat model has the same agent."""
    if not isinstance(engine, ChatModel) and profile.format == "toolllama":
        from toolsrv_runtime.toolbench.toolllama import ToolllamaFormat  # noqa: PLC0415 - one family

        return ToolllamaFormat(engine, profile, prompts=prompts, fidelity=fidelity)
    if not isinstance(engine, ChatModel) and profile.format == "compact":
        from toolsrv_runtime.planner.conversation import CompactFormat  # noqa: PLC0415 - one model
        from toolsrv_runtime.planner.own_matcher import own_prior  # noqa: PLC0415 - of one model

        return CompactFormat(engine, profile, prior=prior and own_prior(prior))
    from toolsrv_runtime.agent.chat_agent import ChatAgent  # noqa: PLC0415 - loads jinja2

    if isinstance(engine, ChatModel):
        return ChatAgent(engine, profile, prior=prior)
    from toolsrv_runtime.models.local import LocalChatModel  # noqa: PLC0415 - loads jinja2
    from toolsrv_runtime.templates.tool_template import ToolTemplate  # noqa: PLC0415 - symmetry

    template = ToolTemplate(
        profile.chat_template, place=profile.chat_template_from, tokens=engine.special_tokens
    )
    return ChatAgent(LocalChatModel(engine, template), profile, prior=prior)


def build_hints(profile: Profile, prior: Reranker) -> TaskHints:
    """Return the rules for the compact model, for every other what the matcher sees."""
    if profile.format != "compact":
        from toolsrv_runtime.agent.coverage import MatcherHints  # noqa: PLC0415 - symmetry

        return MatcherHints(prior)
    from toolsrv_runtime.planner.hints import PlannerHints  # noqa: PLC0415 - of one model
    from toolsrv_runtime.planner.own_matcher import own_prior  # noqa: PLC0415 - of one model

    return PlannerHints(own_prior(prior))


def _finder(profile: Profile, finder: ApiRetriever) -> ApiRetriever:
    """Return the retriever that a model of this profile solves with."""
    if profile.format != "compact":
        return finder
    from toolsrv_runtime.planner.own_matcher import OwnFinder  # noqa: PLC0415 - of one model

    return OwnFinder(finder)


def ignore(event: outcome.Event) -> None:
    """Do nothing with an event."""


class Solver:
    """Solves tasks, one at a time per engine. Reusable; holds no state between solves."""

    def __init__(
        self,
        *,
        retriever: ApiRetriever,
        engine: Engine | ChatModel,
        profile: Profile,
        caller: ApiCaller,
        prompts: Prompts | None = None,
        fidelity: ReferenceMode | None = None,
    ) -> None:
        """Take the parts; ``prompts`` and ``fidelity`` are for models of ToolLLaMA's format."""
        self._retriever = retriever = _finder(profile, retriever)
        self._engine = engine
        self._profile = profile
        self._caller = caller
        self._fidelity = fidelity or ReferenceMode()
        self._format = build_format(
            engine, profile, prior=retriever, prompts=prompts, fidelity=fidelity
        )
        self._hints = build_hints(profile, retriever)

    async def solve(
        self,
        task: str,
        options: SolveOptions = SolveOptions(),  # noqa: B008 - frozen
        *,
        on_event: Callable[[outcome.Event], None] = ignore,
        stop: Stop | None = None,
        ask: AskConsent | None = None,
        ask_value: AskValue | None = None,
        every_vote: bool = False,
    ) -> out.Outcome:
        """Solve ``task``; ``on_event`` is called on the event loop's thread.

        Of several solves that vote it gets the events of the first, and what a person is asked; with
        ``every_vote`` those of all, numbered.

        ``ask`` asks a person for consent to a call that needs it, and its time is not the
        budget's; without it such a call stays refused. ``ask_value`` asks a person for a value that
        a call requires and that nobody has given; without it a solve that lacks one ends as
        ``needs_input``.

        Ends with an outcome whatever happens to the search: answered, replied, partial (it ended
        first), needs input, gave up or cancelled (``stop`` was set). Cancelling the coroutine stops
        the engine at the next token.

        Raises:
            UsageError: the task is empty or too long, or ``options.verify``, the switches, aids or
                votes, or the reference mode are not for this model.
            NotFoundError: the category is unknown.
        """
        text = clean(task, TASK_LIMIT + 1).strip()
        if not text:
            raise UsageError("the task is empty", hint='say what to do: toolsrv solve "…"')
        if len(task) > TASK_LIMIT:
            raise UsageError(
                f"the task has {len(task)} characters and at most {TASK_LIMIT} are taken",
                hint="shorten it, or split it into several tasks",
            )
        if options.verify and not isinstance(self._format, Verifier):
            raise UsageError(
                f"{self._engine.name} cannot give a second opinion: a model of the format "
                f"{self._format.name} was never trained to judge answers",
                hint="name another model (--model), or leave out --verify and read what the "
                "evidence check says of the answer",
            )
        if self._fidelity.label and self._profile.format != "toolllama":
            raise UsageError(
                f"ToolBench's behaviour is that of ToolLLaMAs, and {self._engine.name} is of the "
                f"format {self._format.name}",
                hint="name a ToolLLaMA with --model, or leave out --faithful and --faithful-in",
            )
        options = self._fidelity.search(self._chosen(options))
        outer = stop or Stop()

        def make(
            number: int,
            each: SolveOptions,
            caller: ApiCaller,
            listener: Callable[[outcome.Event], None],
            budget: Budget | None,
            asks: AskConsent | None,
        ) -> Run:
            profile, form = self._drawn(each, number)
            return Run(
                text,
                each,
                self._retriever,
                self._engine,
                form,
                caller,
                listener,
                outer,
                offered=each.candidates or profile.candidates,
                most_offered=profile.max_candidates,
                calls_per_turn=profile.calls_per_turn,
                hints=self._hints,
                anew_after_give_up=profile.anew_after_give_up,
                draws=profile.samples,
                ask=asks,
                ask_value=ask_value if options.votes == 1 else None,
                budget=budget,
            )

        if options.votes == 1:
            return await make(0, options, self._caller, on_event, None, ask).run()
        from toolsrv_runtime.agent.run import solve_with_votes  # noqa: PLC0415 - seldom

        return await solve_with_votes(
            options, make, self._caller, ask, on_event, every_vote=every_vote
        )

    def _chosen(self, options: SolveOptions) -> SolveOptions:
        """Return options with the profile's switches and aids where none are named.

        Raises:
            UsageError: they are not for this model, or there is no such aid.
        """
        form = self._format
        if isinstance(form, Configurable):
            aids = self._profile.aids if options.aids is None else options.aids
            switches = (
                frozenset(self._profile.switches) if options.switches is None else options.switches
            )
            form.configured(aids, switches, 0.0)
            return options.model_copy(update={"switches": switches, "aids": aids})
        given = {
            "switches": bool(options.switches),
            "aids": options.aids is not None,
            "votes": options.votes > 1,
        }
        if named := [name for name, is_given in given.items() if is_given]:
            raise UsageError(
                f"{self._engine.name} takes no {' and no '.join(named)}: a model of the format "
                f"{form.name} was trained for one conversation",
                hint="name a chat model (--model), or leave them out",
            )
        return options

    def _drawn(self, options: SolveOptions, number: int) -> tuple[Profile, Format]:
        """Return profile and format of the solve with this number; the first takes likeliest tokens."""
        profile, form = self._profile, self._format
        if not isinstance(form, Configurable):
            return profile, form
        if number and not profile.temperature:
            profile = profile.model_copy(update={"temperature": VOTE_TEMPERATURE})
        configured = form.configured(
            options.aids, options.switches or frozenset(), profile.temperature
        )
        return profile, configured
