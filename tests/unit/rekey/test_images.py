"""What stream records say to the worker."""

import pytest
from keyhop.errors import CannotStart
from keyhop.rekey.worker.images import changes_of

from testing.rekey_pairs import ByTenant

KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}


def test_a_delete_of_what_was_not_there_says_nothing_and_stops_nobody() -> None:
    """As DynamoDB Local has them of two deletes at once; it would come again for ever."""
    record = {"dynamodb": {"Keys": KEY, "StreamViewType": "NEW_AND_OLD_IMAGES"}}
    here = {**KEY, "tenant": {"S": "t"}}
    other = {"dynamodb": {**record["dynamodb"], "NewImage": here}}
    assert changes_of([record], ByTenant()) == ([], {})
    ((change,), _) = changes_of([other, record], ByTenant())
    assert len(change.places) == 1


@pytest.mark.parametrize("view", [{}, {"StreamViewType": "KEYS_ONLY"}])
def test_a_stream_without_images_is_refused(view: dict[str, str]) -> None:
    with pytest.raises(CannotStart, match="must be NEW_AND_OLD_IMAGES"):
        changes_of([{"dynamodb": {"Keys": KEY, **view}}], ByTenant())
