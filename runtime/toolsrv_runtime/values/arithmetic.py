"""Arithmetic in words, found in a text and parsed: "twelve times 7, minus 9". Pure.

expression = product {("+" | "-") product}
product    = power {("*" | "/") power}
power      = operand {"^" operand | "squared" | "cubed"}
operand    = number | "pi" | "(" expression ")" | "square root of" power | "sum of" list
           | "lcm(" power power ")" | "divide" power "by" power | …

Number words are text2num's. A text is parsed from each of its words on, MOST_TOKENS at most:
O(text).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from text_to_num import text2num

from toolsrv_runtime.values.lexicon import NUMBER_WORDS, ORDINALS

LENGTH_LIMIT = 160
"""Characters of one expression in words."""

MOST_TOKENS = 40
"""Numbers, words and signs of one expression."""

DEPTH_LIMIT = 20
"""Brackets and roots within each other."""

_SPELLED = f"(?:{NUMBER_WORDS})"
_NUMBER = (
    r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?![\d.]*\w)|\.\d+\b"
    rf"|{_SPELLED}(?:[ -](?:and )?{_SPELLED})*\b|pi\b|π"
)
_TOKENS = (
    ("nth", rf"to the (?:\d+(?:st|nd|rd|th)|{'|'.join(ORDINALS)}) power\b"),
    ("^", r"\^|\*\*|(?:raised )?to the power(?: of)?\b"),
    ("share", r"(?:%|percent) of\b"),
    ("+", r"\+|plus\b"),
    ("-", r"[-−–]|minus\b"),
    ("*", r"[*×·]|x(?=[\s\d(])|times\b|multiplied by\b"),
    ("/", r"[/÷]|divided by\b|over\b"),
    ("squared", r"squared\b|²"),
    ("cubed", r"cubed\b|³"),
    ("cube root", r"(?:the )?cube root of\b"),
    ("sqrt", r"(?:the )?(?:square )?root of\b|sqrt(?: of)?\b|√"),
    ("square of", r"(?:the )?square of\b"),
    ("cube of", r"(?:the )?cube of\b"),
    ("sum", r"(?:the )?sum of\b"),
    ("product", r"(?:the )?product of\b"),
    ("difference", r"(?:the )?difference (?:between|of)\b"),
    ("half", r"half of\b"),
    ("add", r"add\b"),
    ("subtract", r"subtract\b"),
    ("multiply", r"multiply\b"),
    ("divide", r"divide\b"),
    ("by", r"(?:by|with)\b"),
    ("to", r"to\b"),
    ("from", r"from\b"),
    ("call", r"(?:lcm|gcd|prime)(?=\()"),
    ("(", r"\("),
    (")", r"\)"),
    ("and", r",?\s*(?:and|then)\b(?:\s+then\b)?|,"),
    ("number", _NUMBER),
)  # fmt: skip
_TOKEN = re.compile(
    r"(?:(?<!\w)|(?!\w))(?:"
    + "|".join(f"(?P<t{at}>{one})" for at, (_, one) in enumerate(_TOKENS))
    + ")",
    re.IGNORECASE,
)
_FUNCTIONS = {
    "cube root": "{}^(1/3)",
    "sqrt": "sqrt({})",
    "square of": "{}^2",
    "cube of": "{}^3",
    "half": "({} / 2)",
}
_ORDERS = (
    ("add", ("and", "to"), "+"),
    ("subtract", ("from",), "-"),
    ("multiply", ("by", "and"), "*"),
    ("divide", ("by",), "/"),
)
_BARE = re.compile(r"\(([^()]*)\)")
_OPERAND = re.compile(r"[\d.]+|pi|(?:sqrt|lcm|gcd|prime)?\([^()]*\)")


class Token(NamedTuple):
    """A number, a word or a sign, by name; where it stands."""

    name: str
    text: str
    begin: int
    end: int


class ParsedExpression(NamedTuple):
    """An expression, where its words end, and the words or signs of its operations."""

    expression: str
    end: int
    operations: Sequence[str]


def tokenize(text: str) -> list[Token]:
    """Return the numbers, words and signs of arithmetic in a text, in order."""
    return [
        Token(_TOKENS[int((match.lastgroup or "t0")[1:])][0], match[0].lower(), *match.span())
        for match in _TOKEN.finditer(text)
    ]


def parse_expression(text: str, tokens: Sequence[Token]) -> ParsedExpression | None:
    """Return the longest expression that begins with the first token and works something out."""
    parser = _Parser(_together(text, tokens[:MOST_TOKENS]))
    expression = parser.expression()
    if not expression or not parser.operations:
        return None
    return ParsedExpression(expression, parser.end, parser.operations)


def _together(text: str, tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the first tokens with nothing but blanks between them, LENGTH_LIMIT at most."""
    for at, one in enumerate(tokens):
        before = tokens[at - 1].end if at else one.begin
        if text[before : one.begin].strip() or one.end - tokens[0].begin > LENGTH_LIMIT:
            return tokens[:at]
    return tokens


class _Parser:
    """Reads one expression from the first of some tokens on; see the module.

    Each method returns "" and goes back to where it began where there is none.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self.operations: list[str] = []

    @property
    def end(self) -> int:
        """Where the expression ends in the text."""
        return self._tokens[self._at - 1].end if self._at else 0

    def expression(self) -> str:
        """Return the longest expression."""
        if not any(one.name == "number" for one in self._tokens[self._at :]):
            return ""
        left = self._joined(self._product, "+", "-")
        while left:  # "3 plus 4, times 2"
            mark = self._at, len(self.operations)
            sign = self._operation("*", "/", "+", "-") if self._take("and") else ""
            right = self._product() if sign else ""
            if not right:
                self._back(mark)
                break
            left = f"{_whole(left) if sign in '*/' else left} {sign} {right}"
        return left

    def _product(self) -> str:
        return self._joined(self._power, "*", "/")

    def _joined(self, part: Callable[[], str], *signs: str) -> str:
        left = part()
        while left:
            mark = self._at, len(self.operations)
            sign = self._operation(*signs)
            right = part() if sign else ""
            if not right:
                self._back(mark)
                break
            left = f"{left} {sign} {right}"
        return left

    def _power(self) -> str:
        base = self._operand()
        while base:
            mark = self._at, len(self.operations)
            if self._operation("squared"):
                base = f"{_whole(base)}^2"
            elif self._operation("cubed"):
                base = f"{_whole(base)}^3"
            elif token := self._take("nth"):
                self.operations.append(token.text)
                base = f"{_whole(base)}^{_nth(token.text)}"
            else:
                exponent = self._operand() if self._operation("^") else ""
                if not exponent:
                    self._back(mark)
                    break
                base = f"{_whole(base)}^{exponent}"
        return base

    def _operand(self) -> str:
        mark = self._at, len(self.operations)
        self._depth += 1
        said = (
            self._number()
            or self._bracket()
            or self._call()
            or self._function()
            or self._list()
            or self._order()
        )
        self._depth -= 1
        if not said:
            self._back(mark)
        return said

    def _number(self) -> str:
        minus = "-" if self._take("-") else ""
        token = self._take("number")
        if token is None:
            return ""
        digits = token.text.replace(",", "").replace("π", "pi")
        if digits[0].isalpha() and digits != "pi":
            try:
                digits = str(text2num(digits, "en"))
            except ValueError:  # "twenty thirty"
                return ""
        mark = self._at, len(self.operations)
        of = self._power() if self._operation("share") else ""
        if not of:
            self._back(mark)
        return f"({minus}{digits} / 100 * {of})" if of else f"{minus}{digits}"

    def _bracket(self) -> str:
        inner = self.expression() if self._depth < DEPTH_LIMIT and self._take("(") else ""
        return f"({inner})" if inner and self._take(")") else ""

    def _call(self) -> str:
        """Return a function of several numbers as a calculator writes it."""
        token = self._take("call") if self._depth < DEPTH_LIMIT else None
        if token is None or not self._take("("):
            return ""
        self.operations.append(token.text)
        some = []
        while one := self._power():
            some.append(one)
        return f"{token.text}({', '.join(some)})" if some and self._take(")") else ""

    def _function(self) -> str:
        for name, written in _FUNCTIONS.items():
            mark = self._at, len(self.operations)
            if self._depth < DEPTH_LIMIT and self._operation(name):
                inner = self._power()
                bare = _BARE.fullmatch(inner) if name == "sqrt" else None
                if inner:
                    return written.format(bare[1] if bare else _whole(inner))
            self._back(mark)
        return ""

    def _list(self) -> str:
        for name, sign in (("sum", "+"), ("product", "*"), ("difference", "-")):
            mark = self._at, len(self.operations)
            if self._depth < DEPTH_LIMIT and self._operation(name):
                some = [self._power()]
                while some[-1] and self._take("and"):
                    some.append(self._power())
                if len(some) > 1 and some[-1]:
                    return f"({f' {sign} '.join(some)})"
            self._back(mark)
        return ""

    def _order(self) -> str:
        for name, joints, sign in _ORDERS:
            mark = self._at, len(self.operations)
            if self._depth < DEPTH_LIMIT and self._operation(name):
                one = self._power()
                other = self._power() if one and self._take(*joints) else ""
                if other:
                    one, other = (other, one) if name == "subtract" else (one, other)
                    return f"({one} {sign} {other})"
            self._back(mark)
        return ""

    def _operation(self, *names: str) -> str:
        """Take the token of an operation with one of the names and return that name."""
        token = self._take(*names)
        if token is None:
            return ""
        self.operations.append("%" if token.name == "share" else token.text)
        return token.name

    def _take(self, *names: str) -> Token | None:
        if self._at < len(self._tokens) and self._tokens[self._at].name in names:
            self._at += 1
            return self._tokens[self._at - 1]
        return None

    def _back(self, mark: tuple[int, int]) -> None:
        self._at = mark[0]
        del self.operations[mark[1] :]


def _whole(expression: str) -> str:
    """Return an expression as an operand: in brackets unless it is one number, bracket or root."""
    return expression if _OPERAND.fullmatch(expression) else f"({expression})"


def _nth(text: str) -> str:
    """Return 3 of "to the third power", "to the 3rd power"."""
    number = text.split()[2]
    return str(ORDINALS.index(number) + 2) if number in ORDINALS else re.sub(r"\D", "", number)


TEXT_LIMIT = 4_000
"""Characters of a text that are looked at."""

_FAINT = frozenset("-/x%")
"""First signs of what is often none: 24/7, 5-6, 3 x 5, and a share of something."""

_BEHIND = re.compile(
    r"\s+(?!(?:in|as|and|is|are|to|then|please|for|when|or|equals?|with|rounded|into|on|by|if|but|me|"
    r"exactly|out|first|the|thanks?|what|how|which)\b)[a-z]",
    re.IGNORECASE,
)
"""A word that makes amounts of the numbers: "a room for 2 plus 1 child"."""


class ArithmeticSpan(NamedTuple):
    """Words that are arithmetic: their place, as an expression, whether they can mean no more."""

    begin: int
    end: int
    expression: str
    is_plain: bool


@lru_cache(maxsize=256)
def find_arithmetic(text: str) -> tuple[ArithmeticSpan, ...]:
    """Return what of ``text`` is arithmetic with at least one operation, in order."""
    text = text[:TEXT_LIMIT]
    tokens = tokenize(text)
    found: list[ArithmeticSpan] = []
    at = 0
    while at < len(tokens):
        parsed = parse_expression(text, tokens[at : at + MOST_TOKENS])
        if parsed is None:
            at += 1
            continue
        behind = _BEHIND.match(text, parsed.end)
        is_plain = not behind and any(one[:1] not in _FAINT for one in parsed.operations)
        bare = _BARE.fullmatch(parsed.expression)
        found.append(
            ArithmeticSpan(
                tokens[at].begin, parsed.end, bare[1] if bare else parsed.expression, is_plain
            )
        )
        while at < len(tokens) and tokens[at].begin < parsed.end:
            at += 1
    return tuple(found)


def to_expression(words: str) -> str:
    """Return words as an expression of digits and + - * / ^ sqrt(); "" where they are none."""
    found = find_arithmetic(words)
    whole = len(found) == 1 and not (words[: found[0].begin] + words[found[0].end :]).strip(" ?=.")
    return found[0].expression if whole else ""


def arithmetic_share(text: str) -> float:
    """Return the share of ``text`` that is to be worked out, in [0, 1].

    None of "24/7", "5-6", "3 x 5" or "15% of 80", which are often something else.
    """
    plain = sum(one.end - one.begin for one in find_arithmetic(text) if one.is_plain)
    return plain / max(1, len(text))
