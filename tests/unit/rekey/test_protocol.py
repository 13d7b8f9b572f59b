"""The worker's protocol, step by step; testing/rekey_explorer.py checks every order of steps."""

from collections.abc import Hashable, Iterator

from keyhop.rekey.worker.protocol import Call, Claim, Kind, Outcome, Protocol, Work

PROTOCOL = Protocol(place_of=lambda image: image[0] if isinstance(image, tuple) else None)
AT_D, AT_E, CHANGED = ("d", 1), ("e", 1), ("d", 2)


def kinds(work: Work, *answers: Hashable) -> Iterator[Kind | None]:
    """Yield the kind of each call, including the call after all the answers."""
    for answer in answers:
        call = PROTOCOL.call(work)
        yield call.kind if call else None
        work = PROTOCOL.answered(work, answer)
    call = PROTOCOL.call(work)
    yield call.kind if call else None


def test_a_change_is_written_at_its_place_and_read_again() -> None:
    work = PROTOCOL.begin("s", ("d", "e"), AT_D, read_first=False)
    assert PROTOCOL.call(work) == Call(Kind.WRITE, "s", "d", AT_D)
    assert list(kinds(work, None, None, AT_D)) == [Kind.WRITE, Kind.REMOVE, Kind.LOOK, None]


def test_a_source_that_has_changed_meanwhile_is_written_again() -> None:
    work = PROTOCOL.begin("s", ("d",), AT_D, read_first=False)
    steps = [Kind.WRITE, Kind.LOOK, Kind.WRITE, Kind.LOOK, Kind.REMOVE, Kind.LOOK, None]
    assert list(kinds(work, None, CHANGED, None, None, None, None)) == steps


def test_an_old_record_is_read_first() -> None:
    work = PROTOCOL.begin("s", ("d",), AT_D, read_first=True)
    assert list(kinds(work, None, None, None)) == [Kind.LOOK, Kind.REMOVE, Kind.LOOK, None]


def test_nothing_is_done_without_a_place() -> None:
    assert PROTOCOL.call(PROTOCOL.begin("s", (), None, read_first=True)) is None


def test_a_contended_place_is_claimed() -> None:
    work = PROTOCOL.begin("s", ("d",), AT_D, read_first=False)
    steps = [Kind.WRITE, Kind.LOOK_AT_OWNER, Kind.CLAIM, Kind.LOOK, None]
    assert list(kinds(work, "o", CHANGED, None, AT_D)) == steps


def test_a_place_whose_owner_has_left_is_taken_over() -> None:
    work = PROTOCOL.begin("s", ("d",), AT_D, read_first=False)
    work = PROTOCOL.answered(PROTOCOL.answered(work, "o"), AT_E)
    assert PROTOCOL.call(work) == Call(Kind.TAKE_OVER, "s", "d", AT_D, "o")
    steps = [Kind.TAKE_OVER, Kind.WRITE, Kind.LOOK, None]
    assert list(kinds(work, Outcome.REFUSED, None, AT_D)) == steps


def test_a_place_with_a_foreign_item_is_claimed() -> None:
    work = PROTOCOL.begin("s", ("d",), AT_D, read_first=False)
    assert list(kinds(work, Outcome.FOREIGN, None)) == [Kind.WRITE, Kind.CLAIM, Kind.LOOK]


def test_a_batch_that_comes_again_waits_before_its_first_write() -> None:
    work = PROTOCOL.begin("s", ("d", "e"), AT_D, read_first=True, waits=True)
    steps = [Kind.LOOK, Kind.WAIT, Kind.WRITE, Kind.REMOVE, Kind.LOOK, None]
    assert list(kinds(work, AT_D, None, None, None, AT_D)) == steps


def test_after_a_request_without_an_answer_the_work_restarts_after_a_wait() -> None:
    work = PROTOCOL.unanswered(PROTOCOL.begin("s", ("d",), AT_D, read_first=False))
    steps = [Kind.LOOK, Kind.WAIT, Kind.WRITE, Kind.LOOK, None]
    assert list(kinds(work, AT_D, None, None, AT_D)) == steps


def test_unfinished_work_becomes_a_claim_of_each_place_after_a_wait() -> None:
    work = PROTOCOL.begin("s", ("d", "e"), AT_D, read_first=False)
    assert list(kinds(PROTOCOL.leave(work), None, None)) == [Kind.CLAIM, Kind.CLAIM, None]
    work = PROTOCOL.leave(PROTOCOL.unanswered(work))
    assert list(kinds(work, None, None, None)) == [Kind.WAIT, Kind.CLAIM, Kind.CLAIM, None]
    assert work.is_left


def test_the_claim_of_unfinished_work_stays() -> None:
    work = PROTOCOL.leave(PROTOCOL.answered(PROTOCOL.settle(Claim("d", "s", "mine")), AT_D))
    assert PROTOCOL.call(work) is None
    assert work.is_left


def test_a_claim_is_settled_only_by_its_holder() -> None:
    work = PROTOCOL.settle(Claim("d", "s", "mine"))
    work = PROTOCOL.answered(work, AT_D)
    assert PROTOCOL.call(work) == Call(Kind.WRITE, "s", "d", AT_D, fence="mine")
    assert PROTOCOL.call(PROTOCOL.answered(work, Outcome.OVERTAKEN)) is None
