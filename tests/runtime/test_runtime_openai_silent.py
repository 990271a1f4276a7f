"""A model server that says nothing, beside others that would answer."""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import pytest

from toolsrv_runtime.contract.models import ChatRequest, ReplyConstraints, Tool, UserMessage
from toolsrv_runtime.errors import ServerError
from toolsrv_runtime.models.openai import parse_endpoints
from toolsrv_runtime.models.openai.chat import OpenAIChat, inspect_servers
from toolsrv_runtime.models.openai.server import OpenAIServer
from toolsrv_runtime.stop import Stop

_FAKE = runpy.run_path(str(Path(__file__).parents[1] / "model_server.py"))
ModelServer, Call = _FAKE["ModelServer"], _FAKE["Call"]
PERU = Call("capital", {"country": "Peru"}, "look it up")
REQUEST = ChatRequest(
    (UserMessage("What is the capital of Peru?"),),
    (Tool("capital", "", {"type": "object", "properties": {"country": {"type": "string"}}}),),
    ReplyConstraints(names=("capital",), text=False),
)


def chat(*urls: str) -> OpenAIChat:
    return OpenAIChat(
        [
            OpenAIServer(place, model="", key="", silence_s=120)
            for place in parse_endpoints(",".join(urls))
        ]
    )


def within(seconds: float) -> Stop:
    return Stop(deadline=time.monotonic() + seconds)


def test_one_that_is_silent_when_asked_what_it_offers_leaves_the_other_its_time() -> None:
    with ModelServer([], silent=True) as silent, ModelServer([PERU]) as well:
        one, stop = chat(silent.url, well.url), within(2)
        found = [one.reply(REQUEST, stop=stop) for _ in range(4)]
    assert [reply.calls[0].name for reply in found if reply is not None] == ["capital"] * 4


def test_one_that_falls_silent_later_leaves_the_other_its_time() -> None:
    with ModelServer([PERU, "!never"]) as ill, ModelServer([PERU]) as well:
        one, stop = chat(ill.url, well.url), within(3)
        found = [one.reply(REQUEST, stop=stop) for _ in range(5)]
        assert (len(ill.requests), len(well.requests)) == (2, 4)
    assert [reply.calls[0].name for reply in found if reply is not None] == ["capital"] * 5


def test_one_that_stops_amid_its_reply_leaves_the_other_its_time() -> None:
    with ModelServer(["!stall"]) as ill, ModelServer([PERU]) as well:
        reply = chat(ill.url, well.url).reply(REQUEST, stop=within(2))
    assert reply is not None
    assert reply.calls[0].name == "capital"


def test_one_server_alone_may_take_all_the_time() -> None:
    with ModelServer([], silent=True) as silent:
        started = time.monotonic()
        assert chat(silent.url).reply(REQUEST, stop=within(1)) is None
        assert 0.9 < time.monotonic() - started < 3


def test_the_last_one_that_is_well_may_take_what_is_left() -> None:
    one, stop = chat("http://127.0.0.1:8/v1", "http://127.0.0.1:9/v1"), within(100)
    first, second = one._all
    assert 29 < one._patience(second, stop) <= 30  # not asked yet, and perhaps still loading
    first.server.mode = second.server.mode = "tools"
    assert 49 < one._patience(second, stop) <= 50
    second.failures = 1
    assert 24 < one._patience(second, stop) <= 25
    first.out_until = time.monotonic() + 60
    assert one._patience(second, stop) == float("inf")


def test_a_wait_behind_another_that_asks_what_a_server_offers_has_an_end() -> None:
    with ModelServer([PERU]) as server:
        one = OpenAIServer(parse_endpoints(server.url)[0], model="tiny", key="", silence_s=5)
        with one._detecting, pytest.raises(ServerError, match="what it offers"):
            one.detect(stop=Stop(), within_s=0.1)


def test_an_inspection_says_what_it_waits_for_and_does_not_wait_for_long() -> None:
    said: list[str] = []
    with ModelServer([], silent=True) as silent:
        (info,) = inspect_servers(silent.url, within_s=0.3, say=said.append)
        name = parse_endpoints(silent.url)[0].name
    assert info.models == ("tiny",)
    assert "said nothing for 0.3 s" in info.error
    assert said == [
        f"asking {name} for its models, 0.3 s at most",
        f"asking {name} for a short reply, 0.3 s at most",
    ]


@pytest.mark.parametrize(("own", "outer", "left"), [(5, 50, 5), (50, 5, 5), (None, 5, 5)])
def test_what_is_left_is_the_nearer_deadline(own: float | None, outer: float, left: float) -> None:
    parent = within(outer)
    stop = Stop(parent=parent, deadline=None if own is None else time.monotonic() + own)
    assert left - 1 < stop.left() <= left
    parent.set()
    assert stop.left() == 0
    assert Stop().left() == float("inf")
