"""Names of other scripts in Latin letters: readable, of ASCII where models read them, stable."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry import names
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import FunctionList, parameter_keys

PLAIN = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("Прогноз погоды", "prognoz_pogody"),
        ("Курс API v2", "kurs_api_v2"),
        ("날씨", "nalssi"),
        ("てんき", "tenki"),
        ("カフェ検索", "kafue検索"),
        ("Καιρός", "kairos"),
        ("الطقس", "ltqs"),
        ("שלום", "slvm"),
        ("मौसम", "mausm"),
        ("สภาพอากาศ", "sphaphoakas"),
        ("🚀", "rocket"),
        ("ＡＰＩ", "api"),
    ],
)
def test_a_name_of_another_script_is_spelled_in_latin_letters(name: str, readable: str) -> None:
    assert names.readable_name(name) == readable


@pytest.mark.parametrize(
    "name",
    [
        "Döviz Kurları",
        "👋 Demo Project",
        "Überblick",
        "x² + y²",
        "7. Get order history",
        "天气",
        "你好 World",
        "Airports Info (α)",
        "a^b",
        "!!!",
    ],
)
def test_a_name_mainly_in_latin_letters_or_han_stays_as_toolbench_has_it(name: str) -> None:
    assert names.readable_name(name) == names.standardize(name)
    assert not names.is_respelled(name)


def test_composed_and_decomposed_letters_are_one_name() -> None:
    assert names.readable_name("Йога") == names.readable_name("Йога") == "yoga"


@given(st.text(max_size=120), st.text(max_size=120))
def test_a_function_name_has_only_what_model_servers_take(api: str, tool: str) -> None:
    assert PLAIN.fullmatch(names.plain_function_name(api, tool))


@given(st.text(max_size=60))
def test_a_readable_name_is_stable(name: str) -> None:
    once = names.readable_name(name)
    assert names.readable_name(once) == once or names.is_respelled(once)
    assert len(once) <= max(len(names.standardize(name)), names.READABLE_LIMIT)


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=80), st.text("ab_ 1", max_size=40))
def test_function_names_of_latin_names_are_toolbenchs(api: str, tool: str) -> None:
    theirs = names.function_name(api, tool)
    if PLAIN.fullmatch(theirs):
        assert names.plain_function_name(api, tool) == theirs


def one(name: str, tool: str = "Погода", **parts: object) -> Api:
    return Api.model_validate(
        {"id": f"Weather/{name}", "category": "Weather", "tool": tool, "name": name, **parts}
    )


def test_functions_of_chinese_and_cyrillic_apis_have_names_that_model_servers_take() -> None:
    listed = FunctionList([one("天气", "你好"), one("天氣", "你好"), one("сейчас"), one("Сейчас")])
    assert len(listed) == 4
    assert all(PLAIN.fullmatch(name) for name in listed.names)
    assert "seychas_for_pogoda" in listed.names


def test_arguments_of_other_scripts_have_keys_whatever_their_order() -> None:
    parameters = [Parameter(name=name) for name in ("город", "Город", "день", "gorod")]
    wanted = {key: one.name for key, one in parameter_keys(one("a", optional=parameters)).items()}
    assert wanted == {"gorod": "gorod", "gorod_2": "Город", "gorod_3": "город", "den": "день"}
    for seed in range(5):
        mixed = random.Random(seed).sample(parameters, len(parameters))
        found = parameter_keys(one("a", optional=mixed)).items()
        assert {key: one.name for key, one in found} == wanted
