"""The wheel, for tests that need what is installed and not the checkout."""

import shutil
import subprocess
import sys
from pathlib import Path

from testing.servers import ROOT

SOURCES = (
    *("pyproject.toml", "setup.py", "MANIFEST.in", "LICENSE", "README.md", "CHANGELOG.md"),
    *("docs", "lambdas", "infra", "statemachines"),
)
"""All that it is made of; a test that copies them finds out if something is missing."""


def wheel_in(folder: Path) -> Path:
    """Build it there, as `make dist` does, from a copy: a build writes into its sources."""
    sources = folder / "sources"
    sources.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, sources / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, sources / name)
    _pip("wheel", "--no-build-isolation", "--wheel-dir", str(folder), str(sources))
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed_in(folder: Path, wheel: Path) -> Path:
    """Unpack it there, without what it needs, which the environment of the tests has."""
    _pip("install", "--no-compile", "--target", str(folder), str(wheel))
    return folder


def _pip(action: str, *arguments: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps")
    subprocess.run([sys.executable, "-m", "pip", action, *quiet, *arguments], check=True)
