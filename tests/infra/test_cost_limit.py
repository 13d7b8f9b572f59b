"""What may be spent, and at which prices: from keyhop.json to the functions."""

import json
from typing import Any

import pytest
from handlers.settings import ManageSettings, PlanSettings

from infra.config import Config, ConfigError
from tests.infra.conftest import deployed, stack_of
from tests.infra.template import FUNCTIONS

PRICES = {"reads": 0.2, "writes": 1}


def config(**context: Any) -> Config:
    return Config.from_context({"tables": ["Orders"], **context})


@pytest.mark.parametrize("given", [25, 25.0, "25"])
def test_the_limit_is_a_number_also_as_text(given: Any) -> None:
    assert config(maxCost=given).max_cost == 25.0
    assert config().max_cost == 10.0


@pytest.mark.parametrize("given", [0, -1, 0.001, "much", True, [10]])
def test_another_limit_is_refused_by_its_name(given: Any) -> None:
    with pytest.raises(ConfigError, match="maxCost"):
        config(maxCost=given)


def test_prices_of_ones_own_are_json_also_from_the_command_line() -> None:
    assert config().prices is None
    for given in (PRICES, json.dumps(PRICES)):
        assert json.loads(config(prices=given).prices or "") == PRICES
    with pytest.raises(ConfigError, match="prices"):
        config(prices={"reads": 0.2})


def test_the_functions_know_both() -> None:
    tables = [{"table": "Orders", "keyIndex": True}]
    stack = deployed(stack_of({"tables": tables, "maxCost": 25, "prices": PRICES}))
    for name, settings in (("PlanRun", PlanSettings), ("ManageIndex", ManageSettings)):
        environment = stack.function(name)["Environment"]["Variables"]
        texts = {name: str(value) for name, value in environment.items()}
        found = settings.from_env(texts)
        assert found.max_cost == 25.0
        assert json.loads(found.prices) == PRICES
    for name in FUNCTIONS:
        environment = stack.function(name)["Environment"]["Variables"]
        assert json.loads(environment["KEYHOP_PRICES"]) == PRICES
    shown = json.dumps(stack.dashboard)
    assert "RUNNING_SUM(units) * 0.0000002000" in shown
    assert "dollars of reads (on demand, at your own prices)" in shown
