"""The documents' sessions that need the deployed stack print what stands there, figures masked."""

from pathlib import Path

from tests.docs import permissions
from tests.docs.deployed import at_work, printed
from tests.docs.pages import PAGES
from tests.docs.sessions import STACK, agrees, blocks
from tests.e2e.conftest import Deployed


def test_sessions_of_a_deployment_print_what_they_show(
    deployed: Deployed, small: set[str], tmp_path: Path
) -> None:
    differ = []
    with at_work(deployed.cloud, tmp_path) as (people, keyhop):
        for page in PAGES:
            for block in blocks(page.read_text()):
                for step in block.steps if block.kind == STACK else ():
                    now = printed(step.command, tmp_path, keyhop)
                    if not agrees(step.shown, now):
                        differ.append((step.command, step.shown, now))
    assert differ == []
    assert people.denied() == [], "what it asked of AWS is not understood"
    assert permissions.beyond(people.calls, "calls_of_stacks.json") == []
