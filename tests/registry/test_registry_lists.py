"""Texts that list several needs: each need has an API among the first five.

The catalog is the one that ships. The texts are lists as people write them, each with, per need,
the tools or APIs of which one must be there (parts of ids).
"""

from __future__ import annotations

import pytest

from toolsrv_registry.registry import Registry

LISTS = (
    ("the capital of Peru, a strong password and a coin flip",
     ("capital_city", "generate_pass", "flip_coin")),
    ("roll two dice and the moon phase tonight and the hex code of teal",
     ("roll_dice", "moon_phase", "color_to_hex")),
    ("population of Kenya, its flag and the time in Nairobi",
     ("population_and_area", "country_flag", "current_time")),
    ("a QR code for my wifi, a random number and the sunrise in Oslo",
     ("wifi_qr_code", "random_number", "sunrise_and_sunset")),
    ("sunset in Lisbon, next public holiday in Portugal and my body mass index",
     ("sun_and_moon", "next_holiday", "body_mass_index")),
    ("convert 5 miles to km, the square of 12 and a palindrome check of level",
     ("convert_units", "math_desk", "palindrome_check")),
    ("currency of Japan, languages of Japan and the distance between Tokyo and Osaka",
     ("national_currency", "official_languages", "distance_between_cities")),
    ("make an acronym, reverse a text and count the words of it",
     ("make_acronym", "reverse_text", "text_insights")),
    ("hash hello, encode it in base64 and say it in morse code",
     ("hash_text", "base64_encode", "morse_code")),
    ("a fake person, a fake address and some lorem ipsum",
     ("fake_person", "fake_address", "lorem_ipsum")),
    ("loan payment, compound interest and sales tax",
     ("loan_payment", "compound_interest", "sales_tax")),
    ("wind chill at -5 degrees, dew point and heat index",
     ("wind_chill", "dew_point", "heat_index")),
    ("the airport code of Madrid, the fuel cost of 300 km and a tip for a bill of 40 euros",
     ("airport", "fuel_cost", "split_bill_with_tip")),
    ("check an IBAN, a credit card number and a VAT number",
     ("check_iban", "check_card_number", "check_vat_number")),
    ("check this ISBN and validate a phone number and flip a coin",
     ("check_isbn", "validate_phone_number", "flip_coin")),
    ("Easter Sunday next year, the week number of today and my age",
     ("easter_sunday", "week_number", "calculate_age")),
    ("a banner in ASCII art, the complementary colour of red and a chord of C major",
     ("ascii_banner", "complementary_color", "chord_notes")),
    ("molar mass of water, prime factors of 84 and 2024 in Roman numerals",
     ("molar_mass", "prime_factors", "number_to_roman")),
    ("my daily calories, water intake and heart rate zones",
     ("daily_calories", "water_intake", "heart_rate_zones")),
    ("marathon pace, calories burned and the finish time of a 10k",
     ("running_pace", "calories_burned_running", "finish_time")),
    ("electricity cost of a heater, battery runtime and solar yield",
     ("electricity_cost", "battery_runtime", "solar_yield")),
    ("scale a recipe for six, the oven temperature in Celsius and the weight of a cup of flour",
     ("scale_recipe", "oven_temperature", "ingredient_weight")),
    ("what is the time in Lima and pick one of tea or coffee and a passphrase",
     ("world_clock", "pick_one", "generate_passphrase")),
    ("tell me the zodiac sign of May 4th, the weekday of that date and a golden hour for photos",
     ("zodiac_sign", "weekday_of_date", "golden_hour")),
    ("largest cities of Brazil, neighbours of Brazil and a dice roll",
     ("largest_cities", "neighbouring_countries", "roll_dice")),
    ("generate a uuid, split the network 10.0.0.0/24 and look up the airport JFK",
     ("uuid", "split_network", "airport_by_code")),
    ("number to words, month names in French and the frequency of the note A4",
     ("number_to_words", "month_names", "note_frequency")),
    ("a discount of 20 percent, an inflation forecast and the car emissions of my trip",
     ("discount", "inflation", "car_emissions")),
)  # fmt: skip


def missing(registry: Registry, text: str, needed: tuple[str, ...]) -> list[str]:
    shown = [hit.api.id for hit in registry.retriever.search(text, 2 * len(needed)).hits]
    return [need for need in needed if not any(need in api_id for api_id in shown)]


@pytest.mark.parametrize(("text", "needed"), LISTS)
def test_a_list_shows_no_more_hits_beside_its_needs_than_it_has_needs(
    registry: Registry, text: str, needed: tuple[str, ...]
) -> None:
    assert missing(registry, text, needed) == []
