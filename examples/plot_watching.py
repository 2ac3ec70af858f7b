"""
Monitoring a run
================

A callback is called before each step with the state of the run: iteration, map, KL divergence, eigenvalues. It can
record the state, and it can stop the run.
"""

# %%
# ``Recorder`` is a callback that records the map at regular intervals, and ``trajectory`` draws the recorded maps.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting

X, y = load_digits(return_X_y=True)
recorder = plotting.Recorder(every=100)
history = []


def watch(state):
    """Record every tenth iteration."""
    if state.iteration % 10 == 0:
        history.append((state.iteration, state.kl_divergence, state.contraction))


model = LaptSNE(callbacks=[recorder, watch], random_state=0).fit(X)
figure = plotting.trajectory(recorder, y)

# %%
# Attraction is exaggerated in the first 30 % of the iterations, so that groups form. After 45 %, LaptSNE starts to
# contract the clusters that it found in the data, reaching full strength after another fifth of the run. The KL
# divergence rises with it.

iterations, divergences, strengths = zip(*history, strict=True)
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(iterations, divergences, color="#0072b2")
ax.set(xlabel="iteration", ylabel="KL divergence", ylim=(0, None))
ax.yaxis.label.set_color("#0072b2")
right = ax.twinx()
right.plot(iterations, strengths, color="#d55e00")
right.set_ylabel("contraction", color="#d55e00")

# %%
# A callback that returns True stops the run: here once the KL divergence is below 1.

quick = LaptSNE(callbacks=lambda state: state.iteration % 10 == 0 and state.kl_divergence < 1, random_state=0).fit(X)
print(f"stopped after {quick.n_iter_} iterations at a KL divergence of {quick.kl_divergence_:.2f}")
