"""`path`: every size of a compression, by the selections that two papers compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from svmarrow._support.parameters import check, one_of, refuse
from svmarrow._support.progress import progress as shown_progress
from svmarrow.interop.convert import as_expansion
from svmarrow.papers.reduced_set.settings import PaperSettings
from svmarrow.reduced_set.paths import RULES, PathRequest, selected_path
from svmarrow.reduced_set.score import refuse_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.reduced_set.path import CompressionPath

__all__ = ["path"]

METHODS = ("basic", "l0", "l1", "lars", "backfit", "prefit", "rank")
Method: TypeAlias = Literal["basic", "l0", "l1", "lars", "backfit", "prefit", "rank"]
PATH_RULES = {**RULES, "method": one_of(*METHODS)}


def path(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    n_vectors: int | None = None,
    method: Method = "lars",
    candidates: Literal["vectors", "samples"] = "vectors",
    tol: float = 1e-5,
    settings: PaperSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    scoring: Literal["accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"] | None = None,
    sample_weight: ArrayLike | None = None,
) -> CompressionPath:
    """Compress a fitted kernel machine to every size by a selection of the papers.

    The parameters without a description are those of `svmarrow.compression_path`.

    Parameters
    ----------
    model, X, y
        As for `svmarrow.compression_path`.
    n_vectors : int, default=None
        The largest size; more than there are means all. None is all candidates, at most 1000.
    method : str, default="lars"
        How vectors are selected.

        * ``"basic"``: selects one vector after the other, each time the one with the smallest angle to the
          residual, and solves for the new coefficient alone (matching pursuit [1]_).
        * ``"l0"``: shrinks coefficients repeatedly, small ones more than large ones, until few are left [1]_.
        * ``"l1"``: orders the vectors as they enter when a penalty on the coefficients decreases [1]_.
        * ``"lars"``: the same order, for an SVM that is trained on its own vectors under such a penalty [2]_.
        * ``"backfit"``, ``"prefit"``, ``"rank"``: as for `svmarrow.compression_path`.

        ``"l0"``, ``"l1"``, ``"lars"`` and ``"rank"`` hold the kernel matrix of all vectors in memory. Models
        that are too long for a method are reduced in chunks, see `PaperSettings`.
    candidates, tol
        As for `svmarrow.compression_path`; ``candidates="samples"`` for ``"basic"``, ``"backfit"`` and
        ``"prefit"`` only.
    settings : PaperSettings, default=None
        None takes the defaults.
    random_state, max_time, n_jobs, verbose, scoring, sample_weight
        As for `svmarrow.compression_path`.

    Returns
    -------
    CompressionPath
        ``path[s]`` is the model with s vectors.

    Raises
    ------
    ValueError
        If a parameter is out of its range, X does not fit the model, the method does not take the kernel, the
        model is constant, no vector is left, `max_time` is over before there is a size, or a selection needs
        more than ``max_memory``.
    MemoryError
        If the selection takes more memory than this process may take.
    TypeError
        If `model` is not a kernel machine.
    sklearn.exceptions.NotFittedError
        If `model` is not fitted.

    See Also
    --------
    svmarrow.compression_path : The methods that are recommended, and constructed vectors.

    References
    ----------
    .. [1] J. Weston and G. H. Bakir, "Fast Binary and Multi-Output Reduced Set Selection", technical report
       132, Max Planck Institute for Biological Cybernetics, 2004, equations 4 and 5, algorithms 3.2, 3.4 and
       3.5.
    .. [2] Z. Xu, J. R. Gardner, S. Tyree and K. Q. Weinberger, "Compressed Support Vector Machines", 2015,
       equations 6 to 9.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmarrow import SVC
    >>> from svmarrow.papers import reduced_set
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> svc = SVC().fit(X[:300], y[:300])
    >>> lars = reduced_set.path(svc, method="lars", n_vectors=40)
    >>> pursuit = reduced_set.path(svc, method="backfit", n_vectors=40)
    >>> bool(pursuit.residual_norms[20] < lars.residual_norms[20])
    True
    """
    refuse_number(X)
    request = PathRequest(
        as_expansion(model), n_vectors, X, y, method, candidates, tol, settings, random_state, max_time,
        n_jobs, scoring, sample_weight,
    )  # fmt: skip
    with shown_progress(verbose) as shown:
        shown.stops_in = ("pursuit", 1)
        return _path_of(request, shown.callback)


def _path_of(request: PathRequest, progress: ProgressCallback | None) -> CompressionPath:
    check({name: getattr(request, name) for name in PATH_RULES}, PATH_RULES)
    settings = PaperSettings() if request.settings is None else request.settings
    if not isinstance(settings, PaperSettings):
        raise refuse("settings", settings, "None or a PaperSettings")
    return selected_path(request._replace(settings=settings), progress)
