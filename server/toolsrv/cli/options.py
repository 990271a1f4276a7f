"""Options and help texts that several commands share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def not_empty(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return an argument's text; a click callback. Raises BadParameter for an empty one."""
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty", ctx=ctx, param=param)
    return value


class FiniteRange(click.FloatRange):
    """A number within bounds; ``nan``, which every bound lets pass, and ``inf`` are refused."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number. Raises BadParameter for one that is none or not in the range."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is no finite number", param, ctx)
        return number


class GivenPath(click.Path):
    """A path as ``pathlib`` has it; an empty one, which would be the present folder, is refused."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """Return the path. Fails for an empty one."""
        if not str(value).strip():
            self.fail("it is empty, and names no file or folder", param, ctx)
        return super().convert(value, param, ctx)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout, nothing else."
)
category_option = click.option("--category", metavar="NAME", help="Only APIs of this category.")
_MODELS = (
    "GGUF file of the model or its name on the list, addresses of OpenAI-compatible servers "
    "(http://host:8000/v1#NAME,…; without #NAME their first model)"
)
model_option = click.option(
    "--model",
    metavar="MODEL",
    help=f"{_MODELS} or scripted:FILE. [default: the one that ships]",
)
serve_model_option = click.option(
    "--model",
    metavar="MODEL",
    help=f"{_MODELS}, scripted:FILE, or sampling: the client's own model, where it offers that. "
    "[default: the one that ships]",
)
adapter_option = click.option(
    "--adapter",
    metavar="FILE|FOLDER",
    help="LoRA adapter for the model: GGUF, or a PEFT folder, merged once.",
)
engine_model_option = click.option("--engine-model", hidden=True, help="Now: --model URL#NAME.")
mode_option = click.option(
    "--mode",
    type=click.Choice(["live", "record", "replay", "offline"]),
    help="Call over the network (live), record what comes, give recordings again (replay), or only "
    "the catalog that ships (offline).",
)
simulate_option = click.option(
    "--simulate",
    metavar="off|schema|model|MODEL",
    help="Invent what nobody here answers: by response schema, by the solve's model, or by another "
    "(a GGUF file, a server's address); marked as simulated.",
)
simulator_option = click.option(
    "--simulator", "simulate", hidden=True, help="Now: --simulate MODEL."
)
source_argument = click.argument("source", metavar="NAME|URL|FILE", required=False)
published_file_option = click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The published file, where it is on this disk already.",
)
sha256_option = click.option(
    "--sha256", default="", metavar="HEX", help="What the file's SHA-256 has to be."
)
include_option = click.option(
    "--include",
    metavar="RULE",
    multiple=True,
    help="Only operations with tag:NAME, path:/GLOB/* or method:GET; repeatable.",
)
exclude_option = click.option(
    "--exclude", metavar="RULE", multiple=True, help="Not the operations of such a rule."
)
accept_option = click.option("--accept", is_flag=True, help="Serve changed texts at once.")
no_index_option = click.option(
    "--no-index", is_flag=True, help="Do not build the search index afterwards."
)
profile_option = click.option(
    "--profile",
    metavar="NAME|FILE",
    help="How the model is run: compact, chat, small, toolllama-1, toolllama-2, one of yours, or a "
    "TOML file. [default: by the model]",
)


def example(*lines: str) -> str:
    """Return a command's epilog that shows how it is called."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


threads_option = click.option("--threads", type=int, help="Model threads; 0: automatic.")


def faithful_options(command: F) -> F:
    """Add the options that follow ToolBench; ``Session`` makes one value of them."""
    command = click.option(
        "--faithful-in",
        metavar="NAME,…",
        help="Only in these differences: depth, match_suffix, … (docs/toolbench.md).",
    )(command)
    return click.option(
        "--faithful/--no-faithful",
        default=False,
        help="Do as ToolBench does, defects included, to reproduce its figures.",
    )(command)


def solve_options(command: F) -> F:
    """Add the options of a solve; each overrides the setting of the same name, where there is one."""
    options = [
        model_option,
        profile_option,
        adapter_option,
        engine_model_option,
        click.option(
            "--strategy",
            type=click.Choice(["dfsdt", "dfs", "react", "cot", "plan"]),
            help="Search a tree (dfsdt), best branch first (dfs), one chain (react), chains "
            "until one answers (cot), or a tree for each subtask (plan).",
        ),
        click.option(
            "--switch",
            "--switches",
            "switches",
            metavar="NAME,…",
            help="Of a chat model: plan, progressive, constraints, self-check; none. "
            "[default: by the model]",
        ),
        click.option(
            "--aids",
            metavar="NAME,…",
            help="Of a chat model: the aids in use; none. [default: by the model]",
        ),
        click.option(
            "--votes",
            type=click.IntRange(1, 16),
            help="Of a chat model: so many solves at once, the answer that most of them support.",
        ),
        click.option("--chains", type=click.IntRange(1, 32), help="Most chains of cot (CoT@N)."),
        click.option("--width", type=click.IntRange(1, 8), help="Branches tried below one node."),
        click.option(
            "--depth",
            type=click.IntRange(3, 96),
            help="Most nodes on one path; a call takes three.",
        ),
        click.option("--candidates", type=click.IntRange(1, 32), help="APIs offered to the model."),
        click.option(
            "--max-seconds",
            type=float,
            help="Time for the solve; one last answer may take a second or a step more.",
        ),
        click.option("--max-calls", type=int, help="API calls in the solve."),
        click.option(
            "--max-model-calls", type=click.IntRange(1), help="Replies of the model in the solve."
        ),
        click.option(
            "--max-tokens",
            type=int,
            help="Generated tokens in the solve; one last answer may take 512 more.",
        ),
        threads_option,
        click.option("--gpu-layers", type=int, help="Layers of the model on a GPU; 0: none."),
        click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of the sampling."),
        mode_option,
        simulate_option,
        simulator_option,
        faithful_options,
        click.option(
            "--verify/--no-verify",
            default=None,
            help="Let the model read its answer again; it may reject one, and the search goes on.",
        ),
        category_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command
