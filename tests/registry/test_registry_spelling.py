"""Reading a query: slips put right, other languages put into English, all else left alone."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolsrv_registry import languages
from toolsrv_registry.api import Api, Catalog
from toolsrv_registry.languages import Language
from toolsrv_registry.registry import Registry
from toolsrv_registry.search.query import QueryReader, Speller, english_words, replace_words
from toolsrv_registry.storage.store import Store

MakeApi = Callable[..., Api]
MakeCatalog = Callable[..., Catalog]

USED = {
    "weather": 40, "forecast": 30, "tomorrow": 3, "translate": 25, "currency": 20, "price": 50,
    "recipe": 9, "movie": 14, "hotel": 22, "language": 31, "temperature": 12, "restaurant": 8,
    "cryptocurrency": 17, "stock": 20, "bitcoin": 9, "valid": 7, "address": 15, "email": 30,
}  # fmt: skip


def english(word: str) -> bool:
    return word in english_words()


@pytest.fixture(scope="module")
def speller() -> Speller:
    return Speller(["cryptocurrency", "bitcoin", "squake"], lambda word: USED.get(word, 0))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("wether", "weather"),
        ("wheather", "weather"),
        ("forcast", "forecast"),
        ("tomorow", "tomorrow"),
        ("tranlsate", "translate"),
        ("currancy", "currency"),
        ("prce", "price"),
        ("recpie", "recipe"),
        ("moive", "movie"),
        ("hotle", "hotel"),
        ("langauge", "language"),
        ("temprature", "temperature"),
        ("restaraunt", "restaurant"),
        ("cryptocurency", "cryptocurrency"),
        ("stok", "stock"),
        ("bitcion", "bitcoin"),
        ("vaild", "valid"),
        ("adress", "address"),
    ],
)
def test_a_slip_is_put_right(speller: Speller, wrong: str, right: str) -> None:
    assert speller.corrections(f"the {wrong} please") == {wrong: right}


@pytest.mark.parametrize(
    "text",
    [
        "weather forecast for tomorrow",
        "headsets, skaters and brighten the ambiance with resonating honed lamps",
        "squake zomato hamlet",
        "Wether is the name of a town, Prce of another",  # the second is a name
        "call getUserWether or /wether/now at wether@example.com",
        "WTHR and HTL are codes",
        "x1wether2 3d2a",
        "",
    ],
)
def test_what_is_no_slip_stays(speller: Speller, text: str) -> None:
    assert not set(speller.corrections(text)) - {"Wether"}


def test_the_first_word_of_a_sentence_and_a_shouted_text_may_be_slips(speller: Speller) -> None:
    assert speller.corrections("Wether in Rome. Prce of it?") == {
        "Wether": "weather",
        "Prce": "price",
    }
    assert speller.corrections("WETHER NOW") == {"WETHER": "weather"}


def test_a_word_that_the_catalogs_have_is_corrected_only_when_it_is_rare() -> None:
    rare = Speller(["wether"], lambda word: {"weather": 41, "wether": 1}.get(word, 0))
    assert rare.corrected("wether") == "weather"
    usual = Speller([], lambda word: {"weather": 41, "wether": 5}.get(word, 0))
    assert usual.corrected("wether") == ""


def test_only_words_change_when_a_text_is_put_right() -> None:
    assert replace_words("wether, (wether) wethers", {"wether": "weather"}) == (
        "weather, (weather) wethers"
    )


def usual(word: str) -> int:
    """Return how often ToolBench's catalog has a word."""
    return {
        "forecast": 129, "forcast": 1, "calendar": 123, "calender": 1, "recipes": 100,
        "accommodation": 13, "flight": 168, "heades": 1, "sits": 1, "door": 3, "receive": 92,
        "recieve": 3, "separate": 10, "seperate": 4, "ipsum": 7, "data": 5331, "dota": 4,
        "json": 611, "jsonp": 5, "total": 155, "toptal": 1, "carbohydrates": 9, "logo": 82,
        "dedicated": 18, "analyze": 300, "phone": 150,
    }.get(word, 0)  # fmt: skip


@pytest.fixture(scope="module")
def seasoned() -> Speller:
    """A speller of a large catalog, whose names hold slips and brands too."""
    names = "forcast forecast calender calendar recipes recieve dota toptal heades ipsum jsonp"
    return Speller(names.split(), usual, least=5)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("forcast", "forecast"),
        ("calender", "calendar"),
        ("recieve", "receive"),
        ("seperate", "separate"),
        ("accomodation", "accommodation"),
        ("recipies", "recipes"),
        ("flite", "flight"),
        ("fone", "phone"),
        ("definately", "definitely"),
    ],
)
def test_a_slip_is_put_right_though_some_name_has_it(
    seasoned: Speller, wrong: str, right: str
) -> None:
    assert seasoned.corrections(f"the {wrong} please") == {wrong: right}


@pytest.mark.parametrize(
    "text",
    [
        "headsets and skits",
        "lorem ipsum dolor",
        "dota jsonp toptal",
        "one carbohydrate, to dedicate an analyser",
    ],
)
def test_english_rare_names_and_words_near_rare_ones_stay(seasoned: Speller, text: str) -> None:
    assert seasoned.corrections(text) == {}


def test_a_word_is_known_by_its_past_or_its_participle() -> None:
    near = {"bike": 90, "wild": 90, "care": 90, "rise": 90, "discord": 90, "update": 90}
    speller = Speller([], lambda word: near.get(word, 0))
    text = "how do I bake, weld and carve; she bakes, rinses and discards; welding"
    assert speller.corrections(text) == {}
    assert speller.corrections("updat it") == {"updat": "update"}


def test_a_short_word_is_put_right_only_by_what_fingers_do() -> None:
    near = {"book": 90, "crime": 90, "share": 90, "video": 90, "table": 90, "step": 90}
    speller = Speller([], lambda word: near.get(word, 0))
    assert speller.corrections("boko shred steph") == {"boko": "book"}
    assert speller.corrections("vidoe, tabel and tabble") == {
        "vidoe": "video",
        "tabel": "table",
        "tabble": "table",
    }
    assert speller.corrections("vodeo") == {"vodeo": "video"}


@given(st.text(max_size=200))
def test_any_text_can_be_looked_at(text: str) -> None:
    speller = Speller([], lambda _: 0)
    corrections = speller.corrections(text)
    assert corrections == {}
    assert replace_words(text, corrections) == text


@pytest.mark.parametrize(
    ("text", "language", "said"),
    [
        ("Wie wird das Wetter morgen in Berlin?", "German", "weather tomorrow Berlin"),
        ("Wetter Berlin morgen", "German", "weather Berlin tomorrow"),
        ("wann geht die sonne auf", "German", "sunrise"),
        ("Wann geht heute die Sonne unter?", "German", "today sunset"),
        ("wie spät ist es in Tokio", "German", "current time Tokio"),
        ("wann ist Ostern", "German", "easter"),
        ("Wann ist wieder Vollmond?", "German", "wieder full moon"),
        ("wie viel sind 5 Meilen in Kilometern", "German", "convert 5 miles kilometers"),
        ("Wieviel ist 17 * 23?", "German", "calculate 17 23"),
        ("welche Währung hat Japan", "German", "national currency Japan"),
        ("Welche Sprache spricht man in Peru?", "German", "language Peru"),
        ("Wie weit ist es von Berlin nach Paris?", "German", "distance Berlin Paris"),
        ("¿Cuándo sale el sol en Lima?", "Spanish", "sunrise Lima"),
        ("¿Cuánto cuesta el bitcoin y qué tiempo hará mañana en Madrid?", "Spanish",
         "price bitcoin; weather tomorrow Madrid"),
        ("clima en Madrid mañana", "Spanish", "weather Madrid tomorrow"),
        ("Traduis ce texte en anglais et donne-moi la météo de Paris", "French",
         "translate text english; weather Paris"),
        ("Che tempo fa domani a Roma?", "Italian", "weather tomorrow Roma"),
        ("Converti 100 euro in dollari", "Italian", "convert 100 euros dollars"),
        ("Previsão do tempo para Lisboa amanhã", "Portuguese", "weather forecast Lisboa tomorrow"),
        ("Какая погода завтра?", "Russian", "weather tomorrow"),
        ("明天北京的天气怎么样？", "Chinese", "tomorrow weather"),
        ("把这段文字翻译成英文，然后查一下美元汇率", "Chinese",
         "text translate english dollars exchange rate"),
        ("東京の明日の天気を教えて", "Japanese", "tomorrow weather"),
        ("今日の東京の天気", "Japanese", "today weather"),
        ("天気 東京", "Japanese", "weather"),
        ("株価", "Japanese", "stock"),
        ("猫的图片", "Chinese", "cat image"),
        ("有雨吗", "Chinese", "rain"),
        ("阿姆斯特丹的天气", "Chinese", "weather"),
        ("東京", "Chinese or Japanese", ""),
        ("台北天氣 API", "Chinese or Japanese", "API"),
        ("ఈ రోజు వాతావరణం", "Telugu", ""),
        ("서울 날씨 API", "Korean", "API"),
        ("ما هو الطقس", "Arabic", ""),
    ],
)  # fmt: skip
def test_another_language_is_named_and_put_into_english(
    text: str, language: str, said: str
) -> None:
    found = languages.detect(text, english)
    assert found is not None
    assert found.name == language
    assert languages.gloss(text, found) == said


@pytest.mark.parametrize(
    "text",
    [
        "AllSportsApi BasketballMatchSeries",
        "HotelApi HotelSearch",
        "Chaingateway.io",
        "SMSAPI.com",
        "Greip /validatePhone",
        "AI CHAT BOTS",
        "AI bot and AI chat",
        "gergfdg",
        "thời tiết ở Hà Nội hôm nay",
        "What's the weather in La Paz and the price of tacos al pastor",
        'translate "wo ist der Bahnhof" to English',
        'Get me the lyrics of "Je ne regrette rien" by Edith Piaf',
        "stock price of Volkswagen die Aktie",
        "restaurant paris",
        "convert units",
        "la liga standings",
        "get data api",
        "find „天气“ in this text",
        "12345",
        "",
    ],
)
def test_english_stays_english(text: str) -> None:
    assert languages.detect(text, english) is None


@given(st.text(max_size=200))
@example("0;?Y0")
def test_any_text_can_be_read_in_any_language(text: str) -> None:
    languages.detect(text, english)
    for code in ("de", "es", "fr", "it", "pt", "ru", "zh", "ja", ""):
        assert ";;" not in languages.gloss(text, Language(code, "x"))


def test_what_the_names_of_apis_and_common_words_of_catalogs_say_tells_no_language() -> None:
    def plain(word: str) -> bool:
        return english(word) or word in ("calculator", "converter")

    assert languages.detect("BMI calculator", plain) is None
    assert languages.detect("video converter", plain) is None
    title = "consulta dos feriados"
    assert languages.detect(title, plain) is not None
    assert languages.detect(title, plain, set(title.split()).__contains__) is None
    asked = languages.detect(f"{title} em Lisboa", plain, set(title.split()).__contains__)
    assert asked == Language("pt", "Portuguese")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wetter", "German"),
        ("Übersetzungen", "German"),
        ("préstamos", "Spanish"),
        ("tradução para inglês", "Portuguese"),
        ("vuelos baratos a Londres", "Spanish"),
    ],
)
def test_little_is_enough_where_it_is_unmistakable(text: str, language: str) -> None:
    found = languages.detect(text, english)
    assert found is not None
    assert found.name == language


def test_a_single_foreign_word_has_a_meaning() -> None:
    assert languages.english_word("Wetter") == "weather"
    assert languages.english_word("METEO") == "weather"
    assert languages.english_word("xyzzy") == ""


def test_a_reader_uses_the_words_of_its_store(filled: Store) -> None:
    reader = QueryReader(filled.labels, filled.names.frequency)
    assert reader.read("wether forecast").text == "weather forecast"
    assert reader.read("wether forecast").corrected == (("wether", "weather"),)
    same = reader.read("weather forecast in Bergen")
    assert (same.text, same.corrected, same.language) == ("weather forecast in Bergen", (), "")


def test_a_reader_takes_the_names_of_its_store_for_no_language(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    apis = [make_api("Datos", "Consulta", "Lista de empresas"), make_api("Food", "Menu", "Recetas")]
    store.put_catalog(make_catalog(*apis))
    reader = QueryReader(store.labels, store.names.frequency)
    for named in ("Consulta Lista de empresas", "recetas"):
        assert (reader.read(named).text, reader.read(named).language) == (named, "")
    assert reader.read("lista de las empresas grandes").language == "Spanish"


def test_a_reader_learns_new_words_with_the_catalogs(filled: Store) -> None:
    reader = QueryReader(filled.labels, filled.names.frequency)
    assert reader.read("reverse a txet").corrected == (("txet", "text"),)
    filled.remove_catalog("small")
    assert reader.read("reverse a txet").corrected == ()


def test_a_usual_text_is_read_within_two_milliseconds(filled: Store) -> None:
    reader = QueryReader(filled.labels, filled.names.frequency)
    text = (
        "I am planning a trip to Bergen with my family and would like to know the daily weather "
        "forecast there, and a hotel for four nights; also convert 900 pounds to euros."
    )
    reader.read(text)
    taken = []
    for _ in range(20):
        started = time.perf_counter()
        reader.read(text)
        taken.append(time.perf_counter() - started)
    assert min(taken) < 0.002


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wether forcast for Bergen", "Weather/sky_watch/forecast"),
        ("Wie lautet die Wettervorhersage für Bergen?", "Weather/sky_watch/forecast"),
        ("convertir 250 dólares en otra moneda", "Finance/money/convert_currency"),
        ("Où trouver un hôtel à Rome pour trois nuits ?", "Travel/rooms/search_hotels"),
        ("заголовки новостей", "News_Media/press/headlines"),
        ("ホテルを探して", "Travel/rooms/search_hotels"),
    ],
)
def test_misspelt_and_foreign_queries_find_their_api(
    real: Registry, text: str, expected: str
) -> None:
    result = real.retriever.search(text)
    assert result.hits[0].api.id == expected
    assert result.query == text
    assert result.reading.text != text


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("오늘 날씨가 어때요?", "Korean"),
        ("서울 날씨 API", "Korean"),
        ("ما هو الطقس في القاهرة", "Arabic"),
        ("الطقس arabic", "Arabic"),
        ("आज दिल्ली का मौसम कैसा है", "Hindi"),
        ("Τι καιρό κάνει σήμερα στην Αθήνα;", "Greek"),
        ("מזג אוויר", "Hebrew"),
        ("ఈ రోజు వాతావరణం", "Telugu"),
        ("今天的天氣", "Chinese"),
        ("日本語", "Japanese"),
        ("東京 2026", "Chinese or Japanese"),
    ],
)
def test_a_language_that_cannot_be_read_is_told_honestly(
    real: Registry, text: str, language: str
) -> None:
    result = real.retriever.search(text)
    assert result.reading.language == language
    assert (result.reading.unread, result.reading.text) == (True, text)
    assert result.nothing_fits


def test_a_catalog_in_a_language_that_cannot_be_read_is_found_by_its_words(
    hashed: Registry, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    hashed.store.put_catalog(make_catalog(make_api("Weather", "서울", "오늘 날씨"), name="seoul"))
    result = hashed.retriever.search("오늘 날씨", 1)
    assert result.hits[0].api.name == "오늘 날씨"
    assert not result.nothing_fits
    assert hashed.retriever.search("환율 계산", 1).nothing_fits
