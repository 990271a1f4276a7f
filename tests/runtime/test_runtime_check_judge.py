"""The quality filter's decisions: what a reply means, which arguments are used, how fast to go."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.storage.health import HealthStatus
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.rate_limits import RateLimiter, pause_seconds
from toolsrv_runtime.check.checker import CheckProgress
from toolsrv_runtime.check.plan import name_placeholders, sample_arguments
from toolsrv_runtime.check.replies import SLOW_SECONDS, judge
from toolsrv_runtime.errors import ArgumentError

JSON_TYPE = {"content-type": "application/json"}


def api(name: str, host: str = "one.test", path: str | None = None, **parts: Any) -> Api:
    url = f"https://{host}/{name if path is None else path}"
    return Api(
        **{"id": f"C/t/{name}", "category": "C", "tool": "t", "name": name, "url": url} | parts
    )


# --- judging --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, {"temperature": 21}, "ok"),
        (200, [1, 2], "ok"),
        (200, 7, "ok"),
        (200, False, "ok"),
        (200, {"message": "pong"}, "ok"),
        (200, {"error": None, "data": {"a": 1}}, "ok"),
        (200, {"error": "partial failure", "data": {"a": 1}}, "ok"),
        (200, {"status": "error", "results": [1]}, "ok"),
        (200, {"title": "Error handling in Go", "price": 12}, "ok"),
        (200, [{"error": "x"}, {"error": "y"}], "ok"),
        (204, "", "empty"),
        (200, " \n", "empty"),
        (200, None, "no_data"),
        (200, [], "no_data"),
        (200, {}, "no_data"),
        (200, "<!DOCTYPE html><html>", "html"),
        (200, "\n <HTML lang='en'>", "html"),
        (200, "plain words", "not_json"),
        (200, "<rss><channel/></rss>", "not_json"),
        (200, {"error": "boom"}, "error_text"),
        (200, {"error": {"code": 7, "message": "boom"}}, "error_text"),
        (200, {"errors": ["boom"], "data": None}, "error_text"),
        (200, {"message": "Endpoint '/x' does not exist"}, "error_text"),
        (200, {"success": False, "message": "no"}, "error_text"),
        (200, {"status": "fail", "code": 3}, "error_text"),
        (200, [{"msg": "player not found"}], "error_text"),
        (200, "Internal error, try later", "error_text"),
        (200, {"message": "You are not subscribed to this API."}, "not_subscribed"),
        (200, {"message": "Too many requests"}, "rate_limited"),
        (200, {"message": "Invalid API key. Go to the docs."}, "unauthorized"),
        (200, {"error": "Unauthorized"}, "unauthorized"),
        (301, "", "http_error"),
        (404, {"message": "gone"}, "http_error"),
        (500, {"message": "rate limit of the database"}, "http_error"),
        (503, "<html>busy</html>", "http_error"),
        (400, {"message": "city is required"}, "bad_request"),
        (422, None, "bad_request"),
        (401, {"message": "no"}, "unauthorized"),
        (403, {"message": "You are not subscribed to this API."}, "not_subscribed"),
        (403, {"message": "You have exceeded the MONTHLY quota"}, "rate_limited"),
        (403, "<html>Forbidden</html>", "unauthorized"),
        (402, "", "not_subscribed"),
        (408, "", "timed_out"),
        (429, "", "rate_limited"),
        (0, None, "broken"),
        (999, {"a": 1}, "broken"),
    ],
)
def test_a_reply_has_one_meaning(status: int, body: Any, verdict: str) -> None:
    assert judge(status, 0.1, {}, body) == verdict


@pytest.mark.parametrize("failure", ["timed_out", "unreachable", "broken"])
def test_no_reply_is_judged_by_why(failure: Any) -> None:
    assert judge(0, 3.0, {}, None, failure=failure) == failure


def test_a_good_reply_that_takes_too_long_is_slow() -> None:
    assert judge(200, SLOW_SECONDS + 0.1, {}, {"a": 1}) is HealthStatus.SLOW
    assert judge(200, SLOW_SECONDS, {}, {"a": 1}) is HealthStatus.OK
    assert judge(200, SLOW_SECONDS + 0.1, {}, "") is HealthStatus.EMPTY


def test_a_reply_to_head_needs_no_body() -> None:
    assert judge(200, 0.1, {}, "", method="head") is HealthStatus.OK


def test_the_content_type_tells_a_json_string_and_an_html_fragment() -> None:
    assert judge(200, 0.1, JSON_TYPE, "Lima") is HealthStatus.OK
    assert judge(200, 0.1, {"content-type": "text/html"}, "<div>x</div>") is HealthStatus.HTML


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20)
    | st.sampled_from(["error", "not found", "Too many requests", "<html>", "fail"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["error", "message", "status", "success", "data", "x"])
        | st.text(max_size=4),
        inner,
        max_size=4,
    ),
    max_leaves=10,
)  # fmt: skip


@given(
    st.integers(-5, 1000),
    st.floats(),
    st.dictionaries(st.sampled_from(["content-type", "retry-after"]), st.text(max_size=30)),
    JSON,
)
def test_any_reply_gets_the_same_verdict_twice(
    status: int, latency: float, headers: dict[str, str], body: Any
) -> None:
    first = judge(status, latency, headers, body)
    assert judge(status, latency, headers, body) is first
    assert first.standing(status) in {"alive", "dead", "unknown"}


@given(st.text(max_size=300))
def test_any_text_is_judged(text: str) -> None:
    assert judge(200, 0.1, {}, text) in HealthStatus


def test_a_huge_hostile_text_is_judged_quickly() -> None:
    for text in ("<" * 900_000, "invalid " * 100_000, "no " + " " * 900_000 + "key", "a" * 900_000):
        assert judge(200, 0.1, {}, text) is HealthStatus.NOT_JSON
        assert judge(403, 0.1, {}, text) in HealthStatus


def test_a_guessed_argument_takes_the_blame_for_what_it_may_have_caused() -> None:
    assert HealthStatus.HTTP_ERROR.standing(404) == "dead"
    assert HealthStatus.HTTP_ERROR.standing(404, guessed=True) == "unknown"
    assert HealthStatus.HTTP_ERROR.standing(503, guessed=True) == "dead"
    assert HealthStatus.HTML.standing(200, guessed=True) == "dead"
    assert HealthStatus.RATE_LIMITED.standing(429) == "unknown"


# --- arguments ------------------------------------------------------------------------------------


def value_of(parameter: Parameter) -> Any:
    return sample_arguments(api("x", required=(parameter,))).values.get(parameter.key)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (Parameter(name="a", default="Oslo"), "Oslo"),
        (Parameter(name="a", type="NUMBER", default=0), 0),
        (Parameter(name="a", type="BOOLEAN", default=False), False),
        (Parameter(name="a", default="<REQUIRED>"), None),
        (Parameter(name="a", default="  "), None),
        (Parameter(name="a", enum=("red", "blue")), "red"),
        (Parameter(name="a", description="IATA code, e.g. `OSL`"), "OSL"),
        (Parameter(name="a", description="A date (e.g. 2018-03-17)"), "2018-03-17"),
        (Parameter(name="a", description="Example: Caballito."), "Caballito"),
        (Parameter(name="a", description="the id, e.g. as returned by search"), None),
        (Parameter(name="a", description="Extracted from the exchange"), None),
        (Parameter(name="a", type="NUMBER", description="Ex: abc"), None),
        (Parameter(name="a", type="BOOLEAN"), True),
        (Parameter(name="a", type="DATE (YYYY-MM-DD)"), "2024-06-14"),
        (Parameter(name="page", type="NUMBER"), 1),
        (Parameter(name="city"), "London"),
        (Parameter(name="city", type="NUMBER"), None),
        (Parameter(name="id", type="NUMBER"), None),
        (Parameter(name="apiKey", description="e.g. `abc123`"), None),
        (Parameter(name="password", type="DATE (YYYY-MM-DD)"), None),
    ],
)
def test_values_come_from_the_catalog_or_are_plain_samples(
    parameter: Parameter, value: Any
) -> None:
    assert value_of(parameter) == value


def test_only_the_providers_own_values_are_no_guess() -> None:
    given_ = sample_arguments(api("x", required=(Parameter(name="city", default="Oslo"),)))
    guessed = sample_arguments(api("x", required=(Parameter(name="city"),)))
    assert (given_.guessed, guessed.guessed) == (False, True)


def test_optional_parameters_are_left_out_unless_the_path_needs_them() -> None:
    optional = (Parameter(name="a", default="1"), Parameter(name="b", default="2"))
    found = sample_arguments(api("x", path="v1/{a}", optional=optional))
    assert found.values == {"a": "1"}


def test_placeholders_may_be_written_as_keys() -> None:
    target = name_placeholders(api("x", path="v1/{is_id}/{Team}", required=(Parameter(name="id"),)))
    assert target.url.endswith("/v1/{id}/{Team}")


PARAMETERS = st.builds(
    Parameter,
    name=st.sampled_from(["id", "city", "page", "lat", "q", "x"]) | st.text(min_size=1, max_size=8),
    type=st.sampled_from(["STRING", "NUMBER", "BOOLEAN", "DATE (YYYY-MM-DD)", "ENUM", "ARRAY"]),
    description=st.text(max_size=60) | st.sampled_from(["e.g. `7`", "Example: 12", "ex. x"]),
    default=JSON,
)


@given(st.lists(PARAMETERS, max_size=4))
def test_sampled_arguments_bind_or_are_refused_in_our_own_words(
    parameters: list[Parameter],
) -> None:
    target = api("x", required=tuple(parameters))
    found = sample_arguments(target)
    if not found.missing:
        try:
            args.bind(target, found.values)
        except ArgumentError:
            return


# --- pace -----------------------------------------------------------------------------------------


@given(st.floats(0.1, 100), st.lists(st.floats(0, 5), min_size=2, max_size=20))
def test_a_host_is_never_ready_before_its_interval(rate: float, waits: list[float]) -> None:
    pace, now, calls = RateLimiter(rate), 0.0, []
    for wait in waits:
        now = max(now + wait, pace.ready("h"))
        pace.called("h", now)
        calls.append(now)
    assert all(later - earlier >= 1 / rate - 1e-9 for earlier, later in pairwise(calls))
    assert pace.ready("other") == 0


@pytest.mark.parametrize(
    ("asked", "tries", "seconds"),
    [
        ("7", 0, 7),
        ("Fri, 20 Nov 2026 12:00:30 GMT", 0, 30),
        ("Fri, 20 Nov 2026 11:00:00 GMT", 0, 0),
        ("soon", 1, 4),
        ("-3", 0, 2),
        ("", 0, 2),
        ("", 2, 8),
        ("9" * 400, 0, 999_999_999),
    ],
)
def test_a_host_is_left_alone_as_long_as_it_asks(asked: str, tries: int, seconds: float) -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert pause_seconds({"retry-after": asked}, tries, now) == seconds


@given(st.text(max_size=40), st.integers(0, 10_000))
def test_any_retry_after_gives_a_time(asked: str, tries: int) -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert pause_seconds({"retry-after": asked}, tries, now) >= 0


def test_the_time_left_follows_the_slower_of_speed_and_busiest_host() -> None:
    assert CheckProgress(100, done=10, seconds=5.0).left_s == 45
    assert CheckProgress(100, done=10, seconds=5.0, busiest=80, interval=1.0).left_s == 80
    assert CheckProgress(100).left_s is None
