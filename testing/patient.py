"""The command without the time limit for an orderly stop, which a busy machine may exceed."""

import sys

from keyhop.cli import session
from keyhop.cli.main import main

if __name__ == "__main__":
    session.STOP_SECONDS = 3600.0
    sys.exit(main())
