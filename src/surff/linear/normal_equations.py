r"""Normal equations, accumulated block by block.

For features ``Z``, targets ``Y`` and row weights ``w`` the sums

.. math:: Z^\top W Z,\quad Z^\top W Y,\quad Z^\top w,\quad Y^\top w,\quad
          \textstyle\sum_i w_i y_{ik}^2,\quad \textstyle\sum_i w_i

hold all that ridge regression needs of the data. They form a commutative monoid: blocks
update them, threads, workers and folds merge them, and a fold is left out by
subtraction. The matrix of all rows by all features is never held.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from surff.backend import (
    backend_of_map,
    each_block,
    feature_blocks,
    map_rows,
    map_slices,
    row_blocks,
    rows_of,
    stage,
    syrk,
    to_numpy,
)

__all__ = [
    "PARALLEL_COLUMNS",
    "CentredEquations",
    "NormalEquations",
    "accumulate",
    "extend",
    "factored",
    "float32_error",
]

#: Columns up to which each thread sums a Gram matrix of its own; above, the threads of
#: BLAS share one, since each copy would take more than 128 MiB.
PARALLEL_COLUMNS = 4096

#: Rows of a block whose product the threads of BLAS share: with fewer than 512 they
#: lose up to five sixths of their speed.
SHARED_ROWS = 1024

#: Rows that may be summed in float32 before they are added to the float64 matrix: the
#: error stays below that of a single product.
FLOAT32_ROWS = 8192

#: A map that is another one times a matrix (see `surff.kernels.NystroemMap.factored`)
#: is summed as the other one from so many rows per column on: the matrix is then
#: applied to the sums, which costs as much as to two rows per column.
FACTORED_ROWS = 3

#: Rows that such a map is shown before.
SHOWN_ROWS = 128

#: Columns added at once where only the upper triangle counts: what is added below the
#: diagonal for nothing stays small.
PANEL = 128


class CentredEquations(NamedTuple):
    """What a solver takes: normal equations with the means taken out (or not)."""

    gram: np.ndarray  # (m, m), upper triangle, Fortran order
    moments: np.ndarray  # (m, k)
    feature_mean: np.ndarray  # (m,), zeros when nothing was taken out
    target_mean: np.ndarray  # (k,)

    def of_targets(self, own: np.ndarray) -> CentredEquations:
        """The equations of some targets."""
        return self._replace(
            moments=self.moments[:, own], target_mean=self.target_mean[own]
        )


class NormalEquations:
    r"""Sums :math:`Z^\top W Z`, :math:`Z^\top W Y` and their companions.

    Parameters
    ----------
    n_components : int
        Columns ``m`` of the feature blocks.
    n_targets : int
        Columns ``k`` of the target blocks.

    Attributes
    ----------
    gram : ndarray of shape (m, m), float64, Fortran order
        :math:`Z^\top W Z`; only the upper triangle is meaningful.
    moments : ndarray of shape (m, k)
        :math:`Z^\top W Y`.
    feature_sum, target_sum, target_square : ndarray of shape (m,), (k,), (k,)
        :math:`Z^\top w`, :math:`Y^\top w` and :math:`\sum_i w_i y_{ik}^2`.
    weight_sum : float
        :math:`\sum_i w_i`, the number of rows without weights.

    Notes
    -----
    ``O(n m^2)`` time for n rows and ``O(m^2)`` memory. float32 blocks are multiplied in
    float32, at most `FLOAT32_ROWS` rows of them before they are added in float64, so
    the error does not grow with the number of rows.
    """

    def __init__(self, n_components: int, n_targets: int) -> None:
        self._gram = np.zeros((n_components, n_components), order="F")
        self._float32_gram, self._float32_rows = None, 0
        self.moments = np.zeros((n_components, n_targets))
        self.feature_sum = np.zeros(n_components)
        self.target_sum = np.zeros(n_targets)
        self.target_square = np.zeros(n_targets)
        self.weight_sum = 0.0

    @property
    def gram(self) -> np.ndarray:
        r""":math:`Z^\top W Z`, (m, m); only the upper triangle is meaningful."""
        self._add_float32()
        self._float32_gram = None
        return self._gram

    def _add_float32(self):
        if self._float32_rows:
            add_upper(self._gram, self._float32_gram)
            self._float32_rows = 0

    def update(
        self, Z: np.ndarray, Y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> NormalEquations:
        """Add a block of rows; returns self.

        Parameters
        ----------
        Z : ndarray of shape (n_rows, m), float32 or float64, C-contiguous
            Features. Scaled in place by the square root of the weights, if any.
        Y : ndarray of shape (n_rows, k)
            Targets.
        sample_weight : ndarray of shape (n_rows,), optional
            Weights, >= 0: weight w counts as the row repeated w times.
        """
        m, k = self.moments.shape
        if Z.shape != (len(Z), m) or Y.shape != (len(Z), k):
            raise ValueError(
                f"Z and Y must have shapes (n_rows, {m}) and (n_rows, {k}), got "
                f"{Z.shape} and {Y.shape}."
            )
        if sample_weight is None:
            self.weight_sum += len(Z)
            weights = np.ones(len(Z), Z.dtype)
            WY = Y
        else:
            self.weight_sum += float(sample_weight.sum())
            roots = np.sqrt(sample_weight)
            Z *= roots[:, None]
            weights = roots.astype(Z.dtype)  # Z already carries one root
            WY = Y * roots[:, None]
        self.feature_sum += weights @ Z
        self.moments += Z.T @ WY.astype(Z.dtype, copy=False)
        self._add_targets(WY, weights)
        if Z.dtype == np.float32:
            if self._float32_gram is None:
                self._float32_gram = np.zeros(self._gram.shape, np.float32, order="F")
            beta = 1.0 if self._float32_rows else 0.0  # an old sum was added already
            syrk(Z, self._float32_gram, beta)
            self._float32_rows += len(Z)
            if self._float32_rows >= FLOAT32_ROWS:
                self._add_float32()
        else:
            syrk(Z, self._gram)
        return self

    def __getstate__(self):
        """State for pickles and the network: the upper triangle, packed."""
        packed, _ = lapack.dtrttp(self.gram, uplo="U")
        return {**vars(self), "_gram": packed}

    def __setstate__(self, state):
        vars(self).update(state)
        if self._gram.ndim == 1:  # files of version 0.1.0 hold the square
            self._gram, _ = lapack.dtpttr(len(self.moments), self._gram, uplo="U")

    def __sizeof__(self):
        return sum(np.asarray(value).nbytes for value in vars(self).values())

    def _add_targets(self, WY, roots):
        """Add the sums of targets that carry the square roots of the weights."""
        self.target_sum += WY.T @ roots
        self.target_square += np.einsum("ij,ij->j", WY, WY, dtype=np.float64)

    @classmethod
    def of_products(
        cls,
        gram: np.ndarray,
        moments: np.ndarray,
        feature_sum: np.ndarray,
        Y: np.ndarray,
        sample_weight: np.ndarray | None = None,
    ) -> NormalEquations:
        r"""Equations of products with the features that were formed elsewhere.

        Parameters
        ----------
        gram : ndarray of shape (m, m)
            :math:`Z^\top W Z`; taken over if it is float64.
        moments : ndarray of shape (m, k)
            :math:`Z^\top W Y`.
        feature_sum : ndarray of shape (m,)
            :math:`Z^\top w`.
        Y : ndarray of shape (n_rows, k)
            Targets.
        sample_weight : ndarray of shape (n_rows,), optional
            Weights, >= 0.
        """
        equations = cls(0, Y.shape[1])
        equations._take_products(gram, moments, feature_sum)
        weight = np.ones(len(Y)) if sample_weight is None else sample_weight
        roots = np.sqrt(weight)
        equations._add_targets(Y * roots[:, None], roots)
        equations.weight_sum = float(weight.sum())
        return equations

    def _take_products(self, gram, moments, feature_sum):
        """Take products with the features over instead of those of no rows."""
        # Symmetric, so that the transpose is the same matrix in Fortran order.
        self._gram = np.asarray(gram.T, dtype=np.float64, order="F")
        self.moments = moments.astype(np.float64)
        self.feature_sum = feature_sum.astype(np.float64)

    def _combine(self, other, sign):
        if self.moments.shape != other.moments.shape:
            raise ValueError(
                f"other must hold (n_components, n_targets) = {self.moments.shape}, "
                f"got {other.moments.shape}."
            )
        add_upper(self.gram, other.gram, sign)
        self.moments += sign * other.moments
        self.feature_sum += sign * other.feature_sum
        self.target_sum += sign * other.target_sum
        self.target_square += sign * other.target_square
        self.weight_sum += sign * other.weight_sum
        return self

    def merge(self, other: NormalEquations) -> NormalEquations:
        """Add the sums of other rows; returns self."""
        return self._combine(other, 1.0)

    def subtract(self, other: NormalEquations) -> NormalEquations:
        """Remove rows that were added before, up to rounding; returns self."""
        return self._combine(other, -1.0)

    def copy(self) -> NormalEquations:
        """Return an independent copy."""
        return type(self)(*self.moments.shape).merge(self)

    def scaled(self, factors: np.ndarray) -> NormalEquations:
        """Equations of the features ``Z * factors``, as a new object.

        Parameters
        ----------
        factors : ndarray of shape (m,)
            One factor per column.
        """
        scaled = self.copy()
        scaled.gram[...] *= factors
        scaled.gram[...] *= factors[:, None]
        scaled.moments *= factors[:, None]
        scaled.feature_sum *= factors
        return scaled

    def in_basis(self, basis: np.ndarray) -> NormalEquations:
        """Equations of the features ``Z @ basis``, as a new object.

        Parameters
        ----------
        basis : ndarray of shape (m, m_new)
            What the features are multiplied with.

        Notes
        -----
        ``2 m^2 m_new + 2 m m_new^2`` operations.
        """
        changed = NormalEquations(0, self.moments.shape[1])
        product = blas.dsymm(1.0, self.gram, basis, lower=0)
        m = basis.shape[1]
        gram = np.zeros((m, m), order="F")
        for panel in row_blocks(m, max(PANEL, m // 8)):  # the upper triangle alone
            above = basis[:, : panel.stop]
            gram[: panel.stop, panel] = above.T @ product[:, panel]
        # Taken over transposed, for a matrix that is symmetric.
        changed._take_products(
            gram.T, basis.T @ self.moments, basis.T @ self.feature_sum
        )
        changed.target_sum = self.target_sum.copy()
        changed.target_square = self.target_square.copy()
        changed.weight_sum = self.weight_sum
        return changed

    def extended(
        self,
        new: np.ndarray,
        cross: np.ndarray,
        moments: np.ndarray,
        feature_sum: np.ndarray,
    ) -> NormalEquations:
        r"""Equations with more columns and the same rows, as a new object.

        Parameters
        ----------
        new : ndarray of bool, shape (m_all,)
            Which of all columns are new; the others are the columns of this object, in
            their order.
        cross : ndarray of shape (m_all, m_new)
            :math:`Z^\top W Z_{\mathrm{new}}`, all columns by the new ones.
        moments : ndarray of shape (m_new, k)
            :math:`Z_{\mathrm{new}}^\top W Y`.
        feature_sum : ndarray of shape (m_new,)
            :math:`Z_{\mathrm{new}}^\top w`.

        Returns
        -------
        NormalEquations
        """
        m, k = self.moments.shape
        if new.sum() != len(new) - m or cross.shape != (len(new), len(new) - m):
            raise ValueError(
                f"new must mark all but {m} columns, and cross have a row for each "
                f"column and a column for each new one; got {new.sum()} of {len(new)} "
                f"and shape {cross.shape}."
            )
        extended = type(self)(len(new), k)
        # Ascending, the old columns' upper triangle stays above the diagonal.
        gram = extended.gram
        gram[np.ix_(~new, ~new)] = self.gram
        gram[:, new] = cross
        gram[new] = cross.T
        for name, values in (("moments", moments), ("feature_sum", feature_sum)):
            getattr(extended, name)[~new] = getattr(self, name)
            getattr(extended, name)[new] = values
        extended.target_sum = self.target_sum.copy()
        extended.target_square = self.target_square.copy()
        extended.weight_sum = self.weight_sum
        return extended

    def centred(self, centre: bool = True, overwrite: bool = False) -> CentredEquations:
        r"""Gram matrix and moments of the features and targets less their means.

        Parameters
        ----------
        centre : bool, default=True
            False leaves them as they are, for a model without an intercept.
        overwrite : bool, default=False
            Whether the Gram matrix may be centred in place, which saves a matrix of
            memory and leaves this object useless.

        Returns
        -------
        CentredEquations
            :math:`Z^\top W Z - \omega \bar z \bar z^\top` and
            :math:`Z^\top W Y - \omega \bar z \bar y^\top` with
            :math:`\omega = \sum_i w_i`; new arrays, which a solver may overwrite.
        """
        gram, moments = self.gram, self.moments.copy()
        before = gram.diagonal().copy()
        if not overwrite:
            gram = gram.copy(order="F")
        feature_mean = np.zeros_like(self.feature_sum)
        target_mean = np.zeros_like(self.target_sum)
        if centre:
            feature_mean = self.feature_sum / self.weight_sum
            target_mean = self.target_sum / self.weight_sum
            gram = blas.dsyr(-self.weight_sum, feature_mean, a=gram, overwrite_a=1)
            moments -= np.outer(self.feature_sum, target_mean)
            clear_constant_columns(gram, moments, before)
        return CentredEquations(gram, moments, feature_mean, target_mean)


def float32_error(trace: float, alpha: float) -> float:
    r"""Largest error of predictions from the mixed precision of float32 blocks.

    Rounding errors E of the Gram matrix G have a norm of about :math:`\epsilon\,
    \mathrm{tr}\, G` or less, with :math:`\epsilon = 2^{-23}`: a product of float32
    numbers is off by half of that, sums are over a limited number of rows, and errors
    of different entries do not conspire. Since :math:`\beta = (G + \alpha I)^{-1}
    Z^\top Y` has a norm of at most :math:`\|Y\| / (2 \sqrt\alpha)`, and
    :math:`\|Z (G + \alpha I)^{-1}\| \le 1 / (2 \sqrt\alpha)`,

    .. math:: \|Z (\beta_E - \beta)\| \lesssim \frac{\|E\|}{4 \alpha} \|Y\|
              \le \frac{\epsilon\, \mathrm{tr}\, G}{4 \alpha} \|Y\| .

    Parameters
    ----------
    trace : float
        :math:`\mathrm{tr}\, G`, before means are taken out.
    alpha : float
        Regularisation, >= 0.

    Returns
    -------
    float
        Root mean square error of predictions for the rows, in standard deviations of
        the target; infinite without regularisation.

    Notes
    -----
    On covtype the true error was some hundred to some hundred thousand times smaller.

    Examples
    --------
    >>> round(float32_error(trace=1000.0, alpha=1.0), 6)
    3e-05
    """
    if alpha == 0:
        return np.inf
    return float(np.finfo(np.float32).eps) * trace / (4.0 * alpha)


def add_upper(total: np.ndarray, other: np.ndarray, sign: float = 1.0) -> None:
    """Add the upper triangle of ``other`` to that of ``total``, in place.

    Whole panels are added, some entries below the diagonal with them.
    """
    for panel in row_blocks(len(total), PANEL):
        part = other[: panel.stop, panel]
        total[: panel.stop, panel] += part if sign == 1.0 else sign * part


def clear_constant_columns(
    gram: np.ndarray, moments: np.ndarray, before: np.ndarray
) -> None:
    """Set what rounding left of columns without variance to zero, in place.

    ``before`` is the diagonal that the Gram matrix had with its means.
    """
    constant = gram.diagonal() <= 64 * np.finfo(np.float64).eps * before
    gram[constant] = 0.0
    gram[:, constant] = 0.0
    moments[constant] = 0.0


def accumulate(
    feature_map: Any,
    X: Any,
    Y: np.ndarray,
    sample_weight: np.ndarray | None = None,
    rows: np.ndarray | None = None,
) -> NormalEquations:
    """Normal equations of all rows, or of some, in one pass over them.

    Parameters
    ----------
    feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
        Maps a block of rows.
    X : array or CSR matrix of shape (n_samples, n_features)
        Data.
    Y : ndarray of shape (n_samples, n_targets)
        Targets.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights.
    rows : ndarray of int, optional
        Rows to use, in this order; all by default.

    Returns
    -------
    NormalEquations

    Notes
    -----
    ``O(n m (d + m))`` time; one block of features and one ``(m, m)`` matrix per thread
    are held. Beyond `PARALLEL_COLUMNS` one block of `SHARED_ROWS` rows and one matrix
    serve all threads. For another library's array the sums over features are formed on
    its device and then copied to the host. Of a map that is a cheaper one times a
    matrix the sums of the cheaper one are formed, and the matrix is applied to them.
    """
    backend = backend_of_map(feature_map, X)
    if not backend.is_numpy:
        return _accumulate_on_device(backend, feature_map, X, Y, sample_weight, rows)
    n_rows = X.shape[0] if rows is None else len(rows)
    m, k = feature_map.n_components, Y.shape[1]
    if n_rows >= FACTORED_ROWS * m:
        inner, basis = factored(feature_map, X, rows)
        if basis is not None:
            return accumulate(inner, X, Y, sample_weight, rows).in_basis(basis)

    def add(equations, index, Z):
        weight = None if sample_weight is None else sample_weight[index]
        equations.update(Z, Y[index], weight)
        progress.advance(len(Z))

    def accumulate_range(part):
        equations = NormalEquations(m, k)
        for index, Z in feature_blocks(feature_map, X, rows, part):
            add(equations, index, Z)
        return equations

    with stage("Gram matrix", n_rows, "rows") as progress:
        if m > PARALLEL_COLUMNS:
            equations = NormalEquations(m, k)
            buffer = np.empty((min(SHARED_ROWS, n_rows), m), feature_map.dtype)
            for index in row_blocks(n_rows, SHARED_ROWS):
                out = buffer[: index.stop - index.start]
                index = index if rows is None else rows[index]
                add(
                    equations,
                    index,
                    map_rows(feature_map, rows_of(X, index, backend), out),
                )
            return equations
        first, *others = map_slices(accumulate_range, n_rows, minimum=m)
    for other in others:
        first.merge(other)
    return first


def factored(
    feature_map: Any, X: Any, rows: np.ndarray | None = None
) -> tuple[Any, np.ndarray | None]:
    """Map and matrix whose product is a map, for sums over rows.

    Parameters
    ----------
    feature_map : object
        A map that is a cheaper one times a matrix has a method ``factored(X)``, see
        `surff.kernels.NystroemMap`.
    X, rows
        See `accumulate`; some of the rows are shown to the map.

    Returns
    -------
    feature_map : object
        The cheaper map, or the one that was given.
    basis : ndarray of shape (m_cheaper, m) or None
        What its features are multiplied with; None for nothing.
    """
    n_rows = X.shape[0] if rows is None else len(rows)
    if not n_rows or not hasattr(feature_map, "factored"):
        return feature_map, None
    shown = np.arange(0, n_rows, max(1, n_rows // SHOWN_ROWS))
    shown = shown if rows is None else rows[shown]
    return feature_map.factored(rows_of(X, shown))


def _accumulate_on_device(backend, feature_map, X, Y, sample_weight, rows):
    """`accumulate` for an array of another library.

    A block has at most `FLOAT32_ROWS` rows, whose products are added in float64 where
    the device has that type.
    """
    if getattr(X, "requires_grad", False):
        raise ValueError(
            "X must not require gradients, for which the features of all rows would be "
            "held: pass X.detach()."
        )
    if rows is not None:
        Y = Y[rows]
        sample_weight = None if sample_weight is None else sample_weight[rows]
    xp, wide = backend.xp, backend.wide_dtype
    m, k = feature_map.n_components, Y.shape[1]
    gram = backend.zeros((m, m), wide)
    products = backend.zeros((m, k + 1), wide)
    roots = np.ones(len(Y)) if sample_weight is None else np.sqrt(sample_weight)
    sides = np.column_stack([Y, np.ones(len(Y))]) * roots[:, None]
    sides = backend.asarray(sides, feature_map.dtype)
    roots = backend.asarray(roots[:, None], feature_map.dtype)

    def add(block, Z):
        nonlocal gram, products
        progress.advance(Z.shape[0])
        if sample_weight is not None:
            Z = Z * roots[block, ...]
        Zt = xp.matrix_transpose(Z)
        gram += Zt @ Z
        products += Zt @ sides[block, ...]

    with stage("Gram matrix", len(Y), "rows") as progress:
        each_block(add, feature_map, X, rows)
    gram, products = to_numpy(gram), to_numpy(products)
    return NormalEquations.of_products(
        gram, products[:, :k], products[:, k], Y, sample_weight
    )


def extend(
    equations: NormalEquations,
    feature_map: Any,
    new: np.ndarray,
    X: Any,
    Y: np.ndarray,
    sample_weight: np.ndarray | None = None,
) -> NormalEquations:
    r"""Normal equations of more columns, in one pass that skips the known products.

    Parameters
    ----------
    equations : NormalEquations
        Of the same rows and the columns of ``feature_map`` that are not new.
    feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
        Maps a block of rows to all columns.
    new : ndarray of bool, shape (n_components,)
        Which of its columns are new.
    X, Y, sample_weight
        See `accumulate`.

    Returns
    -------
    NormalEquations
        Of all columns, equal to what `accumulate` gives up to rounding.

    Notes
    -----
    ``O(n m (d + m_new))`` time: the products of old columns are not formed again. A
    block of features and one ``(m, m_new)`` matrix per thread are held, and one
    ``(m, m)`` matrix.
    """
    m, m_new = len(new), int(new.sum())

    def extend_range(part):
        cross = np.zeros((m, m_new))
        sums = np.zeros((m_new, Y.shape[1] + 1))  # moments and feature sums
        for index, Z in feature_blocks(feature_map, X, part=part):
            progress.advance(len(Z))
            Z_new = np.ascontiguousarray(Z[:, new])
            weight = np.ones(len(Z)) if sample_weight is None else sample_weight[index]
            sides = np.column_stack([Y[index], np.ones(len(Z))]) * weight[:, None]
            sums += Z_new.T @ sides.astype(Z.dtype, copy=False)
            if sample_weight is not None:
                Z_new *= weight[:, None]
            cross += Z.T @ Z_new
        return cross, sums

    with stage("Gram matrix", X.shape[0], "rows") as progress:
        parts = map_slices(extend_range, X.shape[0], minimum=m)
    cross, sums = (sum(values) for values in zip(*parts, strict=True))
    return equations.extended(new, cross, sums[:, :-1], sums[:, -1])
