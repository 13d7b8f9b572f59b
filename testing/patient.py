"""The command, with all the time to stop in order: its last resort ends it on a busy machine."""

import sys

from keyhop.cli import session
from keyhop.cli.main import main

if __name__ == "__main__":
    session.STOP_SECONDS = 3600.0
    sys.exit(main())
