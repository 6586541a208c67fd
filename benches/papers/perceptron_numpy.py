"""A perceptron tree in NumPy, for two classes, the RBF kernel and WPQ, whose parts can be exchanged.

What ``perceptron_variants.py`` tries. Where nothing is exchanged it is the tree of Ukkonen and Arias (2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from perceptron_trees import BUDGET
from scipy.linalg import cho_factor, cho_solve

#: Rows that a leaf remembers, rounds of algorithm 3 and draws of its rounding, as the class has them.
SAMPLE, ROUNDS, DRAWS, PROGRESS = 512, 30, 100, 1e-4


@dataclass(frozen=True)
class Variant:
    """What a tree does otherwise than the paper's."""

    #: Whether a rounded selection is improved by exchanges of two vectors while that lowers its cost.
    exchanges: bool = False
    #: Random starts of algorithm 3, of which the cheapest is kept.
    restarts: int = 1
    #: Coefficients of a child: "whole" as in the parent, "fractional" times p, "refitted" by least squares.
    weights: str = "whole"
    #: Most leaves, and what a full leaf does when there are so many: "stop", "forgetron" or "project".
    leaves: int | None = None
    full: str = "stop"
    #: A row within this distance of the span of its leaf is projected instead of stored.
    eta: float = 0.0
    #: Whether a leaf answers with the average of its hypotheses; it learns from the last one's mistakes.
    averaged: bool = False


class Leaf:
    """A perceptron of at most so many vectors, and a sample of the rows that it has seen."""

    def __init__(self, d: int, budget: int) -> None:
        self.Z = np.empty((budget + 1, d))
        self.K = np.empty((budget + 1, budget + 1))
        self.norms, self.a, self.early = (np.zeros(budget + 1) for _ in range(3))
        self.ids = np.full(budget + 1, -1)
        self.m = 0
        self.seen, self.lived = 0, 0
        self.sample: list[int] = []
        # Of the Forgetron alone: M since the leaf was full, and Q.
        self.mistakes, self.shrunk = 0, 0.0

    def push(self, x: np.ndarray, norm: float, k: np.ndarray, a: float, number: int) -> None:
        m = self.m
        self.Z[m], self.norms[m], self.a[m], self.ids[m] = x, norm, a, number
        self.K[m, :m] = self.K[:m, m] = k
        self.K[m, m] = 1.0
        self.early[m] = a * self.lived
        self.m = m + 1

    def drop(self, j: int) -> None:
        kept = np.delete(np.arange(self.m), j)
        self.K[: self.m - 1, : self.m - 1] = self.K[np.ix_(kept, kept)]
        for array in (self.Z, self.norms, self.a, self.early, self.ids):
            array[: self.m - 1] = array[kept]
        self.m -= 1


def box_program(Q: np.ndarray, most: float) -> np.ndarray:
    """Minimise p'Qp / 2 - p'Q1 over 0 <= p <= 1 and sum p <= most (Mehrotra's interior-point method, 1992).

    Q is nearly singular: first-order methods stop far from the minimum, and mistakes rise by a hundredth.
    """
    m, w = len(Q), Q.sum(axis=1)
    scale = float(np.abs(w).max())
    if scale == 0.0:
        return np.zeros(m)
    p = np.full(m, min(0.5 * most / m, 0.5))
    # What must stay positive, p, 1 - p and the slack of the sum, and their multipliers.
    x, z = np.concatenate([p, 1 - p, [most - p.sum()]]), np.full(2 * m + 1, scale)
    for _ in range(100):
        slopes = Q @ x[:m] - w
        products = float(x @ z)
        residual = np.abs(slopes - z[:m] + z[m:-1] + z[-1]).max()
        if products <= 1e-5 * scale and (residual <= 1e-5 * scale or products <= 1e-7 * scale):
            break
        system = Q + z[-1] / x[-1]
        system[np.diag_indices(m)] += z[:m] / x[:m] + z[m:-1] / x[m:-1]
        factor = cho_factor(system, check_finite=False)
        dx, dz, reach = newton(factor, slopes, x, z, np.zeros(2 * m + 1))
        left = float((x + min(reach, 1.0) * dx) @ (z + min(reach, 1.0) * dz))
        mu = max(left / products, 0.0) ** 3 * products / (2 * m + 1)
        dx, dz, reach = newton(factor, slopes, x, z, mu - dx * dz)
        part = min(0.995 * reach, 1.0)
        x, z = x + part * dx, z + part * dz
    return np.clip(x[:m], 0.0, 1.0)


def newton(
    factor: Any, slopes: np.ndarray, x: np.ndarray, z: np.ndarray, goal: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """The step that brings the products x z to a goal, and how far it can be gone."""
    m, shares = len(slopes), goal / x
    step = cho_solve(factor, shares[:m] - shares[m:-1] - shares[-1] - slopes, check_finite=False)
    dx = np.concatenate([step, -step, [-step.sum()]])
    dz = (goal - z * dx) / x - z
    values, moves = np.concatenate([x, z]), np.concatenate([dx, dz])
    falls = moves < 0
    return dx, dz, float((-values[falls] / moves[falls]).min(initial=np.inf))


def exchanged(Q: np.ndarray, w: np.ndarray, chosen: np.ndarray, most: int) -> np.ndarray:
    """The selection after the best exchanges of two vectors, or additions, while they lower the cost."""
    chosen = chosen.copy()
    for _ in range(10 * most):
        slopes, diagonal = Q[:, chosen].sum(axis=1) - w, np.diag(Q)
        out, into = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        gains = 0.5 * diagonal[into] + slopes[into]
        change = gains - Q[np.ix_(out, into)] + (0.5 * diagonal[out] - slopes[out])[:, None]
        a, b = np.unravel_index(int(change.argmin()), change.shape)
        alone = int(gains.argmin())
        if len(out) < most and gains[alone] < min(change[a, b], 0.0):
            chosen[into[alone]] = True
        elif change[a, b] < -1e-9 * abs(w).max():
            chosen[out[a]], chosen[into[b]] = False, True
        else:
            break
    return chosen


class Tree:
    """WPQ for two classes -1 and 1 and the RBF kernel, as the class has it where nothing is changed."""

    def __init__(self, gamma: float, seed: int, variant: Variant) -> None:
        self.gamma, self.variant = gamma, variant
        self.random = np.random.default_rng(seed)
        #: A leaf, or (w, threshold, left, right).
        self.nodes: list[Any] = []
        self.mistakes, self.seen = 0, 0

    def kernel(self, leaf: Leaf, x: np.ndarray, norm: float) -> np.ndarray:
        m = leaf.m
        squares = leaf.norms[:m] + norm - 2.0 * (leaf.Z[:m] @ x)
        return np.exp(-self.gamma * np.maximum(squares, 0.0))

    def learn(self, X: np.ndarray, y: np.ndarray, numbers: np.ndarray) -> Tree:
        """One pass; equal rows have equal numbers."""
        self.X, self.y, self.numbers = X, y, numbers
        self.norms = np.einsum("ij,ij->i", X, X)
        lengths = np.sqrt(self.norms)
        self.unit = X / np.where(lengths > 0, lengths, 1.0)[:, None]
        self.nodes = self.nodes or [Leaf(X.shape[1], BUDGET)]
        for i in range(len(y)):
            self.row(i)
        return self

    def row(self, i: int) -> None:
        at = 0
        while type(self.nodes[at]) is tuple:
            w, threshold, left, right = self.nodes[at]
            at = left if self.unit[i] @ w > threshold else right
        leaf: Leaf = self.nodes[at]
        k = self.kernel(leaf, self.X[i], self.norms[i])
        label = self.y[i]
        score = float(k @ leaf.a[: leaf.m])
        answer = score
        if self.variant.averaged and leaf.lived:
            answer = float(k @ (leaf.a - leaf.early / leaf.lived)[: leaf.m])
        self.seen += 1
        self.mistakes += label * answer <= 0
        leaf.seen += 1
        leaf.lived += 1
        if len(leaf.sample) < SAMPLE:
            leaf.sample.append(i)
        elif (place := int(self.random.integers(leaf.seen))) < SAMPLE:
            leaf.sample[place] = i
        if label * score <= 0:
            self.mistake(at, leaf, i, k)

    def mistake(self, at: int, leaf: Leaf, i: int, k: np.ndarray) -> None:
        label, m = self.y[i], leaf.m
        known = np.flatnonzero(leaf.ids[:m] == self.numbers[i])
        if known.size:
            leaf.a[known[0]] += label
            leaf.early[known[0]] += label * leaf.lived
            return
        leaves = self.variant.leaves
        full = m >= BUDGET and leaves is not None and (len(self.nodes) + 1) // 2 >= leaves
        if full and self.variant.full == "stop":
            return
        if m and (self.variant.eta > 0 or (full and self.variant.full == "project")):
            K = leaf.K[:m, :m] + 1e-9 * np.eye(m)
            d = cho_solve(cho_factor(K, check_finite=False), k, check_finite=False)
            if (full and self.variant.full == "project") or 1.0 - k @ d <= self.variant.eta**2:
                leaf.a[:m] += label * d
                leaf.early[:m] += label * d * leaf.lived
                return
        leaf.push(self.X[i], self.norms[i], k, label, self.numbers[i])
        if full:
            self.forget(leaf)
        elif leaf.m > BUDGET:
            self.split(at, leaf)

    def forget(self, leaf: Leaf) -> None:
        """The Forgetron: coefficients shrink until the oldest can leave without harm, then it leaves."""
        leaf.mistakes += 1
        oldest = float(abs(leaf.a[0]))
        of_oldest = float(np.sign(leaf.a[0]) * (leaf.K[0, : leaf.m] @ leaf.a[: leaf.m]))
        # phi^2 (s^2 - 2 s mu) + 2 s phi <= 15 / 32 M - Q, the largest phi in (0, 1].
        square, linear = oldest**2 - 2 * oldest * of_oldest, 2 * oldest
        room = max(15 / 32 * leaf.mistakes - leaf.shrunk, 0.0)
        phi = 1.0
        if square + linear > room:
            inside = linear**2 + 4 * square * room
            phi = 2 * room / (linear + np.sqrt(inside)) if inside >= 0 else 1.0
            phi = min(max(phi, 0.0), 1.0)
        leaf.shrunk += phi * phi * square + phi * linear
        leaf.a[: leaf.m] *= phi
        leaf.drop(0)

    def split(self, at: int, leaf: Leaf) -> None:
        rows = np.array(leaf.sample)
        m, most = leaf.m, BUDGET // 2
        K = np.exp(
            -self.gamma
            * np.maximum(self.norms[rows][:, None] + leaf.norms[:m] - 2 * self.X[rows] @ leaf.Z[:m].T, 0.0)
        )
        G = K * leaf.a[:m]
        target = G.sum(axis=1)
        best: Any = None
        for _ in range(self.variant.restarts):
            found = self.alternate(G, target, rows, most)
            if found is not None and (best is None or found[0] < best[0]):
                best = found
        if best is None:
            return
        _, w, threshold, z, p, q = best
        children = []
        for marked, part in ((z, p), (~z, q)):
            Q = G[marked].T @ G[marked]
            if self.variant.weights == "fractional":
                chosen = np.zeros(m, bool)
                chosen[np.argsort(-part)[:most]] = True
                chosen &= part > 1e-6
                a = part * leaf.a[:m]
            else:
                chosen = self.rounded(Q, most, part)
                a = leaf.a[:m].copy()
                if self.variant.weights == "refitted":
                    A = K[np.ix_(marked, chosen)]
                    ridge = 1e-3 * len(A) * np.eye(A.shape[1])
                    a[chosen] = np.linalg.solve(A.T @ A + ridge, A.T @ target[marked])
            child = Leaf(self.X.shape[1], BUDGET)
            child.m = int(chosen.sum())
            which = np.flatnonzero(chosen)
            child.Z[: child.m], child.norms[: child.m] = leaf.Z[which], leaf.norms[which]
            child.a[: child.m], child.ids[: child.m] = a[which], leaf.ids[which]
            child.K[: child.m, : child.m] = leaf.K[np.ix_(which, which)]
            child.sample = rows[marked].tolist()
            child.seen = round(leaf.seen * len(child.sample) / len(rows))
            children.append(child)
        self.nodes[at] = (w, threshold, len(self.nodes), len(self.nodes) + 1)
        self.nodes += children

    def alternate(self, G: np.ndarray, target: np.ndarray, rows: np.ndarray, most: int) -> Any:
        """Algorithm 3 from one random start: cost, w, threshold, z, p, q."""

        def draw() -> np.ndarray:
            p = self.random.random(G.shape[1])
            return p * min(most / p.sum(), 1.0)

        p, q = draw(), draw()
        best: Any = None
        for _ in range(ROUNDS):
            gains = (G @ p - target) ** 2 - (G @ q - target) ** 2
            w = -(gains @ self.unit[rows])
            length = float(np.linalg.norm(w))
            if length == 0.0:
                break
            w /= length
            values = self.unit[rows] @ w
            threshold = float(np.sort(values)[(len(values) - 1) // 2])
            z = values > threshold
            if not z.any():
                break
            p = box_program(G[z].T @ G[z], most)
            q = box_program(G[~z].T @ G[~z], most)
            cost = float(((G @ p - target)[z] ** 2).sum() + ((G @ q - target)[~z] ** 2).sum())
            if best is not None and cost >= best[0] * (1 - PROGRESS):
                break
            best = (cost, w, threshold, z, p.copy(), q.copy())
        return best

    def rounded(self, Q: np.ndarray, most: int, p: np.ndarray) -> np.ndarray:
        """The best of the largest fractions and of draws with the fractions as probabilities."""
        order = np.argsort(-p)
        tried = np.zeros((DRAWS + 1, len(p)), bool)
        tried[0, order[:most]] = True
        tried[0] &= p > 0
        drawn = self.random.random((DRAWS, len(p))) < p[order]
        drawn &= np.cumsum(drawn, axis=1) <= most
        tried[1:, order] = drawn
        w = Q.sum(axis=1)
        values = 0.5 * np.einsum("ij,jk,ik->i", tried, Q, tried, optimize=True) - tried @ w
        best = tried[int(values.argmin())]
        return exchanged(Q, w, best, most) if self.variant.exchanges else best

    def decision(self, X: np.ndarray) -> np.ndarray:
        """Scores of rows."""
        norms = np.einsum("ij,ij->i", X, X)
        lengths = np.sqrt(norms)
        unit = X / np.where(lengths > 0, lengths, 1.0)[:, None]
        out = np.zeros(len(X))
        waiting = [(0, np.arange(len(X)))]
        while waiting:
            at, rows = waiting.pop()
            node = self.nodes[at]
            if isinstance(node, tuple):
                w, threshold, left, right = node
                goes = unit[rows] @ w > threshold
                waiting += [(left, rows[goes]), (right, rows[~goes])]
                continue
            m = node.m
            a = node.a[:m]
            if self.variant.averaged and node.lived:
                a = a - node.early[:m] / node.lived
            squares = norms[rows][:, None] + node.norms[:m] - 2 * X[rows] @ node.Z[:m].T
            out[rows] = np.exp(-self.gamma * np.maximum(squares, 0.0)) @ a
        return out

    @property
    def n_leaves(self) -> int:
        return (len(self.nodes) + 1) // 2
