"""Currencies by their codes: the names and signs that mean that one and no other."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, tuple[str, ...]] = {
    "AUD": ("australian dollar", "australian dollars"),
    "BRL": ("brazilian real", "brazilian reais"),
    "CAD": ("canadian dollar", "canadian dollars"),
    "CHF": ("swiss franc", "swiss francs"),
    "CNY": ("chinese yuan", "renminbi"),
    "EUR": ("euro", "euros", "\u20ac"),
    "GBP": ("pound sterling", "pounds sterling", "british pound", "british pounds"),
    "INR": ("indian rupee", "indian rupees", "\u20b9"),
    "JPY": ("yen", "japanese yen"),
    "KRW": ("south korean won", "\u20a9"),
    "MXN": ("mexican peso", "mexican pesos"),
    "USD": ("us dollar", "us dollars", "united states dollar", "united states dollars"),
}
"""By ISO 4217's code, folded; what several currencies are called ("dollar", "$") is left out."""
