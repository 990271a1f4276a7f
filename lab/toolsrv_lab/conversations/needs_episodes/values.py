"""Made-up values of response fields, chosen by the field's name."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any

from toolsrv_lab.conversations.needs_episodes.tables import class_of_word, pools, split_words


class Inventor:
    """Makes up values of fields by their names. ``now``: the day of the conversation."""

    def __init__(self, rng: random.Random, now: date) -> None:
        self.rng = rng
        self.now = now
        self.here = ""
        self._kinds: dict[str, Callable[[], Any]] = self._all()

    def pick(self, pool: str) -> str:
        """Return one of a pool."""
        return self.rng.choice(pools()[pool])

    def has_kind(self, name: str) -> bool:
        """Whether values of a kind of that name can be made."""
        return name in self._kinds

    def kind(self, name: str) -> Any:
        """Return a value of a kind, or of the kind that a field of that name has."""
        if name in self._kinds:
            return self._kinds[name]()
        value = self._by_name(name)
        return self.pick("word") if value is None else value

    def field(self, path: Sequence[str], declared: str, context: Sequence[str]) -> Any:
        """Return a value for a field at a path, of a declared type, with words around it."""
        key = "_".join(split_words(path[-1]))
        if re.search(r"(?:^|_)(?:id|ids|pk)$", key):
            return self._typed(self.rng.randrange(100, 9_999_999), declared)
        if key in {"type", "kind"}:
            return self.rng.choice(("standard", "regular", "public", "primary", "premium"))
        if declared == "bool" or re.match(r"(?:is|has|can|are)_", key):
            return self.rng.random() < 0.6
        value: Any = None
        if key in {
            "name",
            "title",
            "full_name",
            "display_name",
            "short_name",
            "label",
            "value",
            "text",
        } or (key in class_of_word() and declared == "str" and not key.endswith("s")):
            words = [*context, *(w for p in path[:-1] for w in split_words(p))]
            if key in class_of_word():
                words.append(key)
            value = self._by_class(words)
        if value is None:
            value = self._by_name(key)
        return self._typed(value, declared)

    def _by_name(self, key: str) -> Any:
        for pattern, kind in KIND_PATTERNS:
            if pattern.search(key):
                return self._kinds[kind]()
        return None

    def _by_class(self, words: Sequence[str]) -> Any:
        for word in reversed(words):
            shape = class_of_word().get(word)
            if shape is None:
                continue
            for name, kind in (*shape.fields, *shape.more):
                if name in {
                    "name",
                    "title",
                    "full_name",
                    "username",
                    "word",
                    "text",
                    "quote",
                    "symbol",
                }:
                    return self.kind(kind)
        return None

    def _typed(self, value: Any, declared: str) -> Any:
        rng = self.rng
        if declared == "int":
            if isinstance(value, float):
                return int(value)
            return (
                value
                if isinstance(value, int)
                else rng.choice((rng.randrange(1, 60), rng.randrange(1, 5000)))
            )
        if declared == "float":
            return (
                value
                if isinstance(value, (int, float)) and not isinstance(value, bool)
                else self._ratio(100)
            )
        if value is None:
            return self.pick(rng.choice(("word", "category", "status", "topic")))
        if declared == "str" and not isinstance(value, str):
            return str(value)
        return value

    def _ratio(self, top: float, places: int = 2) -> float:
        return round(self.rng.uniform(0.01, 1) * top, places)

    def person(self) -> str:
        """Return a full name."""
        return f"{self.pick('first')} {self.pick('last')}"

    def title(self) -> str:
        """Return the title of a work."""
        a, n, m = self.pick("adj"), self.pick("noun"), self.pick("noun")
        one = self.pick("first")
        return self.rng.choice(
            (f"The {a} {n}", f"{a} {n}", f"{n} and {m}", f"{n} of {one}", f"A {n} for {one}", f"{a} {n}s",
             f"{one}'s {n}", f"Under the {n}", f"{n} {self.rng.randrange(2, 9)}", f"Beyond the {a} {n}")
        )  # fmt: skip

    def day(self, back: int = 700, ahead: int = 0) -> str:
        """Return a date around today."""
        return (self.now + timedelta(days=self.rng.randrange(-back, ahead + 1))).isoformat()

    def fill(self, text: str) -> str:
        """Return a headline with its places filled."""
        text = text.replace("{company2}", self.pick("company")).replace(
            "{company}", self.pick("company")
        )
        text = text.replace("{city}", self.city()[0]).replace("{coin}", self.pick("coin"))
        return text.replace("{person}", self.person()).replace("{team}", self.pick("team"))

    def city(self) -> tuple[str, str]:
        """Return a city and its country."""
        if self.here and self.rng.random() < 0.85:
            return self.here, self.pick("city").partition(";")[2]
        name, _, country = self.pick("city").partition(";")
        return name, country

    def clock(self) -> str:
        """Return a time of day."""
        return f"{self.rng.randrange(24):02}:{self.rng.randrange(60):02}"

    def code(
        self, least: int = 6, most: int = 12, letters: str = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"
    ) -> str:
        """Return an identifier."""
        return "".join(self.rng.choices(letters, k=self.rng.randrange(least, most + 1)))

    def slug(self) -> str:
        """Return two or three words with dashes."""
        return "-".join(self.rng.sample(pools()["word"], self.rng.choice((2, 2, 3))))

    def username(self) -> str:
        """Return an account's name."""
        a, b = self.pick("word"), self.pick("first").lower()
        number = self.rng.choice(("", "", str(self.rng.randrange(1, 99)), "_"))
        return self.rng.choice((f"{a}_{b}", f"{b}{a}", f"{b}.{a}", f"the{a}", f"{a}by{b}")) + number

    def host(self) -> str:
        """Return a host name."""
        ending = self.rng.choice((".com", ".io", ".org", ".net", ".example", ".co"))
        return f"{self.pick('word')}{self.pick('word')}{ending}"

    def url(self, *ends: str) -> str:
        """Return an address."""
        end = self.rng.choice(ends) if ends else ""
        return f"https://{self.rng.choice(('www.', '', 'cdn.', 'api.'))}{self.host()}/{self.slug()}{end}"

    def _all(self) -> dict[str, Callable[[], Any]]:
        r = self.rng
        p = self.pick

        def number(low: int, high: int) -> Callable[[], Any]:
            return lambda: r.randrange(low, high)

        def decimal(low: float, high: float, places: int = 2) -> Callable[[], Any]:
            return lambda: round(r.uniform(low, high), places)

        kinds: dict[str, Callable[[], Any]] = {
            key: partial(p, key) for key in pools() if key not in {"city", "headline"}
        }
        hexes = "0123456789abcdef"
        return kinds | {
            "person": self.person, "username": self.username, "title": self.title, "city": lambda: self.city()[0],
            "country": lambda: self.city()[1], "headline": lambda: self.fill(p("headline")),
            "vtitle": lambda: r.choice((
                f"How to master {p('topic')}", f"{r.randrange(3, 12)} mistakes in {p('topic')}", self.title(),
                f"A day in {self.city()[0]}", f"{p('topic').capitalize()} for beginners", f"{p('product').capitalize()} review",
                f"Why I left {self.city()[0]}", f"Making {p('dish')}", f"{p('gametitle')} walkthrough",
            )),
            "caption": lambda: r.choice((
                f"Morning in {self.city()[0]} {p('hashtag')}", f"New: {p('product')} {p('hashtag')}", p("quote"),
                f"{p('dish').capitalize()} again {p('hashtag')}", f"Thoughts on {p('topic')}?", p("sentence"),
                f"Back in {self.city()[0]} after {r.randrange(2, 20)} years",
            )),
            "talk": lambda: r.choice((f"{p('topic').capitalize()} in practice", f"Introduction to {p('topic')}",
                                      f"{self.city()[0]} {p('topic')} summit", f"{p('topic').capitalize()} workshop")),
            "generated": lambda: r.choice((
                f"{p('sentence')} {p('quote')}", f"{p('quote')} {p('sentence')}", f"Think of {p('topic')} as a {p('word')}: {p('quote').lower()}",
                f"In {self.city()[0]} lived {self.person()}, who kept a {p('word')} and spoke little.",
                f"Meet the new {p('product')} by {p('brand')}: {p('sentence').lower()}",
                f"Start with {p('topic')}, then move on to {p('topic')}.",
            )),
            "review": lambda: p("sentence"), "summary": lambda: f"{p('sentence')} {p('sentence')}",
            "description": lambda: p("sentence"), "race": lambda: f"{self.city()[0]} {r.choice(('Grand Prix', '10K', 'Rally', 'Classic', 'Sprint'))}",
            "circuit": lambda: f"{self.city()[0]} Circuit", "round": lambda: r.choice(("Quarterfinals", "Semifinals", "Final", "Round of 16", f"Round {r.randrange(1, 30)}")),
            "alert": lambda: f"{p('sky').capitalize()} warning for {self.city()[0]}", "org": lambda: f"{self.city()[0]} {r.choice(('Institute', 'Club', 'University', 'Association', 'Choir'))}",
            "index": lambda: r.choice(("DAX", "FTSE 100", "Nikkei 225", "S&P 500", "CAC 40", "Brent Oil", "Gold", "Copper", "ASX 200", "Hang Seng")),
            "season": lambda: r.choice((f"{self.now.year - r.randrange(5)}", f"{self.now.year - 1 - r.randrange(4)}/{(self.now.year - r.randrange(4)) % 100:02}")),
            "incident": lambda: r.choice(("goal", "yellow card", "substitution", "red card", "penalty", "corner")),
            "id": lambda: r.choice((r.randrange(100, 9_999_999), self.code(), r.randrange(10, 9999))),
            "code": self.code, "hash": lambda: self.code(16, 40, hexes), "uuid": lambda: "-".join("".join(r.choices(hexes, k=k)) for k in (8, 4, 4, 4, 12)),
            "slug": self.slug, "date": lambda: self.day(700, 30), "futuredate": lambda: self.day(-30, 400), "release_date": lambda: self.day(9000),
            "birth_date": lambda: self.now.replace(year=self.now.year - r.randrange(17, 60), day=r.randrange(1, 28)).isoformat(),
            "datetime": lambda: f"{self.day(200, 20)}T{self.clock()}:00Z", "timestamp": lambda: 1_600_000_000 + r.randrange(160_000_000),
            "clock": self.clock, "year": lambda: self.now.year - r.randrange(40), "oldyear": number(1850, 2012), "month": number(1, 13), "dayofmonth": number(1, 29),
            "duration": lambda: r.choice((f"{r.randrange(1, 12)}:{r.randrange(60):02}", f"{r.randrange(1, 9)} h {r.randrange(1, 59)} min", f"{r.randrange(3, 59)} min")),
            "seconds": number(20, 4000), "minute": number(1, 91), "price": lambda: round(r.choice((r.uniform(3, 90), r.uniform(50, 900), r.uniform(500, 70000))), 2),
            "amount": decimal(5, 5000), "bigmoney": lambda: r.randrange(1, 900) * 1_000_000 + r.randrange(1_000_000), "percent": number(0, 101), "change": decimal(-9, 9),
            "ratio": decimal(0.31, 0.99), "ratio10": decimal(0.5, 90, 3), "odds": decimal(1.05, 12), "rating": decimal(2.6, 5, 1), "score100": number(1, 101),
            "smallint": number(1, 40), "count": number(1, 900), "bigcount": lambda: r.randrange(800, 5_000_000), "bigint": number(1_000_000, 40_000_000), "goals": number(0, 6),
            "points": number(0, 99), "rank": number(1, 60), "age": number(17, 40), "height": number(158, 211), "weight": number(50, 110), "latitude": decimal(-55, 65, 4),
            "longitude": decimal(-150, 170, 4), "temp": decimal(-12, 38, 1), "pressure": number(985, 1036), "wind": decimal(0.4, 60, 1), "uv": number(0, 11), "altitude": number(1, 3400),
            "population": lambda: r.choice((r.randrange(9_000, 900_000), r.randrange(1_000_000, 90_000_000))), "capacity": number(4_000, 90_000), "distance": decimal(0.3, 900, 1),
            "area": number(38, 420), "rooms": number(1, 6), "km": number(4_000, 190_000), "calories": number(60, 900), "grams": decimal(0.5, 60, 1), "servings": number(1, 9),
            "pages": number(90, 700), "speed": decimal(1, 250, 1), "bytes": number(12, 9000), "ms": number(20, 900), "port": number(1024, 65000), "zip": lambda: f"{r.randrange(10000, 99999)}",
            "url": self.url, "imgurl": lambda: self.url(".jpg", ".png", ".webp", ".svg"), "fileurl": lambda: self.url(".pdf", ".mp4", ".mp3", ".zip", ".csv"),
            "shorturl": lambda: f"https://{p('word')}.link/{self.code(5, 8)}", "filename": lambda: f"{self.slug()}.{r.choice(('pdf', 'docx', 'png', 'csv', 'xlsx', 'mp3'))}",
            "email": lambda: f"{self.username().strip('._')}@{self.host()}", "domain": self.host, "ip": lambda: ".".join(str(r.randrange(1, 255)) for _ in range(4)),
            "phone": lambda: f"+{r.choice((44, 49, 351, 254, 91, 61, 1))} {r.randrange(20, 999)} {r.randrange(100_000, 9_999_999)}",
            "fulladdress": lambda: f"{r.randrange(1, 240)} {p('street')}, {self.city()[0]}", "street": lambda: f"{r.randrange(1, 240)} {p('street')}",
            "currency": lambda: r.choice(("USD", "EUR", "GBP", "INR", "NGN", "JPY", "AUD", "BRL", "ZAR", "CHF")), "currencyname": lambda: r.choice(("Euro", "Indian Rupee", "Naira", "Yen", "Rand", "Swiss Franc", "Peso", "Krona")),
            "coinsym": lambda: r.choice(("BTC", "ETH", "SOL", "ADA", "DOT", "LTC", "LINK", "XMR", "ATOM", "TRX")), "cc": lambda: r.choice(("PT", "KE", "JP", "GB", "BR", "PL", "GH", "IN", "FI", "ES", "AT", "IE", "AU", "CA", "NG")),
            "lc": lambda: r.choice(("en", "pt", "sw", "hi", "de", "fr", "ja", "ar", "tr", "pl")), "timezone": lambda: r.choice(("Europe/Lisbon", "Africa/Nairobi", "Asia/Tokyo", "America/Bogota", "Australia/Perth", "Europe/Warsaw", "Asia/Kolkata")),
            "flight_number": lambda: f"{self.code(2, 2, 'ABCDEFGKLQRSTUX')}{r.randrange(10, 4999)}", "flightstatus": lambda: r.choice(("on time", "delayed", "boarding", "landed", "scheduled")),
            "aqicat": lambda: r.choice(("good", "moderate", "unhealthy")), "phase": lambda: r.choice(("waxing crescent", "first quarter", "full moon", "waning gibbous", "new moon")), "tide": lambda: r.choice(("high", "low")),
            "zodiac": lambda: r.choice(("Aries", "Taurus", "Gemini", "Leo", "Virgo", "Libra", "Pisces", "Scorpio")), "mood": lambda: r.choice(("relaxed", "curious", "determined", "dreamy")), "linetype": lambda: r.choice(("mobile", "landline", "voip")),
            "created": lambda: r.choice(("created", "accepted", "queued", "saved", "sent")), "deletedst": lambda: r.choice(("deleted", "removed", "cancelled")), "updatedst": lambda: r.choice(("updated", "saved", "changed")), "okst": lambda: r.choice(("ok", "up", "operational", "healthy")),
            "role": lambda: r.choice(("tank", "support", "mage", "assassin", "healer", "ranger")), "muscle": lambda: r.choice(("biceps", "glutes", "core", "back", "calves", "chest")), "difficulty": lambda: r.choice(("easy", "medium", "hard", "beginner")),
            "platform": lambda: r.choice(("PC", "PlayStation 5", "Switch", "Xbox Series X", "Android")), "severity": lambda: r.choice(("minor", "moderate", "severe")), "pos": lambda: r.choice(("noun", "verb", "adjective")), "style": lambda: r.choice(("Serif Bold", "Watercolor", "Pixel Art", "Noir", "Sketch", "Sans Light", "Retro", "Alloy", "Nova")),
            "subject": lambda: r.choice((f"Invoice {self.code(4, 6)}", f"Your order from {p('company')}", f"Meeting about {p('topic')}", "Please confirm your address", f"News from {p('company')}")),
            "availability": lambda: r.choice(("in stock", "out of stock", "only a few left")), "fuel": lambda: r.choice(("petrol", "diesel", "electric", "hybrid")), "engine": lambda: r.choice(("1.6 L I4", "2.0 L I4", "3.0 L V6", "1.2 L I3", "electric")), "gate": lambda: f"{r.choice('ABCD')}{r.randrange(1, 40)}",
            "quarter": lambda: f"Q{r.randrange(1, 5)} {self.now.year - r.randrange(3)}", "verse": lambda: f"{r.randrange(1, 60)}:{r.randrange(1, 80)}", "color": lambda: p("color"), "hex": lambda: "#" + self.code(6, 6, hexes), "coordinates": lambda: f"{self._kinds['latitude']()}, {self._kinds['longitude']()}",
            "salary": lambda: f"{r.randrange(18, 140)}000 {r.choice(('USD', 'EUR', 'GBP'))} a year", "life_span": lambda: f"{r.randrange(9, 12)}-{r.randrange(13, 17)} years", "opening_hours": lambda: f"0{r.randrange(7, 10)}:00-{r.randrange(17, 22)}:00", "isbn": lambda: f"978{r.randrange(10**9, 10**10)}",
            "format": lambda: r.choice(("png", "svg", "jpg", "mp4", "pdf")), "gender": lambda: r.choice(("M", "F")), "version": lambda: f"{r.randrange(1, 9)}.{r.randrange(20)}.{r.randrange(9)}", "true": lambda: r.random() < 0.65, "tipvalue": lambda: r.choice(("home win", "draw", "away win", "over 2.5", "under 2.5", "both teams score")), "advisory": lambda: f"{p('company')} {r.choice(('Gateway', 'Controller', 'Router', 'Firmware', 'Web Panel'))} {r.choice(('buffer overflow', 'weak credentials', 'missing authentication', 'path traversal', 'code injection'))}", "plan": lambda: r.choice(("Basic", "Plus", "Family", "Business", "Starter", "Unlimited 10 GB", "Weekend")), "streakname": lambda: r.choice(("No losses", "Wins", "Losses", "First to score", "Without clean sheet")), "offset": lambda: r.choice(("+00:00", "+01:00", "-05:00", "+05:30", "+09:00", "-03:00")), "permission": lambda: r.choice(("read", "write", "delete", "share", "admin", "comment")), "question": lambda: r.choice((f"Which animal is on the flag of {self.city()[1]}?", f"In which year was {p('company')} founded?", f"What is {p('topic')}?", f"Who wrote {self.title()}?", f"Where is {self.city()[0]}?")), "score": number(1, 100), "gasunit": lambda: r.choice(("ppm", "ppb")), "nationality": lambda: self.city()[1],
            "amountx": decimal(10, 2000), "expires_in": lambda: r.choice((3600, 7200, 86400, 1800)), "bitrate": lambda: r.choice((64, 96, 128, 192, 320)), "reason": lambda: r.choice(("accepted format", "checked against the register", "format and check digit")), "weathercode": number(0, 99), "magnitude": decimal(2.1, 7.4, 1),
        }  # fmt: skip


KIND_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"(?:^|_)(?:uuid|guid)$", "uuid"), (r"(?:image|img|photo|picture|thumb|thumbnail|logo|icon|avatar|cover|poster|banner|pic|flag)(?:_?s)?(?:_(?:url|uri|link|large|small|medium|hd|src))?$", "imgurl"),
        (r"trailer|stream|download|audio|preview|media_url|video_url|file_url|pdf", "fileurl"), (r"(?:url|uri|link|href|permalink|website|site|src)$", "url"), (r"email|mail$", "email"), (r"phone|tel$|mobile|fax", "phone"),
        (r"(?:^|_)ip$|ip_address", "ip"), (r"domain|hostname|host$", "domain"), (r"slug|custom_id|seo", "slug"), (r"hash|checksum|token|etag|cursor|continuation|signature", "hash"), (r"(?:^|_)(?:iso2|cca2|alpha2|country_code|countrycode|code2)$", "cc"),
        (r"currency(?:_?code)?$|^ccy", "currency"), (r"lang(?:uage)?_?code$|^lang$|locale", "lc"), (r"time_?zone|^tz$", "timezone"), (r"lat(?:itude)?$", "latitude"), (r"(?:^|_)(?:lon|lng|long|longitude)$", "longitude"), (r"coordinates|geo$", "coordinates"),
        (r"time_?stamp|^ts$|epoch|unix|_at_ts", "timestamp"), (r"birth|dob", "birth_date"), (r"release|premiere|air_date", "release_date"), (r"expir|valid_until|due", "futuredate"), (r"date_?time|created|updated|modified|published_at|publish_?time|posted_at|published$|_at$|taken_at", "datetime"), (r"date|^day$|_on$|since$|until$", "date"),
        (r"sunrise|sunset|^time$|_time$|kickoff|hour$|dawn|dusk|noon", "clock"), (r"founded|established", "oldyear"), (r"year|season$", "year"), (r"month", "month"), (r"minute", "minute"), (r"duration_?ms|length_?seconds|seconds|expires", "seconds"), (r"duration|runtime|length|cooking_time|prep_time|day_length|eta", "duration"),
        (r"^rank|ranking|^pos$|order$|priority|index$|^no$", "rank"), (r"position$", "position"), (r"change|pct|diff|delta|_return|growth|yield|chg", "change"), (r"percent|probability|chance|humidity|cloud|illumination|discount", "percent"), (r"market_?cap|revenue|income|profit|turnover|assets|liabilities|equity|market_?value|^fee$|budget|gross", "bigmoney"),
        (r"price|cost|open$|close$|high$|low$|bid|ask|last$|fare|rent|zestimate|value_usd|usd$|eur$|gbp$|strike|nav$|vwap|dividend", "price"), (r"salary|wage", "salary"), (r"amount|total_paid|balance|sum$|tax$|fees?$", "amount"), (r"odds|decimal|moneyline", "odds"), (r"rating|stars|vote_average", "rating"), (r"confidence|ratio|score_norm|similarity|accuracy|polarity|prob$|sharpe|beta|eps|magnitude_r", "ratio"),
        (r"rate$", "ratio10"), (r"magnitude", "magnitude"), (r"goals?|home_score|away_score|^home$|^away$|score_home|score_away|assists|cards", "goals"), (r"points|pts|wins?$|loss(?:es)?|draws?|lost|won|played|matches$|apps|appearances", "points"), (r"score", "score100"), (r"followers|subscribers|views|plays|likes|listeners|shares|retweets|fans|upvotes|reactions|subs$|visits|_votes", "bigcount"),
        (r"following|comments|posts|videos|replies|uploads|tracks$|reviews|ratings_count|members|employees|sold|stock$", "count"), (r"volume|supply|shares_out|marketshares", "bigint"), (r"population|cases|deaths|deceased", "population"), (r"capacity|attendance", "capacity"), (r"total|count|num_|number_of|_count|quantity|results$|pages_total|size$|limit$|per_page", "count"), (r"^page$|pages$|offset|level|stage|round$|week", "smallint"),
        (r"age$", "age"), (r"height", "height"), (r"weight", "weight"), (r"temp(?:erature)?(?:_|$)|feels|dew|_c$|chill|heat_index", "temp"), (r"pressure", "pressure"), (r"wind|gust", "wind"), (r"uv", "uv"), (r"altitude|elevation|depth", "altitude"), (r"distance|radius|_km$|miles", "distance"), (r"area|sqft|square", "area"), (r"bed|bath|rooms|guests|adults", "rooms"), (r"mileage|odometer", "km"),
        (r"calorie|kcal|energy", "calories"), (r"protein|carb|fat|fiber|sugar|_g$|sodium|iron", "grams"), (r"serving", "servings"), (r"speed|pace", "speed"), (r"bytes|file_?size|_kb$|_mb$", "bytes"), (r"_ms$|latency|ping", "ms"), (r"port$", "port"), (r"zip|post_?code|postal", "zip"), (r"street", "street"), (r"address|location$|venue_address", "fulladdress"),
        (r"country|nation|origin", "country"), (r"city|town|place|capital|destination|departure|arrival|locality|suburb", "city"), (r"region|state$|province|county|district", "region"), (r"condition|weather|forecast|sky", "sky"), (r"home_?team|away_?team|team|club|squad|winner|opponent", "team"), (r"league|tournament|competition|cup", "league"), (r"venue|stadium|arena", "venue"), (r"user_?name|screen_?name|nick|login|handle|gamertag", "username"),
        (r"first_?name|given", "first"), (r"last_?name|surname|family", "last"), (r"player|author|person|owner|director|coach|referee|driver|jockey|trainer|actor|character|full_?name|ceo|by$|writer|creator|host_name|contact", "person"), (r"artist|band|performer|singer", "band"), (r"album|song|track|movie|film|show|book|episode", "title"), (r"channel", "channel"), (r"headline", "headline"), (r"brand|manufacturer|vendor|seller|merchant", "brand"),
        (r"make$", "make"), (r"model|trim", "model"), (r"company|publisher|employer|carrier|operator|isp|organi|provider|registrar|issuer|firm|label_name|studio|developer", "company"), (r"airline", "airline"), (r"airport|iata|icao", "airport"), (r"flight", "flight_number"), (r"sector|industry", "sector"), (r"symbol|ticker|isin", "ticker"), (r"exchange|mic", "exchangename"), (r"coin|crypto|token_name", "coin"), (r"market", "market"),
        (r"genre", "genre"), (r"language", "language"), (r"colou?r", "color"), (r"hex$", "hash"), (r"hashtag|^tag", "hashtag"), (r"categor|section|department|group$", "category"), (r"source|newspaper|outlet|site_name", "source"), (r"bio|about|signature", "bio"), (r"definition|meaning", "definition"), (r"sentiment|tone", "label"), (r"job|occupation|profession", "job"), (r"breed|animal", "animal"), (r"dish|recipe|meal", "dish"), (r"ingredient", "ingredient"), (r"hotel|property_name", "hotel"), (r"game", "gametitle"),
        (r"joke|punchline", "joke"), (r"quote|verse|horoscope|advice|affirmation", "quote"), (r"fact", "fact"), (r"word$|term$|synonym|keyword|suggestion", "word"), (r"fuel", "fuel"), (r"gender|sex", "gender"), (r"version", "version"), (r"status|state", "status"), (r"difficulty", "difficulty"), (r"severity", "severity"), (r"platform|device|os$", "platform"), (r"format|mime|extension|media_type", "format"), (r"subject", "subject"), (r"file", "filename"),
        (r"code|sku|reference|serial|number$|vin|isbn|upc|ean", "code"), (r"(?:^|_|[a-z])ids?$|^pk$|^key$|^eid$", "id"), (r"title", "title"), (r"review|comment|content|description|summary|text|snippet|excerpt|overview|synopsis|plot|body|caption|detail|message|note|abstract|intro", "summary"), (r"type|kind|mode|class", "category"), (r"name$", "title"),
    )
)  # fmt: skip
