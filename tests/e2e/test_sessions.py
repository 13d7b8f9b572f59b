"""Run the sessions in the documents that need the deployed stack, and compare their output."""

from pathlib import Path

from tests.docs import permissions
from tests.docs.deployed import at_work, printed
from tests.docs.pages import PAGES
from tests.docs.sessions import STACK, agrees, blocks
from tests.e2e.conftest import Deployed


def test_sessions_of_a_deployment_print_what_they_show(
    deployed: Deployed, small: set[str], tmp_path: Path
) -> None:
    differences = []
    with at_work(deployed.cloud, tmp_path) as (people, keyhop):
        for page in PAGES:
            for block in blocks(page.read_text()):
                for step in block.steps if block.kind == STACK else ():
                    output = printed(step.command, tmp_path, keyhop)
                    if not agrees(step.shown, output):
                        differences.append((step.command, step.shown, output))
    assert differences == []
    assert people.denied() == [], "a call of AWS that the recorder does not know"
    assert permissions.beyond(people.calls, "calls_of_stacks.json") == []
