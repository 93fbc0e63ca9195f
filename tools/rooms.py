"""The structure of the package: its rooms, the imports between them, their limits.

``python tools/rooms.py`` reads the imports of ``src/surff``, prints who imports whom
and fails where a rule below is broken; CI runs it. ``--draw`` writes
``docs/rooms.svg``, the picture in ``docs/design.md``; without it the picture must be up
to date.

A room is a package in ``src/surff``. What it offers to others is in its ``__init__``:
nobody outside imports a file of it. Standard library only.
"""

import argparse
import ast
import graphlib
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "surff"
PICTURE = ROOT / "docs" / "rooms.svg"

#: Which rooms a room may import; no circle is possible, since each line names only
#: rooms of lines above it. "surff" is the front door: the public names.
MAY_IMPORT = {
    "backend": [],
    "streaming": ["backend"],
    "kernels": ["backend"],
    "draws": ["backend", "kernels"],
    "linear": ["backend", "streaming"],
    "selection": ["backend", "kernels", "linear"],
    "adaptation": ["backend", "kernels", "linear"],
    "estimators": [
        "backend",
        "streaming",
        "kernels",
        "draws",
        "linear",
        "selection",
        "adaptation",
    ],
    "inspection": ["backend", "linear", "selection", "estimators"],
    "tables": ["streaming", "estimators"],
    "surff": ["estimators", "selection", "adaptation", "inspection", "tables"],
    "datasets": [],
    # The protocol "published" weights single columns, as no estimator does: it is made
    # of the map itself and of its moments.
    "experiments": ["surff", "kernels", "linear", "datasets"],
    "cli": ["surff", "experiments", "datasets"],
}

#: Entries of ``src/surff``.
MOST_ENTRIES = 16

#: Pairs of rooms of which one imports the other; the front door is no room.
MOST_ARROWS = 30

#: Lines of a function without its docstring.
LONGEST_FUNCTION = 60

#: Methods of a class, those that it inherits not counted.
MOST_METHODS = 18


class Import(NamedTuple):
    """One name that a file takes from another room."""

    path: Path
    line: int
    room: str
    target: str
    module: str


def room_of(path, source):
    """Room of a source file; files next to the rooms are the front door."""
    parts = path.relative_to(source).parts
    return parts[0] if len(parts) > 1 else "surff"


def parsed(source):
    """Syntax trees of the source files, by path, sorted."""
    paths = sorted(source.rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def names_in_all(tree):
    """Names in the ``__all__`` of a module; none if it has no such list."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def imports_between_rooms(path, tree, source):
    """Yield the `Import` of each name that a file takes from another room."""
    room = room_of(path, source)
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            modules = [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [(alias.name, None) for alias in node.names]
        for module, name in modules:
            parts = module.split(".")
            if parts[0] != "surff":
                continue
            if len(parts) == 1 and name is not None and (source / name).is_dir():
                parts.append(name)
            target = parts[1] if len(parts) > 1 else "surff"
            if target != room:
                yield Import(path, node.lineno, room, target, ".".join(parts))


def body_lines(function):
    """Lines of a function without its decorators and docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        text = function.body[0]
        lines -= text.end_lineno - text.lineno + 1
    return lines


def size_faults(where, tree):
    """Yield what is too long or too large in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            if body_lines(node) > LONGEST_FUNCTION:
                yield (
                    f"{where}:{node.lineno}: {node.name} has {body_lines(node)} lines, "
                    f"more than {LONGEST_FUNCTION}"
                )
        elif isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            if len(methods) > MOST_METHODS:
                yield (
                    f"{where}:{node.lineno}: {node.name} has {len(methods)} methods, "
                    f"more than {MOST_METHODS}"
                )


def import_faults(found, source):
    """Yield the imports that go through a wall, or past a room's door."""
    for item in found:
        where = f"{item.path.relative_to(source.parents[1])}:{item.line}"
        allowed = MAY_IMPORT.get(item.room, [])
        if item.target not in allowed and item.path.name != "__main__.py":
            yield f"{where}: {item.room} may not import {item.target}"
        if len(item.module.split(".")) > 2:
            yield f"{where}: {item.module} is a file; import from its room"


def name_faults(trees, source):
    """Yield the names that two files of a room offer: the second hides the first."""
    offered = {}
    for path, tree in trees.items():
        if path.name == "__init__.py":
            continue
        for name in sorted(names_in_all(tree)):
            first = offered.setdefault((room_of(path, source), name), path)
            if first != path:
                where = path.relative_to(source.parents[1])
                yield f"{where}: {name} is in the __all__ of {first.name}, too"


def arrows_of(found):
    """Sorted pairs (room, imported room), the front door left out."""
    pairs = {(item.room, item.target) for item in found}
    return sorted(pair for pair in pairs if "surff" not in pair)


def circle(arrows):
    """Rooms that import each other in a circle, the first one again at its end."""
    below = {}
    for source, target in arrows:
        below.setdefault(source, []).append(target)
    try:
        graphlib.TopologicalSorter(below).prepare()
    except graphlib.CycleError as error:
        return error.args[1][::-1]
    return []


def house_faults(arrows, source):
    """Yield what is wrong with the package as a whole."""
    rooms = [room for room in MAY_IMPORT if room != "surff"]
    entries = sorted(path.name for path in source.iterdir() if path.name[:2] != "__")
    for name in sorted(set(entries) - {*rooms, "py.typed"}):
        yield f"src/surff/{name}: neither a room nor __init__"
    if len(entries) + 2 > MOST_ENTRIES:
        yield f"src/surff has {len(entries) + 2} entries, more than {MOST_ENTRIES}"
    if len(arrows) > MOST_ARROWS:
        yield f"{len(arrows)} arrows between rooms, more than {MOST_ARROWS}"
    if circle(arrows):
        yield f"a circle: {' -> '.join(circle(arrows))}"


def read(source):
    """The arrows between the rooms of a source folder, and all its faults."""
    trees = parsed(source)
    found = [
        item
        for path, tree in trees.items()
        for item in imports_between_rooms(path, tree, source)
    ]
    arrows = arrows_of(found)
    faults = [*import_faults(found, source), *name_faults(trees, source)]
    for path, tree in trees.items():
        faults += size_faults(path.relative_to(source.parents[1]), tree)
    return arrows, [*faults, *house_faults(arrows, source)]


def implied(arrow, arrows):
    """Whether an arrow says no more than a path of others does."""
    source, target = arrow
    reached, waiting = set(), [b for a, b in arrows if a == source and b != target]
    while waiting:
        room = waiting.pop()
        if room == target:
            return True
        if room not in reached:
            reached.add(room)
            waiting += [b for a, b in arrows if a == room]
    return False


def levels(arrows, rooms):
    """Level of each room: as high as the rooms that import it allow, 0 at the bottom.

    A room that only one other needs then stands right below it.
    """
    height, depth = {}, {}
    below = {room: {b for a, b in arrows if a == room} for room in rooms}
    order = list(graphlib.TopologicalSorter(below).static_order())
    for room in order:
        height[room] = 1 + max((height[target] for target in below[room]), default=-1)
    top = max(height.values())
    for room in reversed(order):
        above = [depth[other] for other in order if room in below[other]]
        depth[room] = min(above, default=top + 1) - 1
    return depth


#: Width of the picture, in its own units.
PICTURE_WIDTH = 720

#: Width and height of a room in the picture.
BOX = 124, 44

#: From the top of one level to that of the next.
ROW = 88

#: Empty border of the picture.
MARGIN = 22


def places(arrows, rooms):
    """Middle of the upper edge of each room in the picture, and of each empty place.

    An arrow of more than one level has an empty place, ``(arrow, level)``, on each
    level that it passes. Those of a level are ordered by the middle of what is above
    them and points to them, so that few arrows cross.
    """
    level = levels(arrows, rooms)
    needed = [arrow for arrow in arrows if not implied(arrow, arrows)]
    place = {}
    for k in range(max(level.values()), -1, -1):
        row = [room for room in rooms if level[room] == k]
        row += [(arrow, k) for arrow in needed if level[arrow[1]] < k < level[arrow[0]]]

        def middle(item):
            if isinstance(item, tuple):
                return place[item[0][0]][0]
            above = [place[a][0] for a, b in needed if b == item and a in place]
            return sum(above) / len(above) if above else PICTURE_WIDTH / 2

        step = min(PICTURE_WIDTH / len(row), 1.7 * BOX[0])
        left = (PICTURE_WIDTH - step * len(row)) / 2
        for i, item in enumerate(sorted(row, key=middle)):
            y = MARGIN + (max(level.values()) - k) * ROW
            place[item] = left + step * (i + 0.5), y
    return place


def needed_arrow(arrow, place):
    """SVG of an arrow from the lower edge of a room to the upper one of another."""
    passed = sorted(place[item] for item in place if item[0] == arrow)
    points = [(x, y + height) for x, y in passed for height in (0, BOX[1])]
    (x1, y1), (x2, y2) = place[arrow[0]], place[arrow[1]]
    path = f"M{x1:.0f} {y1 + BOX[1]:.0f}"
    x, y = x1, y1 + BOX[1]
    for end_x, end_y in [*sorted(points, key=lambda p: p[1]), (x2, y2 - 7)]:
        half = (end_y - y) / 2
        path += f"C{x:.0f} {y + half:.0f} {end_x:.0f} {end_y - half:.0f} "
        path += f"{end_x:.0f} {end_y:.0f}"
        x, y = end_x, end_y
    return (
        f'<path d="{path}" fill="none" stroke="#456" stroke-width="1.8"/>'
        f'<path d="M{x2 - 4.5:.1f} {y2 - 7:.0f}h9l-4.5 7z" fill="#456"/>'
    )


def implied_arrow(arrow, place):
    """SVG of an arrow that others imply: from side to side, around the rooms."""
    (x1, y1), (x2, y2) = place[arrow[0]], place[arrow[1]]
    between = [x for x, y in place.values() if y1 <= y <= y2]
    right = max(between) - max(x1, x2) <= min(x1, x2) - min(between)
    side = 1 if right else -1
    # A curve whose two middle points are that far out goes three quarters of the way.
    near = max(side * x1, side * x2)
    far = max(side * x for x in between) + 16 + 0.02 * (y2 - y1)
    out = side * (near + BOX[0] / 2 + (far - near) * 4 / 3)
    x1, x2 = x1 + side * BOX[0] / 2, x2 + side * BOX[0] / 2
    y1, y2 = y1 + BOX[1] / 2, y2 + BOX[1] / 2
    return (
        f'<path d="M{x1:.0f} {y1:.0f}C{out:.0f} {y1:.0f} {out:.0f} {y2:.0f} '
        f'{x2:.0f} {y2:.0f}" fill="none" stroke="#c4ccd6" stroke-width="1.2"/>'
        f'<path d="M{x2 + side * 6:.0f} {y2 - 3.5:.1f}v7l{-6 * side} -3.5z" '
        'fill="#c4ccd6"/>'
    )


def picture(arrows, rooms, source=SOURCE):
    """SVG of the rooms, each above those that it imports."""
    place = places(arrows, rooms)
    height = max(y for _, y in place.values()) + BOX[1] + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PICTURE_WIDTH} '
        f'{height}" font-family="sans-serif" font-size="15" role="img" '
        'aria-label="The rooms of surff and their imports">',
        # A ground of its own, so that it reads on dark pages, too.
        f'<rect width="{PICTURE_WIDTH}" height="{height}" rx="8" fill="#fff"/>',
    ]
    for arrow in sorted(arrows, key=lambda arrow: not implied(arrow, arrows)):
        draw = implied_arrow if implied(arrow, arrows) else needed_arrow
        lines.append(draw(arrow, place))
    for name in rooms:
        x, y = place[name]
        n_files = len(list((source / name).glob("*.py"))) - 1
        lines.append(
            f'<rect x="{x - BOX[0] / 2:.0f}" y="{y:.0f}" width="{BOX[0]}" '
            f'height="{BOX[1]}" rx="6" fill="#eef3f9" stroke="#456"/>'
            f'<text x="{x:.0f}" y="{y + 20:.0f}" text-anchor="middle" fill="#123">'
            f'{name}</text><text x="{x:.0f}" y="{y + 36:.0f}" text-anchor="middle" '
            f'font-size="11" fill="#567">{n_files} files</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def main(arguments=None):
    """Print the rooms; return what is broken, as the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draw", action="store_true", help="write docs/rooms.svg")
    options = parser.parse_args(arguments)
    rooms = [room for room in MAY_IMPORT if room != "surff"]
    arrows, faults = read(SOURCE)
    for room in rooms:
        print(f"{room:12} ->", *[target for source, target in arrows if source == room])
    if not circle(arrows):
        drawn = picture(arrows, rooms)
        if options.draw:
            PICTURE.write_text(drawn, encoding="utf-8")
        elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn:
            faults.append("docs/rooms.svg is out of date: python tools/rooms.py --draw")
        n_levels = len(set(levels(arrows, rooms).values()))
        print(f"{len(rooms)} rooms on {n_levels} levels, {len(arrows)} arrows")
    for fault in faults:
        print(fault, file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
