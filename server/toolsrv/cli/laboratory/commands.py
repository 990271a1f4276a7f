"""``toolsrv lab``: the command table. Commands are imported when they are called."""

from __future__ import annotations

import click

from toolsrv.cli.lazy import LazyGroup
from toolsrv.cli.options import example
from toolsrv.cli.session import Session, pass_session

_ENCODER = "toolsrv.cli.laboratory.retrieval"
_HERE = "toolsrv.cli.laboratory.retrieval"
_INSTRUCTIONS = "toolsrv.cli.laboratory.instructions"
_MATCHER = "toolsrv.cli.laboratory.matcher"
_TOOLEVAL = "toolsrv.cli.laboratory.tooleval"


@click.group(
    cls=LazyGroup,
    table={
        "retriever": (f"{_ENCODER}:train_retriever", "Train the sentence encoder on requests."),
        "ranker": (f"{_HERE}:train_ranker", "Train the ranker on searches with known answers."),
        "matcher": (f"{_MATCHER}:train_matcher", "Which API serves a clause, with which values."),
        "model": (
            "toolsrv.cli.laboratory.training:train_model",
            "A model from nothing, or a LLaMA further.",
        ),
    },
    epilog=example("toolsrv lab train retriever --services DIR --out RUN"),
)
def train() -> None:
    """Train what searches and solves with."""


@click.group(
    "eval",
    cls=LazyGroup,
    table={
        "retrieval": (f"{_HERE}:eval_retrieval", "NDCG and recall on query files."),
        "parts": (f"{_HERE}:eval_parts", "What each part of the search brings."),
        "unserved": (f"{_HERE}:eval_unserved", "Whether it is told that nothing fits."),
        "solve": ("toolsrv.cli.laboratory.solve:eval_solve", "Strategies side by side on tasks."),
        "models": (
            "toolsrv.cli.laboratory.models:eval_models",
            "Models, strategies and aids on tasks.",
        ),
        "bfcl": (
            "toolsrv.cli.laboratory.function_calls:eval_bfcl",
            "Function calls, by BFCL's AST checker.",
        ),
        "apibench": (
            "toolsrv.cli.laboratory.apibench:eval_apibench",
            "Picking an API, as Gorilla does.",
        ),
        "stable": (
            "toolsrv.cli.laboratory.stable:eval_stable",
            "StableToolBench, against its cache.",
        ),
        "pass-rate": (f"{_TOOLEVAL}:eval_pass_rate", "Answers, by ToolEval's pass rate."),
        "win-rate": (f"{_TOOLEVAL}:eval_win_rate", "Two models' answers side by side."),
        "agreement": (f"{_TOOLEVAL}:eval_agreement", "A judge beside people's labels."),
        "compress": (
            "toolsrv.cli.laboratory.compression:eval_compress",
            "Keys kept of responses, against ToolBench's schemas.",
        ),
        "llift": ("toolsrv.cli.laboratory.llift:eval_llift", "Use before initialisation in C."),
        "choice": (
            "toolsrv.cli.laboratory.function_calls:eval_choice",
            "The first function a model calls.",
        ),
        "matcher": (f"{_MATCHER}:eval_matcher", "The matcher on held-out tools and tasks."),
        "imports": (
            "toolsrv.cli.laboratory.robustness:eval_imports",
            "Whole documents, as they import.",
        ),
        "unseen": (
            "toolsrv.cli.laboratory.function_calls:eval_unseen",
            "First calls on held-out tools.",
        ),
    },
    epilog=example("toolsrv lab eval retrieval --queries FILE"),
)
def eval_() -> None:
    """Judge what searches and solves with."""


@click.group(
    cls=LazyGroup,
    table={
        "retriever": (f"{_ENCODER}:export_retriever", "A trained encoder as int8 ONNX."),
        "pairs": (f"{_ENCODER}:export_pairs", "What the encoder learns from, to train elsewhere."),
        "matcher": (f"{_MATCHER}:export_matcher", "A trained matcher as int8 ONNX."),
        "samples": (f"{_MATCHER}:export_samples", "Samples, to train the matcher elsewhere."),
        "model": (
            "toolsrv.cli.laboratory.export:export_model",
            "A trained model as GGUF, with its card.",
        ),
        "encoder": (
            "toolsrv.cli.laboratory.export:export_encoder",
            "all-MiniLM-L6-v2 as int8 ONNX.",
        ),
        "examples": (
            "toolsrv.cli.laboratory.export:export_examples",
            "Requests of known APIs as vectors.",
        ),
    },
    epilog=example("toolsrv lab export retriever DIR --out FOLDER"),
)
def export() -> None:
    """Turn what was trained into what ships."""


@click.group(
    cls=LazyGroup,
    table={
        "instructions": (
            f"{_INSTRUCTIONS}:report_instructions",
            "Lengths, variety and nearness to API documents.",
        ),
        "requests": (
            "toolsrv.cli.laboratory.export:report_requests",
            "Solves of requests to services.",
        ),
    },
    epilog=example("toolsrv lab report instructions FILE --beside QUERIES"),
)
def report() -> None:
    """Say what written files are like."""


@click.group(
    cls=LazyGroup,
    table={
        "instructions": (f"{_INSTRUCTIONS}:instructions", "Write tasks over the enabled catalogs."),
        "report": ("toolsrv.cli.laboratory.commands:report", "Say what written files are like."),
        "samples": (f"{_MATCHER}:samples", "Write texts to train the matcher on."),
        "episodes": (
            "toolsrv.cli.laboratory.training:episodes",
            "Write solved tasks to train a model on.",
        ),
        "annotate": (
            "toolsrv.cli.laboratory.annotate:annotate",
            "Solve tasks as ToolBench answer files.",
        ),
        "conversations": (
            "toolsrv.cli.laboratory.data:conversations",
            "Write solved tasks to train a chat model on.",
        ),
        "convert": ("toolsrv.cli.laboratory.data:convert", "Turn answer files into training data."),
        "train": (
            "toolsrv.cli.laboratory.commands:train",
            "Train retriever, ranker, matcher or model.",
        ),
        "curve": ("toolsrv.cli.laboratory.export:curve", "Draw how trainings went."),
        "export": (
            "toolsrv.cli.laboratory.commands:export",
            "Turn what was trained into what ships.",
        ),
        "eval": ("toolsrv.cli.laboratory.commands:eval_", "Judge on files of queries."),
        "tables": ("toolsrv.cli.laboratory.tables:tables", "ToolLLM's tables, the paper's beside."),
        "fuzz": (
            "toolsrv.cli.laboratory.robustness:fuzz",
            "Look for inputs that break what is promised.",
        ),
    },
    epilog=example("toolsrv lab eval retrieval --queries FILE"),
)
@pass_session
def lab(session: Session) -> None:
    """Train and evaluate models and search: instructions, training, evaluation."""
    session.public()
