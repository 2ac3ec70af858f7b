"""
Watching a run
==============

A callback sees the run before every step: the iteration, the map, the divergence, the eigenvalues. It may keep what
it sees, and it may end the run.
"""

# %%
# ``Recorder`` is a callback that keeps the map every so often, and ``trajectory`` draws what it kept.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from laptsne import LaptSNE, plotting

X, y = load_digits(return_X_y=True)
recorder = plotting.Recorder(every=100)
history = []


def watch(state):
    """Note every tenth iteration."""
    if state.iteration % 10 == 0:
        history.append((state.iteration, state.kl_divergence, state.contraction))


model = LaptSNE(callbacks=[recorder, watch], random_state=0).fit(X)
figure = plotting.trajectory(recorder, y)

# %%
# A third of the iterations exaggerate the attraction, so that groups find each other. At half time LaptSNE looks for
# clusters, and from then on contracts those that it found, to full strength over a quarter of the run. The divergence
# rises with it.

iterations, divergences, strengths = zip(*history, strict=True)
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(iterations, divergences, color="#0072b2")
ax.set(xlabel="iteration", ylabel="KL divergence", ylim=(0, None))
ax.yaxis.label.set_color("#0072b2")
right = ax.twinx()
right.plot(iterations, strengths, color="#d55e00")
right.set_ylabel("contraction", color="#d55e00")

# %%
# A callback that returns True ends the run: here as soon as the divergence is below 1.

quick = LaptSNE(callbacks=lambda state: state.iteration % 10 == 0 and state.kl_divergence < 1, random_state=0).fit(X)
print(f"ended after {quick.n_iter_} iterations at a divergence of {quick.kl_divergence_:.2f}")
