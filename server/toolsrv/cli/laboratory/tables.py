"""``toolsrv lab tables``: the tables of the ToolLLM paper from our own runs.

The work is done by ``toolsrv_lab.paper_tables``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory import tables_runs as runs
from toolsrv.cli.laboratory import tables_solves as solves
from toolsrv.cli.laboratory.scale import scale_options
from toolsrv.cli.laboratory.tables_runs import WORLDS, Request
from toolsrv.cli.laboratory.tooleval import judge_options
from toolsrv.cli.options import GivenPath, adapter_option, example, faithful_options, profile_option
from toolsrv.cli.output import Bar, emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_lab.paper_tables.table import PaperTable

NUMBERS = ("1", "2", "3", "4", "5", "6", "lora")
MARKDOWN, DOCUMENT = "tables.md", "tables.json"
_MARKS = {"2": "their retriever", "3": "ChatGPT, DFSDT", "4": "ToolLLaMA, DFSDT"}
_PATH = GivenPath()


@click.command(
    epilog=example(
        "toolsrv lab tables --models small,model.gguf --queries queries.jsonl --out DIR",
        "toolsrv lab tables --tables 2 --queries queries.jsonl --out DIR",
        "toolsrv lab tables --tables 1,lora --answers answers --lora lora --full full --out DIR",
    )
)
@click.option("--tables", "numbers", multiple=True, default=(",".join(NUMBERS),), show_default=True,
              metavar="NUMBER,…", help="Which tables; those without their inputs are left out.")  # fmt: skip
@click.option("--models", multiple=True, metavar="A,B",
              help="For tables 3 to 6: GGUF files, names of installed models, addresses of "
              "OpenAI-compatible servers.")  # fmt: skip
@click.option("--base", multiple=True, metavar="A,B",
              help="Models that were not tuned for tools; rows say so.")  # fmt: skip
@click.option("--queries", multiple=True, type=_PATH, metavar="FILE",
              help="For tables 2, 3, 4, 6: ToolBench's query files, or JSON lines. May be given several "
              "times.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True,
              help="Queries of a subset to solve, and APIBench questions of a domain. Table 2 takes "
              "all queries.")  # fmt: skip
@click.option("--strategies", multiple=True, default=("react,dfsdt",), show_default=True,
              metavar="NAME,…", help="Strategies of table 4: react, dfsdt.")  # fmt: skip
@click.option("--apis", multiple=True, default=("oracle,retrieved",), show_default=True,
              metavar="NAME,…", help="APIs that are offered: oracle, those that a query came with; "
              "retrieved, the first five of the search.")  # fmt: skip
@click.option("--world", type=click.Choice(list(WORLDS)), default="simulated", show_default=True,
              help="Where responses come from. recordings: those of the data folder, what they lack is "
              "simulated.")  # fmt: skip
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE",
              help="Any option of a solve, for all rows: --set limits.seconds=60.")  # fmt: skip
@click.option("--corpus", type=click.Choice(["all", "set"]), default="all", show_default=True,
              help="Table 2: rank all enabled APIs, or those that the queries of a type came with.")  # fmt: skip
@click.option("--encoder", metavar="NAME|DIR",
              help="Table 2: the zero-shot sentence encoder. [default: all-MiniLM-L6-v2]")  # fmt: skip
@click.option("--answers", multiple=True, type=_PATH, metavar="DIR",
              help="Table 1: a folder of answer files. May be given several times.")  # fmt: skip
@click.option("--real-answers", multiple=True, type=_PATH, metavar="DIR",
              help="The same, where real APIs answered all calls, as in ToolBench's data.")  # fmt: skip
@click.option("--simulated-answers", multiple=True, type=_PATH, metavar="DIR",
              help="The same, where all responses were simulated.")  # fmt: skip
@click.option("--apibench", type=_PATH, metavar="DIR",
              help="Table 5: Gorilla's files DOMAIN_api.jsonl and DOMAIN_eval.json.")  # fmt: skip
@click.option("--lora", multiple=True, type=_PATH, metavar="DIR",
              help="Answers of a model tuned with LoRA, as lab eval pass-rate takes them.")  # fmt: skip
@click.option("--full", multiple=True, type=_PATH, metavar="DIR",
              help="Answers of the same model tuned in full.")  # fmt: skip
@click.option("--times", type=click.IntRange(1, 99), default=4, show_default=True,
              help="Evaluations of each answer; most of them decide.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1, 99), default=2, show_default=True,
              help="Comparisons of each pair.")  # fmt: skip
@click.option("--keep-going", is_flag=True,
              help="Count a solve that a fault of the engine ended as failed, and go on.")  # fmt: skip
@profile_option
@adapter_option
@faithful_options
@judge_options
@scale_options
@pass_session
def tables(
    session: Session,
    /,
    numbers: tuple[str, ...],
    queries: tuple[Path, ...],
    limit: int,
    corpus: str,
    encoder: str | None,
    answers: tuple[Path, ...],
    real_answers: tuple[Path, ...],
    simulated_answers: tuple[Path, ...],
    apibench: Path | None,
    lora: tuple[Path, ...],
    full: tuple[Path, ...],
    out: Path | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Write the tables of the ToolLLM paper, the paper's own numbers beside them.

    Table 1: data; 2: retrievers; 3: strategies; 4: models, strategies and APIs by subset; 5: APIBench;
    6: wins and ties; lora: full fine-tuning and LoRA. Every solve, vote and ranking is kept in --out;
    the same command goes on there. Each value carries its command, seed, world and share of
    simulated responses.
    """
    request = _request(numbers, queries, limit, out, flags)
    left_out: dict[str, str] = {}
    found: list[PaperTable] = []

    def wanted(number: str, inputs: bool, option: str) -> bool:
        if number not in request.tables:
            return False
        if not inputs:
            left_out[number] = f"needs {option}"
        return inputs

    folders = {None: answers, "real": real_answers, "simulated": simulated_answers}
    if wanted("1", any(folders.values()), "--answers"):
        found.append(_data(request, folders))
    if wanted("2", bool(queries), "--queries"):
        found.append(runs.retrieval(session, request, corpus, encoder))
    models = bool(request.models or request.base)
    solved = [one for one in ("3", "4", "6") if wanted(one, bool(queries) and models, "--models and --queries")]  # fmt: skip
    if solved:
        found += solves.solves(session, request, solved)
    if wanted("5", apibench is not None and models, "--models and --apibench") and apibench:
        found += runs.apibench(session, request, apibench.expanduser(), left_out)
    if wanted("lora", bool(lora and full), "--lora and --full"):
        found += solves.tuning(session, request, full, lora)
    if not found:
        raise UsageError(
            f"there is no table to make: {'; '.join(f'{name} {why}' for name, why in left_out.items())}",
            hint="toolsrv lab tables --help says what each table takes",
        )
    found.sort(key=lambda one: NUMBERS.index(one.number))
    _write(request.folder, found, left_out, as_json=as_json)


def _request(
    numbers: Sequence[str],
    queries: tuple[Path, ...],
    limit: int,
    out: Path | None,
    flags: Mapping[str, Any],
) -> Request:
    """Check what is asked for. Raises UsageError."""
    folder = evaluation.out_folder(out)
    if folder is None:
        raise UsageError("the tables need a folder", hint="name one with --out DIR")
    lists = {name: tuple(evaluation.listed(flags[name])) for name in ("models", "base")}
    bench = {key: flags[key] for key in (*evaluation.BENCH_OPTIONS, "engine_model")}
    judge = {
        key: flags[key]
        for key in ("judge_name", "engine_model", "evaluator", "reasons", "jobs", "seed", "threads")
    }
    return Request(
        tables=_chosen("--tables", numbers, NUMBERS),
        folder=folder,
        queries=queries,
        limit=limit,
        models=lists["models"],
        base=lists["base"],
        strategies=_chosen("--strategies", flags["strategies"], ("react", "dfsdt")),
        apis=_chosen("--apis", flags["apis"], ("oracle", "retrieved")),
        world=flags["world"],
        given=flags["given"],
        times=flags["times"],
        rounds=flags["rounds"],
        keep_going=flags["keep_going"],
        judge=judge,
        bench=bench,
        scale=flags["scale"],
        command=_commands(click.get_current_context()),
    )


def _chosen(option: str, given: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    chosen = evaluation.listed(given)
    for one in chosen:
        if one not in known:
            raise UsageError(f"{option}: there is no {one!r}", hint=f"any of {', '.join(known)}")
    if not chosen:
        raise UsageError(f"{option} names nothing", hint=f"any of {', '.join(known)}")
    return tuple(chosen)


def _commands(context: click.Context) -> Callable[..., str]:
    """Return what writes commands with the options of this one, some of them replaced."""
    options = {one.name: one for one in context.command.params if isinstance(one, click.Option)}

    def command(**replaced: Any) -> str:
        words = ["toolsrv", "lab", "tables"]
        for name, option in options.items():
            if name is None or name == "as_json":
                continue
            given = context.params.get(name)
            value = "DIR" if name == "out" else replaced.get(name, given)
            if name not in replaced and (value == option.get_default(context) or value is None):
                continue
            for one in value if isinstance(value, tuple | list) else (value,):
                if one is True:
                    words.append(option.opts[0])
                elif one is not None and one is not False:
                    words += [option.opts[0], str(one)]
        return shlex.join(words)

    return command


def _data(request: Request, folders: Mapping[Any, Sequence[Path]]) -> PaperTable:
    from toolsrv_lab.paper_tables.answer_data import data_table, read_answer_data

    with Bar("reading answers", "files") as bar:
        found = [
            read_answer_data(one.expanduser(), world, progress=bar.show)
            for world, paths in folders.items()
            for one in paths
        ]
    others = ("queries", "models", "base", "apibench", "lora", "full")
    return data_table(found, request.command(numbers="1", **runs.without(*others)))


def _write(
    folder: Path, found: Sequence[PaperTable], left_out: Mapping[str, str], *, as_json: bool
) -> None:
    """Write Markdown, JSON and plots, and print them."""
    from toolsrv_lab.paper_tables.table import bars, markdown, marks
    from toolsrv_runtime.files import open_atomic

    lines = ["# The tables of ToolLLM, measured here", ""]
    lines += [f"Table {name} is left out: it {why}.\n" for name, why in left_out.items()]
    text = "\n".join([*lines, markdown(found)])
    document = {"tables": [one.model_dump() for one in found], "left_out": dict(left_out)}
    shown = f"{json.dumps(document, indent=2, ensure_ascii=False)}\n"
    for name, content in ((MARKDOWN, text), (DOCUMENT, shown)):
        with open_atomic(folder / name) as file:
            file.write(content.encode("utf-8", "backslashreplace"))
    for one in found:
        if one.number == "1":
            continue
        mark = _MARKS.get(one.number, "")
        title = f"Table {one.number}: {one.title}"
        dotted = f"\ndotted lines, from the paper: {mark}" if mark else ""
        evaluation.plot(
            folder, bars(one), f"{title}, with 95 % intervals{dotted}", marks(one, mark),
            f"table_{one.number}_{one.measure}.svg" if one.measure else f"table_{one.number}.svg",
        )  # fmt: skip
    for name, why in left_out.items():
        note(f"note: table {name} is left out: it {why}")
    if as_json:
        emit_json(document)
    else:
        click.echo(text)
        note(f"written: {folder / MARKDOWN}, {folder / DOCUMENT} and the plots beside them")
