"""The worker reads changes from stream records."""

import pytest
from keyhop.errors import CannotStart
from keyhop.rekey.worker.images import changes_of

from testing.rekey_pairs import ByTenant

KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}


def test_the_record_of_a_delete_of_no_item_is_ignored() -> None:
    """DynamoDB Local writes such records for two simultaneous deletes; an error would repeat."""
    record = {"dynamodb": {"Keys": KEY, "StreamViewType": "NEW_AND_OLD_IMAGES"}}
    item = {**KEY, "tenant": {"S": "t"}}
    put = {"dynamodb": {**record["dynamodb"], "NewImage": item}}
    assert changes_of([record], ByTenant()) == ([], {})
    ((change,), _) = changes_of([put, record], ByTenant())
    assert len(change.places) == 1


@pytest.mark.parametrize("view", [{}, {"StreamViewType": "KEYS_ONLY"}])
def test_a_stream_without_images_is_refused(view: dict[str, str]) -> None:
    with pytest.raises(CannotStart, match="must be NEW_AND_OLD_IMAGES"):
        changes_of([{"dynamodb": {"Keys": KEY, **view}}], ByTenant())
