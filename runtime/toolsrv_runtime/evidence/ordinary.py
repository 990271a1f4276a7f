"""Words that say nothing of their own where a sentence gives them their capital.

Three ways to tell one, all cheap: it stands in the lists below, in any inflection; it ends as
English adverbs and abstract nouns do; or, which the caller knows, its text or a source has it in
lower case. Latin letters only: where capitals mean something else no word is taken for a name
because of them. Pure.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolsrv_registry.words import STOP_WORDS

_CLOSED_TEXT = """
    a an the this that these those it its he she they we you i my your his her our their and or but
    so yes no yeah yep nope ok okay sure none nothing nobody n/a na nil null unknown unavailable
    undefined true false correct incorrect right wrong valid invalid available done sorry thanks
    api apis
    answer answers result results response summary note notes conclusion details overview
    explanation example examples sources source steps total warning tip disclaimer important
    la el los las le les il lo gli un una une uno der die das ein eine de het een os
"""
_COMMON_TEXT = """
    able access accord account across action add address adjust adult afternoon afterwards age ago
    ahead aim airline airport allow almost along alongside already alternative although always
    among amount animal another anyone anything anyway apart apologise apologize appear apply area
    around arrange arrival article artist aside ask assume attend aunt author autumn average avoid
    away back bank base basic bear become bed begin beginning believe belong best better beyond bid
    big bill bird bit black block blue body book border bottom boy breakfast briefly bring brother
    brown budget build bus button buy calculate calendar call camera cannot capital car care case
    cat category certain chance change character chart cheap check cheers chess child children
    choose citizen city class clear click client climate clock close cloudy coat code coin cold
    colleague college color colour combine come common company compare complete compute computer
    concert confirm consider contact contain continue contrary conversely convert cook cool copy
    cost count country county course create cup currency customer cut daily dance data date day
    deal dear death decide decimal decode decrease default degree delete delivery demand density
    departure depend depth design desire desk despite detect determine device difference different
    digit dinner discount dish distance divide doctor dog domain door double download dozen dr
    dream dress drink drive driver dry due earlier early earnings earth ease easily east eastern
    easy eat edge edition effect egg electricity else email employ employee encode end energy
    engine enjoy enough ensure enter entire entry equal error estimate even event ever every
    everyone everything evidence exact exam except exchange exclude exercise exist expect expensive
    experience expiry explain export extra extract eye face fact factor fail fair family farm fast
    father fee female fetch field figure file fill film filter financial find finger fire first
    fish fix flight floor flower fly folder follow food foot force forecast form format formerly
    formula free fresh friend front fruit fuel full furthermore gain game gas generate gift girl
    glass goal gold good grade graph grass gray great green grey ground group grow guess guest
    guide hair half hand happen happily head health heart heat heavy height hello help hence hereby
    hi high highest hill history hit hold holiday home hope horse hospital hot hotel hour house
    human humidity hundred husband ice id idea ideal identify illness image improve inch include
    income increase indeed index indicate info input insert inside install instead insurance
    interest internal invest invite issue item jacket job journey judge jump keep key keyword kid
    kind king kitchen knowledge known lack lake land lane language large largest last late later
    latest latitude laugh law lead leader learn least leave left lend length lesson letter level
    library lie life lift light likewise limit line link little live load loan long longest
    longitude look lose low lowest luckily lunch machine mail main major male manage manager manner
    many map market mass master match matter maximum maybe mayor meal mean meanwhile measure media
    medicine meet member memory men mention menu merely message metal meter method middle midnight
    mild mile milk mind minimum minor minute miss mix mode model moment money month moon moreover
    morning mother mountain mouse mouth move movie mr mrs ms much multiple multiply music name
    nation native nature nearby nearest nearly necessarily neck neighbor neighbour neither network
    never nevertheless new newest night nonetheless noon north northern notice number nurse object
    occur ocean offer office official often oil old oldest open option optional orange order
    original otherwise output outside overall owner pack page paint pair paper parameter parcel
    parent park part particularly partner party passenger password past path pay payment peak pen
    people per percent percentage perfect perform perhaps period permit person pet phase phone
    photo phrase pick picture piece pilot pink place plan plane planet platform play player plus
    poem point police pool possible post postcode pot pound power practice practise prefer prepare
    president price primarily prime prince princess print private prize problem proceed process
    produce product prof professor profile profit program programme progress project proof properly
    protect prove provide provider public pull purchase purple push put quality quantity quarter
    queen query quick quite race radio rail rain rainy raise random range rank rate rather ratio
    reach react read reader real reason recall receive recent recommend record red reduce refer
    regarding regardless region regularly rely remain remark remedy remember remind remove rent
    repair repeat replace reply report represent request require research resident respect rest
    restaurant retrieve return revenue reverse rice ride ring rise risk river road rock role roof
    room root round route row rule run sail salary sale salt sample sand save say scale scene
    schedule school science score sea search season seat second secret section security seed seem
    seldom select send sentence separate series serve service session set several shape share ship
    shirt shoe shoot shop short shorten shortest shower side sight sign signal silence silver
    similar simply since sing single sir sister sit site size skill skin sky sleep slight slow
    small smallest smell smoke snow soft soil solve sometimes somewhere song soon sort sound soup
    south southern spare speak specific specify speed spell spend sport spot spring square staff
    stage stand standard star start state station status stay step still stock stone stop store
    storm story straight strategy street stress string strong structure student study subject
    subtract success suddenly sugar suggest suit sum summer sun sunny sunrise sunset supply support
    suppose surface surprise survey sweet swim switch symbol system table take talent talk target
    task taste tax taxi tea teach teacher team technology telephone temperature term test text
    theme theory therefore thick thin third though thought threat throughout throw thus ticket tie
    time timezone title today together tomato tomorrow tone tonight tool tooth top touch tour
    tourist toward town track trade traffic train transfer translate travel tree trial trip trouble
    truck trust truth try tune turn twice twilight type umbrella uncle understand unit unity
    universe university unless unlike update upload upper url usage useful user username validate
    valley value various vary vehicle verb verify version versus via video view visibility visit
    visitor volume vote wage wait walk wall war warm warn waste watch water wave way weak wealth
    wear weather website wed week weekday weekend weight welcome west western wet whatever wheel
    whenever whereas wherever white whoever whole whose wide width wife wild win window windy wine
    wing winner winter wire wish without woman women wonder wood word work worker world worldwide
    wrap write writer yard year yellow yesterday yet youth zero zone
"""
CLOSED = frozenset(_CLOSED_TEXT.split())
"""Words that state nothing even where a value stands, and as headings of an answer."""

_COMMON = CLOSED | STOP_WORDS | frozenset(_COMMON_TEXT.split())
_ENDINGS = re.compile(
    r"\w{3,}(?:ically|ately|ently|antly|ously|ingly|edly|ably|ibly|ually|fully|essly|ively|ally|tely)"
    r"|\w{4,}(?:tions?|sions?|ments?|ities)"
)


@lru_cache(maxsize=4096)
def forms(word: str) -> tuple[str, ...]:
    """Return a folded word as it is, as its plural and as what it may be an inflection of."""
    found = [word, f"{word}s"]
    for ending, instead in (
        ("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y"), ("ing", ""),
        ("ing", "e"), ("ly", ""),
    ):  # fmt: skip
        if word.endswith(ending) and len(word) - len(ending) > 2:
            found.append(word[: -len(ending)] + instead)
    return tuple(dict.fromkeys(found))


def opens_sentences(word: str) -> bool:
    """Whether a folded word owes a capital at the start of a sentence to that place alone."""
    if not word.isascii():
        return True
    parts = re.split(r"['\u2019]", word)[0].split("-")
    return all(_ENDINGS.fullmatch(one) or not _COMMON.isdisjoint(forms(one)) for one in parts)
