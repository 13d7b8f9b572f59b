"""The use of DynamoDB in a user's Python code, by file and line, from the syntax trees.

Nothing is run or imported, and each statement has a line. If the response of a batch is passed on,
as by a wrapper, it is unknown whether its rest is read: then the line is of kind "batch_write"
instead of "unprocessed". A name has a known value only by simple assignments: one that is assigned
in several ways, a parameter, and a value from the environment or another file are unknown.
"""

import ast
import os
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from keyhop.errors import CannotStart
from keyhop.report.facts import CodeFacts, CodeKind, CodeLine
from keyhop.report.sampler import names_in

MOST_FILES = 5_000

OF_OTHERS = frozenset({"venv", "node_modules", "site-packages", "__pycache__"})
"""The names of folders without code of the user; hidden folders have none either."""
_OF_A_VENV = "pyvenv.cfg"
MOST_BYTES = 1_000_000
"""The maximum size of a file; a longer one is made by a machine."""
MOST_TEXT = 120

READS = frozenset({"get_item", "query", "scan", "batch_get_item"})
RESTS = {"batch_write_item": "UnprocessedItems", "batch_get_item": "UnprocessedKeys"}
TRANSACTIONS = frozenset({"transact_write_items", "transact_get_items"})
FILTERS = frozenset({"FilterExpression", "QueryFilter", "ScanFilter"})
CONDITIONS = frozenset({"ConditionExpression", "Expected", "ConditionalOperator"})
STATUS = re.compile(
    r"(?:^|_)(?:status|state|stage|phase)$|[a-z](?:Status|State|Stage|Phase)$"
    r"|^(?:Status|State|Stage|Phase)$"
)

# fmt: off
_OWN = frozenset({
    "TableName", "FilterExpression", "ProjectionExpression", "ExpressionAttributeNames",
    "RequestItems", "Key", "ExpressionAttributeValues", "KeyConditionExpression",
    "ExclusiveStartKey", "ConsistentRead", "Segment", "ReturnConsumedCapacity",
    "UpdateExpression", "ConditionExpression", "TotalSegments", "Limit", "AttributeUpdates",
    "AttributesToGet", "KeyConditions", "IndexName", "Select", "Item", "TransactItems",
    "Statement",
})
# fmt: on
"""The parameters by which a request to DynamoDB is recognised."""
_HINT = re.compile(r"table|dynamo|ddb", re.IGNORECASE)
_SIGNS = re.compile(r"dynamo|boto3|LastEvaluatedKey|\bItems\b", re.IGNORECASE)
_SET = re.compile(r"\bSET\b(.*?)(?=\b(?:REMOVE|ADD|DELETE)\b|$)", re.IGNORECASE | re.DOTALL)
_TARGET = re.compile(r"(?:^|,)\s*([#\w.\[\]]+)\s*=(?!\s*if_not_exists)")
_ADDRESS = frozenset({"city", "street", "zip", "zipcode", "postcode", "postalcode", "country"})
"""The attributes beside which a state is that of an address."""
_EXCLUDED = re.compile(
    r"\bNOT\s+\w+\s*\([^()]*\)|\battribute_not_exists\s*\([^()]*\)|[#\w.]+\s*<>\s*[:#\w.]+",
    re.IGNORECASE,
)
"""Conditions that leave out items."""
_SELECT_ALL = re.compile(r'SELECT\s[^?]*?\bFROM\s+"?([\w.-]*)"?(?:(?!\bWHERE\b).)*', re.I | re.S)
"""A statement of PartiQL without a condition, which is a Scan."""
_IS_FALSE = re.compile(r"[#\w.]+\s*=\s*(:\w+)")

Kind = Literal["table", "client", "other", "unknown"]
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef

MOST_STEPS = 12
"""The maximum number of assignments from name to name."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (ast.Module, ast.ClassDef, *_FUNCTIONS)
_TYPES: tuple[tuple[str, Kind], ...] = (
    ("DynamoDBClient", "client"),
    ("DynamoDBServiceResource", "client"),
    ("Table", "table"),
)
"""The ends of the annotations of boto3-stubs."""


def read_directory(path: Path) -> CodeFacts:
    """Return the facts of the code in a directory or a file, without links to other places.

    Raises:
        CannotStart: The directory does not exist, or has too many files.
    """
    if path.is_file():
        return read_code([(_name(Path(path.name)), _text(path))])
    if not path.is_dir():
        raise CannotStart(
            f"There is no directory {str(path)!r}: code= must name the directory of your code."
        )
    files = sorted(_files(path))
    if len(files) > MOST_FILES:
        raise CannotStart(
            f"{str(path)!r} has {len(files):,} Python files; name a folder of at most "
            f"{MOST_FILES:,} for code=."
        )
    return read_code((_name(file.relative_to(path)), _text(file)) for file in files)


def _name(path: Path) -> str:
    """Return a file's name as text, with escapes for bytes that are not UTF-8."""
    return str(path).encode(errors="surrogateescape").decode(errors="backslashreplace")


def _files(path: Path) -> Iterator[Path]:
    root = path.resolve()
    for folder, folders, names in os.walk(path):
        parent = Path(folder)
        folders[:] = [
            child
            for child in folders
            if not child.startswith(".")
            and child not in OF_OTHERS
            and not (parent / child / _OF_A_VENV).exists()
        ]
        for name in names:
            if name.endswith(".py"):
                file = parent / name
                if not file.is_symlink() or file.resolve().is_relative_to(root):
                    yield file


def _text(file: Path) -> str | None:
    """Return the text of a Python file; None if it cannot be read."""
    try:
        if not file.is_file() or file.stat().st_size > MOST_BYTES:
            return None
        with tokenize.open(file) as stream:
            return stream.read()
    except (OSError, SyntaxError, ValueError):
        return None


def read_code(sources: Iterable[tuple[str, str | None]]) -> CodeFacts:
    """Return the facts of files, as (name, text); the text of an unreadable file is None."""
    files, reads = 0, 0
    lines: list[CodeLine] = []
    unreadable: list[str] = []
    for name, text in sources:
        result = None if text is None else lines_of(name, text)
        if result is None:
            unreadable.append(name)
            continue
        files += 1
        lines += result[0]
        reads += result[1]
    return CodeFacts(files, tuple(lines), tuple(unreadable), reads)


def lines_of(file: str, text: str) -> tuple[list[CodeLine], int] | None:
    """Return the lines of a file and the number of its reads; None if it is not Python."""
    if len(text) > MOST_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warnings of the user's code are not ours
            module = ast.parse(text)
        reader = _Reader(file, text, Names.of(module))
        return _once(reader.lines()), reader.reads
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True, slots=True)
class Referent:
    """The object that a name refers to.

    Attributes:
        kind: A Table resource, a client or the service resource, something else, or unknown.
        table: The name of the table; "" if it is not known.
    """

    kind: Kind
    table: str = ""


UNKNOWN, OTHER = Referent("unknown"), Referent("other")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call by name.

    Attributes:
        complete: Whether these are all arguments.
    """

    named: Mapping[str, ast.expr]
    places: Mapping[str, ast.AST]
    complete: bool


@dataclass(slots=True)
class Names:
    """The assignments of one module."""

    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)
    assigned: dict[tuple[Scope, str], list[ast.expr | None]] = field(default_factory=dict)
    attributes: dict[tuple[ast.ClassDef, str], list[ast.expr | None]] = field(default_factory=dict)
    entries: dict[tuple[Scope, str], list[tuple[str, ast.expr, ast.AST]]] = field(
        default_factory=dict
    )
    """The values that are put into a dictionary later, as in name["X"] = value."""
    functions: dict[tuple[Scope, str], ast.AST] = field(default_factory=dict)
    returns: dict[Scope, list[ast.expr]] = field(default_factory=dict)
    globals: set[tuple[Scope, str]] = field(default_factory=set)
    nodes: list[ast.AST] = field(default_factory=list)

    @classmethod
    def of(cls, module: ast.Module) -> "Names":
        names = cls()
        waiting: list[tuple[ast.AST, Scope]] = [(module, module)]
        while waiting:
            node, scope = waiting.pop()
            names.nodes.append(node)
            names.scopes[node] = scope
            inner = node if isinstance(node, _SCOPES) else scope
            for child in ast.iter_child_nodes(node):
                names.parents[child] = node
                waiting.append((child, inner))
        for node in names.nodes:
            if isinstance(node, ast.Global):
                names.globals.update((names.scopes[node], name) for name in node.names)
        for node in names.nodes:
            names._note(node, names.scopes[node])
        return names

    def _note(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value, scope)
            case ast.AnnAssign(target=target, value=value, annotation=annotation):
                self._assign(target, annotation if value is None else value, scope)
            case ast.NamedExpr(target=target, value=value):
                self._assign(target, value, scope)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                self._assign(target, value, scope)
            case ast.For(target=target) | ast.AsyncFor(target=target):
                self._assign(target, None, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.functions[scope, node.name] = node
                for argument in (*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs):
                    self.assigned.setdefault((node, argument.arg), []).append(argument.annotation)
            case ast.Return(value=ast.expr() as value):
                self.returns.setdefault(scope, []).append(value)

    def _assign(self, target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                if (scope, name) in self.globals:
                    scope = list(self.around(scope))[-1]
                self.assigned.setdefault((scope, name), []).append(value)
            case ast.Attribute(value=ast.Name(id=("self" | "cls")), attr=name):
                owner = self._class_of(scope)
                if owner is not None:
                    self.attributes.setdefault((owner, name), []).append(value)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)):
                if value is not None:
                    entry = (key, value, target)
                    self.entries.setdefault((scope, name), []).append(entry)
            case ast.Tuple(elts=members) | ast.List(elts=members):
                for member in members:
                    self._assign(member, None, scope)

    def around(self, node: ast.AST) -> Iterator[Scope]:
        """Yield the scopes in which a name at this node may be assigned, the nearest first."""
        scope: Scope | None = self.scopes[node]
        while scope is not None:
            yield scope
            outer = self.scopes[scope]
            scope = None if outer is scope else outer

    def _class_of(self, scope: Scope) -> ast.ClassDef | None:
        return next(
            (outer for outer in self.around(scope) if isinstance(outer, ast.ClassDef)), None
        ) or (scope if isinstance(scope, ast.ClassDef) else None)

    def values(self, node: ast.AST) -> list[ast.expr | None]:
        """Return the values assigned to a name or an attribute of self; None if one is unknown."""
        match node:
            case ast.Name(id=name):
                for scope in self.around(node):
                    if (scope, name) in self.assigned:
                        return self.assigned[scope, name]
            case ast.Attribute(value=ast.Name(id=("self" | "cls")), attr=name):
                owner = self._class_of(self.scopes[node])
                if owner is not None:
                    values = self.attributes.get((owner, name), [])
                    return values or self.assigned.get((owner, name), [])
        return []

    def text(self, node: ast.AST | None, steps: int = MOST_STEPS) -> str | None:
        """Return a text in the code; an f-string is its parts with blanks between them."""
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.JoinedStr(values=parts):
                return " ".join(self.text(part, 1) or "" for part in parts)
            case ast.BinOp(left=left, op=ast.Add(), right=right) if steps:
                return "".join(self.text(side, steps - 1) or " " for side in (left, right))
            case ast.Name() | ast.Attribute() if steps:
                texts = {self.text(value, steps - 1) for value in self.values(node)}
                return texts.pop() if len(texts) == 1 else None
        return None

    def constant(self, node: ast.AST | None) -> str:
        """Return a text without placeholders, or ""."""
        if isinstance(node, ast.JoinedStr | ast.BinOp):
            return ""
        return self.text(node) or ""

    def referent(self, node: ast.AST | None, steps: int = MOST_STEPS) -> Referent:
        """Return the object before the dot of `.scan(`."""
        if node is None or not steps:
            return UNKNOWN
        match node:
            case ast.Name() | ast.Attribute():
                values = [value for value in self.values(node) if not _is_none(value)]
                return _common({self._assigned(value, steps - 1) for value in values})
            case ast.Await(value=value) | ast.NamedExpr(value=value):
                return self.referent(value, steps - 1)
            case ast.BoolOp(values=members):
                return _common({self.referent(value, steps - 1) for value in members} - {UNKNOWN})
            case ast.IfExp(body=value, orelse=alternative):
                members = [value, alternative]
                return _common({self.referent(each, steps - 1) for each in members} - {UNKNOWN})
            case ast.Call():
                return self._made(node, steps - 1)
            case ast.Constant() | ast.List() | ast.Dict() | ast.Set() | ast.Tuple():
                return OTHER
        return UNKNOWN

    def _assigned(self, value: ast.expr | None, steps: int) -> Referent:
        """Return the object of a value; a parameter or a declaration has its annotation."""
        name = _annotated(value)
        for end, kind in _TYPES:
            if name == end:
                return Referent(kind)
        return self.referent(value, steps)

    def _made(self, call: ast.Call, steps: int) -> Referent:
        first = call.args[0] if call.args else None
        match call.func:
            case ast.Attribute(attr="Table"):
                keywords = {keyword.arg: keyword.value for keyword in call.keywords}
                return Referent("table", self.constant(first or keywords.get("name")))
            case ast.Attribute(attr=("client" | "resource")) | ast.Name(id=("client" | "resource")):
                keywords = {keyword.arg: keyword.value for keyword in call.keywords}
                service = self.constant(first or keywords.get("service_name"))
                return (
                    Referent("client") if service == "dynamodb" else OTHER if service else UNKNOWN
                )
            case ast.Name(id=name):
                for scope in self.around(call):
                    function = self.functions.get((scope, name))
                    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                        results = self.returns.get(function, [])
                        return _common({self.referent(keyword, steps) for keyword in results})
        return UNKNOWN

    def arguments(self, call: ast.Call) -> Arguments:
        """Return the arguments by name, with the known ones of dictionaries passed as **."""
        named: dict[str, ast.expr] = {}
        places: dict[str, ast.AST] = {}
        is_whole = True
        for keyword in call.keywords:
            if keyword.arg is not None:
                named[keyword.arg], places[keyword.arg] = keyword.value, keyword
                continue
            members = self.members(keyword.value)
            is_whole = is_whole and members is not None
            for name, value, place in members or ():
                named[name], places[name] = value, place
        return Arguments(named, places, is_whole)

    def members(
        self, node: ast.AST | None, steps: int = MOST_STEPS
    ) -> list[tuple[str, ast.expr, ast.AST]] | None:
        """Return names, values and places of a dictionary; None if it may have others."""
        match node:
            case ast.Dict(keys=keys, values=values) if steps:
                entries: list[tuple[str, ast.expr, ast.AST]] = []
                for key, value in zip(keys, values, strict=True):
                    inner = None if key is not None else self.members(value, steps - 1)
                    name = self.text(key)
                    if name is not None and key is not None:
                        entries.append((name, value, key))
                    elif inner is None:
                        return None
                    else:
                        entries += inner
                return entries
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                if all(entry.arg is not None for entry in keywords):
                    return [(entry.arg or "", entry.value, entry) for entry in keywords]
            case ast.Name(id=name) if steps:
                scope = next(
                    (entry for entry in self.around(node) if (entry, name) in self.assigned), None
                )
                if scope is None:
                    return None
                parts = [self.members(value, steps - 1) for value in self.assigned[scope, name]]
                later = [
                    entry
                    for each in self.around(node)
                    for entry in self.entries.get((each, name), ())
                ]
                if any(entry is None for entry in parts):
                    return None
                return [entry for each in parts for entry in each or ()] + later
        return None


class _Reader:
    """Reads the syntax tree of one file."""

    def __init__(self, file: str, text: str, names: Names) -> None:
        self.file = file
        self.rows = text.splitlines()
        self.names = names
        self.reads = 0
        self.knows_dynamodb = _SIGNS.search(text) is not None

    def lines(self) -> Iterator[CodeLine]:
        for node in self.names.nodes:
            match node:
                case ast.Call(func=ast.Attribute() as function):
                    yield from self._of_call(node, function)
                case ast.Dict():
                    yield from self._of_dictionary(node)
                case ast.Subscript(slice=ast.Constant(value=str() as key), ctx=ast.Store()):
                    parent = self.names.parents.get(node)
                    if key in FILTERS and isinstance(parent, ast.Assign):
                        arguments = Arguments({key: parent.value}, {key: node}, complete=False)
                        yield from self._of_arguments(arguments, "")
                case ast.Attribute(attr="scan", ctx=ast.Load()):
                    yield from self._passed_on(node)

    def _line(
        self, kind: CodeKind, node: ast.AST, table: str = "", attribute: str = ""
    ) -> CodeLine:
        number = getattr(node, "lineno", 1)
        if isinstance(node, ast.Attribute):
            number = node.end_lineno or number  # the line of the method's name
        text = self.rows[number - 1].strip() if number <= len(self.rows) else ""
        return CodeLine(kind, self.file, number, text[:MOST_TEXT], table, attribute)

    # Calls

    def _of_call(self, call: ast.Call, function: ast.Attribute) -> Iterator[CodeLine]:
        method = function.attr
        if method == "get_paginator":
            yield from self._of_paginator(call, function)
            return
        arguments = self.names.arguments(call)
        if method == "paginate":
            yield from self._of_arguments(arguments, self._table_of(UNKNOWN, arguments))
            return
        referent = self.names.referent(function.value)
        if not self._is_dynamodb(call, function, arguments, referent):
            return
        table = self._table_of(referent, arguments)
        if method in READS:
            self.reads += 1
        if method == "scan":
            yield self._line("scan", function, table)
        if method == "execute_statement":
            statement = self.names.text(arguments.named.get("Statement")) or ""
            if match := _SELECT_ALL.fullmatch(statement.strip()):
                yield self._line("scan", function, match[1])
        if method in (*READS, "update_item", "put_item", "delete_item"):
            yield from self._of_arguments(arguments, table)
        if method == "update_item" and arguments.complete:
            yield from self._of_update(arguments, function, table)
        if method in TRANSACTIONS and self._is_of_one_item(arguments):
            yield self._line("transaction", function, table)
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
        """Return the table of `get_paginator(...).paginate(TableName=...)`, also through a name."""
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

    def _passed_on(self, node: ast.Attribute) -> Iterator[CodeLine]:
        """Yield a method that another function calls, as in `pages(table.scan)`."""
        parent = self.names.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return
        referent = self.names.referent(node.value)
        if referent.kind in ("table", "client"):
            yield self._line("scan", node, referent.table)

    def _is_dynamodb(
        self, call: ast.Call, function: ast.Attribute, arguments: Arguments, referent: Referent
    ) -> bool:
        """Return whether it is a call of boto3: all arguments have names, with a capital first."""
        if (
            call.args
            or referent.kind == "other"
            or not all(name[:1].isupper() for name in arguments.named)
        ):
            return False
        if referent.kind in ("table", "client") or arguments.named.keys() & _OWN:
            return True
        return self.knows_dynamodb and _HINT.search(_last_name(function.value)) is not None

    def _table_of(self, referent: Referent, arguments: Arguments) -> str:
        if referent.table:
            return referent.table
        items = self.names.members(arguments.named.get("RequestItems"))
        if items is not None:
            tables = {name for name, _, _ in items}
            return tables.pop() if len(tables) == 1 else ""
        if parts := self._parts(arguments):
            requests = [value for _, value, _ in self.names.members(parts[0]) or ()]
            named = {
                name: value
                for name, value, _ in self.names.members(next(iter(requests), None)) or ()
            }
            return self.names.constant(named.get("TableName"))
        return self.names.constant(arguments.named.get("TableName"))

    # Parameters

    def _of_arguments(self, arguments: Arguments, table: str) -> Iterator[CodeLine]:
        for name in arguments.named.keys() & FILTERS:
            kind: CodeKind = "filter" if self._chooses(name, arguments) else "exclusion"
            attributes = self._filtered(name, arguments)
            yield self._line(kind, arguments.places[name], table, attributes)
        if _is_true(arguments.named.get("ConsistentRead")):
            yield self._line("consistent", arguments.places["ConsistentRead"], table)
        for _, keys, _ in self.names.members(arguments.named.get("RequestItems")) or ():
            for name, value, place in self.names.members(keys) or ():
                if name == "ConsistentRead" and _is_true(value):
                    yield self._line("consistent", place, table)

    def _parts(self, arguments: Arguments) -> list[ast.expr]:
        """Return the parts of a transaction; [] if their number is not known."""
        value = arguments.named.get("TransactItems")
        if isinstance(value, ast.Name):
            values = self.names.values(value)
            uses = self._uses(value, self.names.scopes[value])
            changed = [
                getattr(node.target, "id", "")
                for node in self.names.nodes
                if isinstance(node, ast.AugAssign)
            ]
            is_whole = (
                len(values) == 1
                and value.id not in changed
                and all(isinstance(self.names.parents.get(use), ast.keyword) for use in uses)
            )
            value = values[0] if is_whole else None
        parts = value.elts if isinstance(value, ast.List | ast.Tuple) else []
        return [] if any(isinstance(part, ast.Starred) for part in parts) else parts

    def _is_of_one_item(self, arguments: Arguments) -> bool:
        """Return whether a transaction has one item, and no token that makes it idempotent."""
        return len(self._parts(arguments)) == 1 and "ClientRequestToken" not in arguments.named

    def _chooses(self, name: str, arguments: Arguments) -> bool:
        """Return whether a filter is known, and does more than leave out items that are deleted."""
        value = arguments.named[name]
        text = self.names.text(value) if name == "FilterExpression" else None
        if text is not None:
            values = self.names.members(arguments.named.get("ExpressionAttributeValues")) or ()
            false = {alias for alias, value, _ in values if self._is_false(value)}
            rest = _EXCLUDED.sub("", text)
            rest = _IS_FALSE.sub(lambda match: "" if match[1] in false else match[0], rest)
            return bool(re.sub(r"\b(?:AND|OR)\b|[()\s]", "", rest, flags=re.IGNORECASE))
        if name != "FilterExpression":
            return True
        tests = [
            (node.func.attr, node.args)
            for node in self._nodes_of(value)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and _last_name(node.func.value) in ("Attr", "Key")
        ]
        return any(
            test not in ("ne", "not_exists")
            and not (test == "eq" and any(map(self._is_false, operands)))
            for test, operands in tests
        )

    def _nodes_of(self, value: ast.expr) -> Iterator[ast.AST]:
        """Yield the nodes of a value, or of each value that a name has."""
        for each in [value] if not isinstance(value, ast.Name) else self.names.values(value):
            yield from ast.walk(each) if each is not None else ()

    def _is_false(self, node: ast.AST) -> bool:
        """Return whether a value is False, also as {"BOOL": False}."""
        if members := self.names.members(node):
            return self._is_false(members[0][1])
        return isinstance(node, ast.Constant) and node.value is False

    def _filtered(self, name: str, arguments: Arguments) -> str:
        """Return the names of the attributes of a filter, joined by commas."""
        value = arguments.named[name]
        if name != "FilterExpression":
            return ",".join(
                sorted({attribute for attribute, _, _ in self.names.members(value) or ()})
            )
        text = self.names.text(value)
        if text is not None:
            return ",".join(self._attributes(text, arguments))
        attributes: dict[str, None] = {}
        for node in self._nodes_of(value):
            if (
                isinstance(node, ast.Call)
                and _last_name(node.func) in ("Attr", "Key")
                and node.args
            ):
                attributes[self.names.constant(node.args[0])] = None
        return ",".join(attribute for attribute in attributes if attribute)

    def _attributes(self, expression: str, arguments: Arguments) -> list[str]:
        return [self._named(name, arguments) for name in names_in(expression)]

    def _named(self, name: str, arguments: Arguments) -> str:
        """Return the attribute behind #name, if it is known."""
        aliases = self.names.members(arguments.named.get("ExpressionAttributeNames")) or ()
        return {alias: self.names.constant(value) for alias, value, _ in aliases}.get(name) or name

    def _of_update(self, arguments: Arguments, node: ast.AST, table: str) -> Iterator[CodeLine]:
        """Yield an update that sets a status without a condition."""
        if arguments.named.keys() & CONDITIONS:
            return
        updates = self.names.members(arguments.named.get("AttributeUpdates")) or ()
        names = [name for name, _, _ in updates]
        text = self.names.text(arguments.named.get("UpdateExpression")) or ""
        for clause in _SET.findall(text):
            targets = (
                target.rpartition(".")[2].partition("[")[0] for target in _TARGET.findall(clause)
            )
            names += [self._named(target, arguments) for target in targets]
        is_address = any(name.lower().lstrip("#").replace("_", "") in _ADDRESS for name in names)
        for name in names:
            if STATUS.search(name.lstrip("#")) and not is_address:
                yield self._line("status", node, table, name.lstrip("#"))

    def _of_dictionary(self, node: ast.Dict) -> Iterator[CodeLine]:
        """Yield from parameters in a dictionary, and from the updates of a transaction."""
        members = {name: (value, place) for name, value, place in self._literal(node)}
        if not members.keys() & {*FILTERS, "UpdateExpression", "ConsistentRead"}:
            return
        arguments = Arguments(
            {name: value for name, (value, _) in members.items()},
            {name: place for name, (_, place) in members.items()},
            True,
        )
        table = self._table_of(UNKNOWN, arguments)
        parent = self.names.parents.get(node)
        if isinstance(parent, ast.Dict) and "UpdateExpression" in members:
            yield from self._of_update(arguments, members["UpdateExpression"][1], table)
        yield from self._of_arguments(arguments, table)

    def _literal(self, node: ast.Dict) -> Iterator[tuple[str, ast.expr, ast.AST]]:
        for key, value in zip(node.keys, node.values, strict=True):
            name = self.names.text(key)
            if key is not None and name is not None:
                yield name, value, key

    # Responses

    def _rest(self, call: ast.Call, name: str) -> Literal["read", "unread", "unknown"]:
        """Return whether UnprocessedItems or UnprocessedKeys of a response are read."""
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
                call = self.names.parents.get(parent)
                if isinstance(call, ast.Call) and call.args:
                    return {_of_key(self.names.constant(call.args[0]), name)}
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
        results = {"unread"}
        for use in uses:
            results |= self._use(use, name)
        return results

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
    """Return one line of each kind and number.

    A dictionary is read where it is written and where it is passed, where its table may be known.
    """
    best: dict[tuple[int, str], CodeLine] = {}
    for line in lines:
        previous = best.setdefault((line.line, line.kind), line)
        if (bool(line.table), bool(line.attribute)) > (
            bool(previous.table),
            bool(previous.attribute),
        ):
            best[line.line, line.kind] = line
    return [best[at] for at in sorted(best)]


def _worst(uses: Iterable[str]) -> Literal["read", "unread", "unknown"]:
    """Return "read" if one use reads it, otherwise "unknown" if one use is not understood."""
    results = set(uses)
    return "read" if "read" in results else "unknown" if "unknown" in results else "unread"


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


def _common(referents: set[Referent]) -> Referent:
    """Return one object for several: of the same kind, and of no particular table."""
    if len(referents) == 1:
        return next(iter(referents))
    kinds = {referent.kind for referent in referents}
    return Referent(kinds.pop()) if len(kinds) == 1 else UNKNOWN


def _is_none(value: ast.expr | None) -> bool:
    """A global is often None until it is first used."""
    return isinstance(value, ast.Constant) and value.value is None


def _annotated(node: ast.AST | None) -> str:
    """Return the last name of an annotation, which may be a text."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=str() as text):
            return text.rpartition(".")[2]
    return ""
