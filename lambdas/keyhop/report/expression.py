"""The names of attributes in an expression of DynamoDB: what stands before a dot, once each. Pure.

This module is imported into users' applications (sampler.py): it needs `re` alone.
"""

import re

_NAME = re.compile(r"(?<![\w:#.\]])(#?[A-Za-z_]\w*+)(?!\s*\()")
_DOT = re.compile(r"\s*\.\s*")
_WORDS = frozenset({"and", "or", "not", "between", "in"})


def names_in(expression: str) -> tuple[str, ...]:
    """As they stand there, also as #name; no values, functions and operators."""
    found = _NAME.findall(_DOT.sub(".", expression))
    return tuple(dict.fromkeys(one for one in found if one.lower() not in _WORDS))
