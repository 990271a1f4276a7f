"""APIBench (Gorilla): a chat model picks the API for an instruction, with retrieved documents.

The model has one function, ``pick_api``, and its reply is held to one call of it. Its argument is
the Python call that loads the API. Accuracy: the call matches an API of the corpus by its AST
sub-tree (``apibench_calls``) and that API is for the question's domain of use. Hallucination: it
matches none. Nothing that a model writes is executed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.apibench_calls import Domain, match
from toolsrv_lab.evaluation.apibench_data import HUBS, Corpus, CorpusApi, Question
from toolsrv_lab.evaluation.statistics import Mean, Share, mean, share
from toolsrv_runtime.contract.models import (
    ChatModel,
    ChatReply,
    ChatRequest,
    ReplyConstraints,
    SystemMessage,
    Tool,
    UserMessage,
)
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.stop import Stop

PICK = "pick_api"
MAX_TOKENS = 256
_CALL_LIMIT = 2_000

Outcome = Literal["right", "wrong", "hallucinated", "none"]
"""``wrong``: an API of the corpus for another use; ``none``: the model picked no API."""

_SYSTEM = (
    "You choose an API of {hub} for what a user needs. Call pick_api once, with the Python call "
    "that loads the API. {source}"
)
_DOCUMENTS = "Choose among the documents and copy the api_call as it stands there."
_MEMORY = "You get no documents: name one that {hub} has."
_FORMS: Mapping[Domain, str] = {
    "torchhub": "a call of torch.hub.load with repo_or_dir and model",
    "tensorflowhub": "a call of hub.load or hub.KerasLayer with the model's address",
    "huggingface": "a call of from_pretrained of the model's class, or of pipeline, with its name",
}


class PickResult(BaseModel):
    """What a model picked for one question. ``matched``: the place in the corpus, -1 for none.

    ``same``: it is the very API that the question was written for. ``shown``: that API was among
    the ``documents`` that were shown.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    call: str
    matched: int
    outcome: Outcome
    same: bool
    shown: bool
    documents: int
    problem: str
    seconds: float
    prompt_tokens: int
    generated: int


class PickFigures(BaseModel):
    """Over some questions: shares of all of them, and means per question."""

    model_config = ConfigDict(frozen=True)

    questions: int
    accuracy: Share
    hallucination: Share
    wrong: Share
    no_call: Share
    same_api: Share
    shown: Share
    seconds: Mean
    prompt_tokens: Mean
    generated: Mean


def request_of(question: Question, domain: Domain, documents: Sequence[CorpusApi]) -> ChatRequest:
    """Return what a model is asked."""
    hub = HUBS[domain]
    source = _DOCUMENTS if documents else _MEMORY.format(hub=hub)
    shown = "\n".join(one.document for one in documents)
    text = f"{question.text}\n\nDocuments:\n{shown}" if documents else question.text
    schema = {
        "type": "object",
        "properties": {"api_call": {"type": "string", "description": f"Python: {_FORMS[domain]}"}},
        "required": ["api_call"],
        "additionalProperties": False,
    }
    tool = Tool(PICK, f"Picks the API of {hub} that does what the user needs.", schema)
    return ChatRequest(
        (SystemMessage(_SYSTEM.format(hub=hub, source=source)), UserMessage(text)),
        (tool,),
        ReplyConstraints((PICK,), calls=1, text=False),
        max_tokens=MAX_TOKENS,
    )


def pick(
    model: ChatModel,
    question: Question,
    documents: Sequence[CorpusApi],
    corpus: Corpus,
    *,
    stop: Stop,
) -> PickResult | None:
    """Return what a model picks, None where its reply was broken off. Blocks.

    Documents that do not fit the model's context are left out from the last on.

    Raises:
        ContextError: the model has no room for a single document.
        ModelError: nobody gave a usable reply.
    """
    start = time.monotonic()
    reply, fitting = _reply(model, question, documents, corpus.domain, stop)
    if reply is None:
        return None
    call = "".join(str(one.arguments.get("api_call", "")) for one in reply.calls[:1]).strip()
    matched = match(call, corpus.patterns)
    return PickResult(
        id=question.id,
        call=call[:_CALL_LIMIT],
        matched=matched,
        outcome=_outcome(call, matched, question, corpus),
        same=matched >= 0 and corpus.apis[matched].call == question.api.call,
        shown=any(one.call == question.api.call for one in fitting),
        documents=len(fitting),
        problem=reply.problem,
        seconds=round(time.monotonic() - start, 4),
        prompt_tokens=reply.prompt_tokens,
        generated=reply.generated,
    )


def _reply(
    model: ChatModel,
    question: Question,
    documents: Sequence[CorpusApi],
    domain: Domain,
    stop: Stop,
) -> tuple[ChatReply | None, Sequence[CorpusApi]]:
    while True:
        try:
            return model.reply(request_of(question, domain, documents), stop=stop), documents
        except ContextError as error:
            if len(documents) < 2:
                hint = "name a model with a longer context, or start its server with one"
                raise ContextError(error.message, hint=hint) from error
            documents = documents[:-1]


def _outcome(call: str, matched: int, question: Question, corpus: Corpus) -> Outcome:
    if not call:
        return "none"
    if matched < 0:
        return "hallucinated"
    return "right" if corpus.apis[matched].domain == question.api.domain else "wrong"


def figures(results: Sequence[PickResult]) -> PickFigures:
    """Return the figures over some results."""

    def of(outcome: Outcome) -> Share:
        return share(one.outcome == outcome for one in results)

    return PickFigures(
        questions=len(results),
        accuracy=of("right"),
        hallucination=of("hallucinated"),
        wrong=of("wrong"),
        no_call=of("none"),
        same_api=share(one.same for one in results),
        shown=share(one.shown for one in results),
        seconds=mean([one.seconds for one in results]),
        prompt_tokens=mean([one.prompt_tokens for one in results]),
        generated=mean([one.generated for one in results]),
    )
