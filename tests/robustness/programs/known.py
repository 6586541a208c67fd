"""Open faults of the product, by name: the failures and programs that show each, and why it is open.

The table is short. An entry is as narrow as the fault: a kind of failure, and a condition on the program.
Delete an entry with its fault: `run.py` counts the failures of each, and one that no longer occurs can go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustness.programs.runner import Failure, Program


@dataclass(frozen=True)
class Fault:
    """An open fault.

    Attributes
    ----------
    kind : str
        A regular expression that the kind of the failure matches from its beginning.
    applies : callable
        Whether a program has what the fault needs.
    reason : str
        Why it is open.
    """

    kind: str
    applies: Callable[[Program], bool]
    reason: str


FAULTS: dict[str, Fault] = {}


def name_of(failure: Failure, program: Program) -> str | None:
    """The name of the open fault that explains a failure, or None."""
    for name, fault in FAULTS.items():
        if re.match(fault.kind, failure.kind) and fault.applies(program):
            return name
    return None
