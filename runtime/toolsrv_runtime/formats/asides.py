"""What a conversation is asked beside its next step: a last answer, a comparison, a judgement.

Texts, grammars and the reading of replies, for formats whose turns are plain text. Asks nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_runtime.engine.base import Piece, Reply
from toolsrv_runtime.formats.base import FINISH, Judgement, Move, Step
from toolsrv_runtime.formats.lark import literal

FINISH_NOW = (
    "There is no time for further calls. Call Finish now: final_answer says all that the responses "
    "above say about the task, and nothing else; missing names the parts of the task that they "
    "leave open, in a few words each."
)
REPEATED = (
    "You made this very call before, and this is its response from then. Make another call, or "
    "call Finish."
)
WHICH = (
    "Two next steps are proposed for the task.\nA: {first}\nB: {second}\nWhich of them brings the "
    "task nearer to its solution? Say A or B."
)
ANSWER_LIMIT = 20_000
"""Characters of an answer."""
LETTER = 'start: "A" | "B"\n'
LETTER_TOKENS = 4
JUDGE = (
    "This answer to the task is proposed:\n{answer}\n{untraced}Read the task and the responses above "
    "again. Does the answer serve every part of the task, and does a response say all that it "
    "states? Say in a few words what is right or wrong with it, then whether it is to be accepted."
)
UNTRACED = "No response says: {words}.\n"
JUDGEMENT_TOKENS = 256
"""Room for the longest judgement that the grammar takes, at a character a token."""

_THOUGHT = "answer with what is known"
_CHECK, _ACCEPT = "Check: ", "\nAccept: "
_PUNCTUATION = frozenset(".,:;!?-_'\"`*")
_LEAD = f"Thought: {_THOUGHT}\nAction: {FINISH}\nAction Input: "


def says_something(answer: Any) -> bool:
    """Whether an answer is a text that shows anything but punctuation; Morse and symbols do."""
    if not isinstance(answer, str):
        return False
    shown = clean(answer, ANSWER_LIMIT).strip()
    return bool(shown) and shown not in _PUNCTUATION


def finish_grammar() -> str:
    """Return the grammar of a reply that can only answer, and name what is missing."""
    text = {"type": "string", "minLength": 1}
    schema = {
        "type": "object",
        "properties": {
            "return_type": {"const": "give_answer"},
            "final_answer": {**text, "maxLength": 1200},
            "missing": {"type": "array", "items": {**text, "maxLength": 120}, "maxItems": 4},
        },
        "required": ["return_type", "final_answer", "missing"],
        "additionalProperties": False,
        "x-guidance": {"whitespace_flexible": False},
    }
    return f"start: {literal(_LEAD)} answer\nanswer: %json {json.dumps(schema)}\n"


def read_finish(reply: Reply) -> Move | None:
    """Return the Finish call that a reply of ``finish_grammar`` spells.

    None if it broke off or says nothing.
    """
    try:
        said = json.loads(reply.text.rpartition("\nAction Input: ")[2])
    except ValueError:
        return None
    if not isinstance(said, dict) or not says_something(said.get("final_answer")):
        return None
    missing = said.get("missing")
    answer = {"return_type": "give_answer", "final_answer": said["final_answer"]}
    return Move(
        _THOUGHT,
        FINISH,
        json.dumps(answer, ensure_ascii=False),
        (Piece(reply.text, tokens=reply.tokens or None),),
        missing=tuple(str(one) for one in missing) if isinstance(missing, list) else (),
    )


def which(first: Step, second: Step) -> str:
    """Return the question which of two steps is better."""
    return WHICH.format(first=_told(first), second=_told(second))


def is_first(reply: Reply) -> bool:
    """Whether a reply to ``which`` ends with an A (spec: formats 5.2)."""
    return reply.text.strip().lower().endswith("a")


def judge(answer: str, untraced: Sequence[str]) -> str:
    """Return the question whether an answer is right; ``untraced`` are its words without source."""
    words = UNTRACED.format(words=", ".join(untraced)) if untraced else ""
    return JUDGE.format(answer=answer, untraced=words)


def judgement_grammar() -> str:
    """Return the grammar of a judgement: a line of reasons, then yes or no."""
    return f'start: {literal(_CHECK)} /[^\\n]{{1,200}}/ {literal(_ACCEPT)} ("yes" | "no")\n'


def read_judgement(reply: Reply) -> Judgement | None:
    """Return the judgement that a reply of ``judgement_grammar`` spells; None if it broke off."""
    reason, found, word = reply.text.removeprefix(_CHECK).partition(_ACCEPT)
    if not found or word not in {"yes", "no"}:
        return None
    return Judgement(word == "yes", clean(reason, 400).strip())


def _told(step: Step) -> str:
    move = step.move
    return json.dumps(
        {
            "thought": move.thought or "",
            "name": move.function,
            "arguments": move.arguments,
            "response": step.observation,
        },
        ensure_ascii=False,
    )
