"""The paper's own numbers: ToolLLM, arXiv 2307.16789, and the version of each.

Tables 2 to 5 are those of the second version (October 2023). Of its Table 6 only three averages are
here; their win rates with half of the ties agree with Table 4.
"""

from __future__ import annotations

from toolsrv_lab.paper_tables.subsets import SUBSETS, TYPES
from toolsrv_lab.paper_tables.table import AVERAGE, Row, published_row

PAPER_V2 = "the paper's own, arXiv 2307.16789v2"
README_V1 = (
    "ToolBench's own, README of August 2023, when the paper's first version was current (judged by "
    "an earlier ToolEval; win rates against ChatGPT-DFSDT)"
)

DATA_COLUMNS = ("tools", "APIs", "instances", "calls", "real calls", "reasoning length")
DATA = (
    published_row("ToolBench, v2", DATA_COLUMNS, "3451 16464 126486 - 469585 4.0"),
    published_row("ToolBench, README of August 2023", DATA_COLUMNS, "3451 16464 12657 - 37204 4.1"),
)

_NDCG = ("@1", "@5")
RETRIEVAL_COLUMNS = tuple(f"{name} {at}" for name in (*TYPES, AVERAGE) for at in _NDCG)
RETRIEVAL = (
    published_row("BM25", RETRIEVAL_COLUMNS, "18.4 19.7 12.0 11.0 25.2 20.4 18.5 17.0"),
    published_row("Ada", RETRIEVAL_COLUMNS, "57.5 58.8 36.8 30.7 54.6 46.8 49.6 45.4"),
    published_row("their retriever", RETRIEVAL_COLUMNS, "84.2 89.7 68.2 77.9 81.7 87.1 78.0 84.9"),
)

STRATEGY_COLUMNS = (*TYPES, AVERAGE)
STRATEGIES = (
    published_row("ChatGPT, ReACT", STRATEGY_COLUMNS, "37.8 40.6 27.6 35.3"),
    published_row("ChatGPT, ReACT@N", STRATEGY_COLUMNS, "49.4 49.4 34.6 44.5"),
    published_row("ChatGPT, DFSDT", STRATEGY_COLUMNS, "58.0 70.6 62.8 63.8"),
)

SUBSET_COLUMNS = (*SUBSETS, AVERAGE)
_RATES = (
    ("ChatGPT, ReACT", "41.5 44.0 44.5 42.5 46.5 22.0 40.2", "- - - - - - -"),
    ("ChatGPT, DFSDT", "54.5 65.0 60.5 75.0 71.5 62.0 64.8", "60.5 62.0 57.3 72.0 64.8 69.0 64.3"),
    ("Claude-2, ReACT", "5.5 3.5 5.5 6.0 6.0 14.0 6.8", "31.0 27.8 33.8 35.0 31.5 47.5 34.4"),
    ("Claude-2, DFSDT", "20.5 31.0 18.5 17.0 20.5 28.0 22.6", "38.0 44.3 43.3 36.8 33.5 65.0 43.5"),
    (
        "Text-Davinci-003, ReACT",
        "12.0 20.0 20.0 8.5 14.5 24.0 16.5",
        "28.5 35.3 31.0 29.8 29.8 45.0 33.2",
    ),
    (
        "Text-Davinci-003, DFSDT",
        "43.5 44.0 46.0 37.0 42.0 46.0 43.1",
        "40.3 43.8 46.8 40.5 43.3 63.0 46.3",
    ),
    ("GPT4, ReACT", "53.5 50.0 53.5 67.0 72.0 47.0 57.2", "60.0 58.8 63.5 65.8 60.3 78.0 64.4"),
    ("GPT4, DFSDT", "60.0 71.5 67.0 79.5 77.5 71.0 71.1", "67.5 67.8 66.5 73.3 63.3 84.0 70.4"),
    ("Vicuna, Alpaca (either strategy)", "0 0 0 0 0 0 0", "0 0 0 0 0 0 0"),
    (
        "ToolLLaMA, ReACT",
        "25.0 29.0 33.0 30.5 31.5 25.0 29.0",
        "45.0 42.0 47.5 50.8 41.8 55.0 47.0",
    ),
    (
        "ToolLLaMA, DFSDT",
        "57.0 61.0 62.0 77.0 77.0 66.0 66.7",
        "55.0 55.3 54.5 68.5 58.0 69.0 60.0",
    ),
    (
        "ToolLLaMA, DFSDT, retrieved APIs",
        "64.0 64.0 60.5 81.5 68.5 65.0 67.3",
        "62.3 59.0 55.0 68.5 60.8 73.0 63.1",
    ),
)
PASS_RATES = tuple(published_row(name, SUBSET_COLUMNS, passed) for name, passed, _ in _RATES)
WIN_RATES = tuple(published_row(name, SUBSET_COLUMNS, won) for name, _, won in _RATES)

_TIES = (
    ("GPT4, DFSDT", "64.2", "12.4"),
    ("ToolLLaMA, DFSDT", "55.2", "9.8"),
    ("ToolLLaMA, DFSDT, retrieved APIs", "59.2", "7.8"),
)
WINS = tuple(published_row(name, (AVERAGE,), won) for name, won, _ in _TIES)
TIES = tuple(published_row(name, (AVERAGE,), tied) for name, _, tied in _TIES)

HUBS = {"huggingface": "HuggingFace", "torchhub": "TorchHub", "tensorflowhub": "TensorHub"}
APIBENCH_COLUMNS = tuple(
    f"{hub} {measure}" for hub in HUBS.values() for measure in ("hallucination", "AST")
)
APIBENCH = (
    published_row(
        "ToolLLaMA, their retriever", APIBENCH_COLUMNS, "10.60 16.77 15.70 51.16 6.48 40.59"
    ),
    published_row("Gorilla-ZS, BM25", APIBENCH_COLUMNS, "46.90 10.51 17.20 44.62 20.58 34.31"),
    published_row("Gorilla-RS, BM25", APIBENCH_COLUMNS, "6.42 15.71 5.91 50.00 2.77 41.90"),
    published_row("ToolLLaMA, oracle", APIBENCH_COLUMNS, "8.66 88.80 14.12 85.88 7.44 88.62"),
    published_row("Gorilla-ZS, oracle", APIBENCH_COLUMNS, "52.88 44.36 39.25 59.14 12.99 83.21"),
    published_row("Gorilla-RS, oracle", APIBENCH_COLUMNS, "6.97 89.27 6.99 93.01 2.04 94.16"),
)

TUNED_PASS: tuple[Row, ...] = (
    published_row("ToolLLaMA, full", SUBSET_COLUMNS, "68 80 75 47 56 40 61.0"),
    published_row("ToolLLaMA-LoRA", SUBSET_COLUMNS, "51 63 61 38 42 45 50.0"),
)
TUNED_WIN: tuple[Row, ...] = (
    published_row("ToolLLaMA, full", SUBSET_COLUMNS, "50 45 45 59 48 46 48.8"),
    published_row("ToolLLaMA-LoRA", SUBSET_COLUMNS, "43 36.4 30 42 45 51 41.2"),
)
