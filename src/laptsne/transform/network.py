"""The network of the paper, which learns the mapping from the data to the embedding."""

import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.neural_network import MLPRegressor

from laptsne._runtime.threads import Workers, single_threaded_blas
from laptsne._runtime.typing import Array
from laptsne.transform.preprocessing import in_blocks

_FRACTIONS = (2 / 3, 1 / 2, 1 / 3, 1 / 5)
_MIN_EARLY_STOPPING = 20  # points below which none are held out for early stopping


def hidden_layers(n_features: int, n_components: int) -> tuple[int, ...]:
    """Return the sizes of the hidden layers, which are the paper's fractions of the number of features."""
    # The offset makes 2/3 of 6 equal to 4 in spite of rounding.
    return tuple(max(int(fraction * n_features + 1e-9), n_components) for fraction in _FRACTIONS)


@dataclass(frozen=True)
class Network:
    """Trained multilayer perceptron with rectified linear units.

    Features are standardised by ``mean`` and ``scale``, the embedding by ``centre`` and ``spread``.
    """

    weights: tuple[Array, ...]  # one per layer
    biases: tuple[Array, ...]
    mean: Array  # shape (n_features,)
    scale: float
    centre: Array  # shape (n_components,)
    spread: float

    def __post_init__(self) -> None:
        """Raise ValueError if the parts are inconsistent, for instance if they come from a damaged file."""
        shapes = [weight.shape for weight in self.weights]
        fits = (
            all(len(shape) == 2 for shape in shapes)
            and all(a[1] == b[0] for a, b in pairwise(shapes))
            and [bias.shape for bias in self.biases] == [shape[1:] for shape in shapes]
            and self.mean.shape == shapes[0][:1]
            and self.centre.shape == shapes[-1][1:]
        )
        if not fits:
            raise ValueError(f"network: layers of shapes {shapes} are inconsistent.")
        parts: tuple[Any, ...] = (*self.weights, *self.biases, self.mean, self.scale, self.centre, self.spread)
        if not all(np.isfinite(part).all() for part in parts):
            raise ValueError("network: values must not be NaN or infinite.")

    @classmethod
    def trained(cls, X: Any, Y: Array, random_state: Any) -> Self:
        """Train a network on data and their embedding, with early stopping on held-out points."""
        # One scale for all features: scaling each would amplify those that hardly vary, which are mostly noise.
        sparse = scipy.sparse.issparse(X)
        mean = np.zeros(X.shape[1]) if sparse else X.mean(axis=0, dtype=np.float64)
        variance = X.astype(np.float64).power(2).mean() if sparse else X.var(axis=0, dtype=np.float64).mean()
        scale = float(np.sqrt(variance)) or 1.0
        centre, spread = Y.mean(axis=0, dtype=np.float64), float(Y.std(dtype=np.float64)) or 1.0
        network = MLPRegressor(
            hidden_layer_sizes=hidden_layers(X.shape[1], Y.shape[1]),
            early_stopping=len(Y) >= _MIN_EARLY_STOPPING,
            max_iter=1000,
            random_state=random_state,
        )
        target = (Y - centre) / spread
        with single_threaded_blas(), warnings.catch_warnings():
            # scikit-learn turns a keyboard interrupt into this warning, and goes on.
            warnings.filterwarnings("error", message="Training interrupted by user", category=UserWarning)
            try:
                network.fit(X / scale if sparse else (X - mean) / scale, target)
            except UserWarning as interrupt:
                raise KeyboardInterrupt("fit was interrupted while the network was trained.") from interrupt
        parts = tuple(network.coefs_), tuple(network.intercepts_)
        return cls(*parts, mean, scale, centre.astype(Y.dtype), spread)

    @property
    def n_components(self) -> int:
        """Dimension of the embedding."""
        return int(self.centre.size)

    def place(self, X: Any, workers: Workers) -> Array:
        """Return the positions of new points, shape (n_points, n_components)."""

        def position(block: Array) -> Array:
            values = (block - self.mean) / self.scale
            for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
                values = np.maximum(values @ weight + bias, 0)
            return (values @ self.weights[-1] + self.biases[-1]) * self.spread + self.centre

        return in_blocks(position, X, self.n_components, self.centre.dtype)
