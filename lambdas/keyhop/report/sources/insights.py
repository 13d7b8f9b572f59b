"""Contributor Insights (C): the keys of a table that are accessed and throttled most.

It is read where it is on, and never turned on: that costs by the event, and publishes keys in
plain text to CloudWatch. DynamoDB makes its rules, and names them: PKC and PKT for partition keys
accessed and throttled, SKC and SKT for items ("Contributor Insights: How it works"). In the mode
for throttled keys there are the T rules alone. PartiQL and an index's throttled writes are in none.
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
"""More are refused for rules that DynamoDB made, though CloudWatch has 100 of others."""
TOO_LONG = "InvalidParameterValue"
"""With which a report over too long a time would be refused: how long it may be is not documented;
the console offers a day, and shows three hours."""
MINUTE = 60
PATIENCE_SECONDS = 10.0
DOLLARS_PER_REPORT = 0.01 / 1000
"""GetInsightRuleReport is charged as a metric that is requested (CloudWatch pricing, 2026-08)."""
ON = "ENABLED"

_RULE = re.compile(r"DynamoDBContributorInsights-(?P<kind>PKC|SKC|PKT|SKT)-.+")
_READ = ("PKC", "SKC", "PKT")


@dataclass(slots=True)
class _Found:
    """What has been read so far, by target."""

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
    """Of the table and of each GSI where Contributor Insights is on, over the last hours, 24 at
    most. client: boto3's of CloudWatch. A refusal of all is Absent; of one target, it lacks.
    """
    targets = _targets(table)
    if not targets:
        return Looked(_why_off(table))
    if isinstance(client, Absent):
        return Looked(client)
    ended = now // MINUTE * MINUTE
    began = ended - min(hours, MOST_HOURS) * 3600
    found = _Found()
    for target in targets:
        try:
            _read(client, connection, table, target, (began, ended), show, found)
        except FAILURES as error:
            if error_code(error) == TOO_LONG and hours > DEFAULT_HOURS:
                return look(client, connection, table, now, show)
            action = "cloudwatch:GetInsightRuleReport"
            found.refusals.append(why_absent(error, "Contributor Insights", action))
    if found.is_empty:
        nothing = Absent(
            "Contributor Insights is on, and has seen nothing yet", "look again in some hours"
        )
        return Looked(next(iter(found.refusals), nothing), found.spent)
    facts = InsightFacts(
        began,
        ended,
        accessed=found.by_kind["PKC"],
        items=found.by_kind["SKC"],
        throttled=found.by_kind["PKT"],
    )
    return Looked(facts, found.spent)


def _targets(table: TableFacts) -> list[str]:
    indexes = [one.name for one in table.indexes if one.insights == ON]
    return [TABLE, *indexes] if table.insights == ON else indexes


def _why_off(table: TableFacts) -> Absent:
    if (untold := table.untold.get("insights")) is not None:
        return untold
    return Absent(
        f"Contributor Insights is {(table.insights or 'off').lower()}",
        "turn it on, at best for throttled keys only (aws dynamodb update-contributor-insights "
        f"--table-name {table.name} --contributor-insights-action ENABLE "
        "--contributor-insights-mode THROTTLED_KEYS), and look again after a busy hour",
    )


def _read(
    client: Any,
    connection: Connection,
    table: TableFacts,
    target: str,
    window: tuple[float, float],
    show: Callable[[Key], Shown],
    found: _Found,
) -> None:
    """All reports of one target; raises what the clients raise."""
    began, ended = window
    where = {} if target == TABLE else {"IndexName": target}
    found.requests += 1
    operation = "describe_contributor_insights"
    name = table.arn if table.by_arn else table.name
    told = request(connection, name, operation, PATIENCE_SECONDS, **where)
    made = told.get("LastUpdateDateTime")
    is_older = made is not None and made.timestamp() <= began
    for kind, rule in rules_by_kind(told.get("ContributorInsightsRuleList", ())).items():
        found.reports += 1
        report = client.get_insight_rule_report(
            RuleName=rule,
            StartTime=datetime.fromtimestamp(began, UTC),
            EndTime=datetime.fromtimestamp(ended, UTC),
            Period=MINUTE,
            MaxContributorCount=MOST_CONTRIBUTORS,
            OrderBy="Maximum",
        )
        keys = hot_keys(report, attributes(table, target), show)
        # No throttled key in a window that the rule has seen whole: there was none. Nothing
        # accessed may mean that the rule does not see this traffic.
        if keys or (kind == "PKT" and is_older):
            found.by_kind[kind][target] = keys


def rules_by_kind(names: Iterable[str]) -> dict[str, str]:
    """The rules that a report reads, PKC, SKC and PKT. Pure."""
    matches = [match for match in map(_RULE.fullmatch, names) if match]
    return {match["kind"]: match[0] for match in matches if match["kind"] in _READ}


def attributes(table: TableFacts, target: str) -> list[tuple[str, str]]:
    """Names and types of the key attributes of a table or an index, partition keys first. Pure."""
    index = table.index(target)
    own: TableFacts | Any = table if index is None else index
    names = f"{own.partition},{own.sort or ''}".split(",") if index else [own.partition, own.sort]
    return [(name, table.types.get(name, "S")) for name in names if name]


def hot_keys(
    report: Mapping[str, Any],
    names: Sequence[tuple[str, str]],
    show: Callable[[Key], Shown],
) -> tuple[HotKey, ...]:
    """From GetInsightRuleReport's answer, the busiest first. names: see `attributes`. Pure."""
    found = []
    for one in report.get("Contributors", ()):
        values = [point["ApproximateValue"] for point in one["Datapoints"]]
        pairs = zip(names, one["Keys"], strict=False)
        key = {name: _typed(type_, text) for (name, type_), text in pairs}
        if key and values:
            found.append(HotKey(show(key), float(max(values)), float(sum(values))))
    return tuple(sorted(found, key=lambda hot: -hot.units))


def _typed(type_: str, text: str) -> TypedValue:
    """CloudWatch has texts alone; how it writes binary keys is not documented: they stay text."""
    return {"N": text} if type_ == "N" and is_number(text) else {"S": text}
