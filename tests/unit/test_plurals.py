"""Check that a count of one has a singular: "1 key", and never "1 keys"."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from keyhop.wording import counted

from testing.servers import ROOT

NEVER_ONE = {
    ("len(gates)", "gates"),  # a change has nine
    ("len(kinds)", "kinds"),  # a rule that speaks of kinds has found two
    ("len(kinds or ())", "kinds"),
    ("len(tags)", "kinds"),
    ("len(readers.during_cutover)", "processes"),  # more than two
    ("len(attributes)", "attributes"),  # too many
    ("len(deflated)", "bytes"),  # too many
    ("len(code)", "characters"),  # too many
    ("size", "bytes"),  # too many
    ("template.constant_bytes", "bytes"),  # too many
    ("first.most_units", "writes"),  # a thousand for each part of a key
    ("fill['write_rate']", "writes"),
    ("report['surplus']", "surplus"),  # no plural
    ("evidence.longest_lag_seconds / 3600", "hours"),  # twenty
}
"""Counts that are always more than one, with the word that follows."""

FOLLOWS = re.compile(r" ([a-z]+s)\b")
ONE = re.compile(r"(?<![\d.,:/-])1 (?!s\b|was|is|has|times|class|across|bus)([a-z]+s)\b")


def test_a_count_of_one_is_singular() -> None:
    texts = [counted(n, "key") for n in (0, 1, 2, 1_234)]
    assert texts == ["0 keys", "1 key", "2 keys", "1,234 keys"]
    assert [counted(n, "second") for n in (0.9, 1.2, 1.6)] == ["1 second", "1 second", "2 seconds"]
    assert [counted(n, "query", "queries") for n in (1, 2)] == ["1 query", "2 queries"]


def counts_with_plurals(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the whole numbers that a module writes into texts, with the plural after each."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            if not (isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)):
                continue
            expression = ast.unparse(value.value)
            form = ast.unparse(value.format_spec) if value.format_spec else ""
            is_whole = expression.startswith("len(") or re.search(r"(,|d|\.0f)'$", form)
            match = FOLLOWS.match(str(after.value))
            if match and is_whole and not expression.isupper():
                yield expression, match[1]


@pytest.mark.parametrize("folder", ["lambdas", "infra"])
def test_whole_numbers_before_plurals_are_counted(folder: str) -> None:
    """Otherwise one of them will be 1 sooner or later."""
    assert not {
        (str(path.relative_to(ROOT)), *count)
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "wording.py"
        for count in counts_with_plurals(path)
        if count not in NEVER_ONE
    }


@pytest.mark.parametrize("path", sorted((ROOT / "tests/golden/files/runs").glob("*.json")))
def test_no_recorded_output_has_a_plural_after_one(path: Path) -> None:
    assert not ONE.findall(json.dumps(json.loads(path.read_text())))
