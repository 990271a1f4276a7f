"""How a model is to be run: conversation format, context, rope, sampling; and why.

A profile is chosen from GGUF metadata alone; every choice carries its reason, so that
``toolsrv model info`` can show it. Knows no engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

FormatName = Literal["compact", "chat", "toolllama"]

CHAT_CONTEXT = 8192
"""Context given to a chat model that could carry more: enough for five functions and a path."""


class Profile(BaseModel):
    """How to run one model. ``rope_freq_scale`` None leaves what the file says.

    ``grounded`` limits arguments and answers to what the task and the observations contain;
    ``observation_limit`` is how many characters of a response enter the prompt; ``candidates``
    how many APIs a task is offered by default (the paper's five); ``chat_template`` is the Jinja
    source that the file carries. ``anew_after_give_up``: when the model gives up, other APIs are
    searched for and offered, besides when all that were offered have failed.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    format: FormatName
    context: int
    rope_freq_scale: float | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    max_reply_tokens: int = 512
    observation_limit: int = 1024
    candidates: int = 5
    grounded: bool = False
    anew_after_give_up: bool = True
    chat_template: str | None = None

    @property
    def draws(self) -> bool:
        """Whether two replies to one prompt may differ; the compact format takes the likeliest."""
        return self.format == "chat" and self.temperature > 0


def choose(
    metadata: Mapping[str, str], *, filename: str, trained_context: int, compact_tokens: bool
) -> tuple[Profile, dict[str, str]]:
    """Return the profile for a model and the reason for each choice.

    ``compact_tokens`` says whether the vocabulary has the compact format's own tokens.
    """
    name = metadata.get("general.name", "")
    words = f"{name} {filename} {metadata.get('toolsrv.profile', '')}".lower()
    template = metadata.get("tokenizer.chat_template")
    if compact_tokens:
        profile = Profile(
            name="compact",
            format="compact",
            context=trained_context,
            max_reply_tokens=220,
            observation_limit=320,
            candidates=9,
            grounded=True,
            # It calls what it is offered: of 112 development tasks this solved one more, and
            # made four honest give-ups into wrong answers.
            anew_after_give_up=False,
        )
        return profile, {
            "format": "the vocabulary has the compact format's own tokens (' use #1' …)",
            "context": f"the model was trained for {trained_context} tokens",
            "rope": "no scaling: the context is the trained one",
            "grounded": "small model: arguments are spans of the task, facts of responses or listed values",
        }
    why_chat = (
        "the file carries a chat template"
        if template
        else "the file carries no chat template: plain System/User/Assistant turns are used"
    )
    if "toolllama" in words.replace("-", "").replace("_", "").replace(" ", ""):
        architecture = metadata.get("general.architecture", "")
        scaling = metadata.get(f"{architecture}.rope.scaling.type", "none")
        factor = metadata.get(f"{architecture}.rope.scaling.factor") if scaling != "none" else None
        return _toolllama(trained_context, template, why_chat, factor)
    context = min(trained_context, CHAT_CONTEXT)
    profile = Profile(name="chat", format="chat", context=context, chat_template=template)
    return profile, {
        "format": why_chat,
        "context": f"{context} of the {trained_context} tokens the model was trained for",
        "rope": "as the file says",
        "grounded": "off: the model may write arguments freely within their schema",
    }


def _toolllama(
    trained_context: int, template: str | None, why_chat: str, factor: str | None
) -> tuple[Profile, dict[str, str]]:
    ratio = max(1, CHAT_CONTEXT // max(trained_context, 1))
    profile = Profile(
        name="toolllama",
        format="chat",
        context=CHAT_CONTEXT,
        # Any number would stand in for the file's own factor.
        rope_freq_scale=None if factor else 1 / ratio,
        temperature=0.5,
        chat_template=template,
    )
    return profile, {
        "format": f"{why_chat}; ToolLLaMA's own prompt format is not in this version",
        "context": f"ToolLLaMA was fine-tuned for {CHAT_CONTEXT} tokens",
        "rope": (
            f"linear interpolation by {float(factor):g}, as the file says"
            if factor
            else f"linear interpolation by {ratio}: the base model has {trained_context} positions "
            "and the file does not say so"
        ),
        "grounded": "off: the model may write arguments freely within their schema",
    }
