"""Choose among the sizes of each method: the smallest that loses little enough, or the best of one size.

The bound of the chosen model is corrected for each size that may be looked at (Bonferroni), a number that
does not depend on the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from svmarrow.reduced_set.score import unwrap_expansion, wrap_like
from svmarrow.reduced_set.size_search import SizeSearch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from svmarrow.reduced_set.holdout import HoldoutEvaluator
    from svmarrow.reduced_set.proposals import Proposal

__all__ = ["Choice", "best_of_size", "smallest"]

MAX_REFINEMENTS = 2
"""Maximum number of sizes between the smallest that is good enough and the next."""


class Choice(NamedTuple):
    """A model, its sample scores where there are samples held out, and how many models were compared."""

    model: Any
    scores: NDArray[np.float64] | None = None
    n_tests: int = 1


def smallest(
    model: Any, proposals: Sequence[Proposal], evaluator: HoldoutEvaluator, max_loss: float
) -> Choice:
    """The smallest proposed model whose safe loss is at most `max_loss`; the full model where none is."""
    best = Choice(wrap_like(model, unwrap_expansion(model)), evaluator.full)
    for proposal in proposals:
        search = SizeSearch(max_loss)
        seen = search.search(proposal.levels(evaluator), evaluator)
        for _ in range(MAX_REFINEMENTS):
            size = search.next_between if proposal.refines else None
            if size is None:
                break
            seen[size] = evaluator.scores_of(proposal.model(size))
            search.add(size, evaluator.safe_loss(seen[size]))
        size = search.smallest
        if size is not None and size < unwrap_expansion(best.model).n_vectors:
            best = Choice(proposal.model(size), seen[size])
    return best._replace(n_tests=max(1, sum(proposal.n_tests for proposal in proposals)))


def best_of_size(proposals: Sequence[Proposal], evaluator: HoldoutEvaluator | None) -> Choice:
    """The model that scores best of the largest that each method proposes."""
    models = [proposal.model(proposal.sizes[0]) for proposal in proposals]
    if evaluator is None:
        return Choice(models[0])
    best = min(models, key=lambda model: evaluator.loss(evaluator.scores_of(model)))
    return Choice(best, evaluator.scores_of(best, allow_constant=True), len(models))
