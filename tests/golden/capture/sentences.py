"""All that errors can say, read from the code."""

import ast
import itertools

from tests.golden.capture.contexts import ROOT, SOURCES


def errors() -> list[str]:
    """`Class: sentence` of each error that the code can raise; values are {}."""
    trees = [
        ast.parse(path.read_text())
        for source in SOURCES
        for path in sorted((ROOT / source).rglob("*.py"))
    ]
    known = exceptions_in(trees)
    said = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                said |= sentences(node.exc)
            elif isinstance(node, ast.Call) and called(node) in known | {"wrong", "wrong_in"}:
                said |= sentences(node)
            elif isinstance(node, ast.Call) and called(node) == "Must":
                said |= {f"must be {one}" for one in texts(node.args[1])}
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "problems.append":
                said |= {f"problem: {one}" for one in texts(node.args[0])}
            elif isinstance(node, ast.FunctionDef) and node.name in SPOKEN:
                said |= {f"problem: {one}" for one in spoken(node)}
    return sorted(said)


SPOKEN = {"contradictions", "_sentences", "too_slow"}
"""Functions whose texts are sentences for whoever raises the error."""


def spoken(function: ast.FunctionDef) -> set[str]:
    """The sentences in a function: its longer texts, without its docstring."""
    joined = [node for node in ast.walk(function) if isinstance(node, ast.JoinedStr)]
    pieces = {id(piece) for node in joined for piece in ast.walk(node) if piece is not node}
    kinds = (ast.JoinedStr, ast.Constant)
    whole = (n for n in ast.walk(function) if isinstance(n, kinds) and id(n) not in pieces)
    found = {one for node in whole for one in texts(node) if " " in one}
    return found - {ast.get_docstring(function, clean=False)}


def exceptions_in(trees: list[ast.Module]) -> set[str]:
    """Names of the classes that are made for raising."""
    classes = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    known = {"Exception", "ValueError", "RuntimeError", "BotoCoreError", "ClientError"}
    own: set[str] = set()
    for _ in range(5):
        for node in classes:
            if any(ast.unparse(base) in known | own for base in node.bases):
                own.add(node.name)
    return own


def called(node: ast.Call) -> str:
    """What is called, without its module."""
    return ast.unparse(node.func).rpartition(".")[2]


def sentences(node: ast.Call) -> set[str]:
    """All that a call which makes an error can say."""
    name = called(node)
    # A helper's sentence is in the helper; what differs are the texts that it is given.
    literal = [arg for arg in node.args if name in ("wrong", "wrong_in") or arg is node.args[0]]
    return {f"{name}: {' | '.join(said)}" for said in itertools.product(*(map(texts, literal)))}


def texts(node: ast.expr) -> list[str]:
    """The texts that an expression can be; {} for what is not known before it runs."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        parts = [texts(v) if isinstance(v, ast.Constant) else ["{}"] for v in node.values]
        return ["".join(one) for one in itertools.product(*parts)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return ["".join(one) for one in itertools.product(texts(node.left), texts(node.right))]
    if isinstance(node, ast.IfExp):
        return texts(node.body) + texts(node.orelse)
    return ["{}"]
