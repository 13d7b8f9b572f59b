"""Renews the golden files."""

import argparse
import sys

from tests.golden.capture import CAPTURES, captured
from tests.golden.capture.contexts import FILES, ROOT


def main() -> None:
    """Renew the files."""
    asked = argparse.ArgumentParser(description="Renew the golden files.")
    asked.add_argument("--write", action="store_true", help="the files that are compared")
    asked.add_argument("names", nargs="*", metavar="NAME")
    options = asked.parse_args()
    for name in (options.names or CAPTURES) if options.write else ():
        path = FILES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(captured(name), encoding="utf-8")
        print(path.relative_to(ROOT), file=sys.stderr)


if __name__ == "__main__":
    main()
