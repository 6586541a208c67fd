"""Reduced-SVM of Keerthi, Chapelle and DeCoste (2006), a baseline of compressed support vector machines.

    min over beta and b of  1/2 |w|^2 + C sum_i max(0, 1 - y_i (w'phi(x_i) + b))^2
    w = sum_j beta_j phi(z_j)

The vectors z_j are training samples. `at_random` draws all of them. `greedy` adds one at a time, the best of
59 random candidates by the decrease of the objective in one Newton step over the candidate's coefficient
alone. It minimizes over all coefficients whenever the number of vectors has grown by a fifth. The binary
machines of several classes (one-vs-one) share their vectors: a candidate's score is the sum of the decreases.

J. Mach. Learn. Res. 7, 1493-1515, 2006, sections 2 and 3. Cost: n m^2 for a minimization with n samples and m
vectors, and 59 n d for a step of the selection.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from svmarrow import _core

if TYPE_CHECKING:
    from common import Rows

#: One of the best 5 % is among these with a probability of .95.
N_CANDIDATES = 59
#: Growth of the number of vectors after which all coefficients are minimized over.
GROWTH = 1.2
#: Diagonal that keeps the kernel matrix of the vectors positive definite.
JITTER = 1e-8


def squared_hinge(F: np.ndarray, y: np.ndarray, C: float) -> np.ndarray:
    """Newton's method for 1/2 |w|^2 + C sum max(0, 1 - y (F w + b))^2; w and b."""
    A = np.column_stack([F, np.ones(len(F))])
    ridge = np.ones(A.shape[1])
    ridge[-1] = 1e-9
    w = np.zeros(A.shape[1])

    def value(w: np.ndarray) -> float:
        loss = np.maximum(1 - y * (A @ w), 0.0)
        return 0.5 * float(ridge @ w**2) + C * float(loss @ loss)

    now = value(w)
    for _ in range(60):
        inside = y * (A @ w) < 1
        active = A[inside]
        H = 2 * C * active.T @ active
        H[np.diag_indices_from(H)] += ridge
        # Where the rows inside the margin stay the same, this is the minimum.
        step = np.linalg.solve(H, 2 * C * active.T @ y[inside]) - w
        size = 1.0
        while (then := value(w + size * step)) > now and size > 1e-6:
            size /= 2
        if now - then <= 1e-7 * now:
            break
        w, now = w + size * step, then
    return w


class ReducedSVM:
    """The binary machines of a problem over shared vectors: coefficients, intercepts and outputs."""

    def __init__(self, data: Rows, C: float, gamma: float) -> None:
        self.data, self.C, self.kernel = data, C, ("rbf", gamma, 0.0, 3)
        self.X = np.ascontiguousarray(data.X, dtype=np.float64)
        self.classes, labels = np.unique(data.y, return_inverse=True)
        self.pairs = list(combinations(range(len(self.classes)), 2))
        #: (n, machines): 1 and -1 for the two classes of a machine, 0 for all others.
        self.targets = np.zeros((len(labels), len(self.pairs)))
        for machine, (a, b) in enumerate(self.pairs):
            self.targets[labels == a, machine], self.targets[labels == b, machine] = 1.0, -1.0
        self.chosen: list[int] = []
        self.coefficients = np.zeros((0, len(self.pairs)))
        self.intercepts = np.zeros(len(self.pairs))
        self.outputs = np.zeros_like(self.targets)

    def values(self, X: np.ndarray, indices: list[int] | np.ndarray) -> np.ndarray:
        """Return the kernel values between samples and training samples."""
        Z = np.ascontiguousarray(self.X[np.asarray(indices)])
        return np.asarray(_core.gram(Z, np.ascontiguousarray(X, dtype=np.float64), self.kernel, 1)).T

    def minimize(self) -> None:
        """Minimize over all coefficients and intercepts."""
        matrix = self.values(self.X[self.chosen], self.chosen)
        L = cholesky(matrix + JITTER * np.eye(len(self.chosen)), lower=True)
        F = solve_triangular(L, self.values(self.X, self.chosen).T, lower=True).T
        self.coefficients = np.zeros((len(self.chosen), len(self.pairs)))
        for machine in range(len(self.pairs)):
            members = self.targets[:, machine] != 0
            w = squared_hinge(F[members], self.targets[members, machine], self.C)
            self.coefficients[:, machine] = solve_triangular(L, w[:-1], lower=True, trans="T")
            self.intercepts[machine] = w[-1]
            self.outputs[:, machine] = F @ w[:-1] + w[-1]

    def add_best(self, candidates: np.ndarray) -> None:
        """Add the candidate whose coefficients alone decrease the objective most, by one Newton step."""
        K = self.values(self.X, candidates)
        slack = np.where(self.targets != 0, 1 - self.targets * self.outputs, 0.0)
        active = slack > 0
        # The gradient of |w|^2 / 2 is w'phi(z), the output without the intercept.
        gradients = self.outputs[candidates] - self.intercepts
        gradients -= 2 * self.C * K.T @ np.where(active, slack * self.targets, 0.0)
        curvatures = 1.0 + 2 * self.C * (K**2).T @ active.astype(np.float64)
        best = int((gradients**2 / curvatures).sum(axis=1).argmax())
        steps = -gradients[best] / curvatures[best]
        self.chosen.append(int(candidates[best]))
        self.coefficients = np.vstack([self.coefficients, steps])
        self.outputs += K[:, [best]] * steps

    def wrong(self) -> np.ndarray:
        """Return which test samples are given a wrong class."""
        outputs = self.values(self.data.X_test, self.chosen) @ self.coefficients + self.intercepts
        votes = np.zeros((len(outputs), len(self.classes)))
        for machine, (a, b) in enumerate(self.pairs):
            first = outputs[:, machine] > 0
            votes[first, a] += 1
            votes[~first, b] += 1
        wrong: np.ndarray = self.classes[votes.argmax(axis=1)] != self.data.y_test
        return wrong


def at_random(data: Rows, C: float, gamma: float, size: int, seed: int) -> np.ndarray:
    """Return which test samples Reduced-SVM on random vectors errs on."""
    model = ReducedSVM(data, C, gamma)
    model.chosen = list(np.random.default_rng(seed).permutation(len(data.y))[:size])
    model.minimize()
    return model.wrong()


def greedy(data: Rows, C: float, gamma: float, size: int, seed: int) -> np.ndarray:
    """Return which test samples Reduced-SVM on vectors selected one at a time errs on."""
    model = ReducedSVM(data, C, gamma)
    rng = np.random.default_rng(seed)
    next_size = 2.0
    while len(model.chosen) < size:
        free = np.setdiff1d(rng.permutation(len(data.y))[: 2 * N_CANDIDATES], model.chosen)
        model.add_best(rng.permutation(free)[:N_CANDIDATES])
        if len(model.chosen) >= next_size or len(model.chosen) == size:
            model.minimize()
            next_size = max(len(model.chosen) + 1, GROWTH * len(model.chosen))
    return model.wrong()
