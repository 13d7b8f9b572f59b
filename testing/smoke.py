"""A first use of an installed command, against the stand-in: versions, keys, a plan, an error.

python -m testing.smoke COMMAND     with the command by its path, of any environment
"""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from testing.databases import Database
from testing.standin.server import running

SECONDS = 60


def smoke(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Raises AssertionError for an answer that is not as it should be.

    The command runs in the folder, with an empty PATH: it may need neither Java nor Node.
    """
    around = {"PATH": "", "HOME": str(folder), **(environment or {})}

    def said(*arguments: str, status: int = 0) -> str:
        done = subprocess.run(
            [*command, *arguments],
            cwd=folder,
            env=around,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == status, f"{arguments} ended with {done.returncode}: {done.stderr}"
        return done.stdout + done.stderr * (status != 0)

    assert said("--version").startswith("keyhop ")
    for help_of in (("keys",), ("index", "build"), ("shards", "list")):
        assert "TABLE" in said(*help_of, "--help")
    with running() as stand_in:
        there = ("--endpoint-url", stand_in.url)
        keys = Database("stand_in", stand_in.url).collections("Orders", [3, 1, 4, 1, 5] * 10)
        listed = said("keys", "Orders", "--quiet", *there).splitlines()
        assert sorted(listed) == sorted(keys)
        assert "distinct partition keys" in said("keys", "Orders", "--dry-run", *there)
        assert "There is no table 'Missing'" in said("keys", "Missing", *there, status=2)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        command, *more = sys.argv[1:]
        smoke([str(Path(command).absolute()), *more], Path(folder))
    print(
        f"{' '.join(sys.argv[1:])}: version, help, keys, a plan and an error are as they should be"
    )
