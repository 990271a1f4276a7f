"""The fixed texts on which an exported encoder is compared with its source.

Tasks, API descriptions, single words, long and odd texts: what the registry really encodes.
Changing them changes the figures of the model card, nothing else.
"""

from __future__ import annotations

SENTENCES: tuple[str, ...] = (
    "What time is it in Tokyo when it is noon in Lisbon?",
    "Convert a moment in one time zone to another time zone",
    "Public holidays of a country in a given year",
    "Is next Monday a bank holiday in Scotland?",
    "Convert 12 miles to kilometres",
    "Convert a quantity from one unit of measurement to another",
    "Exchange rate between two currencies on a day",
    "How many euros do I get for 250 US dollars?",
    "When does the sun rise in Reykjavik tomorrow?",
    "Sunrise, sunset and twilight times at a place and date",
    "Phase of the moon on a date",
    "Distance between two points on the earth",
    "How far is it from Berlin to Madrid as the crow flies?",
    "Find the country that a telephone number belongs to",
    "Check whether a phone number is valid and format it",
    "Is this a valid IBAN: DE89370400440532013000?",
    "Check the check digit of an ISBN",
    "Create a random UUID",
    "Encode a text as base64",
    "Decode a URL-encoded string",
    "SHA-256 digest of a text",
    "Which colour is #ff8800 and what is its complement?",
    "Contrast ratio between two colours",
    "List the addresses of the network 10.1.0.0/29",
    "Does this IPv6 address belong to a private range?",
    "Prime factors of an integer",
    "Solve the equation x squared minus five x plus six equals zero",
    "Mean, median and standard deviation of a list of numbers",
    "Molar mass of a chemical formula such as C6H12O6",
    "Atomic number and weight of an element",
    "Draw a text as ASCII art",
    "Make up twenty persons with name, address and email for testing",
    "Random famous quote of the day",
    "Search for recipes with chicken and rice",
    "List the cocktails that contain gin",
    "Live scores of today's football matches",
    "Standings of the Premier League this season",
    "Search flights from Paris to New York on 24 December",
    "Hotels near the central station with free breakfast",
    "Current weather and a five day forecast for a city",
    "Will it rain in Bergen this weekend?",
    "Historical daily prices of a stock",
    "Latest headlines about renewable energy",
    "Detect the language of a text",
    "Translate a sentence from English into Korean",
    "Sentiment of a product review",
    "Shorten a long URL",
    "Track a parcel by its tracking number",
    "Send a text message to a mobile phone",
    "Download the video behind this link without a watermark",
    "Top trending songs and the lyrics of a song by an artist",
    "Get info",
    "search",
    "v1/fetch:data",
    "Returns all items.",
    "GET /users/{id}/orders?limit=10",
    "Wie spät ist es gerade in Sydney?",
    "¿Qué tiempo hará mañana en Sevilla?",
    "東京の天気を教えてください",
    (
        "I am planning a family trip to Rome. Find me a hotel for four nights, tell me the weather "
        "there next week, convert 900 pounds to euros, and list three museums near the Colosseum "
        "together with their opening hours."
    ),
    (
        "My company wants to compare shipping offers: fetch the rates of two carriers, then work out "
        "the delivery dates without Sundays and holidays, and finally draft a short summary that "
        "names the cheaper one."
    ),
    (
        "This endpoint gives you back a JSON object that contains the list of leagues, with their "
        "identifiers, names, logos, countries and the seasons that are covered. The identifier is "
        "needed by most of the other endpoints. Updates happen several times a day, so call it once "
        "a day at most and keep the result."
    ),
    "asdf qwer zxcv 12345 !!! ???",
    "Give me the day of the week for 29 February 2028 and also the week number.",
)
