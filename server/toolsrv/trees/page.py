"""Self-contained HTML page of a run: no network, no script but its own.

``page`` is a run as it is, ``picture`` its tree for another page; ``app`` is the view of an MCP host, which reads such pages while a run works.

Texts come from models and APIs and are untrusted: all are escaped, none enters the script, and
the Content-Security-Policy allows this very style and script and nothing more.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from importlib import resources

from toolsrv.plain import one_line
from toolsrv.trees.shown import ShownNode, ShownRun
from toolsrv.trees.svg import NAMES, badge, shape_of, shape_svg, svg

TEXT_LIMIT = 20_000
"""Characters of one text on the page; `toolsrv run response` has whole responses."""
STATUS = {
    "answered": "answer",
    "replied": "answer",
    "partial": "call",
    "needs_input": "call",
    "gave_up": "give_up",
    "cancelled": "thought",
    "failed": "failed",
    "interrupted": "thought",
}
LIVE = frozenset({"queued", "working"})


def page(run: ShownRun) -> str:
    """Return the page of a run, ended or not."""
    state = "live" if run.status in LIVE else "ended"
    body = [_header(run), f"<main>\n{_picture(run)}\n</main>"]
    script = _asset("page.js") + "mountTree();\n"
    return _document(f"{one_line(run.task, 80)} – toolsrv", state, body, script)


def app() -> str:
    """Return the view of an MCP host (MCP Apps): empty until the host says which run is shown."""
    body = ['<div id="run"></div>', '<p id="message" role="status"></p>']
    return _document("toolsrv", "app", body, _asset("page.js") + _asset("app.js"))


def picture(run: ShownRun) -> str:
    """Return the tree of a run with its legend, tools and details, for a page with ``tree.css``.

    ``mountTree`` of ``page.js`` makes it interactive.
    """
    return f'{_bar(run)}\n<div class="picture">{_picture(run)}</div>'


def _picture(run: ShownRun) -> str:
    parts = [
        f'<div id="canvas">{svg(run)}</div>',
        '<aside id="panel" tabindex="0" aria-live="polite" aria-label="Node">',
        *(_detail(run, node) for node in run.nodes),
        "</aside>",
    ]
    return "\n".join(parts)


def _document(title: str, state: str, body: Iterable[str], script: str) -> str:
    style = _asset("page.css") + _asset("tree.css")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title>",
            f'<style>{style}</style>\n</head>\n<body data-state="{state}">',
            *body,
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


def _header(run: ShownRun) -> str:
    status = shape_svg(STATUS.get(run.status, "thought"))
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in run.facts.items()
    )
    return (
        f"<header>\n<h1>{escape(run.task)}</h1>\n"
        f'<p class="end">{status} <b>{escape(run.status.replace("_", " "))}</b> '
        f"{escape(run.answer or run.reason)}</p>\n"
        f"{_reason(run)}<dl class=facts>{facts}</dl>\n{_bar(run)}\n</header>"
    )


def _bar(run: ShownRun) -> str:
    """Return the legend, the tools and the keys of a tree."""
    present = {shape_of(node) for node in run.nodes}
    legend = "".join(
        f"<li>{shape_svg(name)} {NAMES[name]}</li>" for name in NAMES if name in present
    )
    return (
        f'<div class="bar"><ul class="legend">{legend}<li><span class="thick"></span> answer path</li>'
        '<li><span class="dashed"></span> pruned</li></ul>'
        '<span class="tools"><button id="path" aria-pressed="false">Answer path only</button>'
        '<button id="less" aria-label="Smaller">−</button>'
        '<button id="fit">Fit</button><button id="more" aria-label="Larger">+</button></span></div>\n'
        '<p class="keys">Arrow keys move, Enter opens a node, Escape goes back to the tree, '
        "Home and End jump to the task and to the answer.</p>"
    )


def _reason(run: ShownRun) -> str:
    if not (run.answer and run.reason) or run.status in {"answered", "replied"}:
        return ""
    return f"<p>{escape(run.reason)}</p>\n"


def _detail(run: ShownRun, node: ShownNode) -> str:
    rows: Iterable[tuple[str, str]] = (
        ("Thought", node.thought),
        ("API", node.api_id),
        ("Function", node.function),
        ("Answer" if node.kind == "answer" else "Arguments", node.arguments),
        ("Observation", node.observation),
        ("Source", node.source),
    )
    if node.kind == "root":
        why = "What it does now" if run.status in LIVE else "Why it ended so"
        rows = (("Task", run.task), ("Answer", run.answer), (why, run.reason))
    told = "".join(
        f"<dt>{name}</dt><dd><pre>{escape(_capped(text))}</pre></dd>" for name, text in rows if text
    )
    if node.has_response:
        command = escape(f"toolsrv run response {run.name} {node.id}")
        told += f"<dt>Whole response</dt><dd><code>{command}</code></dd>"
    end = "On the way to the answer. " * node.winning + "The search turned back here." * node.pruned
    status = f" · HTTP {node.status}" if node.status else ""
    return (
        f'<section id="d{node.id}" class="detail"><h2>{shape_svg(shape_of(node))} {escape(node.title)}</h2>'
        f'<p class="badge">{escape(badge(node))}{status}</p>'
        + (f"<p>{end}</p>" if end else "")
        + f"<dl>{told}</dl></section>"
    )


def _capped(text: str) -> str:
    if len(text) <= TEXT_LIMIT:
        return text
    return f"{text[:TEXT_LIMIT]}… ({len(text):,} characters in all)"


def _asset(name: str) -> str:
    return resources.files("toolsrv.trees").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
