"""Capture the sentences of all errors, read from the code."""

import ast
import itertools

from tests.golden.capture.contexts import ROOT, SOURCES


def errors() -> list[str]:
    """Return `Class: sentence` for each error that the code can raise, with {} for values."""
    trees = [
        ast.parse(path.read_text())
        for source in SOURCES
        for path in sorted((ROOT / source).rglob("*.py"))
    ]
    constructors = exceptions_in(trees) | {"wrong", "wrong_in"}
    found_texts = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                found_texts |= sentences(node.exc)
            elif isinstance(node, ast.Call) and called_name(node) in constructors:
                found_texts |= sentences(node)
            elif isinstance(node, ast.Call) and called_name(node) == "Must":
                found_texts |= {f"must be {text}" for text in texts(node.args[1])}
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "problems.append":
                found_texts |= {f"problem: {text}" for text in texts(node.args[0])}
            elif isinstance(node, ast.FunctionDef) and node.name in SENTENCE_FUNCTIONS:
                found_texts |= {f"problem: {text}" for text in sentences_in(node)}
    return sorted(found_texts)


SENTENCE_FUNCTIONS = {"contradictions", "_sentences", "too_slow"}
"""The functions that return the sentences of errors."""


def sentences_in(function: ast.FunctionDef) -> set[str]:
    """Return the sentences in a function: its texts with a space, without its docstring."""
    joined = [node for node in ast.walk(function) if isinstance(node, ast.JoinedStr)]
    pieces = {id(piece) for node in joined for piece in ast.walk(node) if piece is not node}
    kinds = (ast.JoinedStr, ast.Constant)
    outer_nodes = (n for n in ast.walk(function) if isinstance(n, kinds) and id(n) not in pieces)
    long_texts = {text for node in outer_nodes for text in texts(node) if " " in text}
    return long_texts - {ast.get_docstring(function, clean=False)}


def exceptions_in(trees: list[ast.Module]) -> set[str]:
    """Return the names of the exception classes."""
    classes = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    builtin_names = {"Exception", "ValueError", "RuntimeError", "BotoCoreError", "ClientError"}
    names: set[str] = set()
    for _ in range(5):
        for node in classes:
            if any(ast.unparse(base) in builtin_names | names for base in node.bases):
                names.add(node.name)
    return names


def called_name(node: ast.Call) -> str:
    """Return the name of the called function or class, without its module."""
    return ast.unparse(node.func).rpartition(".")[2]


def sentences(node: ast.Call) -> set[str]:
    """Return the sentences of a call that creates an error."""
    name = called_name(node)
    # A helper contains its sentence; only its arguments differ.
    literal = [arg for arg in node.args if name in ("wrong", "wrong_in") or arg is node.args[0]]
    return {f"{name}: {' | '.join(parts)}" for parts in itertools.product(*map(texts, literal))}


def texts(node: ast.expr) -> list[str]:
    """Return the possible texts of an expression, with {} for unknown parts."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        parts = [texts(v) if isinstance(v, ast.Constant) else ["{}"] for v in node.values]
        return list(map("".join, itertools.product(*parts)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return list(map("".join, itertools.product(texts(node.left), texts(node.right))))
    if isinstance(node, ast.IfExp):
        return texts(node.body) + texts(node.orelse)
    return ["{}"]
