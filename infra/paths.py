"""The places of the functions' code and the definitions, in a checkout or an installed package."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent
_DATA = _HERE / "data"
IS_INSTALLED = _DATA.is_dir()
ROOT = _DATA if IS_INSTALLED else _HERE.parent
LAMBDAS = ROOT / "lambdas"
