"""Ids, times and texts as applications write them."""

import uuid as _uuid
from datetime import UTC, datetime
from random import Random

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _words(text: str) -> list[str]:
    return text.split()


FIRST = _words("Ada Bea Cem Dora Emil Fay Gus Hana Ivo Jule Kofi Lea Mats Nora Omar Pia")
LAST = _words("Abel Brandt Cruz Diaz Ek Fuchs Gray Haas Ito Jung Kaya Lund Moreau Nagy Okafor")
CITIES = _words("Bonn Lyon Oslo Porto Turku Graz Gent Brno Split Cork Pisa Ulm")
LETTERS = "abcdefghijklmnopqrstuvwxyz      "


def moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def iso(at: float) -> str:
    return moment(at).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def day(at: float) -> str:
    return moment(at).strftime("%Y-%m-%d")


def uuid(chance: Random) -> str:
    return str(_uuid.UUID(int=chance.getrandbits(128), version=4))


def uuid7(at: float, chance: Random) -> str:
    number = (int(at * 1000) << 80) | (7 << 76) | (chance.getrandbits(12) << 64)
    return str(_uuid.UUID(int=number | (2 << 62) | chance.getrandbits(62)))


def digits_in(number: int, alphabet: str, length: int) -> str:
    text = ""
    for _ in range(length):
        number, rest = divmod(number, len(alphabet))
        text = alphabet[rest] + text
    return text


def ulid(at: float, chance: Random) -> str:
    return digits_in(int(at * 1000), CROCKFORD, 10) + digits_in(
        chance.getrandbits(80), CROCKFORD, 16
    )


def ksuid(at: float, chance: Random) -> str:
    return digits_in((int(at) - 1_400_000_000 << 128) | chance.getrandbits(128), BASE62, 27)


def name(chance: Random) -> str:
    return f"{chance.choice(FIRST)} {chance.choice(LAST)}"


def text(chance: Random, length: int) -> str:
    """Return so many ASCII characters; a text of more than 200 repeats itself, to save time."""
    piece = "".join(chance.choices(LETTERS, k=min(length, 200)))
    return (piece * (length // len(piece) + 1))[:length] if length else ""


def some(chance: Random, minimum: int, maximum: int) -> str:
    return text(chance, chance.randint(minimum, maximum))
