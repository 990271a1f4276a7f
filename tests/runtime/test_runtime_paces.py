"""Paces for the other unit, which race a result is of, and into how many networks one is split."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import paces, races, subnets
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}


def read(rule: str, function: str, name: str, text: str) -> str:
    api = APIS[function]
    parameter = next(one for one in api.parameters if one.name == name)
    told = {"paces": paces.told, "races": races.told, "subnets": subnets.told}[rule]
    return told(parameter, api, Wish(text, task=text))


@pytest.mark.parametrize(
    ("text", "pace"),
    [
        ("how long for a 10k at 8:30 a mile", "5:17"),
        ("8:30/mi", "5:17"),
        ("9-minute miles", "5:36"),
        ("10 minutes per mile", "6:13"),
        ("a nine minute mile pace", "5:36"),
        ("six minutes per kilometre", "6:00"),
        ("at 5:30 per km", ""),
        ("10 miles at 5:30 per km", ""),
        ("a 10 mile race", ""),
        ("8:30 a mile or 9:00 a mile", ""),
    ],
)
def test_a_pace_per_mile_is_told_per_kilometer(text: str, pace: str) -> None:
    assert read("paces", "finish_time", "pace", text) == pace


def test_a_pace_per_kilometer_is_told_per_mile_where_that_is_meant() -> None:
    api = Api(id="s/r/p", category="s", tool="r", name="p")
    pace = Parameter(name="pace", description="Time per mile")
    assert paces.told(pace, api, Wish("5:00 per km", task="5:00 per km")) == "8:03"
    assert paces.told(Parameter(name="pace"), api, Wish("5:00 per km", task="")) == ""
    assert read("paces", "finish_time", "distance", "9-minute miles") == ""


@pytest.mark.parametrize(
    ("text", "race"),
    [
        ("predict my marathon time from a 1:45 half", "half marathon"),
        ("my 10k in 44:30, what could I run over a half marathon", "10k"),
        ("my half marathon PB is 1:52:10", "half marathon"),
        ("predict a 10k from 22:30 for 5 km", "5 km"),
        ("a 1:45 half and a 44:30 10k", ""),
        ("predict my marathon time", ""),
    ],
)
def test_a_result_is_of_the_race_beside_it(text: str, race: str) -> None:
    assert read("races", "predict_race_time", "known_distance", text) == race
    assert read("races", "predict_race_time", "race_distance", text) == ""
    assert read("races", "running_pace", "distance", text) == ""


@pytest.mark.parametrize(
    ("text", "run", "goal", "pace"),
    [
        (
            "I run 10 km in 52:30. What would a half marathon take at that pace?",
            "10 km",
            "half marathon",
            "5:15",
        ),
        ("My 5k was 24:10. At the same pace, how long for 12 km?", "5k", "12 km", "4:50"),
        (
            "A 1:45 half! At this speed, what would a marathon take?",
            "half marathon",
            "marathon",
            "4:59",
        ),
        ("10 miles in 1:20:00; at that pace, 30 km take", "10 miles", "30 km", "4:58"),
        ("10 km in 52:30 and 5 km in 24:00; at that pace, 30 km take", "", "", ""),  # which?
        ("at that pace, how long for 30 km", "", "", ""),
        ("10 km in 52:30. How long for 30 km?", "", "", ""),  # nobody keeps it
        ("10 km in 52:30. At that pace, 20 km and 30 km?", "10 km", "", "5:15"),
    ],
)
def test_the_same_pace_is_that_of_the_result(text: str, run: str, goal: str, pace: str) -> None:
    def told(rule: str, function: str, name: str) -> str:
        api = APIS[function]
        parameter = next(one for one in api.parameters if one.name == name)
        return {"distance": races.at_pace, "pace": races.pace}[rule](
            parameter, api, Wish(text, task=text)
        )

    assert told("distance", "running_pace", "distance") == run
    assert told("distance", "finish_time", "distance") == goal
    assert told("pace", "finish_time", "pace") == pace
    assert told("distance", "predict_race_time", "race_distance") == ""
    assert told("pace", "running_pace", "time") == ""


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("split 10.0.0.0/24 into 4 subnets", "26"),
        ("divide 172.16.0.0/20 into eight equal networks", "23"),
        ("cut 10.0.0.0/24 into 5 parts", "27"),
        ("split 10.0.0.0/8 in half", ""),
        ("split 10.0.0.0/8 into half", "9"),
        ("break 2001:db8::/32 into 16 subnets", "36"),
        ("split 10.0.0.0/24 into /26 networks", ""),
        ("split 10.0.0.0/24 into one network", ""),
        ("10.0.0.0/24 and 10.1.0.0/24 into 4 subnets", ""),
    ],
)
def test_so_many_networks_have_a_prefix(text: str, prefix: str) -> None:
    assert read("subnets", "split_network", "prefix", text) == prefix


def test_a_network_has_no_article() -> None:
    assert kinds.normalise_value("network", "a /27") == "/27"
    assert kinds.normalise_value("network", "the 10.0.0.0/8") == "10.0.0.0/8"
