"""A conversation as a model's own chat template writes it, Jinja source run in a sandbox.

A model without one gets plain ``System:``/``User:``/``Assistant:`` turns. Knows no functions.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jinja2

from toolsrv_catalogs.text import clean
from toolsrv_runtime.engine.base import Piece, Prompt, SpecialTokens
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.templates.template_limits import (
    LimitError,
    compile_limited,
    environment,
    limited,
)

Turn = tuple[str, Prompt]
"""A role (system, user, assistant) and what is said."""

NO_TOKENS = SpecialTokens()
"""The tokens of an unknown vocabulary."""

_DATE_CODES = re.compile(r"%(?![-]?[A-Za-z%])[^A-Za-z%]*[A-Za-z%]?")
_LONGEST_DATE = 200


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A compiled template; ``place`` is the profile's file that it stands in, "" the model's."""

    compiled: jinja2.Template
    place: str


def conversation(
    turns: Sequence[Turn],
    template: str | None = None,
    place: str = "",
    tokens: SpecialTokens = NO_TOKENS,
) -> Prompt:
    """Return turns ready for the assistant's next; ``template`` is Jinja source, None plain turns.

    ``place`` as for ``compiled``; ``tokens`` are the model's own. Raises ModelError where the
    template does not work.
    """
    if template is None:
        return _plain(turns)
    return _render(compiled(template, place), turns, variables(tokens))


def check_template(source: str, place: str = "", tokens: SpecialTokens = NO_TOKENS) -> None:
    """Raise ModelError where a template cannot write a small conversation."""
    said = (("system", "s"), ("user", "u"), ("assistant", "a"), ("user", "u"))
    conversation([(role, (Piece(text),)) for role, text in said], source, place, tokens)


def variables(tokens: SpecialTokens, now: datetime | None = None) -> dict[str, Any]:
    """Return what every template may read besides messages, tools and switches.

    Source: ``apply_chat_template`` of transformers. ``now`` None is the present time, UTC.
    """
    clock = now or datetime.now(UTC)
    return {
        "bos_token": tokens.bos,
        "eos_token": tokens.eos,
        "strftime_now": lambda form: _date(clock, form),
    }


def _date(clock: datetime, form: Any) -> str:
    """Return the date in ``form``, without the widths that some C libraries pad to."""
    return clock.strftime(_DATE_CODES.sub("", str(form)[:_LONGEST_DATE]))


def _plain(turns: Sequence[Turn]) -> Prompt:
    prompt: list[Piece] = []
    for role, pieces in turns:
        prompt += [Piece(f"{role.capitalize()}: ", special=True), *pieces, Piece("\n")]
    return (*prompt, Piece("Assistant:\n", special=True))


def compiled(source: str, place: str = "") -> ChatTemplate:
    """Return a template, to be run in a sandbox; ``place`` is the profile that has it, if one has.

    Raises ModelError where it is none.
    """
    made = environment()
    made.globals["raise_exception"] = _raise
    try:
        with limited():
            return ChatTemplate(compile_limited(made, source), place)
    except Exception as error:  # noqa: BLE001 - source of others: it may raise anything
        raise broken(error, place) from None


def _raise(message: str) -> None:
    raise jinja2.TemplateRuntimeError(message)


def broken(error: Exception, place: str) -> ModelError:
    """Return the ModelError for what a template raised; ``place`` as for ``compiled``."""
    said = clean(str(error), 300) or type(error).__name__
    if isinstance(error, LimitError):
        said = f"it makes too much: {said}"
    if place:
        return ModelError(
            f"the chat template in {place} does not work: {said}",
            hint=f"mend chat_template in {place}, or leave it out: the model's own is used then",
        )
    return ModelError(
        f"the model's chat template does not work: {said}",
        hint="use another GGUF of this model, or set chat_template in a profile",
    )


def _render(template: ChatTemplate, turns: Sequence[Turn], read: dict[str, Any]) -> Prompt:
    """Render with a marker for every turn's text, then put the text in as plain pieces.

    So control tokens that a task or a response spells stay text: only the template's own are
    tokens. A template that refuses a system turn gets it in front of the first user turn, and one
    that cannot do without a list of tools an empty one.
    """
    merged = [("user", (*turns[0][1], Piece("\n\n"), *turns[1][1])), *turns[2:]]
    fault: Exception = ValueError("it leaves out a turn")
    lists: tuple[list[Any] | None, ...] = (None, [])
    for said in (turns, merged):
        for tools in lists:
            try:
                return _fill(template.compiled, said, {**read, "tools": tools})
            except LimitError as error:
                raise broken(error, template.place) from None
            except Exception as error:  # noqa: BLE001 - whatever it raises, it may like another way
                fault = error if tools is None else fault
    raise broken(fault, template.place) from None


def _fill(template: jinja2.Template, turns: Sequence[Turn], read: dict[str, Any]) -> Prompt:
    mark = secrets.token_hex(12)
    messages = [
        {"role": role, "content": f"[{mark}:{index}]"} for index, (role, _) in enumerate(turns)
    ]
    with limited():
        text = template.render(messages=messages, add_generation_prompt=True, **read)
    prompt: list[Piece] = []
    for index, (_, pieces) in enumerate(turns):
        before, found, text = text.partition(f"[{mark}:{index}]")
        if not found:
            raise jinja2.TemplateRuntimeError(f"turn {index + 1} is left out")
        prompt += [Piece(before, special=True), *pieces]
    return (*prompt, Piece(text, special=True))
