"""Put items of the backfill into the destination, each only if its place is empty."""

from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.requester import ItemCalls, Written
from keyhop.dynamodb.units import write_units
from keyhop.dynamodb.values import Item, Key, size_of
from keyhop.errors import AwsRefused, CannotStart


class NotTaken(ValueError):
    """DynamoDB rejects an item: it is too large, or an index requires another type."""


class Destination(ItemCalls):
    """The destination table of a backfill, for any number of threads; see ItemCalls."""

    def put_if_absent(self, item: Item, partition: str) -> Written:
        """Put an item if there is none with its key, or raise NotTaken."""
        try:
            return self._write(
                "put_item",
                write_units(size_of(item)),
                TableName=self._table,
                Item=item,
                ConditionExpression="attribute_not_exists(#p)",
                ExpressionAttributeNames={"#p": partition},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except (AwsRefused, CannotStart) as error:
            cause = error.__cause__
            if cause is not None and error_code(cause) in _OF_THE_ITEM:
                raise NotTaken("DynamoDB does not take the item") from error
            raise

    def read(self, place: Key) -> Item | None:
        """Read the item at a place, strongly consistent; None if there is none."""
        item: Item | None = self._read("get_item", Key=place).get("Item")
        return item


_OF_THE_ITEM = {"ValidationException", "ItemCollectionSizeLimitExceededException"}
