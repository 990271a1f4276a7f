"""The web page in a real Chromium: its main ways, by keyboard alone, light and dark, narrow.

Needs Playwright (the extra ``dev``) and a Chromium of the system.
"""

from __future__ import annotations

import json
import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOST = runpy.run_path(str(Path(__file__).parent / "file_host.py"))
SUNRISE = "Weather/sun_and_moon/sunrise_and_sunset"
WAIT_MS = 90_000
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    sync_api: Any = pytest.importorskip("playwright.sync_api", reason="no Playwright here")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def served(ready_dir: Path, start_http: Callable[[dict[str, str]], Any]) -> Any:
    return start_http({"TOOLSRV_DATA_DIR": str(ready_dir)})


@pytest.fixture
def box(
    ready_dir: Path,
    no_keyring: None,
    run: Callable[..., Any],
    start_http: Callable[[dict[str, str]], Any],
    tmp_path: Path,
) -> Iterator[tuple[Any, Any]]:
    """A server whose catalog has an API of files, and the API's host."""
    del no_keyring
    with HOST["serving"]() as host:
        (tmp_path / "api.json").write_text(json.dumps(host.document))
        own = host.url.removeprefix("http://")
        run("config", "set", "own_hosts", own)
        done = run("catalog", "import", str(tmp_path / "api.json"), "--name", "box", "--no-index")
        assert done.exit_code == 0, done.stderr
        yield start_http({"TOOLSRV_DATA_DIR": str(ready_dir), "TOOLSRV_OWN_HOSTS": own}), host


@pytest.fixture
def look(chromium: Any, served: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens the link in a new window; the console must stay empty."""
    problems: list[str] = []
    contexts = []

    def opened(link: str = "", **kind: Any) -> Any:
        context = chromium.new_context(**kind)
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: problems.append(said.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(link or served.link)
        page.wait_for_url("**/ui/")
        return page

    yield opened
    for one in contexts:
        one.close()
    assert problems == []


def test_a_person_finds_an_api_and_calls_it(look: Callable[..., Any]) -> None:
    page = look()
    page.get_by_label("What should it do?").fill("when does the sun rise")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name=SUNRISE).click()
    page.get_by_role("link", name="Fill in an example").click()
    page.get_by_label("city").fill("Lima")
    page.get_by_role("button", name="Call").click()
    response = page.get_by_label("Response", exact=True).last
    assert '"city": "Lima"' in response.inner_text()
    assert page.evaluate("document.activeElement.id") == "result"
    assert "code=" not in page.url
    assert page.evaluate("document.cookie") == ""


def test_a_person_sends_a_chosen_file_after_a_yes(
    look: Callable[..., Any], box: tuple[Any, Any], tmp_path: Path
) -> None:
    served, host = box
    photo, large = tmp_path / "my photo.png", tmp_path / "large.bin"
    photo.write_bytes(HOST["PNG"])
    large.write_bytes(b"x" * 16_000_001)
    page = look(link=served.link)
    page.goto(served.url.removesuffix("/mcp") + "/ui/api?id=Other/box/send")
    field = page.get_by_label("photo", exact=False).first
    assert "at most 16,000,000 bytes" in page.locator("form.stack").inner_text()
    field.set_input_files(str(large))
    assert "large.bin has 16,000,001 bytes" in field.evaluate("one => one.validationMessage")
    page.get_by_role("button", name="Call", exact=True).click()
    assert host.seen == []  # the browser holds it back
    field.set_input_files(str(photo))
    page.get_by_label("note").fill("hello")
    page.get_by_role("button", name="Call", exact=True).click()
    ask = page.locator(".ask")
    assert "my%20photo.png" in ask.inner_text()
    assert f"({len(HOST['PNG'])} bytes, SHA-256" in ask.inner_text()
    assert host.seen == []
    page.get_by_role("button", name="Make this call").click()
    page.wait_for_selector("#result")
    assert "HTTP 200" in page.locator("#result").inner_text()
    assert len(host.seen) == 1
    assert HOST["PNG"] in host.seen[0][1]
    assert b'filename="my photo.png"' in host.seen[0][1]
    assert "sent last: my photo.png" in page.locator("form.stack").inner_text()


def test_a_person_downloads_what_a_call_brings(
    look: Callable[..., Any], box: tuple[Any, Any], tmp_path: Path
) -> None:
    served, _ = box
    page = look(link=served.link)
    page.goto(served.url.removesuffix("/mcp") + "/ui/api?id=Other/box/picture")
    page.get_by_role("button", name="Call", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download").click()
    download = waiting.value
    download.save_as(tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == HOST["PNG"]
    assert download.suggested_filename.endswith(".png")
    assert page.locator("#result").is_visible()  # the page stays


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_form_of_files_is_readable_named_and_fits_a_narrow_window(
    look: Callable[..., Any], box: tuple[Any, Any], scheme: str
) -> None:
    page = look(link=box[0].link, viewport={"width": 400, "height": 800}, color_scheme=scheme)
    page.goto(box[0].url.removesuffix("/mcp") + "/ui/api?id=Other/box/send")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(CONTRAST) == []


def test_a_person_gives_a_task_and_sees_its_tree_grow_to_the_answer(
    look: Callable[..., Any],
) -> None:
    page = look()
    page.get_by_role("link", name="Tasks", exact=True).click()
    page.get_by_label("What do you want to know").fill("a SLOW one")
    page.get_by_text("Options").click()
    page.get_by_label("Seconds it may take").fill("6")
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector("[data-events]")
    assert page.get_by_role("button", name="Stop").is_visible()
    assert page.locator("#tree .node").count() >= 1
    page.wait_for_selector("#answer")  # brought by the stream: the page is not loaded again
    assert page.locator("[data-events]").count() == 1
    assert page.get_by_role("button", name="Stop").count() == 0
    assert "partial" in page.locator("[data-part=state]").inner_text()
    page.get_by_role("link", name="Tasks", exact=True).first.click()
    assert page.get_by_role("link", name="a SLOW one").is_visible()


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Any, name: str) -> None:
    """Press Tab until an element of that name has the focus, as one sees and hears it."""
    script = (
        "() => { const one = document.activeElement; const seen = getComputedStyle(one);"
        " const label = one.labels && one.labels[0] ? one.labels[0].innerText : '';"
        " return [label || one.ariaLabel || one.innerText || '',"
        " seen.outlineStyle !== 'none' || one.matches('.node')]; }"  # a node has a thick frame
    )
    for _ in range(60):
        press(page, "Tab")
        said, seen = page.evaluate(script)
        if said.strip().startswith(name):
            assert seen, f"the focus on {name} cannot be seen"
            return
    pytest.fail(f"Tab does not lead to {name}")


def test_everything_is_reached_with_the_keyboard_alone(look: Callable[..., Any]) -> None:
    page = look()
    press(page, "Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    press(page, "Enter")
    tab_to(page, "What do you want")
    page.keyboard.type("LOOKUP something")
    tab_to(page, "Start")
    press(page, "Enter")
    page.wait_for_selector("#answer")
    tab_to(page, "the task")  # the tree is one stop; arrow keys move in it
    nodes = page.locator("#tree .node")
    press(page, "ArrowDown")
    assert page.evaluate("document.activeElement.id") == nodes.nth(1).get_attribute("id")
    press(page, "End")
    assert page.evaluate("document.activeElement.id") == nodes.last.get_attribute("id")
    press(page, "Enter")
    assert page.evaluate("document.activeElement.id") == "panel"
    assert "It is 42." in page.locator("#panel").inner_text()
    press(page, "Escape")
    assert page.evaluate("document.activeElement.id") == nodes.last.get_attribute("id")


PATHS = (
    "/ui/", "/ui/search?q=time", f"/ui/api?id={SUNRISE}", "/ui/runs", "/ui/catalogs",
    "/ui/catalogs/offline", "/ui/models", "/ui/keys", "/ui/settings",
)  # fmt: skip
UNNAMED = (
    "() => [...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
    ".filter((one) => !one.labels.length && !one.ariaLabel).map((one) => one.name)"
)
CONTRAST = (Path(__file__).parent / "contrast.js").read_text("utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_readable_named_and_as_wide_as_the_window(
    look: Callable[..., Any], served: Any, scheme: str
) -> None:
    page = look(viewport={"width": 400, "height": 800}, color_scheme=scheme)
    base = served.url.removesuffix("/mcp")
    for path in PATHS:
        page.goto(base + path)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{path} is {wide} pixels too wide"
        assert page.evaluate(UNNAMED) == [], path
        assert page.locator("h1").count() == 1
        assert page.evaluate(CONTRAST) == [], path
