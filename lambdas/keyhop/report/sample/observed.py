"""All that a sample has noted of items, and shares of it. Pure.

Each observation counts for as many items as it stands for, and its collection is what is drawn: so
intervals are those of collections.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from keyhop.report.estimate import Estimate
from keyhop.report.facts import Tag, TtlFacts
from keyhop.report.forms import KeyForm
from keyhop.report.sample.observation import Observation, is_type_name
from keyhop.report.sample.rows import CollectionRow
from keyhop.report.statistics.shares import Item, weighted_share, widened

EXPIRED_DAYS = 7.0
"""TTL deletes within a few days: what has expired so long ago should be gone."""

FEWEST_ALIKE = 3
"""Collections that share a word before it is a tag: what fewer have may be anybody's name."""

MOST_ATTRIBUTES, MOST_SHAPES, MOST_TAGS = 200, 50, 30
"""Of which shares are told, the largest first."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The items that a sample has noted.

    Attributes:
        all: The observations, each with the number and the form of its collection.
        unrepresented: The share of the table's items for which none of them stands, at most.
    """

    all: Sequence[tuple[int, KeyForm, Observation]]
    unrepresented: float = 0.0

    @classmethod
    def of(cls, rows: Sequence[CollectionRow], unrepresented: float = 0.0) -> "Observed":
        """Return the observations of the rows of a sample."""
        noted = [(at, row.form, one) for at, row in enumerate(rows) for one in row.observations]
        return cls(noted, unrepresented)

    def items(self, value: Callable[[Observation], float]) -> list[Item]:
        """As the statistics take them."""
        return [Item(at, one.weight, value(one)) for at, _, one in self.all]

    def share(self, holds: Callable[[Observation], bool]) -> Estimate | None:
        """Return the share of all items of the table for which something holds."""
        return self._of_all(self.items(lambda one: float(holds(one))))

    def among(
        self, belongs: Callable[[Observation], bool], holds: Callable[[Observation], bool]
    ) -> Estimate | None:
        """Return the share of the items that belong to a group for which something holds.

        All items that were not seen may belong to it, so the smaller the group is in the sample,
        the less is known of it.
        """
        group = [Item(at, one.weight, float(holds(one))) for at, _, one in self.all if belongs(one)]
        share, size = weighted_share(group), self.share(belongs)
        if share is None or size is None:
            return None
        of_all = self.unrepresented + size.low
        return widened(share, self.unrepresented / of_all if of_all else 1.0)

    def _of_all(self, items: Sequence[Item]) -> Estimate | None:
        share = weighted_share(items)
        return None if share is None else widened(share, self.unrepresented)

    def coverage(self) -> dict[str, Estimate]:
        """By attribute: the share of items that have it."""
        met = Counter(name for _, _, one in self.all for name in one.names)
        return _found(
            (name, self.share(lambda one, name=name: name in one.names))  # type: ignore[misc]
            for name, _ in met.most_common(MOST_ATTRIBUTES)
        )

    def shapes(self) -> dict[str, Estimate]:
        """By names of attributes: the share of items that have just these."""
        met = Counter(one.names for _, _, one in self.all)
        return _found(
            (",".join(names), self.share(lambda one, names=names: one.names == names))  # type: ignore[misc]
            for names, _ in met.most_common(MOST_SHAPES)
        )

    def tags(self) -> tuple[Tag, ...]:
        """Return the tags of partition keys and of sort keys, the most frequent first."""
        holders: defaultdict[str, set[int]] = defaultdict(set)
        prefixes: defaultdict[str, set[str]] = defaultdict(set)
        for at, form, one in self.all:
            prefixes[form.tag].add(form.prefix)
            for tag in {form.tag, one.tag} - {""}:
                holders[tag].add(at)
        found = []
        for tag, where in holders.items():
            if len(where) >= FEWEST_ALIKE:
                share = self._of_all(
                    [
                        Item(at, one.weight, float(tag in (form.tag, one.tag)))
                        for at, form, one in self.all
                    ]
                )
                if share is not None:
                    found.append(
                        Tag(tag, share, *(prefixes[tag] if len(prefixes[tag]) == 1 else ()))
                    )
        return tuple(sorted(found, key=lambda one: -one.share.value)[:MOST_TAGS])

    def type_name(self) -> tuple[str, Estimate | None]:
        """The attribute that names the type on most items, and its share; "" if there is none."""
        met = Counter(name for _, _, one in self.all for name in one.names if is_type_name(name))
        name = met.most_common(1)[0][0] if met else ""
        return name, self.share(lambda one: name in one.names)

    def unpadded(self) -> Estimate | None:
        """Share of sort keys that are numbers as text, where those with their tag are of several
        widths, none padded.
        """
        widths: defaultdict[str, set[int]] = defaultdict(set)
        for _, _, one in self.all:
            if one.width:
                widths[one.tag].add(one.width)
        uneven = {tag for tag, seen in widths.items() if len(seen) > 1 and min(seen) > 0}
        return self.share(lambda one: bool(one.width) and one.tag in uneven)

    def ttl(self) -> TtlFacts | None:
        """Return what the values of the TTL attribute are like; None if no item has it."""

        def share(holds: Callable[[float | str | None], bool]) -> Estimate | None:
            return self.among(lambda one: one.ttl is not None, lambda one: holds(one.ttl))

        expired = share(lambda ttl: isinstance(ttl, float | int) and ttl > EXPIRED_DAYS)
        wrong = share(lambda ttl: ttl == "type")
        milliseconds = share(lambda ttl: ttl == "ms")
        missing = self.share(lambda one: one.ttl is None)
        if expired is None or wrong is None or milliseconds is None or missing is None:
            return None
        return TtlFacts(expired, wrong, milliseconds, missing)


def _found(shares: Iterable[tuple[str, Estimate | None]]) -> dict[str, Estimate]:
    return {name: share for name, share in shares if share is not None}
