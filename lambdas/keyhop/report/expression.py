"""The names of attributes in an expression of DynamoDB: the part before a dot, once each. Pure.

This module is imported into users' applications (sampler.py), so it imports only `re`.
"""

import re

_NAME = re.compile(r"(?<![\w:#.\]])(#?[A-Za-z_]\w*+)(?!\s*\()")
_DOT = re.compile(r"\s*\.\s*")
_WORDS = frozenset({"and", "or", "not", "between", "in"})


def names_in(expression: str) -> tuple[str, ...]:
    """Return the names as the expression contains them, also as #name.

    Values, functions and operators are not included.
    """
    names = _NAME.findall(_DOT.sub(".", expression))
    return tuple(dict.fromkeys(name for name in names if name.lower() not in _WORDS))
