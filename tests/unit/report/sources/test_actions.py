"""Test that docs/reference/report-sources.md names exactly the actions that the sources need."""

import re
from pathlib import Path

from keyhop.report.sources import control_plane, insights, metrics, places, stream

SAMPLE_ACTIONS = {"dynamodb:Scan", "dynamodb:Query"}
PAGE = Path(__file__).parents[4] / "docs" / "reference" / "report-sources.md"


def test_the_page_names_each_action():
    named = set(re.findall(r"`((?:dynamodb|cloudwatch):\w+)`", PAGE.read_text()))
    sources = (control_plane, insights, metrics, places, stream)
    assert named == SAMPLE_ACTIONS | {action for source in sources for action in source.ACTIONS}
