"""Looks at candidates of a verification, with all quiet times between them."""

from collections.abc import Callable, Sequence

from keyhop.rekey.compare.looks import Looks
from keyhop.rekey.compare.rows import Candidate


def looked_at(
    looks: Looks, candidates: Sequence[Candidate], pause: Callable[[float], None]
) -> list[Candidate]:
    """Look at the first of these candidates until they are equal or really differ."""
    found = looks.look(candidates)
    for seconds in looks.look_again(found):
        pause(seconds)
    return found
