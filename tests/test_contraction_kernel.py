"""The kernel of the contraction as a parameter of the estimator."""

import numpy as np
import pytest
import scipy.linalg
from kernel_calls import from_python

from laptsne import LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.contraction.cluster_term import ClusterContraction
from laptsne.contraction.mesh_term import MeshContraction
from laptsne.contraction.pair_term import PairContraction
from laptsne.contraction.penalty import Penalty
from laptsne.contraction.similarity import Similarity
from laptsne.fields import ExactFields, FourierFields
from laptsne.fields.potential import potential_at
from laptsne.kernels import Gaussian

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


def slopes_of_potential(term, Y):
    """The slope of the potential at each point, without contraction and with a strength of 0.1."""
    slopes = np.empty((2, *Y.shape))
    for slope, strength in zip(slopes, (0.0, 0.1), strict=True):
        potential = term.potential(strength)
        for i, y in enumerate(Y):
            work = np.empty((3, 4)), np.empty((3, 4))
            from_python(potential_at)(y, potential.origin, potential.spacing, potential.padded, *work, slope[i])
    return slopes


def test_new_points_feel_both_kernels(rng):
    """The potential is the repulsion plus the contraction, whose slope is the gradient at the points of the map."""
    Y = np.vstack([rng.normal(scale=3, size=(300, 2)), rng.normal(scale=3, size=(300, 2)) + np.array([12, 0])])
    fields = ExactFields(Y)
    term = MeshContraction(2, Penalty("log", 0.01), rng.normal(size=(600, 3)), Similarity(4.0))
    term.refresh(fields, tol=1e-4, max_passes=50)
    slopes = slopes_of_potential(term, Y)
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
    term = PairContraction(3, Penalty("log", 0.01), groups, Similarity(1.5), labels)
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
    args = (3, Penalty("log", 0.01), groups, Similarity(2.0))
    terms = [ClusterContraction(*args, labels), MeshContraction(*args)]
    stretch = []
    for term in terms:
        term.refresh(fields, tol=1e-4, max_passes=50)
        moved = -term.gradient(fields)[labels == 0, 0]
        right = Y[labels == 0, 0] > 0
        stretch.append(moved[right].mean() - moved[~right].mean())
    contracted, cut = stretch
    assert cut > 0  # its halves are driven apart
    assert contracted < 0.2 * cut


def agreement(labels, Y, width):
    """The term by pairs and on the mesh, and the relative difference of their gradients."""
    fields, n_clusters = ExactFields(Y), int(labels.max()) + 1
    args = (n_clusters, Penalty("log", 0.01), np.empty((len(Y), 0)), Similarity(width), labels)
    pairs, mesh = PairContraction(*args), ClusterContraction(*args)
    for term in (pairs, mesh):
        term.refresh(fields)
    expected = pairs.gradient(fields)
    return pairs, mesh, np.linalg.norm(mesh.gradient(fields) - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("n_dims", [2, 3])
def test_pairs_and_mesh_agree_for_given_clusters(rng, n_dims):
    """Where clusters do not overlap: on the mesh, a stray point counts as one of the cluster around it."""
    labels = np.repeat([0, 1, 2], 200)
    Y = 4 * rng.random(size=(600, n_dims)) + 5 * np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0]])[labels, :n_dims]
    pairs, mesh, difference = agreement(labels, Y, 1.5)
    assert mesh.kernel.width == pairs.kernel.width
    assert mesh.regularization == pytest.approx(pairs.regularization, rel=1e-3)
    np.testing.assert_allclose(mesh.eigenvalues, pairs.eigenvalues, rtol=0.05)
    assert difference < 0.15
    assert mesh.residual == pytest.approx(pairs.residual, rel=0.1)
    overlap = np.linalg.svd(mesh.eigenvectors.T @ pairs.eigenvectors, compute_uv=False)
    np.testing.assert_allclose(overlap, 1, atol=0.02)


@pytest.mark.parametrize(("scale", "limit"), [(3.0, 0.01), (300.0, 0.03)], ids=["matrices", "transforms"])
def test_separate_clusters_feel_the_same_by_pairs_and_on_the_mesh(rng, scale, limit):
    """On a short line the convolutions are products with matrices, on a long one transforms."""
    labels = np.repeat([0, 1, 2], 100)
    Y = scale * np.array([[0.0], [1.0], [2.0]])[labels] + rng.random(size=(300, 1))
    pairs, mesh, difference = agreement(labels, Y, 1.0)
    assert (max(mesh._frame.cells) > 256) == (scale > 100)
    np.testing.assert_allclose(mesh.eigenvalues, pairs.eigenvalues, rtol=limit, atol=1e-5)
    assert difference < limit


def test_clusters_that_coincide_have_finite_gradients(rng):
    Y = np.repeat(rng.normal(size=(1, 2)), 60, axis=0)
    fields, labels = ExactFields(Y), np.arange(60) % 20
    term = ClusterContraction(20, Penalty("log"), np.empty((60, 0)), Similarity(), labels)
    term.refresh(fields)
    assert (term.eigenvalues[1:] > 0.9).all()  # no more than one cluster
    assert np.isfinite(term.gradient(fields)).all()


def test_points_keep_their_gradient_until_the_next_refresh(rng):
    labels = np.repeat([0, 1, 2], 100)
    Y = 10 * rng.normal(size=(3, 2))[labels] + rng.normal(scale=3, size=(300, 2))
    term = ClusterContraction(3, Penalty("log", 0.01), np.empty((300, 0)), Similarity(), labels)
    term.refresh(ExactFields(Y))
    before, moved = term.gradient(ExactFields(Y)), ExactFields(1.5 * Y)
    np.testing.assert_array_equal(term.gradient(moved), before)
    term.refresh(moved)
    assert np.linalg.norm(term.gradient(moved) - before) > 0.1 * np.linalg.norm(before)


def test_new_points_feel_the_contraction_of_the_cluster_around_them(rng):
    """Inside a cluster, the slope of the potential is the gradient at its points."""
    labels = np.repeat([0, 1, 2], 300)
    Y = 9 * np.array([[0, 0], [0, 1], [1, 0]])[labels] + rng.normal(scale=1.5, size=(900, 2))
    fields = ExactFields(Y)
    term = ClusterContraction(3, Penalty("log", 0.01), np.empty((900, 0)), Similarity(3.0), labels)
    term.refresh(fields)
    slopes = slopes_of_potential(term, Y)
    expected = 900 * 0.1 / 2 * term.gradient(fields)
    assert np.linalg.norm(slopes[1] - slopes[0] - expected) < 0.1 * np.linalg.norm(expected)


def test_bits_of_the_mesh_of_clusters_do_not_depend_on_the_number_of_threads(rng):
    labels = rng.integers(0, 7, 30_000)
    Y = 40 * rng.random(size=(7, 2))[labels] + rng.normal(scale=3, size=(30_000, 2))
    found = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            term = ClusterContraction(7, Penalty("log", 0.01), np.empty((30_000, 0)), Similarity(), labels)
            term.refresh(FourierFields(Y, workers))
            found.append(term.gradient(FourierFields(Y, workers)))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])
