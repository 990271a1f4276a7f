"""Orders to do something in the world."""

from __future__ import annotations

import time

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api
from toolsrv_runtime.formats.compact.acts import is_act, may_serve

OURS = load_offline_catalog().apis
MAIL = Api(
    id="Email/post/send_mail",
    category="Email",
    tool="Post",
    name="Send mail",
    description="Sends it.",
)


@pytest.mark.parametrize(
    "part",
    [
        "email both to bob@example.com",
        "then email anna@example.org",
        "text my brother the result",
        "call my sister in Lima",
        "and book us a table for two",
        "send it to the printer",
        "send him a postcard",
        "set an alarm for 7",
        "remind me to water the plants",
        "pay the plumber",
    ],
)
def test_no_function_that_looks_something_up_serves_an_order_to_act(part: str) -> None:
    assert is_act(part)
    assert not any(may_serve(part, api) for api in OURS if api.tool != "Phone Inspector")
    assert may_serve(part, MAIL) is ("mail" in part or "send" in part or part.startswith("text"))


@pytest.mark.parametrize(
    "part",
    [
        "text in capitals",
        "how do I call Peru by phone",
        "send SOS in Morse code",
        "remind me what currency Peru uses",
        "order these names",
        "email addresses in this text",
        "the book with ISBN 3161484100",
        "set theory",
        "message length",
    ],
)
def test_other_words_may_be_served_by_anything(part: str) -> None:
    assert not is_act(part)
    assert all(may_serve(part, api) for api in OURS)


def test_long_words_are_read_in_time() -> None:
    before = time.perf_counter()
    assert not is_act("and then " * 50_000)
    assert time.perf_counter() - before < 2
