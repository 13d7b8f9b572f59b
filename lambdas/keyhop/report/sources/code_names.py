"""What the names in a Python syntax tree stand for, as far as simple assignments tell. Pure.

Nothing is imported or run. A name that is assigned in several ways, a parameter, what comes from
the environment or from another file stands for nothing that is known.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["table", "client", "other", "unknown"]
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef

MOST_STEPS = 12
"""From name to name."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (ast.Module, ast.ClassDef, *_FUNCTIONS)
_TYPES: tuple[tuple[str, Kind], ...] = (
    ("DynamoDBClient", "client"),
    ("DynamoDBServiceResource", "client"),
    ("Table", "table"),
)
"""Annotations, by their ends: those of boto3-stubs."""


@dataclass(frozen=True, slots=True)
class Referent:
    """kind: a Table resource; a client or the service resource; something else; nobody can say.

    table: its name, "" where that is not known.
    """

    kind: Kind
    table: str = ""


UNKNOWN, OTHER = Referent("unknown"), Referent("other")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Of a call, by name. whole: nothing may have been passed that is not seen here."""

    named: Mapping[str, ast.expr]
    places: Mapping[str, ast.AST]
    whole: bool


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
    """What is put into a dictionary after it was made: name["X"] = value."""
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
        """The scopes in which a name at this node may have been assigned, the nearest first."""
        scope: Scope | None = self.scopes[node]
        while scope is not None:
            yield scope
            outer = self.scopes[scope]
            scope = None if outer is scope else outer

    def _class_of(self, scope: Scope) -> ast.ClassDef | None:
        return next((one for one in self.around(scope) if isinstance(one, ast.ClassDef)), None) or (
            scope if isinstance(scope, ast.ClassDef) else None
        )

    def values(self, node: ast.AST) -> list[ast.expr | None]:
        """What a name or an attribute of self was assigned; None: something that is not told."""
        match node:
            case ast.Name(id=name):
                for scope in self.around(node):
                    if (scope, name) in self.assigned:
                        return self.assigned[scope, name]
            case ast.Attribute(value=ast.Name(id=("self" | "cls")), attr=name):
                owner = self._class_of(self.scopes[node])
                if owner is not None:
                    own = self.attributes.get((owner, name), [])
                    return own or self.assigned.get((owner, name), [])
        return []

    def text(self, node: ast.AST | None, steps: int = MOST_STEPS) -> str | None:
        """A text that stands in the code; of one with holes, its parts with blanks between."""
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.JoinedStr(values=parts):
                return " ".join(self.text(part, 1) or "" for part in parts)
            case ast.BinOp(left=left, op=ast.Add(), right=right) if steps:
                texts = [self.text(left, steps - 1), self.text(right, steps - 1)]
                return "".join(one or " " for one in texts)
            case ast.Name() | ast.Attribute() if steps:
                found = {self.text(value, steps - 1) for value in self.values(node)}
                return found.pop() if len(found) == 1 else None
        return None

    def constant(self, node: ast.AST | None) -> str:
        """A text without holes, or ""."""
        if isinstance(node, ast.JoinedStr | ast.BinOp):
            return ""
        return self.text(node) or ""

    def referent(self, node: ast.AST | None, steps: int = MOST_STEPS) -> Referent:
        """What stands before the dot of `.scan(`."""
        if node is None or not steps:
            return UNKNOWN
        match node:
            case ast.Name() | ast.Attribute():
                values = [one for one in self.values(node) if not _is_none(one)]
                return _common({self._assigned(one, steps - 1) for one in values})
            case ast.Await(value=value) | ast.NamedExpr(value=value):
                return self.referent(value, steps - 1)
            case ast.BoolOp(values=members):
                return _common({self.referent(one, steps - 1) for one in members} - {UNKNOWN})
            case ast.IfExp(body=one, orelse=other):
                members = [one, other]
                return _common({self.referent(each, steps - 1) for each in members} - {UNKNOWN})
            case ast.Call():
                return self._made(node, steps - 1)
            case ast.Constant() | ast.List() | ast.Dict() | ast.Set() | ast.Tuple():
                return OTHER
        return UNKNOWN

    def _assigned(self, value: ast.expr | None, steps: int) -> Referent:
        """Of a parameter or a bare declaration the value is its annotation."""
        name = _last_name(value)
        for end, kind in _TYPES:
            if name == end:
                return Referent(kind)
        return self.referent(value, steps)

    def _made(self, call: ast.Call, steps: int) -> Referent:
        first = call.args[0] if call.args else None
        match call.func:
            case ast.Attribute(attr="Table"):
                named = {one.arg: one.value for one in call.keywords}
                return Referent("table", self.constant(first or named.get("name")))
            case ast.Attribute(attr=("client" | "resource")) | ast.Name(id=("client" | "resource")):
                named = {one.arg: one.value for one in call.keywords}
                service = self.constant(first or named.get("service_name"))
                return (
                    Referent("client") if service == "dynamodb" else OTHER if service else UNKNOWN
                )
            case ast.Name(id=name):
                for scope in self.around(call):
                    function = self.functions.get((scope, name))
                    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                        results = self.returns.get(function, [])
                        return _common({self.referent(one, steps) for one in results})
        return UNKNOWN

    def arguments(self, call: ast.Call) -> Arguments:
        """By name, with those of dictionaries that are passed as **, as far as they are known."""
        named: dict[str, ast.expr] = {}
        places: dict[str, ast.AST] = {}
        whole = True
        for keyword in call.keywords:
            if keyword.arg is not None:
                named[keyword.arg], places[keyword.arg] = keyword.value, keyword
                continue
            known = self.members(keyword.value)
            whole = whole and known is not None
            for name, value, place in known or ():
                named[name], places[name] = value, place
        return Arguments(named, places, whole)

    def members(
        self, node: ast.AST | None, steps: int = MOST_STEPS
    ) -> list[tuple[str, ast.expr, ast.AST]] | None:
        """Names, values and places of a dictionary; None if it may have others."""
        match node:
            case ast.Dict(keys=keys, values=values) if steps:
                found: list[tuple[str, ast.expr, ast.AST]] = []
                for key, value in zip(keys, values, strict=True):
                    inner = None if key is not None else self.members(value, steps - 1)
                    name = self.text(key)
                    if name is not None and key is not None:
                        found.append((name, value, key))
                    elif inner is None:
                        return None
                    else:
                        found += inner
                return found
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                if all(one.arg is not None for one in keywords):
                    return [(one.arg or "", one.value, one) for one in keywords]
            case ast.Name(id=name) if steps:
                scope = next(
                    (one for one in self.around(node) if (one, name) in self.assigned), None
                )
                if scope is None:
                    return None
                made = [self.members(value, steps - 1) for value in self.assigned[scope, name]]
                put = [
                    one for each in self.around(node) for one in self.entries.get((each, name), ())
                ]
                if any(one is None for one in made):
                    return None
                return [one for each in made for one in each or ()] + put
        return None


def _common(found: set[Referent]) -> Referent:
    """One for several: of the same kind, and of no table in particular."""
    if len(found) == 1:
        return next(iter(found))
    kinds = {one.kind for one in found}
    return Referent(kinds.pop()) if len(kinds) == 1 else UNKNOWN


def _last_name(node: ast.AST | None) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=str() as text):
            return text.rpartition(".")[2]
    return ""


def _is_none(value: ast.expr | None) -> bool:
    """A global is often None until it is first used."""
    return isinstance(value, ast.Constant) and value.value is None
