"""Contributor Insights (C): the keys of a table that are accessed and throttled most.

It is read if it is on, and never turned on: that costs money for each event, and publishes keys in
plain text to CloudWatch. DynamoDB creates and names its rules: PKC and PKT for accessed and
throttled partition keys, SKC and SKT for items ("Contributor Insights: How it works"). The mode for
throttled keys has only the T rules. No rule includes PartiQL, or throttled writes of an index.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.tables import request
from keyhop.dynamodb.values import Key, TypedValue, is_number
from keyhop.report.facts import TABLE, Absent, HotKey, InsightFacts, Shown, TableFacts
from keyhop.report.findings import Spent
from keyhop.report.sources.absence import (
    FAILURES,
    INDEX_ARN,
    RULE_ARN,
    TABLE_ARN,
    Looked,
    why_absent,
)

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "dynamodb:DescribeContributorInsights": (TABLE_ARN, INDEX_ARN),
    "cloudwatch:GetInsightRuleReport": (RULE_ARN,),
}
DEFAULT_HOURS = 3.0
MOST_HOURS = 24.0
MOST_CONTRIBUTORS = 25
"""The maximum for rules of DynamoDB; CloudWatch accepts 100 for other rules."""
TOO_LONG = "InvalidParameterValue"
"""The error code for a report over too long a time. The longest time is not documented; the console
offers a day, and shows three hours."""
MINUTE = 60
PATIENCE_SECONDS = 10.0
DOLLARS_PER_REPORT = 0.01 / 1000
"""GetInsightRuleReport costs as much as a requested metric (CloudWatch pricing, 2026-08)."""
ON = "ENABLED"

_RULE = re.compile(r"DynamoDBContributorInsights-(?P<kind>PKC|SKC|PKT|SKT)-.+")
_READ = ("PKC", "SKC", "PKT")


@dataclass(slots=True)
class _Reports:
    """The reports that were read, by kind and target, and the refused requests."""

    by_kind: dict[str, dict[str, tuple[HotKey, ...]]] = field(
        default_factory=lambda: {kind: {} for kind in _READ}
    )
    requests: int = 0
    reports: int = 0
    refusals: list[Absent] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not any(self.by_kind.values())

    @property
    def spent(self) -> Spent:
        dollars = self.reports * DOLLARS_PER_REPORT
        return Spent(0.0, self.requests + self.reports, dollars, 0.0)


def look(
    client: Any | Absent,
    connection: Connection,
    table: TableFacts,
    now: float,
    show: Callable[[Key], Shown],
    hours: float = DEFAULT_HOURS,
) -> Looked[InsightFacts]:
    """Return the facts of the table and of each GSI whose Contributor Insights is on.

    A target that is refused is missing. If every target is refused, the result is Absent.

    Args:
        client: The client of boto3 for CloudWatch.
        connection: The connection to DynamoDB.
        table: The table.
        now: The time in epoch seconds.
        show: Writes a key.
        hours: The hours to look back, up to 24.
    """
    targets = _targets(table)
    if not targets:
        return Looked(_why_off(table))
    if isinstance(client, Absent):
        return Looked(client)
    ended = now // MINUTE * MINUTE
    began = ended - min(hours, MOST_HOURS) * 3600
    reports = _Reports()
    for target in targets:
        try:
            _read(client, connection, table, target, (began, ended), show, reports)
        except FAILURES as error:
            if error_code(error) == TOO_LONG and hours > DEFAULT_HOURS:
                return look(client, connection, table, now, show)
            action = "cloudwatch:GetInsightRuleReport"
            reports.refusals.append(why_absent(error, "Contributor Insights", action))
    if reports.is_empty:
        nothing = Absent(
            "Contributor Insights is on, but has no data yet",
            "run the report again in a few hours",
        )
        return Looked(next(iter(reports.refusals), nothing), reports.spent)
    facts = InsightFacts(
        began,
        ended,
        accessed=reports.by_kind["PKC"],
        items=reports.by_kind["SKC"],
        throttled=reports.by_kind["PKT"],
    )
    return Looked(facts, reports.spent)


def _targets(table: TableFacts) -> list[str]:
    indexes = [index.name for index in table.indexes if index.insights == ON]
    return [TABLE, *indexes] if table.insights == ON else indexes


def _why_off(table: TableFacts) -> Absent:
    if (untold := table.untold.get("insights")) is not None:
        return untold
    return Absent(
        f"Contributor Insights is {(table.insights or 'off').lower()}",
        "turn it on, preferably for throttled keys (aws dynamodb update-contributor-insights "
        f"--table-name {table.name} --contributor-insights-action ENABLE "
        "--contributor-insights-mode THROTTLED_KEYS), and run the report after a busy hour",
    )


def _read(
    client: Any,
    connection: Connection,
    table: TableFacts,
    target: str,
    window: tuple[float, float],
    show: Callable[[Key], Shown],
    reports: _Reports,
) -> None:
    """Read all reports of one target. Raise any error of the clients."""
    began, ended = window
    where = {} if target == TABLE else {"IndexName": target}
    reports.requests += 1
    operation = "describe_contributor_insights"
    name = table.arn if table.by_arn else table.name
    description = request(connection, name, operation, PATIENCE_SECONDS, **where)
    created = description.get("LastUpdateDateTime")
    is_older = created is not None and created.timestamp() <= began
    for kind, rule in rules_by_kind(description.get("ContributorInsightsRuleList", ())).items():
        reports.reports += 1
        report = client.get_insight_rule_report(
            RuleName=rule,
            StartTime=datetime.fromtimestamp(began, UTC),
            EndTime=datetime.fromtimestamp(ended, UTC),
            Period=MINUTE,
            MaxContributorCount=MOST_CONTRIBUTORS,
            OrderBy="Maximum",
        )
        keys = hot_keys(report, attributes(table, target), show)
        # If the rule is older than the window, an empty report means that no key was throttled.
        # No accessed key may mean that the rule does not see this traffic.
        if keys or (kind == "PKT" and is_older):
            reports.by_kind[kind][target] = keys


def rules_by_kind(names: Iterable[str]) -> dict[str, str]:
    """Return the rules that are read, by their kind: PKC, SKC and PKT. Pure."""
    matches = [match for match in map(_RULE.fullmatch, names) if match]
    return {match["kind"]: match[0] for match in matches if match["kind"] in _READ}


def attributes(table: TableFacts, target: str) -> list[tuple[str, str]]:
    """Return names and types of the key attributes of a target, partition keys first. Pure."""
    index = table.index(target)
    names = [table.partition, table.sort]
    if index is not None:
        names = [*index.partition, *index.sort]
    return [(name, table.types.get(name, "S")) for name in names if name]


def hot_keys(
    report: Mapping[str, Any],
    names: Sequence[tuple[str, str]],
    show: Callable[[Key], Shown],
) -> tuple[HotKey, ...]:
    """Return the keys in a GetInsightRuleReport, the busiest first. Pure.

    Args:
        report: The response.
        names: The result of `attributes`.
        show: Writes a key.
    """
    hot_keys = []
    for contributor in report.get("Contributors", ()):
        values = [point["ApproximateValue"] for point in contributor["Datapoints"]]
        pairs = zip(names, contributor["Keys"], strict=False)
        key = {name: _typed(type_, text) for (name, type_), text in pairs}
        if key and values:
            hot_keys.append(HotKey(show(key), float(max(values)), float(sum(values))))
    return tuple(sorted(hot_keys, key=lambda hot: -hot.units))


def _typed(type_: str, text: str) -> TypedValue:
    """Return a value from its text in CloudWatch.

    How CloudWatch writes binary keys is not documented, so they remain texts.
    """
    return {"N": text} if type_ == "N" and is_number(text) else {"S": text}
