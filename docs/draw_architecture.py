"""Draw docs/architecture.svg from the imports: `make pictures`.

A box is a package with its modules. The rows are the layers that pyproject.toml declares. An arrow
is an import that no other path of arrows implies. An arrow that points upward is red, and `make
lint` refuses such an import. An arrow within a row is dashed: pyproject.toml allows this import as
an exception.
"""

import sys
import tomllib
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from textwrap import wrap

import grimp

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "lambdas")]

from testing.dark import for_dark_pages  # noqa: E402

PICTURE = ROOT / "docs" / "architecture.svg"
WIDTH, MARGIN, GAP, ROW_GAP = 1180, 20, 16, 44
LINE, HEAD, CHARACTER = 15, 25, 6.7
LANE = 12
"""The width that a row reserves for an arrow that passes through it."""
Arrow = tuple[str, str]


@dataclass
class Box:
    """A package, or (without a name) the place where an arrow passes through a row."""

    name: str
    modules: tuple[str, ...] = ()
    x: float = 0.0
    y: float = 0.0
    width: float = LANE
    height: float = 0.0
    lines: tuple[str, ...] = ()

    @property
    def middle(self) -> float:
        """Return the x coordinate of its middle."""
        return self.x + self.width / 2


def declared_layers() -> list[list[str]]:
    """Return the layers from top to bottom, with the library divided into its packages."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    rooms, everything = (
        [
            [name.strip("() ") for name in layer.replace(":", "|").split("|")]
            for layer in contract["layers"]
        ]
        for contract in settings["contracts"]
        if contract["type"] == "layers"
    )
    in_rooms = {name for layer in rooms for name in layer}
    above = [name for (name,) in everything if name != "keyhop" and name not in in_rooms]
    return [[name] for name in above[:-1]] + [[above[-1], *rooms[0]], *rooms[1:]]


def imports_of(layers: list[list[str]]) -> tuple[dict[str, Box], set[Arrow]]:
    """Return the existing packages, and the pairs in which the first imports the second."""
    names = [name for layer in layers for name in layer]
    graph = grimp.build_graph(*sorted({name.partition(".")[0] for name in names}), cache_dir=None)
    boxes = {}
    for name in names:
        if name not in graph.modules:
            continue
        modules = sorted(
            child.removeprefix(f"{name}.")
            for child in graph.find_children(name)
            if not child.endswith("__main__")
        )
        boxes[name] = Box(name, tuple(modules))
        graph.squash_module(name)
    arrows = {
        (name, imported)
        for name in boxes
        for imported in graph.find_modules_directly_imported_by(name)
        if imported in boxes
    }
    return boxes, arrows


def without_implied(arrows: set[Arrow], level: dict[str, int]) -> set[Arrow]:
    """Return the arrows that no path of other downward arrows implies."""
    down = {(a, b) for a, b in arrows if level[a] < level[b]}

    def reaches(start: str, end: str) -> bool:
        return any(a == start and (b == end or reaches(b, end)) for a, b in down)

    return {
        (a, b) for a, b in arrows if not any(x == a and y != b and reaches(y, b) for x, y in down)
    }


def rows_of(
    layers: list[list[str]], boxes: dict[str, Box], arrows: set[Arrow]
) -> tuple[list[list[Box]], list[list[Box]]]:
    """Return the rows of boxes, and for each arrow the boxes that it leaves, passes, reaches."""
    rows = [[boxes[name] for name in layer if name in boxes] for layer in layers]
    level = {box.name: number for number, row in enumerate(rows) for box in row}
    ways = []
    for start, end in sorted(arrows):
        passed = [Box("") for _ in rows[level[start] + 1 : level[end]]]
        for number, place in enumerate(passed, level[start] + 1):
            rows[number].append(place)
        ways.append([boxes[start], *passed, boxes[end]])
    for row in rows:
        put_in_row(row)
    for turn in range(40):  # order each row by the boxes at the other ends of its arrows
        for row in rows if turn % 2 else reversed(rows):
            aims = {id(box): best_x(box, ways) for box in row}
            row[:] = sorted(row, key=lambda box: aims[id(box)])
            put_in_row(row)
    top = float(MARGIN)
    for row in rows:
        for box in row:
            box.y, box.height = top, max(neighbour.height for neighbour in row)
        top += row[0].height + ROW_GAP
    return rows, ways


def best_x(box: Box, ways: list[list[Box]]) -> float:
    """Return the x coordinate at which a box would have the shortest arrows."""
    ends = [
        end.middle
        for way in ways
        for upper, lower in pairwise(way)
        for start, end in ((upper, lower), (lower, upper))
        if start is box
    ]
    return sum(ends) / len(ends) if ends else box.middle


def put_in_row(row: list[Box]) -> None:
    """Set the x and the width of each box; packages with more modules are wider."""
    packages = [box for box in row if box.name]
    room = WIDTH - 2 * MARGIN - GAP * (len(row) - 1) - LANE * (len(row) - len(packages))
    shares = {box.name: 3 + len(", ".join(box.modules)) ** 0.5 for box in packages}
    widest = 480.0 if len(packages) > 1 else 760.0
    for box in packages:
        box.width = min(widest, room * shares[box.name] / sum(shares.values()))
        columns = int((box.width - 16) / CHARACTER)
        box.lines = tuple(wrap(", ".join(box.modules), columns))
        box.height = HEAD + LINE * len(box.lines) + 6
    x = (WIDTH - sum(box.width for box in row) - GAP * (len(row) - 1)) / 2
    for box in row:
        box.x = x
        x += box.width + GAP


def draw(rows: list[list[Box]], ways: list[list[Box]]) -> str:
    """Return the picture."""
    height = rows[-1][0].y + rows[-1][0].height + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        'font-family="Helvetica, Arial, sans-serif">',
        "<title>The packages of Keyhop, and which imports which</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#52606d"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>',
    ]
    parts += [arrow(way, ways) for way in ways]
    parts += [package(box) for row in rows for box in row if box.name]
    return for_dark_pages("\n".join([*parts, "</svg>", ""]))


def arrow(way: list[Box], ways: list[list[Box]]) -> str:
    """Draw an arrow from the importing package's lower edge to the imported one's upper edge."""
    start, *passed, end = way
    if start.y == end.y:
        x, to_x = (
            (start.x, end.x + end.width) if end.x < start.x else (start.x + start.width, end.x)
        )
        y = start.y + start.height / 2
        line = f'<path d="M{x:.0f} {y:.0f}H{to_x:.0f}" stroke="#52606d" stroke-dasharray="3 2" '
        return line + 'marker-end="url(#tip)"/>'
    leaving = sorted((w for w in ways if w[0] is start), key=lambda w: w[1].middle)
    coming = sorted((w for w in ways if w[-1] is end), key=lambda w: w[-2].middle)
    upward = start.y >= end.y
    x = port(start, leaving.index(way), len(leaving))
    y = start.y + (0 if upward else start.height)
    path = f"M{x:.0f} {y:.0f}"
    stops = [(box.middle, box.y, box.height) for box in passed]
    arrival = end.y + (end.height if upward else 0)
    stops.append((port(end, coming.index(way), len(coming)), arrival, 0.0))
    for to_x, to_y, height in stops:
        half = (y + to_y) / 2
        path += f"C{x:.0f} {half:.0f} {to_x:.0f} {half:.0f} {to_x:.0f} {to_y:.0f}"
        if height:
            path += f"V{to_y + height:.0f}"
        x, y = to_x, to_y + height
    colour = "#cf1124" if upward else "#52606d"
    return f'<path d="{path}" fill="none" stroke="{colour}" marker-end="url(#tip)"/>'


def port(box: Box, number: int, count: int) -> float:
    """Return the x at which the arrow with this number, of so many on an edge, meets the edge."""
    return box.x + box.width * (number + 1) / (count + 1)


def package(box: Box) -> str:
    """Draw a package: its name, and its modules below."""
    ships = box.name.startswith(("keyhop.", "handlers"))
    fill = "#e6f0fa" if ships else "#f4f1ea"
    title = box.name.removeprefix("keyhop.")
    text = [
        f'<g><rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" '
        f'height="{box.height:.0f}" rx="5" fill="{fill}" stroke="#829ab1"/>',
        f'<text x="{box.middle:.0f}" y="{box.y + 17:.0f}" text-anchor="middle" font-size="15" '
        f'font-weight="bold" fill="#102a43">{escape(title)}</text>',
    ]
    for number, line in enumerate(box.lines):
        text.append(
            f'<text x="{box.middle:.0f}" y="{box.y + HEAD + 9 + LINE * number:.0f}" '
            f'text-anchor="middle" font-size="12" fill="#334e68">{escape(line)}</text>'
        )
    return "".join([*text, "</g>"])


def main() -> None:
    """Write the picture."""
    layers = declared_layers()
    boxes, arrows = imports_of(layers)
    level = {name: number for number, layer in enumerate(layers) for name in layer}
    rows, ways = rows_of(layers, boxes, without_implied(arrows, level))
    PICTURE.write_text(draw(rows, ways))


if __name__ == "__main__":
    main()
