"""Rules of the shared parameters."""

from __future__ import annotations

from svmarrow._support.parameters import (
    KERNELS,
    MAX_ITER,
    MAX_TIME,
    RANDOM_STATE,
    THREADS,
    VERBOSE,
    Rule,
    boolean,
    either,
    function,
    integer,
    kernel_rules,
    none,
    one_of,
    real,
)
from svmarrow._support.rows import is_matrix

__all__ = ["RULES"]

_ONE_KERNEL = either(one_of(*KERNELS), function)
_ONE_GAMMA = either(one_of("scale", "auto"), real(least=0.0))


def _several(rule: Rule, what: str) -> Rule:
    def holds(value: object) -> bool:
        return isinstance(value, (list, tuple)) and bool(value) and all(rule.holds(v) for v in value)

    return Rule(f"a list of {what}", holds)


#: Rules of the parameters that both have.
RULES: dict[str, Rule] = {
    **kernel_rules(),
    "n_vectors": integer(least=1),
    "candidates": either(
        none,
        integer(least=1),
        real(above=0.0, most=1.0),
        Rule("an array of points, (m, n_features)", is_matrix),
    ),
    "variant": one_of("auto", "prefit", "backfit", "basic"),
    "max_iter": MAX_ITER,
    "backfit_every": integer(least=1),
    "kernel": either(_ONE_KERNEL, _several(_ONE_KERNEL, "such kernels")),
    "gamma": either(_ONE_GAMMA, _several(_ONE_GAMMA, "such values")),
    "fit_intercept": either(boolean, one_of("candidate")),
    "functions": either(none, Rule("a function of rows", callable)),
    "tol": real(least=0.0, most=0.99),
    "early_stopping": boolean,
    "validation_fraction": real(above=0.0, below=1.0),
    "cv": either(
        none,
        integer(least=2),
        Rule(
            "a splitter or pairs of rows",
            lambda v: (
                not isinstance(v, (str, int, float)) and (hasattr(v, "split") or hasattr(v, "__iter__"))
            ),
        ),
    ),
    "n_iter_no_change": either(none, integer(least=1)),
    "precision": one_of("single", "double"),
    "cache_size": either(none, real(above=0.0)),
    "sample_size": either(none, integer(least=1)),
    "max_time": MAX_TIME,
    "random_state": RANDOM_STATE,
    "n_jobs": THREADS,
    "verbose": VERBOSE,
}
