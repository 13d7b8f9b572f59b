"""The report as one JSON document: `keyhop report --format json`, and a baseline for the next.

The shapes are published as docs/schemas/Report.output.json. An infinite end and what is no number
are null: JSON has neither.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, TypedDict

from keyhop.report.estimate import Estimate
from keyhop.report.findings import Origin, Report, Severity, Status, worst_first
from keyhop.report.pages.pictures import EstimateJson, Pictures

SCHEMA: Literal["keyhop-report/1"] = "keyhop-report/1"
"""The number goes up when a field goes, or comes to mean something else; not when one is added."""

ReadUnits = Annotated[float | None, "read units, as DynamoDB charged them"]
Dollars = Annotated[float | None, "US dollars"]


class EvidenceJson(TypedDict):
    """One figure that was looked at; value is null where it could not be had."""

    source: Origin
    signal: str
    value: float | None
    low: float | None
    high: Annotated[float | None, "null also where there is no upper end"]
    threshold: Annotated[float | None, "against which it is held"]
    window: Annotated[float | None, "seconds that it covers"]
    n: Annotated[int, "observations"]
    rru: ReadUnits
    where: Annotated[str, "file and line, index, or digest of a key"]


class MoneyJson(TypedDict):
    """Null where it cannot be said."""

    today: Annotated[float | None, "US dollars a month"]
    advised: Annotated[float | None, "US dollars a month"]
    one_off: Dollars
    priced: Annotated[str, "the date of the prices"]


class AdviceJson(TypedDict):
    """What to do."""

    patterns: Annotated[list[str], "P1 to P20, as docs/key-patterns.md has them"]
    steps: list[str]
    command: Annotated[str, "to paste; empty for none"]
    cost: MoneyJson | None


class PriceJson(TypedDict):
    """What knowing would take."""

    rru: ReadUnits
    remedy: Annotated[str, "the flag or the setting; empty if there is none"]


class FindingJson(TypedDict):
    """What one rule says of one target."""

    id: Annotated[str, "of the rule, as A6"]
    title: str
    status: Status
    severity: Severity
    target: Annotated[str, "an index; empty for the table"]
    summary: str
    evidence: list[EvidenceJson]
    advice: AdviceJson | None
    price_of_knowing: PriceJson | None


class SpentJson(TypedDict):
    """What the report itself cost."""

    rru: ReadUnits
    requests: Annotated[int, "to all services"]
    dollars: Dollars
    seconds: float | None


class ReportJson(TypedDict):
    """A report; the findings are the worst first."""

    schema: Literal["keyhop-report/1"]
    table: Annotated[dict[str, Any], "the table as DescribeTable tells it"]
    at: Annotated[float | None, "epoch seconds"]
    spent: SpentJson
    estimates: dict[str, EstimateJson]
    findings: list[FindingJson]
    pictures: Pictures
    sources: Annotated[dict[str, str], "what was looked at, in words"]
    not_assessed: Annotated[list[str], "what cannot be seen from outside"]
    show_keys: Annotated[str, "how keys are written"]
    options: dict[str, Any]


def to_json(report: Report) -> dict[str, Any]:
    """A ReportJson, ready for json.dumps."""
    whole = plain(report)
    findings = [plain(finding) for finding in worst_first(report.findings)]
    for finding in findings:
        finding["price_of_knowing"] = finding.pop("price")
    return {"schema": SCHEMA, **whole, "findings": findings}


def plain(value: Any) -> Any:
    """Only what JSON has."""
    if isinstance(value, Estimate):
        return plain(value.to_json())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    return value
