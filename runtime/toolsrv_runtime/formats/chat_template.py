"""A conversation as a model's own chat template writes it, Jinja source run in a sandbox.

A model without one gets plain ``System:``/``User:``/``Assistant:`` turns. Knows no functions.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import jinja2
import jinja2.sandbox

from toolsrv_runtime.engine.base import Piece, Prompt
from toolsrv_runtime.errors import ModelError

Turn = tuple[str, Prompt]
"""A role (system, user, assistant) and what is said."""


def conversation(turns: Sequence[Turn], template: str | None = None) -> Prompt:
    """Return turns ready for the assistant's next; ``template`` is Jinja source, None plain turns.

    Raises ModelError where the template does not work.
    """
    return written(turns, None if template is None else compiled(template))


def written(turns: Sequence[Turn], template: jinja2.Template | None) -> Prompt:
    """Return turns as ``conversation`` does, with a template that is compiled already."""
    return _plain(turns) if template is None else _render(template, turns)


def _plain(turns: Sequence[Turn]) -> Prompt:
    prompt: list[Piece] = []
    for role, pieces in turns:
        prompt += [Piece(f"{role.capitalize()}: ", special=True), *pieces, Piece("\n")]
    return (*prompt, Piece("Assistant:\n", special=True))


def compiled(source: str) -> jinja2.Template:
    """Return a template, to be run in a sandbox.

    Raises ModelError where it is none.
    """
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _raise
    try:
        return environment.from_string(source)
    except jinja2.TemplateError as error:
        raise _broken(error) from None


def _raise(message: str) -> None:
    raise jinja2.TemplateRuntimeError(message)


def _broken(error: Exception) -> ModelError:
    return ModelError(
        f"the model's chat template does not work: {error}", hint="use another GGUF of this model"
    )


def _render(template: jinja2.Template, turns: Sequence[Turn]) -> Prompt:
    """Render with a marker for every turn's text, then put the text in as plain pieces.

    So control tokens that a task or a response spells stay text: only the template's own are
    tokens. A template that refuses a system turn gets it in front of the first user turn.
    """
    try:
        return _fill(template, turns)
    except jinja2.TemplateError:
        merged = [("user", (*turns[0][1], Piece("\n\n"), *turns[1][1])), *turns[2:]]
    try:
        return _fill(template, merged)
    except jinja2.TemplateError as error:
        raise _broken(error) from None


def _fill(template: jinja2.Template, turns: Sequence[Turn]) -> Prompt:
    mark = secrets.token_hex(12)
    messages = [
        {"role": role, "content": f"[{mark}:{index}]"} for index, (role, _) in enumerate(turns)
    ]
    text = template.render(
        messages=messages, add_generation_prompt=True, bos_token="", eos_token="", tools=None
    )
    prompt: list[Piece] = []
    for index, (_, pieces) in enumerate(turns):
        before, found, text = text.partition(f"[{mark}:{index}]")
        if not found:
            raise jinja2.TemplateRuntimeError(f"turn {index + 1} is left out")
        prompt += [Piece(before, special=True), *pieces]
    return (*prompt, Piece(text, special=True))
