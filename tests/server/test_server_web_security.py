"""The web page of ``serve --http`` against other sites, other users, and hostile catalogs."""

from __future__ import annotations

import asyncio
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from toolsrv.web.security import MOST_SESSIONS, Gate, Sessions
from toolsrv.web.uploads import MOST_BODY
from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.storage.store import Store

HERE = Path(__file__).parent
WEB = runpy.run_path(str(HERE / "web_client.py"))
FaultyHost = runpy.run_path(str(HERE.parent / "faulty_host.py"))["FaultyHost"]
Browser, PAGES = WEB["Browser"], WEB["PAGES"]
SESSION = ("/ui/runs", "/ui/keys", "/ui/call", "/ui/consent", "/ui/models", "/ui/logout")
NASTY = '"><img src=x onerror=alert(1)><script>alert(2)</script>&lt;b&gt;'


@pytest.fixture
def browser(scripted_http: Any) -> Iterator[Any]:
    with Browser(scripted_http) as one:
        yield one


def test_nothing_is_shown_or_done_without_a_session(scripted_http: Any) -> None:
    base = scripted_http.url.removesuffix("/mcp")
    with httpx.Client(base_url=base) as one:
        for path in (*PAGES, "/ui/nothing", "/ui/runs/x/events", "/ui/models/events"):
            answer = one.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, "/ui/login"), path
        for path in SESSION:
            assert one.post(path, data={"a": "b"}, headers={"Origin": base}).status_code == 403
        bearer = {"Authorization": f"Bearer {scripted_http.token}"}
        assert one.get("/ui/", headers=bearer).status_code == 303  # it is for the endpoint alone
        wrong = one.post("/ui/login", data={"token": "wrong"}, headers={"Origin": base})
        assert wrong.status_code == 401
        assert "set-cookie" not in wrong.headers


def test_the_link_opens_the_page_once_and_leaves_no_token_behind(
    ready_dir: Path, start_http: Callable[[dict[str, str]], Any]
) -> None:
    served = start_http({"TOOLSRV_DATA_DIR": str(ready_dir)})
    assert served.token not in served.link
    with httpx.Client(base_url=served.url.removesuffix("/mcp")) as one:
        welcome = one.get(served.link)
        assert 'content="0; url=/ui/"' in welcome.text
        assert "code=" not in welcome.text
        cookie = welcome.headers["set-cookie"]
        for part in ("HttpOnly", "SameSite=strict", "Path=/ui"):
            assert part in cookie
        assert one.get("/ui/").status_code == 200
        assert one.get(served.link).status_code == 200  # this browser is logged in
    again = httpx.get(served.link)
    assert again.status_code == 401
    assert "set-cookie" not in again.headers
    opened = httpx.get(served.url.removesuffix("mcp"), headers={"Accept": "text/html,*/*"})
    assert (opened.status_code, opened.headers["location"]) == (307, "/ui/")


def refusals(browser: Any) -> Iterator[tuple[str, int]]:
    """Yield what a request with the cookie lacks, and its status."""
    own = {"Origin": browser.origin}
    data = {"csrf": browser.csrf, "name": "evil.example.com", "key": "k"}
    other_port = browser.origin.rpartition(":")[0] + ":1"
    cases: dict[str, tuple[dict[str, str], dict[str, str]]] = {
        "another host": ({**own, "Host": "evil.example"}, data),
        "no origin": ({}, data),
        "null origin": ({"Origin": "null"}, data),
        "another origin": ({"Origin": "http://evil.example"}, data),
        "another port of this machine": ({"Origin": other_port}, data),
        "another site": ({**own, "Sec-Fetch-Site": "cross-site"}, data),
        "the same site": ({**own, "Sec-Fetch-Site": "same-site"}, data),
        "no token": (own, {**data, "csrf": ""}),
        "a wrong token": (own, {**data, "csrf": "x" * 43}),
    }
    for name, (headers, fields) in cases.items():
        yield name, browser.post("/ui/keys", data=fields, headers=headers).status_code
    as_json = browser.post("/ui/keys", json=data, headers=own)
    yield "a body that is no form", as_json.status_code
    large = browser.post("/ui/keys", data={**data, "x": "y" * MOST_BODY}, headers=own)
    yield "too large a body", large.status_code
    yield "a rebound name", browser.get("/ui/", headers={"Host": "evil.example:80"}).status_code
    embed = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}
    yield "embedding", browser.get("/ui/", headers=embed).status_code
    yield "another method", browser.put("/ui/keys", headers=own).status_code


def test_other_sites_can_neither_read_nor_write_with_the_cookie(browser: Any) -> None:
    assert dict(refusals(browser)) == {
        "another host": 421,
        "no origin": 403,
        "null origin": 403,
        "another origin": 403,
        "another port of this machine": 403,
        "another site": 403,
        "the same site": 403,
        "no token": 403,
        "a wrong token": 403,
        "a body that is no form": 413,
        "too large a body": 413,
        "a rebound name": 421,
        "embedding": 403,
        "another method": 405,
    }
    assert "evil.example.com" not in browser.get("/ui/keys").text
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert browser.get("/ui/keys", headers=link).status_code == 200


def test_every_page_has_a_strict_policy_and_no_inline_script_or_style(browser: Any) -> None:
    files = set()
    for path in (*PAGES, "/ui/login", "/ui/nothing", "/ui/static/page.js", "/ui/static/none"):
        answer = browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        for name, value in {
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
        }.items():
            assert answer.headers[name] == value
        if answer.headers.get("content-type", "").startswith("text/html"):
            text = answer.text
            assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", text), path
            assert not re.search(r'(?:src|href|action)="(?!/ui/|#)', text), path
            assert answer.headers["cache-control"] == "no-store"
            files |= set(re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', text))
    assert len(files) == 5
    for path in files:
        assert browser.get(path).status_code == 200


def test_a_session_ends_by_logging_out(browser: Any) -> None:
    cookie = dict(browser.cookies)
    assert browser.send_form("/ui/logout").url.path == "/ui/login"
    answer = httpx.get(f"{browser.origin}/ui/", cookies=cookie)
    assert answer.status_code == 303


def test_a_session_ends_when_it_is_not_used_and_there_are_not_many() -> None:
    now = [0.0]
    sessions = Sessions("the-token", clock=lambda: now[0])
    first = sessions.by_token(" the-token ")
    assert first is not None
    now[0] += 11 * 3600
    assert sessions.get(first.id) is first
    now[0] += 11 * 3600
    assert sessions.get(first.id) is first
    now[0] += 13 * 3600
    assert sessions.get(first.id) is None
    many = [sessions.by_token("the-token") for _ in range(MOST_SESSIONS + 1)]
    assert many[0] is not None
    assert many[1] is not None
    assert (sessions.get(many[0].id), sessions.get(many[1].id)) == (None, many[1])
    assert sessions.by_token("thé-token") is None


def test_what_a_catalog_and_its_host_say_is_text_and_nothing_else(
    ready_dir: Path, start_http: Callable[[dict[str, str]], Any]
) -> None:
    with FaultyHost() as host:
        api = Api(
            id="Odd/odd/echo",
            category="Odd",
            tool="odd",
            name=f"name {NASTY}",
            description=f"Say it again {NASTY}\u202e\x1b[31m",
            method="GET",
            url=f"{host.url}/echo",
            required=(
                Parameter(name=f"a b{NASTY}", description=NASTY, example=NASTY, enum=(NASTY, "x")),
            ),
        )
        tool = Tool(category="Odd", name=f"odd {NASTY}", description=NASTY, apis=(api,))
        with Store.open(ready_dir / STORE_FILE) as store:
            store.put_catalog(Catalog(name="theirs", tools=(tool,)), source=NASTY)
        settings = {"TOOLSRV_OWN_HOSTS": host.url.removeprefix("http://")}
        with Browser(start_http({"TOOLSRV_DATA_DIR": str(ready_dir), **settings})) as browser:
            pages = [
                browser.get("/ui/api", params={"id": api.id, "example": "1"}).text,
                browser.get("/ui/search", params={"q": "Say it again", "category": "Odd"}).text,
                browser.get("/ui/search", params={"q": NASTY, "category": "Odd"}).text,
                browser.get("/ui/api", params={"id": NASTY}).text,
                browser.get("/ui/runs", params={"q": NASTY, "task": NASTY}).text,
                browser.get("/ui/catalogs").text,
                browser.get("/ui/catalogs/theirs").text,
                browser.get("/ui/keys", params={"name": NASTY}).text,
                browser.send_form("/ui/call", id=api.id, **{f"arg.a b{NASTY}": NASTY}).text,
                browser.ended(browser.start(f"a task {NASTY}")),
            ]
    assert "&lt;script&gt;" in pages[0]
    for page in pages:
        assert "<img" not in page
        assert len(re.findall("<script", page)) == 2
        assert "\u202e" not in page
        assert "\x1b" not in page


def test_the_page_is_imported_only_where_a_server_speaks_http() -> None:
    code = (
        "import sys; from toolsrv.mcp_server.server import build_server; "
        "from toolsrv.settings import load; from toolsrv.workbench import Workbench; "
        "build_server(Workbench(load().settings), warm=False); "
        "print([one for one in sys.modules if one.startswith('toolsrv.web')])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert told.strip() == "[]"


@pytest.mark.parametrize("told", ["/ui/login", "/ui/static/page.css"])
def test_the_path_that_is_routed_decides_and_not_what_host_makes_of_the_url(
    monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    """Some versions of Starlette put Host before the path as it is."""

    async def shown(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("shown")(scope, receive, send)

    monkeypatch.setattr(Request, "url", URL(f"http://127.0.0.1{told}?/ui/settings"))
    allowed = TransportSecuritySettings(allowed_hosts=["127.0.0.1:*"])
    gate = Gate(shown, Sessions("token"), allowed, "toolsrv-1")
    transport = httpx.ASGITransport(gate)

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as one:
            return await one.get("/ui/settings")

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/login")


@pytest.mark.parametrize("origin", ["http://[", "null", "http://127.0.0.1:1", ""])
def test_an_origin_that_is_none_is_refused(browser: Any, origin: str) -> None:
    headers = {"Origin": origin}
    assert browser.post("/ui/runs", data={"a": "b"}, headers=headers).status_code == 403
