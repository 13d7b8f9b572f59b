"""Digests of keys and items: equal ones have equal digests, whatever form a request gave them.

Numbers are hashed by their value, sets in one order, attributes by name. Pure.
"""

from hashlib import blake2b

from keyhop.dynamodb.values import Item, Key, TypedValue, distinct_bytes

DIGEST_BYTES = 16
"""So among 1e10 items two unequal ones have the same digest with a chance of 1e-19."""


def key_digest(key: Key) -> bytes:
    """Of a primary key: what stands for it where people may look, as keys are personal data."""
    return _digest(b"".join(_named(name, distinct_bytes(key[name])) for name in sorted(key)))


def item_digest(item: Item) -> bytes:
    """Of a whole item."""
    return _digest(_members(item))


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()


def _members(item: Item) -> bytes:
    return b"".join(_named(name, _bytes(item[name])) for name in sorted(item))


def _named(name: str, content: bytes) -> bytes:
    own = name.encode()
    return b"%d:%b%b" % (len(own), own, content)


def _bytes(value: TypedValue) -> bytes:
    """No bytes of one value are those of another, or begin with them."""
    ((type_, content),) = value.items()
    if type_ in ("S", "N", "B"):
        return distinct_bytes(value)
    if type_ in ("SS", "NS", "BS"):
        parts = sorted(distinct_bytes({type_[0]: one}) for one in content)
    elif type_ == "L":
        parts = [_bytes(one) for one in content]
    elif type_ == "M":
        return b"M%d:%b" % (len(content), _members(content))
    else:
        return b"BOOL1;" if type_ == "BOOL" and content else type_.encode() + b"0;"
    return b"%b%d:%b" % (type_.encode(), len(parts), b"".join(parts))
