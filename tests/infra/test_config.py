import json
from typing import Any

import pytest
from aws_cdk import aws_logs as logs

from infra.config import Config, ConfigError, Table
from infra.config_values import LOG_RETENTION_DAYS

ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders"


def config(**context: Any) -> Config:
    return Config.from_context({"tables": ["Orders"], **context})


def test_only_the_tables_are_required():
    defaults = config()
    assert [table.name for table in defaults.tables] == ["Orders"]
    assert (defaults.stack_name, defaults.architecture) == ("Keyhop", "arm64")
    assert (defaults.results_retention_days, defaults.keep_results) == (90, True)
    assert (defaults.log_level, defaults.log_retention_days) == ("INFO", 30)
    assert (defaults.worker_memory_mb, defaults.worker_timeout_seconds) == (1769, 900)
    assert defaults.reserved_concurrency is None
    assert defaults.alarm_email is None
    assert defaults.dynamodb_endpoint is None
    assert defaults.verify_index_schedule == "rate(7 days)"
    assert (defaults.key_index_tables, defaults.sharded_tables) == ((), ())
    assert (defaults.max_cost, defaults.prices) == (10.0, None)
    assert (defaults.shrink_schedule, defaults.start_drains) == ("rate(1 day)", False)


def test_the_command_line_may_pass_every_value_as_text():
    """An example is `cdk deploy -c tables=Orders,Customers -c keepResults=false`."""
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


def test_a_table_may_have_options():
    plain, indexed, with_sort_key = config(
        tables=[
            {"table": "Orders"},
            {"table": ARN, "keyIndex": True, "keyAttributes": ["customer", "order"]},
            {"table": "Events", "keyIndex": True, "sentinelSortKey": " !"},
        ]
    ).tables
    assert plain == Table("Orders")
    assert (indexed.name, indexed.arn) == ("Orders", ARN)
    assert indexed == Table(ARN, key_index=True, key_attributes=("customer", "order"))
    assert with_sort_key == Table("Events", key_index=True, sentinel_sort_key=" !")


def test_prices_may_be_an_object_or_json():
    prices = {"reads": 0.2, "writes": 1}
    for setting in (prices, json.dumps(prices)):
        assert json.loads(config(prices=setting).prices or "") == prices


def test_a_table_with_a_key_index_may_be_json():
    """An example is `cdk deploy -c 'tables=[{"table":"Flights","keyIndex":true}]'`."""
    typed = config(tables='["Orders", {"table":"Flights","keyIndex":true}]')
    assert [table.name for table in typed.tables] == ["Orders", "Flights"]
    assert [table.name for table in typed.key_index_tables] == ["Flights"]


def test_key_attributes_may_be_in_either_field():
    in_entry = config(tables=[{"table": "Orders", "keyAttributes": ["customer"]}, "Flights"])
    in_field = config(tables=["Orders", "Flights"], keyAttributes={"Orders": ["customer"]})
    assert in_entry == in_field


def test_key_attributes_in_both_fields_are_refused():
    with pytest.raises(ConfigError, match=r"keyAttributes names Orders, whose entry in tables"):
        config(
            tables=[{"table": "Orders", "keyAttributes": ["customer"]}],
            keyAttributes={"Orders": ["customer"]},
        )


@pytest.mark.parametrize(
    ("field", "value", "name", "expected"),
    [
        *(
            ("verifyIndexSchedule", schedule, "verify_index_schedule", schedule)
            for schedule in (
                *("rate(1 day)", "rate(12 hours)", "rate(90 minutes)"),
                *("cron(0 3 ? * SUN *)", "cron(0 3 1 * ? *)"),
            )
        ),
        ("verifyIndexSchedule", "never", "verify_index_schedule", None),
        *(("maxCost", value, "max_cost", 25.0) for value in (25, 25.0, "25")),
        # An empty text removes a value of cdk.json.
        ("alarmEmail", "", "alarm_email", None),
        ("architecture", "x86-64", "architecture", "x86_64"),
        ("architecture", "x86_64", "architecture", "x86_64"),
        # DynamoDB may be on this machine.
        *(
            ("dynamodbEndpoint", endpoint, "dynamodb_endpoint", endpoint.rstrip("/"))
            for endpoint in ("http://127.0.0.1:8000", "http://localhost:4566/", "http://[::1]:8000")
        ),
    ],
)
def test_a_value_is_accepted(field: str, value: Any, name: str, expected: Any):
    assert getattr(config(**{field: value}), name) == expected


@pytest.mark.parametrize(
    "arn",
    [
        ARN,
        "arn:aws-cn:dynamodb:cn-north-1:123456789012:table/Orders",
        "arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/Orders",
    ],
)
def test_a_table_may_be_in_another_account_region_or_partition(arn: str):
    (table,) = config(tables=[arn]).tables
    assert (table.arn, table.name) == (arn, "Orders")


def test_the_context_of_the_cdk_is_accepted():
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


@pytest.mark.parametrize(("field", "value", "expected"), WRONG)
def test_an_error_names_the_field_and_the_allowed_values(field: str, value: Any, expected: str):
    with pytest.raises(ConfigError) as error:
        config(**{field: value})
    sentence = str(error.value)
    assert sentence.startswith(f"The context field {field} ")
    assert expected in sentence
    assert sentence[-1] in ".?"
    assert "\n" not in sentence


def test_an_error_shows_the_value():
    with pytest.raises(ConfigError, match=r'workerMemoryMb is "2GB"; it must be'):
        config(workerMemoryMb="2GB")


def test_the_allow_list_fits_into_the_environment_of_a_function():
    """All variables of a function share 4,096 bytes; test_limits.py checks the limits."""
    longest = [f"arn:aws:dynamodb:eu-west-1:123456789012:table/{n:032}" for n in range(36)]
    assert len(config(tables=longest).tables) == 36


def test_tables_with_key_indexes_fit_into_the_environment_too():
    """The environment names them twice: in the list, and with the sort key of their sentinels."""

    def tables(count: int) -> list[Any]:
        names = [f"Table{n:05}" for n in range(100)]
        indexed = [{"table": n, "keyIndex": True, "sentinelSortKey": "\u1234"} for n in names]
        return [*indexed[:count], *names[count:]]

    assert config(tables=tables(40))
    with pytest.raises(ConfigError, match=r"has 100 tables, of which [0-9]+ fit"):
        config(tables=tables(100))


def test_every_retention_period_of_cloudwatch_is_accepted():
    finite = [name for name in logs.RetentionDays if name != logs.RetentionDays.INFINITE]
    assert len(LOG_RETENTION_DAYS) == len(finite)
    for days in LOG_RETENTION_DAYS:
        assert config(logRetentionDays=str(days)).log_retention_days == days
