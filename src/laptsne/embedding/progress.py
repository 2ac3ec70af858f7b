"""Progress of the descent, for ``verbose=True``."""

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec

from laptsne.embedding.state import Callback, State

_EVERY = 50  # iterations between lines


def progress(max_iter: int) -> AbstractContextManager[Callback]:
    """A callback, as a context manager, that shows a progress bar if rich is installed, and lines of text otherwise."""
    if find_spec("rich") is None:
        return nullcontext(_lines(max_iter))
    from laptsne.embedding.progress_bar import ProgressBar  # noqa: PLC0415  rich is optional

    return ProgressBar(max_iter)


def _lines(max_iter: int) -> Callback:
    started = time.perf_counter()

    def show(state: State) -> None:
        if state.iteration and state.iteration % _EVERY == 0:
            text = f"iteration {state.iteration} of {max_iter}, KL divergence {state.kl_divergence:.3f}"
            print(f"[laptsne] {text}, {time.perf_counter() - started:.1f} s", file=sys.stderr)

    return show
