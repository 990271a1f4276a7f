"""Whatever text arrives, an offline API answers in JSON, soon, and without a fault."""

from __future__ import annotations

import logging
import time
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_catalogs.offline.testing import OfflineClient
from toolsrv_registry.api import Api

_APIS = {api.id: api for api in load_offline_catalog().apis if api.parameters}
_NASTY = [
    "0", "-1", "1e308", "1e15", "-1e15", "999999999999", "9" * 60, "9" * 3900, "nan", "inf", "٣٣", "½",
    "0.0000001", "1,2,3", "null", "true", "[]", "{}", "../../etc/passwd", "' OR 1=1 --", "a/b",
    "%", "%s%n", "&a=b", "<b>", "\x00", "\u202e", "\ufeff", "\U0001f469\u200d\U0001f680", "ß", "İ",
    "(" * 2000, ")(" * 1000, "a" * 3999, "a" * 4001, "é" * 900, "1 " * 1999, ".-" * 1999,
    "2999-12-31", "1000-01-01", "December 31, 2999", "2026-02-29", "24:00", "12:00 am",
    "UTC+14", "UTC-14:59", "Norway", "Tromsø", "Paris, France", "meter", "meter^3", "kg per m per s",
    "dBm", "degC per degF", "square square meter", "H2O", "(((H)9)9)9", "H999C999", "C#4", "Gbb-1",
    "::/0", "0.0.0.0/0", "::ffff:1.2.3.4", "fe80::1%eth0", "#fff", "rgb(1,2,3)", "9d9", "100d1000",
    "+1", "+999999999999999", "0047 22225555", "5'9\"", "1h1h1h", "0:00:00", "1:00:00", "Bouvet Island",
    "AQ", "Antarctica", "en_US", "zh_Hant_TW", "root", "XXX", "XAU", "Klingon", "0x1f", "-0", "+0",
    "two", "--", "==", "=", "====", "AAAA", "////", "X-ray", "2 + 2", "9**9**9", "1/3", "tan(pi/2)",
]  # fmt: skip
_texts = st.sampled_from(_NASTY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.fixture(scope="module")
def warm(offline: OfflineClient) -> OfflineClient:
    """The application with every library and table loaded, as it is after its first minutes."""
    for api in _APIS.values():
        _request(offline, api, {p.name: str(p.default) for p in api.required})
    offline.error(404, "/world_clock/current_time", city="Xyzzyville")
    return offline


def _request(offline: OfflineClient, api: Api, values: dict[str, str]) -> tuple[int, object]:
    path = urlsplit(api.url).path
    query = []
    for name, value in values.items():
        placeholder = f"{{{name}}}"
        if placeholder in path:
            path = path.replace(placeholder, quote(value, safe=""))
        else:
            query.append((name, value))
    response = offline.request("GET", path, query)
    return response.status_code, response.json()


@pytest.mark.parametrize("api_id", _APIS)
def test_any_text_in_any_parameter_is_answered(
    warm: OfflineClient, caplog: pytest.LogCaptureFixture, api_id: str
) -> None:
    api = _APIS[api_id]
    caplog.set_level(logging.ERROR)

    @settings(
        max_examples=25,
        deadline=None,  # measured below, in processor time: wall time belongs to other processes too
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def probe(data: st.DataObject) -> None:
        values = {p.name: str(p.default) for p in api.required}
        wrong = data.draw(st.sampled_from([p.name for p in api.parameters]))
        for parameter in api.parameters:
            if parameter.name == wrong or data.draw(st.booleans()):
                values[parameter.name] = data.draw(_texts)
        start = time.process_time()
        status, body = _request(warm, api, values)
        assert time.process_time() - start < 1
        assert status in {200, 404, 422}, caplog.text
        assert isinstance(body, dict)
        assert ("error" in body) == (status != 200)

    probe()


@pytest.mark.nightly
@pytest.mark.parametrize("api_id", _APIS)
def test_each_nasty_text_in_each_parameter_is_answered(
    warm: OfflineClient, caplog: pytest.LogCaptureFixture, api_id: str
) -> None:
    api = _APIS[api_id]
    caplog.set_level(logging.ERROR)
    required = {p.name: str(p.default) for p in api.required}
    for parameter in api.parameters:
        for text in _NASTY:
            start = time.process_time()
            status, _ = _request(warm, api, {**required, parameter.name: text})
            assert time.process_time() - start < 10, (parameter.name, text)  # one that never ends
            assert status in {200, 404, 422}, (parameter.name, text, caplog.text)
