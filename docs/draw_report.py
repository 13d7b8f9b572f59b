"""Draw docs/report.svg, what a key report looks like: `python -m docs.draw_report REPORT.json`.

REPORT.json is what `keyhop report TABLE --format json` puts out. The pictures are the page's own.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "lambdas")]

from keyhop.report.pages.svg.poster import poster  # noqa: E402

PICTURE = ROOT / "docs" / "report.svg"


def main(words: list[str]) -> None:
    """Write the picture."""
    if len(words) != 1:
        raise SystemExit("usage: python -m docs.draw_report REPORT.json")
    document = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    PICTURE.write_text(f"{poster(document)}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
