"""The report on one table of the corpus, with all sources."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import Table
from keyhop.report.facts import Absent, Facts, RequestFacts, SampleFacts, StreamFacts, TableFacts
from keyhop.report.findings import Finding
from keyhop.report.forms import Shower
from keyhop.report.request import ReportInput
from keyhop.report.rules.judge import judge
from keyhop.report.sampler import attach
from keyhop.report.sampling import sample
from keyhop.report.sources import absence, control_plane, insights, metrics, stream
from keyhop.report.sources.code import read_code
from keyhop.report.sources.requests import requests_of

from testing.report_corpus.case import DAY, Case, Item, item_json, typed
from testing.report_corpus.loading import create, create_virtual, items_of, key_names, typed_name
from testing.report_corpus.planted import PlantedStream, cloudwatch_of, described
from testing.servers import LOCAL_CREDENTIALS, local_client
from testing.simulation.service import Service

UNITS = 3_000
SINCE = 14 * DAY
STREAM_SECONDS = 900.0
NOT_ASKED = Absent("it was not asked for", "a flag")


@dataclass(slots=True)
class World:
    """The databases: DynamoDB Local, and the stand-in for tables that are too large to load."""

    local: str
    stand_in: str
    service: Service
    now: float = field(default_factory=time.time)

    def url(self, case: Case) -> str:
        return self.local if case.virtual is None else self.stand_in


def table_name(case: Case) -> str:
    """Return a valid table name for a case."""
    letters = (
        letter if letter.isascii() and letter.isalnum() else "-" for letter in case.name.title()
    )
    return "".join(letters)[:80].strip("-")


def findings_of(case: Case, world: World) -> list[Finding]:
    """Return the findings of a report on the table, which exists during the report only."""
    return judge(facts_of(case, world))


def facts_of(case: Case, world: World) -> Facts:
    table = table_name(case)
    plain = local_client(world.url(case), attempts=3)
    items = items_of(case, world.now)
    if case.virtual is not None:
        create_virtual(world.service, table, case, world.now)
    else:
        create(plain, table, case, items)
    try:
        return _looked(case, world, table, plain, items)
    finally:
        plain.delete_table(TableName=table)


def _looked(case: Case, world: World, table: str, plain: Any, items: list[Item]) -> Facts:
    now = world.now
    requests = _watched(case, world, table)
    cloudwatch = cloudwatch_of(case, table, now)
    connection = connect(Endpoint(url=world.url(case), region="us-east-1"))
    client: Any = described(connection.client, case, table, cloudwatch, now)
    connection = replace(connection, client=client)
    description, _, looked_up = control_plane.look(connection, table)
    traffic = cloudwatch if case.metrics else NOT_ASKED
    measured = metrics.look(traffic, description, now, SINCE).facts
    shower = Shower(looked_up.identity)
    watch = cloudwatch if case.insights else NOT_ASKED
    contributors = insights.look(watch, connection, description, now, shower.shown).facts
    absent = absence.why_not(measured, now, "throttled" in case.options.get("accept", ()))
    in_scan_order = _in_scan_order(case, plain, table, items)
    return Facts(
        at=now,
        table=description,
        metrics=measured,
        insights=contributors,
        stream=_streamed(case, description, in_scan_order, now, shower),
        sample=absent or _sampled(connection, looked_up, case),
        code=read_code(_files(case, table)) if case.code else NOT_ASKED,
        requests=requests,
        peak_writes=case.options.get("peak_writes"),
    )


def _streamed(
    case: Case, table: TableFacts, items: list[Item], now: float, shower: Shower
) -> StreamFacts | Absent:
    """Read the stream with a clock that advances by its waits only.

    items: The items in the order of a scan, from which their places in the hash space follow.
    """
    if case.stream is None:
        return NOT_ASKED
    client: Any = PlantedStream(case, case.stream(case.chance(), now, items), now)
    name, _ = typed_name(case.schema.partition)
    keys = dict.fromkeys(_key_text(typed(item[name])) for item in items)
    places = {key: number / len(keys) for number, key in enumerate(keys)}
    waited = [0.0]

    def pause(seconds: float) -> None:
        waited[0] += seconds

    return stream.look(
        client,
        table,
        now,
        STREAM_SECONDS,
        shower.shown,
        place=lambda key: places.get(_key_text(key[name])),
        clock=lambda: waited[0],
        pause=pause,
    ).facts


def _sampled(connection: Connection, table: Table, case: Case) -> SampleFacts:
    units = case.options.get("units", UNITS)
    request = ReportInput(table=table.name, max_read_units=units).request(str, {})
    options = {**request.options, "seed": case.name}
    return sample(connection, table, replace(request, options=options))


def _watched(case: Case, world: World, table: str) -> RequestFacts | Absent:
    """Run the case's application, and return the facts of the request sampler."""
    if case.application is None:
        return NOT_ASKED
    lines: list[str] = []
    session = boto3.Session()
    sampler = attach(session, lines.append, share=1.0)
    client = session.client("dynamodb", endpoint_url=world.url(case), **LOCAL_CREDENTIALS)
    try:
        case.application(client, table, case.chance())
    finally:
        sampler.flush()
        sampler.detach()
        client.close()
    return requests_of(lines, table, "requests")


def _files(case: Case, table: str) -> Iterator[tuple[str, str]]:
    """Return the files of the case's code, with the table's name for "TABLE"."""
    return ((name, text.replace("TABLE", table)) for name, text in case.code.items())


def _in_scan_order(case: Case, client: Any, table: str, items: list[Item]) -> list[Item]:
    """Return the items in the order of a scan, if the case has a stream."""
    if case.stream is None:
        return []
    names = key_names(case.schema)
    by_key = {_key_text(item_json({name: item[name] for name in names})): item for item in items}
    pages = client.get_paginator("scan").paginate(
        TableName=table,
        ProjectionExpression=",".join(f"#{number}" for number in range(len(names))),
        ExpressionAttributeNames={f"#{number}": name for number, name in enumerate(names)},
    )
    keys = [{name: item[name] for name in names} for page in pages for item in page["Items"]]
    return [by_key[_key_text(key)] for key in keys]


def _key_text(typed_key: Mapping[str, Any]) -> str:
    return json.dumps(typed_key, default=bytes.hex)
