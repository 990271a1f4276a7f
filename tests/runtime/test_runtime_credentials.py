"""Credentials of live calls, against servers on loopback that check them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests import login_host
from tests.live_calls import loopback

from toolsrv_registry.api import Api, Parameter, SecurityScheme
from toolsrv_runtime.calls import credentials
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.calls.authenticated import AccessToken, TokenCache
from toolsrv_runtime.calls.caller import ApiOrigin, Caller, CallResult, Network
from toolsrv_runtime.calls.credentials import (
    ClientCredentials,
    authorize,
    has_credentials,
    key_names,
    missing_credentials,
)
from toolsrv_runtime.calls.exchange import CallLimits, exchange
from toolsrv_runtime.calls.policy import Policy, parse_rules
from toolsrv_runtime.calls.rate_limits import CallUsage, DailyLimits, HostLimiter, HostLimits
from toolsrv_runtime.calls.recordings.callers import RecordingCaller
from toolsrv_runtime.calls.recordings.storage import RECORDINGS_FILE, RecordingStore
from toolsrv_runtime.calls.request import build_request
from toolsrv_runtime.calls.result import CallReadiness
from toolsrv_runtime.calls.transports import Connections
from toolsrv_runtime.errors import CredentialsError

CLIENT = f"{login_host.CLIENT}:{login_host.SECRET}"
LOGIN = f"{login_host.USER}:{login_host.PASSWORD}"
LIMITS = CallLimits(seconds=8, connect_s=4, read_s=4)

DIGEST = SecurityScheme(name="dig", kind="http", scheme="digest")
HMAC = SecurityScheme(name="hm", kind="http", scheme="hmac")
BASIC = SecurityScheme(name="bas", kind="http", scheme="basic")
BEARER = SecurityScheme(name="bea", kind="http", scheme="bearer")
HEADER = SecurityScheme(name="head", kind="apiKey", place="header", key="X-Key")
QUERY = SecurityScheme(name="quer", kind="apiKey", place="query", key="the key[]")
COOKIE = SecurityScheme(name="cook", kind="apiKey", place="cookie", key="sid")
OPEN_ID = SecurityScheme(name="oid", kind="openIdConnect")
LOGIN_FLOW = SecurityScheme(name="flow", kind="oauth2")
MUTUAL = SecurityScheme(name="mut", kind="mutualTLS")
UNKNOWN = SecurityScheme(name="lost", kind="unknown")
IN_HOST = SecurityScheme(name="hosted", kind="apiKey", place="header", key="Host")


@pytest.fixture
def host() -> Iterator[Any]:
    with login_host.LoginHost() as one:
        yield one


def api(url: str = "https://api.test/x", *groups: tuple[SecurityScheme, ...], **more: Any) -> Api:
    return Api(
        id="C/t/a", category="C", tool="t", name="a", url=url, security=tuple(groups), **more
    )


def client(host: Any, name: str = "127.0.0.1", **more: Any) -> SecurityScheme:
    return SecurityScheme(name="oa", kind="oauth2", token_url=host.url("token", name), **more)


def network(keys: dict[str, str]) -> Network:
    addresses = AddressResolver(own={"127.0.0.1", "localhost", "token.test"}, resolve=loopback)
    return Network(
        transport=Connections(addresses),
        keys=lambda name: keys.get(name, ""),
        hosts=HostLimiter(HostLimits(rate=0)),
        own=addresses.allows_any,
    )


def calls(
    keys: dict[str, str], *targets: Api, between: Callable[[], None] = lambda: None, **more: Any
) -> list[CallResult]:
    async def run() -> list[CallResult]:
        got = []
        async with Caller(transports={}, limits=LIMITS, network=network(keys), **more) as caller:
            for target in targets:
                got.append(await caller.call(target, {}))
                between()
        return got

    return asyncio.run(run())


# --- digest ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
def test_a_digest_challenge_is_answered_and_the_next_call_needs_none(
    host: Any, algorithm: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    host.algorithm = algorithm
    target = api(host.url("digest?q=1"), (DIGEST,))
    first, second = calls({"127.0.0.1": LOGIN}, target, target)
    assert (first.kind, second.kind, first.error) == ("ok", "ok", "")
    assert first.response["in"] is True
    assert len(host.requests) == 3
    for text in (first.model_dump_json(), caplog.text):
        assert "word-7" not in text


def test_a_body_arrives_behind_a_challenge_and_a_stale_nonce_is_renewed(host: Any) -> None:
    target = api(
        host.url("digest"), (DIGEST,), method="POST", optional=(Parameter(name="v", default=""),)
    )

    async def run() -> list[CallResult]:
        rules = Policy(rules=parse_rules("allow * 127.0.0.1"))
        net = network({"127.0.0.1/dig": LOGIN})
        async with Caller(transports={}, limits=LIMITS, network=net, policy=rules) as caller:
            one = await caller.call(target, {"v": "x"})
            host.nonce = "n1"
            return [one, await caller.call(target, {"v": "y"})]

    one, two = asyncio.run(run())
    assert (one.response["got"], two.response["got"]) == ('{"v":"x"}', '{"v":"y"}')
    assert len(host.requests) == 4


def test_a_wrong_password_and_an_odd_challenge_are_unauthorized(host: Any) -> None:
    wrong, odd = calls(
        {"127.0.0.1": "ann:wrong"},
        api(host.url("digest"), (DIGEST,)),
        api(host.url("odd"), (DIGEST,)),
    )
    assert (wrong.kind, wrong.status) == ("unauthorized", 401)
    assert (odd.kind, odd.status) == ("unauthorized", 401)
    assert "challenge" in odd.error
    assert "toolsrv keys set 127.0.0.1" in odd.hint


# --- OAuth 2 client credentials -------------------------------------------------------------------


@pytest.mark.parametrize("in_body", [False, True])
def test_a_token_is_fetched_once_sent_as_a_bearer_and_never_shown(
    host: Any, in_body: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    host.in_body = in_body
    target = api(host.url("data"), (client(host, scopes=("read", "all")),))
    first, second = calls({"127.0.0.1": CLIENT}, target, target)
    assert (first.kind, second.kind) == ("ok", "ok")
    assert host.paths() == [*["/token"] * (2 if in_body else 1), "/data", "/data"]
    assert "scope=read+all" in host.requests[0][3]
    for text in (first.model_dump_json(), second.model_dump_json(), caplog.text, repr(first)):
        assert "abcdefgh" not in text
        assert "cret" not in text


def test_a_token_that_the_host_refuses_is_fetched_anew_once(host: Any) -> None:
    target = api(host.url("data"), (client(host),))
    got = calls({"127.0.0.1": CLIENT}, target, target, between=host.revoke)
    assert [one.kind for one in got] == ["ok", "ok"]
    assert host.paths() == ["/token", "/data", "/data", "/token", "/data"]


def test_a_fresh_token_that_is_refused_is_the_end(host: Any) -> None:
    host.new_token = lambda: "token-never-valid"
    (got,) = calls({"127.0.0.1": CLIENT}, api(host.url("data"), (client(host),)))
    assert (got.kind, got.status) == ("unauthorized", 401)
    assert host.paths() == ["/token", "/data"]


@pytest.mark.parametrize(("life", "fetched"), [(0, 2), (-5, 2), ("3600", 1), (None, 1), (1e400, 1)])
def test_a_token_is_kept_as_long_as_its_server_says(host: Any, life: Any, fetched: int) -> None:
    host.expires_in = life
    target = api(host.url("data"), (client(host),))
    assert [one.kind for one in calls({"127.0.0.1": CLIENT}, target, target)] == ["ok", "ok"]
    assert host.paths().count("/token") == fetched


def test_a_token_expires_with_the_clock(host: Any) -> None:
    now = [1_000.0]
    url = httpx.URL(host.url("token"))
    wanted = ClientCredentials(url, "127.0.0.1", CLIENT)

    async def run() -> list[bool]:
        tokens = TokenCache(clock=lambda: now[0])
        transport = network({}).transport
        fresh = []
        for wait in (0.0, 3_560.0, 20.0):
            now[0] += wait
            got = await tokens.get(wanted, lambda message: exchange(transport, message, LIMITS))
            assert isinstance(got, AccessToken)
            fresh.append(got.fresh)
        await transport.aclose()
        return fresh

    assert asyncio.run(run()) == [True, False, True]
    assert host.paths() == ["/token", "/token"]


def test_calls_at_once_share_one_token(host: Any) -> None:
    target = api(host.url("data"), (client(host),))

    async def run() -> list[CallResult]:
        net = network({"127.0.0.1": CLIENT})
        async with Caller(transports={}, limits=LIMITS, network=net) as caller:
            return await asyncio.gather(*(caller.call(target, {}) for _ in range(4)))

    assert [one.kind for one in asyncio.run(run())] == ["ok"] * 4
    assert host.paths().count("/token") == 1


def test_a_key_without_a_colon_is_a_token_itself(host: Any) -> None:
    token = host.new_token()
    (got,) = calls({"127.0.0.1": token}, api(host.url("data"), (client(host),)))
    assert got.ok
    assert host.paths() == ["/data"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"access_token": ""}, "no access token"),
        ({"access_token": "a\nb"}, "no access token"),
        ({"access_token": ["x"]}, "no access token"),
        ({"token_type": "mac"}, "mac"),
    ],
)
def test_an_answer_without_a_usable_token_ends_the_call(
    host: Any, answer: dict[str, Any], said: str
) -> None:
    host.answer = answer
    (got,) = calls({"127.0.0.1": CLIENT}, api(host.url("data"), (client(host),)))
    assert got.kind == "unauthorized"
    assert said in got.error
    assert host.paths() == ["/token"]


def test_refused_client_credentials_are_named_and_not_shown(host: Any) -> None:
    (got,) = calls({"127.0.0.1": "client:wrong-secret"}, api(host.url("data"), (client(host),)))
    assert (got.kind, got.status) == ("unauthorized", 401)
    assert "invalid_client" in got.error
    assert "wrong-secret" not in got.model_dump_json()
    assert host.paths() == ["/token", "/token"]
    assert "toolsrv keys set 127.0.0.1" in got.hint


def test_client_credentials_go_to_no_host_that_their_name_does_not_say(host: Any) -> None:
    """A document that names another token server gets neither the secret nor a token."""
    target = api(host.url("data"), (client(host, "localhost"),))
    for name in ("127.0.0.1", "127.0.0.1/oa", "localhost", "localhost@127.0.0.1"):
        (got,) = calls({name: CLIENT}, target)
        assert (got.kind, got.status) == ("unauthorized", 0)
        assert "toolsrv keys set 127.0.0.1@localhost" in got.hint
    assert host.requests == []
    (got,) = calls({"127.0.0.1@localhost": CLIENT}, target)
    assert got.ok
    assert host.paths() == ["/token", "/data"]


def test_a_token_is_not_fetched_in_clear_or_at_a_private_or_denied_address(host: Any) -> None:
    keys = {"127.0.0.1@other.test": CLIENT, "127.0.0.1@localhost": CLIENT}
    (clear,) = calls(keys, api(host.url("data"), (client(host, "other.test"),)))
    assert (clear.kind, clear.status) == ("unauthorized", 0)
    assert "unencrypted" in clear.error
    private = client(host, "other.test").model_copy(
        update={"token_url": f"https://other.test:{host.port}/token"}
    )
    (refused,) = calls(keys, api(host.url("data"), (private,)))
    assert refused.kind == "blocked_by_policy"
    (denied,) = calls(
        keys,
        api(host.url("data"), (client(host, "localhost"),)),
        policy=Policy(rules=parse_rules("deny * localhost")),
    )
    assert "your settings deny" in denied.error
    assert host.requests == []


# --- what is chosen, and what is refused ----------------------------------------------------------


@pytest.mark.parametrize("scheme", [HMAC, MUTUAL, UNKNOWN, IN_HOST])
def test_what_is_not_supported_is_refused_before_anything_is_sent(
    host: Any, scheme: SecurityScheme
) -> None:
    (got,) = calls({"127.0.0.1": CLIENT}, api(host.url("echo"), (scheme,), (HEADER, scheme)))
    assert (got.kind, got.status, got.response) == ("unauthorized", 0, None)
    assert "not supported" in got.error
    assert got.hint
    assert host.requests == []


@pytest.mark.parametrize("scheme", [DIGEST, OPEN_ID, LOGIN_FLOW])
def test_what_needs_a_key_that_is_not_set_is_refused_with_the_command(
    host: Any, scheme: SecurityScheme
) -> None:
    (got,) = calls({}, api(host.url("echo"), (scheme,)))
    assert (got.kind, got.status) == ("unauthorized", 0)
    assert "toolsrv keys set 127.0.0.1" in got.hint
    assert host.requests == []


def test_a_token_of_any_flow_is_sent_as_a_bearer(host: Any) -> None:
    token = host.new_token()
    got = calls(
        {"127.0.0.1": token}, *(api(host.url("data"), (one,)) for one in (OPEN_ID, LOGIN_FLOW))
    )
    assert [one.kind for one in got] == ["ok", "ok"]


def test_a_call_without_the_key_that_its_document_names_says_so(host: Any) -> None:
    (got,) = calls({}, api(host.url("echo"), (HEADER,)))
    assert got.ok
    assert got.hint == "sent without the key that it asks for: toolsrv keys set 127.0.0.1"


def test_all_keys_of_a_group_go_out_or_none(host: Any) -> None:
    target = api(host.url("echo"), (HEADER, QUERY, COOKIE, BASIC))
    some = {"127.0.0.1/head": "KEY-ONE", "127.0.0.1/quer": "KEY TWO"}
    (part,) = calls(some, target)
    assert (part.kind, part.status) == ("unauthorized", 0)
    assert "127.0.0.1/cook" in part.hint
    assert "127.0.0.1/bas" in part.hint
    assert host.requests == []
    (got,) = calls({**some, "127.0.0.1/cook": "KEY3", "127.0.0.1": "ann:pw"}, target)
    assert got.ok
    (_, path, headers, _) = host.requests[0]
    assert headers["X-Key"] == "KEY-ONE"
    assert headers["Cookie"] == "sid=KEY3"
    assert headers["Authorization"] == "Basic YW5uOnB3"
    assert path == "/echo?the%20key%5B%5D=KEY%20TWO"


def test_one_key_of_a_host_is_not_sent_in_two_places() -> None:
    target = api("https://api.test/x", (HEADER, QUERY))
    assert not has_credentials(target, "api.test", {"api.test": "K"}.get)  # type: ignore[arg-type]


def test_the_first_alternative_that_is_there_is_taken_and_none_comes_last(host: Any) -> None:
    target = api(host.url("echo"), (), (HMAC,), (HEADER, BEARER), (COOKIE,))
    free, cookie = calls({}, target)[0], calls({"127.0.0.1": "C"}, target)[0]
    assert (free.ok, free.hint) == (True, "")
    assert cookie.ok
    assert "Cookie" not in host.requests[0][2]
    assert host.requests[1][2]["Cookie"] == "sid=C"


def test_two_schemes_of_one_header_are_refused() -> None:
    target = api("https://api.test/x", (BASIC, BEARER))
    keys = {"api.test/bas": "a:b", "api.test/bea": "t"}
    with pytest.raises(CredentialsError, match="together"):
        authorize(target, build_request(target, {}), lambda name: keys.get(name, ""))


def test_no_credential_leaves_over_unencrypted_http() -> None:
    target = api("http://api.test/x", (BEARER,))
    with pytest.raises(CredentialsError, match="unencrypted"):
        authorize(target, build_request(target, {}), lambda _: "token")


def test_a_user_without_a_password_is_a_whole_basic_login() -> None:
    target = api("https://api.test/x", (BASIC,))
    got = authorize(target, build_request(target, {}), lambda _: "sk_live")
    assert got.headers["Authorization"] == "Basic c2tfbGl2ZTo="


def test_a_key_takes_the_place_of_a_header_in_any_spelling() -> None:
    target = api(
        "https://api.test/x", (HEADER,), required=(Parameter(name="x-key", place="header"),)
    )
    got = authorize(target, build_request(target, {"x-key": "theirs"}), lambda _: "mine")
    assert got.headers == {"X-Key": "mine"}


def test_what_a_call_lacks_is_said_with_the_command(host: Any) -> None:
    def none(name: str) -> str:
        del name
        return ""

    one = api("https://api.test/x", (BEARER,))
    assert (
        missing_credentials(one, "api.test", none)
        == "a key that is not set (toolsrv keys set api.test)"
    )
    other = api("https://api.test/x", (client(host, "token.test"),))
    assert missing_credentials(other, "api.test", none).endswith(
        "(toolsrv keys set api.test@token.test)"
    )
    assert key_names(other, "api.test") == ("api.test@token.test", "api.test/oa", "api.test")
    assert "not supported" in missing_credentials(
        api("https://api.test/x", (HMAC,)), "api.test", none
    )
    assert missing_credentials(one, "api.test", lambda _: "k") == ""
    assert missing_credentials(other, "api.test", lambda _: credentials.ANY_SECRET) == ""
    rapid = api("https://x.p.rapidapi.com/y")
    assert missing_credentials(rapid, "x.p.rapidapi.com", none).endswith(
        "(toolsrv keys set rapidapi)"
    )


def test_a_signed_call_counts_once_for_its_catalog_and_a_token_is_no_call(
    host: Any, tmp_path: Path
) -> None:
    usage = CallUsage(tmp_path / "u.sqlite3", DailyLimits.parse("catalog:signed=2"))
    net = network({"127.0.0.1/dig": LOGIN, "127.0.0.1": CLIENT})
    net = replace(net, hosts=HostLimiter(HostLimits(rate=0), usage=usage))
    data, digest = (
        api(host.url("data"), (client(host),)),
        api(host.url("digest"), (DIGEST,)),
    )

    async def run() -> list[CallResult]:
        async with Caller(
            transports={}, limits=LIMITS, network=net, home=lambda _: ApiOrigin("signed")
        ) as caller:
            assert caller.calls_left(data) == 2
            return [await caller.call(one, {}) for one in (data, digest, data)]

    got = asyncio.run(run())
    assert [one.kind for one in got] == ["ok", "ok", "rate_limited"]
    assert host.paths() == ["/token", "/data", "/digest", "/digest"]
    assert "calls_per_day" in got[2].hint
    assert usage.spent("127.0.0.1").calls == 2
    usage.close()


def test_what_there_is_for_a_call_is_said_without_looking_at_a_key() -> None:
    def unread(name: str) -> str:
        raise AssertionError(name)

    def ready(known: str) -> CallReadiness:
        net = Network(
            transport=httpx.MockTransport(lambda _: httpx.Response(500)),
            keys=unread,
            known=lambda name: credentials.ANY_SECRET if name == known else "",
        )
        return Caller(transports={}, network=net).ready(api("https://api.test/x", (HEADER,)))

    there, other = ready("api.test"), ready("api.other")
    assert (there.callable, there.key, there.lacks) == (True, "set", "")
    assert (other.callable, other.key) == (False, "missing")
    assert other.lacks == "a key that is not set (toolsrv keys set api.test)"


def test_no_secret_and_no_token_enters_a_recording(host: Any, tmp_path: Path) -> None:
    store = RecordingStore.open(tmp_path / RECORDINGS_FILE)

    async def run() -> list[CallResult]:
        net = network({"127.0.0.1": CLIENT, "127.0.0.1/dig": LOGIN})
        async with RecordingCaller(store, transports={}, limits=LIMITS, network=net) as caller:
            return [
                await caller.call(api(host.url("data"), (client(host),)), {}),
                await caller.call(api(host.url("digest"), (DIGEST,)), {}),
                await caller.call(api(host.url("echo"), (HMAC,)), {}),
            ]

    assert [one.kind for one in asyncio.run(run())] == ["ok", "ok", "unauthorized"]
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        assert b"abcdefgh" not in data
        assert b"cret" not in data
        assert b"word-7" not in data
        assert b"not supported" not in data


def test_a_token_address_that_is_none_is_no_flow() -> None:
    for text in ("mailto:x", "https://user@token.test/t", "//[/t"):
        scheme = SecurityScheme(name="oa", kind="oauth2", token_url=text)
        target = api("https://api.test/x", (scheme,))
        got = authorize(target, build_request(target, {}), lambda _: "id:secret")
        assert got.headers == {"Authorization": "Bearer id:secret"}
    relative = SecurityScheme(name="oa", kind="oauth2", token_url="/oauth/token")
    target = api("https://api.test/v1/x", (relative,))
    got = authorize(target, build_request(target, {}), lambda _: "id:secret")
    assert got.client is not None
    assert got.client.url == httpx.URL("https://api.test/oauth/token")
