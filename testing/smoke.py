"""A smoke test of an installed command with the stand-in: version, help, keys, a plan, an error.

python -m testing.smoke COMMAND     with the path of a command of any environment
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
    """Run the command, and raise AssertionError for a wrong answer.

    The command runs in the folder with an empty PATH, because it must need neither Java nor Node.
    """
    variables = {"PATH": "", "HOME": str(folder), **(environment or {})}

    def output(*arguments: str, status: int = 0) -> str:
        result = subprocess.run(
            [*command, *arguments],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        status_line = f"{arguments} ended with {result.returncode}: {result.stderr}"
        assert result.returncode == status, status_line
        return result.stdout + result.stderr * (status != 0)

    assert output("--version").startswith("keyhop ")
    for subcommand in (("keys",), ("index", "build"), ("shards", "list")):
        assert "TABLE" in output(*subcommand, "--help")
    with running() as stand_in:
        endpoint = ("--endpoint-url", stand_in.url)
        keys = Database("stand_in", stand_in.url).collections("Orders", [3, 1, 4, 1, 5] * 10)
        listed = output("keys", "Orders", "--quiet", *endpoint).splitlines()
        assert sorted(listed) == sorted(keys)
        assert "distinct partition keys" in output("keys", "Orders", "--dry-run", *endpoint)
        assert "There is no table 'Missing'" in output("keys", "Missing", *endpoint, status=2)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        command, *more = sys.argv[1:]
        smoke([str(Path(command).absolute()), *more], Path(folder))
    print(f"{' '.join(sys.argv[1:])}: version, help, keys, a plan and an error are correct")
