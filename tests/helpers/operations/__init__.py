"""Every public operation that can take long, at any size."""

from helpers.operations import answers, files, learners, libsvm, reductions  # noqa: F401 - they fill the list
from helpers.operations.kinds import OPERATIONS, Operation, Run, Settings

__all__ = ["OPERATIONS", "Operation", "Run", "Settings"]
