"""`python -m keyhop`."""

import sys

from keyhop.cli.main import main

sys.exit(main())
