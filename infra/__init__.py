"""The CDK app's constructs, which share the library's pure modules."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAMBDAS = ROOT / "lambdas"

# Deploying takes the packages of requirements-deploy.txt only: there the library is not installed.
sys.path.insert(0, str(LAMBDAS))
