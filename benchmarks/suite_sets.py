"""The labelled data sets of the suite, and those of the paper."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

# On a busy machine, OpenMP threads that spin while they wait make small fits of openTSNE and PaCMAP 50 times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.path.insert(0, str(Path(__file__).parent.parent))  # for reproduction/, which is not part of the wheel
from reproduction.dataset import LARGE, Dataset
from reproduction.dataset import SETS as PAPER

__all__ = ["CONTINUUM", "GROUPS", "LARGE", "PAPER", "SETS", "SUITE", "Dataset", "group", "load", "n_rows", "n_seeds"]

SUITE = (
    "audio_frog_calls",
    "faces_pie10_pose",
    "faces_yaleb",
    "genetics_human_populations",
    "image_binary_alphadigits",
    "image_kannada_digits",
    "remote_crop_series",
    "sc_cell_lines_celseq2",
    "sc_cord_blood",
    "sc_human_kidney",
    "sc_paul15_myeloid",
    "sc_pbmc4k",
    "sc_pbmc68k_700",
    "sensor_gas_drift",
    "series_ecg5000",
    "series_fifty_words",
    "speech_isolet",
    "tab_abalone_age",
    "tab_dry_bean",
    "tab_image_segmentation",
    "tab_page_blocks",
    "text_20news_tfidf",
    "text_banking77_use",
    "text_reuters52_tfidf",
)
# Continuous data, in which separated clusters are not to be expected.
CONTINUUM = ("genetics_human_populations", "sc_paul15_myeloid", "tab_abalone_age")
# The alphabet splits the suite: the first, third, ... set for choosing constants, the others for reporting.
GROUPS = {
    "choosing": tuple(name for name in sorted(SUITE)[::2] if name not in CONTINUUM),
    "reporting": tuple(name for name in sorted(SUITE)[1::2] if name not in CONTINUUM),
    "paper": PAPER,
    "continuum": CONTINUUM,
}
_PAPER_ROWS = {
    "digits": 1797,
    "coil20": 1440,
    "waveform": 5000,
    "coil100": 7200,
    "har": 10_299,
    "mnist": 70_000,
    "fashion_mnist": 70_000,
}
_MAX_SEEDED = 3000  # rows below which several seeds are run
SETS = (*SUITE, *PAPER)


def load(name: str) -> Dataset:
    """Load a set of the suite or of the paper."""
    if name in PAPER:
        return Dataset.load(name)
    with np.load(_path(name)) as arrays:
        return Dataset(name, arrays["X"], arrays["y"])


def group(name: str) -> str:
    """Return the group over which the scores of a set are averaged."""
    return next(title for title, names in GROUPS.items() if name in names)


def n_rows(name: str) -> int:
    """Return the number of rows without loading the data."""
    if name in PAPER:
        return _PAPER_ROWS[name]
    with np.load(_path(name)) as arrays:
        return len(arrays["y"])


def n_seeds(n_samples: int, most: int) -> int:
    """Return the number of seeds: several on small sets, otherwise one."""
    return most if n_samples < _MAX_SEEDED else 1


def _path(name: str) -> Path:
    folder = os.environ.get("LAPTSNE_DATA")
    if folder is None:
        raise FileNotFoundError("Set the environment variable LAPTSNE_DATA to the folder that contains suite/.")
    return Path(folder, "suite", f"{name}.npz")
