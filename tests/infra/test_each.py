"""Tests that ForEachKey may do what the settings of a table allow, and nothing else."""

import json
from typing import Any

import pytest
from handlers.settings import PlanSettings
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.each.allowed import Allowed, check_allowed, queue_arn
from keyhop.each.request import EachInput
from keyhop.errors import CannotStart

from infra.config import Config, ConfigError
from tests.infra.conftest import deployed, stack_of
from tests.infra.template import ACCOUNT, REGION, Deployed, table_arn

FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:on-keys"
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:keys.fifo"
URL = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/keys.fifo"
MACHINE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:PerBatch"
ALL: dict[str, Any] = {
    "put": True,
    "update": True,
    "delete": True,
    "functions": [FUNCTION],
    "queues": [URL],
    "machines": [MACHINE],
    "attributes": ["customer", "sk", "plan"],
}
TABLES = [
    "Listed",
    {"table": "Orders", "each": ALL},
    {"table": "Open", "each": {"put": True}},
    {"table": "Handed", "each": {"functions": [FUNCTION]}},
    {"table": "Updated", "each": {"update": True}},
]
SPACE = KeySpace((KeyAttribute("customer", "S"),), KeyAttribute("sk", "S"))


def each_of(**each: Any) -> Any:
    return Config.from_context({"tables": [{"table": "Orders", "each": each}]}).tables[0].each


@pytest.fixture(scope="session")
def template() -> Deployed:
    return deployed(stack_of({"tables": TABLES}))


def test_each_reads_all_settings_and_accepts_a_queue_url() -> None:
    assert each_of(**ALL) == Allowed(
        True, True, True, (FUNCTION,), (QUEUE,), (MACHINE,), ("customer", "sk", "plan")
    )
    assert each_of(**{**ALL, "queues": [QUEUE]}) == each_of(**ALL)
    assert queue_arn("https://sqs.cn-north-1.amazonaws.com.cn/111122223333/q").startswith(
        "arn:aws-cn:sqs:cn-north-1:"
    )
    assert queue_arn("https://sqs.us-gov-west-1.amazonaws.com/111122223333/q").startswith(
        "arn:aws-us-gov:"
    )


@pytest.mark.parametrize(
    ("each", "sentence"),
    [
        ({"puts": True}, "did you mean put?"),
        ({"function": [FUNCTION]}, "did you mean functions?"),
        ({"put": "yes"}, "each.put"),
        ({"functions": FUNCTION}, "a list of ARNs of functions"),
        ({"functions": ["on-keys"]}, "a list of ARNs of functions"),
        ({"queues": [FUNCTION]}, "a list of ARNs or URLs of queues"),
        ({"machines": ["arn:aws:states:*"]}, "a list of ARNs of state machines"),
        ({"put": True, "attributes": []}, "a list of attributes"),
        ({"update": True, "attributes": ["plan"]}, "left out without put"),
        ({}, "with something that may be done"),
        ({"put": False}, "with something that may be done"),
        (True, "an object"),
    ],
)
def test_an_error_explains_the_correct_setting(each: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        Config.from_context({"tables": [{"table": "Orders", "each": each}]})
    assert "Orders" in str(error.value)
    assert sentence in str(error.value)


def test_a_failed_execution_raises_an_alarm(template: Deployed) -> None:
    assert "Keyhop-FailedForEachKey" in template.alarms
    assert "ForEachKeyArn" in template.body["Outputs"]


def test_plan_run_receives_the_settings_of_each(template: Deployed) -> None:
    settings = PlanSettings.from_env(template.environment("PlanRun"))
    assert settings.each["Orders"] == each_of(**ALL)
    assert settings.each["Open"] == Allowed(put=True)
    assert "Listed" not in settings.each


INPUTS: dict[str, dict[str, Any]] = {
    "put": {"put": {"sk": "#feature", "plan": "free"}},
    "update": {"update": "SET #p = :p", "item": {"sk": "A"}},
    "delete": {"delete": True, "item": {"sk": "A"}},
    "invoke": {"invoke": FUNCTION},
    "queue": {"queue": URL},
    "machine": {"startMachine": MACHINE},
    "undo": {"undo": "feature"},
}


@pytest.mark.parametrize("kind", INPUTS)
def test_a_forbidden_effect_is_refused_with_the_setting_that_allows_it(kind: str) -> None:
    effect = EachInput.parse({"table": "Orders", **INPUTS[kind]}).options["effect"]
    check_allowed({"Orders": each_of(**ALL)}, "Orders", effect, SPACE)
    check_allowed({"Orders": each_of(**ALL)}, table_arn("Orders"), effect, SPACE)
    other_setting = {"update": True} if kind != "update" else {"put": True}
    for allowed in ({}, {"Orders": each_of(**other_setting)}):
        with pytest.raises(CannotStart) as error:
            check_allowed(allowed, "Orders", effect, SPACE)
        (setting,) = [
            part for part in str(error.value).split("write ") if part.startswith('{"table"')
        ]
        entry = json.loads(setting.split(" into ")[0])
        each = Config.from_context({"tables": [entry]}).tables[0].each
        assert each is not None
        check_allowed({"Orders": each}, "Orders", effect, SPACE)


def test_a_function_with_a_similar_name_is_suggested() -> None:
    effect = {"kind": "invoke", "target": f"{FUNCTION}s", "batch": 10}
    with pytest.raises(CannotStart, match=f"did you mean {FUNCTION}"):
        check_allowed({"Orders": each_of(**ALL)}, "Orders", effect, SPACE)


@pytest.mark.parametrize("names", [["plan"], ["customer", "plan"], ["customer", "sk"]])
def test_a_put_of_other_attributes_is_refused_before_the_run(names: list[str]) -> None:
    effect = EachInput.parse({"table": "Orders", **INPUTS["put"]}).options["effect"]
    with pytest.raises(CannotStart, match="attribute"):
        check_allowed({"Orders": each_of(put=True, attributes=names)}, "Orders", effect, SPACE)


def test_too_many_tables_are_refused() -> None:
    tables = [{"table": f"Table-{number:03}", "each": {"put": True}} for number in range(200)]
    with pytest.raises(ConfigError, match="fit into one stack"):
        Config.from_context({"tables": tables})
    config = Config.from_context({"tables": tables[:40]})
    assert len(config.each_tables) == 40
