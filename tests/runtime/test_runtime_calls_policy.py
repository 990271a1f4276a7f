"""Rules for calls: what they fit, which one decides, and what is no rule."""

from __future__ import annotations

import re

import pytest
from tests.live_calls import api

from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.policy import Policy, PolicyRule, parse_rules
from toolsrv_runtime.calls.request import build_request
from toolsrv_runtime.errors import PolicyError


def test_an_empty_text_is_no_rule() -> None:
    with pytest.raises(UsageError):
        PolicyRule.parse("")


@pytest.mark.parametrize("text", ["allow", "permit GET", "allow FETCH", "allow GET a b c", "x"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rules(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("rule", "address"),
    [
        ("deny * localhost:9011", "http://localhost:9011/x"),
        ("deny GET localhost:80", "http://localhost/x"),
        ("deny * LOCALHOST.:443", "https://localhost/x"),
        ("Deny get Api.Example.COM.", "https://api.example.com/x"),
        ("deny * api.example.com", "https://API.example.com:8443/x"),
        ("deny * ::1", "http://[::1]:8080/x"),
        ("deny * 93.184.216.34", "https://[::ffff:93.184.216.34]/x"),
        ("deny * 93.184.216.34:443", "https://[64:ff9b::5db8:d822]/x"),
        ("deny * [::ffff:127.0.0.1]", "http://127.0.0.1/x"),
        ("deny * [0:0::1]:8080", "http://[::1]:8080/x"),
        ("deny * münchen.example", "https://xn--mnchen-3ya.example/x"),
        ("deny * XN--mnchen-3ya.example", "https://münchen.example/x"),
        ("deny * api.münchen.example", "https://api.xn--mnchen-3ya.example/x"),
        ("deny * Catalog:NAS", "https://api.test/x"),
        ("deny * *", "https://api.test/x"),
    ],
)
def test_a_rule_fits_its_host_however_both_are_spelt(rule: str, address: str) -> None:
    target = api(address)
    policy = Policy(rules=parse_rules(rule))
    assert not policy.could_pass(target, "nas", asks=True)
    with pytest.raises(PolicyError, match="denied"):
        policy.check(target, build_request(target, {}), {}, catalog="nas")


def test_a_rule_with_a_port_holds_for_that_port_only() -> None:
    policy = Policy(rules=parse_rules("allow POST localhost:9011"))
    for address, asks in (("http://localhost:9011/x", False), ("http://localhost:9012/x", True)):
        target = api(address, method="POST")
        assert (policy.check(target, build_request(target, {}), {}) is not None) is asks


@pytest.mark.parametrize(
    ("place", "instead"),
    [
        ("http://localhost:9011/read?x", "localhost:9011"),
        ("HTTPS://me:pw@api.example.com", "api.example.com"),
        ("localhost/read", "HOST|host"),
        ("Other/nas/read", "catalog:NAME"),
        ("10.0.0.0/8", "each host"),
        ("fe80::/10", "each host"),
        ("*.example.com", "each host"),
        ("localhost:*", "each host"),
        ("catalog:", "catalog:NAME"),
        ("::1:80", r"\[::1\]:80"),
        ("2001:db8::8080", r"\[2001:db8::8080\]"),
        ("catalog:*", "catalog:NAME"),
        ("me@localhost", "localhost"),
        *(
            (one, "a host")
            for one in (
                "localhost:", "localhost:0", "localhost:70000", "localhost:http", ":80", "a..b",
                "127.1", "[localhost]", "[::1", "fe80::1%eth0", "localhost?x", "ａpi.test", "[]",
            )
        ),
    ],
)  # fmt: skip
def test_a_rule_that_no_call_can_fit_is_refused_with_what_to_write(
    place: str, instead: str
) -> None:
    for verdict in ("allow POST", "deny *", "ask GET"):
        with pytest.raises(UsageError, match="no call can fit") as caught:
            parse_rules(f"{verdict} {place}")
        assert re.search(instead, caught.value.hint)


def test_the_last_rule_that_fits_decides() -> None:
    rules = parse_rules("deny * catalog:c; allow POST api.test, ask GET other.test")
    assert rules[0] == PolicyRule("deny", "*", catalog="c")
    policy = Policy(rules=rules)

    def verdict(target: Api, catalog: str = "") -> str:
        try:
            wanted = policy.check(target, build_request(target, {}), {}, catalog=catalog)
        except PolicyError:
            return "deny"
        return "ask" if wanted else "allow"

    assert verdict(api()) == "allow"
    assert verdict(api(method="POST")) == "allow"
    assert verdict(api(method="DELETE")) == "ask"
    assert verdict(api("https://other.test/x")) == "ask"
    assert verdict(api("https://third.test/x"), "c") == "deny"
    assert verdict(api(method="POST"), "c") == "allow"
