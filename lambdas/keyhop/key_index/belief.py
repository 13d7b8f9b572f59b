"""Whether to list the keys from the key index, and what to read then."""

from collections.abc import Callable
from dataclasses import replace

from keyhop.dynamodb.client import DynamoDB, Endpoint
from keyhop.dynamodb.tables import Target, describe
from keyhop.jobs.layout import Choice, choose_method
from keyhop.key_index.index import TableState, check_has_one, look_up
from keyhop.key_index.registry import Book, why_not
from keyhop.key_index.sentinel import INDEX, Sentinel

BookOf = Callable[[TableState], Book]


def choose_source(
    client: DynamoDB,
    endpoint: Endpoint,
    target: Target,
    asked: str,
    book_of: BookOf,
    place: str | None = None,
) -> tuple[Target, Choice]:
    """The target and the method for `asked`, which may be "index" or "auto".

    `auto` takes the key index if it is ACTIVE and its last audit on record found no drift; the
    reason says so, or why not. place: the sentinels' sort key, if it is set (else: as in the book).
    Raises CannotStart, IndexNotFound if the index is asked for and cannot be read.
    """
    if asked != "index" and (asked != "auto" or not target.has_key_index):
        return target, choose_method(target.space, target.index, asked)
    state = look_up(client, endpoint, target.name)
    book = book_of(state)
    audit = book.audit()
    if asked == "index":
        check_has_one(state)
        reason = "asked for"
    else:
        why = why_not(audit) if state.is_index_ready else f"it is {state.index}"
        if why is not None:
            choice = choose_method(target.space, target.index, asked)
            return target, replace(choice, reason=f"{choice.reason}; not its key index: {why}")
        assert audit is not None
        reason = f"the key index is ACTIVE, and its audit of {audit['ended']} found no drift"
    setup = book.setup()
    sentinel = Sentinel.of(state.space, place)
    if setup is not None and "sentinel" in setup and place is None:
        sentinel = Sentinel.from_json(setup["sentinel"])
    index = describe(client, endpoint, target.name, INDEX)
    return replace(index, sentinel=sentinel), Choice("index", reason)
