"""``toolsrv catalog check``: call APIs, judge what they say, keep it with them.

One moving line on stderr while the check runs (elsewhere a line now and then), a table on stdout at
its end.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.calls.keys import KeyStore
from toolsrv.cli.interrupt import stoppable
from toolsrv.cli.options import category_option, example, json_option
from toolsrv.cli.output import StatusLine, emit_json, note, pluralize, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import one_line
from toolsrv.signals import Interrupted, exit_code
from toolsrv_registry.errors import BusyError, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from toolsrv.settings import Settings
    from toolsrv_registry.api import Api
    from toolsrv_registry.storage.health import HealthEntry
    from toolsrv_registry.storage.store import Store
    from toolsrv_runtime.check.checker import Checker, CheckProgress, CheckResult
    from toolsrv_runtime.check.plan import CheckPlan
    from toolsrv_runtime.check.replies import Backend

MODES = ("offline", "live", "recorded")


class Finite(click.FloatRange):
    """A number in a range, and not NaN, which every range lets pass."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is no number", param, ctx)
        return number


@click.command(
    epilog=example(
        "toolsrv catalog check",
        "toolsrv catalog check toolbench --mode live --sample 200 --rate 2",
        "toolsrv catalog check toolbench --mode recorded --file replies.jsonl",
    )
)
@click.argument("name", required=False)
@category_option
@click.option("--tool", metavar="NAME", help="Only APIs of this tool.")
@click.option("--sample", type=click.IntRange(1), help="Only so many APIs, drawn at random.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="offline",
    show_default=True,
    help="offline: only the catalog that ships. live: over the network. recorded: from --file.",
)
@click.option(
    "--file", type=click.Path(path_type=Path), help="Recorded replies, for --mode recorded."
)
@click.option(
    "--record", type=click.Path(path_type=Path), help="Write the replies to this file as well."
)
@click.option(
    "--via",
    metavar="URL",
    help="Send every live call to this server instead (a mirror, a mock, a gateway).",
)
@click.option(
    "--rate",
    type=Finite(min=0, max=1000),
    help="Calls per second to one host; 0: no limit.  [default: 1 when live]",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    default=8,
    show_default=True,
    help="APIs called at the same time.",
)
@click.option(
    "--timeout",
    type=Finite(min=0, min_open=True, max=600),
    default=15.0,
    show_default=True,
    help="Seconds for one call.",
)
@click.option(
    "--slow",
    type=Finite(min=0, min_open=True, max=600),
    default=10.0,
    show_default=True,
    help="Seconds from which an answer counts as slow.",
)
@click.option(
    "--recheck-after",
    type=Finite(min=0, max=36_500),
    metavar="DAYS",
    default=30.0,
    show_default=True,
    help="Leave out what was checked within so many days and has not changed since.",
)
@click.option("--limit-calls", type=click.IntRange(1), help="End after so many calls.")
@json_option
@click.pass_context
@pass_session
def check(
    session: Session, context: click.Context, /, name: str | None, as_json: bool, **given: Any
) -> None:
    """Call the APIs of the catalog NAME, or of all catalogs, and keep what they are worth.

    Every API is called with its provider's own example values, by reading methods only. The
    verdict, its date and the head of the answer are kept with the API; search and solve can then
    leave dead APIs out. A check that was stopped goes on with the same command.
    """
    store = session.workbench().registry().store
    apis = store.apis(catalog=name, category=given["category"], tool=given["tool"])
    paid = {
        i for i, one in store.labels.terms((a.id for a in apis), catalog=name).items() if one.paid
    }
    world = _world(store, apis, paid, given, session.load().settings)
    plan = _plan(store, apis, world, given)
    if given["mode"] == "live":
        _need_a_key(plan)
    _announce(plan, given)
    result, interrupted = asyncio.run(_run(store, plan, world, given, quiet=as_json))
    if result is None:
        raise Interrupted(interrupted)
    not_checked = {**plan.not_checked, **result.not_checked}
    if result.ended == "no_network":
        _keep_nothing_silently(result)
    if as_json:
        emit_json(_document(result, plan, not_checked))
    else:
        show_result(result, not_checked)
    _say_what_is_left(result)
    if interrupted:
        context.exit(exit_code(interrupted))


def _world(
    store: Store, apis: list[Api], paid: set[str], given: dict[str, Any], settings: Settings
) -> Backend:
    from toolsrv.calls.caller import usage
    from toolsrv.calls.catalog_files import FixedFile
    from toolsrv_runtime.calls.addresses import parse_own_hosts
    from toolsrv_runtime.calls.caller import ApiOrigin
    from toolsrv_runtime.calls.credentials import RAPIDAPI
    from toolsrv_runtime.check import backends

    mode, timeout = given["mode"], given["timeout"]
    if (mode == "recorded") != (given["file"] is not None):
        raise UsageError(
            "--mode recorded and --file belong together", hint="name a file that --record wrote"
        )
    if given["via"] is not None and mode != "live":
        raise UsageError("--via is for live calls", hint="add --mode live")
    if mode == "recorded":
        return backends.recorded_backend(given["file"])
    if mode == "offline":
        return backends.offline_backend(timeout=timeout)
    return backends.live_backend(
        apis,
        timeout=timeout,
        key=KeyStore(settings.data_dir).secret(RAPIDAPI),
        via=given["via"],
        own=parse_own_hosts(settings.own_hosts),
        home=lambda api: ApiOrigin(store.home(api.id)[0]),  # what is paid for is left out before
        fixed=FixedFile(settings.data_dir).of,
        paid=paid,
        usage=usage(settings),
    )


def _plan(store: Store, apis: list[Api], world: Backend, given: dict[str, Any]) -> CheckPlan:
    from toolsrv_runtime.check.plan import make_plan

    since = datetime.now(UTC) - timedelta(days=given["recheck_after"])
    return make_plan(
        apis,
        latest=store.health.latest(),
        since=since.isoformat(timespec="seconds"),
        refuses=world.refuses,
        size=given["sample"],
        seed=given["seed"],
    )


def _need_a_key(plan: CheckPlan) -> None:
    """Say before anything is called how many APIs wait for a key; refuse when it is all of them."""
    from toolsrv_runtime.check.backends import NO_KEY

    many = sum(why == NO_KEY for why in plan.not_checked.values())
    if not many:
        return
    hint = (
        "store your key (toolsrv keys set rapidapi), set RAPIDAPI_KEY, "
        "or name a server of your own with --via"
    )
    if not plan.items and not plan.recent:
        raise UsageError(f"{many:,} APIs are on RapidAPI, which needs a key", hint=hint)
    note(f"note: {many:,} APIs are on RapidAPI, which needs a key: {hint}")


def _announce(plan: CheckPlan, given: dict[str, Any]) -> None:
    hosts = Counter(item.host for item in plan.items)
    rate = _rate(given)
    if plan.recent:
        note(
            f"{plan.recent:,} APIs were checked in the last {given['recheck_after']:g} days and "
            "are left out (--recheck-after 0 takes them in)"
        )
    if not plan.items:
        note("there is nothing to check")
        return
    pace = f", at most {rate:g} calls/s to one host" if rate else ""
    note(f"checking {pluralize(len(plan.items), 'API')} at {pluralize(len(hosts), 'host')}{pace}")


def _rate(given: dict[str, Any]) -> float:
    if given["rate"] is not None:
        return float(given["rate"])
    return 1.0 if given["mode"] == "live" else 0.0


async def _run(
    store: Store, plan: CheckPlan, world: Backend, given: dict[str, Any], *, quiet: bool
) -> tuple[CheckResult | None, int]:
    from toolsrv_runtime.check.backends import ReplyRecorder
    from toolsrv_runtime.check.checker import Checker, CheckOptions

    rules = CheckOptions(
        rate=_rate(given),
        concurrency=given["concurrency"],
        calls=given["limit_calls"],
        slow=given["slow"],
    )
    try:
        with ExitStack() as stack:
            heard: dict[str, Any] = {}
            if given["record"] is not None:
                heard["heard"] = stack.enter_context(ReplyRecorder(given["record"])).add
            view = stack.enter_context(CheckView(quiet=quiet))
            checker: Checker = Checker(
                plan.items, world, keep=store.health.record, rules=rules, listen=view.show, **heard
            )
            return await stoppable(checker.run(), ask=lambda _: checker.stop(), at_once=view.close)
    finally:
        await world.aclose()


def _keep_nothing_silently(result: CheckResult) -> None:
    raise BusyError(
        f"the last {len(result.unconfirmed)} calls reached nobody, at several hosts: "
        f"{result.tally.done:,} APIs were checked before",
        hint="look at the network, then go on with the same command",
    )


def _say_what_is_left(result: CheckResult) -> None:
    if result.unconfirmed:
        note(
            f"{len(result.unconfirmed):,} APIs could not be reached, and nobody else was reached "
            "after them: not kept"
        )
    if result.ended == "stopped":
        note("stopped; go on with the same command: what is kept is not called again")
    elif result.ended == "call_limit":
        note("the limit of calls is used up; go on with the same command")


def _document(result: CheckResult, plan: CheckPlan, not_checked: dict[str, str]) -> dict[str, Any]:
    tally = result.tally
    return {
        "ended": result.ended,
        "checked": tally.done,
        "calls": tally.calls,
        "seconds": round(tally.seconds, 3),
        "verdicts": {verdict.value: many for verdict, many in tally.verdicts.most_common()},
        "alive": tally.standings["alive"],
        "dead": tally.standings["dead"],
        "unknown": tally.standings["unknown"],
        "recent": plan.recent,
        "unconfirmed": list(result.unconfirmed),
        "not_checked": not_checked,
        "results": [
            entry.model_dump(mode="json") | {"standing": entry.standing, "reason": entry.reason}
            for entry in result.entries
        ],
    }


LINE_EVERY_S = 10.0
SHOWN_REASONS = 8
SHOWN_NAMES = 6
_QUOTED = re.compile(r"'[^']*'")


def duration(seconds: float) -> str:
    """Return a length of time as people say it."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{round(whole / 60)} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def progress_line(tally: CheckProgress) -> str:
    """Return how far a check is, how fast, and how long it still takes."""
    left = tally.left_s
    standings = tally.standings
    return (
        f"{tally.done:,} of {tally.total:,} APIs · {tally.rate:.1f}/s · "
        + (f"{duration(left)} left" if left is not None else "…")
        + f" · {standings['alive']:,} alive, {standings['dead']:,} dead, "
        f"{standings['unknown']:,} unknown"
    )


class CheckView(StatusLine):
    """Shows a running check. ``quiet`` shows nothing."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._line = ""
        self._told = time.monotonic()

    def status(self) -> RenderableType:
        """Return how far the check is."""
        from rich.text import Text

        return Text(self._line, no_wrap=True, overflow="ellipsis")

    def show(self, tally: CheckProgress) -> None:
        """Show how far the check is."""
        self._line = progress_line(tally)
        now = time.monotonic()
        if self._live is None and not self._quiet and now - self._told >= LINE_EVERY_S:
            self._told = now
            note(self._line)


def show_result(result: CheckResult, not_checked: Mapping[str, str]) -> None:
    """Print what a check found."""
    tally = result.tally
    rows = [
        (verdict.value, many, _standings(result.entries, verdict.value))
        for verdict, many in tally.verdicts.most_common()
    ]
    if rows:
        table(("verdict", "APIs#", "which means"), rows)
    if tally.calls:
        note(
            f"checked {tally.done:,} APIs with {tally.calls:,} calls in {duration(tally.seconds)}: "
            f"{tally.standings['alive']:,} alive, {tally.standings['dead']:,} dead, "
            f"{tally.standings['unknown']:,} unknown"
        )
    show_reasons(not_checked)


def show_reasons(not_checked: Mapping[str, str]) -> None:
    """Say on stderr why APIs were not checked, the commonest reasons first.

    Reasons that differ only in what they quote are told together.
    """
    kinds: dict[str, Counter[str]] = {}
    for reason in not_checked.values():
        kinds.setdefault(_QUOTED.sub("{}", reason), Counter())[reason] += 1
    ordered = sorted(kinds.items(), key=lambda kind: -kind[1].total())
    for kind, reasons in ordered[:SHOWN_REASONS]:
        commonest = [reason for reason, _ in reasons.most_common(SHOWN_NAMES)]
        names = ", ".join(match[0] for one in commonest if (match := _QUOTED.search(one)))
        more = ", …" if len(reasons) > SHOWN_NAMES else ""
        text = kind.replace("{}", names + more, 1) if names else kind
        note(f"not checked: {one_line(text)} ({reasons.total():,} APIs)")
    if rest := sum(reasons.total() for _, reasons in ordered[SHOWN_REASONS:]):
        note(f"not checked: other reasons ({rest:,} APIs); --json lists them all")


def _standings(entries: tuple[HealthEntry, ...], verdict: str) -> str:
    counts = Counter(one.standing for one in entries if one.verdict == verdict)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{standing}: {many:,}" for standing, many in counts.most_common())
