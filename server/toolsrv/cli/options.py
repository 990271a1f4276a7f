"""Options and help texts that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:  # pydantic is not needed for --help
    from toolsrv.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def not_empty(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return an argument's text; a click callback. Raises BadParameter for an empty one."""
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty", ctx=ctx, param=param)
    return value


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
    "(http://host:8000/v1,…)"
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
    help='LoRA adapter for the model: GGUF, or a PEFT folder, merged once; "" for none.',
)
engine_model_option = click.option(
    "--engine-model", metavar="NAME", help="Model at the servers. [default: their first]"
)
mode_option = click.option(
    "--mode",
    type=click.Choice(["live", "record", "replay", "offline"]),
    help="Call over the network (live), record what comes, give recordings again (replay), or only "
    "the catalog that ships (offline).",
)
simulate_option = click.option(
    "--simulate",
    type=click.Choice(["off", "schema", "model"]),
    help="Invent what nobody here answers, by response schema or by a model; marked as simulated.",
)
simulator_option = click.option(
    "--simulator",
    metavar="MODEL",
    help="Model that simulates: a GGUF file or a server's address. [default: the solve's]",
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


def without_effect(settings: Settings, flags: Mapping[str, Any]) -> list[str]:
    """Return what to say of flags that were given and do nothing with these settings."""
    from toolsrv_runtime.models.openai import is_url

    found = []
    if flags.get("chains") is not None and settings.strategy != "cot":
        found.append(
            f"--chains does nothing with the strategy {settings.strategy}; it is for --strategy cot"
        )
    servers = any(is_url(str(one or "")) for one in (settings.model, settings.simulator))
    if flags.get("engine_model") is not None and not servers:
        found.append("--engine-model does nothing without a server; it is for --model http://…")
    return found


def solve_options(command: F) -> F:
    """Add the options of a solve; each overrides the setting of the same name."""
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
            type=int,
            help="Of a chat model: so many solves at once, the answer that most of them support.",
        ),
        click.option("--chains", type=int, help="Most chains of cot (CoT@N), 1 to 32."),
        click.option("--width", type=int, help="Branches tried below one node, 1 to 8."),
        click.option(
            "--depth", type=int, help="Most nodes on one path, 3 to 96; a call takes three."
        ),
        click.option("--candidates", type=int, help="APIs offered to the model, 1 to 32."),
        click.option(
            "--max-seconds",
            type=float,
            help="Time for the solve; one last answer may take a second or a step more.",
        ),
        click.option("--max-calls", type=int, help="API calls in the solve."),
        click.option("--max-model-calls", type=int, help="Replies of the model in the solve."),
        click.option(
            "--max-tokens",
            type=int,
            help="Generated tokens in the solve; one last answer may take 512 more.",
        ),
        click.option("--threads", type=int, help="Model threads; 0: automatic."),
        click.option("--gpu-layers", type=int, help="Layers of the model on a GPU; 0: none."),
        click.option("--seed", type=int, help="Seed of the sampling."),
        mode_option,
        simulate_option,
        simulator_option,
        click.option(
            "--faithful/--no-faithful",
            default=None,
            help="Do as ToolBench does, defects included, to reproduce its figures.",
        ),
        click.option(
            "--faithful-in",
            metavar="NAME,…",
            help="Only in these differences: depth, match_suffix, … (docs/solving.md).",
        ),
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
