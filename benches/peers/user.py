"""A program that knows scikit-learn alone; `run.py --suite dropin` runs it as it is under three libraries.

python user.py ROWS.npz    X, y, X_test, y_test; what it found and its seconds, as JSON on standard output
"""

import json
import sys
import time
from itertools import pairwise

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

with np.load(sys.argv[1]) as file:
    X, y, X_test, y_test = (file[name] for name in ("X", "y", "X_test", "y_test"))
marks = [("start", time.perf_counter())]

scale = 1 / X.shape[1]
grid = {"svc__C": [1, 10, 100], "svc__gamma": [scale / 4, scale, 4 * scale]}
search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=5).fit(X, y)
marks.append(("search", time.perf_counter()))

best = {name.removeprefix("svc__"): value for name, value in search.best_params_.items()}
model = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0, **best)).fit(X, y)
marks.append(("fit with probabilities", time.perf_counter()))

probabilities = model.predict_proba(X_test)
marks.append(("predict_proba", time.perf_counter()))

predicted = model.predict(X_test)
marks.append(("predict", time.perf_counter()))

seconds = {name: after - before for (_, before), (name, after) in pairwise(marks)}
print(
    json.dumps(
        {
            "seconds": seconds | {"all": sum(seconds.values())},
            "C": best["C"],
            "gamma": best["gamma"],
            "score": search.best_score_,
            "error": float(np.mean(predicted != y_test)),
            "log_loss": log_loss(y_test, probabilities, labels=model.classes_),
            "class": f"{SVC.__module__}.{SVC.__qualname__}",
        }
    )
)
