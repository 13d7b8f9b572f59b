"""What Keyhop does today, as JSON: the only place of the golden tests that knows project code.

    python -m tests.golden.capture --write [NAME ...]    renews files/, or the files so named

A file is captured through public interfaces, and normalised (normal.py). The runs in files/layout2
are of the version that wrote them: they are never renewed.
"""

import argparse
import ast
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from aws_cdk import App, assertions
from keyhop.cli.main import parser

from infra.config import Config
from infra.stack import KeyhopStack
from tests.golden.normal import dump, normal

HERE = Path(__file__).parent
FILES = HERE / "files"
ROOT = HERE.parents[1]
CONTEXTS: dict[str, Any] = json.loads((HERE / "contexts.json").read_text())
SOURCES = ("lambdas", "infra", "local")


# --- the deployment


@cache
def template(context: str) -> dict[str, Any]:
    """The template of a context, without the layer being built."""
    app = App(context={"aws:cdk:bundling-stacks": []}, stack_traces=False)
    stack = KeyhopStack(app, Config.from_context(CONTEXTS[context]))
    body: dict[str, Any] = assertions.Template.from_stack(stack).to_json()
    return body


def flat(value: Any) -> Any:
    """Intrinsic functions as text: <LogicalId> and <LogicalId.Att>."""
    if isinstance(value, list):
        return [flat(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"Ref"}:
        return f"<{value['Ref']}>"
    if set(value) == {"Fn::GetAtt"}:
        return f"<{'.'.join(value['Fn::GetAtt'])}>"
    if set(value) == {"Fn::Join"}:
        separator, parts = value["Fn::Join"]
        return separator.join(map(flat, parts))
    return {key: flat(one) for key, one in value.items()}


def templates(context: str) -> dict[str, Any]:
    """A template; the definitions of state machines are in definitions.json."""
    body = normal(template(context))
    for resource in body["Resources"].values():
        if "DefinitionString" in resource.get("Properties", {}):
            resource["Properties"]["DefinitionString"] = "<definition>"
    return dict(body)


def definitions() -> dict[str, Any]:
    """Each state machine's definition, with what is put in for its names."""
    found = {}
    for resource in template("mixed")["Resources"].values():
        if resource["Type"] == "AWS::StepFunctions::StateMachine":
            properties = resource["Properties"]
            names = flat(properties.get("DefinitionSubstitutions", {}))
            text = re.sub(
                r"\$\{(\w+)\}",
                lambda name, names=names: names[name[1]],
                properties["DefinitionString"],
            )
            found[properties["StateMachineName"].rpartition("-")[2]] = json.loads(text)
    return found


STATEFUL = {
    *("AWS::S3::Bucket", "AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::Logs::LogGroup"),
    *("AWS::SNS::Topic", "AWS::Glue::Database", "AWS::Glue::Table"),
}
NAMES = (
    *("FunctionName", "StateMachineName", "RoleName", "DashboardName", "AlarmName", "QueueName"),
    *("LogGroupName", "TableName", "BucketName", "TopicName", "LayerName", "Name"),
    *("ManagedPolicyName", "WorkGroup"),
)


def identities() -> dict[str, Any]:
    """By context: type, names and deletion policy of what is stateful or has a physical name."""
    return {context: identities_in(template(context)) for context in CONTEXTS}


def identities_in(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same, of one template."""
    found = {}
    for logical_id, resource in body["Resources"].items():
        properties = resource.get("Properties", {})
        names = {name: flat(properties[name]) for name in NAMES if name in properties}
        if names or resource["Type"] in STATEFUL:
            kept = {key: resource[key] for key in ("DeletionPolicy",) if key in resource}
            found[logical_id] = {"type": resource["Type"], **names, **kept}
    return found


# --- the command line


def options() -> dict[str, Any]:
    """Each command's options and arguments, whatever library parses them."""
    return {command: dict(sorted(found)) for command, found in options_of(parser(), "keyhop")}


def options_of(
    command: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """The adapter: all that knows argparse."""
    found = []
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child, sub in action.choices.items():
                yield from options_of(sub, f"{name} {child}")
        elif not isinstance(action, argparse._HelpAction):
            default = None if action.default == argparse.SUPPRESS else action.default
            told = {
                "options": sorted(action.option_strings),
                "default": default,
                "choices": list(action.choices) if action.choices else None,
                "required": action.required,
                "is_flag": action.nargs == 0,
            }
            found.append((max(action.option_strings, key=len, default=action.dest), told))
    yield name, found


# --- sentences of errors


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
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "problems.append":
                said |= {f"problem: {text}" for text in texts(node.args[0])}
    return sorted(said)


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


CAPTURES: dict[str, tuple[int, Callable[[], Any]]] = {
    "definitions.json": (4, definitions),
    **{
        f"templates/{context}.json": (2, lambda context=context: templates(context))
        for context in CONTEXTS
    },
    "identities.json": (2, identities),
    "options.json": (2, options),
    "errors.json": (1, errors),
}
"""By file: how deep it is opened into lines, and what is in it."""


def captured(name: str) -> str:
    """A file as it would be written now."""
    depth, capture = CAPTURES[name]
    return dump(capture(), depth) + "\n"


def main() -> None:
    """Renew the files."""
    asked = argparse.ArgumentParser(description="Renew the golden files.")
    asked.add_argument("--write", action="store_true", required=True)
    asked.add_argument("names", nargs="*", metavar="NAME")
    names = asked.parse_args().names or list(CAPTURES)
    for name in names:
        path = FILES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(captured(name), encoding="utf-8")
        print(path.relative_to(ROOT), file=sys.stderr)


if __name__ == "__main__":
    main()
