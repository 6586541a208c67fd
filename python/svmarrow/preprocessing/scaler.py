"""The transformer that learns scales and shapes of features from a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from svmarrow._support.estimator import Estimator
from svmarrow._support.parameters import (
    CLASS_WEIGHT,
    RANDOM_STATE,
    THREADS,
    Rule,
    atomic_fit,
    check,
    consistent,
    either,
    integer,
    none,
    one_of,
    refuse,
)
from svmarrow._support.progress import UNTIMED, Steps, fitting
from svmarrow._support.rows import select_rows, validated, with_sparse_interface
from svmarrow._support.training import refuse_zero_weights, sample_weights, weights_differ
from svmarrow.models.preparation import Affine, Parts, PiecewiseLinear, chain, check_length
from svmarrow.preprocessing._metric import apply_map
from svmarrow.preprocessing._search import learn_metric
from svmarrow.preprocessing._shapes import Task, deal_folds, draw, some_blocks, training_targets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.models.preparation import Step
    from svmarrow.preprocessing._search import ScaleStep
    from svmarrow.preprocessing._shapes import ColumnShapes, ShapeName

__all__ = ["MAX_SEARCHED", "MIN_WEIGHT", "LearnedScaler"]

#: Samples of a smaller share of the largest weight have no effect in double precision.
MIN_WEIGHT = 1e-15
#: Folds of the guard.
N_FOLDS = 5
#: Maximum number of the drawn samples that determine bandwidths and penalties.
MAX_SEARCHED = 500


def _is_vector_or_none(value: Any) -> bool:
    if value is None:
        return True
    try:
        return np.ndim(value) == 1
    except Exception:  # lists of different lengths or user-defined types  # noqa: BLE001 - the value's own methods may raise anything
        return False


class LearnedScaler(TransformerMixin, Estimator, schema="learned-scaler/1"):
    """Learn the scale and the shape of each feature from a target, for kernel machines.

    A kernel of a distance counts every column alike. This transformer shapes columns (standardized, or mapped
    to normal scores) and multiplies each by a scale that grows with the effect of the column on the target:
    the average gradient outer product of least squares with the RBF kernel (Radhakrishnan, Beaglehole, Pandit
    and Belkin 2024). It stands in a pipeline in front of any estimator.

    Shapes and scales are guarded against over-fitting: each update is also made on the training parts of five
    folds and is kept only if it predicts the held-out samples better by a number of standard errors of the
    paired differences. Without a winner the columns are standardized, as by ``StandardScaler``.

    The updates begin with equal scales, and again with the importances of the columns in scikit-learn's
    extremely randomized trees, which find columns that equal scales cannot see. The second result replaces
    the first if it predicts the held-out samples better by three standard errors.

    Parameters
    ----------
    metric : {"diagonal", "full"}, default="diagonal"
        One scale for each column, or a linear map: the square root of the average gradient outer product, for
        dense data of moderate width.
    shape : {"auto", "standard", "quantile", "both"}, default="auto"
        "standard" standardizes columns; "quantile" maps them to normal scores by a piecewise linear function;
        "both" has the two side by side, so that there are more columns. "auto" chooses among the three by the
        guard; sparse data have "standard" and are not centered.
    task : {"auto", "classification", "regression"}, default="auto"
        What y is. "auto": one column of strings, booleans or whole numbers with at most 100 different values
        and at least 5 samples for each on average is classes, all else is regression.
    n_components : int or None, default=None
        For ``metric="full"``: maximum number of columns of the result; None is that of the shaped columns.
    groups : array-like of int of shape (n_features,) or None, default=None
        Columns with the same number have one scale and keep the shape "standard", such as the columns of one
        category. None has a scale for each.
    n_samples : int, default=1000
        Maximum number of samples to learn from; more are drawn, of each class in proportion.
    max_iter : int, default=8
        Maximum number of updates of the scales; 0 learns no scales.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in `svmarrow.RLSClassifier`.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, of the drawn samples and of the trees.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. The result is the same for any number.

    Attributes
    ----------
    scales_ : ndarray of shape (n_features_out,)
        Scales of the shaped columns, whose mean square is 1; for ``metric="full"`` the lengths of the rows of
        `components_`.
    components_ : ndarray of shape (n_shaped, n_features_out) or None
        For ``metric="full"``: the linear map of the shaped columns.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Squares of the scales of each feature, all shapes together; they add up to 1.
    shape_ : {"standard", "quantile", "both"}
        The shape of the columns.
    gamma_ : float or None
        Bandwidth of the RBF kernel for the transformed columns, by the leave-one-out error of least squares;
        None if nothing was learned because there are too few samples or they do not vary.
    alpha_ : float or None
        The penalty of that fit, as in `svmarrow.RLSRegressor`.
    n_iter_ : int
        Number of updates of the scales that were tried; the last may have been rejected.
    history_ : tuple of ScaleStep
        Every candidate: its iteration, shape, power, errors, gain with standard error, whether it was kept,
        and where its updates began.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Notes
    -----
    Equal scales take some ten factorizations of a matrix of `n_samples` rows and columns. Every other
    candidate takes one for each of five folds, and some six of at most 500 samples, which determine its
    bandwidth and penalty. There are two candidates for other shapes, and two for each update. A forest of 25
    small trees gives other starts. If these promise a gain, five more forests follow, and the updates are
    repeated.

    References
    ----------
    A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin. Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models. Science 383 (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from svmarrow import RLSRegressor
    >>> from svmarrow.preprocessing import LearnedScaler
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1]
    >>> scaler = LearnedScaler().fit(X, y)
    >>> np.argsort(scaler.feature_importances_)[-2:].tolist() in ([0, 1], [1, 0])
    True
    >>> model = make_pipeline(scaler, RLSRegressor(alpha=0.01)).fit(X, y)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "metric": one_of("diagonal", "full"),
        "shape": one_of("auto", "standard", "quantile", "both"),
        "task": one_of("auto", "classification", "regression"),
        "n_components": either(none, integer(least=1)),
        "groups": Rule("None or one integer for each feature", _is_vector_or_none),
        "n_samples": integer(least=10),
        "max_iter": integer(least=0),
        "class_weight": CLASS_WEIGHT,
        "random_state": RANDOM_STATE,
        "n_jobs": THREADS,
    }

    scales_: NDArray[np.float64]
    components_: NDArray[np.float64] | None
    feature_importances_: NDArray[np.float64]
    shape_: str
    gamma_: float | None
    alpha_: float | None
    n_iter_: int
    history_: tuple[ScaleStep, ...]
    n_features_in_: int
    _shapes: ColumnShapes
    _stored_as: ClassVar[dict[str, str]] = {
        "_shapes": "shapes_",
        "_sklearn_output_config": "output_config_",
        "_weighted": "weighted_",
    }

    def __init__(
        self,
        *,
        metric: Literal["diagonal", "full"] = "diagonal",
        shape: Literal["auto", "standard", "quantile", "both"] = "auto",
        task: Task = "auto",
        n_components: int | None = None,
        groups: ArrayLike | None = None,
        n_samples: int = 1000,
        max_iter: int = 8,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.metric = metric
        self.shape = shape
        self.task = task
        self.n_components = n_components
        self.groups = groups
        self.n_samples = n_samples
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn shapes and scales.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Samples.
        y : array-like of shape (n,) or (n, n_outputs)
            Labels or targets; all outputs count alike.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squared errors; None is 1 for each. A sample of weight 0 takes no part.

        Returns
        -------
        object
            The fitted transformer.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, sparse data with another shape than
            "standard" or with ``metric="full"``.
        MemoryError
            If the matrices of `n_samples` samples do not fit in the free memory.
        KeyboardInterrupt
            On Ctrl-C; the transformer is then as it was before the call.
        """
        with fitting(self, X, y, sample_weight):
            return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        steps: Steps = UNTIMED,
        blocks: NDArray[np.intp] | None = None,
    ) -> Self:
        """Fits; samples with the same number in `blocks` (n,) are held out and left out together."""
        check({name: getattr(self, name) for name in self._rules}, self._rules)
        X, y = validated(self, X, y, reset=True, with_y=True, multi_output=True)
        weights = sample_weights(sample_weight, X.shape[0])
        if weights is not None:
            refuse_zero_weights(weights)
            # Only ratios of weights count, and their sum may be beyond double precision.
            weights = weights / weights.max()
        targets = training_targets(np.asarray(y), self.task, self.class_weight, weights)
        self._weighted = weights_differ(targets.weights)
        chosen_rows = np.arange(X.shape[0])
        if targets.weights is not None:
            chosen_rows = np.flatnonzero(targets.weights > MIN_WEIGHT * targets.weights.max())
        if not chosen_rows.size:
            raise ValueError("the sample weights are all zero: at least one sample needs a positive weight")
        random = check_random_state(self.random_state)
        labels = None if targets.labels is None else targets.labels[chosen_rows]
        chosen_rows = chosen_rows[draw(chosen_rows.size, int(self.n_samples), labels, random)]
        labels = None if targets.labels is None else targets.labels[chosen_rows]
        drawn = None if targets.weights is None else targets.weights[chosen_rows]
        if drawn is not None:
            drawn = drawn / drawn.mean()
        names = self._shape_names(X)
        blocks = some_blocks(blocks, chosen_rows)
        folds = deal_folds(chosen_rows.size, N_FOLDS, labels, random, blocks)
        metric = learn_metric(
            select_rows(X, chosen_rows),
            targets.values[chosen_rows],
            drawn,
            names=names,
            groups=self._group_numbers(),
            folds=folds,
            searched=draw(chosen_rows.size, MAX_SEARCHED, labels, random),
            blocks=blocks,
            full=self.metric == "full",
            rank=None if self.n_components is None else int(self.n_components),
            max_iter=int(self.max_iter),
            n_jobs=self.n_jobs,
            seed=random.randint(2**31 - 1),
            steps=steps,
        )
        self._shapes, self.shape_ = metric.shapes, metric.shapes.name
        self.gamma_, self.alpha_, self.history_ = metric.gamma, metric.alpha, metric.history
        self.n_iter_ = max((step.iteration for step in metric.history), default=0)
        linear = metric.linear
        if self.metric == "full" and linear.ndim == 1:
            linear = np.diag(linear)
        self.components_ = linear if linear.ndim == 2 else None
        self.scales_ = np.sqrt((linear**2).sum(axis=1)) if linear.ndim == 2 else linear
        sources = metric.shapes.sources
        sizes = np.bincount(sources, self.scales_**2, minlength=self.n_features_in_)
        self.feature_importances_ = sizes / sizes.sum()
        return self

    def _shape_names(self, X: Any) -> tuple[ShapeName, ...]:
        """Returns the shapes to choose from, the default first."""
        if not sp.issparse(X):
            return ("standard", "quantile", "both") if self.shape == "auto" else (self.shape,)
        if self.metric != "diagonal":
            raise refuse("metric", self.metric, "'diagonal' for sparse X")
        if self.shape not in ("auto", "standard"):
            raise refuse("shape", self.shape, "'auto' or 'standard' for sparse X")
        return ("standard",)

    def _group_numbers(self) -> NDArray[np.int64]:
        """Returns the group of each column, numbered from 0."""
        if self.groups is None:
            return np.arange(self.n_features_in_)
        try:
            groups = np.asarray(self.groups)
            whole = np.array_equal(groups, groups.astype(np.int64))
        except (TypeError, ValueError, OverflowError):
            whole = False
        if not whole or groups.shape != (self.n_features_in_,):
            raise refuse("groups", self.groups, f"one integer for each of the {self.n_features_in_} features")
        return np.unique(groups, return_inverse=True)[1].ravel().astype(np.int64)

    @consistent
    def transform(self, X: Any) -> Any:
        """Shape and scale columns.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features_in_)
            Samples.

        Returns
        -------
        {ndarray, sparse matrix} of shape (n, n_features_out)
            float32 for float32, else float64.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of columns, or is sparse where the training samples
            were dense.
        """
        self._check_fitted()
        X = validated(self, X, reset=False)
        centred = bool(self._shapes.mean.any()) or self._shapes.columns.size
        if sp.issparse(X) and (self.components_ is not None or centred):
            raise ValueError(
                "X is sparse, and the columns of the training samples were dense: pass a dense X"
            )
        linear = self.scales_ if self.components_ is None else self.components_
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = apply_map(self._shapes.apply(X), linear)
        if not np.isfinite(scaled.data if sp.issparse(scaled) else scaled).all():
            raise ValueError("X has values so large that the scaled columns are not finite: scale X")
        return with_sparse_interface(scaled) if sp.issparse(scaled) else scaled

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the transformed columns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features; None takes those of `fit`, or "x0", "x1", ...

        Returns
        -------
        ndarray of str of shape (n_features_out,)
            The name of the feature, with "_quantile" for the quantile shape beside the standardized one;
            "learnedscaler0", "learnedscaler1", ... for ``metric="full"``.

        Raises
        ------
        ValueError
            If the names are not those of `fit`.
        """
        self._check_fitted()
        names = _check_feature_names_in(self, input_features)
        if self.components_ is not None:
            return np.array([f"learnedscaler{j}" for j in range(self.components_.shape[1])], dtype=object)
        suffix = "_quantile" if self.shape_ == "both" else ""
        first = [str(names[c]) for c in self._shapes.standard_columns]
        return np.array([*first, *(f"{names[c]}{suffix}" for c in self._shapes.columns)], dtype=object)

    def _preparation_step(self) -> Step:
        """The transformer as a step of a model, see `svmarrow.models.preparation`."""
        shapes = self._shapes
        first = shapes.standard_columns
        standard = Affine(shapes.mean[first], shapes.deviation[first])
        step: Step = standard
        if shapes.columns.size:
            quantile = PiecewiseLinear(shapes.knots, shapes.values)
            pairs = [
                (columns, part)
                for columns, part in ((first, standard), (shapes.columns, quantile))
                if columns.size
            ]
            columns, parts = zip(*pairs, strict=True)
            step = Parts(self.n_features_in_, columns, parts)
        zero = np.zeros(shapes.sources.size)
        scale = Affine(zero, 1.0 / self.scales_)
        if self.components_ is not None:
            scale = Affine(zero, zero + 1.0, self.components_)
        steps = chain([step, scale])
        assert steps is not None
        return steps

    def _after_load(self) -> None:
        super()._after_load()
        if self._shapes.mean.size != self.n_features_in_:
            raise ValueError(
                f"n_features_in_ is {self.n_features_in_}, the shapes have {self._shapes.mean.size}"
            )
        size = self._shapes.sources.size
        check_length("scales_", self.scales_, size)
        check_length("feature_importances_", self.feature_importances_, self.n_features_in_)
        if self.components_ is not None:
            if (
                self.components_.ndim != 2
                or self.components_.shape[0] != size
                or not self.components_.shape[1]
            ):
                raise ValueError(f"components_ has shape {self.components_.shape} for {size} columns")
            check_length("components_", self.components_.ravel(), self.components_.size)

    def _check_fitted(self) -> None:
        check_is_fitted(self, "scales_")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scales_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = self.metric == "diagonal" and self.shape in ("auto", "standard")
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
