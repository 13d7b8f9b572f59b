"""The layer with the functions' third-party packages, built by pip, without docker.

It is built once for each content of lambdas/handlers/requirements.txt, in .cache/layers/<hash> of
the checkout, or in the user's home directory if the package is installed.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .paths import IS_INSTALLED, LAMBDAS, ROOT

REQUIREMENTS = LAMBDAS / "handlers" / "requirements.txt"
CACHE = Path.home() / ".cache/keyhop/layers" if IS_INSTALLED else ROOT / ".cache/layers"
PATIENCE_SECONDS = 300

_PURE_PYTHON_ONLY = (
    *("--no-deps", "--no-compile", "--only-binary=:all:"),
    *("--platform", "any", "--implementation", "py", "--abi", "none"),
    *("--python-version", "3.13"),
)
_NEVER_IMPORTED = ("bin", "wrapt-stubs")
"""Scripts carry the path of the Python that installed them; stubs are for type checkers."""


SERVICES = (
    *("application-autoscaling", "cloudwatch", "dynamodb", "dynamodbstreams", "lambda", "s3"),
    *("sqs", "stepfunctions", "xray"),
)
"""The services whose clients the functions use, and those that importing the X-Ray SDK needs.

botocore's models of the 400 other services are three quarters of the layer. Without them a function
starts sooner."""


class LayerError(Exception):
    """The layer cannot be built; the message says what failed."""


def fingerprint(requirements: Path = REQUIREMENTS) -> str:
    """Return a hash of the inputs of the layer."""
    recipe = Path(__file__).read_bytes()
    return hashlib.sha256(recipe + requirements.read_bytes()).hexdigest()


def built(requirements: Path = REQUIREMENTS, cache: Path = CACHE) -> Path:
    """Return the folder of the layer, which contains `python/`; build it if it is missing."""
    ready = cache / fingerprint(requirements)
    if ready.is_dir():
        return ready
    cache.mkdir(parents=True, exist_ok=True)
    # Two synths at once each build their own; the first rename wins.
    with tempfile.TemporaryDirectory(prefix="building-", dir=cache) as folder:
        building = Path(folder) / "layer"
        _install(requirements, building / "python")
        try:
            building.rename(ready)
        except OSError:
            if not ready.is_dir():
                raise
    return ready


def _install(requirements: Path, target: Path) -> None:
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *_PURE_PYTHON_ONLY,
        *("--target", str(target), "--requirement", str(requirements)),
    ]
    try:
        completed = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired as late:
        raise LayerError(
            f"pip did not install {_shown(requirements)} within {PATIENCE_SECONDS} seconds; "
            "look at the connection to the package index, then try again."
        ) from late
    if completed.returncode:
        raise LayerError(
            f"pip cannot install {_shown(requirements)} for the functions (each package needs a "
            f"pure Python wheel): {_reason(completed.stderr)}"
        )
    for name in _NEVER_IMPORTED:
        shutil.rmtree(target / name, ignore_errors=True)
    for model in (target / "botocore" / "data").glob("*/"):
        if model.name not in SERVICES:
            shutil.rmtree(model)


def _shown(requirements: Path) -> str:
    try:
        return str(requirements.relative_to(ROOT))
    except ValueError:
        return requirements.name


def _reason(output: str) -> str:
    errors = [line.strip() for line in output.splitlines() if "ERROR" in line]
    return " ".join(errors or output.strip().splitlines()[-1:]) or "pip says nothing more."
