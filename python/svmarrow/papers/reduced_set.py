"""The selections of vectors by which two papers compress kernel machines.

`path` has every size of a compression, by any of these selections, so that the tables of a paper come from
one function; `PaperSettings` are their settings. ``"backfit"``, ``"prefit"`` and ``"rank"`` are those of
`svmarrow.compression_path`; ``"basic"``, ``"l0"``, ``"l1"`` and ``"lars"`` only repeat the experiments.

Sources: J. Weston and G. H. Bakir, "Fast Binary and Multi-Output Reduced Set Selection", technical report 132
(TR-132), Max Planck Institute for Biological Cybernetics, 2004; Z. Xu, J. R. Gardner, S. Tyree and
K. Q. Weinberger, "Compressed Support Vector Machines", 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from svmarrow._support.parameters import Rule, boolean, check, either, none, one_of, real, refuse
from svmarrow._support.progress import progress as shown_progress
from svmarrow.interop.convert import as_expansion
from svmarrow.reduced_set.paths import RULES, PathRequest, selected_path
from svmarrow.reduced_set.score import refuse_number
from svmarrow.reduced_set.selection import PURSUITS, SelectionSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import ArrayLike

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.reduced_set.path import CompressionPath

__all__ = ["PaperSettings", "path"]


# --- settings of the selections ---


@dataclass(frozen=True)
class PaperSettings(SelectionSettings):
    """Settings of the selections of `svmarrow.papers.reduced_set.path`.

    A method refuses a setting that it does not read, unless it has its default.

    Parameters
    ----------
    joint : bool, default=None
        As in `svmarrow.reduced_set.SelectionSettings`. For ``"l1"`` and ``"lars"``, True is equation 5 of
        TR-132 and False is equation 4; for ``"l0"`` algorithms 3.5 and 3.4. With False and ``"basic"`` an
        output keeps its own vectors: its coefficients on the vectors of other outputs are 0. None is False
        for ``"lars"``, where each binary machine selects for itself, and True for every other method that
        reads it. A joint path of ``"lars"`` for more than 100 outputs takes minutes to hours.
    rank_tolerance, criterion, sample
        As in `svmarrow.reduced_set.SelectionSettings`; `criterion` and `sample` for ``"basic"`` too.
    chunk : int, default=None
        As in `svmarrow.reduced_set.SelectionSettings`. Where None has to take chunks, they have 2048 vectors
        for ``"lars"`` and 1024 for ``"l0"``.
    max_memory : float, default=2000
        As in `svmarrow.reduced_set.SelectionSettings`. ``"l0"``, ``"l1"`` and ``"lars"`` hold the kernel
        matrix too.
    inverse_weights : bool, default=False
        For ``"l1"``: weights one over the size of the model's coefficients instead of 1, so that vectors with
        small coefficients leave first.
    cost : float, default=None
        For ``"lars"``: what the squared losses cost against the squared norm of w (compressed SVM, equation
        1). None is 2 C, C being the largest coefficient of the model: an SVM minimizes half the squared norm
        and C times the losses, and is the same for every C from its largest coefficient on.
    refit : bool, default=True
        For ``"l1"`` and ``"lars"``: solve for the coefficients of every size again, so that it is the best
        approximation by its vectors. False keeps those of the penalized problem itself, which the penalty
        has shrunk: at each size those of the smallest lambda before the next vector enters, or with
        `penalty` those of its first vectors. Not for models that are taken in chunks.
    max_change : float, default=None
        For ``"l0"``: how much the model may change, 0 for not at all (TR-132, algorithms 3.4 and 3.5). None
        lets it fall from large to small and orders the vectors as they are first needed.
    penalty : float, default=None
        For ``"l1"`` and ``"lars"``: lambda of equation 4 or 5, the price of the coefficients. The path
        then has the vectors of that solution and no others, the largest first. None follows the whole path
        over lambda; ``CompressionPath.penalties`` holds the lambda at which each vector enters. The path of
        a model with one output, or of outputs by themselves, is exact; that of several outputs together is
        followed in steps of 7 %.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC
    >>> from svmarrow.papers.reduced_set import PaperSettings, path
    >>> svc = SVC(gamma=0.001, multi_class="ovr").fit(*load_digits(return_X_y=True))
    >>> lossless = path(svc, method="l0", settings=PaperSettings(max_change=0.0), tol=0)
    >>> len(lossless) <= svc.expansion_.n_vectors
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        **SelectionSettings._rules,
        "joint": either(none, boolean),
        "inverse_weights": boolean,
        "cost": either(none, real(above=0.0)),
        "refit": boolean,
        "max_change": either(none, real(least=0.0)),
        "penalty": either(none, real(least=0.0)),
    }
    _readers: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **SelectionSettings._readers,
        "joint": (*PURSUITS, "l0", "l1", "lars"),
        "criterion": PURSUITS,
        "sample": PURSUITS,
        "inverse_weights": ("l1",),
        "cost": ("lars",),
        "refit": ("l1", "lars"),
        "max_change": ("l0",),
        "penalty": ("l1", "lars"),
    }

    joint: bool | None = None  # type: ignore[assignment]
    inverse_weights: bool = False
    cost: float | None = None
    refit: bool = True
    max_change: float | None = None
    penalty: float | None = None

    def _for_method(self, method: str, /) -> PaperSettings:
        return self if self.joint is not None else replace(self, joint=method != "lars")


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
