"""Signs that stand for something, days counted from feasts, and other words that point at values."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.planner import ciphers, clues, counted, then
from toolsrv_runtime.planner.reading import cards, cases, named, ordinals, pairs, prices, seeds
from toolsrv_runtime.planner.reading.announced import announced
from toolsrv_runtime.planner.reading.directions import is_yardstick
from toolsrv_runtime.planner.reading.measures import whole_unit
from toolsrv_runtime.planner.reading.wish import Rule, Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}


@pytest.mark.parametrize(
    ("task", "signs"),
    [
        ("Her number begins with +351, which flag is that?", ["+351"]),
        ('The clue is "+267", who picks up the phone there?', ["+267"]),
        ("Format +49 30 901820 for calls from abroad", []),
        ("We call at 15:00 GMT +2, when is that in Oslo?", []),
        ("The number goes from 3 to +5 semitones", []),
        ("My phone showed +12 °C this morning", []),
        ("Between -5 and +12, what is that in Fahrenheit?", []),
        ("It says -.- . -. -.-- .- on the card", ["-.- . -. -.-- .-"]),
        ("Wait ... what? - Oh.", []),
        ("My ticket only says KEF. When does the sun go down there?", ["KEF"]),
        ("nothing but a ticket to LPB. What money do they use?", ["LPB"]),
        ("The suitcase still has a TBS tag: how many people live there?", ["TBS"]),
        ("How long is the flight from OSL to BKK?", []),
        ("The ticket costs 50 USD, what is that in euros?", []),
        ("My train ticket says 7 PM, when is that in UTC?", []),
        (
            "NL91 ABNA 0417 1643 00 is what he dictated. Did I write it down without a slip?",
            ["NL91 ABNA 0417 1643 00"],
        ),
        ("Is the IBAN NL91 ABNA 0417 1643 00 right?", []),
    ],
)
def test_signs_that_stand_for_something_are_found(task: str, signs: list[str]) -> None:
    assert [one.sign for one in clues.find(task)] == signs


def test_the_digits_of_a_sign_are_no_number() -> None:
    task = "Her phone number begins with +370 and she turns 12"
    assert clues.is_part("370", task)
    assert not clues.is_part("12", task)
    assert not clues.is_part("370", f"{task}, she has 370 stamps")


@pytest.mark.parametrize(
    ("task", "moved"),
    [
        ("Every letter has been pushed five places on: Ujwz", True),
        ("each letter stands 3 too far on in the alphabet", True),
        ("I pushed every letter 5 places forward and got UTWYZLFQ", True),
        ("each letter has been moved on by three", True),
        ("every letter was pushed 3 forward so it has to go 3 back", True),
        ("Each letter was shifted forward by 4", True),
        ("Shift every letter of HELLO three places forward", False),
        ("The letter of 3 May goes on", False),
    ],
)
def test_letters_that_were_moved_are_told_from_an_order(task: str, moved: bool) -> None:
    assert ciphers.is_told(task) is moved


def test_a_piece_of_an_account_number_is_no_value() -> None:
    task = "NL91 ABNA 0417 1643 00 is what he dictated"
    assert clues.cuts("0417 1643 00", task)
    assert not clues.cuts("NL91 ABNA 0417 1643 00", task)
    assert not clues.cuts("0417 1643 99", task)
    assert clues.cuts("81.2", "log in from 81.2.69.142")
    assert not clues.cuts("81.2.69.142", "log in from 81.2.69.142")
    assert not clues.cuts("81.2", "at 81.2, 5.1")


@pytest.mark.parametrize(
    ("task", "question", "amount", "unit"),
    [
        ("3 weeks before American Thanksgiving, in 2027", "American Thanksgiving", -3, "weeks"),
        ("the day after Thanksgiving 2027", "Thanksgiving", 1, "days"),
        ("10 days before US Memorial Day in 2027", "US Memorial Day", -10, "days"),
        ("39 days after Easter Sunday 2027", "Easter Sunday", 39, "days"),
        ("2 days after Easter Monday 2027", "Easter Sunday", 3, "days"),
    ],
)
def test_days_are_counted_from_a_feast(task: str, question: str, amount: int, unit: str) -> None:
    found = counted.find(task)
    assert found is not None
    assert (found.question, found.amount, found.unit) == (
        f"When is {question} in 2027?",
        amount,
        unit,
    )


@pytest.mark.parametrize(
    "task",
    [
        "3 weeks before Thanksgiving",
        "a day after 5 May 2027",
        "2 weeks after Easter Monday 2027",
        "the day after Easter 2027 and in 2028",
    ],
)
def test_nothing_is_counted_from_what_is_no_feast_of_one_year(task: str) -> None:
    found = counted.find(task)
    assert found is None or "2028" in task


def test_sentences_about_a_moment_told_before_are_found() -> None:
    task = "It crashed at 1809891000. What did her clock show at that moment?"
    assert then.wishes(task) == ["What did her clock show at that moment"]
    assert then.wishes("What time is it in Oslo? It was cold then.") == []


@pytest.mark.parametrize(
    ("rule", "function", "name", "task", "part", "value"),
    [
        (
            seeds.told,
            "lorem_ipsum",
            "seed",
            "4 sentences, seed 9 so it repeats",
            "4 sentences",
            "9",
        ),
        (seeds.told, "lorem_ipsum", "seed", "One with seed 5. A text, same seed", "A text", "5"),
        (
            seeds.told,
            "random_number",
            "seed",
            "Draw 1 to 50, take 5 as the seed",
            "Draw 1 to 50",
            "5",
        ),
        (seeds.told, "random_number", "seed", "Sow 5 seeds. Draw 1 to 50", "Draw 1 to 50", ""),
        (seeds.told, "lorem_ipsum", "seed", "One with seed 5. And a text", "And a text", ""),
        (seeds.told, "lorem_ipsum", "seed", "seed 5 and seed 6", "seed 5", ""),
        (seeds.told, "lorem_ipsum", "sentences", "seed 5", "seed 5", ""),
        (ordinals.told, "number_to_words", "form", "80th as a word", "80th as a word", "ordinal"),
        (ordinals.told, "number_to_words", "form", "on 5th of May", "on 5th of May", ""),
        (ordinals.told, "number_to_words", "language", "80th", "80th", ""),
        (
            cases.told,
            "change_case",
            "case",
            "like in a book title",
            "like in a book title",
            "title",
        ),
        (
            cases.told,
            "change_case",
            "case",
            "an ordinary sentence",
            "an ordinary sentence",
            "sentence",
        ),
        (cases.told, "change_case", "case", "in capitals", "in capitals", ""),
        (named.told, "spelling_alphabet", "text", "the name, Xanthippe, spelt", "", "Xanthippe"),
        (named.told, "palindrome_check", "text", "For Hannah, 9. Is her name one?", "", "Hannah"),
        (named.told, "palindrome_check", "text", "For Ann, and Bob, her name?", "", ""),
        (
            named.told,
            "password_strength",
            "password",
            "Is the password Cat2016x good?",
            "",
            "Cat2016x",
        ),
        (named.told, "wifi_qr_code", "password", "Wifi Home2024x, password hunter", "", ""),
        (named.told, "password_strength", "password", "Is the password good?", "", ""),
        (pairs.told, "text_similarity", "second", "Are 'a b, c' and 'b, a c' alike?", "", "b, a c"),
        (pairs.told, "text_similarity", "first", "Is 'a b, c' like the next?", "", ""),
        (pairs.told, "count_occurrences", "find", "'a b' in 'a b c d'", "", ""),
    ],
)
def test_what_a_task_says_of_a_value_is_read(
    rule: Rule, function: str, name: str, task: str, part: str, value: str
) -> None:
    api = APIS[function]
    parameter = next(one for one in api.parameters if one.name == name)
    assert rule(parameter, api, Wish(part or task, task, task)) == value


def test_two_things_keep_their_order() -> None:
    api, task = APIS["anagram_check"], "does 'a gentleman' give 'elegant man'?"
    turned = {"first": "elegant man", "second": "a gentleman"}
    assert pairs.ordered(api, turned, task) == {"first": "a gentleman", "second": "elegant man"}
    assert pairs.ordered(api, {"first": "x", "second": "y"}, task) == {"first": "x", "second": "y"}


def test_a_name_is_taken_with_all_its_words() -> None:
    api = APIS["make_acronym"]
    task = "We found a club, Verband Deutscher Ruderer. Its letters?"
    assert (
        named.whole(api.parameters[0], api, "Deutscher Ruderer", task)
        == "Verband Deutscher Ruderer"
    )
    assert named.whole(api.parameters[0], api, "letters", task) == "letters"


def test_a_percentage_that_is_taken_off_has_no_sign() -> None:
    api = APIS["discount"]
    percent = next(one for one in api.parameters if one.name == "percent")
    assert prices.taken_off(percent, api, "-12", "890 but minus 12%") == "12"
    assert prices.taken_off(percent, api, "-12", "890, 12 % off") == "-12"


def test_what_zones_are_measured_from_is_none_itself() -> None:
    assert is_yardstick("UTC", "how far off UTC are the clocks here")
    assert not is_yardstick("UTC", "what time is it in UTC")
    assert not is_yardstick("Oslo", "how far off UTC is Oslo")


def test_the_unit_that_is_wanted_takes_the_place_of_what_is_none() -> None:
    to = next(one for one in APIS["convert_units"].parameters if one.name == "to_unit")
    assert whole_unit(to, "metric", "how long in feet, they don't do metric") == "feet"
    assert whole_unit(to, "metric", "no metric") == "metric"


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("a frame around the words Porridge of the day, for the receipt", "Porridge of the day"),
        ("is it on a card saying the words Big and Small, in red", "Big and Small"),
        ("make it small: THE PIGS GET HAY EVERY MORNING", "THE PIGS GET HAY EVERY MORNING"),
    ],
)
def test_texts_are_taken_whole(task: str, said: str) -> None:
    assert [task[begin:end] for begin, end in announced(task)] == [said]


def test_questions_in_quotation_marks_are_wishes_where_nothing_else_is() -> None:
    task = 'Two cards: "Which money has the code PYG?" and "What is the capital of Chad?"'
    assert '"' not in cards.unquoted(task)
    for other in ('Translate "Where is the station?"', 'Who said "Where is the station?" first?'):
        assert cards.unquoted(other) == other
