"""Access tokens from one process to the next, and the values that a person fixed for a catalog."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from toolsrv_registry.api import Api, Parameter, SecurityScheme
from toolsrv_runtime.calls import credentials
from toolsrv_runtime.calls.authenticated import (
    EARLY_S,
    NAME_LIMIT,
    VALUE_LIMIT,
    AccessToken,
    FixedKind,
    FixedValues,
    TokenCache,
    fixed_fault,
)
from toolsrv_runtime.calls.caller import Caller, Network
from toolsrv_runtime.calls.credentials import ClientCredentials
from toolsrv_runtime.calls.exchange import CallLimits, Exchange, PreparedRequest
from toolsrv_runtime.calls.request import ADDRESS_LIMIT, OutgoingRequest, build_request
from toolsrv_runtime.errors import ArgumentError, CredentialsError

CLIENT = ClientCredentials(httpx.URL("https://login.test/token"), "api.test", "id:secret")
DAY_S = 86_400


class Keeper:
    """Keeps tokens in memory, with the time of day until which each is used."""

    def __init__(self, found: tuple[str, float] | None = None) -> None:
        self.found = found
        self.dropped: list[str] = []

    def find(self, client: ClientCredentials) -> tuple[str, float] | None:
        del client
        return self.found

    def keep(self, client: ClientCredentials, token: str, until: float) -> None:
        del client
        self.found = token, until

    def drop(self, client: ClientCredentials, token: str) -> None:
        del client
        self.dropped.append(token)


class TokenServer:
    """Answers each request for a token with a new one; its clocks are set by hand."""

    def __init__(self, keeper: Keeper | None = None, **answer: Any) -> None:
        self.now, self.day, self.asked = 1_000.0, 500_000.0, 0
        self.cache = TokenCache(keeper, clock=lambda: self.now, wall=lambda: self.day)
        self._answer = answer

    async def send(self, message: PreparedRequest) -> Exchange:
        assert message.url == CLIENT.url
        self.asked += 1
        return Exchange("ok", 200, {"access_token": f"new-{self.asked}"} | self._answer, "")

    def get(self) -> AccessToken | Exchange:
        return asyncio.run(self.cache.get(CLIENT, self.send))

    def text(self, later: float = 0) -> str:
        """Return the token that is used so many seconds from now."""
        self.now += later
        self.day += later
        got = self.get()
        assert isinstance(got, AccessToken)
        return got.text


def test_a_token_of_another_process_is_used_until_it_expires() -> None:
    server = TokenServer(Keeper(("kept", 500_600.0)))
    assert [server.text(), server.text(599)] == ["kept", "kept"]
    assert server.asked == 0
    server = TokenServer(keeper := Keeper(("kept", 500_000.0)), expires_in=3_600)
    assert server.text() == "new-1"
    assert keeper.found == ("new-1", 500_000.0 + 3_600 - EARLY_S)


@pytest.mark.parametrize("found", [("ä", 1e9), ("a b", 1e9), ("", 1e9), ("x" * 20_000, 1e9)])
def test_what_is_kept_and_no_token_is_not_used(found: tuple[str, float]) -> None:
    assert TokenServer(Keeper(found)).text() == "new-1"


def test_a_token_without_an_end_is_used_for_a_day() -> None:
    for server in (TokenServer(Keeper(("kept", 1e12))), TokenServer(expires_in=1e12)):
        first = server.text()
        assert server.text(DAY_S - EARLY_S - 1) == first
        server.cache._keeper = None
        assert server.text(EARLY_S + 2) == f"new-{server.asked}" != first


def test_a_token_of_a_short_life_is_used_for_half_of_it() -> None:
    server = TokenServer(expires_in=20)
    assert [server.text(), server.text(9), server.text(2)] == ["new-1", "new-1", "new-2"]


def test_a_refused_token_is_forgotten_here_and_where_it_is_kept() -> None:
    server = TokenServer(keeper := Keeper(("kept", 500_600.0)))
    assert server.text() == "kept"
    asyncio.run(server.cache.forget(CLIENT, AccessToken("older", 0)))
    assert server.text() == "kept"
    keeper.found = None
    asyncio.run(server.cache.forget(CLIENT, AccessToken("kept", 0)))
    assert server.text() == "new-1"
    assert keeper.dropped == ["older", "kept"]
    asyncio.run(TokenServer().cache.forget(CLIENT, AccessToken("kept", 0)))


@pytest.mark.parametrize("kind", ["Basic", "mac", None, 7])
def test_tokens_of_another_type_are_none(kind: Any) -> None:
    got = TokenServer(token_type=kind).get()
    assert isinstance(got, Exchange)
    assert (got.kind, got.status, got.response) == ("unauthorized", 0, None)
    assert repr(str(kind)) in got.error


def test_a_signed_call_has_its_whole_time_for_each_request() -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.2)
        said = b'{"access_token": "t"}' if request.url.path == "/token" else b"[1]"
        return httpx.Response(200, stream=httpx.ByteStream(said))

    async def run() -> Any:
        scheme = SecurityScheme(name="oa", kind="oauth2", token_url=str(CLIENT.url))
        api = Api(id="C/t/a", category="C", tool="t", name="a", url="https://api.test/x")
        network = Network(transport=httpx.MockTransport(answer), keys=lambda _: "id:secret")
        async with Caller(
            transports={}, network=network, limits=CallLimits(seconds=60, retries=0)
        ) as caller:
            return await caller.call(api.model_copy(update={"security": ((scheme,),)}), {})

    got = asyncio.run(run())
    assert (got.kind, got.response) == ("ok", [1])


def test_no_secret_is_in_what_a_log_shows_of_a_request() -> None:
    basic = SecurityScheme(name="bas", kind="http", scheme="basic")
    digest = SecurityScheme(name="dig", kind="http", scheme="digest")
    flow = SecurityScheme(name="oa", kind="oauth2", token_url=str(CLIENT.url))
    for scheme in (basic, digest, flow):
        target = api().model_copy(update={"security": ((scheme,),)})
        used = credentials._alternative(target, "api.test", lambda _: "id:s3cret")
        signed = credentials.authorize(target, build_request(target, {}), lambda _: "id:s3cret")
        for shown in (repr(used), repr(signed), repr(signed.client)):
            assert "s3cret" not in shown


def api(*parameters: Parameter, url: str = "https://api.test/x", method: str = "GET") -> Api:
    return Api(id="C/t/a", category="C", tool="t", name="a", url=url, method=method,
               required=parameters[:1], optional=parameters[1:])  # fmt: skip


TENANT = Parameter(name="X-Tenant", place="header")
UNITS = Parameter(name="units", place="query", json_schema={"type": "string"})
COUNT = Parameter(name="count", place="query", json_schema={"type": "integer"})
CITY = Parameter(name="city", place="query")
FIXED = FixedValues({"x-tenant": "acme"}, {"units": "metric", "count": "5"})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"units": "metric"},
        {"X-Tenant": "acme", "count": 5},
        {"x_tenant": "acme", "count": "5"},
    ],
)
def test_fixed_parameters_are_not_offered_and_may_be_given_as_they_are(
    given: Mapping[str, Any],
) -> None:
    shown, left = FIXED.split(api(TENANT, UNITS, COUNT, CITY), {"city": "Lima", **given})
    assert (shown.required, shown.optional) == ((), (CITY,))
    assert left == {"city": "Lima"}


@pytest.mark.parametrize(
    ("name", "value"), [("units", "imperial"), ("x_tenant", "other"), ("count", 6), ("units", None)]
)
def test_a_fixed_parameter_takes_no_other_value(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=f"'{name}' is fixed") as caught:
        FIXED.split(api(TENANT, UNITS, COUNT, CITY), {"city": "Lima", name: value})
    assert "leave it out" in caught.value.hint


@pytest.mark.parametrize(
    ("place", "method", "url", "fixed"),
    [
        ("query", "POST", "https://api.test/x", True),
        ("", "GET", "https://api.test/x", True),
        ("", "delete", "https://api.test/x", True),
        ("", "POST", "https://api.test/x", False),
        ("", "GET", "https://api.test/{units}", False),
        ("path", "GET", "https://api.test/{units}", False),
        ("body", "POST", "https://api.test/x", False),
        ("header", "GET", "https://api.test/x", False),
    ],
)
def test_a_value_of_the_query_is_fixed_for_parameters_of_the_query(
    place: Any, method: str, url: str, fixed: bool
) -> None:
    target = api(Parameter(name="units", place=place), url=url, method=method)
    shown, left = FIXED.split(target, {"units": "metric"})
    assert (shown.required == (), left == {}) == (fixed, fixed)


def test_fixed_values_are_sent_in_place_of_others() -> None:
    url = httpx.URL("https://api.test/x?units=k&a=1")
    sent = FIXED.added(api(), OutgoingRequest("GET", url, {"X-TENANT": "none", "Accept": "*/*"}))
    assert sent.headers == {"Accept": "*/*", "x-tenant": "acme"}
    assert sent.url == httpx.URL("https://api.test/x?a=1&units=metric&count=5")
    long = httpx.URL(f"https://api.test/x?a={'1' * (ADDRESS_LIMIT - 30)}")
    with pytest.raises(ArgumentError):
        FIXED.added(api(), OutgoingRequest("GET", long))


@pytest.mark.parametrize(
    ("kind", "name", "value", "said"),
    [
        ("query", "q" * NAME_LIMIT, "v" * VALUE_LIMIT, ""),
        ("query", "the key[]", "ü", ""),
        ("header", "X-Tenant", "a b", ""),
        ("query", "", "v", "no name"),
        ("query", "q" * (NAME_LIMIT + 1), "v", "no name"),
        ("query", "a\nb", "v", "no name"),
        ("query", "q", "", "empty"),
        ("query", "q", "v" * (VALUE_LIMIT + 1), "too long"),
        ("query", "q", "a\nb", "line end"),
        ("header", "X Tenant", "v", "no name of a header"),
        ("header", "Authorization", "v", "toolsrv keys set"),
        ("header", "Host", "v", "connection"),
        ("header", "Proxy-Extra", "v", "connection"),
        ("header", "Content-Type", "v", "body"),
        ("header", "X-Tenant", "ü", "unaccented"),
    ],
)
def test_what_can_be_fixed_and_what_cannot(
    kind: FixedKind, name: str, value: str, said: str
) -> None:
    fault = fixed_fault(kind, name, value)
    assert said in fault
    assert bool(fault) == bool(said)


@pytest.mark.parametrize(
    ("scheme", "said", "hint"),
    [
        (
            SecurityScheme(name="oa", kind="oauth2", token_url="https://api.test/token"),
            "OAuth 2 client credentials CLIENT_ID:CLIENT_SECRET, or a bearer token",
            "get it from the provider and set it: toolsrv keys set api.test",
        ),
        (
            SecurityScheme(name="oa", kind="oauth2"),
            "a bearer token",
            "get it from the provider and set it: toolsrv keys set api.test",
        ),
        (
            SecurityScheme(name="dig", kind="http", scheme="digest"),
            "digest USER:PASSWORD",
            "set it: toolsrv keys set api.test",
        ),
    ],
)
def test_credentials_that_are_not_set_are_named_with_where_to_get_and_set_them(
    scheme: SecurityScheme, said: str, hint: str
) -> None:
    target = api().model_copy(update={"security": ((scheme,),)})
    with pytest.raises(CredentialsError) as caught:
        credentials.authorize(target, build_request(target, {}), lambda _: "")
    assert caught.value.message == f"C/t/a needs {said} and has none; nothing was sent"
    assert caught.value.hint == hint
