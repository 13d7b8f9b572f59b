"""What Lambda lets through of what a function prints, at each level of the deployment."""

import json
from datetime import datetime
from typing import Any

import pytest
from handlers.telemetry import function, make_logger, report

from tests.unit.invocations import Context, metrics_in

LEVELS = ("INFO", "WARNING", "ERROR")
OF_LAMBDA = "INFO"
"""The filter's level in the template, whatever logLevel is (tests/infra/test_functions.py)."""


def let_through(line: str, level: str = OF_LAMBDA) -> bool:
    """Whether Lambda's filter for logs of format JSON hands a line on.

    "If the level is invalid or missing, Lambda will assign the log output the level INFO. [...] If
    you don't supply a valid timestamp, Lambda will assign the log the level INFO" (Log-level
    filtering, Lambda Developer Guide).
    """
    record = json.loads(line)
    shown = record.get("level")
    if shown not in LEVELS or not is_rfc_3339(record.get("timestamp")):
        shown = "INFO"
    return LEVELS.index(shown) >= LEVELS.index(level)


def is_rfc_3339(timestamp: Any) -> bool:
    try:
        return datetime.fromisoformat(timestamp).tzinfo is not None and "T" in timestamp
    except (TypeError, ValueError):
        return False


@pytest.mark.parametrize("level", LEVELS)
def test_metrics_and_all_that_the_level_asks_for_come_through(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], level: str
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", OF_LAMBDA)  # as Lambda sets it for its filter
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", level)
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", f"test-{level}")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Keyhop")
    logger = make_logger()

    @function
    def handler(event: dict[str, Any], context: Any) -> None:
        report("Orders", KeysFound=1)
        for name in ("info", "warning", "error"):
            getattr(logger, name)(name)

    handler({}, Context())
    printed = capsys.readouterr().out.splitlines()
    assert all(map(let_through, printed)), "of what is printed, nothing is dropped"
    assert metrics_in("\n".join(printed)) == {("KeysFound", ""): 1}
    shown = [json.loads(line)["level"] for line in printed if '"_aws"' not in line]
    assert shown == [*LEVELS[LEVELS.index(level) :]]
    logs = [json.loads(line) for line in printed if '"_aws"' not in line]
    assert all(is_rfc_3339(log["timestamp"]) for log in logs)


@pytest.mark.parametrize("level", ["WARNING", "ERROR"])
def test_a_filter_of_that_level_would_drop_the_metrics(level: str) -> None:
    """Which the template had, and the alarms were silent."""
    assert not let_through('{"_aws": {}, "KeysFound": [1.0]}', level)
