"""Fitted models as one file of C99 without dependencies, for devices and servers."""

from __future__ import annotations

from typing import Any

import numpy as np

from surff.estimators._finite_form import (
    FiniteForm,
    FourierParts,
    NystroemParts,
    finite_form,
    parts_of,
)

__all__ = ["to_c"]

#: Characters after which a line of numbers ends.
LINE = 2000

#: Functions of squared or absolute distances t, or of products t, in C; numbers in
#: braces are their parameters.
FUNCTIONS = {
    "exp": "exp(-t)",
    "exp_root": "exp(-{0} * sqrt(t))",
    "matern_3": "(1 + sqrt(3 * {0} * t)) * exp(-sqrt(3 * {0} * t))",
    "matern_5": "(1 + sqrt(5 * {0} * t) + 5 * {0} * t / 3) * exp(-sqrt(5 * {0} * t))",
    "rational": "pow(1 + t / {0}, -{0})",
    "exp_power": "exp(-pow(t, {0} / 2))",
    "identity": "t",
    "power": "pow({0} * t + {1}, {2})",
    "tanh": "tanh({0} * t + {1})",
}

#: What is summed over the columns of a row x and a landmark.
PAIRS = {
    "squared": "t += (x[j] - points[i][j]) * (x[j] - points[i][j]);",
    "absolute": "t += fabs(x[j] - points[i][j]);",
    "product": "t += x[j] * points[i][j];",
}

HEAD = """\
/* A model of surff: {title}.

   surff_decide(row, decisions) reads {d} numbers and writes {k}: {meaning}.
   {labels}Nothing is allocated and only constants are static, so any number of threads
   may call it. C99, with the mathematics of its library alone (-lm). */

#include <math.h>

enum {{ FEATURES = {d}, COLUMNS = {columns}, OUTPUTS = {k} }};
"""

LABEL = """
/* Number of the class, from 0. */
int surff_class(const double row[FEATURES])
{
    double decisions[OUTPUTS];
    int best = 0;
    surff_decide(row, decisions);
    if (OUTPUTS == 1)
        return decisions[0] > 0;
    for (int k = 1; k < OUTPUTS; k++)
        if (decisions[k] > decisions[best])
            best = k;
    return best;
}
"""

LEAF = """\
    for (int t = 0; t < TREES; t++) {
        int node = roots[t];
        while (feature[node] >= 0)
            node = x[feature[node]] <= threshold[node] ? left[node] : right[node];
        leaves[t] = leaf[node];
        for (int k = 0; k < OUTPUTS; k++)
            decisions[k] += leaf_constants[leaves[t]][k];
    }
"""


def to_c(model: Any) -> str:
    """Write a fitted model down as one file of C99.

    Parameters
    ----------
    model : estimator
        As `surff.to_onnx` takes it.

    Returns
    -------
    str
        C source with ``void surff_decide(const double *row, double *decisions)``,
        which computes in double and allocates nothing, and for a classifier of one
        label a row ``int surff_class(const double *row)``, the number of the class.

    Raises
    ------
    TypeError
        If the model has no finite form; the message names the part.

    Notes
    -----
    The constants are exact: they are written in hexadecimal.

    Examples
    --------
    >>> import numpy as np, surff
    >>> X = np.linspace(-2, 2, 200)[:, None]
    >>> model = surff.KernelRidgeRegressor().fit(X, np.sin(3 * X[:, 0]))
    >>> "void surff_decide(" in surff.to_c(model)
    True
    """
    form = finite_form(model)
    parts = parts_of(form)
    write = _fourier if isinstance(parts, FourierParts) else _nystroem
    constants, body = write(parts)
    n_values = len(body[1])  # values that a column of the loop gives
    constants["coef"] = parts.coef
    constants["intercept"] = form.intercept
    before, walk = [], []
    if form.scaling is not None:
        shift, factor = (np.broadcast_to(a, form.n_features) for a in form.scaling)
        constants |= {"scaling_shift": shift, "scaling_factor": factor}
        before = ["x[j] = (x[j] - scaling_shift[j]) * scaling_factor[j];"]
    if form.leaves is not None:
        partition = form.leaves.partition
        for name in ("roots", "feature", "threshold", "left", "right", "leaf"):
            constants[name] = getattr(partition, name)
        heads = [parts.expand(head.T.astype(np.float64)) for head in form.leaves.coef]
        constants["leaf_coef"] = np.stack(heads)
        constants["leaf_constants"] = form.leaves.intercept
        walk = LEAF.splitlines()
    k = form.coef.shape[1]
    source = [_head(form, len(parts.coef) // n_values, k)]
    if form.leaves is not None:
        source.append(f"enum {{ TREES = {len(partition.roots)} }};\n")
    source += [_array(name, values) for name, values in constants.items()]
    source += [_function(before, walk, body, form.leaves is not None)]
    if form.classes is not None and not form.multilabel:
        source.append(LABEL)
    return "".join(source)


def _head(form: FiniteForm, columns, k):
    """Comment at the top and the sizes."""
    labels, meaning = "", "predictions"
    if form.classes is not None:
        meaning = "decisions, positive for a label"
        if not form.multilabel:
            names = ", ".join(str(label) for label in form.classes)
            names = names.replace("*/", "* /").replace("\\", "/")
            names = "".join(c if c.isprintable() else "?" for c in names)
            labels = f"surff_class(row) is a number among the classes {names}.\n   "
    return HEAD.format(
        title=type(form.features).__name__,
        d=form.n_features,
        k=k,
        meaning=meaning,
        labels=labels,
        columns=columns,
    )


def _array(name, values):
    """Declaration of a constant, in lines that editors and compilers can take."""
    values = np.asarray(values)
    kind = "int" if values.dtype.kind == "i" else "double"
    sizes = "".join(f"[{size}]" for size in values.shape)
    lines, length = [[]], 0
    for piece in _braces(values).split(" "):
        if length > LINE:
            lines.append([])
            length = 0
        lines[-1].append(piece)
        length += len(piece) + 1
    text = "\n".join(" ".join(line) for line in lines)
    return f"\nstatic const {kind} {name}{sizes} = {text};\n"


def _braces(values):
    """Values in nested braces."""
    if values.ndim > 1:
        return "{" + ", ".join(_braces(part) for part in values) + "}"
    numbers = (str(v) if values.dtype.kind == "i" else float(v).hex() for v in values)
    return "{" + ", ".join(numbers) + "}"


def _function(before, walk, body, has_leaves):
    """The function itself."""
    own, names = body
    lines = [
        "",
        "void surff_decide(const double row[FEATURES], double decisions[OUTPUTS])",
        "{",
        "    double x[FEATURES];",
        *(["    int leaves[TREES];"] if has_leaves else []),
        "    for (int k = 0; k < OUTPUTS; k++)",
        "        decisions[k] = intercept[k];",
        "    for (int j = 0; j < FEATURES; j++)",
        "        x[j] = row[j];",
    ]
    for statement in before:
        lines += ["    for (int j = 0; j < FEATURES; j++)", f"        {statement}"]
    lines += walk
    if own["bend"]:
        lines += ["    for (int j = 0; j < FEATURES; j++)", f"        {own['bend']}"]
    lines += [
        "    for (int i = 0; i < COLUMNS; i++) {",
        "        double t = 0;",
        "        for (int j = 0; j < FEATURES; j++)",
        f"            {own['pair']}",
        *(f"        const double {name} = {value};" for name, value in names.items()),
        "        for (int k = 0; k < OUTPUTS; k++) {",
    ]
    rows = [f"{n} * COLUMNS + i" if n else "i" for n in range(len(names))]
    for name, at in zip(names, rows, strict=True):
        lines.append(f"            decisions[k] += coef[{at}][k] * {name};")
    if has_leaves:
        lines.append("            for (int l = 0; l < TREES; l++) {")
        for name, at in zip(names, rows, strict=True):
            head = f"leaf_coef[leaves[l]][{at}][k]"
            lines.append(f"                decisions[k] += {head} * {name};")
        lines.append("            }")
    return "\n".join([*lines, "        }", "    }", "}", ""])


def _fourier(parts: FourierParts):
    """Constants, and the statements of the loop."""
    frequencies, warp = parts.frequencies, parts.warp
    constants = {"frequencies": frequencies}
    own = {"bend": "", "pair": "t += x[j] * frequencies[i][j];"}
    if warp is not None:
        constants |= {"centres": warp[0], "rates": warp[1]}
        own["bend"] = "x[j] = asinh(rates[j] * (x[j] - centres[j])) / rates[j];"
    names = {"cosine": "cos(t)", "sine": "sin(t)"}
    return constants, (own, names)


def _nystroem(parts: NystroemParts):
    """As `_fourier`, of kernel values."""
    constants = {"points": parts.points, "shift": parts.shift, "scale": parts.scale}
    numbers = [f"({float(number).hex()})" for number in parts.numbers]
    own = {"bend": "x[j] = (x[j] - shift[j]) * scale[j];", "pair": PAIRS[parts.pairs]}
    names = {"value": FUNCTIONS[parts.function].format(*numbers)}
    return constants, (own, names)
