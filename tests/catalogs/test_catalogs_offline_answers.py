"""Known answers, through real requests."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import httpx
import pytest

from toolsrv_catalogs.offline import OFFLINE_HOST, create_app
from toolsrv_catalogs.offline.testing import OfflineClient

# path, query, what the answer must hold
_KNOWN: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    # time and calendar
    (
        "/world_clock/convert_time",
        {"time": "2026-07-01 12:00", "from_zone": "London", "to_zone": "Tokyo"},
        {"converted_time": "2026-07-01 20:00", "weekday": "Wednesday"},
    ),
    (
        "/world_clock/time_difference",
        {"from_city": "London", "to_city": "Kathmandu", "date": "2026-01-15"},
        {"hours_difference": 5.75},
    ),
    ("/world_clock/zone", {"zone": "Europe/Oslo", "date": "2026-07-01"}, {"utc_offset": "+02:00"}),
    (
        "/public_holidays/check",
        {"country": "Norway", "date": "17 May 2026"},
        {"is_holiday": True, "holiday": "Constitution Day"},
    ),
    (
        "/public_holidays/check",
        {"country": "Norway", "date": "2026-05-18"},
        {"is_holiday": False, "holiday": "none"},
    ),
    (
        "/public_holidays/find",
        {"country": "US", "holiday": "Thanksgiving", "year": "2026"},
        {"date": "2026-11-26", "weekday": "Thursday"},
    ),
    (
        "/public_holidays/find",
        {"country": "US", "holiday": "independence day", "year": "2025"},
        {"date": "2025-07-04"},
    ),
    (
        "/public_holidays/next",
        {"country": "Norway", "date": "2026-12-27"},
        {"next_holiday": "New Year's Day", "date": "2027-01-01", "days_until": 5},
    ),
    (
        "/public_holidays/working_days",
        {"start": "2026-05-11", "end": "2026-05-17", "country": "Norway"},
        {"working_days": 4},
    ),
    ("/public_holidays/easter/2027", {}, {"easter_sunday": "2027-03-28"}),
    (
        "/date_calculator/days_between",
        {"start": "1 January 2024", "end": "1 January 2025"},
        {"days": 366},
    ),
    (
        "/date_calculator/add",
        {"date": "2026-01-31", "amount": "1", "unit": "months"},
        {"result": "2026-02-28"},
    ),
    (
        "/date_calculator/add",
        {"date": "2026-03-01", "amount": "-1"},
        {"result": "2026-02-28", "weekday": "Saturday"},
    ),
    ("/date_calculator/weekday", {"date": "July 20, 1969"}, {"weekday": "Sunday"}),
    ("/date_calculator/week_number", {"date": "2027-01-01"}, {"week_number": 53, "iso_year": 2026}),
    (
        "/date_calculator/age",
        {"birth_date": "2000-02-29", "on": "2026-02-27"},
        {"age": 25},
    ),
    # dateutil keeps a leap day's birthday on 28 February in common years.
    ("/date_calculator/age", {"birth_date": "2000-02-29", "on": "2026-02-28"}, {"age": 26}),
    ("/date_calculator/leap_year/1900", {}, {"leap_year": False}),
    ("/date_calculator/unix", {"timestamp": "0"}, {"utc_time": "1970-01-01 00:00:00"}),
    # places
    ("/country_facts/UK/capital", {}, {"country": "United Kingdom", "capital": "London"}),
    ("/country_facts/Japan/currency", {}, {"currency_code": "JPY", "currency_name": "Japanese Yen"}),
    ("/country_facts/Brazil/languages", {}, {"main_language": "Portuguese"}),
    ("/country_facts/Germany/codes", {}, {"iso2": "DE", "iso3": "DEU", "numeric": "276"}),
    ("/country_facts/no/flag", {}, {"flag": "🇳🇴"}),
    ("/country_facts/Portugal/neighbours", {}, {"count": 1, "neighbours": ["Spain"]}),
    ("/country_facts/Kenya/continent", {}, {"continent": "Africa"}),
    ("/city_finder/city", {"city": "tromso"}, {"city": "Tromsø", "country": "Norway"}),
    (
        "/city_finder/nearest",
        {"latitude": "48.2", "longitude": "16.4"},
        {"nearest_city": "Vienna"},
    ),
    ("/airport_guide/code/osl", {}, {"airport": "Oslo Gardermoen Airport", "country": "Norway"}),
    ("/airport_guide/code/KJFK", {}, {"code": "JFK"}),
    ("/ip_toolkit/address", {"address": "224.0.0.5"}, {"kind": "multicast", "public": False}),
    ("/ip_toolkit/address", {"address": "100.64.12.9"}, {"kind": "shared", "public": False}),
    # races and units
    (
        "/running_coach/finish_time",
        {"distance": "half marathon", "pace": "5:00"},
        {"distance_km": 21.098, "finish_time": "1:45:29"},
    ),
    ("/unit_converter/describe", {"unit": "pascal"}, {"measures": "mass / length / time ** 2"}),
    # sky and weather
    ("/sun_and_moon/moon_phase", {"date": "2026-01-03"}, {"moon_phase": "full moon"}),
    ("/sun_and_moon/moon_phase", {"date": "2024-04-08"}, {"moon_phase": "new moon"}),
    (
        "/sun_and_moon/sunrise_sunset",
        {"city": "Tromsø", "date": "2026-06-21"},
        {"sunrise": "none", "note": "the sun does not set"},
    ),
    (
        "/sun_and_moon/day_length",
        {"city": "Tromsø", "date": "2026-12-21"},
        {"minutes_of_daylight": 0},
    ),
    (
        "/weather_formulas/wind_chill",
        {"temperature_c": "-10", "wind_kmh": "20"},
        {"feels_like_c": -17.9},
    ),
    ("/weather_formulas/beaufort", {"wind_kmh": "120"}, {"beaufort_force": 12}),
    # measures
    (
        "/unit_converter/convert",
        {"amount": "1", "from_unit": "miles", "to_unit": "km"},
        {"result": 1.609344, "to_unit": "kilometer"},
    ),
    (
        "/unit_converter/convert",
        {"amount": "3", "from_unit": "kilos", "to_unit": "grams"},
        {"result": 3000},
    ),
    (
        "/unit_converter/convert",
        {"amount": "1,200", "from_unit": "square feet", "to_unit": "m2"},
        {"result": 111.48365},
    ),
    (
        "/unit_converter/convert",
        {"amount": "100", "from_unit": "km/h", "to_unit": "mph"},
        {"result": 62.137119},
    ),
    (
        "/unit_converter/convert",
        {"amount": "20", "from_unit": "celsius", "to_unit": "fahrenheit"},
        {"result": 68},
    ),
    (
        "/unit_converter/temperature",
        {"temperature": "-40", "from_scale": "Celsius", "to_scale": "fahrenheit"},
        {"result": -40},
    ),
    (
        "/unit_converter/temperature",
        {"temperature": "0", "from_scale": "\u00b0C", "to_scale": "K"},
        {"result": 273.15},
    ),
    ("/kitchen_helper/oven_temperature", {"temperature": "180", "scale": "celsius"}, {"gas_mark": 4}),
    (
        "/kitchen_helper/split_bill",
        {"bill": "$120", "people": "4", "tip_percent": "20"},
        {"tip": 24, "total": 144, "per_person": 36},
    ),
    # numbers of things
    (
        "/phone_inspector/validate",
        {"number": "22 22 55 55", "country": "Norway"},
        {"number": "+47 22 22 55 55", "valid": True, "country": "Norway", "place": "Oslo"},
    ),
    ("/phone_inspector/format", {"number": "+14155552671", "style": "national"}, {"formatted": "(415) 555-2671"}),
    ("/phone_inspector/code_owner", {"calling_code": "+81"}, {"country": "Japan"}),
    ("/book_numbers/isbn/check", {"isbn_number": "9780306406157"}, {"valid": True, "kind": "ISBN13"}),
    ("/book_numbers/isbn/check", {"isbn_number": "9780306406158"}, {"valid": False, "kind": "none"}),
    ("/book_numbers/isbn/convert", {"isbn_number": "0306406152"}, {"isbn13": "9780306406157"}),
    ("/book_numbers/barcode/check", {"barcode": "4006381333932"}, {"valid": False, "expected_check_digit": "1"}),
    ("/payment_checks/iban", {"iban_number": "NO93 8601 1117 947"}, {"valid": True, "country": "Norway"}),
    ("/payment_checks/iban", {"iban_number": "GB82WEST12345698765433"}, {"valid": False}),
    ("/payment_checks/iban", {"iban_number": "BE68 5390 0754 7034"}, {"valid": True, "country": "Belgium"}),
    ("/payment_checks/iban", {"iban_number": "BE68 5390 0754 7035"}, {"valid": False}),
    ("/payment_checks/iban", {"iban_number": "XX68 5390 0754 7034"}, {"valid": False}),
    ("/payment_checks/card", {"card_number": "4111111111111111"}, {"valid": True, "brand": "Visa", "card_ending": "1111"}),
    ("/payment_checks/card", {"card_number": "4111111111111112"}, {"valid": False}),
    ("/payment_checks/bic", {"bic_code": "DNBANOKK"}, {"valid": True, "country": "Norway"}),
    ("/company_numbers/vat", {"vat_number": "136695976", "country": "Germany"}, {"valid": True, "country": "Germany"}),
    ("/company_numbers/vat", {"vat_number": "DE136695977"}, {"valid": False}),
    # text
    ("/text_insights/statistics", {"text": "One two. Three!"}, {"words": 3, "sentences": 2}),
    ("/text_insights/palindrome", {"text": "A man, a plan, a canal: Panama"}, {"is_palindrome": True}),
    ("/text_insights/palindrome", {"text": "toolsrv"}, {"is_palindrome": False}),
    ("/text_insights/anagram", {"first": "Dormitory", "second": "dirty room"}, {"are_anagrams": True}),
    ("/text_insights/count", {"text": "strawberry", "find": "r"}, {"occurrences": 3}),
    ("/text_case_studio/case", {"text": "Hello big World", "case": "camel"}, {"result": "helloBigWorld"}),
    ("/text_case_studio/case", {"text": "someValueHere", "case": "snake"}, {"result": "some_value_here"}),
    ("/text_case_studio/slug", {"text": "Crème brûlée & more"}, {"slug": "creme-brulee-more"}),
    ("/signal_desk/morse/encode", {"text": "SOS now"}, {"morse": "... --- ... / -. --- .--"}),
    ("/signal_desk/morse/decode", {"morse": ".... .. / - .... . .-. ."}, {"text": "HI THERE"}),
    ("/codec_box/base64/decode", {"encoded": "aGVsbG8"}, {"text": "hello"}),
    ("/codec_box/caesar", {"text": "Nggnpx!"}, {"result": "Attack!"}),
    (
        "/codec_box/hash",
        {"text": "hello", "algorithm": "md5"},
        {"hash": hashlib.md5(b"hello", usedforsecurity=False).hexdigest()},
    ),
    # colours, networks, mathematics
    ("/color_lab/hex", {"color": "Dark Orange"}, {"hex": "#ff8c00"}),
    ("/color_lab/name", {"hex": "ff0001"}, {"color_name": "red", "exact": False}),
    ("/color_lab/contrast", {"foreground": "black", "background": "white"}, {"contrast_ratio": 21}),
    ("/ip_toolkit/network", {"network": "10.0.0.5/30"}, {"network": "10.0.0.4/30", "usable_hosts": 2}),
    ("/signal_desk/spelling", {"text": "Von " * 40}, {"spelling": " ".join(["Victor Oscar November"] * 40)}),
    ("/ip_toolkit/network", {"network": "/26"}, {"netmask": "255.255.255.192", "usable_hosts": 62}),
    ("/ip_toolkit/address", {"address": "::1"}, {"version": 6, "kind": "loopback"}),
    ("/math_desk/prime/999999999989", {}, {"is_prime": True}),
    ("/math_desk/prime/1", {}, {"is_prime": False}),
    ("/math_desk/factors", {"number": "1,001"}, {"prime_factors": "7 x 11 x 13"}),
    ("/math_desk/calculate", {"expression": "15% of 80 + 2^3"}, {"result": 20}),
    ("/math_desk/roman/decode", {"roman": "mmxxvi"}, {"number": 2026}),
    ("/math_desk/base", {"number": "ff", "from_base": "16", "to_base": "2"}, {"result": "11111111"}),
    ("/math_desk/statistics", {"numbers": "2, 4, 4, 4, 5, 5, 7, 9"}, {"mean": 5, "median": 4.5}),
    (
        "/money_planner/loan_payment",
        {"loan": "200,000", "rate": "4.5%", "years": "30"},
        {"monthly_payment": 1013.37},
    ),
    ("/money_planner/loan_payment", {"loan": "1200", "rate": "0", "years": "1"}, {"monthly_payment": 100}),
    ("/money_planner/savings_goal", {"goal": "1000", "monthly_saving": "100"}, {"months_needed": 10}),
    ("/currency_facts/info", {"currency": "yen"}, {"currency_code": "JPY", "decimals": 0}),
    # people, sport, science, music, energy, roads
    ("/body_metrics/bmi", {"weight": "154 lb", "height": "5'9\""}, {"bmi": 22.7}),
    ("/body_metrics/bmi", {"weight": "11 stone 4", "height": "1 m 75"}, {"bmi": 23.4}),
    ("/body_metrics/bmi", {"weight": "70", "height": "1.75"}, {"bmi": 22.9, "category": "normal weight"}),
    ("/running_coach/pace", {"distance": "10k", "time": "52:30"}, {"pace_per_km": "5:15"}),
    ("/running_coach/pace", {"distance": "half marathon", "time": "1:45"},
     {"time": "1:45:00", "pace_per_km": "4:59"}),
    ("/running_coach/pace", {"distance": "400 m", "time": "1:05"}, {"pace_per_km": "2:42"}),
    ("/running_coach/predict",
     {"known_distance": "half marathon", "known_time": "1:45", "race_distance": "marathon"},
     {"predicted_time": "3:38:55"}),
    ("/road_trip/fuel_cost", {"distance": "300 km", "liters_per_100km": "6.5"},
     {"distance_km": 300, "liters": 19.5}),
    ("/power_meter/cost", {"watts": "60", "hours_per_day": "5"}, {"kwh_per_year": 109.5}),
    ("/country_facts/Kazakhstan/capital", {}, {"capital": "Astana"}),
    ("/chemistry_bench/molar_mass", {"formula": "ethane"}, {"formula": "C2H6"}),
    ("/chemistry_bench/molar_mass", {"formula": "tungsten"}, {"formula": "W", "molar_mass_g_per_mol": 183.84}),
    ("/chemistry_bench/molar_mass", {"formula": "Aluminum"}, {"formula": "Al"}),
    ("/chemistry_bench/molar_mass", {"formula": "oxygen"}, {"formula": "O2"}),
    ("/chemistry_bench/molar_mass", {"formula": "nacl"}, {"formula": "NaCl"}),
    ("/kitchen_helper/ingredient_weight", {"ingredient": "milk", "amount": "1", "unit": "pints"},
     {"grams": 488}),
    ("/text_insights/statistics", {"text": "I like pie. Pie is good"}, {"sentences": 2}),
    ("/text_insights/statistics", {"text": "One! Two? (Three.) Four..."}, {"sentences": 4}),
    ("/running_coach/finish_time", {"distance": "42.195 km", "pace": "5:00"}, {"finish_time": "3:30:58"}),
    ("/chemistry_bench/element/Fe", {}, {"element": "Iron", "atomic_number": 26}),
    ("/chemistry_bench/molar_mass", {"formula": "water"}, {"formula": "H2O", "molar_mass_g_per_mol": 18.015}),
    ("/music_theory/frequency", {"note": "A4"}, {"frequency_hz": 440, "midi_number": 69}),
    ("/music_theory/scale", {"root": "F"}, {"notes": "F G A Bb C D E"}),
    ("/music_theory/chord", {"root": "C", "kind": "minor"}, {"notes": "C Eb G"}),
    ("/music_theory/chord", {"root": "Bb", "kind": "seventh"}, {"notes": "Bb D F Ab"}),
    ("/music_theory/scale", {"root": "E flat", "kind": "harmonic_minor"},
     {"root": "Eb", "notes": "Eb F Gb Ab Bb Cb D"}),
    ("/music_theory/scale", {"root": "F#"}, {"notes": "F# G# A# B C# D# E#"}),
    ("/music_theory/scale", {"root": "E", "kind": "blues"}, {"notes": "E G A Bb B D"}),
    ("/world_words/number", {"number": "21", "language": "German"}, {"words": "einundzwanzig"}),
    ("/world_words/number", {"number": "3", "form": "ordinal"}, {"words": "third"}),
    ("/world_words/country_name", {"country": "Germany", "language": "French"}, {"translated_name": "Allemagne"}),
    ("/world_words/date", {"date": "2026-12-24", "language": "Norwegian"}, {"written_date": "torsdag 24. desember 2026"}),
    ("/power_meter/ohms_law", {"volts": "230", "amps": "2"}, {"watts": 460, "ohms": 115}),
    ("/road_trip/economy", {"value": "30", "unit": "mpg us"}, {"liters_per_100km": 7.84}),
    ("/game_table/zodiac", {"birth_date": "1990-12-25"}, {"zodiac_sign": "Capricorn"}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "query", "expected"), _KNOWN)
def test_known_answers_hold(
    offline: OfflineClient, path: str, query: dict[str, str], expected: dict[str, Any]
) -> None:
    answer = offline.answer(path, **query)
    assert {key: answer.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("first", "second", "km"),
    [("Paris", "Berlin", 878), ("New York", "London", 5570), ("Oslo", "Bergen", 305)],
)
def test_distances_are_near_the_known_ones(
    offline: OfflineClient, first: str, second: str, km: float
) -> None:
    answer = offline.answer("/city_finder/distance", from_city=first, to_city=second)
    assert answer["distance_km"] == pytest.approx(km, abs=10)
    assert answer["distance_miles"] == pytest.approx(km / 1.609, abs=7)


def test_sunrise_in_oslo_at_midsummer_is_near_the_almanac(offline: OfflineClient) -> None:
    answer = offline.answer("/sun_and_moon/sunrise_sunset", city="Oslo", date="2026-06-21")
    assert "03:50" <= answer["sunrise"] <= "03:58"
    assert "22:40" <= answer["sunset"] <= "22:48"


@pytest.mark.parametrize(
    ("country", "date", "holiday"),
    [
        ("Northern Ireland", "2027-07-12", True),
        ("Northern Ireland", "2027-03-17", True),
        ("Scotland", "2026-01-02", True),
        ("England", "2026-01-02", False),
        ("the UK", "2027-07-12", False),
    ],
)
def test_parts_of_the_united_kingdom_have_days_of_their_own(
    offline: OfflineClient, country: str, date: str, holiday: bool
) -> None:
    answer = offline.answer("/public_holidays/check", country=country, date=date)
    name = "United Kingdom" if country == "the UK" else country
    assert (answer["country"], answer["is_holiday"]) == (name, holiday)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2^64", 18_446_744_073_709_551_616),
        ("1/3", 0.333333333333),
        ("1234567890123.5 * 1", 1_234_567_890_124),
        ("sqrt(2)^2", 2),
    ],
)
def test_a_result_has_no_digits_that_are_not_known(
    offline: OfflineClient, expression: str, result: float
) -> None:
    assert offline.answer("/math_desk/calculate", expression=expression)["result"] == result


@pytest.mark.parametrize(
    ("date", "new", "full"),
    [
        # By the almanac, in UTC.
        ("2026-01-01", "2026-01-18", "2026-01-03"),
        ("2026-11-25", "2026-12-09", "2026-12-24"),
        ("2024-04-08", "2024-04-08", "2024-04-23"),
        ("1977-02-12", "1977-02-18", "1977-03-05"),
    ],
)
def test_the_next_new_and_full_moon_are_told(
    offline: OfflineClient, date: str, new: str, full: str
) -> None:
    answer = offline.answer("/sun_and_moon/moon_phase", date=date)
    assert (answer["next_new_moon"], answer["next_full_moon"]) == (new, full)


def test_a_network_that_is_only_a_size_has_no_addresses(offline: OfflineClient) -> None:
    answer = offline.answer("/ip_toolkit/network", network="/28")
    assert answer == {"network": "any /28", "netmask": "255.255.255.240", "usable_hosts": 14}
    parts = offline.answer("/ip_toolkit/split", network="/28", prefix="30")
    assert parts == {"network": "any /28", "prefix": 30, "count": 4}
    offline.error(422, "/ip_toolkit/split", network="/28", prefix="27")
    offline.error(422, "/ip_toolkit/network", network="/33")
    offline.error(422, "/ip_toolkit/contains", network="/28", address="10.0.0.1")


def test_binary_is_not_read_as_hexadecimal(offline: OfflineClient) -> None:
    assert offline.get("/codec_box/hex/decode", encoded="0b1011").status_code == 422
    assert "Hi" in offline.answer("/codec_box/hex/decode", encoded="0x4869").values()


def test_airports_of_a_city_hold_the_main_ones(offline: OfflineClient) -> None:
    airports = offline.answer("/airport_guide/city", city="New York")["airports"]
    assert {"JFK", "LGA", "EWR"} <= {airport[:3] for airport in airports}


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/sample_data/person", {"style": "german"}),
        ("/sample_data/address", {}),
        ("/sample_data/company", {}),
        ("/sample_data/lorem", {"sentences": "2"}),
        ("/password_lab/generate", {"length": "20"}),
        ("/password_lab/passphrase", {}),
        ("/password_lab/uuid", {}),
        ("/game_table/dice", {"dice": "9d1000"}),
        ("/game_table/number", {"minimum": "1", "maximum": "1000000"}),
    ],
)
def test_a_seed_repeats_chance_and_no_seed_does_not(
    offline: OfflineClient, path: str, query: dict[str, str]
) -> None:
    assert offline.answer(path, seed="7", **query) == offline.answer(path, seed="7", **query)
    drawn = {str(offline.answer(path, **query)) for _ in range(5)}
    assert len(drawn) > 1


def test_a_qr_code_holds_its_text_and_is_svg(offline: OfflineClient) -> None:
    answer = offline.answer("/qr_maker/svg", text="https://example.com")
    assert answer["svg"].startswith("<svg ")
    assert answer["text"] == "https://example.com"


def test_the_card_number_itself_is_never_repeated(offline: OfflineClient) -> None:
    response = offline.get("/payment_checks/card", card_number="4111 1111 1111 1111")
    assert "411111" not in response.text.replace(" ", "")


def test_many_requests_at_once_are_all_answered() -> None:
    wanted = [(path, query, expected) for path, query, expected in _KNOWN for _ in range(2)]

    async def burst() -> list[httpx.Response]:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app()), base_url=f"https://{OFFLINE_HOST}"
        ) as client:
            return await asyncio.gather(*(client.get(path, params=q) for path, q, _ in wanted))

    for response, (path, _, expected) in zip(asyncio.run(burst()), wanted, strict=True):
        assert response.status_code == 200, path
        body = response.json()
        assert {key: body.get(key) for key in expected} == expected
