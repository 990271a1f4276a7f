"""Numbers in words, as alternatives of a regular expression; text2num reads what they find."""

ONES = "one|two|three|four|five|six|seven|eight|nine"
TO_TWELVE = f"{ONES}|ten|eleven|twelve"
TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
SPELLED = f"zero|{ONES}|{TEENS}|{TENS}|hundred|thousand|million"
ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

_TO_TWENTY = (
    "first", *ORDINALS, "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth",
    "seventeenth", "eighteenth", "nineteenth", "twentieth",
)  # fmt: skip
DAYS = {name: at for at, name in enumerate(_TO_TWENTY, start=1)}
DAYS |= {f"twenty {name}": 20 + at for name, at in DAYS.items() if at < 10}
DAYS |= {"thirtieth": 30, "thirty first": 31}
"""Days of a month by their ordinals, with a blank between two words."""
DAY = "|".join(one.replace(" ", "[ -]") for one in sorted(DAYS, key=len, reverse=True))
