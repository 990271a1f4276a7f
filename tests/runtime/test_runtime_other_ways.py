"""Functions that tell what another one would have told: found, called, and held against the truth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_catalogs.offline.testing import OfflineClient
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.bridging import Crossing
from toolsrv_runtime.planner.other_ways import of_step, searches
from toolsrv_runtime.planner.scene import Offer, Scene

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}


@pytest.fixture(scope="module")
def offline() -> Iterator[OfflineClient]:
    with OfflineClient() as client:
        yield client


def stand_in(
    apis: list[Api], arguments: dict[str, object], *, part: str = "it", down: int = 503
) -> tuple[Crossing | None, tuple[str, ...]]:
    """Call the first of some functions, which fails, and return what stands in and what is sought."""
    functions = list(FunctionList(apis))
    move = Action("", functions[0].name, json.dumps(arguments), about=part)
    step = Step(move, "", ok=False, down=down == 503)
    offers = tuple(Offer(number, one) for number, one in enumerate(functions, start=1))
    scene = Scene(part, offers, (step,), (step,), ())
    return of_step(step, scene), searches(step, scene)


@pytest.mark.parametrize(
    ("down", "arguments", "other", "told"),
    [
        ("weekday_of_date", {"date": "1989-11-09"}, "date_in_language", "Thursday"),
        ("color_to_hex", {"color": "orchid"}, "color_to_rgb", "#da70d6"),
        ("is_it_a_holiday", {"country": "Hungary", "date": "2027-08-20"}, "holidays_of_a_year",
         "2027-08-20"),
        ("next_holiday", {"country": "Hungary", "date": "2027-08-01"}, "holidays_of_a_year",
         "2027-08-20"),
        ("check_isbn", {"isbn_number": "978-0-14-143951-8"}, "check_barcode", "9780141439518"),
        ("flip_coin", {"seed": 3}, "pick_one", "heads"),
        ("roll_dice", {"dice": "1d20", "seed": 9}, "random_number", "20"),
        ("random_number", {"minimum": 1, "maximum": 50, "seed": 5}, "roll_dice", "1d50"),
        ("time_zone_details", {"zone": "Kathmandu"}, "current_time", "+05:45"),
        ("time_difference", {"from_city": "Madrid", "to_city": "Buenos Aires", "date": "2027-02-10"},
         "convert_time", "08:00"),
        ("prime_check", {"number": 91}, "prime_factors", "13"),
        ("palindrome_check", {"text": "Never odd or even"}, "reverse_text", "neve ro ddo reveN"),
        ("qr_code_svg", {"text": "https://example.org"}, "qr_code_text", "█"),
        ("qr_code_text", {"text": "https://example.org"}, "qr_code_svg", "svg"),
        ("network_contains_address", {"network": "10.1.4.0/22", "address": "10.1.7.9"},
         "network_details", "10.1.7.254"),
        ("leap_year", {"year": 2100}, "week_number", "365"),
        ("days_between_dates", {"start": "2003-06-14", "end": "2027-03-01"}, "calculate_age", "8661"),
        ("count_occurrences", {"text": "Suddenly rain. Then,\nsuddenly, sun", "find": "suddenly"},
         "word_frequency", '"suddenly": 2'),
        ("reverse_text", {"text": "lighthouse", "what": "letters"}, "palindrome_check", "esuohthgil"),
        ("slugify", {"text": "Warm Coats For All"}, "change_case", "warm-coats-for-all"),
        ("calling_code_of_country", {"country": "Iceland"}, "country_of_calling_code", "Iceland"),
        ("national_currency", {"country": "Morocco"}, "currency_information", "MAD"),
        ("convert_units", {"amount": 1, "from_unit": "acre", "to_unit": "square metres"},
         "describe_unit", "4046"),
    ],
)  # fmt: skip
def test_another_function_tells_the_same(
    down: str, arguments: dict[str, object], other: str, told: str, offline: OfflineClient
) -> None:
    part = "utc offset, code: is +354 theirs, do they pay with Moroccan dirham?"
    found, sought = stand_in([APIS[down], APIS["capital_city"], APIS[other]], arguments, part=part)
    assert found is not None
    assert found.offer.function.api is APIS[other]
    answer = offline.answer(
        urlsplit(APIS[other].url).path,
        **{key: str(value) for key, value in found.arguments.items()},
    )
    assert told in json.dumps(answer, ensure_ascii=False)
    assert len(sought) == 1


@pytest.mark.parametrize(
    ("down", "arguments", "others"),
    [
        ("weekday_of_date", {"date": "1989-11-09"}, ["capital_city", "month_names"]),
        ("current_time", {"city": "Oslo"}, ["date_in_language"]),  # told by no date
        ("check_isbn", {"isbn_number": "0-14-143951-8"}, ["check_barcode"]),
        ("roll_dice", {"dice": "3d6"}, ["random_number"]),
        ("random_number", {"minimum": 10, "maximum": 20}, ["roll_dice"]),
        ("flip_coin", {"times": 5}, ["pick_one"]),
        ("time_zone_details", {"zone": "Oslo", "date": "2027-01-05"}, ["current_time"]),
        ("time_zone_details", {"zone": "Europe/Oslo"}, ["current_time"]),
        ("capital_city", {"country": "Peru"}, ["country_codes"]),
    ],
)  # fmt: skip
def test_what_would_lose_or_change_a_value_is_not_called(
    down: str, arguments: dict[str, object], others: list[str]
) -> None:
    found, _ = stand_in([APIS[down], *(APIS[one] for one in others)], arguments, part="utc offset")
    assert found is None


def test_only_what_is_down_is_gone_round() -> None:
    apis = [APIS["weekday_of_date"], APIS["date_in_language"]]
    assert stand_in(apis, {"date": "1989-11-09"}, down=404) == (None, ())


@pytest.mark.parametrize(
    ("down", "arguments", "other", "part", "told"),
    [
        ("validate_phone_number", {"number": "+351 21 342 7755"}, "country_of_calling_code",
         "What country is that from", {"calling_code": "351"}),
        ("validate_phone_number", {"number": "+351 21 342 7755"}, "country_of_calling_code",
         "is the number valid", None),
        ("validate_phone_number", {"number": "+351213427755"}, "country_of_calling_code",
         "What country is that from", None),
        ("element_information", {"element": "Zn"}, "molar_mass", "atomic mass", {"formula": "Zn"}),
        ("element_information", {"element": "zinc"}, "molar_mass", "atomic mass", None),
        ("element_information", {"element": "Zn"}, "molar_mass", "atomic number", None),
        ("describe_unit", {"unit": "fathom"}, "convert_units", "how many metres is it",
         {"amount": "1", "from_unit": "fathom", "to_unit": "meters"}),
        ("describe_unit", {"unit": "fathom"}, "convert_units", "what is it", None),
        ("calling_code_of_country", {"country": "Iceland"}, "country_of_calling_code",
         "Is it 354 or 355", None),
        ("national_currency", {"country": "Morocco"}, "currency_information", "the code", None),
        ("count_occurrences", {"text": "to be or", "find": "to be"}, "word_frequency", "how often", None),
    ],
)  # fmt: skip
def test_what_is_asked_for_and_told_decides(
    down: str, arguments: dict[str, object], other: str, part: str, told: dict[str, str] | None
) -> None:
    found, _ = stand_in([APIS[down], APIS[other]], arguments, part=part)
    assert (found.arguments if found else None) == told


def test_a_list_of_values_is_kept_to() -> None:
    case = APIS["change_case"]
    strict = case.model_copy(
        update={"required": tuple(
            one.model_copy(update={"enum": ("upper",)}) if one.enum else one for one in case.required
        )}
    )  # fmt: skip
    assert stand_in([APIS["slugify"], strict], {"text": "Warm Coats"})[0] is None


def test_an_offset_is_asked_for_in_words() -> None:
    apis = [APIS["time_zone_details"], APIS["current_time"]]
    assert stand_in(apis, {"zone": "Oslo"}, part="is it summer time in Oslo")[0] is None


def test_functions_of_other_providers_are_known_by_their_words() -> None:
    weekday = Api(
        id="Tools/days/weekday", category="Tools", tool="days", name="Get weekday",
        description="Weekday for a date.", required=(Parameter(name="Date"),),
    )  # fmt: skip
    written = Api(
        id="Tools/i18n/date", category="Tools", tool="i18n", name="Localized",
        description="Formats a date in any language.",
        required=(Parameter(name="date"), Parameter(name="language")),
        optional=(Parameter(name="style"),),
    )  # fmt: skip
    found, sought = stand_in([weekday, written], {"Date": "2027-03-01"})
    assert found is not None
    assert found.arguments == {"date": "2027-03-01", "language": "English"}
    assert sought
