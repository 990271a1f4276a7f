"""Fractions that are one character: "½", "⅓". Data only."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from fractions import Fraction

SIGNS: Mapping[str, Fraction] = {
    sign: Fraction(unicodedata.numeric(sign)).limit_denominator(10)
    for sign in map(chr, (*range(0xBC, 0xBF), *range(0x2150, 0x215F)))
}
ANY_SIGN = f"[{''.join(SIGNS)}]"
"""Pattern of one of them."""
