"""Errors of Python calls name Python arguments. The command names its flags instead."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import keyhop
import pytest
from keyhop.cli.options import with_flags
from keyhop.errors import BudgetSpent, CannotStart

from testing.databases import Database
from testing.servers import ROOT

FLAG = re.compile(r"(?<![\w-])--[a-z]|\bkeyhop (?:keys|index|each|report|runs|shards|rekey)\b")
COMMAND_LINES = re.compile(
    r"(keyhop rekey|(create|cutover|complete|rollback|status|start|verify) --.*"
    r"| --(to|keep-new|adopt|delete-source|export|resume)) ?"
)
"""Texts in `next_step` and `safe` of a RekeyStatus, which are command lines on purpose."""
LIBRARY = ROOT / "lambdas" / "keyhop"


@pytest.fixture(autouse=True)
def in_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the constant texts in a node, without docstrings."""
    docs = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Expr)}
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in docs:
            yield part.value


def texts_of_errors(path: Path) -> Iterator[str]:
    """Yield the constant texts in each Keyhop error that a module creates."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in vars(keyhop.errors):
            yield from texts(node)


def test_no_error_of_the_library_names_a_flag() -> None:
    modules = [path for path in LIBRARY.rglob("*.py") if "cli" not in path.parts]
    errors = [(path.name, text) for path in modules for text in texts_of_errors(path)]
    assert len(errors) > 500
    assert [(name, text) for name, text in errors if FLAG.search(text)] == []


def test_no_other_text_of_the_library_names_a_flag_or_a_command() -> None:
    """Examples are a gate's remedy and a note. Only a report may advise commands."""
    modules = [
        path
        for path in LIBRARY.rglob("*.py")
        if not {"cli", "report", "request.py", "examination.py"} & set(path.parts)
    ]
    named = [
        (path.name, text)
        for path in modules
        for text in texts(ast.parse(path.read_text()))
        if FLAG.search(text) and not COMMAND_LINES.fullmatch(text)
    ]
    assert named == [("refusals.py", " --profile ")], "which is a flag of the AWS CLI"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("give stack= with its name, or queue=.", "give --stack with its name, or --queue."),
        ("leave out output= and resume=: this", "leave out --output and --resume: this"),
        ("give sweep=True: that reads", "give --sweep: that reads"),
        ("with segments=8, not 16", "with --segments 8, not 16"),
        ("endpoint_url=ftp://x is not", "--endpoint-url ftp://x is not"),
        ("after it (window_days=), as", "after it (--window), as"),
        ('give accept="unseen-keeper".', "give --accept unseen-keeper."),
        ("SET kinds= :kinds is no expression", "SET kinds= :kinds is no expression"),
    ],
)
def test_the_command_writes_flags(text: str, expected: str) -> None:
    for command in ("index", "keys", "rekey", "report", "shards"):
        importlib.import_module(f"keyhop.cli.{command}")  # a flag is known when its command is
    assert with_flags(text) == expected


def test_the_same_error_in_python_and_in_the_command(strict: Database, table_name: str) -> None:
    strict.collections(table_name, [1] * 3)
    keyhop.list_keys(table_name, endpoint_url=strict.url, output="keys", segments=4).run()
    Path("keys/manifest.json").unlink()
    with pytest.raises(CannotStart) as caught:
        keyhop.list_keys(
            table_name, endpoint_url=strict.url, output="keys", resume=True, segments=8
        )
    assert "was begun with segments=4, not 8: leave it out." in str(caught.value)
    ended = strict.keys(table_name, "--resume", "keys", "--segments", "8")
    assert "was begun with --segments 4, not 8: leave it out." in ended.err


def test_a_spent_maximum_in_dollars_is_told_in_dollars(
    strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 1000000, "writes": 1000000}')
    strict.collections(table_name, [1, 3, 2] * 60)
    limits = {"max_cost": 20.0, "segments": 60}
    with pytest.raises(BudgetSpent) as caught:
        keyhop.list_keys(table_name, endpoint_url=strict.url, **limits).run()
    assert re.fullmatch(
        r"\$\d+\.\d{6} is spent, and the maximum is \$20: the next page may cost more than the "
        r"remainder\. Begin again with a higher max_cost=\.",
        str(caught.value),
    )
    limits = {"max_cost": 30.0, "max_read_units": 20, "segments": 60}
    with pytest.raises(BudgetSpent, match=r"^Of 20 read units "):
        keyhop.list_keys(table_name, endpoint_url=strict.url, **limits).run()


def test_an_estimate_knows_its_methods(strict: Database, table_name: str) -> None:
    strict.collections(table_name, [2] * 20)
    plan = keyhop.estimate_keys(table_name, endpoint_url=strict.url)
    with pytest.raises(
        CannotStart, match=r"^method must be one of skip, scan, published, not 'index'\.$"
    ):
        plan.dollars("index")


def test_accept_must_not_be_a_text(strict: Database, table_name: str) -> None:
    strict.collections(table_name, [2] * 20)
    by_index = {"method": "index", "accept": "stale-index"}
    with pytest.raises(
        CannotStart, match=r"^accept must be a list of texts: give \['stale-index'\]"
    ):
        keyhop.list_keys(table_name, endpoint_url=strict.url, **by_index)  # type: ignore[arg-type]
    with pytest.raises(CannotStart, match=r"give \['throttled'\]"):
        keyhop.examine(table_name, endpoint_url=strict.url, accept="throttled")
    with pytest.raises(CannotStart, match=r"give \['plain-keys'\]"):
        keyhop.ShardedTable(table_name, metadata="m", accept="plain-keys")


def test_a_dry_run_cannot_be_undone(strict: Database, table_name: str) -> None:
    strict.collections(table_name, [2] * 20)
    put = {"sk": "#feature"}
    plan = keyhop.for_each_key(table_name, endpoint_url=strict.url, put=put, dry_run=True)
    with pytest.raises(CannotStart, match="A dry run has no output, so it cannot be undone"):
        keyhop.for_each_key(table_name, endpoint_url=strict.url, undo=plan.output)
