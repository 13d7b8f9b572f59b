"""The wheel's packages, and what `keyhop_cdk` (the folder infra) carries for the functions.

All else about the package is in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

NOT_FOR_FUNCTIONS = ("cli", "__main__.py", "__pycache__", "*.egg-info")


class WithData(build_py):
    """Copies the functions' code and the definitions, as infra finds them in a checkout."""

    def run(self) -> None:
        """Of the folder that is built, so that nothing of an earlier build gets into the wheel."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            data = Path(self.build_lib) / "keyhop_cdk" / "data"
            ignored = shutil.ignore_patterns(*NOT_FOR_FUNCTIONS)
            for folder in ("lambdas", "statemachines"):
                shutil.copytree(folder, data / folder, ignore=ignored)


setup(
    packages=[*find_packages("lambdas", include=["keyhop*"]), "keyhop_cdk"],
    cmdclass={"build_py": WithData},
)
