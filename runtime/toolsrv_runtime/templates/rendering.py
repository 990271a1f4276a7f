"""A chat template run in the sandbox, with everything that templates of real models read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import jinja2

from toolsrv_runtime.engine.base import SpecialTokens
from toolsrv_runtime.templates.chat_template import broken, compiled
from toolsrv_runtime.templates.template_limits import LimitError, limited

Messages = Sequence[Mapping[str, Any]]
"""Messages as templates read them: role, content, and tool_calls where there are any."""

_DATE_CODES = re.compile(r"%(?![-]?[A-Za-z%])[^A-Za-z%]*[A-Za-z%]?")
_LONGEST_DATE = 200


class Renderer:
    """A compiled template; ``place`` is the profile's file that it stands in, "" the model's.

    Raises ModelError where the source is no template.
    """

    def __init__(
        self, source: str, place: str = "", tokens: SpecialTokens = SpecialTokens()
    ) -> None:
        self.source = source
        self._template = compiled(source, place)
        self._tokens = tokens

    def render(
        self,
        messages: Messages,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        generate: bool = True,
        now: datetime | None = None,
        thinking: bool | None = None,
    ) -> str:
        """Return the rendering; ``thinking`` None leaves the switch undefined.

        Raises ModelError for a template that makes too much; else whatever the template raises.
        """
        clock = now or datetime.now(UTC)
        switch = {} if thinking is None else {"enable_thinking": thinking, "thinking": thinking}
        try:
            with limited():
                return self._template.compiled.render(
                    messages=[dict(one) for one in messages],
                    tools=list(tools) or None,
                    add_generation_prompt=generate,
                    bos_token=self._tokens.bos,
                    eos_token=self._tokens.eos,
                    strftime_now=lambda form: _date(clock, form),
                    **switch,
                )
        except LimitError as error:
            raise broken(error, self._template.place) from None

    def attempt(self, messages: Messages, **options: Any) -> str | None:
        """Return the rendering, or None where the template refuses these messages.

        Raises ModelError as ``render``.
        """
        try:
            return self.render(messages, **options)
        except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError):
            return None
        except (AttributeError, RecursionError):
            return None

    def refusal(self, error: Exception) -> Exception:
        """Return the ModelError for what the template raised."""
        return broken(error, self._template.place)


def _date(clock: datetime, form: Any) -> str:
    """Return the date in ``form``, without the widths that some C libraries pad to."""
    return clock.strftime(_DATE_CODES.sub("", str(form)[:_LONGEST_DATE]))
