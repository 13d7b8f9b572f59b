"""A transform in which source items contend for a place in the destination, and its reverse."""

from keyhop.dynamodb.values import Item
from keyhop.rekey.transform import KeyNames, Kind, Transform
from keyhop.template import Unmappable


class Owned(Transform):
    """A transform of {id, to, ...} to {pk: to, id, ...}: items with the same `to` contend for it.

    An item without `to` is left out. An item with `-` as `to` cannot be mapped.
    """

    kind: Kind = "recoverable"
    source = KeyNames("id")
    destination = KeyNames("pk")
    owner_attributes = ("id",)

    def forward(self, item: Item) -> Item | None:
        if "to" not in item:
            return None
        if item["to"] == {"S": "-"}:
            raise Unmappable("attribute 'to' has no key in it")
        rest = {name: value for name, value in item.items() if name != "to"}
        return {"pk": item["to"], **rest}

    def back(self, item: Item) -> Item | None:
        if "id" not in item:
            raise Unmappable("attribute 'id' is missing")
        rest = {name: value for name, value in item.items() if name != "pk"}
        return {"to": item["pk"], **rest}

    @property
    def reverse(self) -> Transform:
        return Back()


class Back(Transform):
    """The reverse of Owned: two destination items may have the same `id`."""

    kind: Kind = "recoverable"
    source = KeyNames("pk")
    destination = KeyNames("id")
    owner_attributes = ("to",)

    def forward(self, item: Item) -> Item | None:
        return Owned().back(item)

    def back(self, item: Item) -> Item | None:
        return Owned().forward(item)

    @property
    def reverse(self) -> Transform:
        return Owned()
