"""What a user's Python code does with DynamoDB, by file and line, from its syntax trees. Pure.

Nothing is run or imported, and nothing is said without a line. Where the response of a batch is
handed on, as by a wrapper, nobody can say here whether its rest is read: then the line is of kind
"batch_write", and not "unprocessed".
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Literal

from keyhop.report.expression import names_in
from keyhop.report.facts import CodeFacts, CodeKind, CodeLine
from keyhop.report.sources.code_names import UNKNOWN, Arguments, Names, Referent, Scope

MOST_BYTES = 1_000_000
"""Of one file; a longer one is made by a machine."""
MOST_TEXT = 120

READS = frozenset({"get_item", "query", "scan", "batch_get_item"})
RESTS = {"batch_write_item": "UnprocessedItems", "batch_get_item": "UnprocessedKeys"}
FILTERS = frozenset({"FilterExpression", "QueryFilter", "ScanFilter"})
CONDITIONS = frozenset({"ConditionExpression", "Expected", "ConditionalOperator"})
STATUS = re.compile(r"(?:^|_)(?:status|state)$|[a-z](?:Status|State)$|^(?:Status|State)$")

# fmt: off
_OWN = frozenset({
    "TableName", "FilterExpression", "ProjectionExpression", "ExpressionAttributeNames",
    "RequestItems", "Key", "ExpressionAttributeValues", "KeyConditionExpression",
    "ExclusiveStartKey", "ConsistentRead", "Segment", "ReturnConsumedCapacity",
    "UpdateExpression", "ConditionExpression", "TotalSegments", "Limit", "AttributeUpdates",
    "AttributesToGet", "KeyConditions", "IndexName", "Select", "Item",
})
# fmt: on
"""Parameters by which a request to DynamoDB is recognised."""
_HINT = re.compile(r"table|dynamo|ddb", re.IGNORECASE)
_SIGNS = re.compile(r"dynamo|boto3|LastEvaluatedKey|\bItems\b", re.IGNORECASE)
_SET = re.compile(r"\bSET\b(.*?)(?=\b(?:REMOVE|ADD|DELETE)\b|$)", re.IGNORECASE | re.DOTALL)
_TARGET = re.compile(r"(?:^|,)\s*([#\w.\[\]]+)\s*=")


def read_code(sources: Iterable[tuple[str, str | None]]) -> CodeFacts:
    """Of (name, text) of each file; None for a text that could not be read."""
    files, reads = 0, 0
    lines: list[CodeLine] = []
    unreadable: list[str] = []
    for name, text in sources:
        seen = None if text is None else lines_of(name, text)
        if seen is None:
            unreadable.append(name)
            continue
        files += 1
        lines += seen[0]
        reads += seen[1]
    return CodeFacts(files, tuple(lines), tuple(unreadable), reads)


def lines_of(file: str, text: str) -> tuple[list[CodeLine], int] | None:
    """What is found in one file, and how many reads of DynamoDB; None if it is no Python."""
    if len(text) > MOST_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user's code may have warnings; they are his
            module = ast.parse(text)
        reader = _Reader(file, text, Names.of(module))
        return _once(reader.found()), reader.reads
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Reader:
    """Of one file."""

    def __init__(self, file: str, text: str, names: Names) -> None:
        self.file = file
        self.rows = text.splitlines()
        self.names = names
        self.reads = 0
        self.knows_dynamodb = _SIGNS.search(text) is not None

    def found(self) -> Iterator[CodeLine]:
        for node in self.names.nodes:
            match node:
                case ast.Call(func=ast.Attribute() as function):
                    yield from self._of_call(node, function)
                case ast.Dict():
                    yield from self._of_dictionary(node)
                case ast.Subscript(slice=ast.Constant(value=str() as key), ctx=ast.Store()):
                    if key in FILTERS:
                        yield self._line("filter", node)
                case ast.Attribute(attr="scan", ctx=ast.Load()):
                    yield from self._handed_on(node)

    def _line(
        self, kind: CodeKind, node: ast.AST, table: str = "", attribute: str = ""
    ) -> CodeLine:
        number = getattr(node, "lineno", 1)
        if isinstance(node, ast.Attribute):
            number = node.end_lineno or number  # where the method's name stands
        text = self.rows[number - 1].strip() if number <= len(self.rows) else ""
        return CodeLine(kind, self.file, number, text[:MOST_TEXT], table, attribute)

    # Calls

    def _of_call(self, call: ast.Call, function: ast.Attribute) -> Iterator[CodeLine]:
        method = function.attr
        if method == "get_paginator":
            yield from self._of_paginator(call, function)
            return
        given = self.names.arguments(call)
        if method == "paginate":
            yield from self._of_arguments(given, self._table_of(UNKNOWN, given))
            return
        referent = self.names.referent(function.value)
        if not self._is_dynamodb(call, function, given, referent):
            return
        table = self._table_of(referent, given)
        if method in READS:
            self.reads += 1
        if method == "scan":
            yield self._line("scan", function, table)
        if method in (*READS, "update_item", "put_item", "delete_item"):
            yield from self._of_arguments(given, table)
        if method == "update_item" and given.whole:
            yield from self._of_update(given, function, table)
        if method in RESTS:
            rest = self._rest(call, RESTS[method])
            if rest != "read":
                yield self._line(
                    "unprocessed" if rest == "unread" else "batch_write", function, table
                )

    def _of_paginator(self, call: ast.Call, function: ast.Attribute) -> Iterator[CodeLine]:
        name = self.names.constant(call.args[0] if call.args else None)
        if name in ("scan", "query"):
            self.reads += 1
        if name == "scan":
            yield self._line("scan", function, self._paginated(call))

    def _paginated(self, call: ast.Call) -> str:
        """The table of `get_paginator(...).paginate(TableName=...)`, also by way of a name."""
        parent = self.names.parents.get(call)
        holders: list[ast.AST] = [call] if isinstance(parent, ast.Attribute) else []
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            holders = self._uses(parent.targets[0], self.names.scopes[call])
        for holder in holders:
            attribute = self.names.parents.get(holder)
            outer = self.names.parents.get(attribute) if attribute is not None else None
            if isinstance(outer, ast.Call) and outer.func is attribute:
                return self._table_of(UNKNOWN, self.names.arguments(outer))
        return ""

    def _handed_on(self, node: ast.Attribute) -> Iterator[CodeLine]:
        """A method that somebody else calls: `pages(table.scan)`."""
        parent = self.names.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return
        referent = self.names.referent(node.value)
        if referent.kind in ("table", "client"):
            yield self._line("scan", node, referent.table)

    def _is_dynamodb(
        self, call: ast.Call, function: ast.Attribute, given: Arguments, referent: Referent
    ) -> bool:
        """boto3 takes names alone, which begin with a capital: so strangers are told apart."""
        if (
            call.args
            or referent.kind == "other"
            or not all(one[:1].isupper() for one in given.named)
        ):
            return False
        if referent.kind in ("table", "client") or given.named.keys() & _OWN:
            return True
        return self.knows_dynamodb and _HINT.search(_last_name(function.value)) is not None

    def _table_of(self, referent: Referent, given: Arguments) -> str:
        if referent.table:
            return referent.table
        items = self.names.members(given.named.get("RequestItems"))
        if items is not None:
            tables = {name for name, _, _ in items}
            return tables.pop() if len(tables) == 1 else ""
        return self.names.constant(given.named.get("TableName"))

    # Parameters

    def _of_arguments(self, given: Arguments, table: str) -> Iterator[CodeLine]:
        for name in given.named.keys() & FILTERS:
            yield self._line("filter", given.places[name], table, self._filtered(name, given))
        if _is_true(given.named.get("ConsistentRead")):
            yield self._line("consistent", given.places["ConsistentRead"], table)
        for _, keys, _ in self.names.members(given.named.get("RequestItems")) or ():
            for name, value, place in self.names.members(keys) or ():
                if name == "ConsistentRead" and _is_true(value):
                    yield self._line("consistent", place, table)

    def _filtered(self, name: str, given: Arguments) -> str:
        """Names of the attributes of a filter, joined by commas."""
        value = given.named[name]
        if name != "FilterExpression":
            return ",".join(sorted({one for one, _, _ in self.names.members(value) or ()}))
        text = self.names.text(value)
        if text is not None:
            return ",".join(self._attributes(text, given))
        found: dict[str, None] = {}
        for node in ast.walk(value):
            if (
                isinstance(node, ast.Call)
                and _last_name(node.func) in ("Attr", "Key")
                and node.args
            ):
                found[self.names.constant(node.args[0])] = None
        return ",".join(one for one in found if one)

    def _attributes(self, expression: str, given: Arguments) -> list[str]:
        return [self._named(one, given) for one in names_in(expression)]

    def _named(self, name: str, given: Arguments) -> str:
        """The attribute that #name stands for, if that is known."""
        known = self.names.members(given.named.get("ExpressionAttributeNames")) or ()
        return {one: self.names.constant(value) for one, value, _ in known}.get(name) or name

    def _of_update(self, given: Arguments, node: ast.AST, table: str) -> Iterator[CodeLine]:
        """A status that is set whatever it was before."""
        if given.named.keys() & CONDITIONS:
            return
        old = self.names.members(given.named.get("AttributeUpdates")) or ()
        names = [name for name, _, _ in old]
        text = self.names.text(given.named.get("UpdateExpression")) or ""
        for clause in _SET.findall(text):
            targets = (one.rpartition(".")[2].partition("[")[0] for one in _TARGET.findall(clause))
            names += [self._named(one, given) for one in targets]
        for name in names:
            if STATUS.search(name.lstrip("#")):
                yield self._line("status", node, table, name.lstrip("#"))

    def _of_dictionary(self, node: ast.Dict) -> Iterator[CodeLine]:
        """Parameters that are collected first, and the updates of a transaction."""
        members = {name: (value, place) for name, value, place in self._literal(node)}
        if not members.keys() & {*FILTERS, "UpdateExpression", "ConsistentRead"}:
            return
        given = Arguments(
            {name: value for name, (value, _) in members.items()},
            {name: place for name, (_, place) in members.items()},
            True,
        )
        table = self._table_of(UNKNOWN, given)
        parent = self.names.parents.get(node)
        if isinstance(parent, ast.Dict) and "UpdateExpression" in members:
            yield from self._of_update(given, members["UpdateExpression"][1], table)
        yield from self._of_arguments(given, table)

    def _literal(self, node: ast.Dict) -> Iterator[tuple[str, ast.expr, ast.AST]]:
        for key, value in zip(node.keys, node.values, strict=True):
            name = self.names.text(key)
            if key is not None and name is not None:
                yield name, value, key

    # Responses

    def _rest(self, call: ast.Call, name: str) -> Literal["read", "unread", "unknown"]:
        """What becomes of UnprocessedItems of a response, or UnprocessedKeys."""
        return _worst(self._use(call, name))

    def _use(self, node: ast.AST, name: str) -> set[str]:
        parent = self.names.parents.get(node)
        match parent:
            case ast.Expr():
                return {"unread"}
            case ast.Await():
                return self._use(parent, name)
            case ast.Subscript(value=value, slice=ast.Constant(value=key)) if value is node:
                return {"read" if key == name else "unread"}
            case ast.Attribute(attr="get"):
                asked = self.names.parents.get(parent)
                if isinstance(asked, ast.Call) and asked.args:
                    return {_of_key(self.names.constant(asked.args[0]), name)}
            case ast.Compare(left=left) if left is not node:
                return {_of_key(self.names.constant(left), name)}
            case (
                ast.Assign(targets=[ast.Name() as target])
                | ast.AnnAssign(target=ast.Name() as target)
            ):
                return self._uses_of(target, node, name)
            case ast.NamedExpr(target=target):
                return self._uses_of(target, node, name) | self._use(parent, name)
        return {"unknown"}

    def _uses_of(self, target: ast.Name, node: ast.AST, name: str) -> set[str]:
        scope = self.names.scopes[node]
        uses = self._uses(target, scope)
        if (scope, target.id) in self.names.globals or not isinstance(
            scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            return {"unknown"}
        found = {"unread"}
        for use in uses:
            found |= self._use(use, name)
        return found

    def _uses(self, target: ast.Name, scope: Scope) -> list[ast.AST]:
        return [
            node
            for node in self.names.nodes
            if isinstance(node, ast.Name)
            and node.id == target.id
            and isinstance(node.ctx, ast.Load)
            and scope in self.names.around(node)
        ]


def _once(lines: Iterable[CodeLine]) -> list[CodeLine]:
    """A dictionary is met by itself, and where it is passed: there the table may be known."""
    best: dict[tuple[int, str], CodeLine] = {}
    for line in lines:
        known = best.setdefault((line.line, line.kind), line)
        if (bool(line.table), bool(line.attribute)) > (bool(known.table), bool(known.attribute)):
            best[line.line, line.kind] = line
    return [best[at] for at in sorted(best)]


def _worst(uses: Iterable[str]) -> Literal["read", "unread", "unknown"]:
    """One that reads it suffices; where one is not understood, nobody can say."""
    found = set(uses)
    return "read" if "read" in found else "unknown" if "unknown" in found else "unread"


def _of_key(key: str, name: str) -> str:
    return "read" if key == name else "unread" if key else "unknown"


def _is_true(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _last_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return _last_name(function)
    return ""
