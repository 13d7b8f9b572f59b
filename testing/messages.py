"""`python -m testing.messages FILE`: every text that keyhop/cli holds, as one document.

These are the help of commands and flags, questions, errors and printed sentences, by their module.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from testing.servers import ROOT

CLI = ROOT / "lambdas" / "keyhop" / "cli"
COMMANDS = ("action", "command", "group")
"""The names of decorators whose functions have the help of a command as their docstrings."""


def texts_of(source: str) -> Iterator[str]:
    """Return the texts of a module that a person can see, each in one line."""
    tree = ast.parse(source)
    hidden: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            hidden |= {id(part) for part in node.values if isinstance(part, ast.Constant)}
        if isinstance(node, ast.FunctionDef) and any(map(_is_command, node.decorator_list)):
            yield from (ast.get_docstring(node) or "").replace("\b", "").split("\n\n")
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _is_command(decorator: ast.expr) -> bool:
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")
    return name in COMMANDS


def document() -> Iterator[str]:
    """Return the lines of the document."""
    yield "# What the command says"
    for path in sorted(CLI.glob("*.py")):
        yield f"\n## {path.name}\n"
        for text in texts_of(path.read_text(encoding="utf-8")):
            if " " in text.strip():
                yield f"- {' '.join(text.split())}"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(document()) + "\n", encoding="utf-8")
    print(f"{target}: {len(target.read_text(encoding='utf-8').split()):,} words")
