"""Tables of the benchmarks' documents."""

from collections.abc import Iterable, Iterator, Sequence


def markdown(
    headings: Sequence[str], rows: Iterable[Sequence[str]], left_columns: int = 1
) -> Iterator[str]:
    """Yield the lines of a table whose first columns are aligned to the left."""
    yield "| " + " | ".join(headings) + " |"
    yield (
        "|" + "|".join("---" if at < left_columns else "---:" for at in range(len(headings))) + "|"
    )
    for row in rows:
        yield "| " + " | ".join(row) + " |"
