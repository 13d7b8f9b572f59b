"""Puts items of the backfill into the destination: each only where nothing is yet."""

from keyhop.dynamodb.item_calls import ItemCalls, Written, write_units
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.values import Item, Key, size_of
from keyhop.errors import AwsRefused, CannotStart


class NotTaken(ValueError):
    """The service does not take an item: as it is too large, or an index wants another type."""


class Destination(ItemCalls):
    """For any number of threads; see ItemCalls."""

    def put_if_absent(self, item: Item, partition: str) -> Written:
        """partition: the name of the partition key. Raises NotTaken."""
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
        """What is there, strongly consistent."""
        found: Item | None = self._read("get_item", Key=place).get("Item")
        return found


_OF_THE_ITEM = {"ValidationException", "ItemCollectionSizeLimitExceededException"}
