"""The wheel's packages, the functions' code in `keyhop_cdk` (the folder infra), and the pages.

All else about the package is in pyproject.toml. That file cannot say this: no build backend packs a
folder twice, the second time without a part of it.
"""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

NOT_FOR_FUNCTIONS = ("cli", "__main__.py", "__pycache__", "*.egg-info")


class WithData(build_py):
    """Copies the functions' code, the definitions and the pages, as a checkout has them."""

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
            for page in Path("docs").rglob("*.md"):
                copy = Path(self.build_lib) / "keyhop" / page
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(page, copy)


setup(
    packages=[*find_packages("lambdas", include=["keyhop*"]), "keyhop_cdk"],
    cmdclass={"build_py": WithData},
)
