"""A fitted tree, packed for prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PackedTree"]


class PackedTree:
    """A tree that is packed at its first prediction; only its arrays are pickled.

    With `averaged` leaves predict by the average of their hypotheses.
    """

    __slots__ = ("averaged", "kernel", "state", "tree_")

    def __init__(
        self, kernel: tuple[str, float, float, int], state: dict[str, Any], averaged: bool = False
    ) -> None:
        self.kernel = kernel
        self.state = state
        self.averaged = averaged
        self.tree_: _core.PerceptronTree | None = None

    @property
    def tree(self) -> _core.PerceptronTree:
        tree = self.tree_
        if tree is None:
            tree = _core.PerceptronTree(self.kernel, self.state, self.averaged)
            self.tree_ = tree
        return tree

    def coefficients(self, leaf: int) -> NDArray[np.float64]:
        """Returns the coefficients with which a leaf predicts, (n_vectors, q)."""
        state = self.state
        members = slice(state["starts"][leaf], state["starts"][leaf + 1])
        last: NDArray[np.float64] = state["weights"][members]
        if not self.averaged or state["age"][leaf] == 0:
            return last
        return np.asarray(last - state["accumulator"][members] / state["age"][leaf])

    def __getstate__(self) -> tuple[Any, ...]:
        return self.kernel, self.state, self.averaged

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]
