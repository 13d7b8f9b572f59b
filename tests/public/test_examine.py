"""`keyhop.examine`, as a Python program calls it."""

import json
import re
from html import unescape
from threading import Event
from typing import Any

import keyhop
import pytest
from keyhop.errors import Stopped

from testing.databases import CANARY_KEY, CANARY_VALUE, Database
from testing.databases import keyhop as command
from testing.standin.server import StandIn
from tests.public.conftest import boto3s_table


def examine(database: Database, table: Any, **arguments: Any) -> keyhop.Examination:
    return keyhop.examine(table, endpoint_url=database.url, **arguments)


def test_the_findings_are_those_of_the_json(dynamodb: Database, dated: str) -> None:
    examination = examine(dynamodb, dated)
    assert "A3" in {finding.id for finding in examination.findings if finding.status == "found"}
    document = examination.to_json()
    assert {(f["id"], f["target"], f["summary"]) for f in document["findings"]} == {
        (finding.id, finding.target, finding.summary) for finding in examination.findings
    }
    assert examination.read_units == document["spent"]["rru"] > 0
    assert examination.dollars == document["spent"]["dollars"]
    json.dumps(document, allow_nan=False)


def test_the_page_has_no_external_links_and_a_notebook_shows_it(
    dynamodb: Database, dated: str
) -> None:
    examination = examine(dynamodb, dated)
    page = examination.to_html()
    assert page.lower().startswith("<!doctype html>")
    # The endpoint may be named in the text, but nothing is loaded from it and nothing leads to it.
    assert not re.search(r"<script|<link|<img|<iframe|url\(|@import|\bsrc(set)?=", page)
    assert all(address.startswith("#") for address in re.findall(r'href="([^"]*)"', page))
    assert not re.search(r'="[^"]*//', page)
    assert "default-src 'none'" in unescape(page)
    frame = examination._repr_html_()
    assert frame is not None
    srcdoc = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="" [^<>]*></iframe>', frame)
    assert srcdoc is not None
    assert unescape(srcdoc[1]) == page


@pytest.mark.parametrize("show_keys", ["digest", "full"])
def test_repr_has_counts_and_no_keys(dynamodb: Database, dated: str, show_keys: str) -> None:
    examination = examine(dynamodb, dated, exhaustive=True, show_keys=show_keys)
    form = rf"<keyhop.Examination of {dated}: \d+ found, \d+ clear, \d+ unknown>"
    assert re.fullmatch(form, repr(examination))
    assert CANARY_KEY not in repr(examination.findings)
    assert "2025-" not in repr(examination.findings)
    if show_keys == "digest":
        everything = examination.to_html() + str(examination.to_json()) + examination.to_text()
        assert CANARY_KEY not in everything
        assert CANARY_VALUE not in everything


def test_boto3s_table_sends_the_requests(dynamodb: Database, dated: str) -> None:
    examination = keyhop.examine(boto3s_table(dynamodb, dated))
    assert any(f.id == "A3" and f.status == "found" for f in examination.findings)


def test_a_dry_run_reads_no_item_and_returns_the_price(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    strict.collections(table_name, [3] * 40)
    stand_in.requests.clear()
    price = examine(strict, table_name, dry_run=True, max_read_units=500)
    assert stand_in.requests["DescribeTable"] == 1
    assert not {"Query", "Scan", "GetItem"} & set(stand_in.requests)
    assert (price.dry_run, price.read_units, price.findings) == (True, 500, ())
    assert price.dollars == pytest.approx(500 * 0.125e-6)
    assert price.to_json()["read_units"] == 500
    assert "500 RRU" in price.to_text()
    assert repr(price) == f"<keyhop.Examination of {table_name}: a dry run>"
    assert price._repr_html_() is None
    with pytest.raises(keyhop.errors.CannotStart, match="A dry run has no page"):
        price.to_html()


def test_approve_is_called_with_the_price_before_data_is_read(
    dynamodb: Database, dated: str
) -> None:
    class Refusal(Exception):
        pass

    def refuse(price: keyhop.Examination) -> None:
        assert (price.dry_run, price.read_units) == (True, 200)
        raise Refusal

    with pytest.raises(Refusal):
        examine(dynamodb, dated, max_read_units=200, approve=refuse)


def test_a_local_endpoint_is_used_for_dynamodb_only(dynamodb: Database, dated: str) -> None:
    examination = examine(dynamodb, dated)
    assert f"{dynamodb.url} has no cloudwatch" in json.dumps(examination.to_json())
    assert "unknown" in {finding.status for finding in examination.findings}


def test_max_cost_limits_the_sample(dynamodb: Database, dated: str) -> None:
    cost = 30 * 0.125e-6
    price = examine(dynamodb, dated, dry_run=True, max_cost=cost)
    assert price.dollars == pytest.approx(cost)
    examination = examine(dynamodb, dated, max_cost=cost)
    assert examination.dollars is not None
    assert examination.dollars <= cost * 1.1


def test_an_exhaustive_read_above_the_maximum_cost_is_refused(
    dynamodb: Database, dated: str
) -> None:
    with pytest.raises(keyhop.errors.BudgetSpent, match="more than the maximum of"):
        examine(dynamodb, dated, exhaustive=True, max_cost=1e-6)


def test_progress_names_the_activity(dynamodb: Database, dated: str) -> None:
    reports: list[keyhop.Progress] = []
    examine(dynamodb, dated, progress=reports.append)
    assert reports[0].activity == "metrics"
    assert {report.activity for report in reports} <= {"metrics", "sample"}
    assert all(0 <= report.share <= 1 for report in reports)


def test_a_stop_event_ends_the_call(dynamodb: Database, dated: str) -> None:
    stop = Event()
    examine(dynamodb, dated, stop=stop)
    assert not stop.is_set()
    stop.set()
    with pytest.raises(Stopped):
        examine(dynamodb, dated, stop=stop)


def test_the_changes_since_an_earlier_report(dynamodb: Database, dated: str) -> None:
    before = examine(dynamodb, dated)
    assert before.changes is None
    after = examine(dynamodb, dated, baseline=before.to_json())
    assert after.changes is not None
    assert after.changes.gone == ()
    with pytest.raises(keyhop.errors.BaselineUnreadable):
        examine(dynamodb, dated, baseline={"schema": "another"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"since": "2 weeks"}, "since must be"),
        ({"max_read_units": 0}, "max_read_units must be"),
        ({"max_cost": -1}, "max_cost must be"),
        ({"stream": 0}, "stream must be a number of seconds above 0"),
        ({"accept": ["anything"]}, "accept must be a list of 'throttled'"),
        ({"show_keys": "all"}, "show_keys must be"),
        ({"candidates": ["PK={"]}, "PK="),
        ({"exhaustive": True, "control_plane_only": True}, "exhaustive reads all keys"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    dynamodb: Database, table_name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(keyhop.errors.CannotStart, match=message):
        examine(dynamodb, table_name, **arguments)


def test_a_table_that_does_not_exist(dynamodb: Database, table_name: str) -> None:
    with pytest.raises(keyhop.errors.TableNotFound):
        examine(dynamodb, table_name)


def test_the_command_shows_the_price_with_dry_run(dynamodb: Database, dated: str) -> None:
    flags = ("report", dated, "--endpoint-url", dynamodb.url, "--dry-run")
    result = command(*flags)
    assert result.status == 0
    assert "at most about 2,000 RRU: $0.000250" in result.out.decode()
    as_json = json.loads(command(*flags, "--format", "json").out)
    assert as_json["read_units"] == 2000
    for options in (["--format", "html"], ["--strict"], ["--output", "nowhere"]):
        assert command(*flags, *options).status == 2


def test_the_command_ends_with_status_4_above_max_cost(dynamodb: Database, dated: str) -> None:
    flags = ("--exhaustive", "--max-cost", "0.000001", "--endpoint-url", dynamodb.url)
    assert command("report", dated, *flags).status == 4
