"""The grammar of the sales log: rules, words and verb groups.

A rule is `SYMBOL: right side | right side ...`; a right side may open with a weight (`3x`), `*` marks its head. A slot
symbol (SLOTS) labels every word below it. Symbols without a rule are word classes that draw from WORDS.
Every clause draws a state, which only its verb group VG shows: nothing else in a clause depends on it, and the fillers
keep every slot word more than WINDOW words away from any verb group.
"""

from __future__ import annotations

STATES = ("uses", "wishes", "rejects")
SLOTS = {"PRODUCT": "product", "VENDOR": "vendor", "NUMBER": "number", "REASON": "reason"}
OUTSIDE = "O"
WINDOW = 3

RULES = """
ROOT: S* END
S: 5x CLAUSE* | 2x PREFACE CLAUSE* | 3x CLAUSE* JOINED | 1x PREFACE CLAUSE* JOINED
JOINED: COMMA LINK CLAUSE*
PREFACE: AT DET MEETING* COMMA | ON WEEKDAY* COMMA | AS DET AGENT SAYS* COMMA

CLAUSE: 4x PLAIN* | 3x TOPIC* | 2x CLEFT* | 2x FORWARD*
PLAIN: SUBJECT VG* ASIDE OBJECT | SUBJECT VG* ASIDE OBJECT BECAUSE
TOPIC: ABOUT COMMA SUBJECT VG* THEM | ABOUT TRAILER SUBJECT VG* THEM | ABOUT COMMA SUBJECT VG* THEM ASIDE BECAUSE
ABOUT: AS FOR OBJECT*
CLEFT: IT BE OBJECT THAT SUBJECT VG*
FORWARD: BECAUSE COMMA SUBJECT VG* ASIDE OBJECT

SUBJECT: 5x DET SITE* PLACE | 1x DET SITE* PLACE RELATIVE | 1x DET SITE* OF COMPANY
PLACE: IN CITY*
RELATIVE: 3x COMMA WHICH WE VISITED* WHEN COMMA | 1x COMMA WHICH PAST* OTHER THINGS COMMA
ASIDE: 2x COMMA SAYS* DET AGENT COMMA | 2x IN DET VIEW* OF DET AGENT | 1x AT DET TERM* OF MONTH | 1x IN DET HALL* WHEN
TRAILER: COMMA WITH WHICH WE SPENT* DET DAY COMMA | COMMA WHICH CAME* UP WHEN COMMA
WHEN: 2x ON WEEKDAY* | 1x ON FIGURE MONTH* | 1x IN MONTH*

OBJECT: 4x ITEM* | 1x ITEM* AND ITEM
ITEM: 3x NUMBER PRODUCT* BY_VENDOR | 2x NUMBER PRODUCT* | 2x DET PRODUCT* BY_VENDOR | 1x NUMBER ADJECTIVE PRODUCT*
BY_VENDOR: FROM VENDOR*
PRODUCT: 3x BRAND THING* | 1x THING* | 1x BRAND*
VENDOR: 3x COMPANY* | 1x COMPANY* FIRM
NUMBER: 4x FIGURE* | 1x NEARLY FIGURE*
BECAUSE: BECAUSE_OF OF DET REASON* | GIVEN DET REASON*
REASON: 2x QUALITY ASPECT* | 1x ASPECT*
"""

# word class: part of speech, then the words, frequent ones first
WORDS = {
    "END": "PUNCT .",
    "COMMA": "PUNCT ,",
    "LINK": "CONJ while but whereas and yet",
    "AND": "CONJ and",
    "AT": "ADP at",
    "ON": "ADP on",
    "IN": "ADP in",
    "AS": "ADP as",
    "FOR": "ADP for",
    "OF": "ADP of",
    "WITH": "ADP with",
    "FROM": "ADP from by",
    "BECAUSE_OF": "ADP because",
    "GIVEN": "ADP given considering",
    "UP": "ADV up",
    "NEARLY": "ADV nearly about",
    "DET": "DET the this our that",
    "THEM": "PRON them",
    "IT": "PRON it",
    "THAT": "PRON that",
    "WHICH": "PRON which",
    "WE": "PRON we I they",
    "BE": "VERB is was",
    "SAYS": "VERB says reports writes notes adds",
    "VISITED": "VERB visited called saw met inspected",
    "SPENT": "VERB spent began lost",
    "CAME": "VERB came turned",
    "PAST": "VERB bought refused wanted rejected requested",
    "OTHER": "ADJ other older many few",
    "ADJECTIVE": "ADJ new small spare heavy used",
    "QUALITY": "ADJ low high long short steady changing known reported",
    "MEETING": "NOUN meeting call fair workshop demonstration lunch",
    "AGENT": "NOUN agent engineer buyer dealer manager partner planner foreman auditor",
    "SITE": "NOUN plant hospital bakery brewery depot shipyard laboratory school farm hotel mill museum refinery",
    "THINGS": "NOUN machines tools suppliers systems",
    "VIEW": "NOUN view opinion words notes",
    "TERM": "NOUN end beginning",
    "HALL": "NOUN hall workshop basement yard",
    "DAY": "NOUN day morning evening",
    "WEEKDAY": "NAME Monday Tuesday Friday Thursday Wednesday",
    "MONTH": "NAME May March June January August October",
    "CITY": "NAME Osaka Bremen Lyon Porto Leeds Turin Gdansk Malmo Ghent Graz Bilbao Tampere Cork Brno Aarhus Bergen",
    "FIRM": "NAME Group Works Brothers Limited",
    "FIGURE": "NUM 12 3 20 two five 15 forty 8 11 6 ten 7 24 2 seven 30 9 four 19 18",
    "THING": "NOUN pumps valves scanners filters motors printers sensors ovens lifts drills racks mixers lamps cutters "
    "boilers scales fans presses robots trolleys",
    "ASPECT": "NOUN price noise weight warranty delivery energy-use size service colour training safety footprint "
    "repair-time lifetime paperwork",
}

# names put together from syllables: a first one by word class, then one or two more
FIRST_SYLLABLES = {
    "BRAND": ("Ze", "Po", "Ka", "Vi", "Mo", "Ta", "Lu", "Ri", "Ne", "So"),
    "COMPANY": ("Arc", "Nor", "Bel", "Dun", "Hal", "Kor", "Mer", "Ost", "Sal", "Wes"),
}
SYLLABLES = ("lar", "phyr", "mix", "dor", "tan", "vex", "rona", "lith", "kor", "minal", "dex", "bria", "tus", "werk")

# frequent ones first, the head verb last: some verbs serve all states, and then the words before them decide
VERB_GROUPS = {
    "uses": "uses | runs | operates | keeps | has installed | still uses | continues to use | is happy to keep",
    "wishes": "wants | requests | needs | plans to buy | would like to use | hopes to install | would buy | may buy",
    "rejects": "refuses | rejects | declines | returns | no longer uses | does not want | will not buy | never uses",
}
