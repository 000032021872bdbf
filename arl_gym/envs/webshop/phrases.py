"""How shoppers say what they want: everyday English in lower case, without a final full stop."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from arl_gym.envs.webshop.words import Kind, Trait, paraphrases
from arl_gym.rng import Rng

FRAMES = (
    "i am looking for {x}",
    "im looking for {x}",
    "i need {x}",
    "i want {x}",
    "i want to buy {x}",
    "i would like {x}",
    "id like to buy {x}",
    "i would like to purchase {x}",
    "i am interested in {x}",
    "i want to find {x}",
    "i need to find {x}",
    "i need to buy {x}",
    "i need to order {x}",
    "i am searching for {x}",
    "i am in need of {x}",
    "i am shopping for {x}",
    "i have been looking for {x}",
    "i wish to buy {x}",
    "i could use {x}",
    "im after {x}",
    "im trying to find {x}",
    "im in the market for {x}",
    "im hoping to find {x}",
    "looking for {x}",
    "find me {x}",
    "get me {x}",
    "show me {x}",
    "buy me {x}",
    "order me {x}",
    "please find me {x}",
    "please get me {x}",
    "please help me find {x}",
    "help me find {x}",
    "can you find me {x}",
    "can you get me {x}",
    "can you help me find {x}",
    "could you find me {x}",
    "could you help me find {x}",
    "can i get {x}",
    "do you have {x}",
    "do you sell {x}",
    "where can i find {x}",
    "my mother needs {x}",
    "my friend wants {x}",
    "my sister is looking for {x}",
    "we need {x}",
    "we are looking for {x}",
    "{x} is what i need",
    "{x} would be great",
    "{x}, please",
)

_AFTER = {
    "is": (
        "it should be {}",
        "it has to be {}",
        "please make sure it is {}",
        "it must be {}",
        "i want it {}",
    ),
    "has": ("it should have {}", "i would like it with {}", "it needs {}", "it has to come with {}"),
    "for": ("it should be good for {}", "it is for {}", "i need it for {}", "it should work for {}"),
    "of": ("it should be made of {}", "i want it made of {}", "the material should be {}"),
}
_INSIDE = {"is": "that is {}", "has": "with {}", "for": "for {}", "of": "made of {}"}
_OPTIONS = {
    "color": ("in {}", "in {} color", "in the color {}", "in {}", "and the color should be {}"),
    "size": ("in size {}", "in a size {}", "size {}", "and it should be size {}", "in {}"),
    "pack": ("in a {}", "as a {}", "and i want the {}", "{}"),
    "flavor": ("in {} flavor", "with {} flavor", "and the flavor should be {}"),
    "scent": ("with {} scent", "in {} scent", "and i like the {} scent"),
    "style": ("in the {} style", "and the style should be {}", "in {} style"),
}
_OTHER_OPTION = ("with {value} {name}", "and the {name} should be {value}", "in {value} {name}")
_VOWEL = re.compile(r"(?!uni|us[bed]|uk|eu|one|ut)[aeiou]|hour|hdmi|x ray|sd ")
_NUMERAL = re.compile(r"(?<![.#/\w])(?:[1-9]|1[0-2])(?![.'\"/\w])")
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_PARAPHRASED, _AFTERWARDS, _NUMBER_WORD, _TYPO = 0.5, 0.35, 0.4, 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What an instruction asks for."""

    kind: Kind
    traits: Sequence[Trait]
    options: Sequence[tuple[str, str]]
    """Names of groups and the wanted values."""


def instruct(wish: Wish, rng: Rng) -> str:
    """Return an instruction without its price text."""
    traits = list(wish.traits)
    rng.shuffle(traits)
    after = [traits.pop() for _ in range(2) if traits and rng.uniform() < _AFTERWARDS]
    options = [_option(name, value, rng) for name, value in wish.options]
    thing = " ".join([_thing(wish.kind, traits, rng), *options])
    text = rng.choice(FRAMES).format(x=thing)
    for trait in after:
        text += rng.choice((". ", ", ", ", and ")) + _after(trait, rng)
    text = re.sub(r"\s+", " ", text).lower().strip(" .")
    return _mistyped(text, rng) if rng.uniform() < _TYPO else text


def _thing(kind: Kind, traits: Sequence[Trait], rng: Rng) -> str:
    """Return the kind between its attributes: "a soft chair with arms for long days"."""
    before: list[str] = []
    behind: list[str] = []
    for trait in traits:
        other = _paraphrase(trait, rng)
        if other:
            behind.append(f"that {other}")
        elif trait.form == "is" and (not before or rng.below(2)):
            before.append(trait.phrase)
        else:
            behind.append(_INSIDE[trait.form].format(trait.phrase))
    name = " ".join([", ".join(before), kind.name]).strip()
    article = kind.article
    if article in ("a ", "an "):
        article = "an " if _VOWEL.match(name) else "a "
    return article + " ".join([name, " and ".join(behind)]).strip()


def _after(trait: Trait, rng: Rng) -> str:
    if other := _paraphrase(trait, rng):
        return f"it {other}"
    return rng.choice(_AFTER[trait.form]).format(trait.phrase)


def _paraphrase(trait: Trait, rng: Rng) -> str:
    others = paraphrases().get(trait.phrase)
    return rng.choice(others) if others and rng.uniform() < _PARAPHRASED else ""


def _option(name: str, value: str, rng: Rng) -> str:
    said = _NUMERAL.sub(_number_word, value) if rng.uniform() < _NUMBER_WORD else value
    if name in _OPTIONS:
        return rng.choice(_OPTIONS[name]).format(said)
    return rng.choice(_OTHER_OPTION).format(name=name, value=said)


def _number_word(digits: re.Match[str]) -> str:
    return _NUMBERS[int(digits[0]) - 1]


def _mistyped(text: str, rng: Rng) -> str:
    """Return the text with a letter dropped, or two swapped, inside one of its longer words."""
    words = text.split(" ")
    long = [i for i, word in enumerate(words) if len(word) > 4 and word.isalpha()]
    if long:
        i = rng.choice(long)
        at = 1 + rng.below(len(words[i]) - 2)
        a, b, rest = words[i][:at], words[i][at : at + 2], words[i][at + 2 :]
        words[i] = a + (b[::-1] if rng.below(2) else b[1:]) + rest
    return " ".join(words)
