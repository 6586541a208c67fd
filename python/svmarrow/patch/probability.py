"""Probabilities of classes from the outputs of machines for pairs of classes.

Sigmoids by the stable fit of Lin, Lin and Weng (2007), on outputs of machines that have not seen the row; the
pairs are coupled by the second method of Wu, Lin and Weng (2004), whose optimum is a linear system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from svmarrow._support.decoding import pairs
from svmarrow.expansion.kernel_expansion import KernelExpansion

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FOLDS", "coupled", "deal", "out_of_fold", "sigmoid"]

#: Parts of the rows, each of which is left out once.
FOLDS = 5
#: No pair is more certain than this, as in LIBSVM.
_LEAST = 1e-7
#: Weight of B^2 / 2 for each row. B moves the threshold of a pair away from that of `predict`, by an amount
#: that the outputs around it hardly tell: the log loss is the same within a percent, `predict` and the most
#: probable class are another on a fifth to nine tenths fewer rows.
_PULL = 0.03
#: Numbers of the linear systems that are solved together: 32 MB.
_BLOCK = 2**22


def deal(labels: NDArray[np.intp], random: np.random.RandomState) -> NDArray[np.intp]:
    """The fold of each row: every class is dealt out evenly, after shuffling."""
    folds = np.empty(labels.size, dtype=np.intp)
    shuffled = random.permutation(labels.size)
    # One round of cards for all classes, so that the folds are of equal size too.
    folds[shuffled[np.argsort(labels[shuffled], kind="stable")]] = np.arange(labels.size) % FOLDS
    return folds


def out_of_fold(
    machine: Any,
    full: KernelExpansion,
    support: NDArray[np.integer[Any]],
    X: Any,
    labels: NDArray[np.intp],
    folds: NDArray[np.intp],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Outputs (n, pairs) of machines that were trained without the row's fold, positive for the first class.

    All machines of all folds are columns of one code over parts of classes, so they share kernel rows, and
    each starts from the solution ``full`` for all rows. Where a fold is all there is of a class, its rows get
    the side that the pair has left, or 0, as LIBSVM has it.
    """
    k = int(labels.max()) + 1
    parts, part = np.unique(labels * FOLDS + folds, return_inverse=True)
    columns, code = [], []
    outputs = np.zeros((labels.size, len(pairs(k))))
    for fold in range(FOLDS):
        for pair, (a, b) in enumerate(pairs(k)):
            stays = parts % FOLDS != fold
            first, second = stays & (parts // FOLDS == a), stays & (parts // FOLDS == b)
            if first.any() and second.any():
                columns.append((fold, pair))
                code.append(first.astype(np.int8) - second.astype(np.int8))
            else:
                outputs[folds == fold, pair] = float(first.any()) - float(second.any())
    if not columns:
        return outputs
    fold_of, pair_of = np.array(columns).T
    matrix = np.ascontiguousarray(np.array(code).T)
    if hasattr(machine, "nu"):
        # A fold may have fewer rows of the smaller class than nu needs.
        total = np.bincount(part, weights)
        for column in code:
            sides = total[column > 0].sum(), total[column < 0].sum()
            machine.nu = min(machine.nu, 2.0 * min(sides) / sum(sides) * (1.0 - 1e-12))
    coefficients = -full.coefficients if k == 2 else full.coefficients
    start = coefficients[:, pair_of] * (matrix[part[support]] != 0)
    machine.expansion_ = KernelExpansion(full.vectors, start, np.zeros(len(columns)), *_kernel(full))
    machine.support_, machine.classes_, machine.shape_fit_ = support, np.arange(parts.size), X.shape
    machine.warm_start = True
    trained = machine._fit_columns(X, part, matrix, weights).expansion
    for fold in np.unique(fold_of):
        rows, here = np.flatnonzero(folds == fold), np.flatnonzero(fold_of == fold)
        if rows.size:
            counts = trained.coefficients[:, here].any(axis=1)
            shorter = KernelExpansion(
                trained.vectors[counts],
                trained.coefficients[np.ix_(counts, here)],
                trained.intercepts[here],
                *_kernel(full),
            )
            outputs[np.ix_(rows, pair_of[here])] = shorter._evaluate(X[rows], machine.n_jobs)
    return outputs


def _kernel(expansion: KernelExpansion) -> tuple[Any, float, float, int]:
    return expansion.kernel, expansion.gamma, expansion.coef0, expansion.degree


def sigmoid(
    outputs: NDArray[np.float64], first: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """A and B of p(first class) = 1 / (1 + exp(A f + B)), by Newton's method with backtracking.

    The optimum of the log loss with Platt's targets and a weak pull of B to 0.
    """
    ones, zeros = float(weights[first].sum()), float(weights[~first].sum())
    pull = _PULL * (ones + zeros)
    targets = np.where(first, (ones + 1.0) / (ones + 2.0), 1.0 / (zeros + 2.0))
    A, B = 0.0, float(np.log((zeros + 1.0) / (ones + 1.0)))

    # Sums of products, not products of BLAS: its bits depend on its number of threads.
    def loss(A: float, B: float) -> float:
        z = A * outputs + B
        return float((weights * (np.logaddexp(0.0, -z) + targets * z)).sum()) + 0.5 * pull * B * B

    now = loss(A, B)
    for _ in range(100):
        p = expit(-(A * outputs + B))
        slope, curvature = weights * (targets - p), weights * p * (1.0 - p)
        g1, g2 = float((slope * outputs).sum()), float(slope.sum()) + pull * B
        if max(abs(g1), abs(g2)) < 1e-5:
            break
        h11 = float((curvature * outputs**2).sum()) + 1e-12
        h22, h21 = float(curvature.sum()) + pull + 1e-12, float((curvature * outputs).sum())
        determinant = h11 * h22 - h21 * h21
        dA, dB = (h21 * g2 - h22 * g1) / determinant, (h21 * g1 - h11 * g2) / determinant
        down, step = g1 * dA + g2 * dB, 1.0
        while step >= 1e-10 and not loss(A + step * dA, B + step * dB) < now + 1e-4 * step * down:
            step /= 2.0
        if step < 1e-10:
            break
        A, B = A + step * dA, B + step * dB
        now = loss(A, B)
    return A, B


def coupled(
    outputs: NDArray[np.float64], A: NDArray[np.float64], B: NDArray[np.float64], k: int
) -> NDArray[np.float64]:
    """Probabilities (n, k) from outputs (n, pairs), positive for the first class of the pair."""
    pairwise = np.clip(expit(-(outputs * A + B)), _LEAST, 1.0 - _LEAST)
    if k == 2:
        return np.column_stack([pairwise, 1.0 - pairwise])
    probabilities = np.empty((len(outputs), k))
    step = max(1, _BLOCK // (k + 1) ** 2)
    for start in range(0, len(outputs), step):
        block = slice(start, start + step)
        probabilities[block] = _coupled(pairwise[block], k)
    return probabilities


def _coupled(pairwise: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Minimises sum_ij (r_ji p_i - r_ij p_j)^2 over p with sum 1, where r_ij is the share of i in i and j."""
    r = np.zeros((len(pairwise), k, k))
    a, b = np.array(pairs(k)).T
    r[:, a, b], r[:, b, a] = pairwise, 1.0 - pairwise
    system = np.zeros((len(pairwise), k + 1, k + 1))
    system[:, :k, :k] = -r * r.transpose(0, 2, 1)
    every = np.arange(k)
    system[:, every, every] = (r**2).sum(axis=1)
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((len(pairwise), k + 1, 1))
    right[:, k] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :k, 0], 0.0)
    shares: NDArray[np.float64] = p / p.sum(axis=1, keepdims=True)
    return shares
