"""A chat template run in the sandbox, with everything that templates of real models read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from toolsrv_runtime.engine.base import SpecialTokens
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.templates.chat_template import NO_TOKENS, broken, compiled, variables
from toolsrv_runtime.templates.marking import without_escapes
from toolsrv_runtime.templates.template_limits import LimitError, limited

Messages = Sequence[Mapping[str, Any]]
"""Messages as templates read them: role, content, and tool_calls where there are any."""


class Renderer:
    """A compiled template; ``place`` is the profile's file that it stands in, "" the model's.

    ``no_tools`` is what the template gets for no tools. Raises ModelError where the source is no
    template.
    """

    def __init__(self, source: str, place: str = "", tokens: SpecialTokens = NO_TOKENS) -> None:
        self.source = source
        self._template = compiled(source, place)
        self._tokens = tokens
        self.no_tools: list[Any] | None = None

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
        switch = {} if thinking is None else {"enable_thinking": thinking, "thinking": thinking}
        try:
            with limited():
                rendered = self._template.compiled.render(
                    messages=[dict(one) for one in messages],
                    tools=list(tools) or self.no_tools,
                    add_generation_prompt=generate,
                    **variables(self._tokens, now),
                    **switch,
                )
        except LimitError as error:
            raise broken(error, self._template.place) from None
        return without_escapes(rendered)

    def attempt(self, messages: Messages, **options: Any) -> str | None:
        """Return the rendering, or None where the template refuses these messages.

        Raises ModelError as ``render``.
        """
        try:
            return self.render(messages, **options)
        except ModelError:
            raise
        except Exception:  # noqa: BLE001 - source of others: it may raise anything
            return None

    def takes_no_list(self, messages: Messages) -> None:
        """Pass an empty list of tools from now on if the template cannot do without a list."""
        if self.attempt(messages) is None:
            self.no_tools = []
            if self.attempt(messages) is None:
                self.no_tools = None

    def refusal(self, error: Exception) -> Exception:
        """Return the ModelError for what the template raised."""
        return broken(error, self._template.place)
