"""Tables of the benchmarks' documents."""

from collections.abc import Iterable, Iterator, Sequence


def markdown(
    headings: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1
) -> Iterator[str]:
    """A table's lines; the first `left` columns are aligned to the left."""
    yield "| " + " | ".join(headings) + " |"
    yield "|" + "|".join("---" if at < left else "---:" for at in range(len(headings))) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
