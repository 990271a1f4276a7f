"""The conversations of an answer file: what a model read before each reply on a path (spec: 5.6).

The history of a path holds a diversity message wherever the search came back to a node and asked
for something else; of these a conversation keeps the last only.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolsrv_runtime.answers.model import Conversation, FunctionCall, Message
from toolsrv_runtime.answers.replies import Replies
from toolsrv_runtime.answers.words import HALLUCINATED, Words, user
from toolsrv_runtime.outcome import TreeNode
from toolsrv_runtime.search.tree import Code


def conversations(
    replies: Replies,
    path: Sequence[TreeNode],
    query: str,
    *,
    tools: str,
    words: Words,
    branches: bool,
) -> tuple[Conversation, ...]:
    """Return one conversation per reply of a path, each up to that reply.

    ``branches`` is False for independent chains: they do not know of each other.
    """
    history = [
        Message(role="system", content=words.system(tools)),
        Message(role="user", content=user(query)),
    ]
    found = []
    for node in path:
        if branches and (tried := _tried(replies, node)):
            text = words.diversity(tried, _own(replies, node))
            history.append(Message(role="user", content=text, valid=False))
        history.append(_said(node))
        found.append(_kept(history))
        if node.function:
            shown = replies.observation(node)
            history.append(Message(role="function", name=_name(node), content=shown))
    return tuple(found)


def _tried(replies: Replies, node: TreeNode) -> list[tuple[str, str, str]]:
    return [
        (one.function, one.text, replies.observation(one)) for one in replies.tried_before(node)
    ]


def _own(replies: Replies, node: TreeNode) -> str:
    """Return the observation at the node that a reply follows; the root has none."""
    parent = replies.parent(node)
    return replies.observation(parent) if parent.function else ""


def _said(node: TreeNode) -> Message:
    call = FunctionCall(name=_name(node), arguments=node.text) if node.function else None
    content = None if node.bare else node.thought
    return Message(role="assistant", content=content, function_call=call)


def _name(node: TreeNode) -> str:
    return HALLUCINATED if node.code == Code.UNKNOWN_FUNCTION else node.function


def _kept(history: Sequence[Message]) -> Conversation:
    last = max((at for at, one in enumerate(history) if not one.valid), default=-1)
    return tuple(one for at, one in enumerate(history) if one.valid or at == last)
