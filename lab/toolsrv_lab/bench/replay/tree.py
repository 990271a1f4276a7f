"""The tree that is replayed: what a search wrote, as texts and as one model's tokens.

21 steps in pre-order with branches at 4 nodes, five functions of the catalog that ships. Replies
have ToolLLaMA's form (Thought, Action, Action Input), most thoughts are empty, as in its training
files. Every way to run the model writes exactly these tokens, so only their cost differs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import llguidance
from pydantic import BaseModel, ConfigDict

from toolsrv_registry.errors import DataError
from toolsrv_runtime.engine.prefix_cache import common_prefix
from toolsrv_runtime.engine.vocabulary import Vocabulary

_PARENTS = (0, 1, 2, 3, 4, 5, 4, 7, 8, 9, 2, 11, 12, 13, 12, 15, 16, 1, 18, 19, 20)
"""The parent of each step; 0 is the task. Branches below 4, 2, 12 and 1."""

_FUNCTIONS = {
    "capital_for_country_facts": ("Returns the capital of a country.", ("country",)),
    "rate_for_currency_exchange": ("Converts an amount between currencies.", ("base", "target")),
    "forecast_for_weather_today": ("Returns the weather of a city for a day.", ("city", "day")),
    "sunrise_for_sun_and_moon": ("Returns when the sun rises and sets at a place.", ("place",)),
    "distance_for_city_routes": ("Returns how far two cities are apart.", ("origin", "goal")),
}
_PLACES = ("Peru", "Oslo", "Lisbon", "Nairobi", "Quito", "Hanoi", "Lima", "Riga", "Cairo")
_SYSTEM = (
    "System: You solve a task by calling functions. First write your thought, then the name of "
    "one function and its input as JSON, then wait for the response and go on with the next "
    "step. If a call fails, try another function or other arguments. When the task is done, say "
    "so. These are the functions that can be called, with their parameters:\n"
)


class Step(BaseModel):
    """One reply: the tokens before it and its own."""

    model_config = ConfigDict(frozen=True)

    prompt: list[int]
    reply: list[int]
    text: str


class Recording(BaseModel):
    """The steps in the order they were written, the grammar of a reply, the longest path.

    The first ``head`` tokens of every prompt are the same whatever the task is.
    """

    model_config = ConfigDict(frozen=True)

    grammar: str
    steps: list[Step]
    distinct: int
    context: int
    head: int

    def write(self, path: Path) -> None:
        """Write it for another process."""
        path.write_text(self.model_dump_json(), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read what ``write`` wrote."""
        return cls.model_validate_json(path.read_text(encoding="utf-8"))


def record(vocabulary: Vocabulary, *, task: int = 0, steps: int | None = None) -> Recording:
    """Return the tree in a model's tokens; ``task`` varies the task and what follows from it.

    ``steps`` cuts it short.

    Raises:
        DataError: the vocabulary cannot spell the tree's replies.
    """
    from toolsrv_runtime.contract.models import Piece  # noqa: PLC0415 - symmetry with the engine

    head = vocabulary.prompt((Piece(_head(task)),))
    paths: list[list[int]] = [head]
    texts = [_head(task)]
    found = []
    for number, parent in enumerate(_PARENTS[:steps], start=1):
        before, reply = paths[parent], _reply(number, task)
        tokens = _spell(vocabulary, reply)
        seen = _observation(number, task)
        found.append(Step(prompt=before, reply=tokens, text=texts[parent]))
        paths.append([*before, *tokens, *vocabulary.text(seen, special=False)])
        texts.append(texts[parent] + reply + seen)
    return Recording(
        grammar=_grammar(),
        steps=found,
        distinct=distinct([[*step.prompt, *step.reply] for step in found]),
        context=max(len(path) for path in paths) + 64,
        head=common_prefix(head, vocabulary.prompt((Piece(_head(task + 1)),))),
    )


def distinct(paths: Sequence[Sequence[int]]) -> int:
    """Return the number of different non-empty beginnings of the paths: the tree's tokens."""
    total, seen = 0, list[list[int]]()
    for path in sorted(list(path) for path in paths):
        before = seen[-1] if seen else []
        shared = next(
            (at for at, (a, b) in enumerate(zip(before, path, strict=False)) if a != b),
            min(len(before), len(path)),
        )
        total += len(path) - shared
        seen.append(path)
    return total


def _head(task: int) -> str:
    listing = "\n".join(
        json.dumps(
            {
                "name": name,
                "description": description,
                "parameters": {
                    "type": "object",
                    "properties": {key: {"type": "string"} for key in keys},
                    "required": list(keys),
                },
            }
        )
        for name, (description, keys) in _FUNCTIONS.items()
    )
    places = " and ".join(_PLACES[(task + step) % len(_PLACES)] for step in range(2))
    return f"{_SYSTEM}{listing}\nUser: Task {task}: compare {places} for a journey.\nAssistant:\n"


def _reply(number: int, task: int) -> str:
    names = list(_FUNCTIONS)
    name = names[(number + task) % len(names)]
    keys = _FUNCTIONS[name][1]
    place = _PLACES[(number + task) % len(_PLACES)]
    thought = f"The next step needs {place}." if number % 3 == 0 else ""
    values = {key: place if at == 0 else f"{place} {number}" for at, key in enumerate(keys)}
    return f"Thought: {thought}\nAction: {name}\nAction Input: {json.dumps(values)}\n"


def _observation(number: int, task: int) -> str:
    place = _PLACES[(number + task) % len(_PLACES)]
    facts = {"place": place, "value": 17 * number + task, "unit": "km", "source": "recorded"}
    again = {"country": place, "population": 90_001 * number, "updated": f"2027-03-{number:02}"}
    return f"Response: {json.dumps(facts | again)}\nAssistant:\n"


def _grammar() -> str:
    calls = []
    for name, (_, keys) in _FUNCTIONS.items():
        values = ' "\\", " '.join(f'"\\"{key}\\": \\"" VALUE' for key in keys)
        calls.append(f'"{name}\\nAction Input: {{" {values} "\\"}}\\n"')
    return (
        'start: "Thought: " WORDS "\\nAction: " (' + " | ".join(calls) + ")\n"
        'WORDS: /[^\\n]*/\nVALUE: /[^"\\n\\\\]+/\n'
    )


def _spell(vocabulary: Vocabulary, text: str) -> list[int]:
    """Return the tokens that a reply in the grammar would have: forced ones, else the model's own."""
    matcher = llguidance.LLMatcher(vocabulary.grammar, _grammar(), log_level=0)
    tokens: list[int] = []
    while not matcher.is_stopped():
        if ahead := matcher.compute_ff_tokens():
            matcher.consume_tokens(ahead)
            tokens += ahead
            continue
        rest = text.encode()[len(vocabulary.spelled(tokens)) :].decode("utf-8")
        if not rest:
            return tokens
        token = next(iter(_continuing(vocabulary, rest)))
        if not matcher.consume_token(token):
            raise DataError(
                f"this vocabulary cannot write {rest[:40]!r} inside the grammar",
                hint="name another model with --model",
            )
        tokens.append(token)
    return tokens


def _continuing(vocabulary: Vocabulary, text: str) -> tuple[int, ...]:
    """Return the tokens of a text that goes on behind others: no space is put before it."""
    whole = vocabulary.text("\n" + text, special=False)
    for count in range(1, len(whole)):
        if vocabulary.spelled(list(whole[:count])).lstrip(b" ") == b"\n":
            return whole[count:]
    return vocabulary.text(text, special=False)
