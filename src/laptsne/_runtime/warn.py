"""The one way in which the package warns."""

import sys
import warnings
from pathlib import Path

import sklearn

# Frames of scikit-learn lie between the caller and the package: it wraps fit and transform.
_INTERNAL = tuple(str(Path(file).parent) for file in (Path(__file__).parent, sklearn.__file__))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the line of the user's code that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INTERNAL):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
