"""Tests of the lines that the code reader reports, and of those that it must not report."""

import string
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keyhop.errors import CannotStart
from keyhop.report.facts import CodeLine
from keyhop.report.sources.code import lines_of, read_code, read_directory

BEGIN = """\
import os
import boto3

dynamodb = boto3.resource("dynamodb")
table = dynamodb.Table("Orders")
client = boto3.client("dynamodb")
"""
FIRST = BEGIN.count("\n") + 1


def read_lines(code: str, begin: str = BEGIN) -> list[CodeLine]:
    (lines, _) = lines_of("app.py", begin + dedent(code)) or pytest.fail("not parsed")
    return lines


def kinds(code: str, begin: str = BEGIN) -> list[tuple[str, int, str]]:
    """Return the kind, the line after the beginning and the table of each reported line."""
    first = begin.count("\n")
    return [(row.kind, row.line - first, row.table) for row in read_lines(code, begin)]


@pytest.mark.parametrize(
    ("code", "line", "table"),
    [
        ("table.scan()", 1, "Orders"),
        ("x = table.scan(Limit=5)['Items']", 1, "Orders"),
        ("client.scan(TableName='Users')", 1, "Users"),
        ("NAME = 'Users'\nclient.scan(TableName=NAME)", 2, "Users"),
        ("client.scan(TableName=os.environ['TABLE'])", 1, ""),
        ("dynamodb.Table(os.environ['TABLE']).scan()", 1, ""),
        ("boto3.resource('dynamodb').Table('Users').scan()", 1, "Users"),
        (
            "session = boto3.Session()\nd = session.resource('dynamodb')\nd.Table('U').scan()",
            3,
            "U",
        ),
        ("client.get_paginator('scan').paginate(TableName='Users')", 1, "Users"),
        (
            "p = client.get_paginator('scan')\nfor x in p.paginate(TableName='Users'): pass",
            1,
            "Users",
        ),
        ("def f(table):\n    return table.scan()", 2, ""),
        ("def f(users_table: 'Table'):\n    return users_table.scan()", 2, ""),
        ("(\n  table\n  .scan(\n))", 3, "Orders"),
        ("pages(table.scan, Limit=5)", 1, "Orders"),
        ("client.execute_statement(Statement='SELECT * FROM \"Users\"')", 1, "Users"),
        (
            "class Repo:\n    def __init__(self):\n        self.t = dynamodb.Table('Users')\n"
            "    def all(self):\n        return self.t.scan()",
            5,
            "Users",
        ),
        ("t = None\ndef f():\n    global t\n    t = dynamodb.Table('U')\n    t.scan()", 5, "U"),
        ("def get():\n    return dynamodb.Table('U')\nget().scan()", 3, "U"),
        ("args = {'TableName': 'Users'}\nclient.scan(**args)", 2, "Users"),
        ("args = {}\nargs['TableName'] = 'Users'\nclient.scan(**args)", 3, "Users"),
        ("async def f():\n    await client.scan(TableName='Users')", 2, "Users"),
    ],
)
def test_a_scan_is_reported_with_its_line_and_table(code: str, line: int, table: str):
    assert kinds(code) == [("scan", line, table)]


@pytest.mark.parametrize(
    "code",
    [
        "table.query(KeyConditionExpression='a = :a')",
        "import redis\nr = redis.Redis()\nr.scan(0, count=5)\nr.scan(cursor=0)",
        "scanner.scan()",
        "s3 = boto3.client('s3')\ns3.scan()",
        "hbase_table.scan(row_prefix=b'a')",
        "'table.scan()'",
        "# table.scan()",
        "client.get_paginator('query').paginate(TableName='Users')",
        "client.get_paginator('list_tables')",
    ],
)
def test_code_that_only_looks_like_a_scan_is_not_reported(code: str):
    assert kinds(code) == []


def test_a_scan_in_a_file_without_dynamodb_is_not_reported():
    assert kinds("table = catalog.load_table('x')\ntable.scan()", begin="") == []


@pytest.mark.parametrize(
    ("code", "line", "table", "attribute"),
    [
        (
            "table.query(KeyConditionExpression=k, FilterExpression=Attr('status').eq('x'))",
            1,
            "Orders",
            "status",
        ),
        (
            "client.query(TableName='Users',"
            "FilterExpression='#a = :a and b.c[0] between :b and :c and size(d) > :d',\n"
            "    ExpressionAttributeNames={'#a': 'age'})",
            1,
            "Users",
            "age,b,d",
        ),
        ("args = {'FilterExpression': 'a.b = :a'}\ntable.query(**args)", 1, "Orders", "a"),
        (
            "args = {}\nargs['FilterExpression'] = Attr('a').eq(1)\ntable.query(**args)",
            2,
            "Orders",
            "a",
        ),
        ("args['FilterExpression'] = Attr('a').eq(1)", 1, "", "a"),
        ("p.paginate(TableName='Users', FilterExpression='a = :a')", 1, "Users", "a"),
        ("table.query(QueryFilter={'a': {'AttributeValueList': [1]}})", 1, "Orders", "a"),
    ],
)
def test_a_filter_is_reported_with_its_line_table_and_attributes(
    code: str, line: int, table: str, attribute: str
):
    (row,) = [row for row in read_lines(code) if row.kind == "filter"]
    assert (row.line - FIRST + 1, row.table, row.attribute) == (line, table, attribute)


WRITE = "client.batch_write_item(RequestItems={'Users': rows})"
READ = "client.batch_get_item(RequestItems={'Users': {'Keys': keys}})"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (WRITE, 1),
        (f"r = {WRITE}", 1),
        (f"def f():\n    r = {WRITE}\n    log(r2)", 2),
        (f"r = {READ}\nx = r['Responses']['Users']", 1),
        (f"x = {READ}['Responses']", 1),
        (f"x = {READ}.get('Responses')", 1),
        (f"r = {WRITE}\nr['ConsumedCapacity']", 1),
        (f"async def f():\n    await {WRITE}", 2),
        ("dynamodb.batch_write_item(RequestItems={'Users': rows})", 1),
        ("args = {'RequestItems': {'Users': rows}}\nclient.batch_write_item(**args)", 2),
    ],
)
def test_unprocessed_items_that_are_never_read_are_reported(code: str, line: int):
    assert kinds(code) == [("unprocessed", line, "Users")]


@pytest.mark.parametrize(
    "code",
    [
        f"r = {WRITE}\nwhile r['UnprocessedItems']: pass",
        f"r = {WRITE}\nrest = r.get('UnprocessedItems', {{}})",
        f"if {WRITE}['UnprocessedItems']: raise Rest",
        f"while (r := {WRITE})['UnprocessedItems']: pass",
        f"r = {WRITE}\nassert not r.get('UnprocessedItems')",
        f"r = {WRITE}\nif 'UnprocessedItems' in r: pass",
        f"r = {READ}\nx, y = r['Responses'], r['UnprocessedKeys']",
        "with table.batch_writer() as batch:\n    batch.put_item(Item=x)",
        "self.batch_write_item(rows)",
    ],
)
def test_unprocessed_items_that_are_read_are_not_reported(code: str):
    assert kinds(code) == []


@pytest.mark.parametrize(
    "code",
    [
        f"def f():\n    return {WRITE}",
        f"f = lambda: {WRITE}",
        f"retry({WRITE})",
        f"r = {WRITE}\nretry(r)",
        f"self.r = {WRITE}",
        f"def f():\n    r = {WRITE}\n    return r",
        f"r, s = {WRITE}, 1",
        f"def f():\n    global r\n    r = {WRITE}",
    ],
)
def test_a_batch_whose_response_is_passed_on_is_undecided(code: str):
    assert [kind for kind, _, _ in kinds(code)] == ["batch_write"]


@pytest.mark.parametrize(
    ("code", "attribute"),
    [
        ("table.update_item(Key=k, UpdateExpression='SET status = :s')", "status"),
        (
            "table.update_item(Key=k, UpdateExpression='SET a = :a, #s = :s REMOVE b',\n"
            "    ExpressionAttributeNames={'#s': 'orderStatus'})",
            "orderStatus",
        ),
        ("table.update_item(Key=k, UpdateExpression=f'SET job_state = {x}')", "job_state"),
        ("table.update_item(Key=k, AttributeUpdates={'state': {'Value': 'x'}})", "state"),
        (
            "client.update_item(TableName='Orders', Key=k, UpdateExpression='set #status = :s')",
            "status",
        ),
    ],
)
def test_a_status_that_is_set_without_a_condition_is_reported(code: str, attribute: str):
    (row,) = read_lines(code)
    assert (row.kind, row.line, row.table, row.attribute) == ("status", FIRST, "Orders", attribute)


def test_a_status_that_a_transaction_sets_without_a_condition_is_reported():
    update = "{'Update': {'TableName': 'Users', 'Key': k, 'UpdateExpression': 'SET status = :s'}}"
    assert kinds(f"client.transact_write_items(TransactItems=[{update}, {{'Put': {{}}}}])") == [
        ("status", 1, "Users")
    ]


PUT = "{'Put': {'TableName': 'Users', 'Item': item}}"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (f"client.transact_write_items(TransactItems=[{PUT}])", 1),
        ("client.transact_get_items(TransactItems=[{'Get': {'TableName': 'Users'}}])", 1),
        (f"parts = [{PUT}]\nclient.transact_write_items(TransactItems=parts)", 2),
        (f"request = {{'TransactItems': [{PUT}]}}\nclient.transact_write_items(**request)", 2),
    ],
)
def test_a_transaction_of_one_item_is_reported(code: str, line: int):
    assert kinds(code) == [("transaction", line, "Users")]


@pytest.mark.parametrize(
    "code",
    [
        f"client.transact_write_items(TransactItems=[{PUT}, {PUT}])",
        f"client.transact_write_items(TransactItems=[{PUT}, *more])",
        f"client.transact_write_items(TransactItems=[{PUT}] + more)",
        f"client.transact_write_items(TransactItems=[{PUT} for item in items])",
        f"parts = [{PUT}]\nparts.append(more)\nclient.transact_write_items(TransactItems=parts)",
        f"parts = [{PUT}]\nparts += more\nclient.transact_write_items(TransactItems=parts)",
        f"client.transact_write_items(TransactItems=[{PUT}], ClientRequestToken=token)",
        "client.transact_write_items(TransactItems=parts)",
    ],
)
def test_a_transaction_that_may_have_several_items_or_has_a_token_is_not_reported(code: str):
    assert kinds(code) == []


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("Attr('state').eq('open')", "filter"),
        ("Attr('state').eq('open') & Attr('deleted').ne(True)", "filter"),
        ("Attr('deleted').ne(True)", "exclusion"),
        ("Attr('deleted').not_exists() | Attr('hidden').eq(False)", "exclusion"),
        ("'state = :open'", "filter"),
        ("'deleted <> :yes AND attribute_not_exists(#hidden)'", "exclusion"),
        ("'NOT contains(tags, :hidden)'", "exclusion"),
        ("'hidden = :no'", "exclusion"),
        ("'hidden = :no AND state = :open'", "filter"),
    ],
)
def test_a_filter_that_only_excludes_items_is_an_exclusion(condition: str, kind: str):
    values = "{':no': {'BOOL': False}, ':open': 'open', ':yes': True}"
    code = f"table.query(FilterExpression={condition}, ExpressionAttributeValues={values})"
    assert [line.kind for line in read_lines(code)] == [kind]


@pytest.mark.parametrize(
    ("code", "kind", "attribute"),
    [
        (
            "chosen = Attr('state').eq('open')\ntable.query(FilterExpression=chosen)",
            "filter",
            "state",
        ),
        ("def q(chosen):\n    return table.query(FilterExpression=chosen)", "exclusion", ""),
        ("more = {}\nmore['FilterExpression'] = Attr('state').eq('open')", "filter", "state"),
        (
            "more = {}\nmore['FilterExpression'] = Attr('hidden').not_exists()",
            "exclusion",
            "hidden",
        ),
    ],
)
def test_a_filter_in_a_variable_is_reported_as_its_value(code: str, kind: str, attribute: str):
    assert [(line.kind, line.attribute) for line in read_lines(code)] == [(kind, attribute)]


@pytest.mark.parametrize(
    "code",
    [
        "table.update_item(Key=k, UpdateExpression='SET status = :s', ConditionExpression=c)",
        "table.update_item(Key=k, UpdateExpression='SET total = :s')",
        "table.update_item(Key=k, UpdateExpression='SET status = if_not_exists(status, :new)')",
        "table.update_item(Key=k, UpdateExpression='SET street = :s, city = :c, state = :t')",
        "table.update_item(Key=k, UpdateExpression='SET statement = :s, estate = :s')",
        "table.update_item(Key=k, UpdateExpression='SET a = :a REMOVE status')",
        "table.update_item(UpdateExpression='SET status = :s', **more)",
        "args = {'UpdateExpression': 'SET status = :s'}\nargs['ConditionExpression'] = c\n"
        "table.update_item(**args)",
        "table.update_item(AttributeUpdates={'state': {}}, Expected={'state': {}})",
    ],
)
def test_a_status_with_a_possible_condition_is_not_reported(code: str):
    assert kinds(code) == []


def test_consistent_reads_are_reported_and_all_reads_are_counted():
    code = (
        "table.get_item(Key=k, ConsistentRead=True)\n"
        "table.query(KeyConditionExpression=c)\n"
        "client.batch_get_item(RequestItems={'Users': {'Keys': k, 'ConsistentRead': True}})"
        "['UnprocessedKeys']\n"
        "table.get_item(Key=k, ConsistentRead=False)\n"
    )
    assert kinds(code) == [("consistent", 1, "Orders"), ("consistent", 3, "Users")]
    assert read_code([("app.py", BEGIN + code)]).reads == 4


def test_files_that_are_not_python_are_listed():
    facts = read_code([("a.py", "def"), ("b.py", "x = 1"), ("c.py", None), ("d.py", "\0")])
    assert facts.files == 1
    assert facts.unreadable == ("a.py", "c.py", "d.py")


def test_the_text_of_a_line_is_cut():
    (row,) = read_lines(f"table.scan()  # {'x' * 500}")
    assert row.text.startswith("table.scan()")
    assert len(row.text) == 120


@pytest.mark.parametrize(
    "text", ["(" * 5_000, "-" * 50_000 + "1", "a" + ".b" * 50_000, "x=" * 9_000]
)
def test_code_that_is_nested_too_deep_is_unreadable(text: str):
    assert lines_of("app.py", text) is None or lines_of("app.py", text) == ([], 0)


def test_circular_names_are_not_followed_forever():
    assert kinds("a = b\nb = a\na.scan(TableName=a)\nx = {**x}\ntable.query(**x)") == [
        ("scan", 3, "")
    ]


TOKENS = st.sampled_from(
    [*BEGIN.split(), "table.scan(", ")", "\n", "    ", "def f():", "return ", "= ", "**x", "{", "}",
     "client.batch_write_item(", "RequestItems=", "'UnprocessedItems'", "[", "]", "r ", "global r",
     "FilterExpression=", "self.t", "class A:", "lambda: ", "yield ", "await ", ":=", ",", "f'{x}'"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text(string.printable), st.lists(TOKENS).map(" ".join)))
def test_any_text_is_read_or_unreadable(text: str):
    facts = read_code([("app.py", text)])
    assert facts.files + len(facts.unreadable) == 1
    rows = text.splitlines()
    assert all(1 <= line.line <= len(rows) and line.text for line in facts.lines)


def test_only_the_user_s_own_files_of_a_directory_are_read(tmp_path: Path):
    code = "import boto3\nboto3.resource('dynamodb').Table('Users').scan()\n"
    for name in ("app.py", "in/deep.py", ".hidden/a.py", "venv/a.py", "own/pyvenv.cfg", "own/a.py",
                 "node_modules/a.py", "a.txt", "lib/site-packages/a.py"):  # fmt: skip
        (tmp_path / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "code" / name).write_text(code)
    (tmp_path / "outside.py").write_text(code)
    (tmp_path / "code" / "link.py").symlink_to(tmp_path / "outside.py")
    (tmp_path / "code" / "folder").symlink_to(tmp_path)
    (tmp_path / "code" / "gone.py").symlink_to(tmp_path / "code" / "nothing.py")
    (tmp_path / "code" / "latin.py").write_bytes(b"x = '\xe9'\n")
    (tmp_path / "code" / "coded.py").write_bytes(b"# coding: latin-1\nx = '\xe9'\n")
    (tmp_path / "code" / "large.py").write_text("x = 1\n" * 200_000)
    facts = read_directory(tmp_path / "code")
    assert [(line.file, line.line, line.table) for line in facts.lines] == [
        ("app.py", 2, "Users"),
        ("in/deep.py", 2, "Users"),
    ]
    assert facts.unreadable == ("gone.py", "large.py", "latin.py")
    assert facts.files == 3
    assert read_directory(tmp_path / "code" / "app.py").files == 1


def test_a_missing_directory_is_an_error(tmp_path: Path):
    with pytest.raises(CannotStart, match="no directory"):
        read_directory(tmp_path / "none")
