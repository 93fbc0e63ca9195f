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
    "linear": ["backend", "streaming", "kernels"],
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
    "inspection": ["backend", "kernels", "linear", "selection", "estimators"],
    "surff": ["estimators", "selection", "adaptation", "inspection"],
    "datasets": [],
    # The protocol "published" weights single columns, as no estimator does: it is made
    # of the map itself and of its moments.
    "experiments": ["surff", "kernels", "linear", "inspection", "datasets"],
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


def room_of(path):
    """Room of a source file; files beside the rooms are the front door."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else "surff"


def sources():
    """Source files, sorted."""
    return sorted(SOURCE.rglob("*.py"))


def imports_between_rooms(path, tree):
    """Yield the `Import` of each name that a file takes from another room."""
    room = room_of(path)
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
            if len(parts) == 1 and name is not None and (SOURCE / name).is_dir():
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


def faults_of(path, tree):
    """Yield what is too long or too large in a file."""
    where = path.relative_to(ROOT)
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


def rule_faults(found):
    """Yield the imports that break a rule."""
    for item in found:
        where = f"{item.path.relative_to(ROOT)}:{item.line}"
        if item.target not in MAY_IMPORT[item.room] and item.path.name != "__main__.py":
            yield f"{where}: {item.room} may not import {item.target}"
        if len(item.module.split(".")) > 2:
            yield f"{where}: {item.module} is a file; import from its room"


def arrows_of(found):
    """Sorted pairs (room, imported room), the front door left out."""
    pairs = {(item.room, item.target) for item in found}
    return sorted(pair for pair in pairs if "surff" not in pair)


def levels(arrows, rooms):
    """Level of each room: one above the highest that it imports."""
    level = {}
    for room in rooms:
        below = [level[target] for source, target in arrows if source == room]
        level[room] = 1 + max(below, default=-1)
    return level


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


def picture(arrows, rooms):
    """SVG of the rooms, each above those that it imports."""
    level = levels(arrows, rooms)
    width, height, row, margin = 116, 40, 86, 24
    rows = [[r for r in rooms if level[r] == k] for k in range(max(level.values()) + 1)]
    total = 660
    place = {}
    for k, names in enumerate(reversed(rows)):
        step = total / len(names)
        for i, name in enumerate(names):
            place[name] = (step * (i + 0.5), margin + k * row)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} '
        f'{2 * margin + (len(rows) - 1) * row + height}" font-family="sans-serif" '
        'font-size="14" role="img" aria-label="The rooms of surff and their imports">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker>'
        "</defs>",
    ]
    for source, target in sorted(arrows, key=lambda arrow: not implied(arrow, arrows)):
        (x1, y1), (x2, y2) = place[source], place[target]
        y1 += height
        style = (
            'stroke="#ccc"'
            if implied((source, target), arrows)
            else ('stroke="#555" stroke-width="1.6" marker-end="url(#tip)"')
        )
        middle = (y1 + y2) / 2
        lines.append(
            f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} '
            f'{x2:.0f} {y2:.0f}" fill="none" {style}/>'
        )
    for name, (x, y) in place.items():
        n_files = len(list((SOURCE / name).glob("*.py"))) - 1
        lines.append(
            f'<rect x="{x - width / 2:.0f}" y="{y:.0f}" width="{width}" '
            f'height="{height}" rx="6" fill="#f4f6fa" stroke="#335"/>'
            f'<text x="{x:.0f}" y="{y + 18:.0f}" text-anchor="middle">{name}</text>'
            f'<text x="{x:.0f}" y="{y + 33:.0f}" text-anchor="middle" font-size="11" '
            f'fill="#556">{n_files} files</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def main():
    """Print the rooms; return what is broken, as the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draw", action="store_true", help="write docs/rooms.svg")
    options = parser.parse_args()
    rooms = [room for room in MAY_IMPORT if room != "surff"]
    found, faults = [], []
    for path in sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += imports_between_rooms(path, tree)
        faults += faults_of(path, tree)
    faults += rule_faults(found)
    arrows = arrows_of(found)
    entries = sorted(path.name for path in SOURCE.iterdir() if path.name[:2] != "__")
    odd = set(entries) - {*rooms, "py.typed"}
    faults += [f"src/surff/{name}: neither a room nor __init__" for name in sorted(odd)]
    if len(entries) + 2 > MOST_ENTRIES:
        faults.append(f"src/surff has {len(entries) + 2} entries")
    if len(arrows) > MOST_ARROWS:
        faults.append(f"{len(arrows)} arrows between rooms, more than {MOST_ARROWS}")
    drawn = picture(arrows, rooms)
    if options.draw:
        PICTURE.write_text(drawn, encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn:
        faults.append("docs/rooms.svg is not up to date: python tools/rooms.py --draw")
    for room in rooms:
        print(f"{room:12} ->", *[target for source, target in arrows if source == room])
    print(
        f"{len(rooms)} rooms on {max(levels(arrows, rooms).values()) + 1} levels, "
        f"{len(arrows)} arrows"
    )
    for fault in faults:
        print(fault, file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
