"""Online learning in feature space: kernel perceptrons with and without a budget.

Each sample is predicted, then learned from if the prediction was wrong, in the order given. So the mistakes
made along the stream are errors on new samples (the *prequential* error: every sample tests the model before
it trains it). A stream in batches, with the model saved and loaded between them (`svmarrow.save`,
`svmarrow.load`), gives the model of a single pass, bit for bit.

Trees of perceptrons are `svmarrow.PerceptronTreeClassifier`.
"""

from svmarrow.online.kernel_perceptron import KernelPerceptron

__all__ = ["KernelPerceptron"]
