"""Chat templates of strangers: what they may not make, and that those of real models work."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime

import pytest
from llama_cpp import llama_chat_format
from tests.template_files import FILES, FOLDER, special_tokens

from toolsrv_runtime.contract.models import Piece, SpecialTokens
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.templates import sandbox
from toolsrv_runtime.templates.rendering import ChatTurn, check_template, render_chat
from toolsrv_runtime.templates.sandbox import MOST_SOURCE

TURNS: list[ChatTurn] = [
    (role, (Piece(text),))
    for role, text in [
        ("system", "Rules."),
        ("user", "Hello?"),
        ("assistant", "Yes."),
        ("user", "x"),
    ]
]
DOUBLING = "{%% set n = namespace(x=%s) %%}{%% for i in range(60) %%}%s{%% endfor %%}"
TOO_MUCH = {
    "times": "{{ 'a' * 10**10 }}",
    "times of a list": "{% set x = [0] * 10**10 %}",
    "times from the left": "{{ 10**10 * 'a' }}",
    "power": "{{ 10**(10**10) }}",
    "long loop": "{% for x in range(10**9) %}{% endfor %}",
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "loops over text": "{% set t = 'a' * 99999 %}{% for a in t %}{% for b in t %}{% endfor %}{% endfor %}",
    "percent": "{{ '%1000000000d' % 1 }}",
    "percent and a star": "{{ '%*d' % (10**9, 1) }}",
    "percent often": "{{ ('%(a)s' * 99999) % {'a': 'x' * 999999} }}",
    "format": "{{ '{:>1000000000}'.format(1) }}",
    "format within a format": "{{ '{:>{w}}'.format(1, w='1000000000') }}",
    "format of a map": "{{ '{a:>1000000000}'.format_map({'a': 1}) }}",
    "format got by its name": "{{ ('{:>1000000000}'|attr('format'))(1) }}",
    "filter format": "{{ '%1000000000d'|format(1) }}",
    "center": "{{ 'a'|center(10**10) }}",
    "center of a constant": "{{ 'a'|center(10000000000) }}",
    "method center": "{{ 'a'.center(10000000000) }}",
    "ljust": "{{ 'a'.ljust(10000000000) }}",
    "zfill": "{{ 'a'.zfill(10000000000) }}",
    "expandtabs": "{{ ('\t' * 9999).expandtabs(99999999) }}",
    "bytes": "{{ (5).to_bytes(10000000000, 'big') }}",
    "indent": "{{ ('a\n' * 99999)|indent(99999) }}",
    "batch": "{{ [1]|batch(10000000000, 0)|list }}",
    "slice": "{{ [1]|slice(10000000000)|list }}",
    "join": "{{ range(99999)|join('a' * 99999) }}",
    "method join": "{{ ('a' * 99999).join('b' * 99999) }}",
    "join of a map": "{{ ('a' * 99999).join(range(99999)|map('string')) }}",
    "replace": "{{ ('a' * 99999)|replace('a', 'b' * 99999) }}",
    "method replace": "{{ ('a' * 99999).replace('', 'b' * 99999) }}",
    "translate": "{{ ('a' * 99999).translate({97: 'b' * 99999}) }}",
    "wordwrap": "{{ ('a' * 99999)|wordwrap(1, True, 'b' * 99999) }}",
    "tojson": "{{ range(99999)|list|tojson(99999) }}",
    "round": "{{ 1.5|round(10000000000, 'ceil') }}",
    "sum of lists": "{{ [[1]]|sum(start=[]) }}",
    "sum of lists, by place": "{{ [[1]]|sum(none, []) }}",
    "percent of bytes": "{{ '%1000000000d'.encode() % 1 }}",
    "doubling a sum": DOUBLING % ("'a'", "{% set n.x = n.x + n.x %}"),
    "doubling a joint": DOUBLING % ("'a'", "{% set n.x = n.x ~ n.x %}"),
    "doubling a list": DOUBLING % ("[]", "{% set n.x = [n.x, n.x] %}"),
    "doubling a dict": DOUBLING % ("1", "{% set n.x = {'a': n.x, 'b': n.x} %}"),
    "doubling a block": DOUBLING % ("'a'", "{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}"),
    "slices kept": "{% set t = range(9999)|list %}{% set n = namespace(x=[]) %}"
                   "{% for i in range(9999) %}{% set n.x = n.x + [t[:]] %}{% endfor %}",
    "macro": "{% macro m(n) %}{{ m(n - 1) if n }}{{ m(n - 1) if n }}{% endmacro %}{{ m(40) }}",
    "endless macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "recursive loop": "{% for x in [1, 2] recursive %}{{ loop([1, 2]) if loop.depth < 60 }}{% endfor %}",
    "much text": "{% set a %}{% for x in range(99999) %}" + "long " * 999 + "{% endfor %}{% endset %}",
    "comparisons": DOUBLING % ("'a' * 999999", "{{ 1 if [n.x] == [n.x ~ ''] }}" * 9),
    "source": "{#" + "x" * MOST_SOURCE + "#}",
    "nesting": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "lipsum": "{{ lipsum(n=10**9) }}",
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_template_that_would_take_all_memory_or_time_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "MOST_S", 0.5)
    started = time.thread_time()
    with pytest.raises(ModelError, match="the model's chat template does not work: ") as caught:
        render_chat(TURNS, TOO_MUCH[name])
    assert "is left out" not in caught.value.message  # it was not rendered
    assert time.thread_time() - started < 2.5
    assert "another GGUF" in caught.value.hint
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ 1 + 'a' }}", "unsupported operand"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ messages['x']['y'] }}", "no attribute"),
        ("{{ raise_exception('no\x1b[2J ' ~ 'x' * 9999) }}", "no"),
        ("{% include 'x' %}", "no loader"),
        ("{% for x in 3 %}{% endfor %}", "not iterable"),
        ("{{ 'x'|pprint }}", "No filter named 'pprint'"),
        ("{{ ''.__class__.x }}", "unsafe"),
    ],
)
def test_whatever_a_template_raises_is_told_as_its_fault(source: str, said: str) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        render_chat(TURNS, source)
    assert "\x1b" not in caught.value.message


def test_a_template_of_a_profile_is_told_as_that() -> None:
    with pytest.raises(ModelError, match=r"the chat template in mine\.toml") as caught:
        render_chat(TURNS, "{{ 1 + 'a' }}", "mine.toml")
    assert caught.value.hint.startswith("mend chat_template in mine.toml")


@pytest.mark.parametrize(
    "name", [one for one in dir(llama_chat_format) if one.endswith("_CHAT_TEMPLATE")]
)
def test_templates_of_real_models_work(name: str) -> None:
    check_template(getattr(llama_chat_format, name))


def test_what_templates_of_real_models_use_works() -> None:
    source = """
{%- set ns = namespace(found=false, last=messages|length - 1) %}
{%- if messages[0].role == 'system' %}{{- '<s>' + messages[0]['content']|trim + '\\n' }}{% endif %}
{%- for m in messages[1:][::-1][::-1] if m.role != 'tool' %}
  {%- if loop.first %}{% set ns.found = true %}{% endif %}
  {%- set text = m.content.split('</think>')[-1].lstrip('\\n').replace('\\r', '') %}
  {{- '[%s %d]' % (m.role, loop.index0) ~ text ~ {'a': [1, 2.5, none]}|tojson(indent=2) }}
  {%- if not loop.last and (loop.index0 % 2 == 0) == (m['role'] == 'user') %}{{ ', ' }}{% endif %}
{%- endfor %}
{%- set names = messages|selectattr('role', 'equalto', 'user')|map(attribute='role')|join(', ') %}
{%- macro show(key, value='none') %}{{ key|upper }}={{ value|string|indent(2) }};{% endmacro %}
{%- for key, value in {'b': 1, 'a': 1700000000}|dictsort if [key]|length == [1]|sum %}{{ show(key, value) }}{% endfor %}
{{- names ~ '{:>5}|{}'.format('x', ns.found) ~ x|default('none') ~ 1700000000|string -}}
{%- if add_generation_prompt is defined and add_generation_prompt %}{{ '<bot>' }}{% endif %}"""
    text = "".join(piece.text for piece in render_chat(TURNS, source))
    assert text.startswith("<s>Rules.\n[user 0]Hello?{")
    assert "[assistant 1]Yes.{" in text
    assert text.endswith("A=1700000000;B=1;user, user    x|Truenone1700000000<bot>")


def test_a_long_conversation_is_written() -> None:
    turns = [*TURNS, *(TURNS[2:] * 100)]
    source = (
        "{% for m in messages %}{% if messages|selectattr('role', 'equalto', 'tool')|list == [] %}"
        "<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
    )
    assert sum(piece.text == "Yes." for piece in render_chat(turns, source)) == 101


def test_templates_run_in_several_threads_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - for this test alone

    source = llama_chat_format.CHATML_CHAT_TEMPLATE
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: render_chat(TURNS, source), range(40)))
    assert len(found) == 1


def test_turns_end_with_the_models_own_token() -> None:
    source = (
        "{% if not eos_token %}{{ raise_exception('no end') }}{% endif %}{{ bos_token }}"
        "{% for m in messages %}<{{ m.role }}>{{ m.content + eos_token }}{% endfor %}"
    )
    prompt = render_chat(TURNS, source, tokens=SpecialTokens("<s>", "</s>"))
    text = "".join(piece.text for piece in prompt)
    assert text == "<s><system>Rules.</s><user>Hello?</s><assistant>Yes.</s><user>x</s>"
    assert [piece.text for piece in prompt if not piece.special] == [
        "Rules.",
        "Hello?",
        "Yes.",
        "x",
    ]


def test_the_date_is_that_of_now_in_the_form_asked_for() -> None:
    source = "{{ strftime_now('%Y-%m-%d') }}{% for m in messages %}{{ m.content }}{% endfor %}"
    before = datetime.now(UTC).date()
    text = render_chat(TURNS, source)[0].text
    assert before <= date.fromisoformat(text) <= datetime.now(UTC).date()


@pytest.mark.parametrize("name", FILES)
def test_templates_in_use_work_without_tools(name: str) -> None:
    check_template((FOLDER / name).read_text("utf-8"), tokens=special_tokens(name))
