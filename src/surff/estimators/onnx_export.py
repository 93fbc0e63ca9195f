"""Fitted models as ONNX graphs, for runtimes without Python. Needs ``surff[onnx]``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from surff.estimators._finite_form import (
    FiniteForm,
    FourierParts,
    NystroemParts,
    finite_form,
    parts_of,
)

__all__ = ["to_onnx"]

#: Version of ONNX's operators, and of its files: onnxruntime 1.12 reads both.
OPSET, IR_VERSION = 17, 8


def to_onnx(model: Any, dtype: npt.DTypeLike | None = None) -> Any:
    """Write a fitted model down as an ONNX graph.

    Parameters
    ----------
    model : estimator
        A fitted `KernelRidgeRegressor`, `KernelRidgeClassifier` or
        `KernelLogisticClassifier` on `FourierFeatures` or `NystroemFeatures`, or a
        pipeline of `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler` or `RobustScaler`
        and one of these. Warps and leaf heads are part of it.
    dtype : {numpy.float32, numpy.float64}, optional
        Type of the input, and of the numbers that come out; that of the model by
        default. Nystrom features are computed in float64 inside, as surff computes
        them.

    Returns
    -------
    onnx.ModelProto
        With the input ``X`` of shape (n_rows, n_features). A regressor has the output
        ``predictions``, of the shape that ``predict`` returns. A classifier has
        ``labels`` and ``decisions``, and ``probabilities`` where the model has them.

    Raises
    ------
    TypeError
        If the model has no finite form; the message names the part.
    ImportError
        Without the extra ``surff[onnx]``.

    Notes
    -----
    Only standard operators are used, those that onnxruntime computes in float64 as
    well. Values that are not finite are not looked for.

    Examples
    --------
    >>> import numpy as np, surff
    >>> X = np.linspace(-2, 2, 200)[:, None]
    >>> model = surff.KernelRidgeRegressor().fit(X, np.sin(3 * X[:, 0]))
    >>> onnx_model = surff.to_onnx(model)  # doctest: +SKIP
    >>> open("model.onnx", "wb").write(onnx_model.SerializeToString())  # doctest: +SKIP
    """
    form = finite_form(model)
    dtype = np.dtype(form.coef.dtype if dtype is None else dtype)
    if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}.")
    graph, parts = _Graph(dtype), parts_of(form)
    if isinstance(parts, NystroemParts):
        graph.use(np.dtype(np.float64))
    X = graph.cast("X", graph.dtype)
    if form.scaling is not None:
        shift, factor = form.scaling
        X = graph.add("Mul", graph.add("Sub", X, shift), factor)
    Z = (_fourier if isinstance(parts, FourierParts) else _nystroem)(graph, X, parts)
    decisions = graph.add("Add", graph.add("MatMul", Z, parts.coef), form.intercept)
    if form.leaves is not None:
        own = _leaves(graph, X, Z, form.leaves, parts.expand)
        decisions = graph.add("Add", decisions, own)
    graph.use(dtype)
    decisions = graph.cast(decisions, dtype)
    outputs = _outputs(graph, decisions, form)
    return graph.model(form.n_features, outputs)


class _Graph:
    """Nodes and constants of a graph, in the order in which they are computed."""

    def __init__(self, dtype):
        try:
            import onnx
        except ImportError as error:
            raise ImportError(
                "writing ONNX needs onnx: pip install 'surff[onnx]'"
            ) from error
        self.onnx = onnx
        self.dtype = self.outer = dtype
        self.nodes, self.constants = [], []

    def use(self, dtype):
        """Turn floating-point constants that follow into this type."""
        self.dtype = dtype

    def constant(self, values):
        """Name of a constant."""
        array = np.asarray(values)
        if array.dtype.kind == "f":
            array = array.astype(self.dtype)
        name = f"c{len(self.constants)}"
        if array.dtype.kind in "UO":
            tensor = self.onnx.helper.make_tensor(
                name,
                self.onnx.TensorProto.STRING,
                array.shape,
                [str(value).encode() for value in array.ravel()],
            )
        else:
            tensor = self.onnx.numpy_helper.from_array(
                np.ascontiguousarray(array), name
            )
            tensor.dims[:] = array.shape  # a scalar stays one
        self.constants.append(tensor)
        return name

    def add(self, operator, *inputs, name=None, **attributes):
        """Name of the result of a node; inputs are names, or values of constants."""
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        result = name or f"v{len(self.nodes)}"
        make = self.onnx.helper.make_node
        self.nodes.append(make(operator, names, [result], **attributes))
        return result

    def cast(self, value, dtype):
        """Name of a value in another type."""
        to = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", value, to=to)

    def model(self, n_features, outputs):
        """Make the model; outputs are tuples (value, name, type or None, shape)."""
        helper = self.onnx.helper
        float_type = helper.np_dtype_to_tensor_dtype(self.outer)
        infos = []
        for value, name, kind, shape in outputs:
            self.add("Identity", value, name=name)
            kind = float_type if kind is None else kind
            infos.append(helper.make_tensor_value_info(name, kind, shape))
        rows = helper.make_tensor_value_info("X", float_type, ["n_rows", n_features])
        graph = helper.make_graph(
            self.nodes, "surff", [rows], infos, initializer=self.constants
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="surff"
        )
        self.onnx.checker.check_model(model)
        return model


def _fourier(graph, X, parts: FourierParts):
    """Cosines and sines of the projections."""
    if parts.warp is not None:
        X = _warped(graph, X, *np.asarray(parts.warp, dtype=np.float64))
    P = graph.add("MatMul", X, parts.frequencies.T)
    return graph.add("Concat", graph.add("Cos", P), graph.add("Sin", P), axis=1)


def _warped(graph, X, centres, rates):
    """Return asinh(rate (x - centre)) / rate, of operators that float64 has.

    asinh(v) = sign(v) log1p(u) with u = |v| + v^2 / (1 + sqrt(1 + v^2)), and log1p(u)
    is u log(w) / (w - 1) with the rounded w = 1 + u, or u where w is 1.
    """
    add = graph.add
    v = add("Mul", add("Sub", X, centres), rates)
    size, square = add("Abs", v), add("Mul", v, v)
    root = add("Sqrt", add("Add", square, 1.0))
    u = add("Add", size, add("Div", square, add("Add", root, 1.0)))
    w = add("Add", u, 1.0)
    is_one = add("Equal", w, 1.0)
    safe = add("Where", is_one, 2.0, w)
    ratio = add("Div", add("Log", safe), add("Sub", safe, 1.0))
    logarithm = add("Where", is_one, u, add("Mul", u, ratio))
    return add("Div", add("Mul", add("Sign", v), logarithm), rates)


def _nystroem(graph, X, parts: NystroemParts):
    """Kernel values of rows and landmarks."""
    rows = graph.add("Mul", graph.add("Sub", X, parts.shift), parts.scale)
    return _kernel(graph, _pairs(graph, rows, parts), parts)


def _pairs(graph, rows, parts: NystroemParts):
    """Squared or absolute distances, or products, of rows and landmarks."""
    add, points = graph.add, parts.points
    if parts.pairs == "product":
        return add("MatMul", rows, points.T)
    if parts.pairs == "squared" and parts.function == "exp":
        squares = add("ReduceSumSquare", rows, axes=[1], keepdims=1)
        products = add("MatMul", rows, 2.0 * points.T)
        t = add("Add", add("Sub", squares, products), np.square(points).sum(axis=1))
        return add("Max", t, 0.0)
    # A root amplifies what rounding leaves of a small distance: differences first.
    difference = add("Sub", add("Unsqueeze", rows, np.array([1])), points)
    reduce = "ReduceSumSquare" if parts.pairs == "squared" else "ReduceL1"
    return add(reduce, difference, axes=[2], keepdims=0)


def _kernel(graph, t, parts: NystroemParts):
    """Kernel values; `surff.estimators.c_export.FUNCTIONS` has them in C."""
    add, numbers = graph.add, parts.numbers
    if parts.function == "identity":
        return t
    if parts.function == "exp":
        return add("Exp", add("Neg", t))
    if parts.function == "exp_root":
        return add("Exp", add("Mul", add("Sqrt", t), -numbers[0]))
    if parts.function in ("matern_3", "matern_5"):
        order = 3.0 if parts.function == "matern_3" else 5.0
        r = add("Mul", add("Sqrt", t), math.sqrt(order * numbers[0]))
        polynomial = add("Add", r, 1.0)
        if order == 5.0:
            third = add("Div", add("Mul", r, r), 3.0)
            polynomial = add("Add", polynomial, third)
        return add("Mul", polynomial, add("Exp", add("Neg", r)))
    if parts.function == "rational":
        base = add("Add", add("Div", t, numbers[0]), 1.0)
        return add("Pow", base, -numbers[0])
    if parts.function == "exp_power":
        return add("Exp", add("Neg", add("Pow", t, numbers[0] / 2.0)))
    inner = add("Add", add("Mul", t, numbers[0]), numbers[1])
    if parts.function == "power":
        return add("Pow", inner, numbers[2])
    return add("Tanh", inner)


def _leaves(graph, X, Z, leaves, expand):
    """What the heads of the leaves add: a walk down each tree, step by step."""
    partition, add = leaves.partition, graph.add
    inside = partition.feature >= 0
    nodes = np.arange(len(inside))
    feature = np.where(inside, partition.feature, 0)
    # At a leaf the walk stays.
    left = np.where(inside, partition.left, nodes)
    right = np.where(inside, partition.right, nodes)
    tables = [graph.constant(a) for a in (feature, partition.threshold, left, right)]
    coef = np.stack([expand(head.T.astype(np.float64)).T for head in leaves.coef])
    heads, constants = graph.constant(coef), graph.constant(leaves.intercept)
    numbers = graph.constant(partition.leaf)
    features = add("Unsqueeze", Z, np.array([2]))
    total = None
    zero = add("Cast", add("Mul", add("Gather", X, np.array(0), axis=1), 0.0), to=7)
    for root in partition.roots:
        node = add("Add", zero, np.array(root))
        for _ in range(_depth(partition, root)):
            column = add("Unsqueeze", add("Gather", tables[0], node), np.array([1]))
            value = add("GatherElements", X, column, axis=1)
            value = add("Squeeze", value, np.array([1]))
            goes_left = add("LessOrEqual", value, add("Gather", tables[1], node))
            sides = (add("Gather", table, node) for table in tables[2:])
            node = add("Where", goes_left, *sides)
        leaf = add("Gather", numbers, node)
        own = add("MatMul", add("Gather", heads, leaf), features)
        own = add("Squeeze", own, np.array([2]))
        own = add("Add", own, add("Gather", constants, leaf))
        total = own if total is None else add("Add", total, own)
    return total


def _depth(partition, root):
    """Steps from a root to its deepest leaf."""
    depth, level = 0, [int(root)]
    while True:
        level = [
            int(child)
            for node in level
            if partition.feature[node] >= 0
            for child in (partition.left[node], partition.right[node])
        ]
        if not level:
            return depth
        depth += 1


def _outputs(graph, decisions, form: FiniteForm):
    """Outputs of the graph, see `_Graph.model`."""
    add, k = graph.add, form.coef.shape[1]
    flat = decisions
    if form.flat and k == 1:
        flat = add("Squeeze", decisions, np.array([1]))
    shape = ["n_rows"] if flat != decisions else ["n_rows", k]
    if form.classes is None:
        return [(flat, "predictions", None, shape)]
    positive = add("Cast", add("Greater", decisions, 0.0), to=7)
    if form.multilabel:
        labels = positive, "labels", 7, ["n_rows", k]
    else:
        if k == 1:
            winner = add("Squeeze", positive, np.array([1]))
        else:
            winner = add("ArgMax", decisions, axis=1, keepdims=0)
        classes = np.asarray(form.classes)
        kind = classes.dtype.kind
        if kind in "biu":
            classes = classes.astype(np.int64)
        to = {"f": None, "b": 7, "i": 7, "u": 7}.get(kind, 8)
        labels = add("Gather", classes, winner), "labels", to, ["n_rows"]
    outputs = [labels, (flat, "decisions", None, shape)]
    if form.probabilities is not None:
        probabilities = _probabilities(graph, decisions, form)
        outputs.append((probabilities, "probabilities", None, ["n_rows", None]))
    return outputs


def _probabilities(graph, decisions, form: FiniteForm):
    """Probability of each class, as `surff.estimators._linear` has it."""
    add, k = graph.add, form.coef.shape[1]
    if form.probabilities == "softmax" and k > 1:
        return add("Softmax", decisions, axis=1)
    if form.probabilities == "platt":
        a, b = np.asarray(form.calibration).T
        decisions = add("Add", add("Mul", decisions, a), b)
    positive = add("Sigmoid", decisions)
    if form.multilabel:
        return positive
    if k == 1:
        other = add("Sigmoid", add("Neg", decisions))
        return add("Concat", other, positive, axis=1)
    total = add("ReduceSum", positive, np.array([1]), keepdims=1)
    is_zero = add("Equal", total, 0.0)
    share = add("Div", positive, add("Where", is_zero, 1.0, total))
    return add("Where", is_zero, 1.0 / k, share)
