"""Text of a task: needs joined, with openings, small talk and slips.

Phrases are read from the files of services.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from toolsrv_lab.conversations.services_b.calls import Need, misspelt
from toolsrv_lab.conversations.services_b.catalog import Service
from toolsrv_lab.conversations.wording import word_set

VERBS = word_set(
    "find get show tell check give calculate compute convert book list look send add work "
    "translate search make create cancel track pull fetch generate draw roll validate "
    "verify lookup compare estimate figure determine reserve recommend suggest solve "
    "shorten summarise summarize spell detect read run plan set put remove move pay "
    "transfer submit register rent schedule simulate predict identify grab save describe "
    "analyse analyze pick flip shuffle encode decode hash resize rotate compress merge "
    "split let see buy sell start stop log resolve ping scan sort reverse define rhyme "
    "file close renew hold play explain help"
)

THING = re.compile(
    r"(?:the|an?|my)\b(?!.*[:?;]|.*, |.*\. |.*\b(?:is|are|gave|took|lent|did|has|have|does|doesn't|got|broke|costs?|wants?|sits|recorded|asks|says|offers|goes|needs|needs?|teaches|are|was|sent|came|shows?|swears|wrote|usually|forwarded)\b)"
)

ASKS = [
    ("please ", ""), ("", " please"), ("kindly ", ""), ("just ", ""), ("could you ", ""), ("can you ", ""), ("can u ", ""),
    ("I need you to ", ""), ("would you mind having a go: ", ""), ("i'd like you to ", ""), ("pls ", ""), ("can you please ", ""),
    ("go ahead and ", ""), ("help me ", ""), ("I want to ", ""), ("could you quickly ", ""), ("do me a favour and ", ""), ("", " for me"),
    ("would you ", " for me"), ("you should ", ""), ("let's ", ""), ("my job for you: ", ""), ("try to ", ""), ("", ", thx"),
]  # fmt: skip

WANTS = [
    ("I need ", ""), ("give me ", ""), ("get me ", ""), ("I'm after ", ""), ("looking for ", ""), ("can I have ", ""), ("I'd like ", ""),
    ("tell me ", ""), ("what I need is ", ""), ("show me ", ""), ("need ", ""), ("fetch me ", ""), ("I'd love to know ", ""), ("find out ", ""),
    ("could you get me ", ""), ("I want to know ", ""), ("let me know ", ""), ("find ", ""), ("please send ", ""), ("", " please"),
]  # fmt: skip

JOINS = [
    " and ", ", and ", " and also ", ", then ", "; ", ", plus ", " and then ", ", also ", " as well as this: ", ", and after that ",
    " - and ", " & ", ", and while you're at it ", ", next ", " and, if you can, ", ", and on top of that ", "; also ", ", and one more: ",
    "... and ", ", oh and ", " and finally ", ", besides ", " + ", ", then when that's done ",
]  # fmt: skip

ALSO = [
    "also ", "and ", "while you're at it, ", "one more thing: ", "next: ", "then ", "second, ", "oh, and ", "another thing - ", "on top of that, ",
    "after that, ", "besides that, ", "separately, ", "lastly, ", "when you have that, ", "and for my sister: ", "in the same go, ", "plus, ",
    "secondly, ", "other question: ", "as well: ", "my other problem: ", "if you still have time, ", "not related, but ", "P.S. ", "meanwhile, ",
]  # fmt: skip

OPENERS = [
    "Hi!", "Hello,", "hey,", "Good morning.", "Good evening,", "Hey there!", "hiya,", "Ok so,", "Right,", "Quick one:", "Quick question:",
    "Dear assistant,", "Greetings.", "Morning!", "Hello dear,", "Yo,", "G'day,", "Hi team,", "Excuse me,", "Sorry to bother you again.",
    "Me again.", "Alright,", "So,", "Namaste,", "Good afternoon.", "Oi mate,", "Abeg,", "Hi, it's me again.", "Hello sir,", "Hmm,", "Listen,",
    "Okay,", "Sir,", "Please,", "Well,", "Hallo,", "Urgent:", "Two seconds of your time:", "Next task.", "A small request:",
]  # fmt: skip

CLOSERS = [
    "Thanks!", "thx", "Thank you so much.", "cheers", "Much appreciated.", "Ta!", "thanks in advance", "No rush.", "I'm in a hurry.", "Many thanks, Ade",
    "thank you kindly", "That's all.", "God bless.", "It's urgent.", "You're a star.", "Cheers mate", "Regards, Priya", "Let me know.", "please and thank you",
    "I appreciate it.", "Asap if possible.", "That would be great.", "Short answer is fine.", "I'll wait.", "Nothing more for now.", "ok?",
]  # fmt: skip

SMALLTALK = [
    "I've been putting this off all week and now it can't wait any longer.",
    "My phone is nearly dead so be quick.",
    "I'm sitting in a café with terrible wifi and a very loud coffee machine behind me.",
    "My grandson usually does this sort of thing for me but he is away at university.",
    "Sorry for my English, I am still learning it.",
    "Long day at the office, and my boss just dropped one more thing on my desk.",
    "We had a bit of an argument at dinner about this and I promised to settle it.",
    "I am on the train and the man next to me won't stop talking.",
    "The kids are finally in bed so I have ten minutes to sort things out.",
    "I asked two colleagues already and both of them told me something different.",
    "Not sure if you are the right one to ask.",
    "I'm filling in a form and got stuck halfway.",
    "My neighbour swears he knows it, but he is wrong about most things, to be honest.",
    "I lost the note where I'd written it down.",
    "Been meaning to do it since morning, but the power went off two times.",
    "It is for a school project of my daughter; she has to hand it in soon.",
    "Honestly I could do it myself but I'm too lazy today.",
    "I have the builders in, so excuse the short message.",
    "We are three friends planning something and I'm the one who has to organise it, as usual.",
    "The website I normally use is down again, so I thought you might help.",
    "I'm new here.",
    "Got a meeting in five minutes.",
    "My husband wants to know, don't ask me why.",
    "I am writing this from my mother's old tablet and the keyboard sticks.",
    "Somebody at the club asked me and I had no idea.",
    "Just had my coffee, ready to go through my list.",
    "There's a bet running between me and my brother-in-law.",
    "I tried an app for this; it wanted my credit card before it would tell me anything.",
    "As you know I like to have things checked twice.",
    "Don't write me a novel.",
    "I'm doing this for an old friend who doesn't have internet at home.",
    "Yesterday I forgot it completely and today I nearly did again.",
]  # fmt: skip

REASONS = [
    "no function for {0}", "nothing on offer for {0}", "{0}: not offered", "none of the functions does {0}", "there is no function for {0}",
    "missing: {0}", "no tool here covers {0}", "the functions do not cover {0}",
]  # fmt: skip

UNSERVED = [
    "None of my functions can help with {0}.",
    "I can't do the part about {0} with the functions here.",
    "I have no function for {0}.",
    "For {0} there is nothing on offer here.",
    "The part about {0} is not something these functions can do.",
    "Sorry, no function I have covers {0}.",
    "What I could not do: {0}.",
    "There is no function here for {0}, so that part is open.",
    "I could not help with {0}: nothing here serves that.",
    "No luck with {0}, as no function here does it.",
]  # fmt: skip


def compose(needs: Sequence[Need], service: Service, rng: random.Random, *, lower: bool) -> str:
    """Return the text of the task and set each need's words."""
    for need in needs:
        need.pieces = [one for one in need.pieces if one[0]]
    if rng.random() < 0.13:
        for need in rng.sample(needs, 1):
            at = rng.choice(
                [n for n, one in enumerate(need.pieces) if one[1] and len(one[0]) > 5] or [-1]
            )
            if at >= 0:
                words = need.pieces[at][0].split(" ")
                spot = rng.choice(
                    [n for n, one in enumerate(words) if len(one) > 4 and one.isalpha()] or [-1]
                )
                if spot >= 0:
                    words[spot] = misspelt(rng, words[spot])
                    need.pieces[at] = (" ".join(words), True)
    texts = ["".join(one[0] for one in need.pieces).strip() for need in needs]
    literal = [need.pieces[0][1] for need in needs]
    closed = [text[-1] in "?.!" for text in texts]
    out = ""
    opener = rng.choice(OPENERS) if rng.random() < 0.3 else ""
    context = (
        rng.choice(service.contexts if service.contexts and rng.random() < 0.75 else SMALLTALK)
        if rng.random() < 0.4
        else ""
    )
    if context and rng.random() < 0.4:
        context = f"{rng.choice(SMALLTALK)} {context}"
    clause = len(texts) > 1 and rng.random() < 0.6
    parts: list[tuple[str, str]] = []
    for at, text in enumerate(texts):
        verb = re.match(r"[a-z']+(?= )", text)
        wrap, tail = "", ""
        if literal[at] and verb and verb[0] in VERBS and not closed[at] and rng.random() < 0.45:
            wrap, tail = rng.choice(ASKS if not (at and clause) else ASKS[:4])
        elif literal[at] and not closed[at] and THING.match(text) and rng.random() < 0.75:
            wrap, tail = rng.choice(WANTS)
        parts.append((wrap, tail))
    for at, whole in enumerate(texts):
        text = whole
        wrap, tail = parts[at]
        joined = ""
        if at:
            ended = out.rstrip()[-1] in "?.!"
            if clause and not ended:
                joined = rng.choice(JOINS)
            else:
                if not ended:
                    out = out.rstrip() + ("." if not lower or rng.random() < 0.6 else ",")
                joined = " " + (rng.choice(ALSO) if rng.random() < 0.55 else "")
        if clause and at < len(texts) - 1 and text.endswith("?"):
            text = text[:-1]
        start = not at or out.rstrip()[-1:] in ("?", ".", "!")
        if not at:
            if opener.endswith(",") and re.match(r"(?!I\b|I')[A-Z][a-z' ]", context):
                context = context[0].lower() + context[1:]
            joined = " ".join(one for one in (opener, context) if one)
            if joined:
                start = joined[-1] in ".!?"
                joined += " "
        elif joined.strip():
            start = False
        lead = joined + wrap
        if start and not wrap and literal[at] and not lower and text[0].islower():
            text = text[0].upper() + text[1:]
        if start and wrap and not lower:
            lead = joined + wrap[0].upper() + wrap[1:]
        if joined.strip() and at and not clause and not lower:
            lead = joined[0] + (joined[1].upper() + joined[2:]) + wrap
        if lower and literal[at]:
            text = text[0].lower() + text[1:] if text[1:2].islower() else text
        needs[at].text = text
        out += lead + text + tail
    question = any(closed) and texts[-1].endswith("?")
    if out[-1] not in "?.!" and not question and rng.random() < (0.75 if not lower else 0.25):
        out += (
            rng.choice([".", ".", ".", "!", ". "]).strip() if not out.rstrip().endswith("@") else ""
        )
    if parts[-1][0].startswith(("could", "can", "would", "any chance")) and out.endswith(
        (".", "!")
    ):
        out = out[:-1] + "?"
    if rng.random() < 0.15:
        closer = rng.choice(CLOSERS)
        out += f" {closer}" if out[-1] in "?.!" else f", {closer[0].lower()}{closer[1:]}"
    return out.strip()
