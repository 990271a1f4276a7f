"""What the benchmarks ask: search queries made from a catalog, and a handful of tasks.

The tasks are ordinary ones for the catalog that ships; nothing was tuned on them. They measure
speed: how many are solved is for ``bench solve`` and a file of tasks.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from toolsrv_lab.encoder_sentences import SENTENCES
from toolsrv_registry.api import Api

TASKS = (
    "What time is it in Nairobi when it is 9:30 in Oslo on 3 March 2027?",
    "Convert 26.2 miles to kilometres.",
    "What is the capital of Peru, and which currency is used there?",
    "When does the sun rise in Lisbon on 21 June 2027?",
    "Is 978-3-16-148410-0 a valid ISBN, and is DE89370400440532013000 a valid IBAN?",
    "Tell me the molar mass of C8H10N4O2, the SHA-256 digest of caffeine, and 2048 in words.",
)

_LONG = 160


def queries(apis: Sequence[Api], count: int, seed: int) -> list[str]:
    """Return ``count`` varied texts, the same for the same seed.

    By turns a fixed sentence, the description of one API, and of two or three APIs joined.
    """
    chosen = random.Random(seed)
    sentences = chosen.sample(SENTENCES, len(SENTENCES))
    found = []
    for number in range(count):
        kind = number % 3
        if kind == 0 and number // 3 < len(sentences):
            found.append(sentences[number // 3])
            continue
        part = chosen.sample(apis, min(len(apis), 1 if kind < 2 else chosen.choice((2, 3))))
        found.append(", and ".join(_first_sentence(api) for api in part))
    return found


def _first_sentence(api: Api) -> str:
    text = re.split(r"(?<=[.!?])\s", api.description.strip() or api.name, maxsplit=1)[0]
    return text[:_LONG].rstrip(".")
