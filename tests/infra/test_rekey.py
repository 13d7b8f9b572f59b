"""Tests of the deployment of re-keying: its setting, its functions, alarms and dashboard."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from handlers import telemetry
from handlers.settings import (
    CutOverSettings,
    JobSettings,
    PlanSettings,
    ReplicateSettings,
    deployed_transform,
)
from keyhop.errors import CannotStart
from keyhop.rekey.pair import Allowed, Pair, allowed_pair, code_digest, pair_of_stream
from keyhop.rekey.request import VerifyInput
from keyhop.rekey.side.layout import LONGEST_BATCH_SECONDS

from infra import limits
from infra.config import Config, ConfigError
from tests.infra.conftest import deployed, stack_of
from tests.infra.template import QUEUE_ARN, QUEUE_URL, Deployed, function_arn, table_arn

PAIR = {"source": "Orders", "destination": "OrdersByTenant"}
CODE = "def forward(item):\n    return item\n"


def config(*pairs: Any, **more: Any) -> Config:
    return Config.from_context({"tables": ["Listed"], "rekey": [*pairs], **more})


@pytest.fixture(scope="session")
def template() -> Deployed:
    return deployed(stack_of({"tables": ["Listed"], "rekey": [PAIR]}))


@pytest.fixture
def transform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A transform file beside keyhop.json."""
    monkeypatch.setattr("infra.config.ROOT", tmp_path)
    file = tmp_path / "by_tenant.py"
    file.write_text(CODE)
    return file


def test_the_tables_of_a_pair_need_not_be_listed() -> None:
    for setting in ([PAIR], json.dumps([PAIR])):
        (pair,) = Config.from_context({"tables": ["Listed"], "rekey": setting}).rekey
        assert pair.allowed() == Allowed("Orders", "OrdersByTenant")
        assert pair.side.name == "OrdersByTenant.rekey"


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([{**PAIR, "sauce": "Orders"}], "did you mean source?"),
        ([{**PAIR, "transfrom": "a.py"}], "did you mean transform?"),
        ([{"source": "Orders"}], "its destination is missing"),
        ([{**PAIR, "source": table_arn("Orders")}], "in the stack's account and region"),
        ([{**PAIR, "destination": "O" * 250}], "with room for .rekey at its end"),
        ([{**PAIR, "destination": "Orders"}], "each table in one of them"),
        ([PAIR, {"source": "OrdersByTenant", "destination": "Third"}], "in one of them"),
        ([{**PAIR, "sourceKmsKey": "alias/mine"}], "not its alias"),
        ([{**PAIR, "transform": "gone.py"}], "gone.py, which does not exist"),
        (["Orders"], "a list of pairs of tables"),
        ("Orders,OrdersByTenant", "a list of pairs of tables"),
        ([], "a list of pairs of tables"),
    ],
)
def test_an_error_explains_the_correct_setting(pairs: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        Config.from_context({"tables": ["Listed"], "rekey": pairs})
    assert sentence in str(error.value)
    assert "rekey" in str(error.value)


def test_a_sharded_destination_is_refused_and_plan_run_knows_a_sharded_source() -> None:
    by_path = {"sharding": {"partitionKey": "path"}}
    with pytest.raises(ConfigError, match="OrdersByTenant, that is sharded"):
        config(PAIR, tables=[{"table": "OrdersByTenant", **by_path}])
    template = deployed(stack_of({"tables": [{"table": "Orders", **by_path}], "rekey": [PAIR]}))
    assert list(PlanSettings.from_env(template.environment("PlanRun")).sharded) == ["Orders"]


def test_the_encryption_key_of_a_table_may_be_in_either_field() -> None:
    key = "arn:aws:kms:eu-west-1:111122223333:key/0a1b"
    table = {"table": "Orders", "kmsKey": key}
    (by_table,) = config(PAIR, tables=[table]).rekey
    (by_pair,) = config({**PAIR, "sourceKmsKey": key}).rekey
    assert by_table.source.kms_key == by_pair.source.kms_key == key
    assert by_table.destination.kms_key is None


def test_only_the_transform_file_of_the_synth_may_run(transform: Path) -> None:
    (pair,) = config({**PAIR, "transform": transform.name}).rekey
    allowed = pair.allowed()
    assert allowed.code == code_digest(CODE)
    allowed.check(Pair("Orders", "OrdersByTenant", {}, CODE))
    allowed.check(Pair("Orders", "OrdersByTenant", {}))
    without_file = Allowed("Orders", "OrdersByTenant")
    for refusing, reason in ((allowed, "another file"), (without_file, "no fil")):
        with pytest.raises(CannotStart, match=reason):
            refusing.check(Pair("Orders", "OrdersByTenant", {}, CODE + "\n"))
    with pytest.raises(CannotStart, match="another deployment"):
        allowed.check(Pair("Events", "OrdersByTenant", {}))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"def forward(:\n", "not valid Python"),
        (b"\xff\xfe", "cannot be read as a text"),
        (b"#" * 100_001, "at most 100,000"),
    ],
)
def test_an_invalid_transform_file_is_refused(transform: Path, text: bytes, sentence: str) -> None:
    transform.write_bytes(text)
    with pytest.raises(ConfigError, match=sentence):
        config({**PAIR, "transform": transform.name})


def test_too_many_pairs_are_refused_with_the_number_that_fits() -> None:
    pairs = [
        {"source": f"Orders-{n:02}", "destination": f"OrdersByTenant-{n:02}"} for n in range(80)
    ]
    with pytest.raises(ConfigError, match=r"rekey has 80 pairs, of which [0-9]+ fit"):
        config(*pairs)
    assert len(config(*pairs[:10]).rekey) == 10


def test_a_transform_that_is_not_deployed_is_not_loaded() -> None:
    pair = Pair("Orders", "OrdersByTenant", {}, CODE)
    table: Any = None
    with pytest.raises(CannotStart, match="no file is deployed"):
        deployed_transform([Allowed("Orders", "OrdersByTenant")], pair, table, table)


def test_plan_run_uses_the_tables_of_a_pair_only_for_a_rekey(template: Deployed) -> None:
    settings = PlanSettings.from_env(template.environment("PlanRun"))
    assert settings.deployment_for("keys").tables == ["Listed"]
    assert settings.deployment_for("rekey_backfill").tables == ["OrdersByTenant"]


def test_pairs_are_compared_daily_by_default(template: Deployed) -> None:
    (rule,) = template.properties_of("AWS::Events::Rule")
    assert rule["ScheduleExpression"] == "rate(1 day)"
    (target,) = rule["Targets"]
    assert json.loads(target["Input"]) == {
        "rekey": "OrdersByTenant",
        "repair": False,
        "scheduled": True,
    }
    VerifyInput.parse(json.loads(target["Input"]))
    never = {"tables": ["Listed"], "rekey": [PAIR], "verifySchedule": "never"}
    assert not deployed(stack_of(never)).of_type("AWS::Events::Rule")


def test_a_table_identifies_its_pair_and_a_stream_its_direction() -> None:
    pairs = [Allowed("Orders", "OrdersByTenant"), Allowed("A", "B")]
    assert allowed_pair(pairs, "B") == pairs[1]
    with pytest.raises(CannotStart, match="did you mean Orders"):
        allowed_pair(pairs, "Order")
    assert pair_of_stream(pairs, table_arn("Orders/stream/2026")) == (pairs[0], "forward")
    local = "arn:aws:dynamodb:ddblocal:000000000000:table/B/stream/2026"
    assert pair_of_stream(pairs, local) == (pairs[1], "reverse")


def test_cut_over_knows_the_replicate_function_and_its_queue(template: Deployed) -> None:
    settings = CutOverSettings.from_env(template.environment("CutOver"))
    assert (settings.replicate, settings.queue) == (function_arn("Keyhop-Replicate"), QUEUE_ARN)


@pytest.mark.prove
def test_ten_pairs_are_far_below_every_quota() -> None:
    pairs = [{"source": f"Orders-{n}", "destination": f"ByTenant-{n}"} for n in range(10)]
    limits.check_template(deployed(stack_of({"tables": ["Listed"], "rekey": pairs})).body, 21)


ALARMS = {
    "RekeyBehind": "keyhop rekey throttle",
    "RekeyFailures": "RekeyVerify",
    "RekeyClaims": "keyhop rekey status",
    "RekeyUnmappable": "mend the item",
    "RekeyDifferences": "start RekeyVerify yourself",
    "RekeyFreezeLasts": "freezeLimit",
    "FailedRekeyBackfill": "start the same input again",
    "FailedRekeyVerify": "Start the same input again",
    "FailedRekeyCutOver": "Start it again",
}


def test_each_alarm_explains_what_to_do(template: Deployed) -> None:
    descriptions = {name: alarm["AlarmDescription"] for name, alarm in template.alarms.items()}
    for name, remedy in ALARMS.items():
        assert remedy in descriptions[f"Keyhop-{name}"], name


def test_the_dashboard_shows_a_pair_by_its_destination(template: Deployed) -> None:
    (choice,) = template.dashboard["variables"]
    names = [value["value"] for value in choice["values"]]
    assert names == ["Listed", "Orders", "OrdersByTenant"]
    rows = [title for title in template.widgets if title.startswith("Re-key")]
    assert len(rows) == 4


def test_alarms_and_dashboard_use_metrics_that_the_functions_write(template: Deployed) -> None:
    documentation = str(telemetry.report_rekey.__doc__)
    documented = set(re.findall(r"^    ([A-Z]\w+)  ", documentation, re.MULTILINE))
    assert len(documented) == 10
    alarms = [template.alarms[f"Keyhop-{name}"] for name in ALARMS]
    alarming = {alarm["MetricName"] for alarm in alarms if alarm.get("Namespace") == "Keyhop"}
    assert alarming - {"NeedsAPerson"} <= documented
    rows = [row for title, row in template.widgets.items() if title.startswith("Re-key")]
    displayed = {line[1] for row in rows for line in row["metrics"] if line[0] == "Keyhop"}
    assert documented - displayed == {"ClaimsSettled"}


def test_replicate_has_time_for_throttles_within_the_longest_batch(template: Deployed) -> None:
    replicate = template.function("Replicate")
    assert replicate["MemorySize"] >= 1024
    assert 300 <= replicate["Timeout"] <= LONGEST_BATCH_SECONDS - 60


def test_the_functions_receive_the_pairs(template: Deployed) -> None:
    settings = ReplicateSettings.from_env(template.environment("Replicate"))
    assert settings.pairs == (Allowed("Orders", "OrdersByTenant"),)
    assert settings.queue == QUEUE_URL
    worker = JobSettings.from_env(template.environment("BackfillItems"))
    assert worker.pairs == settings.pairs
    assert worker.tables == []
