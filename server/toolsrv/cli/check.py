"""``toolsrv catalog check``: call APIs, judge what they say, keep it with them."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.interrupt import stoppable
from toolsrv.cli.options import category_option, example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.cli.wording import counted
from toolsrv.key_store import KeyStore
from toolsrv.signals import Interrupted, exit_code
from toolsrv_registry.errors import BusyError, UsageError

if TYPE_CHECKING:
    from toolsrv.settings import Settings
    from toolsrv_registry.api import Api
    from toolsrv_registry.store import Store
    from toolsrv_runtime.check.checker import Checker, Result
    from toolsrv_runtime.check.plan import Plan
    from toolsrv_runtime.check.worlds import World

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
        i for i, one in store.shelf.terms((a.id for a in apis), catalog=name).items() if one.paid
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
        from toolsrv.cli.check_view import show_result

        show_result(result, not_checked)
    _say_what_is_left(result)
    if interrupted:
        context.exit(exit_code(interrupted))


def _world(
    store: Store, apis: list[Api], paid: set[str], given: dict[str, Any], settings: Settings
) -> World:
    from toolsrv.callers import usage
    from toolsrv.fixed_values import FixedFile
    from toolsrv_runtime.calls.addresses import parse_own
    from toolsrv_runtime.calls.auth import RAPIDAPI
    from toolsrv_runtime.calls.caller import Home
    from toolsrv_runtime.check import modes

    mode, timeout = given["mode"], given["timeout"]
    if (mode == "recorded") != (given["file"] is not None):
        raise UsageError(
            "--mode recorded and --file belong together", hint="name a file that --record wrote"
        )
    if given["via"] is not None and mode != "live":
        raise UsageError("--via is for live calls", hint="add --mode live")
    if mode == "recorded":
        return modes.recorded_world(given["file"])
    if mode == "offline":
        return modes.offline_world(timeout=timeout)
    return modes.live_world(
        apis,
        timeout=timeout,
        key=KeyStore(settings.data_dir).secret(RAPIDAPI),
        via=given["via"],
        own=parse_own(settings.own_hosts),
        home=lambda api: Home(store.home(api.id)[0]),  # what is paid for is left out before
        fixed=FixedFile(settings.data_dir).of,
        paid=paid,
        usage=usage(settings),
    )


def _plan(store: Store, apis: list[Api], world: World, given: dict[str, Any]) -> Plan:
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


def _need_a_key(plan: Plan) -> None:
    """Say before anything is called how many APIs wait for a key; refuse when it is all of them."""
    from toolsrv_runtime.check.modes import NO_KEY

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


def _announce(plan: Plan, given: dict[str, Any]) -> None:
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
    note(f"checking {counted(len(plan.items), 'API')} at {counted(len(hosts), 'host')}{pace}")


def _rate(given: dict[str, Any]) -> float:
    if given["rate"] is not None:
        return float(given["rate"])
    return 1.0 if given["mode"] == "live" else 0.0


async def _run(
    store: Store, plan: Plan, world: World, given: dict[str, Any], *, quiet: bool
) -> tuple[Result | None, int]:
    from toolsrv.cli.check_view import CheckView
    from toolsrv_runtime.check.checker import Checker, Rules
    from toolsrv_runtime.check.recorded import Recorder

    rules = Rules(
        rate=_rate(given),
        concurrency=given["concurrency"],
        calls=given["limit_calls"],
        slow=given["slow"],
    )
    try:
        with ExitStack() as stack:
            heard: dict[str, Any] = {}
            if given["record"] is not None:
                heard["heard"] = stack.enter_context(Recorder(given["record"])).add
            view = stack.enter_context(CheckView(quiet=quiet))
            checker: Checker = Checker(
                plan.items, world, keep=store.health.record, rules=rules, listen=view.show, **heard
            )
            return await stoppable(checker.run(), ask=lambda _: checker.stop(), at_once=view.close)
    finally:
        await world.aclose()


def _keep_nothing_silently(result: Result) -> None:
    raise BusyError(
        f"the last {len(result.unconfirmed)} calls reached nobody, at several hosts: "
        f"{result.tally.done:,} APIs were checked before",
        hint="look at the network, then go on with the same command",
    )


def _say_what_is_left(result: Result) -> None:
    if result.unconfirmed:
        note(
            f"{len(result.unconfirmed):,} APIs could not be reached, and nobody else was reached "
            "after them: not kept"
        )
    if result.ended == "stopped":
        note("stopped; go on with the same command: what is kept is not called again")
    elif result.ended == "call_limit":
        note("the limit of calls is used up; go on with the same command")


def _document(result: Result, plan: Plan, not_checked: dict[str, str]) -> dict[str, Any]:
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
