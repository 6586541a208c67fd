"""
Colors from their names
=======================

A least-squares machine on strings: the kernel compares names by the subsequences that they share. Names that
it has not seen are on the color that people gave them (left) and on the predicted color (right).
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import XKCD_COLORS, to_rgb
from sklearn.model_selection import train_test_split

from svmarrow import RLSRegressor
from svmarrow.kernels import Subsequence

names = [name.removeprefix("xkcd:") for name in XKCD_COLORS]
colors = np.array([to_rgb(code) for code in XKCD_COLORS.values()])
names, new_names, colors, new_colors = train_test_split(names, colors, random_state=0)
model = RLSRegressor(kernel=Subsequence(length=2), alphas=np.logspace(-3, 1, 9)).fit(names, colors)
predicted = np.clip(model.predict(new_names), 0, 1)

rows, columns = 8, 3
# Some of the names are rude.
rude = {"barf", "booger", "poo", "poop", "puke", "shit", "snot", "vomit"}
shown = [place for place, name in enumerate(new_names) if not rude & set(name.split())]
fig, ax = plt.subplots(figsize=(9, 4.8), layout="constrained")
for number, place in enumerate(shown[: rows * columns]):
    x, y = divmod(number, rows)
    for half, color in enumerate((new_colors[place], predicted[place])):
        ax.add_patch(plt.Rectangle((2 * x + 0.95 * half, -y), 0.95, 0.9, color=color))
        ink = "black" if np.dot(color, [0.3, 0.6, 0.1]) > 0.5 else "white"
        center = (2 * x + 0.95 * half + 0.475, 0.45 - y)
        ax.text(*center, new_names[place], ha="center", va="center", size=7, color=ink)
ax.set(xlim=(0, 2 * columns), ylim=(-rows + 0.9, 1))
ax.axis("off")
score = model.score(new_names, new_colors)
ax.set_title(f"Unseen names: the color given and the color predicted, R$^2$ = {score:.2f}")
plt.show()
