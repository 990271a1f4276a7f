"""Odd arguments, addresses, headers, statuses and bodies: a call comes to a result, never raises."""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Parameter, SecurityScheme
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import Caller, CallResult, Network
from toolsrv_runtime.calls.policy import Policy
from toolsrv_runtime.calls.rate_limits import HostLimiter, HostLimits, retry_after_seconds
from toolsrv_runtime.calls.recordings.callers import RecordingCaller, ReplayingCaller
from toolsrv_runtime.calls.recordings.storage import RecordingStore, read_pack, write_pack
from toolsrv_runtime.calls.response_body import parse_body
from toolsrv_runtime.errors import ArgumentError

HOST = "api.example.test"
FAR_AWAY = "Mon, 1 Jan 99999999999999999999 00:00:00 GMT"


class Stream(httpx.AsyncByteStream):
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


class Host(httpx.AsyncBaseTransport):
    """A transport that answers all with one response."""

    def __init__(
        self,
        status: int = 200,
        body: bytes = b"{}",
        headers: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        self.asked: list[httpx.Request] = []
        self._answer = (status, headers or [], body)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        status, headers, body = self._answer
        return httpx.Response(status, headers=headers, stream=Stream(body))


def api(path: str = "/x", **parts: Any) -> Api:
    return Api(id="C/t/a", category="C", tool="t", name="a", url=f"https://{HOST}{path}", **parts)


def taking(kind: str = "STRING", place: Any = "", path: str = "/x", **more: Any) -> Api:
    return api(path, required=(Parameter(name="q", type=kind, place=place),), **more)


def call(target: Api, value: Any, host: Host | None = None, key: str = "") -> CallResult:
    async def run() -> CallResult:
        network = Network(transport=host or Host(), keys=lambda _: key)
        async with Caller(transports={}, network=network) as caller:
            return await caller.call(target, {"q": value})

    return asyncio.run(run())


# --- arguments ------------------------------------------------------------------------------------

KINDS = ["STRING", "NUMBER", "BOOLEAN", "DATE", "TIME", "ARRAY", "OBJECT"]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "value",
    [10**5_000, -(10**5_000), [10**5_000], {"a": 10**5_000}, nested(200), nested(50_000)],
    ids=["long", "negative", "in a list", "in an object", "deep", "very deep"],
)
def test_an_argument_that_cannot_be_written_is_named(kind: str, value: Any) -> None:
    got = call(taking(kind), value)
    assert got.kind == "bad_arguments"
    assert "'q'" in got.error
    got.model_dump_json()
    json.dumps(got.arguments)


@pytest.mark.parametrize("text", ["[NaN]", "[1, Infinity]", "[" + "9" * 5_000 + "]"])
def test_a_list_written_as_text_has_no_number_that_json_has_none_for(text: str) -> None:
    schema = {"type": "array", "items": {"type": "number"}}
    listed = Parameter(name="q", type="ARRAY", place="body", json_schema=schema)
    with pytest.raises(ArgumentError, match="'q'"):
        args.bind(taking("ARRAY").model_copy(update={"required": (listed,)}), {"q": text})


def test_a_name_that_is_no_text_is_refused_in_a_result_that_can_be_written() -> None:
    async def run() -> CallResult:
        async with Caller(transports={HOST: Host()}) as caller:
            return await caller.call(taking(), {"q": "x", "\ud800": "\ud800"})

    got = asyncio.run(run())
    assert (got.kind, got.arguments) == ("bad_arguments", {"q": "x"})
    got.model_dump_json()


def test_whatever_may_be_called_may_be_recorded(tmp_path: Path) -> None:
    async def run() -> None:
        with RecordingStore.open(tmp_path / "r.sqlite3") as store:
            caller = RecordingCaller(store, transports={HOST: Host()})
            made = [
                await caller.call(taking("ARRAY"), {"q": nested(levels)})
                for levels in (197, 198, 199)
            ]
            assert [one.ok for one in made] == [True, True, False]
            assert store.stats().entries == 2

    asyncio.run(run())


def test_blanks_around_a_header_are_no_part_of_it() -> None:
    host = Host()
    assert call(taking(place="header"), " x y ", host).ok
    assert host.asked[0].headers["q"] == "x y"


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "value"),
    [
        (taking(), "中" * 8_000),
        (taking(), "中" * 20_000),
        (taking(path="/{q}"), "中" * 8_000),
        (taking(path="/" + "p" * 50_000), "x" * 19_000),
    ],
)
def test_arguments_too_long_for_an_address_are_refused_with_the_limit(
    target: Api, value: str
) -> None:
    host = Host()
    got = call(target, value, host)
    assert (got.kind, got.response, host.asked) == ("bad_arguments", None, [])
    assert "too long" in got.error
    assert "65,536 characters" in got.error


def test_a_key_that_makes_an_address_too_long_is_told_the_same_way() -> None:
    scheme = SecurityScheme(name="k", kind="apiKey", place="query", key="key")
    target = taking(security=((scheme,),))
    assert call(target, "中" * 7_000, key="k" * 100).ok
    got = call(target, "中" * 7_000, key="k" * 8_000)
    assert got.kind == "bad_arguments"
    assert "65,536 characters" in got.error


@pytest.mark.parametrize(
    "url", ["https://xn--/x", "https://xn--a/x", "https://a.test/" + "x" * 70_000]
)
def test_an_api_without_a_usable_address_is_refused(url: str) -> None:
    async def run() -> CallResult:
        async with Caller(transports={}, network=Network(transport=Host())) as caller:
            target = Api(id="C/t/a", category="C", tool="t", name="a", url=url)
            assert not caller.can_call(target) or url.startswith("https://a.test/")
            return await caller.call(target, {})

    assert asyncio.run(run()).kind == "blocked_by_policy"


@pytest.mark.parametrize(
    "location",
    [
        "https://xn--/",
        "//xn--a/",
        "http://[::1",
        "//[",
        "https://[v1.x]/",
        "?" + "x" * 70_000,
        "\0",
    ],
)
def test_a_redirect_to_no_address_is_refused_like_another_host_s(location: str) -> None:
    host = Host(302, headers=[(b"location", location.encode())])
    got = call(taking(), "x", host)
    assert (got.kind, got.status, len(host.asked)) == ("blocked_by_policy", 302, 1)


# --- statuses and headers -------------------------------------------------------------------------

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "asked", [FAR_AWAY, "1 Jan 2026 00:00:00 +9999999999999999999", "soon", "-3", "1 1 1", ""]
)
def test_a_retry_after_that_says_no_time_is_as_none(asked: str) -> None:
    assert retry_after_seconds({"retry-after": asked}, NOW) is None
    got = call(taking(), "x", Host(503, headers=[(b"retry-after", asked.encode())]))
    assert (got.kind, got.retry_after) == ("server_error", None)


@pytest.mark.parametrize("status", [600, 999])
def test_a_status_of_no_class_is_recorded_replayed_and_exported(
    tmp_path: Path, status: int
) -> None:
    async def run() -> None:
        with RecordingStore.open(tmp_path / "r.sqlite3") as store:
            recording = RecordingCaller(store, transports={HOST: Host(status, b'"denied"')})
            made = await recording.call(taking(), {"q": "x"})
            assert (made.kind, made.status, made.response) == ("server_error", status, "denied")
            again = await ReplayingCaller(store).call(taking(), {"q": "x"})
            assert again == made.model_copy(update={"source": "recorded", "seconds": 0.0})
            write_pack(tmp_path / "r.pack", store.entries(), ())
        with RecordingStore.open(tmp_path / "other.sqlite3") as other:
            assert read_pack(tmp_path / "r.pack", other).added == 1
            assert [one.status for one in other.entries()] == [status]

    asyncio.run(run())


# --- bodies ---------------------------------------------------------------------------------------


def read(data: bytes, kind: str) -> Any:
    return parse_body(data, httpx.Headers({"content-type": kind}), too_large=False)


@pytest.mark.parametrize("behind", ["x", "<!--", "<p>", "<!"])
def test_comments_without_end_are_passed_in_no_more_than_their_length(behind: str) -> None:
    assert not read(b"<!-- -->\n" * 10_000 + behind.encode(), "text/plain").web_page
    assert not read(b"<!-- -->\n" * 500 + behind.encode(), "text/plain").web_page
    assert read(b"<!-- -->\n" * 500 + b"<HTML>", "text/plain").web_page


@pytest.mark.parametrize(
    "charset", ["punycode", "unicode_escape", "utf-7", "idna", "undefined", "hex", "klingon"]
)
def test_a_charset_that_is_no_encoding_of_text_is_read_as_utf_8(charset: str) -> None:
    text = "\\u0041 +AEE- å" + "-a" * 50_000
    assert read(text.encode(), f"text/plain; charset={charset}").value == text


@pytest.mark.parametrize(
    "charset",
    [
        *("utf-8", "UTF8", "utf-16", "utf-16le", "utf-16be", "utf-32", "us-ascii", "latin1"),
        *("iso-8859-1", "ISO-8859-15", "windows-1250", "windows-1252", "cp1258", "macintosh"),
        *("Shift_JIS", "sjis", "euc-jp", "iso-2022-jp", "gb2312", "gbk", "gb18030", "big5"),
        *("euc-kr", "ks_c_5601-1987", "koi8-r", "koi8-u"),
    ],
)
def test_an_encoding_of_the_web_is_read_as_itself(charset: str) -> None:
    words = ("Åse", "Łódź", "Привіт", "日本", "中国", "한국", "Aase")
    word = next(one for one in words if encodes(one, charset))
    assert read(word.encode(charset), f"text/plain; charset={charset}").value == word
    broken = read(b"\xff\x1b$B\x80\xd8\x00\xfe", f"text/plain; charset={charset}").value
    assert isinstance(broken, str)


def encodes(text: str, charset: str) -> bool:
    try:
        codecs.encode(text, charset)
    except UnicodeEncodeError:
        return False
    return True


# --- all of it ------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.text(max_size=20)
    | st.sampled_from(["\ud800", "中" * 9_000, "9" * 5_000, "[NaN]", ".."])
    | st.just(5_000).map(lambda digits: 10**digits),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from([b"content-type", b"retry-after", b"location", b"content-encoding"]),
        st.binary(max_size=30)
        | st.sampled_from(
            [
                *(
                    b"x; charset=punycode",
                    b"x; charset=undefined",
                    b"gzip",
                    b"https://xn--/",
                    b"/x",
                ),
                *(FAR_AWAY.encode(), b"1 Jan 2026 0:0 +99999999999999999999", b"?" + b"x" * 70_000),
            ]
        ),
    ),
    max_size=3,
)
BODIES = st.binary(max_size=40) | st.sampled_from(
    [b"[" * 5_000, b'{"\\ud800": "\\ud800"}', b"9" * 5_000, b"<!---->" * 2_000, b"[NaN, 1e999]"]
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with RecordingStore.open(tmp_path_factory.mktemp("odd") / "r.sqlite3") as store:
        yield store


@given(
    kind=st.sampled_from(KINDS),
    place=st.sampled_from(["", "path", "query", "header", "cookie", "body", "payload"]),
    value=VALUES,
    status=st.integers(-5, 1_100),
    headers=HEADERS,
    body=BODIES,
)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_about_a_call_is_raised(
    kept: RecordingStore,
    kind: str,
    place: str,
    value: Any,
    status: int,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
) -> None:
    method = "POST" if place in {"body", "payload"} else "GET"
    target = taking(kind, place, "/{q}" if place == "path" else "/x", method=method)

    async def run() -> None:
        network = Network(
            transport=Host(status, body, headers),
            hosts=HostLimiter(HostLimits(rate=0, failures=10**9)),
        )
        policy = Policy(methods=("GET", "POST"))
        made = await RecordingCaller(kept, policy=policy, transports={}, network=network).call(
            target, {"q": value}
        )
        json.dumps(made.model_dump())
        again = await ReplayingCaller(kept, policy=policy).call(target, {"q": value})
        json.dumps(again.model_dump())

    asyncio.run(run())
