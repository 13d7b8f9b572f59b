"""Digests of keys and items: equal values have equal digests, in whatever form a request gave them.
A number is hashed by its value, a set in a fixed order, and attributes by name. Pure.
"""

from hashlib import blake2b

from keyhop.dynamodb.values import Item, Key, TypedValue, distinct_bytes

DIGEST_BYTES = 16
"""With this size, two unequal items among 1e10 have the same digest with a probability of 1e-19."""


def key_digest(key: Key) -> bytes:
    """Return a digest that can be shown instead of a primary key, as keys are personal data."""
    return _digest(b"".join(_named(name, distinct_bytes(key[name])) for name in sorted(key)))


def item_digest(item: Item) -> bytes:
    """Return the digest of a whole item."""
    return _digest(_members(item))


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()


def _members(item: Item) -> bytes:
    return b"".join(_named(name, _bytes(item[name])) for name in sorted(item))


def _named(name: str, content: bytes) -> bytes:
    encoded = name.encode()
    return b"%d:%b%b" % (len(encoded), encoded, content)


def _bytes(value: TypedValue) -> bytes:
    """Return an encoding that no other value's encoding is equal to or begins with."""
    ((type_, content),) = value.items()
    if type_ in ("S", "N", "B"):
        return distinct_bytes(value)
    if type_ in ("SS", "NS", "BS"):
        parts = sorted(distinct_bytes({type_[0]: member}) for member in content)
    elif type_ == "L":
        parts = [_bytes(member) for member in content]
    elif type_ == "M":
        return b"M%d:%b" % (len(content), _members(content))
    else:
        return b"BOOL1;" if type_ == "BOOL" and content else type_.encode() + b"0;"
    return b"%b%d:%b" % (type_.encode(), len(parts), b"".join(parts))
