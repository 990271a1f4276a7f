"""Common divisors and multiples of three numbers or more, and primes by their place. Pure.

Functions for divisors take two numbers, those for primes judge one; a calculator does the rest:
"the lcm of 4, 6 and 10" is lcm(4 6 10), "the 15th prime" prime(15).
"""

from __future__ import annotations

import re

from toolsrv_runtime.values.lexicon import DAY_ORDINAL_PATTERN, DAY_ORDINALS

_NUMBER = r"[1-9]\d{0,11}"
_MULTIPLE = r"lcm|(?:least|lowest|smallest) common multiple"
_DIVISOR = r"gcd|gcf|hcf|(?:greatest|highest|largest|biggest) common (?:divisor|factor|denominator)"
_SEVERAL = re.compile(
    rf"(?:\b(?:the )?)(?:(?P<multiple>{_MULTIPLE})|(?P<divisor>{_DIVISOR}))(?: ?\([a-z]{{3}}\))?"
    rf" (?:of|for|between|from) (?:the )?(?:three |four |five )?(?:numbers )?"
    rf"(?P<list>{_NUMBER}(?:(?:, ?(?:and )?|,? (?:and|&) ){_NUMBER}){{2,9}})(?![\w%/-]|[.,]\d)",
    re.IGNORECASE,
)
_PRIME = re.compile(
    rf"\b(?:the )?(?:(?P<digits>\d{{1,5}})(?:st|nd|rd|th)|(?P<word>{DAY_ORDINAL_PATTERN}))"
    r" (?:smallest )?prime(?: number)?\b(?! (?:minister|factor|rib|time|suspect)\b|-)",
    re.IGNORECASE,
)


def as_calls(text: str) -> str:
    """Return a text with such questions as ``arithmetic`` reads them; O(length)."""
    return _PRIME.sub(_place, _SEVERAL.sub(_call, text))


def _call(match: re.Match[str]) -> str:
    numbers = " ".join(re.findall(_NUMBER, match["list"]))  # commas would part them
    return f"{'lcm' if match['multiple'] else 'gcd'}({numbers})"


def _place(match: re.Match[str]) -> str:
    if match["digits"]:
        return f"prime({int(match['digits'])})"
    return f"prime({DAY_ORDINALS[match['word'].lower().replace('-', ' ')]})"
