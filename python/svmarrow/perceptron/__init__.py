"""Online learners in kernel space: perceptrons with and without a budget, and perceptron trees.

A row is answered, then learnt from if the answer was wrong, in the order given: mistakes made along the
stream are errors on new rows (*prequential*: every row tests the model first and teaches it then). A stream
in pieces, the model saved and loaded between them (`svmarrow.save`, `svmarrow.load`), gives the model of one
pass, bit for bit.

Without limit every mistake becomes a vector, and an answer costs one kernel value a vector. So the others
follow a policy that keeps the pool of vectors small, by a *budget* of so many or by a distance:

| learner | at a mistake |
|---|---|
| `KernelPerceptron` | takes the row up |
| `Stoptron` | takes the row up until the budget is spent, then learns no more |
| `BudgetPerceptron` | takes the row up in the place of another one, by a rule (`removal`) |
| `Forgetron` | takes the row up; past the budget shrinks all coefficients and forgets the oldest |
| `Projectron`, `ProjectronPlusPlus` | spreads a row that nearly is a sum of those there over them |
| `PerceptronTreeClassifier` | takes the row up in its part of the space; past the budget splits it |
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
