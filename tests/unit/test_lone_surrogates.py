"""Check that each entry point refuses half of a surrogate pair, which is not valid UTF-8."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from keyhop.cli.each_actions import _json
from keyhop.cli.report_actions import _old
from keyhop.each.request import EachInput
from keyhop.errors import CannotStart, InvalidInput
from keyhop.keys.request import KeysInput
from keyhop.rekey.template.load import read as read_template
from keyhop.report.request import ReportInput
from keyhop.report.sources.code import read_directory
from keyhop.report.sources.requests import read_requests

from infra.config import settings_of
from infra.config_values import ConfigError
from testing.databases import keyhop

HALF = "\udcff"
SAYS = "half of a surrogate pair"


@pytest.mark.parametrize(
    "arguments",
    [
        ("keys", f"Orders{HALF}"),
        ("keys", "Orders", "--stack", f"K{HALF}"),
        ("keys", "Orders", "--output", f"/nowhere/{HALF}"),
        ("each", "Orders", "--put", f"{HALF}.json"),
        ("report", "Orders", "--code", HALF),
        ("shards", "add", "Orders", HALF, "1"),
        ("rekey", "plan", "Orders", "--template", f"{HALF}.yaml"),
        (HALF,),
    ],
)
def test_an_argument_that_is_not_utf_8_is_refused(arguments: tuple[str, ...]) -> None:
    refused = keyhop(*arguments)
    assert (refused.status, refused.out) == (2, b"")
    assert refused.err == (
        f"keyhop: The argument {next(word for word in arguments if HALF in word)!r} is not UTF-8. "
        "Give names, keys and paths in UTF-8, and keys that are binary in base64.\n"
    )


@pytest.mark.parametrize(
    ("parse", "job_input"),
    [
        (KeysInput.parse, {"table": f"Orders{HALF}"}),
        (KeysInput.parse, {"table": "Orders", HALF: 1}),
        (EachInput.parse, {"table": "Orders", "put": {"sk": HALF}}),
        (EachInput.parse, {"table": "Orders", "put": {"sk": "#a", HALF: 1}}),
        (EachInput.parse, {"table": "Orders", "delete": True, "where": f"begins_with({HALF})"}),
        (ReportInput.parse, {"table": "Orders", "baseline": HALF}),
    ],
)
def test_an_input_of_an_execution_is_refused(parse: Any, job_input: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=SAYS):
        parse(job_input)


@pytest.mark.parametrize("value", [{"sk": HALF}, {HALF: 1}, {"a": [{"b": HALF}]}])
def test_a_file_of_json_is_refused(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "given.json"
    path.write_text(json.dumps(value))
    with pytest.raises(CannotStart, match=f"--put cannot be read as JSON: .*{SAYS}"):
        _json(str(path), "--put")
    with pytest.raises(CannotStart, match=f"cannot be read as JSON: .*{SAYS}"):
        _old(str(path))
    with pytest.raises(CannotStart, match=f"is not a template: .*{SAYS}"):
        read_template(path)


def test_a_template_in_yaml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "template.yaml"
    path.write_text('items: [{"pk": "\\ud800"}]')
    with pytest.raises(CannotStart, match="is not a template"):
        read_template(path)


def test_settings_of_a_deployment_are_refused(tmp_path: Path) -> None:
    (tmp_path / "keyhop.json").write_text(json.dumps({"tables": [f"Orders{HALF}"]}))
    with pytest.raises(ConfigError, match=f"keyhop.json cannot be read as JSON: .*{SAYS}"):
        settings_of({}, tmp_path)


def test_a_line_of_the_request_sampler_is_skipped(tmp_path: Path) -> None:
    line = {"keyhop": "requests", "version": 1, "began": 0, "ended": 1, "shapes": [{"table": HALF}]}
    path = tmp_path / "requests.log"
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(CannotStart):
        read_requests(path, "Orders")


def test_a_file_of_code_may_have_any_name(tmp_path: Path) -> None:
    code = "import boto3\nboto3.resource('dynamodb').Table('Orders').scan()\n"
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/shop\xff.py")).write_text(code)
    names = str(read_directory(tmp_path))
    names.encode()
    assert "shop\\xff.py" in names.replace("\\\\", "\\")
