"""The wheel, for tests of the installed package instead of the checkout."""

import subprocess
import sys
from pathlib import Path

from testing.servers import ROOT


def wheel_in(folder: Path) -> Path:
    """Build the wheel from a source distribution, which shows that the latter is complete."""
    sdist = [sys.executable, "-m", "hatchling", "build", "--target", "sdist"]
    subprocess.run([*sdist, "--directory", str(folder)], cwd=ROOT, check=True)
    (sources,) = folder.glob("*.tar.gz")
    _pip("wheel", "--no-build-isolation", "--wheel-dir", str(folder), str(sources))
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed_in(folder: Path, wheel: Path) -> Path:
    """Install the wheel without dependencies, which the environment of the tests has."""
    _pip("install", "--no-compile", "--target", str(folder), str(wheel))
    return folder


def _pip(action: str, *arguments: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps")
    subprocess.run([sys.executable, "-m", "pip", action, *quiet, *arguments], check=True)
