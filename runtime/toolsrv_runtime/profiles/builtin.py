"""The built-in profiles: what each says, and why. Which one a model gets is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolsrv_runtime.profile import Profile
from toolsrv_runtime.profiles.facts import ModelFacts
from toolsrv_runtime.profiles.sizes import DEFAULTS, TUNED, size_class

CHAT_CONTEXT = 8192
"""Context given to a chat model that could carry more: enough for five functions and a path."""

CHAT_CANDIDATES = 8
"""APIs that are found for a task; the matcher leaves about three of them to be shown."""

SMALL_CONTEXT = 2560
"""The longest conversations that the fine-tuned model was trained on (1,600 tokens), and more than half again."""

TOOLLLAMA_CONTEXT = 8192

Reasoned = tuple[Profile, dict[str, str]]
"""A profile, and the reason for each field whose name begins with the key."""

_FREE = "off: the model may write arguments freely within their schema"


def compact(facts: ModelFacts) -> Reasoned:
    """Return how the small model that ships is run, and models trained like it."""
    profile = Profile(
        name="compact",
        format="compact",
        context=facts.trained_context,
        max_reply_tokens=220,
        observation_limit=320,
        candidates=9,
        grounded=True,
        # It calls what it is offered: of 112 development tasks this solved one more, and
        # made four honest give-ups into wrong answers.
        anew_after_give_up=False,
    )
    return profile, {
        "format": "the compact format's own tokens (' use #1' …)",
        "context": f"the model was trained for {facts.trained_context} tokens",
        "rope": "as the file says",
        "stop": "none: the grammar ends a reply",
        "bos": "as the file says",
        "temperature": "the likeliest token is taken",
        "grounded": "small model: arguments are spans of the task, facts of responses or listed values",
    }


def chat(facts: ModelFacts) -> Reasoned:
    """Return how any instruct model is run."""
    trained, template = facts.carried(None), facts.chat_template
    context = min(trained, CHAT_CONTEXT)
    size = size_class(facts.parameters)
    profile = Profile(
        name="chat",
        format="chat",
        context=context,
        candidates=CHAT_CANDIDATES,
        chat_template=template,
        aids=DEFAULTS[size].aids,
        switches=DEFAULTS[size].switches,
    )
    return profile, {
        "format": _why_chat(facts),
        "context": f"{context} of the {trained} tokens the model was trained for",
        "rope": "as the file says",
        "stop": "none: the grammar ends a reply",
        "bos": "as the file says",
        "temperature": "the likeliest token is taken",
        "grounded": _FREE,
        "aids": f"measured for models of its size ({size})",
        "switches": f"measured for models of its size ({size})",
    }


def small(facts: ModelFacts) -> Reasoned:
    """Return how the fine-tuned model that ships is run: any chat model, as far as it was trained."""
    profile, reasons = chat(facts)
    changes = {
        "name": "small",
        "context": min(facts.trained_context, SMALL_CONTEXT),
        "observation_limit": 400,
        "answers_in_place": True,
        "aids": TUNED,
    }
    return profile.model_copy(update=changes), {
        **reasons,
        "format": "the chat template that it was trained with",
        "context": f"{SMALL_CONTEXT} tokens: it was trained on conversations of up to 1,600",
        "aids": "measured for this model",
        "answers_in_place": "it was trained on whole conversations",
    }


def toolllama_1(facts: ModelFacts) -> Reasoned:
    """Return how a ToolLLaMA on LLaMA 1 (2,048 positions) is run."""
    return _toolllama("toolllama-1", 4, facts)


def toolllama_2(facts: ModelFacts) -> Reasoned:
    """Return how a ToolLLaMA on LLaMA 2 (4,096 positions) is run."""
    return _toolllama("toolllama-2", 2, facts)


def _toolllama(name: str, factor: int, facts: ModelFacts) -> Reasoned:
    said = facts.rope_factor
    profile = Profile(
        name=name,
        format="toolllama",
        context=TOOLLLAMA_CONTEXT,
        # Any number would stand in for the file's own factor.
        rope_freq_scale=None if said > 1 else 1 / factor,
        temperature=0.5,
        stop=("</s>",),
        bos=True,
        chat_template=facts.chat_template,
    )
    return profile, {
        "format": "ToolLLaMA's own: what it was fine-tuned on",
        "context": f"ToolLLaMA was fine-tuned for {TOOLLLAMA_CONTEXT} tokens",
        "rope": f"linear interpolation by {said:g}, as the file says"
        if said > 1
        else f"linear interpolation by {factor}, as it was fine-tuned; the file does not say so",
        "stop": "what ToolLLaMA was trained to end a reply with",
        "bos": "LLaMA's tokenizer puts it before every prompt",
        "temperature": "the paper's sampling",
        "grounded": _FREE,
    }


def _why_chat(facts: ModelFacts) -> str:
    if facts.chat_template:
        return "the file carries a chat template"
    return "the file carries no chat template: plain System/User/Assistant turns are used"


BUILTIN: Mapping[str, Callable[[ModelFacts], Reasoned]] = {
    "compact": compact,
    "chat": chat,
    "small": small,
    "toolllama-1": toolllama_1,
    "toolllama-2": toolllama_2,
}
