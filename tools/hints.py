"""Which public names of the package have no type hints.

``python tools/hints.py`` reads the files of ``src/surff`` and names each function,
method and parameter that other people call and that has no hint; CI runs it. Public is
what stands in the ``__all__`` of a file with a public name, with the public methods of its classes.
Whether hints are right is for pyright to say. Standard library only.
"""

import argparse
import ast
import sys
from pathlib import Path
from typing import NamedTuple

from rooms import SOURCE, names_in_all


class Missing(NamedTuple):
    """Something public without a hint."""

    path: Path
    line: int
    name: str
    what: str


def bare_parts(function, is_method):
    """Yield the parameters of a function without a hint, then "return"."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args]
    static = any(ast.unparse(d) == "staticmethod" for d in function.decorator_list)
    if is_method and not static:
        parameters = parameters[1:]
    parameters += [*arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for parameter in parameters:
        if parameter is not None and parameter.annotation is None:
            yield parameter.arg
    # That a constructor returns nothing needs no words.
    if function.returns is None and function.name != "__init__":
        yield "return"


def missing_hints(path):
    """Yield a `Missing` for each public thing of a file that has no hint."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    public = names_in_all(tree)
    for node in tree.body:
        if getattr(node, "name", None) not in public:
            continue
        if isinstance(node, ast.FunctionDef):
            for part in bare_parts(node, is_method=False):
                yield Missing(path, node.lineno, node.name, part)
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if not isinstance(method, ast.FunctionDef):
                    continue
                if method.name.startswith("_") and method.name != "__init__":
                    continue
                for part in bare_parts(method, is_method=True):
                    name = f"{node.name}.{method.name}"
                    yield Missing(path, method.lineno, name, part)


def main(arguments=None):
    """Print what has no hint; return whether there is any, as the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", nargs="?", type=Path, default=SOURCE)
    source = parser.parse_args(arguments).source.resolve()
    found = [
        item
        for path in sorted(source.rglob("[!_]*.py"))
        for item in missing_hints(path)
    ]
    for item in found:
        where = item.path.relative_to(source.parents[1])
        print(
            f"{where}:{item.line}: {item.name}: no hint for {item.what}",
            file=sys.stderr,
        )
    print(f"{len(found)} public hints missing")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
