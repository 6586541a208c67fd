"""Outputs of machines for pairs of classes on rows that they have not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.decoding import pairs
from svmarrow.expansion.kernel_expansion import KernelExpansion

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FOLDS", "deal", "out_of_fold"]

#: Parts of the rows, each of which is left out once.
FOLDS = 5


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
    each starts from the solution ``full`` for all samples. Where a fold is all there is of a class, its rows
    get the side that the pair has left, or 0, as LIBSVM has it.
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
