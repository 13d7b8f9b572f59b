"""The CDK app's constructs, which share the library's pure modules.

In a wheel this folder is the package `keyhop_cdk`, and its folder `data` has the functions'
handlers and the definitions, which are beside this folder in a checkout.
"""

import sys

from .paths import IS_INSTALLED, LAMBDAS

# Deploying takes the packages of requirements-deploy.txt only: there the library is not installed.
if not IS_INSTALLED:
    sys.path.insert(0, str(LAMBDAS))

from .config_values import ConfigError
from .deployment import KeyEnumeration
from .each import ForEachKey
from .key_index import KeyIndex
from .layer import LayerError
from .network import PRIVATE_DNS, Network
from .rekey import Rekey
from .report import KeyReports
from .sharding import ShardedTables
from .stack import KeyhopStack
from .tables import keyhop_pair, keyhop_table

__all__ = [
    "PRIVATE_DNS",
    "ConfigError",
    "ForEachKey",
    "KeyEnumeration",
    "KeyIndex",
    "KeyReports",
    "KeyhopStack",
    "LayerError",
    "Network",
    "Rekey",
    "ShardedTables",
    "keyhop_pair",
    "keyhop_table",
]
