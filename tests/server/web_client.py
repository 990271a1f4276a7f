"""A browser without a screen: the web page over HTTP, with its session and its CSRF token."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator
from typing import Any, Self

import httpx

PAGES = (
    "/ui/", "/ui/search", "/ui/search?q=sun+rise", "/ui/runs", "/ui/catalogs",
    "/ui/catalogs/offline", "/ui/models", "/ui/keys", "/ui/settings",
    "/ui/api?id=Weather/sun_and_moon/sunrise_and_sunset",
)  # fmt: skip


def words(page: str) -> str:
    """Return what a person reads on a page."""
    text = re.sub(r"<[^>]*>", " ", page.partition("<main")[2])
    return html.unescape(" ".join(text.split()))


class Browser(httpx.Client):
    """``send_form`` sends a form as its page does. It is logged in where it is opened."""

    def __init__(self, server: Any) -> None:
        self.origin = server.url.removesuffix("/mcp")
        self.csrf = ""
        self.process = server.process
        self._token = server.token
        super().__init__(base_url=self.origin, timeout=60)

    def __enter__(self) -> Self:
        super().__enter__()
        assert self.send_form("/ui/login", token=self._token).url.path == "/ui/"
        self.csrf = self.token_of("/ui/")
        return self

    def token_of(self, path: str) -> str:
        """Return the CSRF token in a page's form."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(path).text)
        assert found is not None
        return found[1]

    def send_form(self, path: str, **fields: str) -> httpx.Response:
        """Post a form with Origin and CSRF token, and follow to the page that comes of it."""
        data = {"csrf": self.csrf, **fields}
        headers = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin"}
        return self.post(path, data=data, headers=headers, follow_redirects=True)

    def start(self, task: str, **fields: str) -> str:
        """Start a task and return the path of its run."""
        answer = self.send_form("/ui/runs", task=task, **fields)
        assert answer.status_code == 200, words(answer.text)
        return str(answer.url.path)

    def states(self, path: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the events of a live run: their name, and the parts that changed."""
        with self.stream("GET", f"{path}/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            name = ""
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))

    def ended(self, path: str, seconds: float = 60) -> str:
        """Wait for the end of a run and return its page."""
        end = time.monotonic() + seconds
        while 'data-events="' in (page := self.get(path).text):
            assert time.monotonic() < end, words(page)
            time.sleep(0.1)
        return page
