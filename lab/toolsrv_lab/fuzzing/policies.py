"""Targets about what may be called: the policy, and the rules that a person writes."""

from __future__ import annotations

from typing import Any

import httpx
from hypothesis import strategies as st

from toolsrv_lab.fuzzing.strategies import METHODS, NASTY, SCALARS, TEXTS
from toolsrv_lab.fuzzing.target import Target, hold
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.policy import READ_METHODS, Policy, PolicyRule, consent_for
from toolsrv_runtime.calls.request import OutgoingRequest
from toolsrv_runtime.errors import PolicyError


def _check_policy(case: Any) -> None:
    api = Api(id="C/t/a", category="C", tool="t", name="a", url="https://api.test/x")
    url = httpx.URL(case["url"]) if case["url"] else httpx.URL(api.url)
    out = OutgoingRequest(case["method"], url)
    rules = tuple(PolicyRule.parse(" ".join(one)) for one in case["rules"])
    consent = consent_for(api, out, case["arguments"], "") if case["consent"] else None
    try:
        asked = Policy(rules=rules).check(
            api, out, case["arguments"], tainted=case["tainted"], consent=consent
        )
    except PolicyError:
        return
    hold(case["url"] in {"", api.url}, "another address is refused", case["url"])
    fit = [one.verdict for one in rules if one.fits(case["method"], "api.test", "")]
    hold(not fit or fit[-1] != "deny", "what is denied is refused", rules)
    if asked is None and consent is None:
        reading = case["method"] in READ_METHODS
        allowed = fit[-1] == "allow" if fit else reading
        hold(allowed, "only what is allowed passes without a question", case["method"], rules)
        hold(reading or not case["tainted"], "no rule stands in for consent in a tainted run")


def _check_rule(case: Any) -> None:
    try:
        rule = PolicyRule.parse(case)
    except UsageError:
        return
    hold(rule.verdict in {"allow", "ask", "deny"}, "a rule has a verdict", rule)


_METHODS = st.sampled_from(METHODS)
_RULES = st.tuples(
    st.sampled_from(["allow", "ask", "deny"]),
    _METHODS | st.just("*"),
    st.sampled_from(["", "api.test", "evil.test", "catalog:x"]),
).map(list)
_ARGUMENTS = st.dictionaries(TEXTS, SCALARS, max_size=2)

TARGETS = (
    Target(
        "policy",
        "what passes without a person",
        st.fixed_dictionaries(
            {
                "method": _METHODS,
                "url": st.sampled_from(
                    ["", "https://evil.test/x", "http://api.test/x", "https://a@api.test/x"]
                ),
                "rules": st.lists(_RULES, max_size=4),
                "arguments": _ARGUMENTS,
                "tainted": st.booleans(),
                "consent": st.booleans(),
            }
        ),
        _check_policy,
    ),
    Target(
        "rules",
        "rules for calls as text",
        st.lists(st.sampled_from([*NASTY, "allow", "ask", "deny", "GET", "*", "get"])).map(
            " ".join
        ),
        _check_rule,
        known=("",),
    ),
)
