"""Questions that only ask what a text says, where a call has told that: "What is she telling me?".

Pure.
"""

from __future__ import annotations

import json
import re

from toolsrv_registry.api import Api
from toolsrv_runtime.contract.format import Step
from toolsrv_runtime.planner.matched import holds
from toolsrv_runtime.planner.reading import spans
from toolsrv_runtime.planner.scene import news
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

_ANYBODY = (
    r"(?:it|that|this|he|she|they|the (?:author|sender|writer))(?=\s|['’])(?:['’](?:s|re)(?=\s))?"
)
_THING = r"(?:the|this|that|my|our|his|her|their) (?P<named>[^\W\d_]+(?: [^\W\d_]+)?)"
_SAYS = (
    r"(?:(?:trying|want(?:s|ed|ing)?|supposed) to )?"
    r"(?:say|says|said|saying|tell|tells|told|telling|write|wrote|written|writing|read|reads)"
)
_MEANS = r"(?:(?:trying|supposed) to )?(?:mean|means|meant)"
_TO = r"(?: (?:actually|exactly|here|her|him|me|now|really|them|then|there|to (?:me|us)|us))*"
_PLAIN = r"in (?:clear|normal|ordinary|plain|readable) (?:english|language|letters|text|words)"
_OF_IT = r"(?: (?:actual|decoded|full|hidden|original|plain|real|secret|whole))?"
_ASKS = re.compile(
    r"(?:(?:and|but|now|so) )*what(?:['’]?s)?(?: (?:are|did|do|does|had|has|have|is|was|were))?"
    rf" (?:{_ANYBODY} (?:{_SAYS}|{_MEANS}){_TO}(?: {_PLAIN})?|{_THING} {_SAYS}{_TO}(?: {_PLAIN})?"
    rf"|(?:it|that|this) {_PLAIN}"
    rf"|(?:the|her|his|their){_OF_IT} (?:meaning|message|note|phrase|plaintext|sentence|text|words?))",
    re.IGNORECASE,
)
_READS = re.compile(r"\b(?:decipher|decode|decrypt|undo|unescape)", re.IGNORECASE)


def asks_what_it_says(question: str, before: str) -> bool:
    """Whether a question is only about what a text says, by somebody or something told ``before``.

    "What does the note say" of a note that was told; "what does it say in Morse code" is more.
    """
    match = _ASKS.fullmatch(question.strip())
    return bool(match) and spans.content((match and match["named"]) or "") <= spans.content(before)


def reads(step: Step, api: Api, task: str) -> bool:
    """Whether a call's function decodes, and it was answered a text for one that the task tells."""
    given = json.loads(step.move.arguments)
    took = any(
        holds(task, str(given[one.name]))
        for one in api.required
        if one.name in given and kinds.value_kind(one, api) in {"text", *kinds.RARE_KINDS}
    )
    decodes = _READS.search(f"{words(api.name)}. {api.description}")
    lettered = any(letter.isalpha() for _, value in news(step) for letter in value)
    return bool(step.ok and took and decodes and lettered)
