"""The live view and the report: what is shown, and that nothing from outside steers a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from toolsrv.cli import output, solve_view
from toolsrv_runtime import outcome
from toolsrv_runtime import outcome as out

EVIL = "[red]x[/red] \x1b[2J\x1b]0;owned\x07 \u202egnp \udcff"
EVENTS: list[outcome.Event] = [
    outcome.CandidatesEvent(seconds=0, api_ids=("C/t/a", EVIL), scores=(1.0, 0.5)),
    outcome.ThoughtEvent(seconds=0, node=1, parent=0, depth=1, text=EVIL),
    outcome.CallEvent(
        seconds=0, node=2, depth=1, api_id="C/t/a", function="a_for_t", arguments={"q": EVIL}
    ),
    outcome.ObservationEvent(seconds=0, node=3, depth=1, status=200, text=EVIL, source="offline"),
    outcome.BacktrackEvent(seconds=0, node=3, to=0, reason=EVIL),
    outcome.OpinionEvent(
        seconds=0, depth=1, opinion=out.Opinion(node=3, verdict="rejected", reason=EVIL)
    ),
    outcome.NoteEvent(seconds=0, text=EVIL),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_is_one_plain_line(event: outcome.Event) -> None:
    line = solve_view.event_line(event)
    assert line.isprintable()
    assert "\x1b" not in line
    assert "[red]x[/red]" in line


@pytest.mark.parametrize("terminal", [False, True])
def test_the_view_logs_every_event_and_the_cost(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    stream = io.StringIO()
    console = Console(
        file=stream, markup=False, emoji=False, highlight=False, width=4000, force_terminal=terminal
    )
    monkeypatch.setattr(output, "console", lambda **_: console)
    with solve_view.LiveView(out.Limits(), quiet=False) as view:
        view.phase("loading")
        for event in EVENTS:
            view.on_event(event)
        view.on_event(outcome.BudgetEvent(seconds=1, usage=out.Usage(calls=2), limits=out.Limits()))
        view.finish(out.Usage(calls=2, seconds=1.5))
    shown = stream.getvalue()
    assert "[red]x[/red]" in shown
    assert "\x1b[2J" not in shown
    assert "\x1b]" not in shown
    assert "2 of 30 calls" in shown
    assert ("\x1b" in shown) is terminal


def ended(status: out.Status, answer: str, reason: str) -> out.Outcome:
    return out.Outcome(
        task="t", status=status, answer=answer, reason=reason, evidence=(), candidates=(), tree=(),
        usage=out.Usage(), limits=out.Limits(), strategy="dfsdt", model="m", format="chat", seed=0,
        versions={},
    )  # fmt: skip


def test_a_quiet_view_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with solve_view.LiveView(out.Limits(), quiet=True) as view:
        for event in EVENTS:
            view.on_event(event)
        view.finish(out.Usage())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        ("gave_up", "", "No answer: the model gave up"),
        ("gave_up", "Lima", "Only a partial answer: the model gave up"),
        ("partial", "Lima", "Only a partial answer: the model gave up"),
        ("partial", "", "The model gave up"),
    ],
)
def test_what_is_said_of_an_answer_agrees_with_what_is_printed(
    capsys: pytest.CaptureFixture[str], status: out.Status, answer: str, said: str
) -> None:
    solve_view.show_outcome(ended(status, answer, "the model gave up"))
    shown, noted = capsys.readouterr()
    assert (shown.strip(), noted.strip()) == (answer, said)


def test_a_call_that_was_asked_for_again_is_one_row_that_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = out.Evidence(
        node=1, api_id="C/t/a", function="a_for_t", arguments={}, status=200, response=1,
        source="offline", seconds=0.1, used=True, times=3,
    )  # fmt: skip
    solve_view.show_outcome(ended("answered", "1", "").model_copy(update={"evidence": (one,)}))
    assert "200, asked for 3 times" in capsys.readouterr().out


def test_the_report_shows_answer_and_evidence_as_plain_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    evidence = out.Evidence(
        node=1,
        api_id="C/t/a",
        function="a_for_t",
        arguments={"q": EVIL},
        status=200,
        response={"text": EVIL, "long": "y" * 5000},
        source="offline",
        seconds=0.1,
        used=True,
    )
    solve_view.show_outcome(
        out.Outcome(
            task="t",
            status="partial",
            answer=EVIL,
            reason="the time is over",
            evidence=(evidence,),
            candidates=(),
            tree=(),
            usage=out.Usage(),
            limits=out.Limits(),
            strategy="dfsdt",
            model="m",
            format="chat",
            seed=0,
            versions={},
        )
    )
    shown, noted = capsys.readouterr()
    assert "[red]x[/red]" in shown
    assert "C/t/a" in shown
    assert "offline" in shown
    assert "y" * 1000 not in shown.replace("\n", "")
    assert "the time is over" in noted
    assert "\x1b" not in shown + noted
