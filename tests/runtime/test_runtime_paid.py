"""Calls that cost money: consent of their own, by a person or by a rule that says PAID."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from toolsrv_registry.api import Api
from toolsrv_registry.storage.entries import Pricing, Terms, read_terms
from toolsrv_runtime.calls.caller import ApiOrigin, Caller, CallResult, Network
from toolsrv_runtime.calls.policy import Policy, parse_rules
from toolsrv_runtime.calls.recordings.callers import ReplayingCaller
from toolsrv_runtime.calls.recordings.storage import RecordingStore
from toolsrv_runtime.check.backends import live_backend

HOST = "api.example.com"


def api(method: str = "GET") -> Api:
    return Api(id="C/t/a", category="C", tool="t", name="a", method=method, url=f"https://{HOST}/a")


def home(pricing: Pricing) -> ApiOrigin:
    return ApiOrigin("theirs", terms=Terms(pricing=pricing))


def made(
    rules: str = "", pricing: Pricing = "PAID", method: str = "GET", *, yes: bool = False
) -> tuple[CallResult, list[str], Caller]:
    """Call, once more where a person says yes; return the result and the requests that were sent."""
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.method)
        return httpx.Response(200, stream=httpx.ByteStream(b'{"a": 1}'))

    caller = Caller(
        policy=Policy(rules=parse_rules(rules)),
        transports={},
        network=Network(transport=httpx.MockTransport(answer)),
        home=lambda _: home(pricing),
    )

    async def main() -> CallResult:
        result = await caller.call(api(method), {})
        if yes and result.consent is not None:
            result = await caller.call(api(method), {}, consent=result.consent)
        return result

    return asyncio.run(main()), sent, caller


@pytest.mark.parametrize("rules", ["", f"allow GET {HOST}", f"allow * {HOST}", "ask PAID"])
def test_a_paid_api_is_not_called_without_a_yes_of_its_own(rules: str) -> None:
    result, sent, caller = made(rules)
    assert (result.kind, sent) == ("needs_consent", [])
    assert "PAID" in result.error
    assert f"allow PAID {HOST}" in result.hint
    assert not caller.can_call(api())
    assert caller.can_call(api(), asks=True)
    assert caller.ready(api()).asks


def test_a_person_or_a_rule_may_allow_it() -> None:
    assert made(yes=True)[0].ok
    for rules in (f"allow PAID {HOST}", "allow PAID catalog:theirs", "allow PAID"):
        result, sent, caller = made(rules)
        assert (result.ok, sent) == (True, ["GET"])
        assert caller.can_call(api())


def test_a_rule_may_deny_it_whatever_a_person_says() -> None:
    result, sent, caller = made("deny PAID", yes=True)
    assert (result.kind, sent) == ("blocked_by_policy", [])
    assert not caller.can_call(api(), asks=True)


def test_one_question_covers_cost_and_change() -> None:
    result, _, _ = made(method="POST")
    assert result.consent is not None
    assert "costs money" in result.consent.reason
    assert "POST may change something" in result.consent.reason
    assert made("allow PAID", method="POST")[0].kind == "needs_consent"
    assert made("allow POST", method="POST")[0].kind == "needs_consent"
    assert made("allow POST, allow PAID", method="POST")[0].ok


@pytest.mark.parametrize("pricing", ["", "FREE", "FREEMIUM"])
def test_other_plans_need_no_consent(pricing: Pricing) -> None:
    assert made(pricing=pricing)[0].ok
    assert made("deny PAID", pricing=pricing)[0].ok


def test_a_replay_costs_nothing(tmp_path: Path) -> None:
    caller = ReplayingCaller(RecordingStore.open(tmp_path / "r.db"), home=lambda _: home("PAID"))
    assert asyncio.run(caller.call(api(), {})).kind == "replay_miss"


def test_a_check_spends_no_money() -> None:
    world = live_backend([api()], timeout=1.0, paid={"C/t/a"})
    assert "PAID" in world.refuses(api())
    asyncio.run(world.aclose())


def test_terms_are_read_leniently_and_never_trusted() -> None:
    score = {"avgServiceLevel": 99, "avgLatency": "786", "avgSuccessRate": 98.5}
    assert read_terms(" paid ", score) == Terms(
        pricing="PAID", service_percent=99, latency_ms=786, success_percent=98.5
    )
    for pricing, numbers in (("GRATIS", None), (3, [1]), (None, {"avgSuccessRate": float("nan")})):
        assert read_terms(pricing, numbers) == Terms()
    odd = {"avgSuccessRate": 101, "avgLatency": -1, "popularityScore": True}
    assert read_terms("FREE", odd) == Terms(pricing="FREE")
    assert read_terms("PAID", None).order > read_terms("", None).order
    better, worse = ({"avgSuccessRate": rate} for rate in (98, 30))
    assert read_terms("FREE", better).order < read_terms("FREE", worse).order
