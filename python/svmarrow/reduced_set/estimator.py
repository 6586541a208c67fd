"""Compression as a meta-estimator, so that it lives in pipelines and grid searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.atomic import consistent
from svmarrow._support.parameters import THREADS, Rule, boolean, integer
from svmarrow.models.decoded import LabelledOutputs
from svmarrow.reduced_set.compression import RULES, compress
from svmarrow.reduced_set.memory import bytes_of_work
from svmarrow.reduced_set.wrapper import ClassifierWrapper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.classifier import ExpansionClassifier
    from svmarrow.reduced_set.compression import Method
    from svmarrow.reduced_set.construction import GradientSettings
    from svmarrow.reduced_set.selection import SelectionSettings

__all__ = ["ReducedSet"]


class ReducedSet(LabelledOutputs, ClassifierWrapper):
    """Fit a kernel classifier, then keep only the few vectors that matter.

    Parameters
    ----------
    estimator : estimator
        What is fitted: `svmarrow.SVC`, or ``SVC`` or ``NuSVC`` of scikit-learn with a built-in kernel.
    n_vectors : int, default=100
        Largest number of vectors. A fitted model that has no more stays as it is, so that one value serves
        all folds of a search.
    method : str, default="pursuit"
        See `svmarrow.compress`.
    candidates : {"vectors", "rows"}, default="vectors"
        Choose among the vectors of the fitted model, or among all training rows. ``"gradient"`` makes vectors
        and compares the models on all training rows.
    tune_threshold : bool, default=True
        Choose the thresholds anew on the training rows. Where the estimator was fitted with weights of rows
        or classes they stay as they are: see `svmarrow.compress`.
    tol : float, default=1e-5
        End with fewer vectors when the distance to the fitted model falls to this share of the model's norm.
    settings : GradientSettings or SelectionSettings, default=None
        See `svmarrow.compress`.
    random_state : int, RandomState instance or None, default=None
        Seed of ``"gradient"`` and of sampled pursuits; nothing else is random.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. The estimator has its own.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model before compression.
    model_ : ExpansionClassifier
        The model after it.
    expansion_ : KernelExpansion
        The compressed model.
    n_vectors_ : int
        Its number of vectors.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    svmarrow.compress : The same for a model that is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmarrow import SVC, ReducedSet
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), ReducedSet(SVC(C=10)))
    >>> search = GridSearchCV(model, {"reducedset__n_vectors": [2, 20]}, cv=3).fit(X, y)
    >>> search.best_params_
    {'reducedset__n_vectors': 20}

    The smallest model whose accuracy is within a point of the best, over size and kernel width together:

    >>> def smallest(results):
    ...     sizes = results["param_reducedset__n_vectors"].astype(float)
    ...     scores = results["mean_test_score"]
    ...     return int(np.where(scores >= scores.max() - 0.01, sizes, np.inf).argmin())
    >>> grid = {"reducedset__n_vectors": [2, 8, 40], "reducedset__estimator__gamma": [0.003, 0.03]}
    >>> search = GridSearchCV(model, grid, cv=3, refit=smallest).fit(X, y)
    >>> search.best_params_
    {'reducedset__estimator__gamma': 0.003, 'reducedset__n_vectors': 8}
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        **{name: RULES[name] for name in ("method", "candidates", "tol", "random_state")},
        "n_vectors": integer(least=1),
        "tune_threshold": boolean,
        "n_jobs": THREADS,
    }

    def __init__(
        self,
        estimator: Any,
        n_vectors: int = 100,
        *,
        method: Method = "pursuit",
        candidates: Literal["vectors", "rows"] = "vectors",
        tune_threshold: bool = True,
        tol: float = 1e-5,
        settings: GradientSettings | SelectionSettings | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.n_vectors = n_vectors
        self.method = method
        self.candidates = candidates
        self.tune_threshold = tune_threshold
        self.tol = tol
        self.settings = settings
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: ArrayLike, y: ArrayLike, metadata: dict[str, Any]) -> None:
        full = self._fit_full(X, y, metadata)
        makes, chooses_vectors = self.method == "gradient", self.candidates == "vectors"
        if chooses_vectors and full.expansion_.n_vectors <= self.n_vectors:
            self.model_ = full
            return
        tune = makes or self.tune_threshold
        compared = getattr(self.settings, "criterion", "norm") == "predictions"
        needs_rows = tune or compared or not chooses_vectors
        self.model_ = compress(
            full,
            X if needs_rows else None,
            np.asarray(y).reshape(-1) if tune else None,
            n_vectors=self.n_vectors,
            method=self.method,
            candidates=self.candidates,
            tol=self.tol,
            settings=self.settings,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _bytes_after(self, rows: Any, outputs: int) -> int:
        most = min(int(self.n_vectors), int(rows.shape[0]))
        options: dict[str, Any] = {"candidates": self.candidates, "settings": self.settings}
        return bytes_of_work(outputs, rows, most, rows, self.method, **options)

    @property
    @consistent
    def expansion_(self) -> KernelExpansion:
        """The compressed expansion."""
        check_is_fitted(self, "model_")
        return self.model_.expansion_

    @property
    def n_vectors_(self) -> int:
        """Number of vectors of the compressed expansion."""
        return self.expansion_.n_vectors

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "model_")
        return self.model_.outputs(X)

    def _scores_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.model_.scores_of(outputs)

    def _winners_of(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        return self.model_.decode(outputs)

    @consistent
    def as_expansion(self) -> ExpansionClassifier:
        """The compressed model without the estimator."""
        check_is_fitted(self, "model_")
        return self.model_
