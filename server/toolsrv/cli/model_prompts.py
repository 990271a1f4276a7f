"""``toolsrv model prompts``: ToolBench's own sentences, taken from a file that the user has."""

from __future__ import annotations

from pathlib import Path

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session


@click.command(
    short_help="Keep ToolBench's own sentences.",
    epilog=example("toolsrv model prompts answer/G1_answer/57_ChatGPT_DFS_woFilter_w2.json"),
)
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@pass_session
def prompts(session: Session, file: Path, as_json: bool) -> None:
    """Keep the sentences of ToolBench that FILE holds, for ToolLLaMA and for answer files.

    FILE is an answer file of ToolBench, or its training file toolllama_G123_dfs_train.json. Only
    sentences with the SHA-256 of those that ToolLLaMA was trained on are kept; what one file lacks
    another may hold. Without them our own wording is used.
    """
    from toolsrv_runtime.answers.artefact import read_prompts
    from toolsrv_runtime.answers.prompts import PROMPTS_FILE, keep_prompts

    folder = session.load().settings.data_dir
    kept = keep_prompts(folder, read_prompts(file.expanduser()))
    if as_json:
        place = str(folder / PROMPTS_FILE)
        emit_json({"path": place, "missing": kept.missing, "newest_finish": kept.newest})
        return
    click.echo(f"kept in {folder / PROMPTS_FILE}")
    for part in kept.missing:
        note(f"note: {file.name} does not hold {part}: it stays in our own words")
    if kept.finish is not None and not kept.newest:
        note("note: the entry of Finish is that of older data; later files have another")
