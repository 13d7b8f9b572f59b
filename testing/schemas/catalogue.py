"""The shapes of inputs and outputs; `python -m testing.schemas.catalogue` writes docs/schemas."""

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


def _has(name: str, value: Any = True) -> Schema:
    """Return the schema of an object with this value in a field; `...` stands for any value."""
    schema: Schema = {"required": [name]}
    return schema if value is ... else {**schema, "properties": {name: {"const": value}}}


def _not_both(first: Schema, second: Schema) -> Schema:
    return {"not": {"allOf": [first, second]}}


def _only_with(condition: Schema, requirement: Schema) -> Schema:
    return {"if": condition, "then": requirement}


RESUME_OR_PLAN = _not_both(_has("resume", ...), _has("dryRun"))
_BY_INDEX = _has("method", "index")
KEYS_RULES = [
    _only_with({"properties": {"accept": {"minItems": 1}}, "required": ["accept"]}, _BY_INDEX),
    *(_only_with(_has(name, ...), _has("logical")) for name in ("separator", "metadata")),
    *(_not_both(_has("logical"), field) for field in (_has("index", ...), _has("dryRun"))),
    *(
        _not_both(_BY_INDEX, field)
        for field in (_has("index", ...), _has("dryRun"), _has("verifyShare", ...))
    ),
    _not_both(_has("index", ...), _has("verifyShare", ...)),
    RESUME_OR_PLAN,
]
"""The rules of KeysInput.contradictions for an input of EnumerateKeys, as schemas.

tests/unit/test_schemas.py compares the two.
"""

_KINDS = [_has(camel(kind), ...) for kind in KINDS]
_SENT = {"anyOf": [_has(name, ...) for name in ("invoke", "queue", "startMachine")]}
_ON_AN_ITEM = {"anyOf": [_has("update", ...), _has("delete")]}
EACH_RULES = [
    {"if": {"not": _has("resume", ...)}, "then": {"oneOf": _KINDS}},
    _only_with(_has("guard", ...), _has("put", ...)),
    _only_with(_has("overwrite"), _has("put", ...)),
    _not_both(
        _has("overwrite"),
        {"properties": {"guard": {"enum": ["none", "look"]}}, "required": ["guard"]},
    ),
    _only_with(_has("item", ...), _ON_AN_ITEM),
    *(_only_with(_has(name, ...), _has("update", ...)) for name in ("values", "names")),
    _only_with(_has("batch", ...), _SENT),
    _not_both(_has("undo", ...), _has("keys", ...)),
]
"""The rules of EachInput.contradictions for an input of ForEachKey, as schemas."""

REPORT_RULES = [
    _not_both(_has("exhaustive"), _has("controlPlaneOnly")),
    _not_both(_has("exhaustive"), _has("maxReadUnits", ...)),
    _not_both(
        _has("controlPlaneOnly"),
        {"properties": {"candidates": {"minItems": 1}}, "required": ["candidates"]},
    ),
]
"""The rules of ReportInput.contradictions for an input of ReportKeys, as schemas."""

PLAIN_KEY = [_only_with({"not": _has("typed")}, {"properties": {"key": {"type": "string"}}})]


@dataclass(frozen=True)
class Exchange:
    """A state machine or a function.

    Attributes:
        about: What it is, for the titles of the published schemas.
        input_shape: The shape of its input, or None if it ignores the input.
        output_shape: The shape of its output.
        required: The required fields that have a default in the shape.
        rules: The rules about combinations of fields.
    """

    about: str
    input_shape: type | None
    output_shape: Any
    required: tuple[str, ...] = ()
    rules: tuple[Schema, ...] = ()

    def input(self) -> Schema:
        if self.input_shape is None:
            return {"description": "Anything: it is not looked at."}
        return of_input(self.input_shape, self.required, [*self.rules])

    def output(self, strict: bool = False) -> Schema:
        return of_output(self.output_shape, strict)


EXCHANGES: Mapping[str, Exchange] = {
    "EnumerateKeys": Exchange(
        "state machine: the keys of a table",
        KeysInput,
        outputs.Run | outputs.Estimate,
        rules=tuple(KEYS_RULES),
    ),
    "ForEachKey": Exchange(
        "state machine: something once for each key of a table",
        EachInput,
        outputs.EachRun | outputs.EachEstimate | outputs.VisitsEstimate,
        rules=tuple(EACH_RULES),
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
        rules=(RESUME_OR_PLAN,),
    ),
    "RekeyVerify": Exchange(
        "state machine: compare, and repair, the two tables of a re-key",
        VerifyInput,
        outputs.VerifyRun | outputs.CompareEstimate | outputs.Skipped,
        rules=(RESUME_OR_PLAN,),
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
        rules=tuple(REPORT_RULES),
    ),
    "SampleKeys": Exchange(
        "state machine, started by ReportKeys: a sample of a table's data",
        ReportInput,
        outputs.Run,
        rules=tuple(REPORT_RULES),
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
"""The outputs that only a command has."""


def files() -> dict[str, str]:
    """Return the contents of the published files by name."""
    contents = {}
    for name, exchange in EXCHANGES.items():
        for way, schema in (("input", exchange.input()), ("output", exchange.output())):
            title = f"{way.capitalize()} of {name}, a {exchange.about}"
            schema = {"$schema": DIALECT, "title": title, **schema}
            contents[f"{name}.{way}.json"] = json.dumps(schema, indent=2) + "\n"
    for name, (about, shape) in DOCUMENTS.items():
        schema = {"$schema": DIALECT, "title": about, **of_output(shape)}
        contents[f"{name}.output.json"] = json.dumps(schema, indent=2) + "\n"
    return contents


def main() -> None:
    """Replace the published files."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, content in files().items():
        (FOLDER / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
