"""How an execution of RekeyCutOver ends, by what its step says and by what has failed."""

import json

import pytest

from infra.machines import definition
from tests.infra.asl import end_of
from tests.infra.test_failures import EXCEPTION, SENTENCE

STATES = json.loads(definition("rekey-cutover"))["States"]


@pytest.mark.parametrize(
    ("action", "error"), [("refused", "GateShut"), ("called off", "CalledOff")]
)
def test_what_did_not_come_about_fails_with_its_reason_and_no_alarm(action: str, error: str):
    ended = end_of(STATES, "WhatFollows", {"action": action, "why": "claims: 2 items"})
    assert (ended.error, ended.cause, ended.alarms) == (error, "claims: 2 items", 0)


def test_whatever_fails_calls_it_off_but_for_a_wrong_input_which_has_changed_nothing():
    (of_input, rest) = STATES["CutOver"]["Catch"]
    assert (of_input["ErrorEquals"], of_input["Next"]) == (["InvalidInput"], "WhyItFailed")
    assert (rest["ErrorEquals"], rest["Next"]) == (["States.ALL"], "Abort")


@pytest.mark.parametrize(("error", "alarms"), [("TableNotFound", 0), ("KeyError", 1)])
def test_what_has_failed_is_told_after_it_was_called_off(error: str, alarms: int):
    failed = {"Error": error, "Cause": EXCEPTION, "aborted": {"action": "called off"}}
    ended = end_of(STATES, "HasItTurned", failed)
    assert (ended.error, ended.cause, ended.alarms) == (error, SENTENCE, alarms)


def test_what_had_turned_is_done_although_a_step_has_failed():
    done = next(rule["Next"] for rule in STATES["HasItTurned"]["Choices"])
    assert STATES[done]["Type"] == "Succeed"


def test_what_cannot_be_called_off_needs_a_person():
    (catch,) = STATES["Abort"]["Catch"]
    failed = {"Error": "Lambda.Unknown", "Cause": "no memory", "abort": {"Error": "x"}}
    ended = end_of(STATES, catch["Next"], failed)
    assert (ended.error, ended.alarms) == ("Lambda.Unknown", 1)
