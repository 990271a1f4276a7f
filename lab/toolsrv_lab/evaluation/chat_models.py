"""A local model as a chat model, held by its grammar or free of it."""

from __future__ import annotations

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.contract.models import ChatModel, ChatRequest, Engine, SpecialTokens
from toolsrv_runtime.models.local import LocalChatModel
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.templates.tool_template import ToolTemplate

_NO_TOKENS = SpecialTokens()
_ANYTHING = "TEXT: /(?s:.*)/\n"


class FreeTemplate(ToolTemplate):
    """A template whose replies may be any text; calls in it are parsed as ever."""

    def __init__(
        self, source: str | None, *, place: str = "", tokens: SpecialTokens = _NO_TOKENS
    ) -> None:
        super().__init__(source, place=place, tokens=tokens)
        markers = self.call_syntax.markers
        self._marks = sorted(
            number
            for text, number in tokens.control.items()
            if text in markers and text not in (tokens.bos, tokens.eos)
        )

    def grammar(self, request: ChatRequest) -> str:
        """Return the grammar of any text, with the control tokens that calls are written with."""
        del request
        if not self._marks:
            return f"start: TEXT\n{_ANYTHING}"
        return f"start: TEXT (mark TEXT)*\nmark: <[{','.join(map(str, self._marks))}]>\n{_ANYTHING}"


def chat_model(engine: Engine, profile: Profile, *, free: bool = False) -> ChatModel:
    """Return the chat model of an engine; the two kinds of one engine may be used side by side.

    Raises:
        UsageError: the model's format knows no conversations.
    """
    if profile.format != "chat":
        raise UsageError(
            f"{engine.name} is of the format {profile.format}, which has no tool calls",
            hint="name a chat model's GGUF file",
        )
    kind = FreeTemplate if free else ToolTemplate
    template = kind(
        profile.chat_template or None,
        place=profile.chat_template_from,
        tokens=engine.special_tokens,
    )
    return LocalChatModel(engine, template)
