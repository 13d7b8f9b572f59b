"""The worker's requests change tables in the way that the explorer assumes (effect)."""

import itertools
from typing import Any

import pytest
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.worker.drive import Target
from keyhop.rekey.worker.images import Image, frozen
from keyhop.rekey.worker.protocol import Call, Kind, Outcome

from testing.databases import Database
from testing.rekey_explored import NEW, effect
from tests.integration.rekey.worlds import Owned, World

OLD, CHANGED = (0, 1), (0, 2)
"""Images of a source key at the only place."""

CONTENTS = {
    "nothing": None,
    "its own": (0, OLD),
    "another's": (1, OLD),
    "nobody's": (Outcome.FOREIGN, OLD),
}
CLAIMS = {"no claim": (), "a claim": ((0, 0, 1),), "somebody's claim": ((0, 0, 2),)}
CALLS = list(itertools.product((Kind.WRITE, Kind.REMOVE, Kind.TAKE_OVER), (None, 1)))
OTHERS = ("not the row of anybody", "nor the token")


def key(number: int) -> dict[str, Any]:
    return {"id": {"S": f"s{number}"}}


class Requests:
    """The destination and the side table of a pair, in the explorer's terms."""

    def __init__(self, world: World) -> None:
        self.place = {"pk": {"S": "d"}}
        self.world = world
        self.side: SideTable = world.side
        self.table = world.pair.destination
        self.target = Target(world.connection, self.table, Owned(), "forward", self.side)
        self.tokens: dict[tuple[str, str], int] = {}

    def image(self, source: int, content: int) -> Image:
        item = {**key(source), "to": self.place["pk"], "data": {"S": str(content)}}
        return Image(item, Owned())

    def set(self, content: Any, claims: Any) -> None:
        if content is None:
            self.world.client.delete_item(TableName=self.table, Key=self.place)
        else:
            owner = {} if content[0] is Outcome.FOREIGN else key(content[0])
            item = {**self.place, **owner, "data": {"S": str(content[1][1])}}
            self.world.client.put_item(TableName=self.table, Item=item)
        for _, owner, token in claims:
            claim = self.side.claim("forward", self.place, key(owner))
            self.tokens[self.side.fence(claim)] = token

    def send(self, step: Any) -> Any:
        kind, source, _, image, owner, fence = step
        arguments = {
            "image": image and self.image(source, image[1]),
            "owner": None if owner is None else frozen(key(owner)),
            "fence": fence
            and next((row for row, token in self.tokens.items() if token == fence), OTHERS),
        }
        call = Call(kind, frozen(key(source)), frozen(self.place), **arguments)
        if kind is Kind.WRITE:
            answer = self.target.write(call)
        elif kind is Kind.REMOVE:
            answer = self.target.remove(call, None)
        else:
            answer = self.target.take_over(call)
        return {frozen(key(number)): number for number in (0, 1)}.get(answer, answer)  # type: ignore[arg-type]

    def look(self) -> tuple[Any, Any]:
        """Return the content of the place, and the claims, in which NEW is any new token."""
        item = self.world.client.get_item(TableName=self.table, Key=self.place).get("Item")
        owners = {f"s{number}": number for number in (0, 1)}
        content = None
        if item is not None:
            owner = owners[item["id"]["S"]] if "id" in item else Outcome.FOREIGN
            content = (owner, (0, int(item["data"]["S"])))
        claims = [
            (0, owners[claim.owner["id"]["S"]], self.tokens.get(self.side.fence(claim), NEW))
            for claim in self.side.claims("forward")
        ]
        return content, tuple(sorted(claims))


@pytest.mark.prove
@pytest.mark.parametrize("content", CONTENTS)
def test_requests_have_the_explored_effects(
    dynamodb: Database, table_name: str, content: str
) -> None:
    world = World(dynamodb, table_name)
    for claims, (kind, fence) in itertools.product(CLAIMS, CALLS):
        requests = Requests(world)
        if kind is Kind.TAKE_OVER:  # from the owner because of whom a write was refused
            requests.set(CONTENTS["another's"], ())
            assert requests.send((Kind.WRITE, 0, 0, CHANGED, None, None)) == 1
        requests.set(CONTENTS[content], CLAIMS[claims])
        image = None if kind is Kind.REMOVE else CHANGED
        step = (kind, 0, 0, image, 1 if kind is Kind.TAKE_OVER else None, fence)
        answer = requests.send(step)
        places, claims_after, expected = effect(
            step, (None, None), (CONTENTS[content],), CLAIMS[claims]
        )
        assert answer == expected, (claims, step)
        assert requests.look() == (places[0], claims_after), (claims, step)
        for claim in world.side.claims("forward"):
            world.side.drop_claim(claim)


@pytest.mark.prove
@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("kind", [Kind.WRITE, Kind.REMOVE])
@pytest.mark.parametrize("has_row", [True, False])
def test_writes_of_one_transaction_have_the_explored_effects(
    dynamodb: Database, table_name: str, content: str, kind: Kind, has_row: bool
) -> None:
    """The answer of a refused write does not name the owner, as the write is then sent alone."""
    world = World(dynamodb, table_name)
    requests = Requests(world)
    requests.set(CONTENTS[content], ())
    second_place = {"pk": {"S": "beside"}}
    row = world.side.claim_together("forward", [(key(0), requests.place), (key(1), second_place)])
    fence = world.side.fence(row[0]) if has_row else OTHERS
    image = None if kind is Kind.REMOVE else CHANGED
    second_image = Image({**key(1), "to": second_place["pk"], "data": {"S": "2"}}, Owned())
    calls = [
        Call(
            kind,
            frozen(key(0)),
            frozen(requests.place),
            image and requests.image(0, image[1]),
            fence=fence,
        ),
        Call(Kind.WRITE, frozen(key(1)), frozen(second_place), second_image, fence=fence),
    ]
    answers = requests.target.write_together(calls)
    step = (kind, 0, 0, image, None, -1)
    claims = ((0, 0, -1),) if has_row else ()
    places, _, expected = effect(step, (None, None), (CONTENTS[content],), claims)
    if expected not in (None, Outcome.OVERTAKEN):
        expected = Outcome.REFUSED
    assert answers == [
        expected if has_row else Outcome.OVERTAKEN,
        None if has_row else Outcome.OVERTAKEN,
    ]
    assert requests.look()[0] == places[0]
    written = world.client.get_item(TableName=requests.table, Key=second_place).get("Item")
    assert (written is not None) == has_row
