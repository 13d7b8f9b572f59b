"""The observations of a sample, and shares of its items. Pure.

Each observation counts for the items that it represents. The drawn units are collections, so
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
"""TTL deletes within a few days: an item that expired earlier should no longer exist."""

FEWEST_ALIKE = 3
"""The collections that must share a word before it counts as a tag: fewer may share a name."""

MOST_ATTRIBUTES, MOST_SHAPES, MOST_TAGS = 200, 50, 30
"""The maximum number of shares in the facts, the largest first."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The observations of a sample.

    Attributes:
        all: The observations, each with the number and the form of its collection.
        unrepresented: The maximum share of the table's items that none of them represents.
    """

    all: Sequence[tuple[int, KeyForm, Observation]]
    unrepresented: float = 0.0

    @classmethod
    def of(cls, rows: Sequence[CollectionRow], unrepresented: float = 0.0) -> "Observed":
        """Return the observations in the rows of a sample."""
        observations = [
            (at, row.form, observation)
            for at, row in enumerate(rows)
            for observation in row.observations
        ]
        return cls(observations, unrepresented)

    def items(self, value: Callable[[Observation], float]) -> list[Item]:
        """Return a value of each observation as the statistics need it."""
        return [Item(at, observation.weight, value(observation)) for at, _, observation in self.all]

    def share(self, holds: Callable[[Observation], bool]) -> Estimate | None:
        """Return the share of the table's items for which a condition holds."""
        return self._of_all(self.items(lambda observation: float(holds(observation))))

    def among(
        self, belongs: Callable[[Observation], bool], holds: Callable[[Observation], bool]
    ) -> Estimate | None:
        """Return the share of a group's items for which a condition holds.

        Each unread item may belong to the group, so a group that is small in the sample has a wide
        interval.
        """
        group = [
            Item(at, observation.weight, float(holds(observation)))
            for at, _, observation in self.all
            if belongs(observation)
        ]
        share, size = weighted_share(group), self.share(belongs)
        if share is None or size is None:
            return None
        of_all = self.unrepresented + size.low
        return widened(share, self.unrepresented / of_all if of_all else 1.0)

    def _of_all(self, items: Sequence[Item]) -> Estimate | None:
        share = weighted_share(items)
        return None if share is None else widened(share, self.unrepresented)

    def coverage(self) -> dict[str, Estimate]:
        """Return the share of items that have an attribute, by attribute."""
        counts = Counter(name for _, _, observation in self.all for name in observation.names)
        return _without_missing(
            (name, self.share(lambda item, name=name: name in item.names))  # type: ignore[misc]
            for name, _ in counts.most_common(MOST_ATTRIBUTES)
        )

    def shapes(self) -> dict[str, Estimate]:
        """Return the share of items with exactly these attributes, by their names."""
        counts = Counter(observation.names for _, _, observation in self.all)
        return _without_missing(
            (",".join(names), self.share(lambda item, names=names: item.names == names))  # type: ignore[misc]
            for names, _ in counts.most_common(MOST_SHAPES)
        )

    def tags(self) -> tuple[Tag, ...]:
        """Return the tags of partition keys and of sort keys, the most frequent first."""
        holders: defaultdict[str, set[int]] = defaultdict(set)
        prefixes: defaultdict[str, set[str]] = defaultdict(set)
        for at, form, observation in self.all:
            prefixes[form.tag].add(form.prefix)
            for tag in {form.tag, observation.tag} - {""}:
                holders[tag].add(at)
        tags = []
        for tag, collections in holders.items():
            if len(collections) >= FEWEST_ALIKE:
                share = self._of_all(
                    [
                        Item(at, observation.weight, float(tag in (form.tag, observation.tag)))
                        for at, form, observation in self.all
                    ]
                )
                if share is not None:
                    tags.append(
                        Tag(tag, share, *(prefixes[tag] if len(prefixes[tag]) == 1 else ()))
                    )
        return tuple(sorted(tags, key=lambda tag: -tag.share.value)[:MOST_TAGS])

    def type_name(self) -> tuple[str, Estimate | None]:
        """Return the attribute that names the type in the largest number of items, and its share.

        The name is "" without such an attribute.
        """
        counts = Counter(
            name
            for _, _, observation in self.all
            for name in observation.names
            if is_type_name(name)
        )
        name = counts.most_common(1)[0][0] if counts else ""
        return name, self.share(lambda observation: name in observation.names)

    def unpadded(self) -> Estimate | None:
        """Return the share of sort keys that are numbers as text without padding.

        The keys with their tag have several widths, and none of these is padded.
        """
        widths: defaultdict[str, set[int]] = defaultdict(set)
        for _, _, observation in self.all:
            if observation.width:
                widths[observation.tag].add(observation.width)
        uneven = {
            tag for tag, tag_widths in widths.items() if len(tag_widths) > 1 and min(tag_widths) > 0
        }
        return self.share(lambda observation: bool(observation.width) and observation.tag in uneven)

    def ttl(self) -> TtlFacts | None:
        """Return the shares of kinds of TTL values; None if no item has the attribute."""

        def share(holds: Callable[[float | str | None], bool]) -> Estimate | None:
            return self.among(
                lambda observation: observation.ttl is not None,
                lambda observation: holds(observation.ttl),
            )

        expired = share(lambda ttl: isinstance(ttl, float | int) and ttl > EXPIRED_DAYS)
        wrong = share(lambda ttl: ttl == "type")
        milliseconds = share(lambda ttl: ttl == "ms")
        missing = self.share(lambda observation: observation.ttl is None)
        if expired is None or wrong is None or milliseconds is None or missing is None:
            return None
        return TtlFacts(expired, wrong, milliseconds, missing)


def _without_missing(shares: Iterable[tuple[str, Estimate | None]]) -> dict[str, Estimate]:
    return {name: share for name, share in shares if share is not None}
