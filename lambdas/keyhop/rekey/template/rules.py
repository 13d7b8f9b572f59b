"""The Transform of a template's rules, and the proof that nothing is lost by them. Pure.

Both directions are checked on each item, which is Unmappable if it is not equal after the way back.
So the mappable items of one side and their forms on the other are one to one, whatever a rule says.

The proof shows that the source's key and all lost attributes can be reconstructed, and from where.
Each name (a variable, or an attribute that is the source's key or is overwritten) is searched in
this order: in the destination's key, in kept attributes, in other attributes that the rule sets,
and in attributes that `match` takes apart and that the destination item has unchanged.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

from keyhop.dynamodb.values import Item, Key, TypedValue, same
from keyhop.rekey.transform import KeyNames, Kind, Transform, check_key, possible_key
from keyhop.template import Compiled, Run, Scope, Unmappable


@dataclass(frozen=True, slots=True)
class Step:
    """A search in an attribute of a destination item for names of the source, each with its
    position and the function that makes its value. A sign shows whether the rule has made the item.
    """

    attribute: str
    split: Callable[[TypedValue], Sequence[Any] | None]
    finds: Sequence[tuple[int, str, Callable[[Any], TypedValue]]]
    is_sign: bool


@dataclass(frozen=True, slots=True)
class WrittenRule:
    """A rule as it is written, with its templates compiled.

    Attributes:
        match: The texts of the source's key, and of other attributes; `sets`: of the destination.
        keep: The names in the destination by the names in the source.
    """

    name: str
    source: KeyNames
    destination: KeyNames
    match: Mapping[str, Compiled]
    sets: Mapping[str, Compiled]
    keep: Mapping[str, str]

    @property
    def travels(self) -> Mapping[str, Compiled]:
        """Return attributes of `match` that the destination item has unchanged."""
        removed = {*self.source.all, *self.sets, *self.keep.values()}
        return {name: text for name, text in self.match.items() if name not in removed}

    @property
    def outputs(self) -> Mapping[str, Compiled]:
        """Return attributes of a destination item with a known form, with its key first."""
        keys = {name: self.sets[name] for name in self.destination.all}
        return {**keys, **self.sets, **self.travels}


@dataclass(frozen=True, slots=True)
class Rule(WrittenRule):
    """A rule whose loss can be reconstructed: with the steps that find the source's key, and the
    other steps.

    The destination item has all attributes of the source item but its key and those that are set.

    Attributes:
        refill: Attributes of the source that are rendered from the values of the steps.
        dropped: Attributes of a destination item that the source item does not have unchanged.
        owner_attributes: As Transform has them; `reverse_owner_attributes`: of its reverse.
    """

    owner_steps: Sequence[Step]
    steps: Sequence[Step]
    refill: Mapping[str, Callable[[Scope], TypedValue]]
    dropped: frozenset[str]
    owner_attributes: Sequence[str]
    reverse_owner_attributes: Sequence[str]

    def bind(self, item: Item) -> Scope | None:
        """Return the item and its variables; None if the rule does not match it."""
        bound: dict[str, TypedValue] = {}
        for name, text in self.match.items():
            value = item.get(name)
            parts = None if value is None else text.split(value)
            if parts is None:
                return None
            for field, part in zip(text.fields, parts, strict=True):
                assert field.undo is not None  # checked when the rule was loaded
                original = field.undo(part)
                if bound.setdefault(field.field.name, original) != original:
                    return None
        return {**item, **bound}

    @property
    def key_attributes(self) -> Mapping[str, Sequence[str]] | None:
        """See Transform. A constant in the new key is left out."""
        variables = {
            part.field.name
            for name, text in self.match.items()
            for part in text.fields
            if (len(text.fields), part.field.name) != (1, name) or not part.is_whole
        }
        parts = {name: self.sets[name].fields for name in self.destination.all}
        for part in chain.from_iterable(parts.values()):
            if not part.is_whole or part.field.name in variables:
                return None
        return {name: [part.field.name for part in fields] for name, fields in parts.items()}

    def to_destination(self, item: Item, scope: Scope) -> dict[str, TypedValue]:
        """Return the destination item, or raise Unmappable."""
        try:
            set_attributes = {name: text.render(scope) for name, text in self.sets.items()}
            check_key(self.destination, set_attributes)
        except Unmappable as error:
            raise Unmappable(f"rule {self.name!r}: {error}") from None
        mapped = dict(item)
        for name in self.source.all:
            del mapped[name]
        for name, kept_name in self.keep.items():
            if name in item:
                mapped[kept_name] = item[name]
        mapped.update(set_attributes)
        return mapped

    def place(self, scope: Scope) -> Key:
        """Return only the destination's key, or raise Unmappable."""
        place = {name: self.sets[name].render(scope) for name in self.destination.all}
        check_key(self.destination, place)
        return place

    def to_source(self, item: Item) -> dict[str, TypedValue] | None:
        """Return the source item of an item that the rule has made, or None for another item. Raise
        Unmappable if an attribute is missing or has another form.
        """
        values = self._found(item, self.owner_steps)
        if values is None:
            return None
        if self.steps:
            values.update(self._found(item, self.steps) or {})
        source_item = dict(item)
        for name in self.dropped:
            source_item.pop(name, None)
        self._unkeep(item, source_item)
        for name, render in self.refill.items():
            source_item[name] = render(values)
        return source_item

    def owner(self, item: Item) -> Key | None:
        """Return only the source's key; None if the rule has not made the item. Raise Unmappable if
        the source cannot have this key.
        """
        values = self._found(item, self.owner_steps)
        if values is None:
            return None
        source_key: dict[str, TypedValue] = {}
        self._unkeep(item, source_key)
        for name in self.source.all:
            if name in self.refill:
                source_key[name] = self.refill[name](values)
        types = {name: self.match[name].type for name in self.source.all}
        return possible_key(self.source, types, source_key)

    def _found(self, item: Item, steps: Sequence[Step]) -> dict[str, TypedValue] | None:
        values: dict[str, TypedValue] = {}
        for step in steps:
            value = item.get(step.attribute)
            parts = None if value is None else step.split(value)
            if parts is None:
                if step.is_sign:
                    return None
                raise Unmappable(
                    f"rule {self.name!r}: {step.attribute!r} is not as the rule sets it"
                )
            for place, name, undo in step.finds:
                values[name] = undo(parts[place])
        return values

    def _unkeep(self, item: Item, restored: dict[str, TypedValue]) -> None:
        for name, kept_name in self.keep.items():
            if kept_name in item:
                restored[name] = item[kept_name]
            elif name in self.source.all and name not in self.refill:
                raise Unmappable(f"rule {self.name!r}: {kept_name!r} is missing; it keeps {name!r}")


class Rules(Transform):
    """A transform by rules; `otherwise` says what happens to an item that no rule matches, and
    `reverse_attributes` identify, beside its key, a source item's place.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        otherwise: str,
        source: KeyNames,
        destination: KeyNames,
        owner_attributes: Sequence[str],
        reverse_attributes: Sequence[str],
    ) -> None:
        self.source, self.destination = source, destination
        self.owner_attributes = owner_attributes
        self.kind: Kind = "recoverable" if owner_attributes else "bijective"
        self._rules = rules
        self._otherwise = otherwise
        self._reverse = Reversed(self, reverse_attributes, self.place_told)

    @property
    def reverse(self) -> Transform:
        return self._reverse

    @property
    def key_attributes(self) -> Mapping[str, Sequence[str]] | None:
        first, *rest = self._rules
        is_one_form = all(
            rule.key_attributes == first.key_attributes
            and all(
                (rule.sets[n].type, rule.sets[n].runs) == (first.sets[n].type, first.sets[n].runs)
                for n in self.destination.all
            )
            for rule in rest
        )
        return first.key_attributes if is_one_form and self._otherwise != "copy" else None

    def forward(self, item: Item) -> Item | None:
        mapped = self._there(item)
        if mapped is not None:
            back = self._here(mapped)
            if back != item:
                check_equal(item, back, "would not come back as they are: keep them")
        return mapped

    def back(self, item: Item) -> Item | None:
        returned = self._here(item)
        if returned is not None:
            check_key(self.source, returned)
            mapped = self._there(returned)
            if mapped != item:
                check_equal(item, mapped, "are not as the template makes them")
        return returned

    def owner_of(self, item: Item) -> Key | None:
        """Return the owner by the key and owner_attributes, whatever else has changed."""
        try:
            for rule in self._rules:
                owner = rule.owner(item)
                if owner is not None:
                    return owner
        except Unmappable:
            return None
        return self.source.of(item) if self._otherwise == "copy" else None

    def place_told(self, item: Item) -> Key | None:
        """Return the place of a source item by its key and the reverse's owner_attributes alone."""
        try:
            for rule in self._rules:
                scope = rule.bind(item)
                if scope is not None:
                    return rule.place(scope)
        except Unmappable:
            return None
        return self.destination.of(item) if self._otherwise == "copy" else None

    def _there(self, item: Item) -> Item | None:
        for rule in self._rules:
            scope = rule.bind(item)
            if scope is not None:
                return rule.to_destination(item, scope)
        if self._otherwise == "refuse":
            raise Unmappable("no rule of the template matches it")
        return item if self._otherwise == "copy" else None

    def _here(self, item: Item) -> Item | None:
        for rule in self._rules:
            source_item = rule.to_source(item)
            if source_item is not None:
                return source_item
        if self._otherwise == "refuse":
            raise Unmappable("no rule of the template makes such an item")
        return item if self._otherwise == "copy" else None


class Reversed(Transform):
    """The other direction of a transform. `owner_attributes` identify the owner, beside its key;
    `place_told` returns the place of an item from its key and them alone.
    """

    def __init__(
        self,
        transform: Transform,
        owner_attributes: Sequence[str],
        place_told: Callable[[Item], Key | None],
    ) -> None:
        self.source, self.destination = transform.destination, transform.source
        self.owner_attributes = owner_attributes
        self.kind: Kind = "recoverable" if owner_attributes else "bijective"
        self._of, self._place_told = transform, place_told

    def forward(self, item: Item) -> Item | None:
        return self._of.back(item)

    def back(self, item: Item) -> Item | None:
        return self._of.forward(item)

    def owner_of(self, item: Item) -> Key | None:
        return self._place_told(item)

    @property
    def reverse(self) -> Transform:
        return self._of


def check_equal(item: Item, expected: Item | None, trouble: str) -> None:
    """Raise Unmappable with the names of the attributes that differ."""
    expected = expected or {}
    names = [*item, *(name for name in expected if name not in item)]
    differ = [
        n for n in names if n not in item or n not in expected or not same(item[n], expected[n])
    ]
    if differ:
        raise Unmappable(f"the attributes {', '.join(map(repr, sorted(differ)))} {trouble}")


def proved(rules: Sequence[WrittenRule]) -> list[Rule]:
    """Prove all rules; raise ValueError with a sentence if they overlap or cannot be undone."""
    signs: dict[str, set[str]] = {rule.name: set() for rule in rules}
    for first, second in combinations(rules, 2):
        if not _excluding(first.match, second.match):
            raise ValueError(
                f"The rules {first.name!r} and {second.name!r} overlap: an item may match both; "
                "match an attribute in which they differ, or say which character separates "
                "fields, as separator: '#'."
            )
        if _excluding(_keys_of(first), _keys_of(second)):
            continue
        telling = _excluding(first.outputs, second.outputs)
        if not telling:
            raise ValueError(
                f"What the rules {first.name!r} and {second.name!r} make cannot be distinguished: "
                "let their keys begin differently, or set an attribute to another text in each."
            )
        signs[first.name].add(telling)
        signs[second.name].add(telling)
    return [_Proof(rule).proved(sorted(signs[rule.name])) for rule in rules]


def _keys_of(rule: WrittenRule) -> dict[str, Compiled]:
    return {name: rule.sets[name] for name in rule.destination.all}


def _excluding(first: Mapping[str, Compiled], second: Mapping[str, Compiled]) -> str | None:
    """Return an attribute that cannot have the same value in both."""
    both = (name for name in first if name in second)
    return next((name for name in both if _exclude(first[name], second[name])), None)


def _exclude(first: Compiled, second: Compiled) -> bool:
    """Return whether certainly no value has both forms."""
    if first.type is None or second.type is None:
        return False
    if first.type != second.type:
        return True
    if first.runs is not None and second.runs is not None:
        return not _meet(first.runs, second.runs)
    if first.constant is not None and second.constant is not None:
        return bool(first.constant != second.constant)
    return False


def _meet(first: Sequence[Run], second: Sequence[Run]) -> bool:
    """Return whether a text with both forms exists, by a parallel walk through both."""
    ours, theirs = _single_characters(first), _single_characters(second)
    open_, visited = [(0, 0)], {(0, 0)}
    while open_:
        i, j = open_.pop()
        if i == len(ours) and j == len(theirs):
            return True
        for place in _next_places(ours, theirs, i, j):
            if place not in visited:
                visited.add(place)
                open_.append(place)
    return False


def _next_places(
    ours: list[tuple[Run, bool]], theirs: list[tuple[Run, bool]], i: int, j: int
) -> Iterable[tuple[int, int]]:
    """Yield the next steps. An optional part can be skipped, and a repeated one can match again."""
    if i < len(ours) and ours[i][1]:
        yield i + 1, j
    if j < len(theirs) and theirs[j][1]:
        yield i, j + 1
    if i < len(ours) and j < len(theirs) and ours[i][0].meets(theirs[j][0]):
        for next_i in {i + 1, i} if ours[i][1] else {i + 1}:
            for next_j in {j + 1, j} if theirs[j][1] else {j + 1}:
                yield next_i, next_j


def _single_characters(runs: Sequence[Run]) -> list[tuple[Run, bool]]:
    """Return a part for each required character, and one with True for optional ones, whose number
    is ignored, so more forms may meet than really do.
    """
    parts: list[tuple[Run, bool]] = []
    for run in runs:
        parts += [(run, False)] * run.least
        parts += [] if run.is_fixed else [(run, True)]
    return parts


Find = tuple[str, int, Callable[[Any], TypedValue]]
"""The attribute, the position of the field in it, and the function that makes its value."""


class _Proof:
    """The proof of one rule."""

    def __init__(self, rule: WrittenRule) -> None:
        self.rule = rule
        self.of_keys: dict[str, Find] = {}
        self.of_all: dict[str, Find] = {}
        for attribute, text in rule.outputs.items():
            for place, field in enumerate(text.fields):
                if field.undo is not None and len(field.field.path) == 1:
                    find = attribute, place, field.undo
                    self.of_all.setdefault(field.field.name, find)
                    if attribute in rule.destination.all:
                        self.of_keys.setdefault(field.field.name, find)

    def proved(self, signs: Sequence[str]) -> Rule:
        rule, refill = self.rule, {}
        owner_names: list[str] = []
        for name in rule.source.all:
            names = _names(rule.match[name])
            if name in self.of_keys:
                names, refill[name] = [name], itself(name)
            elif all(variable in self.of_keys for variable in names) or name not in rule.keep:
                self._demand(name, names)
                refill[name] = rule.match[name].render
            else:
                continue
            owner_names += names
        other_names: list[str] = []
        bound = _bound(rule)
        for name in self._overwritten():
            if name in rule.keep:
                continue
            if name in rule.match:
                names = _names(rule.match[name])
                self._demand(name, names)
                refill[name] = rule.match[name].render
                other_names += names
            elif name in self.of_all and name not in bound:
                refill[name] = itself(name)
                other_names.append(name)
        kept_names = [rule.keep[name] for name in rule.source.all if name not in refill]
        owner_steps = self._steps(owner_names, [*rule.destination.all, *signs])
        used = [step.attribute for step in owner_steps] + kept_names
        own_attributes = {*rule.destination.all, *rule.sets, *rule.keep.values()}
        return Rule(
            rule.name,
            rule.source,
            rule.destination,
            rule.match,
            rule.sets,
            rule.keep,
            owner_steps,
            self._steps([name for name in other_names if name not in owner_names], ()),
            refill,
            frozenset(own_attributes),
            _beside(used, rule.destination),
            self._reverse(),
        )

    def _reverse(self) -> Sequence[str]:
        """Return the source attributes, beside its key, that determine the destination's key."""
        rule = self.rule
        bound = _bound(rule)
        roots = [f.field.name for text in _keys_of(rule).values() for f in text.fields]
        return _beside([*rule.match, *(name for name in roots if name not in bound)], rule.source)

    def _overwritten(self) -> Iterator[str]:
        """Return attributes that the rule sets, and that a source item may have beside its key."""
        return (name for name in self.rule.sets if name not in self.rule.source.all)

    def _demand(self, attribute: str, names: Sequence[str]) -> None:
        lost = [name for name in names if name not in self.of_all]
        if lost:
            example = f"old{attribute[:1].upper()}{attribute[1:]}"
            what = " and ".join(map(repr, lost))
            what += "" if lost == [attribute] else f" of {attribute!r}"
            raise ValueError(
                f"Rule {self.rule.name!r} loses {what}, so that an item would not "
                f"show its source: add keep: {{{attribute}: {example}}}."
            )

    def _steps(self, names: Sequence[str], signs: Sequence[str]) -> list[Step]:
        finds: dict[str, list[tuple[int, str, Callable[[Any], TypedValue]]]] = {}
        for attribute in signs:
            finds[attribute] = []
        for name in dict.fromkeys(names):
            attribute, place, undo = self.of_keys.get(name) or self.of_all[name]
            finds.setdefault(attribute, []).append((place, name, undo))
        texts = self.rule.outputs
        return [Step(name, texts[name].split, f, name in signs) for name, f in finds.items()]


def itself(name: str) -> Callable[[Mapping[str, TypedValue]], TypedValue]:
    """Return a function that renders an attribute that was found as a whole."""
    return lambda values: values[name]


def _bound(rule: WrittenRule) -> set[str]:
    return {name for text in rule.match.values() for name in _names(text)}


def _names(text: Compiled) -> list[str]:
    return [field.field.name for field in text.fields]


def _beside(names: Sequence[str], keys: KeyNames) -> Sequence[str]:
    return tuple(name for name in dict.fromkeys(names) if name not in keys.all)
