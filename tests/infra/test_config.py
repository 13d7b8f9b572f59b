import json
from typing import Any

import pytest
from aws_cdk import aws_logs as logs

from infra.config import Config, ConfigError, Table
from infra.config_values import LOG_RETENTION_DAYS

ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders"


def config(**context: Any) -> Config:
    return Config.from_context({"tables": ["Orders"], **context})


def test_only_the_tables_must_be_given():
    found = config()
    assert [table.name for table in found.tables] == ["Orders"]
    assert (found.stack_name, found.architecture) == ("Keyhop", "arm64")
    assert (found.results_retention_days, found.keep_results) == (90, True)
    assert (found.log_level, found.log_retention_days) == ("INFO", 30)
    assert (found.worker_memory_mb, found.worker_timeout_seconds) == (1769, 900)
    assert found.reserved_concurrency is None
    assert found.alarm_email is None
    assert found.dynamodb_endpoint is None
    assert found.verify_index_schedule == "rate(7 days)"
    assert (found.key_index_tables, found.sharded_tables) == ((), ())
    assert (found.max_cost, found.prices) == (10.0, None)
    assert (found.shrink_schedule, found.start_drains) == ("rate(1 day)", False)


def test_the_command_line_knows_only_text():
    """`cdk deploy -c tables=Orders,Customers -c keepResults=false`."""
    typed = Config.from_context(
        {
            "tables": "Orders, Customers",
            "keyAttributes": '{"Orders": ["customer", "order"]}',
            "keepResults": "false",
            "workerMemoryMb": "3008",
            "reservedConcurrency": "50",
        }
    )
    written = Config.from_context(
        {
            "tables": ["Orders", "Customers"],
            "keyAttributes": {"Orders": ["customer", "order"]},
            "keepResults": False,
            "workerMemoryMb": 3008,
            "reservedConcurrency": 50,
        }
    )
    assert typed == written
    assert typed.tables[0].key_attributes == ("customer", "order")


def test_a_list_of_tables_may_be_typed_as_json():
    assert len(config(tables='["Orders", "Customers"]').tables) == 2


def test_a_table_may_say_more_than_its_name():
    plain, kept, placed = config(
        tables=[
            {"table": "Orders"},
            {"table": ARN, "keyIndex": True, "keyAttributes": ["customer", "order"]},
            {"table": "Events", "keyIndex": True, "sentinelSortKey": " !"},
        ]
    ).tables
    assert plain == Table("Orders")
    assert (kept.name, kept.arn) == ("Orders", ARN)
    assert kept == Table(ARN, key_index=True, key_attributes=("customer", "order"))
    assert placed == Table("Events", key_index=True, sentinel_sort_key=" !")


def test_prices_of_ones_own_are_json_also_from_the_command_line():
    prices = {"reads": 0.2, "writes": 1}
    for given in (prices, json.dumps(prices)):
        assert json.loads(config(prices=given).prices or "") == prices


def test_a_table_with_a_key_index_may_be_typed():
    """`cdk deploy -c 'tables=[{"table":"Flights","keyIndex":true}]'`."""
    typed = config(tables='["Orders", {"table":"Flights","keyIndex":true}]')
    assert [table.name for table in typed.tables] == ["Orders", "Flights"]
    assert [table.name for table in typed.key_index_tables] == ["Flights"]


def test_key_attributes_may_stand_in_either_place():
    within = config(tables=[{"table": "Orders", "keyAttributes": ["customer"]}, "Flights"])
    apart = config(tables=["Orders", "Flights"], keyAttributes={"Orders": ["customer"]})
    assert within == apart


def test_key_attributes_in_both_places_are_refused():
    with pytest.raises(ConfigError, match=r"keyAttributes names Orders, whose entry in tables"):
        config(
            tables=[{"table": "Orders", "keyAttributes": ["customer"]}],
            keyAttributes={"Orders": ["customer"]},
        )


@pytest.mark.parametrize(
    ("field", "given", "name", "expected"),
    [
        *(
            ("verifyIndexSchedule", schedule, "verify_index_schedule", schedule)
            for schedule in (
                *("rate(1 day)", "rate(12 hours)", "rate(90 minutes)"),
                *("cron(0 3 ? * SUN *)", "cron(0 3 1 * ? *)"),
            )
        ),
        ("verifyIndexSchedule", "never", "verify_index_schedule", None),
        *(("maxCost", given, "max_cost", 25.0) for given in (25, 25.0, "25")),
        # empty text takes a value of cdk.json away
        ("alarmEmail", "", "alarm_email", None),
        ("architecture", "x86-64", "architecture", "x86_64"),
        ("architecture", "x86_64", "architecture", "x86_64"),
        # dynamodb may be on this machine
        *(
            ("dynamodbEndpoint", endpoint, "dynamodb_endpoint", endpoint.rstrip("/"))
            for endpoint in ("http://127.0.0.1:8000", "http://localhost:4566/", "http://[::1]:8000")
        ),
    ],
)
def test_a_value_is_taken(field: str, given: Any, name: str, expected: Any):
    assert getattr(config(**{field: given}), name) == expected


@pytest.mark.parametrize(
    "arn",
    [
        ARN,
        "arn:aws-cn:dynamodb:cn-north-1:123456789012:table/Orders",
        "arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/Orders",
    ],
)
def test_a_table_may_lie_in_another_account_region_or_partition(arn: str):
    (table,) = config(tables=[arn]).tables
    assert (table.arn, table.name) == (arn, "Orders")


def test_what_the_cdk_itself_sets_is_no_mistake():
    config(
        **{
            "@aws-cdk/aws-iam:minimizePolicies": True,
            "@aws-cdk-containers/ecs-service-extensions:enableDefaultLogDriver": True,
            "aws:cdk:bundling-stacks": ["**"],
            "aws-cdk:enableDiffNoFail": "true",
            "availability-zones:account=1:region=eu-west-1": ["eu-west-1a"],
            "cdk-migrate": True,
            "acknowledged-issue-numbers": [19836],
        }
    )


WRONG = [
    ("tables", None, "missing"),
    ("tables", [], "one or more tables"),
    ("tables", "", "one or more tables"),
    ("tables", "Orders,", "by its name"),
    ("tables", ["Or"], "3 to 255"),
    ("tables", ["Orders/index/ByDate"], "by its name"),
    ("tables", [f"{ARN}/index/ByDate"], "by its ARN"),
    ("tables", ["arn:aws:dynamodb:eu-west-1:12:table/Orders"], "by its ARN"),
    ("tables", ["*"], "by its name"),
    ("tables", [7], "a list"),
    ("tables", {"Orders": {}}, "a list"),
    ("tables", ["Orders", "Orders"], "once"),
    ("tables", [f"Table{n:05}" for n in range(400)], "400 tables"),
    ("tables", [{"table": f"Table{n:05}", "keyIndex": True} for n in range(150)], "150 tables"),
    ("tables", [{"table": "Orders", "keyIndx": True}], "keyIndx, which is not known; did you mean"),
    ("tables", [{"table": "Orders", "zone": "a"}], "known are table, keyIndex, sentinelSortKey"),
    ("tables", [{"keyIndex": True}], "by its name"),
    ("tables", [{"table": "Or", "keyIndex": True}], "3 to 255"),
    ("tables", [{"table": "Orders", "keyIndex": "yes"}], 'keyIndex that is "yes"; it must be true'),
    ("tables", [{"table": "Orders", "keyIndex": 1}], "true or false"),
    ("tables", [{"table": "Orders", "sentinelSortKey": "!"}], "left out without keyIndex"),
    ("tables", [{"table": "Orders", "keyIndex": True, "sentinelSortKey": ""}], "not empty"),
    ("tables", [{"table": "Orders", "keyIndex": True, "sentinelSortKey": 7}], "a text"),
    ("tables", [{"table": "Orders", "keyAttributes": []}], "a list of attributes"),
    ("tables", [{"table": "Orders", "keyAttributes": "customer"}], "a list of attributes"),
    ("tables", ["Orders", {"table": "Orders", "keyIndex": True}], "once"),
    ("tables", [{"table": "Orders", "kmsKey": "alias/orders"}], "not its alias"),
    ("tables", [{"table": "Orders", "kmsKey": "1a2b"}], "arn:aws:kms:REGION:ACCOUNT:key/ID"),
    ("verifyIndexSchedule", "weekly", "rate(7 days)"),
    ("verifyIndexSchedule", "rate(7 day)", "rate(7 days)"),
    ("verifyIndexSchedule", "rate(1 days)", "rate(7 days)"),
    ("verifyIndexSchedule", "rate(0 days)", "rate(7 days)"),
    ("verifyIndexSchedule", "rate(7 weeks)", "rate(7 days)"),
    ("verifyIndexSchedule", "cron(0 3 * * * *)", "cron(0 3 ? * SUN *)"),
    ("verifyIndexSchedule", "cron(0 3 ? * SUN)", "cron(0 3 ? * SUN *)"),
    ("verifyIndexSchedule", 7, "or never"),
    *(("maxCost", value, "") for value in (0, -1, 0.001, "much", True, [10])),
    ("prices", {"reads": 0.2}, ""),
    ("shrinkSchedule", "daily", "rate(7 days)"),
    ("shrinkSchedule", "rate(1 days)", "or never"),
    ("shrinkSchedule", 1, "or never"),
    ("startDrains", "yes", "true or false"),
    ("startDrains", 1, "true or false"),
    ("startDrain", True, "did you mean startDrains?"),
    ("keyAttributes", ["customer"], "an object"),
    ("keyAttributes", "customer", "an object"),
    ("keyAttributes", {"Order": ["customer"]}, "Order is not one of them"),
    ("keyAttributes", {"Orders": []}, "a list of attributes"),
    ("keyAttributes", {"Orders": "customer"}, "a list of attributes"),
    ("keyAttributes", {"Orders": [1]}, "a list of attributes"),
    ("resultsRetentionDays", 0, "from 7 to 3650"),
    ("resultsRetentionDays", "ninety", "whole number"),
    ("resultsRetentionDays", 1.5, "whole number"),
    ("resultsRetentionDays", True, "whole number"),
    ("keepResults", "yes", "true or false"),
    ("keepResults", 1, "true or false"),
    ("logLevel", "info", "INFO, WARNING, ERROR"),
    ("logLevel", "DEBUG", "INFO, WARNING, ERROR"),
    ("logLevel", 20, "INFO"),
    ("logRetentionDays", 31, "30, 60"),
    ("alarmEmail", "me", "one e-mail address"),
    ("alarmEmail", "a@example.com,b@example.com", "one e-mail address"),
    ("architecture", "arm", "arm64, x86_64"),
    ("architecture", ["arm64"], "arm64"),
    ("workerMemoryMb", 511, "from 512 to 10240"),
    ("workerMemoryMb", 10241, "from 512 to 10240"),
    ("workerTimeoutSeconds", 29, "from 30 to 900"),
    ("workerTimeoutSeconds", 901, "from 30 to 900"),
    ("workerTimeoutSeconds", "-60", "from 30 to 900"),
    ("reservedConcurrency", 0, "from 1 to 1000"),
    ("stackName", "key_hop", "letters, digits and hyphens"),
    ("stackName", "K" * 49, "1 to 48"),
    ("stackName", 7, "letters"),
    ("dynamodbEndpoint", "http://dynamodb.example.com:8000", "this machine"),
    ("dynamodbEndpoint", "http://127.0.0.1.example.com:8000", "this machine"),
    ("dynamodbEndpoint", "http://127.0.0.1", "this machine"),
    ("dynamodbEndpoint", "http://127.0.0.1:70000", "this machine"),
    ("dynamodbEndpoint", "https://127.0.0.1:8000", "this machine"),
    ("table", "Orders", "did you mean tables?"),
    ("resultRetentionDays", 30, "did you mean resultsRetentionDays?"),
    ("zone", "a", "known are tables, keyAttributes"),
]


@pytest.mark.parametrize(("field", "value", "told"), WRONG)
def test_a_wrong_value_names_the_field_and_what_is_allowed(field: str, value: Any, told: str):
    with pytest.raises(ConfigError) as error:
        config(**{field: value})
    sentence = str(error.value)
    assert sentence.startswith(f"The context field {field} ")
    assert told in sentence
    assert sentence[-1] in ".?"
    assert "\n" not in sentence


def test_a_wrong_value_is_shown_as_it_was_given():
    with pytest.raises(ConfigError, match=r'workerMemoryMb is "2GB"; it must be'):
        config(workerMemoryMb="2GB")


def test_the_allow_list_fits_into_the_functions_environment():
    """All variables of a function share 4,096 bytes; test_limits.py has the bounds."""
    longest = [f"arn:aws:dynamodb:eu-west-1:123456789012:table/{n:032}" for n in range(36)]
    assert len(config(tables=longest).tables) == 36


def test_with_key_indexes_it_fits_as_well():
    """They are named twice: in the list, and with the sort key of their sentinels."""

    def named(count: int) -> list[Any]:
        names = [f"Table{n:05}" for n in range(100)]
        kept = [{"table": n, "keyIndex": True, "sentinelSortKey": "\u1234"} for n in names]
        return [*kept[:count], *names[count:]]

    assert config(tables=named(40))
    with pytest.raises(ConfigError, match=r"has 100 tables, of which [0-9]+ fit"):
        config(tables=named(100))


def test_every_retention_that_cloudwatch_has_may_be_chosen():
    finite = [name for name in logs.RetentionDays if name != logs.RetentionDays.INFINITE]
    assert len(LOG_RETENTION_DAYS) == len(finite)
    for days in LOG_RETENTION_DAYS:
        assert config(logRetentionDays=str(days)).log_retention_days == days
