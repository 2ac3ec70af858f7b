"""The kernel of the contraction as a parameter of the estimator."""

import numpy as np
import pytest
import scipy.linalg

from laptsne import LaptSNE
from laptsne.embedding.fields import ExactFields
from laptsne.embedding.kernels import Gaussian
from laptsne.embedding.objective import MeshContraction, PairContraction, Penalty, Similarity
from laptsne.embedding.potential import potential_at

FAST = {"perplexity": 10, "n_clusters": 3, "max_iter": 200, "random_state": 0}


@pytest.mark.parametrize("width", [0, -1.0, np.nan, "wide", None])
def test_widths_that_are_not_positive_are_refused(blobs, width):
    with pytest.raises(ValueError, match="contraction_width"):
        LaptSNE(contraction_width=width).fit(blobs[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"contraction_kernel": "cauchy"}, "contraction_kernel"),
        (
            {"contraction_kernel": "student", "contraction_width": 2.0},
            r"contraction_width=2\.0 needs a Gaussian",
        ),
        ({"kernel": "gaussian", "contraction_width": 2.0}, r"contraction_width=2\.0 needs a Gaussian"),
        ({"kernel": Gaussian(2.0), "contraction_kernel": "student"}, "contraction_kernel='student' has no effect"),
    ],
    ids=str,
)
def test_kernels_that_do_not_go_together_are_refused(blobs, settings, message):
    with pytest.raises(ValueError, match=message):
        LaptSNE(**settings).fit(blobs[0])


@pytest.mark.parametrize(
    ("width", "reason"), [(5000.0, "larger than the embedding"), (1e-4, "points have no neighbours")]
)
def test_widths_out_of_range_are_replaced_with_a_warning(blobs, width, reason):
    with pytest.warns(UserWarning, match=f"contraction_width={width:.4g} is .*{reason}; .* was used instead"):
        model = LaptSNE(contraction_width=width, **FAST).fit(blobs[0])
    radius = np.sqrt(((model.embedding_ - model.embedding_.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert 0.01 * radius < model.contraction_width_ < 2 * radius


def test_a_given_width_is_used(blobs):
    assert LaptSNE(contraction_width=3.0, **FAST).fit(blobs[0]).contraction_width_ == 3.0
    assert LaptSNE(contraction_kernel="student", **FAST).fit(blobs[0]).contraction_width_ is None
    assert LaptSNE(kernel="gaussian", **FAST).fit(blobs[0]).contraction_width_ is None


def radius_and_gap(Y, labels):
    """Mean radius of three clusters, and the mean distance between their centres."""
    centres = np.stack([Y[labels == c].mean(axis=0) for c in range(3)])
    radius = np.sqrt(((Y - centres[labels]) ** 2).sum(axis=1).mean())
    return radius, np.linalg.norm(centres - np.roll(centres, 1, axis=0), axis=1).mean()


def test_gaps_open_and_shapes_stay(rng):
    """Where clusters touch, a short-range kernel separates them; where they are apart, strength changes little."""
    labels = np.repeat([0, 1, 2], 200)
    centres = rng.normal(size=(3, 8))
    near, far = (scale * centres[labels] + rng.normal(size=(600, 8)) for scale in (1.5, 8.0))

    def shape(X, **settings):
        return radius_and_gap(LaptSNE(n_clusters=3, random_state=0, **settings).fit_transform(X), labels)

    (plain_radius, plain_gap), (radius, gap) = shape(near, contraction=0), shape(near)
    assert gap / radius > 1.2 * plain_gap / plain_radius
    (once_radius, once_gap), (thrice_radius, thrice_gap) = shape(far), shape(far, contraction=0.2)
    (student_radius, student_gap) = shape(far, contraction_kernel="student", contraction=0.2)
    assert thrice_radius / thrice_gap > 0.6 * once_radius / once_gap
    assert student_radius / student_gap < 0.5 * thrice_radius / thrice_gap


def test_new_points_feel_both_kernels(rng):
    """The potential is the repulsion plus the contraction, whose slope is the gradient at the points of the map."""
    Y = np.vstack([rng.normal(scale=3, size=(300, 2)), rng.normal(scale=3, size=(300, 2)) + np.array([12, 0])])
    fields = ExactFields(Y)
    term = MeshContraction(2, Penalty("log", 0.01), rng.normal(size=(600, 3)), Similarity(4.0))
    term.refresh(fields, tol=1e-4, max_passes=50)
    slopes = np.empty((2, 600, 2))
    for slope, strength in zip(slopes, (0.0, 0.1), strict=True):
        potential = term.potential(strength)
        for i, y in enumerate(Y):
            work = np.empty((3, 4)), np.empty((3, 4))
            potential_at(y, potential.origin, potential.spacing, potential.padded, *work, slope[i])
    expected = 600 * 0.1 / 2 * term.gradient(fields)
    assert np.linalg.norm(slopes[1] - slopes[0] - expected) < 0.05 * np.linalg.norm(expected)
    repulsion = 600 / fields.degrees.sum() * fields.slope
    assert np.linalg.norm(slopes[0] - repulsion) < 0.1 * np.linalg.norm(repulsion)


def ritz_penalty(Y, groups, width, regularization):
    """The sum of the log penalties of the Ritz values in the space of functions constant on each cluster, by hand."""
    squares = ((Y[:, None] - Y) ** 2).sum(axis=2)
    W = np.exp(-squares / (2 * width**2))
    np.fill_diagonal(W, 0)
    W = W + regularization / len(Y)
    D = W.sum(axis=1)
    F = np.column_stack([np.ones(len(Y)), groups])
    sigma = scipy.linalg.eigh(F.T @ (np.diag(D) - W) @ F, F.T @ np.diag(D) @ F, eigvals_only=True)
    return np.log(sigma[1:].clip(0) + 0.01).sum()


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_gradient_for_given_clusters_against_differences(rng, n_dims):
    labels = np.repeat([0, 1, 2], 20)
    Y = rng.normal(size=(60, n_dims)) + 2.5 * np.eye(3, n_dims)[labels]
    groups = (labels[:, None] == [1, 2]).astype(np.float32)
    term = PairContraction(3, Penalty("log", 0.01), groups, Similarity(1.5), groups)
    fields = ExactFields(Y)
    term.refresh(fields)
    args = (groups.astype(float), term.kernel.width, term.regularization)
    assert np.log(term.eigenvalues[1:] + 0.01).sum() == pytest.approx(ritz_penalty(Y, *args), rel=1e-9)
    direction = rng.normal(size=Y.shape)
    step = 1e-5
    slope = (ritz_penalty(Y + step * direction, *args) - ritz_penalty(Y - step * direction, *args)) / (2 * step)
    assert np.sum(term.gradient(fields) * direction) == pytest.approx(slope, rel=1e-6)


def test_clusters_of_the_data_are_separated_and_none_is_divided(rng):
    """One long cluster and two round ones: the eigenvectors would cut the long one, the clusters do not."""
    Y = rng.normal(size=(900, 2))
    labels = np.repeat([0, 1, 2], 300)
    Y[labels == 0, 0] *= 8
    Y += np.array([[0.0, 0.0], [0.0, 7.0], [4.0, 7.0]])[labels]
    groups = (labels[:, None] == [1, 2]).astype(np.float32)
    fields = ExactFields(Y)
    terms = [MeshContraction(3, Penalty("log", 0.01), groups, Similarity(2.0), given) for given in (groups, None)]
    stretch = []
    for term in terms:
        term.refresh(fields, tol=1e-4, max_passes=50)
        moved = -term.gradient(fields)[labels == 0, 0]
        right = Y[labels == 0, 0] > 0
        stretch.append(moved[right].mean() - moved[~right].mean())
    contracted, cut = stretch
    assert cut > 0  # its halves are driven apart
    assert contracted < 0.2 * cut


def test_pairs_and_mesh_agree_for_given_clusters(rng):
    """Where clusters do not overlap: on the mesh, a stray point counts as one of the cluster around it."""
    labels = np.repeat([0, 1, 2], 200)
    Y = 4 * rng.random(size=(600, 2)) + 5 * np.array([[0, 0], [0, 1], [1, 0]])[labels]
    groups = (labels[:, None] == [1, 2]).astype(np.float32)
    fields = ExactFields(Y)
    gradients, values = [], []
    for kind in (PairContraction, MeshContraction):
        term = kind(3, Penalty("log", 0.01), groups, Similarity(1.5), groups)
        term.refresh(fields)
        gradients.append(term.gradient(fields))
        values.append(term.eigenvalues[1:])
    np.testing.assert_allclose(values[1], values[0], rtol=0.1)
    assert np.linalg.norm(gradients[1] - gradients[0]) < 0.15 * np.linalg.norm(gradients[0])
