"""The web page of ``serve --http``: what each of its pages shows and does."""

from __future__ import annotations

import contextlib
import re
import runpy
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.documents import content_hash
from toolsrv_registry.storage.health import HealthEntry, HealthStatus
from toolsrv_registry.storage.store import Store

HERE = Path(__file__).parent
WEB = runpy.run_path(str(HERE / "web_client.py"))
WRITING = runpy.run_path(str(HERE / "writing.py"))
HubHost = runpy.run_path(str(HERE.parent / "hub_host.py"))["HubHost"]
SAVINGS = runpy.run_path(str(HERE / "test_server_needs_input.py"))
TOOLSRV = [sys.executable, "-m", "toolsrv"]
Browser, words = WEB["Browser"], WEB["words"]
SUNRISE = "Weather/sun_and_moon/sunrise_and_sunset"
WRITE = "Notes/notes/write"


@pytest.fixture
def browser(scripted_http: Any) -> Iterator[Any]:
    """A browser at the session's server."""
    with Browser(scripted_http) as one:
        yield one


@pytest.fixture
def own(ready_dir: Path, start_http: Callable[..., Any]) -> Iterator[Any]:
    """A browser at the test's own server."""
    with Browser(start_http({"TOOLSRV_DATA_DIR": str(ready_dir)})) as one:
        yield one


@pytest.fixture
def writer(ready_dir: Path, start_http: Callable[..., Any]) -> Iterator[tuple[Any, Any]]:
    """A browser, and a host whose API changes something."""
    with WRITING["FaultyHost"]() as host:
        WRITING["serve"](host, ready_dir)
        own = {"TOOLSRV_OWN_HOSTS": host.url.removeprefix("http://")}
        with Browser(start_http({"TOOLSRV_DATA_DIR": str(ready_dir), **own})) as one:
            yield one, host


def test_a_search_leads_to_an_api_that_can_be_called(browser: Any) -> None:
    found = browser.get("/ui/search", params={"q": "when does the sun rise"})
    assert f'href="/ui/api?id={SUNRISE}"' in found.text
    page = browser.get("/ui/api", params={"id": SUNRISE}).text
    assert 'name="arg.city"' in page
    filled = browser.get("/ui/api", params={"id": SUNRISE, "example": "1"}).text
    assert 'value="Rome"' in filled
    called = browser.send_form("/ui/call", id=SUNRISE, **{"arg.city": "Lima", "arg.date": ""})
    assert '"city": "Lima"' in words(called.text)
    assert "offline" in words(called.text)
    wrong = browser.send_form("/ui/call", id=SUNRISE, **{"arg.city": "Nowhere at all"})
    assert "It did not go well" in words(wrong.text)
    assert 'value="Nowhere at all"' in wrong.text


def test_filters_of_a_search_are_those_of_the_command(browser: Any) -> None:
    given = {"q": "capital of a country", "category": "Weather"}
    page = browser.get("/ui/search", params=given).text
    assert set(re.findall(r"id=(\w+)/", page)) == {"Weather"}
    second = browser.get("/ui/search", params={"q": "time", "offset": "10"}).text
    assert 'start="11"' in second
    unknown = browser.get("/ui/search", params={"q": "time", "category": "Nothing"})
    assert unknown.status_code == 404
    assert "Nothing" in words(unknown.text)


def test_a_call_that_may_change_something_is_made_once_after_a_yes(
    writer: tuple[Any, Any],
) -> None:
    browser, host = writer
    asked = browser.send_form("/ui/call", id=WRITE, **{"arg.text": "alpha"}).text
    assert host.written == []
    for part in ("POST 127.0.0.1:", "/write", '"text": "alpha"'):
        assert part in words(asked)
    call = re.search(r'name="call" value="([^"]+)"', asked)
    assert call is not None
    done = browser.send_form("/ui/consent", call=call[1], say="yes")
    assert host.written == ['{"text":"alpha"}']
    assert "HTTP 200" in words(done.text)
    again = browser.send_form("/ui/consent", call=call[1], say="yes")
    assert again.status_code == 400
    assert len(host.written) == 1


def test_a_call_that_is_declined_is_not_made(writer: tuple[Any, Any]) -> None:
    browser, host = writer
    asked = browser.send_form("/ui/call", id=WRITE, **{"arg.text": "alpha"}).text
    call = re.search(r'name="call" value="([^"]+)"', asked)
    assert call is not None
    page = browser.send_form("/ui/consent", call=call[1], say="no").text
    assert "declined" in words(page)
    assert host.calls == []


def test_a_task_shows_its_tree_while_it_works_and_its_answer_at_the_end(browser: Any) -> None:
    path = browser.start("a SLOW one", max_seconds="4")
    states = list(browser.states(path))
    name, parts = states[0]
    assert name == "state"
    assert 'role="tree"' in parts["tree"]
    assert "working" in parts["state"]
    assert [one for one, _ in states[:-1]] == ["state"] * (len(states) - 1)
    assert states[-1][0] == "end"
    assert "partial" in states[-1][1]["state"]
    page = browser.ended(path)
    assert "partial" in words(page)


def test_an_answer_stands_with_its_evidence_and_the_run_is_listed(browser: Any) -> None:
    path = browser.start("LOOKUP something")
    page = browser.ended(path)
    assert "It is 42." in words(page)
    assert "Evidence" in words(page)
    assert "No response says: 42" in words(page)
    saved = browser.get(f"{path}?form=file")
    assert saved.headers["content-disposition"].startswith("attachment")
    assert "It is 42." in saved.text
    browser.ended(browser.start("HOPELESS"))
    everything = browser.get("/ui/runs").text
    assert "LOOKUP something" in everything
    assert "HOPELESS" in everything
    some = browser.get("/ui/runs", params={"q": "lookup"}).text
    assert "HOPELESS" not in some
    gave_up = browser.get("/ui/runs", params={"status": "gave_up"}).text
    assert "HOPELESS" in gave_up
    assert "LOOKUP something" not in gave_up
    run_id = path.rpartition("/")[2]
    follows = browser.ended(browser.start("and what else", continues=run_id))
    assert "It is 42." in words(follows)
    assert browser.get("/ui/runs/run_unknown").status_code == 404


def test_a_run_is_stopped(browser: Any) -> None:
    path = browser.start("a SLOW one")
    stopped = browser.send_form(f"{path}/cancel")
    assert stopped.status_code == 200
    assert "cancelled" in words(browser.ended(path))


def test_a_server_that_is_interrupted_ends_its_open_streams(own: Any) -> None:
    with contextlib.closing(own.states(own.start("a SLOW one"))) as states:
        assert next(states)[0] == "state"
        own.process.send_signal(signal.SIGINT)
        started = time.monotonic()
        names: list[str] = []
        with contextlib.suppress(httpx.RemoteProtocolError):  # cut off, or ended
            names += (name for name, _ in states)
        assert "end" not in names
        own.process.wait(timeout=15)
        assert time.monotonic() - started < 10


def wait_for_question(browser: Any, path: str) -> str:
    with contextlib.closing(browser.states(path)) as states:
        for _, parts in states:
            found = re.search(r'name="question" value="([^"]+)"', parts.get("question", ""))
            if found is not None:
                return found[1]
    raise AssertionError("nothing was asked")


@pytest.mark.parametrize(("say", "written"), [("yes", ['{"text":"alpha"}']), ("no", [])])
def test_a_run_asks_for_consent_and_hears_the_answer(
    writer: tuple[Any, Any], say: str, written: list[str]
) -> None:
    browser, host = writer
    path = browser.start(WRITING["TASK"].format(word="alpha"), category="Notes")
    question = wait_for_question(browser, path)
    assert "May this call be made?" in words(browser.get(path).text)
    assert host.written == []
    other = browser.send_form(f"{path}/answer", question="another", say="yes")
    assert other.status_code == 400
    browser.send_form(f"{path}/answer", question=question, say=say)
    page = words(browser.ended(path))
    assert host.written == written
    assert ("the person declined POST" in page) == (say == "no")


@pytest.fixture
def saver(
    ready_dir: Path, tmp_path: Path, start_http: Callable[..., Any]
) -> Iterator[Callable[[], Any]]:
    """Return a function that starts a task which does not say the amount that a call needs."""
    words = [*TOOLSRV, "serve", "--http", "--port", "0", "--no-warm", "--model"]
    model = f"scripted:{SAVINGS['script'](tmp_path)}"
    served = start_http({"TOOLSRV_DATA_DIR": str(ready_dir)}, *words, model)
    with Browser(served) as one:
        yield lambda: (one, one.start(SAVINGS["TASK"], category="Finance"))


def test_a_value_that_a_run_lacks_is_asked_for_and_given(saver: Callable[[], Any]) -> None:
    browser, path = saver()
    question = wait_for_question(browser, path)
    page = browser.get(path).text
    assert SAVINGS["QUESTION"] in words(page)
    assert 'name="arg.amount"' in page
    given = {"question": question, "say": "yes"}
    empty = browser.send_form(f"{path}/answer", **given, **{"arg.amount": " "})
    assert empty.status_code == 400
    browser.send_form(f"{path}/answer", **given, **{"arg.amount": "5000"})
    page = browser.ended(path)
    assert "answered" in words(page)
    assert '"amount": 5000' in words(page)


def test_a_value_that_is_not_given_can_be_given_later(saver: Callable[[], Any]) -> None:
    browser, path = saver()
    question = wait_for_question(browser, path)
    browser.send_form(f"{path}/answer", question=question, say="no")
    page = browser.ended(path)
    assert "needs input" in words(page)
    assert SAVINGS["QUESTION"] in words(page)
    run_id = path.rpartition("/")[2]
    later = browser.start("5000 euros", answer_to=run_id, category="Finance")
    assert "amount: 5000 euros" in words(browser.ended(later))


def test_the_state_of_a_task_that_is_no_task_is_told(browser: Any) -> None:
    empty = browser.send_form("/ui/runs", task="  ")
    assert (empty.status_code, "the task is empty" in words(empty.text)) == (400, True)
    odd = browser.send_form("/ui/runs", task="easy", max_seconds="soon")
    assert (odd.status_code, "'soon' is no number" in words(odd.text)) == (400, True)


def test_a_catalog_says_how_healthy_it_is_and_is_hidden_and_found(
    own: Any, ready_dir: Path
) -> None:
    assert "170 never checked" in words(own.get("/ui/catalogs").text)
    with Store.open(ready_dir / STORE_FILE) as store:
        api = store.get(SUNRISE)
        entry = HealthEntry(
            api_id=api.id,
            content_hash=content_hash(api),
            checked_at="2026-11-20T10:00:00+00:00",
            verdict=HealthStatus.HTTP_ERROR,
            status=410,
        )
        store.health.record([entry])
    assert "1 dead 169 never checked" in words(own.get("/ui/catalogs").text)
    one = own.get("/ui/catalogs/offline")
    assert f"{SUNRISE} 410 on 2026-11-20 (dead)" in words(one.text)
    assert "Weather" in words(one.text)
    assert own.get("/ui/catalogs/none").status_code == 404
    hidden = own.send_form("/ui/catalogs/offline/switch", enabled="0")
    assert "hidden" in words(hidden.text)
    found = own.send_form("/ui/catalogs/offline/switch", enabled="1")
    assert "hidden" not in words(found.text)


def test_a_key_is_set_and_removed_and_shown_nowhere(
    own: Any, no_keyring: None, ready_dir: Path
) -> None:
    del no_keyring
    secret = "canary-of-a-key"
    own.send_form("/ui/keys", name="api.example.com", key=secret)
    assert secret in (ready_dir / "keys.json").read_text()
    page = own.get("/ui/keys").text
    assert "api.example.com" in page
    assert secret not in "".join(own.get(path).text for path in WEB["PAGES"])
    bad = own.send_form("/ui/keys", name="no host at all", key=secret)
    assert bad.status_code == 400
    assert secret not in bad.text
    gone = own.send_form("/ui/keys/remove", name="api.example.com")
    assert "api.example.com" not in gone.text


def test_settings_say_where_they_come_from(own: Any, ready_dir: Path) -> None:
    from toolsrv.settings import Settings

    page = own.get("/ui/settings").text
    for name in Settings.model_fields:
        assert f"<code>{name}</code>" in page
    assert "TOOLSRV_DATA_DIR" in page
    assert str(ready_dir) in page


def test_a_model_is_brought_with_its_progress(
    ready_dir: Path, start_http: Callable[..., Any]
) -> None:
    with HubHost() as hub:
        hub.files["some/model"] = {"tiny.gguf": b"GGUF" + bytes(4_000_000)}
        settings = {"TOOLSRV_DATA_DIR": str(ready_dir), "HF_ENDPOINT": hub.url}
        with Browser(start_http(settings)) as browser:
            browser.send_form("/ui/models", model="some/model:tiny.gguf")
            end = time.monotonic() + 60
            while "is here" not in (page := words(browser.get("/ui/models").text)):
                assert time.monotonic() < end, page
                time.sleep(0.1)
            last = list(browser.states("/ui/models"))[-1]
            missing = browser.send_form("/ui/models", model="nothing")
    assert (last[0], "is here" in last[1]["progress"]) == ("end", True)
    assert "tiny" in page
    assert missing.status_code == 400
