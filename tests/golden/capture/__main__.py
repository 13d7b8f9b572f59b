"""Write the golden files."""

import argparse
import sys

from tests.golden.capture import CAPTURES, captured
from tests.golden.capture.contexts import FILES, ROOT


def main() -> None:
    parser = argparse.ArgumentParser(description="Renew the golden files.")
    parser.add_argument("--write", action="store_true", help="the files that are compared")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    for name in (options.names or CAPTURES) if options.write else ():
        path = FILES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(captured(name), encoding="utf-8")
        print(path.relative_to(ROOT), file=sys.stderr)


if __name__ == "__main__":
    main()
