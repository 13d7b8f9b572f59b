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


def examined(database: Database, table: Any, **more: Any) -> keyhop.Examination:
    return keyhop.examine(table, endpoint_url=database.url, **more)


def test_the_findings_are_those_of_the_json(dynamodb: Database, dated: str) -> None:
    examination = examined(dynamodb, dated)
    found = {finding.id for finding in examination.findings if finding.status == "found"}
    assert "A3" in found
    document = examination.to_json()
    shown = {(each["id"], each["target"], each["summary"]) for each in document["findings"]}
    assert shown == {(each.id, each.target, each.summary) for each in examination.findings}
    assert examination.read_units == document["spent"]["rru"] > 0
    assert examination.dollars == document["spent"]["dollars"]
    json.dumps(document, allow_nan=False)


def test_the_page_refers_to_no_address_and_a_notebook_shows_it(
    dynamodb: Database, dated: str
) -> None:
    examination = examined(dynamodb, dated)
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
    examination = examined(dynamodb, dated, exhaustive=True, show_keys=show_keys)
    form = rf"<keyhop.Examination of {dated}: \d+ found, \d+ clear, \d+ unknown>"
    assert re.fullmatch(form, repr(examination))
    assert CANARY_KEY not in repr(examination.findings)
    assert "2025-" not in repr(examination.findings)
    if show_keys == "digest":
        everything = examination.to_html() + str(examination.to_json()) + examination.to_text()
        assert CANARY_KEY not in everything
        assert CANARY_VALUE not in everything


def test_a_table_of_boto3_sends_the_requests(dynamodb: Database, dated: str) -> None:
    examination = keyhop.examine(boto3s_table(dynamodb, dated))
    assert any(each.id == "A3" and each.status == "found" for each in examination.findings)


def test_a_dry_run_reads_no_item_and_returns_the_price(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    strict.collections(table_name, [3] * 40)
    stand_in.requests.clear()
    price = examined(strict, table_name, dry_run=True, max_read_units=500)
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
        examined(dynamodb, dated, max_read_units=200, approve=refuse)


def test_only_dynamodb_is_asked_at_a_local_address(dynamodb: Database, dated: str) -> None:
    examination = examined(dynamodb, dated)
    assert f"{dynamodb.url} has no cloudwatch" in json.dumps(examination.to_json())
    assert "unknown" in {finding.status for finding in examination.findings}


def test_max_cost_limits_the_sample(dynamodb: Database, dated: str) -> None:
    cost = 30 * 0.125e-6
    price = examined(dynamodb, dated, dry_run=True, max_cost=cost)
    assert price.dollars == pytest.approx(cost)
    examination = examined(dynamodb, dated, max_cost=cost)
    assert examination.dollars is not None
    assert examination.dollars <= cost * 1.1


def test_a_whole_table_that_costs_too_much_is_not_read(dynamodb: Database, dated: str) -> None:
    with pytest.raises(keyhop.errors.BudgetSpent, match="more than the maximum of"):
        examined(dynamodb, dated, exhaustive=True, max_cost=1e-6)


def test_progress_names_what_is_read(dynamodb: Database, dated: str) -> None:
    shown: list[keyhop.Progress] = []
    examined(dynamodb, dated, progress=shown.append)
    assert shown[0].activity == "metrics"
    assert {each.activity for each in shown} <= {"metrics", "sample"}
    assert all(0 <= each.share <= 1 for each in shown)


def test_a_stop_event_ends_the_call_and_is_not_set_by_it(dynamodb: Database, dated: str) -> None:
    stop = Event()
    examined(dynamodb, dated, stop=stop)
    assert not stop.is_set()
    stop.set()
    with pytest.raises(Stopped):
        examined(dynamodb, dated, stop=stop)


def test_the_changes_since_an_earlier_report(dynamodb: Database, dated: str) -> None:
    before = examined(dynamodb, dated)
    assert before.changes is None
    after = examined(dynamodb, dated, baseline=before.to_json())
    assert after.changes is not None
    assert after.changes.gone == ()
    with pytest.raises(keyhop.errors.BaselineUnreadable):
        examined(dynamodb, dated, baseline={"schema": "another"})


@pytest.mark.parametrize(
    ("arguments", "says"),
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
    dynamodb: Database, table_name: str, arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(keyhop.errors.CannotStart, match=says):
        examined(dynamodb, table_name, **arguments)


def test_a_table_that_does_not_exist(dynamodb: Database, table_name: str) -> None:
    with pytest.raises(keyhop.errors.TableNotFound):
        examined(dynamodb, table_name)


def test_the_command_shows_the_price_with_dry_run(dynamodb: Database, dated: str) -> None:
    flags = ("report", dated, "--endpoint-url", dynamodb.url, "--dry-run")
    shown = command(*flags)
    assert shown.status == 0
    assert "at most about 2,000 RRU: $0.000250" in shown.out.decode()
    as_json = json.loads(command(*flags, "--format", "json").out)
    assert as_json["read_units"] == 2000
    for more in (["--format", "html"], ["--strict"], ["--output", "nowhere"]):
        assert command(*flags, *more).status == 2


def test_the_command_ends_with_status_4_above_max_cost(dynamodb: Database, dated: str) -> None:
    flags = ("--exhaustive", "--max-cost", "0.000001", "--endpoint-url", dynamodb.url)
    assert command("report", dated, *flags).status == 4
