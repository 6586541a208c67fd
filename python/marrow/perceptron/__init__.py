"""Online learners in kernel space: perceptrons with and without a budget, and perceptron trees.

A row is answered, then learnt from if the answer was wrong, in the order given. A stream in pieces, the model
saved and loaded between them (`marrow.save`, `marrow.load`), gives the model of one pass, bit for bit.
"""

from marrow.perceptron.budget import BudgetPerceptron, Forgetron, Stoptron
from marrow.perceptron.kernel import KernelPerceptron
from marrow.perceptron.projection import Projectron, ProjectronPlusPlus
from marrow.perceptron.tree import PerceptronTreeClassifier

__all__ = [
    "BudgetPerceptron",
    "Forgetron",
    "KernelPerceptron",
    "PerceptronTreeClassifier",
    "Projectron",
    "ProjectronPlusPlus",
    "Stoptron",
]
