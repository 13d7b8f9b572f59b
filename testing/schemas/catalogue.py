"""Who takes and puts out what; writes docs/schemas: `python -m testing.schemas.catalogue`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handlers.sharding_requests import MoveRequest, QueryRequest, WriteRequest
from keyhop.checks import camel
from keyhop.each.request import KINDS, EachInput
from keyhop.key_index.request import Build, Remove, Verify, WalkInput
from keyhop.keys.request import KeysInput
from keyhop.rekey.request import BackfillInput, CutOverInput, VerifyInput
from keyhop.report.pages.document import ReportJson
from keyhop.report.request import ReportInput

from testing.schemas import outputs
from testing.schemas.shapes import Schema, of_input, of_output

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _says(name: str, value: Any = True) -> Schema:
    """That a field is given, with this value; any value: ..."""
    says: Schema = {"required": [name]}
    return says if value is ... else {**says, "properties": {name: {"const": value}}}


def _not_both(one: Schema, other: Schema) -> Schema:
    return {"not": {"allOf": [one, other]}}


def _only_with(one: Schema, other: Schema) -> Schema:
    return {"if": one, "then": other}


NO_PLAN_OF_A_RUN = _not_both(_says("resume", ...), _says("dryRun"))
_BY_INDEX = _says("method", "index")
TOGETHER = [
    _only_with({"properties": {"accept": {"minItems": 1}}, "required": ["accept"]}, _BY_INDEX),
    *(_only_with(_says(name, ...), _says("logical")) for name in ("separator", "metadata")),
    *(_not_both(_says("logical"), one) for one in (_says("index", ...), _says("dryRun"))),
    *(
        _not_both(_BY_INDEX, one)
        for one in (_says("index", ...), _says("dryRun"), _says("verifyShare", ...))
    ),
    _not_both(_says("index", ...), _says("verifyShare", ...)),
    _not_both(_says("resume", ...), _says("dryRun")),
]
"""What goes together in an input of EnumerateKeys, as KeysInput.contradictions has it;
tests/unit/test_schemas.py holds them together."""

_KINDS = [_says(camel(kind), ...) for kind in KINDS]
_SENT = {"anyOf": [_says(name, ...) for name in ("invoke", "queue", "startMachine")]}
_ON_AN_ITEM = {"anyOf": [_says("update", ...), _says("delete")]}
ONE_THING = [
    {"if": {"not": _says("resume", ...)}, "then": {"oneOf": _KINDS}},
    _only_with(_says("guard", ...), _says("put", ...)),
    _only_with(_says("overwrite"), _says("put", ...)),
    _not_both(
        _says("overwrite"),
        {"properties": {"guard": {"enum": ["none", "look"]}}, "required": ["guard"]},
    ),
    _only_with(_says("item", ...), _ON_AN_ITEM),
    *(_only_with(_says(name, ...), _says("update", ...)) for name in ("values", "names")),
    _only_with(_says("batch", ...), _SENT),
    _not_both(_says("undo", ...), _says("keys", ...)),
]
"""What goes together in an input of ForEachKey, as EachInput.contradictions has it."""

OF_A_REPORT = [
    _not_both(_says("exhaustive"), _says("controlPlaneOnly")),
    _not_both(_says("exhaustive"), _says("maxReadUnits", ...)),
    _not_both(
        _says("controlPlaneOnly"),
        {"properties": {"candidates": {"minItems": 1}}, "required": ["candidates"]},
    ),
]
"""What goes together in an input of ReportKeys, as ReportInput.contradictions has it."""

PLAIN_KEY = [_only_with({"not": _says("typed")}, {"properties": {"key": {"type": "string"}}})]


@dataclass(frozen=True)
class Exchange:
    """A state machine or a function. takes: the shape of its input, None for anything. required:
    fields that the shape alone does not demand."""

    about: str
    takes: type | None
    puts_out: Any
    required: tuple[str, ...] = ()
    rules: tuple[Schema, ...] = ()

    def input(self) -> Schema:
        if self.takes is None:
            return {"description": "Anything: it is not looked at."}
        return of_input(self.takes, self.required, [*self.rules])

    def output(self, strict: bool = False) -> Schema:
        return of_output(self.puts_out, strict)


EXCHANGES: Mapping[str, Exchange] = {
    "EnumerateKeys": Exchange(
        "state machine: the keys of a table",
        KeysInput,
        outputs.Run | outputs.Estimate,
        rules=tuple(TOGETHER),
    ),
    "ForEachKey": Exchange(
        "state machine: something once for each key of a table",
        EachInput,
        outputs.EachRun | outputs.EachEstimate | outputs.VisitsEstimate,
        rules=tuple(ONE_THING),
    ),
    "WalkKeyIndexes": Exchange(
        "state machine, started by the three of the key index: a walk over a table",
        WalkInput,
        outputs.Run,
    ),
    "BuildKeyIndex": Exchange(
        "state machine: a key index for a table", Build, outputs.Build | outputs.BuildEstimate
    ),
    "VerifyKeyIndex": Exchange(
        "state machine: compare a key index with its table",
        Verify,
        outputs.Verify | outputs.Skipped,
    ),
    "RemoveKeyIndex": Exchange(
        "state machine: a table as it was before its key index",
        Remove,
        outputs.Removed | outputs.Skipped,
    ),
    "RekeyBackfill": Exchange(
        "state machine: all items of a table into another, under another key",
        BackfillInput,
        outputs.BackfillRun | outputs.EachEstimate | outputs.Estimate,
        rules=(NO_PLAN_OF_A_RUN,),
    ),
    "RekeyVerify": Exchange(
        "state machine: compare, and repair, the two tables of a re-key",
        VerifyInput,
        outputs.VerifyRun | outputs.CompareEstimate | outputs.Skipped,
        rules=(NO_PLAN_OF_A_RUN,),
    ),
    "RekeyCutOver": Exchange(
        "state machine: the other table of a re-key serves; a cutover, or a rollback",
        CutOverInput,
        outputs.CutOverEnd,
    ),
    "ReportKeys": Exchange(
        "state machine: what is wrong with the keys of a table",
        ReportInput,
        outputs.ReportRun | outputs.ReportEstimate,
        rules=tuple(OF_A_REPORT),
    ),
    "SampleKeys": Exchange(
        "state machine, started by ReportKeys: a sample of a table's data",
        ReportInput,
        outputs.Run,
        rules=tuple(OF_A_REPORT),
    ),
    "DrainShards": Exchange(
        "state machine: fewer shards for a key",
        MoveRequest,
        outputs.DrainState,
        ("key",),
        tuple(PLAIN_KEY),
    ),
    "WriteSharded": Exchange(
        "function: write items over the shards of their keys",
        WriteRequest,
        outputs.Written,
        ("items",),
    ),
    "QuerySharded": Exchange(
        "function: read all shards of a key as one",
        QueryRequest,
        outputs.Page,
        ("key",),
        tuple(PLAIN_KEY),
    ),
    "ProposeDrains": Exchange(
        "function: which keys have more shards than they need", None, list[outputs.Proposal]
    ),
}

DOCUMENTS: Mapping[str, tuple[str, Any]] = {
    "Report": ("The document of keyhop report --format json", ReportJson),
}
"""What a command alone puts out."""


def files() -> dict[str, str]:
    """The published files, by name."""
    found = {}
    for name, exchange in EXCHANGES.items():
        for way, schema in (("input", exchange.input()), ("output", exchange.output())):
            title = f"{way.capitalize()} of {name}, a {exchange.about}"
            whole = {"$schema": DIALECT, "title": title, **schema}
            found[f"{name}.{way}.json"] = json.dumps(whole, indent=2) + "\n"
    for name, (about, shape) in DOCUMENTS.items():
        whole = {"$schema": DIALECT, "title": about, **of_output(shape)}
        found[f"{name}.output.json"] = json.dumps(whole, indent=2) + "\n"
    return found


def main() -> None:
    """Write the files anew."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, content in files().items():
        (FOLDER / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
