"""World Words: numbers, dates and names in other languages. Library: num2words, babel."""

from __future__ import annotations

from typing import Annotated

from babel import Locale
from babel.dates import format_date
from num2words import num2words

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, NotFoundError, choice
from toolsrv_catalogs.offline.values.country import CountryName
from toolsrv_catalogs.offline.values.day import Date
from toolsrv_catalogs.offline.values.locale_names import Language
from toolsrv_catalogs.offline.values.number import whole

tool = Endpoints()
_ENGLISH = Locale("en")
_NUM2WORDS = {"nb": "no", "nn": "no"}


def _english_name(language: Locale) -> str:
    return str(_ENGLISH.languages.get(language.language, language.language))


@tool.get("/number")
def number_to_words(
    number: Annotated[int, whole(-(10**12), 10**12)],
    language: Language | None = None,
    form: Annotated[str, choice("cardinal", "ordinal")] = "cardinal",
) -> Answer:
    locale = language or _ENGLISH
    code = _NUM2WORDS.get(locale.language, locale.language)
    try:
        words = num2words(number, lang=code, to=form)
    except (NotImplementedError, TypeError, ValueError, OverflowError, LookupError):
        raise NotFoundError(
            f"{number} has no {form} in words for {_english_name(locale)} here"
        ) from None
    return {"number": number, "language": _english_name(locale), "words": words}


@tool.get("/country_name")
def country_in_language(country: CountryName, language: Language) -> Answer:
    name = language.territories.get(country["iso"])
    if name is None:
        raise NotFoundError(f"no name for {country['name']} in {_english_name(language)} here")
    return {
        "country": country["name"],
        "language": _english_name(language),
        "translated_name": str(name),
    }


@tool.get("/date")
def date_in_language(date: Date, language: Language) -> Answer:
    return {
        "date": str(date),
        "language": _english_name(language),
        "written_date": format_date(date, format="full", locale=language),
    }


@tool.get("/language")
def language_info(language: Language) -> Answer:
    return {
        "language": _english_name(language),
        "code": language.language,
        "own_name": str(language.languages.get(language.language, "unknown")),
        "writing_direction": "right to left"
        if language.character_order.startswith("right")
        else "left to right",
    }


@tool.get("/months")
def month_names(language: Language) -> Answer:
    names = language.months["stand-alone"]["wide"]
    return {
        "language": _english_name(language),
        "months": [str(names[number]) for number in sorted(names)],
    }
