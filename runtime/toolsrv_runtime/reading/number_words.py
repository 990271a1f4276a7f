"""Numbers in words, as alternatives of a regular expression; text2num reads what they find."""

ONES = "one|two|three|four|five|six|seven|eight|nine"
TO_TWELVE = f"{ONES}|ten|eleven|twelve"
TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
SPELLED = f"zero|{ONES}|{TEENS}|{TENS}|hundred|thousand|million"
ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
