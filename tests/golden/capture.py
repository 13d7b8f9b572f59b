"""What Keyhop does today, as JSON: the only place of the golden tests that knows project code.

    python -m tests.golden.capture --write [NAME ...]    renews files/, or the files so named

A file is captured through public interfaces, and normalised (normal.py). The runs in files/layout2
are of the version that wrote them: they are never renewed.
"""

import argparse
import ast
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import pytest
from keyhop.cli.main import command
from keyhop.errors import BudgetSpent
from keyhop.jobs.failure import RunFailed
from keyhop.jobs.runs import Deployment, Runs
from keyhop.key_index.sentinel import Sentinel
from keyhop.storage.s3 import s3_client
from moto import mock_aws

from testing.databases import BY_DAY, Database, keyhop
from testing.key_index_tables import table_of
from testing.servers import dynamodb_local
from testing.standin.server import running
from tests.golden.normal import dump, normal, pattern_of, shape, text
from tests.infra.conftest import deployed, stack_of
from tests.integration.fleet.test_logical import through
from tests.integration.key_index.test_fleet import Machines
from tests.machine import Machine

HERE = Path(__file__).parent
FILES = HERE / "files"
ROOT = HERE.parents[1]
CONTEXTS: dict[str, Any] = json.loads((HERE / "contexts.json").read_text())
COMMANDS: dict[str, Any] = json.loads((HERE / "commands.json").read_text())
SOURCES = ("lambdas", "infra", "local")


# --- the deployment


def template(context: str) -> dict[str, Any]:
    """The template of a context, without the layer being built."""
    return dict(deployed(stack_of(CONTEXTS[context])).body)


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
            definition = re.sub(
                r"\$\{(\w+)\}",
                lambda name, names=names: names[name[1]],
                properties["DefinitionString"],
            )
            found[properties["StateMachineName"].rpartition("-")[2]] = json.loads(definition)
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
        # Glue has the names one level deeper.
        properties = properties.get("TableInput", properties.get("DatabaseInput", properties))
        names = {name: flat(properties[name]) for name in NAMES if name in properties}
        if names or resource["Type"] in STATEFUL:
            kept = {key: resource[key] for key in ("DeletionPolicy",) if key in resource}
            found[logical_id] = {"type": resource["Type"], **names, **kept}
    return found


# --- the command line


def options() -> dict[str, Any]:
    """Each command's options and arguments, whatever library parses them."""
    return {name: dict(sorted(found)) for name, found in options_of(command, "keyhop")}


def options_of(group: click.Command, name: str) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """The adapter: all that knows click."""
    found = []
    for parameter in group.params:
        info = parameter.to_info_dict()
        names = parameter.opts if isinstance(parameter, click.Option) else []
        description = {
            "options": sorted(names),
            "default": info["default"],
            "choices": info["type"].get("choices"),
            "required": parameter.required,
            "is_flag": info.get("is_flag", False),
        }
        found.append((max(names, key=len, default=parameter.name), description))
    yield name, found
    for child, sub in getattr(group, "commands", {}).items():
        yield from options_of(sub, f"{name} {child}")


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
            elif isinstance(node, ast.Call) and called(node) == "Must":
                said |= {f"must be {one}" for one in texts(node.args[1])}
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "problems.append":
                said |= {f"problem: {one}" for one in texts(node.args[0])}
            elif isinstance(node, ast.FunctionDef) and node.name in SPOKEN:
                said |= {f"problem: {one}" for one in spoken(node)}
    return sorted(said)


SPOKEN = {"_contradictions", "_sentences", "too_slow"}
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


# --- runs


@contextmanager
def somewhere() -> Iterator[tuple[Path, pytest.MonkeyPatch]]:
    """An empty directory, and an environment without anybody's settings."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            patch.setenv(name, "us-east-1")
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, os.devnull)
        for name in ("AWS_PROFILE", "KEYHOP_DEBUG"):
            patch.delenv(name, raising=False)
        patch.setenv("XDG_STATE_HOME", f"{folder}/state")
        yield Path(folder), patch


@contextmanager
def stand_in() -> Iterator[Database]:
    """A stand-in with the table Orders, which is the same one whenever it is made."""
    with running() as server:
        database = Database("stand_in", server.url)
        for name in ("Orders", "Flat"):
            database.create(name, **BY_DAY, **({"sort": None} if name == "Flat" else {}))
            server.service.tables[name].created = 1_700_000_000.0
        database.fill("Orders", items())
        yield database


def items() -> Iterator[dict[str, Any]]:
    """40 partition keys, most of which are shards of 8 logical keys; two keys of the index."""
    for number in range(40):
        pk = f"/f{number % 8}.txt_{number // 8 + 1}" if number < 36 else f"/plain{number}"
        for item in range(1 + number % 3 * 4):
            day = {"day": {"S": f"day{number % 2}"}} if item else {}
            yield {"pk": {"S": pk}, "sk": {"S": f"{item:03}"}, "x": {"S": "x" * 1500}, **day}


KEYS = sorted({item["pk"]["S"] for item in items()})
RUNS: dict[str, tuple[str, ...]] = {
    "skip": (),
    "scan as csv": ("--method", "scan", "--format", "csv"),
    "index": ("--index", "by-day"),
    "logical": ("--logical",),
    "stopped": ("--max-read-units", "13"),
    "verified": ("--verify", "1"),
}


def command_runs() -> dict[str, Any]:
    """What `keyhop keys Orders --output DIR --report FILE` leaves behind."""
    found = {}
    with somewhere() as (folder, _), stand_in() as database:
        for name, arguments in RUNS.items():
            path, report = folder / name, folder / "report.json"
            where = ("--output", str(path), "--report", str(report))
            how = ("--segments", "4", "--workers", "1")
            result = database.keys("Orders", *where, *how, *arguments)
            told = json.loads(report.read_text().replace(str(folder), "<place>"))
            files = {str(p.relative_to(path)): p for p in path.rglob("*") if p.is_file()}
            content = {file: at.read_bytes() for file, at in files.items()}
            found[name] = {
                "status": result.status,
                "report": normal(told),
                "summary": sorted(set(re.findall(r"(?m)^  ([a-z]+) ", result.err))),
                **run_files(content),
            }
    return found


def run_files(content: Mapping[str, bytes]) -> dict[str, Any]:
    """A run's files, by their names within the run."""
    names = sorted(name for name in content if name.startswith("commits/"))
    commits = [json.loads(content[name]) for name in names]
    # How many slices there are depends on time, and so does where those in between leave off.
    lasting = [commit for commit in commits if commit["finished"]] or commits[-1:]
    found: dict[str, Any] = {
        "files": sorted({pattern_of(name) for name in content}),
        "commits": shape(lasting),
        "commits_say": {
            "keys": sum(
                block[1] for c in commits for part in c["parts"] for block in part["blocks"]
            ),
            "ended": sum(commit["ended"] for commit in commits),
            "groups": len({commit["group"] for commit in commits}),
        },
    }
    for name in ("run.json", "manifest.json", "progress.json", "fold.json"):
        if name in content:
            told = json.loads(content[name])
            for listed in ("parts", "files"):
                if isinstance(told.get(listed), list):
                    told[listed] = shape(told[listed])
            told["ledger"] = shape([told["ledger"]]) if "ledger" in told else "no ledger"
            found[name] = normal(told)
    return found


@contextmanager
def machine_on(database: Database, table: str) -> Iterator[Machine]:
    """The fleet on a table, with S3 by moto."""
    with somewhere() as (_, patch), mock_aws():
        patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", database.url)
        s3 = s3_client()
        s3.create_bucket(Bucket="results")
        yield Machine(Deployment(Runs(s3, "results"), [table]))


def objects(machine: Machine) -> dict[str, bytes]:
    """All that is in the bucket."""
    pages = machine.runs.s3.get_paginator("list_objects_v2").paginate(Bucket=machine.runs.bucket)
    keys = [found["Key"] for page in pages for found in page.get("Contents", ())]
    return {key: machine.object(key) for key in keys}


FLEET: dict[str, dict[str, Any]] = {
    "plain": {},
    "scan as csv": {"method": "scan", "format": "csv"},
    "verified": {"verifyShare": 1},
    "logical": {"logical": True},
    "index": {"index": "by-day"},
}


def fleet_runs() -> dict[str, Any]:
    """What executions of EnumerateKeys put out, and leave in the bucket."""
    found: dict[str, Any] = {}
    with stand_in() as database, machine_on(database, "Orders") as machine:
        planned = machine.start({"table": "Orders", "planOnly": True}, name="plan")
        found["plan only"] = {"output": shape([planned])}
        for number, (name, more) in enumerate(FLEET.items()):
            run = f"run-{number}"
            output = through(machine, {"table": "Orders", "segments": 64, **more}, run)
            prefix = f"runs/{run}/"
            there = {k.removeprefix(prefix): v for k, v in objects(machine).items() if prefix in k}
            found[name] = {"output": normal(output), **run_files(there)}
        found["bucket"] = sorted({pattern_of(key).partition("/")[0] for key in objects(machine)})
    return found


def key_indexes() -> dict[str, Any]:
    """What the state machines of the key index put out, and what `keyhop index` reports."""
    with dynamodb_local() as url:
        database = Database("dynamodb_local", url)
        return {"machines": index_machines(database), "command": index_command(database)}


def index_machines(database: Database) -> dict[str, Any]:
    """BuildKeyIndex, AuditKeyIndex, RemoveKeyIndex, with drift in between."""
    database.collections("ByMachine", [1, 6, 2] * 10)
    found: dict[str, Any] = {}
    with machine_on(database, "ByMachine") as machine:
        machine.places = {"ByMachine": None}
        machines = Machines(machine)
        given = {"table": "ByMachine", "graceSeconds": 0, "maxWriteRate": 10_000}

        def act(name: str, action: str, more: Mapping[str, Any]) -> None:
            told = machines.start(action, {**given, **more})
            found[name] = shape([told]) if "planOnly" in more else normal(told)

        act("plan", "build", {"planOnly": True})
        act("build", "build", {})
        harm(database, "ByMachine")
        act("look", "audit", {"repair": False})
        act("audit", "audit", {})
        found["not yet by index"] = normal(machine.start({"table": "ByMachine"}, name="by-skip"))
        act("audit again", "audit", {})
        found["by index"] = normal(machine.start({"table": "ByMachine"}, name="by-index"))
        found["bucket"] = sorted({pattern_of(key) for key in objects(machine)})
        given = {"table": "ByMachine"}
        act("remove", "remove", {})
        act("remove again", "remove", {})
    return found


def harm(database: Database, table: str) -> None:
    """Two collections lose their sentinels, and there is one of no collection."""
    sentinel = Sentinel.of(table_of(database, table).space)
    for name in ("k3", "k4"):
        key = sentinel.key_of({"pk": {"S": name}})
        database.client.delete_item(TableName=table, Key=key)
    alone = sentinel.item_of({"pk": {"S": "nobody"}})
    database.client.put_item(TableName=table, Item=alone)


def index_command(database: Database) -> dict[str, Any]:
    """`keyhop index`: exit statuses and reports; the state in the user's folder."""
    database.collections("ByHand", [1, 6, 2] * 10)
    found = {}
    with somewhere() as (folder, _):
        report = folder / "report.json"
        for name, *arguments in (
            ("plan", "build", "--plan"),
            ("build", "build"),
            ("look", "audit", "--no-repair", "--grace", "0"),
            ("audit", "audit", "--grace", "0"),
            ("status", "status"),
            ("remove", "remove"),
            ("status after all", "status"),
        ):
            if name == "look":
                harm(database, "ByHand")
            where = ("--endpoint-url", database.url, "--report", str(report), "--quiet")
            result = keyhop("index", arguments[0], "ByHand", *arguments[1:], *where)
            told = json.loads(report.read_text()) if report.exists() else None
            found[name] = {
                "status": result.status,
                "report": shape([told]) if name == "plan" else normal(told),
                "state": files_in(folder / "state"),
            }
            report.unlink(missing_ok=True)
    return found


def files_in(folder: Path) -> list[str]:
    """Patterns of the names below a folder, without the hash of a table's identity."""
    names = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return sorted({re.sub(r"-[0-9a-f]{8,}(?=/)", "-<hash>", name) for name in names})


# --- exit statuses


def exit_statuses() -> dict[str, Any]:
    """For each command line: the exit status, and what our own checks say."""
    found: dict[str, Any] = {}
    with somewhere() as (folder, _), stand_in() as database:
        (folder / "file").touch()
        how = ("--segments", "4", "--workers", "1")
        database.keys("Orders", "--output", f"{folder}/done", *how)
        database.keys("Orders", "--output", f"{folder}/begun", "--max-read-units", "13", *how)
        places = {"{url}": database.url, "{place}": str(folder)}
        for kind, cases in COMMANDS.items():
            for name, arguments in cases.items():
                given = [
                    re.sub(r"\{\w+\}", lambda place: places[place[0]], one) for one in arguments
                ]
                found[f"{kind}: {name}"] = ended(kind, given, places)
        found["told: stdout is closed"] = closed(database)
    return found


def ended(kind: str, given: list[str], places: Mapping[str, str]) -> dict[str, Any]:
    """One command line; what its parser says is the library's own."""
    result = keyhop(*given)
    told: dict[str, Any] = {"status": result.status}
    if kind == "told":
        lines = [line for line in result.err.splitlines() if line.startswith("keyhop: ")]
        said = "\n".join(lines).replace(places["{place}"], "<place>")
        told["says"] = text(said.replace(places["{url}"], "<endpoint>"))
    if kind == "done":
        told["prints"] = bool(result.out)
    return told


def closed(database: Database) -> dict[str, Any]:
    """The command with a closed standard output."""
    command = f"'{sys.executable}' -m keyhop keys Orders --endpoint-url {database.url} >&-"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return {"status": result.returncode, "says": result.stderr.strip()}


# --- stored runs of layout version 2

LAYOUT = FILES / "layout2"


def write_layout() -> None:
    """Store runs of this version; only ever for a new layout version."""
    shutil.rmtree(LAYOUT, ignore_errors=True)
    how = ("--segments", "4", "--workers", "1")
    with somewhere(), stand_in() as database:
        database.keys("Orders", "--output", str(LAYOUT / "finished"), *how)
        place = str(LAYOUT / "unfinished")
        database.keys("Orders", "--output", place, "--max-read-units", "13", *how)
        for lock in LAYOUT.rglob(".lock"):
            lock.unlink()
    for name, limit in (("finished", {}), ("unfinished", {"maxReadUnits": 30})):
        with stand_in() as database, machine_on(database, "Orders") as machine:
            given = {"table": "Orders", "segments": 64, "maxConcurrency": 1, **limit}
            fleet_run(machine, given)
            for key, content in objects(machine).items():
                path = LAYOUT / f"s3-{name}" / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)


def fleet_run(machine: Machine, given: dict[str, Any]) -> None:
    """An execution to its end, which may be that its budget is spent."""
    execution = machine.execution("stored")
    state = machine.plan(given, execution)
    try:
        machine.go_on(state, execution)
    except BudgetSpent as spent:
        state["failure"] = {"Error": "BudgetSpent", "Cause": str(spent)}
        with suppress(RunFailed):
            machine.clean_up(state, execution, "2026-11-21T10:00:00.000Z")


def resumed(name: str) -> tuple[int, str, list[str]]:
    """`keyhop keys --resume` on a copy of a stored run: status, what it says, the keys it lists."""
    with somewhere() as (folder, _), stand_in() as database:
        place = folder / "stored"
        shutil.copytree(LAYOUT / name, place)
        result = database.keys("Orders", "--output", str(place), "--resume")
        manifest = place / "manifest.json"
        parts = json.loads(manifest.read_text())["parts"] if manifest.exists() else ()
        files = [(place / part["name"]).read_text() for part in parts]
        lines = [line for file in files for line in file.splitlines()]
        return result.status, result.err, sorted(json.loads(line)["pk"]["S"] for line in lines)


def resumed_in_s3(name: str, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """The fleet's resume of a stored run: its output, and the keys that the run lists."""
    with stand_in() as database, machine_on(database, "Orders") as machine:
        stored = LAYOUT / f"s3-{name}"
        for path in stored.rglob("*"):
            if path.is_file():
                key = str(path.relative_to(stored))
                machine.runs.s3.put_object(Bucket="results", Key=key, Body=path.read_bytes())
        output = machine.start({"table": "Orders", "resume": "stored", **more}, name="again")
        return output, sorted(key["pk"]["S"] for key in machine.keys("stored"))


# --- all of it

CAPTURES: dict[str, tuple[int, Callable[[], Any]]] = {
    "definitions.json": (4, definitions),
    **{
        f"templates/{context}.json": (2, lambda context=context: templates(context))
        for context in CONTEXTS
    },
    "identities.json": (2, identities),
    "options.json": (2, options),
    "errors.json": (1, errors),
    "exit_statuses.json": (1, exit_statuses),
    "runs/command.json": (2, command_runs),
    "runs/fleet.json": (2, fleet_runs),
    "runs/key_index.json": (2, key_indexes),
}
"""By file: how deep it is opened into lines, and what is in it."""


def captured(name: str) -> str:
    """A file as it would be written now."""
    depth, capture = CAPTURES[name]
    return dump(capture(), depth) + "\n"


def main() -> None:
    """Renew the files."""
    asked = argparse.ArgumentParser(description="Renew the golden files.")
    asked.add_argument("--write", action="store_true", help="the files that are compared")
    asked.add_argument("--write-layout", action="store_true", help="the stored runs")
    asked.add_argument("names", nargs="*", metavar="NAME")
    options = asked.parse_args()
    if options.write_layout:
        write_layout()
    for name in (options.names or CAPTURES) if options.write else ():
        path = FILES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(captured(name), encoding="utf-8")
        print(path.relative_to(ROOT), file=sys.stderr)


if __name__ == "__main__":
    main()
