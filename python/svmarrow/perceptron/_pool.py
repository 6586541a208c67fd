"""Perceptrons that are one kernel expansion: one pool of vectors and a policy that keeps it small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from svmarrow import _core
from svmarrow._support.progress import progress
from svmarrow._support.rows import core_rows, rows_of
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.fitted import FittedClassifier
from svmarrow.perceptron._memory import Rows, bytes_of_pool, rows_that_fit
from svmarrow.perceptron._stream import StreamClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PoolClassifier"]

#: Most vectors where there is no budget: more than any memory holds.
NO_BUDGET = 2**62


class PoolClassifier(FittedClassifier, StreamClassifier):
    """An online learner whose model is one `KernelExpansion`."""

    _policy_name: ClassVar[str]

    @property
    def _policy(self) -> str:
        return self._policy_name

    def _empty(self, X: Any, seed: int) -> dict[str, Any]:
        return {
            "rows": self._no_rows(X),
            "coefficients": np.zeros((0, self._n_outputs)),
            "born": np.zeros(0, dtype=np.int64),
            "matrix": np.zeros((0, 0)),
            "scores": np.zeros((0, self._n_outputs)),
            "deviation": 0.0,
            "random": seed if self._policy == "random" else 0,
        }

    def _learn(self, X: Any, labels: NDArray[np.int64]) -> None:
        settings = {
            "n_classes": int(self.classes_.size),
            "kernel": self._kernel_spec,
            "policy": self._policy,
            "budget": int(getattr(self, "budget", NO_BUDGET)),
            "eta": float(getattr(self, "eta", 0.0)),
        }
        before = {**self._state, "counters": (self.n_seen_, self.mistakes_)}
        with progress(self.verbose) as told:
            state, wrong = _core.perceptron_stream(core_rows(X), labels, settings, before, told.callback)
        self.mistake_rows_ = wrong + self.n_seen_
        self.n_seen_, self.mistakes_ = state.pop("counters")
        self._take(state)

    def _bytes(self, X: Any, outputs: int) -> int:
        n, sizes = int(X.shape[0]), self._sizes(X)
        # A row that is a vector is in the span, so that no second pass adds it to a factor again.
        passes = (min(1, self.n_epochs - 1), 1) if sizes.precise else (self.n_epochs - 1, self.n_epochs)
        before, after = (self._most_vectors(n * passed) for passed in passes)
        return bytes_of_pool(sizes, before, after, outputs, self._policy)

    def _rows_that_fit(self, X: Any) -> int:
        sizes, known = self._sizes(X), self._state["born"].size

        def needed(count: int) -> int:
            grown = max(known, self._most_vectors(known + count))
            return bytes_of_pool(sizes, known, grown, self._n_outputs, self._policy)

        return rows_that_fit(type(self).__name__, int(X.shape[0]), needed)

    def _most_vectors(self, mistakes: int) -> int:
        return min(mistakes, int(getattr(self, "budget", NO_BUDGET)))

    def _sizes(self, X: Any) -> Rows:
        # A factor needs all digits of the kernel values.
        return Rows(X, precise=self._policy in ("projectron", "projectron++"))

    def _after_load(self) -> None:
        stored = self.expansion_
        super()._after_load()
        if stored != self.expansion_:
            raise ValueError("expansion_ is not what the state says")

    def _check_state(self, state: dict[str, Any]) -> None:
        m, q = state["coefficients"].shape
        scores = self._policy in ("margin", "tightest")
        matrix = self._policy in ("tightest", "projectron", "projectron++")
        shapes = {
            "coefficients": (m, self._n_outputs),
            "born": (m,),
            "scores": (m if scores else 0, q),
            "matrix": (m, m) if matrix else (0, 0),
        }
        for key, shape in shapes.items():
            if state[key].shape != shape:
                raise ValueError(f"array {key!r} has shape {state[key].shape}, expected {shape}")
        if state["born"].size and state["born"].max() >= self.n_seen_:
            raise ValueError("array 'born' has rows that were never seen")

    def _take(self, state: dict[str, Any]) -> None:
        self._state = state
        self.expansion_ = KernelExpansion(
            rows_of(self._state["rows"]),
            self._coefficients(),
            np.zeros(self._n_outputs),
            *self._kernel_spec,
        )

    def _coefficients(self) -> NDArray[np.float64]:
        """Coefficients that answer: those of the last hypothesis."""
        coefficients: NDArray[np.float64] = self._state["coefficients"]
        return coefficients

    def _outputs_of(self, rows: Any) -> NDArray[np.float64]:
        return self.expansion_._evaluate(rows, self.n_jobs)
