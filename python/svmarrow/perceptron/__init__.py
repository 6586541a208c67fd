"""Online learners in kernel space: perceptrons with and without a budget, and perceptron trees.

A row is answered, then learnt from if the answer was wrong, in the order given. A stream in pieces, the model
saved and loaded between them (`svmarrow.save`, `svmarrow.load`), gives the model of one pass, bit for bit.
"""

from svmarrow.perceptron.budget import BudgetPerceptron, Forgetron, Stoptron
from svmarrow.perceptron.kernel import KernelPerceptron
from svmarrow.perceptron.projection import Projectron, ProjectronPlusPlus
from svmarrow.perceptron.tree import PerceptronTreeClassifier

__all__ = [
    "BudgetPerceptron",
    "Forgetron",
    "KernelPerceptron",
    "PerceptronTreeClassifier",
    "Projectron",
    "ProjectronPlusPlus",
    "Stoptron",
]
