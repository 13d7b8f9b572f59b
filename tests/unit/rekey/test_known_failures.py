"""rekey-protocol.md: the tests and mutants that detect failures of other tools exist."""

import ast
import re

import pytest

from testing.rekey_mutants import MUTANTS
from testing.servers import ROOT

PAGE = (ROOT / "docs" / "internals" / "rekey-protocol.md").read_text()
SECTION = PAGE.partition("## What other tools lose")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| (.+) \| (.+) \| (`.+) \|$", SECTION, re.MULTILINE)


def test_each_row_of_the_table_is_read() -> None:
    lines = [line for line in SECTION.splitlines() if line.startswith("|")]
    assert len(ROWS) == len(lines) - 2 > 20


@pytest.mark.parametrize(("tool", "failure", "names"), ROWS, ids=[row[1] for row in ROWS])
def test_each_failure_is_detected(tool: str, failure: str, names: str) -> None:
    named = re.findall(r"`([^`]+)`", names)
    assert named
    for name in named:
        path, separator, test = name.partition("::")
        if not separator:
            assert name in MUTANTS
            continue
        tree = ast.parse((ROOT / "tests" / path).read_text())
        assert test in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
