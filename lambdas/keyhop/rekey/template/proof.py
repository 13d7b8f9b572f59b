"""Prove that the source's key and all lost attributes can be reconstructed, and from where. Pure.

Each name (a variable, or an attribute that is the source's key or is overwritten) is searched in
this order: in the destination's key, in kept attributes, in other attributes that the rule sets,
and in attributes that `match` takes apart and that the destination item has unchanged.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from keyhop.dynamodb.values import TypedValue
from keyhop.rekey.template.rules import Rule, Step
from keyhop.rekey.template.text import Compiled
from keyhop.rekey.transform import KeyNames


@dataclass(frozen=True, slots=True)
class Parts:
    """A rule as it is written, compiled; fields as in Rule."""

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
    def made(self) -> Mapping[str, Compiled]:
        """Return attributes of a destination item with a known form, with its key first."""
        keys = {name: self.sets[name] for name in self.destination.all}
        return {**keys, **self.sets, **self.travels}


@dataclass(frozen=True, slots=True)
class Proved:
    """A rule whose loss can be reconstructed, with the owner attributes of both directions."""

    rule: Rule
    owner_attributes: Sequence[str]
    reverse_owner_attributes: Sequence[str]


def proved(rules: Sequence[Parts]) -> list[Proved]:
    """Prove all rules; raise ValueError with a sentence if they overlap or cannot be undone."""
    signs: dict[str, set[str]] = {rule.name: set() for rule in rules}
    for first, second in combinations(rules, 2):
        if not _excluding(first.match, second.match):
            raise ValueError(
                f"The rules {first.name!r} and {second.name!r} overlap: an item may match both; "
                "match an attribute that tells them apart, or say which character separates "
                "fields, as separator: '#'."
            )
        if _excluding(_keys_of(first), _keys_of(second)):
            continue
        telling = _excluding(first.made, second.made)
        if not telling:
            raise ValueError(
                f"What the rules {first.name!r} and {second.name!r} make cannot be told apart: let "
                "their keys begin differently, or set an attribute to another text in each."
            )
        signs[first.name].add(telling)
        signs[second.name].add(telling)
    return [_Proof(rule).proved(sorted(signs[rule.name])) for rule in rules]


def _keys_of(rule: Parts) -> dict[str, Compiled]:
    return {name: rule.sets[name] for name in rule.destination.all}


def _excluding(first: Mapping[str, Compiled], second: Mapping[str, Compiled]) -> str | None:
    """Return an attribute that cannot have the same value in both."""
    both = (name for name in first if name in second)
    return next((name for name in both if first[name].look.excludes(second[name].look)), None)


Find = tuple[str, int, Callable[[Any], TypedValue]]
"""The attribute, the position of the field in it, and the function that makes its value."""


class _Proof:
    """The proof of one rule."""

    def __init__(self, rule: Parts) -> None:
        self.rule = rule
        self.of_keys: dict[str, Find] = {}
        self.of_all: dict[str, Find] = {}
        for attribute, text in rule.made.items():
            for place, field in enumerate(text.fields):
                if field.undo is not None and len(field.field.path) == 1:
                    find = attribute, place, field.undo
                    self.of_all.setdefault(field.field.name, find)
                    if attribute in rule.destination.all:
                        self.of_keys.setdefault(field.field.name, find)

    def proved(self, signs: Sequence[str]) -> Proved:
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
        compiled = Rule(
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
        )
        return Proved(compiled, _beside(used, rule.destination), self._reverse())

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
                f"Rule {self.rule.name!r} loses {what}, so that nobody could tell "
                f"where an item comes from: add keep: {{{attribute}: {example}}}."
            )

    def _steps(self, names: Sequence[str], signs: Sequence[str]) -> list[Step]:
        finds: dict[str, list[tuple[int, str, Callable[[Any], TypedValue]]]] = {}
        for attribute in signs:
            finds[attribute] = []
        for name in dict.fromkeys(names):
            attribute, place, undo = self.of_keys.get(name) or self.of_all[name]
            finds.setdefault(attribute, []).append((place, name, undo))
        texts = self.rule.made
        return [Step(name, texts[name].split, f, name in signs) for name, f in finds.items()]


def itself(name: str) -> Callable[[Mapping[str, TypedValue]], TypedValue]:
    """Return a function that renders an attribute that was found as a whole."""
    return lambda values: values[name]


def _bound(rule: Parts) -> set[str]:
    return {name for text in rule.match.values() for name in _names(text)}


def _names(text: Compiled) -> list[str]:
    return [field.field.name for field in text.fields]


def _beside(names: Sequence[str], keys: KeyNames) -> Sequence[str]:
    return tuple(name for name in dict.fromkeys(names) if name not in keys.all)
