"""Currency Facts: names, symbols and spelling of amounts; no exchange rates. Library: babel."""

from __future__ import annotations

from babel import Locale
from babel.numbers import format_currency, get_currency_precision, get_currency_symbol

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.country import countries
from toolsrv_catalogs.offline.values.locale_names import Currency, Language, currency_names
from toolsrv_catalogs.offline.values.number import Number, tidy

tool = Endpoints()
_LISTED = 310
"""Characters of a list of countries; an answer is small."""

_ENGLISH = Locale("en", "US")


@tool.get("/info")
def currency_info(currency: Currency) -> Answer:
    return {
        "currency_code": currency,
        "currency_name": currency_names().get(currency, currency),
        "symbol": get_currency_symbol(currency, locale=_ENGLISH),
        "decimals": get_currency_precision(currency),
    }


@tool.get("/format")
def format_amount(amount: Number, currency: Currency, language: Language | None = None) -> Answer:
    return {
        "amount": tidy(amount),
        "currency_code": currency,
        "formatted": format_currency(amount, currency, locale=language or _ENGLISH),
    }


@tool.get("/countries")
def currency_countries(currency: Currency) -> Answer:
    # The most populous first: what is not listed are the small ones.
    rows = sorted(countries().values(), key=lambda row: (-row["population"], row["name"]))
    names = [row["name"] for row in rows if row["currencycode"] == currency]
    listed = [name for at, name in enumerate(names) if len(", ".join(names[: at + 1])) <= _LISTED]
    answer: Answer = {"currency_code": currency, "count": len(names), "countries": listed}
    if len(listed) < len(names):
        answer["not_listed"] = len(names) - len(listed)
    return answer
