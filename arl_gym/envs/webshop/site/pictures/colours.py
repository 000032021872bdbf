"""Which colours a text names, and tones of a colour.

>>> swatch("z1-navy blue")
'#25345c'
>>> swatch("x-large") is None
True
"""

import re
import unicodedata
from functools import lru_cache

Colour = tuple[int, int, int]

WHITE: Colour = (255, 255, 255)
BLACK: Colour = (24, 25, 28)
GREY: Colour = (140, 143, 148)
METAL: Colour = (176, 182, 190)
DARK: Colour = (58, 62, 70)
GLASS: Colour = (214, 230, 238)
CREAM: Colour = (250, 243, 226)
WOOD: Colour = (186, 136, 88)
LEAF: Colour = (92, 150, 84)
GOLD: Colour = (222, 180, 84)

PLEASANT: tuple[Colour, ...] = (
    *((214, 92, 86), (226, 138, 76), (232, 184, 82), (126, 172, 102), (72, 152, 128), (74, 158, 180)),
    *((84, 124, 190), (116, 104, 184), (168, 104, 170), (214, 120, 150), (150, 110, 84), (96, 112, 130)),
)
"""For products that name no colour."""

# Words that say little beside a more special one: "mustard yellow" is mustard.
_PLAIN = """\
black 26282c, white fdfdfb, grey 94979c, gray 94979c, red cf3434, blue 3a6fc4, green 419456, yellow \
f2cb3c, orange ee8434, purple 7c4ba3, pink f09cb6, brown 7c5336, beige ddcbaa, gold d6ac4c, silver bcc1c8, \
blonde e3c688"""
# Words that name a colour only where no other does: "natural black" is black.
_WEAK = """\
natural e2d2b4, creme f7edd6, clear dcebf2, transparent dcebf2, crystal dcebf2, apple cf3434, light f2ead8, \
dark 44474d, wood ba8858, wooden ba8858, metal b0b6be, nude dcb69c, steel 8d99a5, stone b0a99d"""
_SPECIAL = """\
navy 25345c, navy blue 25345c, royal blue 2f4fb8, sky blue 86c1ea, baby blue a9d0ee, cobalt 2347a8, \
azure 3f9be0, sapphire 1f4699, indigo 3c3f8c, denim 4a6a94, midnight 1d2746, aqua 58c7c9, teal 23837f, \
turquoise 3cc0b8, cyan 3fc0d4, peacock 12717c, ice blue c6e2f0, powder blue b4d2e6, dark wash 2b3f63, \
light wash 8fadcd, wash 4a6a94, rinse 24365a, mint a5dcc0, mint green a5dcc0, seafoam 9ddcc2, \
sage a3b196, sage green a3b196, emerald 128c62, jade 2c9c78, forest 2a5b3c, forest green 2a5b3c, \
hunter green 2a5b3c, army 5d6442, army green 5d6442, olive 747a3c, moss 7a8450, lime a6d23c, \
grass 69ab3e, ivy 3b6b4a, pistachio b4cc8c, eucalyptus 84a898, matcha 9ab45c, khaki b4a478, \
camo 6a7048, avocado 7d9448, basil 4f8a42, jalapeno 5f9a3c, dill 86a45a, pickle 86a45a, kiwi 93bf4a, \
mustard d4a02a, lemon f4dd52, banana f3de7a, sunflower f3b92c, honey dfa335, amber d8932c, \
champagne ead6b0, wheat e3cc9c, butter f5e3a0, corn f4d768, vanilla f6e8c4, citrus f0b83c, \
pineapple f2cf4a, peach f8bc96, apricot f4b078, melon f8a888, mango f5a83c, tangerine f28a30, \
pumpkin dd7a2a, burnt orange c2602a, terracotta c46a4a, rust ac5430, copper b8703f, bronze 8c6a3c, \
brass bf9a4a, coral f5806a, salmon f59c86, cinnamon a5622f, ginger cc8a3c, paprika bb4428, \
chili c23420, tomato d2452f, cherry a81f35, cherry blossom f4b9cb, black cherry 5e1a2c, \
cranberry 9c1f38, crimson b2182f, ruby 9c1838, scarlet cc2424, brick a8442f, wine 6f1f32, \
burgundy 701f33, bordeaux 6a1d30, merlot 6a2034, maroon 6e2024, berry 8f2a58, raspberry c2305a, \
strawberry e2505c, strawberry blonde dd9f68, rosewood 9c4a4c, rose d8728a, rose gold dba394, \
rosy d8728a, blush f0c2c0, fuchsia d8328e, magenta c82a86, hot pink f04e98, baby pink f8c8d4, \
ballet pink f5cdd4, bubblegum f590b8, flamingo f4808e, mauve b287a2, plum 6b3360, grape 5f3a80, \
eggplant 4a2a4c, lilac c6a9da, lavender b7a5d8, orchid b869b8, violet 7a4fb4, blueberry 4a5296, \
ultraviolet 5f4b8b, jasmine f3e6b0, chocolate 5c3a28, coffee 5f4332, espresso 402c22, mocha 7b5844, \
cocoa 6a4633, caramel b97a3f, cognac 9c5c30, tan c8a070, camel c09a66, chestnut 7a452c, \
hazelnut 9c7248, auburn 7c3a28, mahogany 6a3026, walnut 6e4c34, oak c9a06a, pine d8b27c, bamboo dcbc82, \
teak a5713f, maple cf8c46, cedar a8663f, almond dfc29c, tobacco 7c5a36, sand dcc6a0, taupe a6968a, \
mushroom b3a494, toffee a86a38, latte bfa083, tortoise 8a5a32, leopard d2a468, cheetah d2a468, \
tiger dc8c3c, cream f7edd6, cafe a98467, cafe creme dcc7a8, ivory f7f2e2, eggshell f2ead8, pearl f0ebe2, \
alabaster f2efe8, linen eee4d2, coconut f7f3ea, off white f5f1e6, snow fbfbfd, milk fbf8f0, \
bone e9dfca, seashell f8e9df, starlight f1ebdd, marble f0eff0, platinum e4e4e0, platinum blonde ede0bf, \
bleach blonde f0e2b4, ash blonde c8b48e, charcoal 42464c, graphite 4c5158, gunmetal 51575e, \
slate 5f6d7a, ash aaa9a4, smoke 8c9096, pewter 8c8f91, nickel a9aaa6, chrome c6cbd1, granite 77797a, \
elephant 84878b, space gray 5a5e65, space grey 5a5e65, silver grey a9adb2, silver gray a9adb2, \
asphalt 4a4d52, onyx 222326, ebony 2f2826, jet black 17181b, jet 17181b, gum b98a54, stonewash 7f9ab8, \
skull 8b8b8b, zebra f4f2ec, snake c8b48a, python c8b48a, tortoiseshell 8a5a32"""

_SHIFTS: dict[str, tuple[Colour, float]] = {
    **dict.fromkeys(("light", "soft", "pastel", "bleached"), (WHITE, 0.42)),
    "pale": (WHITE, 0.55),
    **dict.fromkeys(("dark", "rich"), (BLACK, 0.42)),
    "deep": (BLACK, 0.3),
    **dict.fromkeys(("heather", "heathered", "dusty", "faded", "vintage", "stone"), (GREY, 0.35)),
    **dict.fromkeys(("ash", "smoky", "smokey", "cool"), (GREY, 0.3)),
}
"""Words before a colour, to what they shift it, and by which share."""

_SEPARATORS = re.compile(r"[|/,&+;]|\band\b|\bwith\b|\bon\b")
_MOST = 200
"""Characters that are read of a text."""


def _table(text: str) -> dict[tuple[str, ...], Colour]:
    entries = [entry.split() for entry in text.split(",")]
    return {tuple(words): _colour(code) for *words, code in entries}


def _colour(code: str) -> Colour:
    return int(code[:2], 16), int(code[2:4], 16), int(code[4:], 16)


_TABLES = tuple(map(_table, (_SPECIAL, _PLAIN, _WEAK)))
_KNOWN = {words: rank for rank, table in reversed(list(enumerate(_TABLES))) for words in table}
_VOCABULARY = {word for words in _KNOWN for word in words} | set(_SHIFTS)


def words_of(text: str) -> list[str]:
    """Return the words of a text: runs of letters in lower case, without accents."""
    plain = unicodedata.normalize("NFKD", text[:_MOST].lower())
    return re.findall("[a-z]+", "".join(c for c in plain if not unicodedata.combining(c)))


def swatch(value: str) -> str | None:
    """Return the colour that an option value names as "#rrggbb", None if it names none."""
    named = tones(value)
    return "#{:02x}{:02x}{:02x}".format(*named[0]) if named else None


def tones(text: str, weak: bool = True) -> tuple[Colour, ...]:
    """Return the colours that a text names, one for each of its parts: "black/white" has two.

    Args:
        text: What a product's option or title says.
        weak: Whether words such as "natural", which are seldom meant as a colour in a title, count.
    """
    return _tones(text[:_MOST].lower(), len(_TABLES) if weak else len(_TABLES) - 1)


@lru_cache(maxsize=4096)
def _tones(text: str, ranks: int) -> tuple[Colour, ...]:
    parts = map(words_of, _SEPARATORS.split(text))
    return tuple(colour for words in parts if (colour := _tone(_split(words), ranks)))


def _split(words: list[str]) -> list[str]:
    """Return the words with those split that are two of ours: "darkgreen"."""
    return [piece for word in words for piece in _pieces(word)]


def _pieces(word: str) -> tuple[str, ...]:
    if word not in _VOCABULARY:
        for i in range(3, len(word) - 2):
            if word[:i] in _VOCABULARY and word[i:] in _VOCABULARY:
                return word[:i], word[i:]
    return (word,)


def _tone(words: list[str], ranks: int) -> Colour | None:
    """Return the most special colour named, the first of several, shifted by the words before."""
    best: tuple[int, Colour] | None = None
    i = 0
    while i < len(words):
        length = next((n for n in (2, 1) if tuple(words[i : i + n]) in _KNOWN), 0)
        if length:
            rank = _KNOWN[name := tuple(words[i : i + length])]
            if rank < (best[0] if best else ranks):
                best = rank, _shifted(_TABLES[rank][name], words[:i])
        i += length or 1
    return best[1] if best else None


def _shifted(colour: Colour, before: list[str]) -> Colour:
    for word in before[-2:]:
        if word in _SHIFTS:
            colour = mix(colour, *_SHIFTS[word])
    return colour


def mix(a: Colour, b: Colour, share: float) -> Colour:
    """Return colour `a` with this share of `b`."""
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


def brightness(colour: Colour) -> float:
    """Return how bright a colour looks, from 0 to 255."""
    return 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2]


def darker(colour: Colour, share: float = 0.25) -> Colour:
    """Return a darker tone."""
    return mix(colour, BLACK, share)


def lighter(colour: Colour, share: float = 0.35) -> Colour:
    """Return a lighter tone."""
    return mix(colour, WHITE, share)


def contour(colour: Colour) -> Colour:
    """Return the tone that draws lines on a colour: darker, on a dark one lighter."""
    return darker(colour, 0.3) if brightness(colour) > 70 else lighter(colour, 0.28)
