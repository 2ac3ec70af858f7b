"""The kernel of the contraction as a parameter of the estimator."""

import copy
import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.sparse
from kernel_calls import from_python
from reference import relative_error

from laptsne import LaptSNE, methods
from laptsne._runtime import threads
from laptsne._runtime.threads import Workers
from laptsne.contraction.cluster_term import TAIL_SHARE, TAIL_WIDTH, ClusterTerm, nested_groups
from laptsne.contraction.eigenvector_term import EigenvectorTerm
from laptsne.contraction.term import Penalty
from laptsne.fields import ExactFields, FourierFields
from laptsne.fields.potential import potential_at
from laptsne.kernels import Gaussian
from laptsne.metrics import rasterized

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


def test_a_single_cluster_is_plain_tsne(blobs):
    settings = FAST | {"n_clusters": 1}
    contracted, plain = (LaptSNE(contraction=c, **settings).fit_transform(blobs[0]) for c in (0.1, 0))
    np.testing.assert_array_equal(contracted, plain)


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


def ink(Y, n_cells=100):
    """Number of cells of a square around the map with a point in or next to them."""
    pixels = rasterized(Y, n_cells).round().astype(int)
    image = np.zeros((n_cells, n_cells), bool)
    image[tuple(pixels.T)] = True
    return scipy.ndimage.binary_dilation(image).sum()


def test_clusters_far_apart_do_not_become_dots(rng):
    """Contraction ends where gaps are open in the map of t-SNE already."""
    labels = np.arange(1800) % 12
    X = 1.75 * rng.normal(size=(12, 40))[labels] + rng.normal(size=(1800, 40))
    plain, contracted = (LaptSNE(contraction=c, random_state=0).fit(X) for c in (0, "auto"))
    assert contracted.n_clusters_ == 12
    assert contracted.contraction_ > 0
    assert ink(contracted.embedding_) > 0.6 * ink(plain.embedding_)


def test_related_clusters_end_nearer_than_strangers(rng, monkeypatch):
    """Two pairs of Gaussians: one level opens all gaps, the coarse level those between the pairs."""
    labels = np.repeat(np.arange(4), 200)
    centres = np.array([[0, 0], [3.5, 0], [0, 5.5], [3.5, 5.5]])
    X = np.pad(centres, ((0, 0), (0, 6)))[labels] + rng.normal(size=(800, 8))

    def gaps():
        Y = LaptSNE(n_clusters=4, random_state=0).fit_transform(X)
        mean = np.stack([Y[labels == c].mean(axis=0) for c in range(4)])
        distance = np.linalg.norm(mean[:, None] - mean, axis=2)
        return (distance[0, 1] + distance[2, 3]) / 2, distance[:2, 2:].min()

    related, strangers = gaps()
    assert related < strangers
    monkeypatch.setattr(methods, "nested_groups", lambda labels, P: np.arange(labels.max() + 1)[None])
    alike, others = gaps()
    assert related / strangers < 0.9 * alike / others


def slopes_of_potential(term, Y):
    """The slope of the potential at each point, without contraction and with a strength of 0.1."""
    slopes = np.empty((2, *Y.shape))
    for slope, strength in zip(slopes, (0.0, 0.1), strict=True):
        potential = term.potential(strength)
        for i, y in enumerate(Y):
            work = np.empty((3, 4)), np.empty((3, 4))
            from_python(potential_at)(y, *potential.field[:3], *work, slope[i])
    return slopes


def embedding_of(rng, n_clusters, distance, n_dims=2, n=240):
    """Unit Gaussians on a ring or a line, neighbours at this distance; a few points of no cluster."""
    labels = np.arange(n) % n_clusters
    angle = 2 * np.pi * np.arange(n_clusters) / n_clusters
    ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(n_clusters)]) / (2 * np.sin(np.pi / n_clusters))
    line = np.column_stack([np.arange(n_clusters), np.zeros((n_clusters, 2))])
    centres = distance * (line if n_dims == 1 or n_clusters == 2 else ring)[:, :n_dims]
    labels[:7] = np.where(np.arange(7) < 3, -1, labels[:7])
    return centres[labels] + rng.normal(size=(n, n_dims)), labels


def cluster_term(labels, Y, *, width=None, **options):
    term = ClusterTerm(labels, Penalty("log", 0.01), width, **options)
    term.refresh(ExactFields(Y))
    return term


def value_at(term, Y):
    """The value at another embedding, with the stray points of the last refresh."""
    observer = copy.copy(term)
    observer.min_share = 0
    observer.refresh(ExactFields(Y))
    return observer.value()


def level_by_hand(Y, labels, width):
    """The Ritz values among functions constant on each cluster, by sums over pairs, and the gradient of the penalty."""
    difference = Y[:, None] - Y
    tail, height = TAIL_WIDTH * width, TAIL_SHARE / TAIL_WIDTH ** Y.shape[1]
    near, far = (np.exp(-(difference**2).sum(axis=2) / (2 * w**2)) for w in (width, tail))
    W = near + height * far
    np.fill_diagonal(W, 0)
    F = (labels[:, None] == np.arange(labels.max() + 1)).astype(float)
    S = F.T @ W @ F
    D = np.diag(S.sum(axis=1))
    sigma, c = scipy.linalg.eigh(D - S, D)
    slope = 1 / (sigma.clip(0) + 0.01)
    own = c**2 @ (slope * (1 - sigma))
    M = (own[:, None] + own) / 2 - (c * slope) @ c.T
    weights = M[labels][:, labels] * (near / width**2 + height * far / tail**2)
    return sigma.clip(0), -2 * np.einsum("ij,ijd->id", weights, difference)


def by_hand(Y, labels, width, groups):
    """The Ritz values of the finest level, the value over all levels, and its gradient."""
    rows, whole, value, finest = labels >= 0, np.zeros(Y.shape), 0.0, None
    n_clusters = groups.shape[1]
    for group in groups:
        n_groups = group.max() + 1
        weight = n_clusters / n_groups
        wide = width * (n_clusters / n_groups) ** (1 / Y.shape[1])
        sigma, gradient = level_by_hand(Y[rows], group[labels[rows]], wide)
        finest = sigma if finest is None else finest
        value += weight * np.log(sigma + 0.01).sum()
        whole[rows] += weight * gradient
    return finest, value, whole


# By number of clusters: the cluster of each level that each of them is part of.
NESTED = {
    2: np.array([[0, 1]]),
    3: np.array([[0, 1, 2], [0, 0, 1]]),
    4: np.array([[0, 1, 2, 3], [0, 0, 1, 1]]),
    5: np.array([[0, 1, 2, 3, 4], [0, 0, 1, 1, 2], [0, 0, 0, 0, 1]]),
}


@pytest.mark.parametrize("distance", [2, 4, 6])
@pytest.mark.parametrize(("n_clusters", "n_dims"), [(2, 1), (4, 1), (2, 2), (5, 2), (3, 3), (4, 3)])
def test_the_term_is_that_of_the_ritz_values(rng, n_clusters, n_dims, distance):
    Y, labels = embedding_of(rng, n_clusters, distance, n_dims)
    term = cluster_term(labels, Y, groups=NESTED[n_clusters], min_share=0)
    eigenvalues, value, gradient = by_hand(Y, labels, term.width, NESTED[n_clusters])
    np.testing.assert_allclose(term.eigenvalues, eigenvalues, rtol=2e-3, atol=1e-5)
    assert term.value() == pytest.approx(value, rel=1e-3)
    assert relative_error(term.gradient(ExactFields(Y)), gradient) < 5e-3


def test_without_groups_there_is_one_level(rng):
    Y, labels = embedding_of(rng, 3, 4.0)
    one, nested = cluster_term(labels, Y), cluster_term(labels, Y, groups=NESTED[3])
    np.testing.assert_array_equal(one.eigenvalues, nested.eigenvalues)
    assert one.value() == pytest.approx(Penalty("log", 0.01).value(one.eigenvalues).sum())
    assert one.value() > nested.value()  # the penalty of small eigenvalues is negative


def test_levels_of_a_tree_are_nested_and_end_with_two_groups(rng):
    labels = np.repeat(np.arange(6), 20)
    affinity = np.full((6, 6), 0.01) + np.eye(6) + np.kron(np.eye(3), np.full((2, 2), 0.3))
    P = scipy.sparse.csr_matrix(affinity[labels][:, labels])
    groups = nested_groups(labels, P)
    assert [group.max() + 1 for group in groups] == [6, 4, 2]
    for fine, coarse in itertools.pairwise(groups):
        assert len(set(zip(fine, coarse, strict=True))) == fine.max() + 1


@pytest.mark.parametrize("distance", [2, 4, 6])
@pytest.mark.parametrize(("n_clusters", "n_dims"), [(2, 2), (3, 2), (5, 2), (4, 1), (3, 3), (5, 3)])
def test_the_gradient_is_that_of_the_value(rng, distance, n_clusters, n_dims):
    """Of overlapping clusters, too: when all clusters shrink, or move, and downhill."""
    Y, labels = embedding_of(rng, n_clusters, distance, n_dims)
    term = cluster_term(labels, Y, groups=NESTED[n_clusters])
    term.fixed = True
    gradient = term.gradient(ExactFields(Y))
    centres = np.stack([Y[labels == c].mean(axis=0) for c in range(n_clusters)])
    shrink = np.where(labels[:, None] >= 0, centres[labels] - Y, 0)
    step = 1e-2  # the mesh has single precision
    for direction in (shrink, centres[labels], gradient / np.abs(gradient).max()):
        after, before = (value_at(term, Y + s * direction) for s in (step, -step))
        assert np.vdot(gradient, direction) == pytest.approx((after - before) / (2 * step), rel=3e-3, abs=1e-4)


@pytest.mark.parametrize("n_clusters", [3, 5])
def test_clusters_that_are_apart_are_left_as_they_are(rng, n_clusters):
    """At a distance of a hundred radii, on the ring and in pairs alike."""
    Y, labels = embedding_of(rng, n_clusters, 100.0)
    touching = np.abs(cluster_term(labels, *embedding_of(rng, n_clusters, 2.0)[:1]).gradient(None)).max()
    apart = cluster_term(labels, Y, groups=NESTED[n_clusters], min_share=0)
    assert np.abs(apart.gradient(ExactFields(Y))).max() < 1e-3 * touching


@pytest.mark.parametrize("distance", [4.0, 600.0], ids=["matrices", "transforms"])
def test_pairs_of_clusters_on_a_line(rng, distance):
    """On a short line the convolutions are products with matrices, on a long one transforms."""
    labels = np.repeat([0, 1, 2, 3], 100)
    Y = np.array([[0.0], [1.5], [distance], [distance + 1.5]])[labels] + rng.random(size=(400, 1))
    term = cluster_term(labels, Y, width=1.0, groups=NESTED[4], min_share=0)
    eigenvalues, _, gradient = by_hand(Y, labels, 1.0, NESTED[4])
    np.testing.assert_allclose(term.eigenvalues, eigenvalues, rtol=0.01, atol=1e-5)
    assert relative_error(term.gradient(ExactFields(Y)), gradient) < 0.01


def test_points_of_no_cluster_take_no_part(rng):
    Y, labels = embedding_of(rng, 3, 3.0)
    term = cluster_term(labels, Y, width=1.5, min_share=0)
    alone = cluster_term(labels[labels >= 0], Y[labels >= 0], width=1.5, min_share=0)
    assert not term.gradient(ExactFields(Y))[labels < 0].any()
    np.testing.assert_allclose(term.eigenvalues, alone.eigenvalues, rtol=1e-4)
    assert relative_error(term.gradient(ExactFields(Y))[labels >= 0], alone.gradient(None)) < 1e-3


def test_stray_points_take_no_part_while_they_are_astray(rng):
    Y, labels = embedding_of(rng, 3, 12.0)
    Y[10] = Y[labels == (labels[10] + 1) % 3].mean(axis=0)
    term = cluster_term(labels, Y)
    assert not term.gradient(ExactFields(Y))[10].any()
    assert cluster_term(labels, Y, min_share=0).gradient(ExactFields(Y))[10].any()
    Y[10] = Y[labels == labels[10]].mean(axis=0) + 0.5
    for _ in range(5):  # after which stray points are sought again
        term.refresh(ExactFields(Y))
    assert term.gradient(ExactFields(Y))[10].any()


def test_every_cluster_has_points():
    with pytest.raises(ValueError, match="labels: cluster 1 has no points"):
        ClusterTerm(np.array([0, 2, 2, -1]), Penalty("log"))


def test_a_single_cluster_has_no_gradient(rng):
    Y = rng.normal(size=(200, 2))
    term = cluster_term(np.zeros(200, int), Y)
    assert term.eigenvalues.tolist() == [0.0]
    assert not term.gradient(ExactFields(Y)).any()


def test_clusters_of_the_data_are_separated_and_none_is_divided(rng):
    """One long cluster and two round ones: the eigenvectors would cut the long one, the clusters do not."""
    Y = rng.normal(size=(900, 2))
    labels = np.repeat([0, 1, 2], 300)
    Y[labels == 0, 0] *= 8
    Y += np.array([[0.0, 0.0], [0.0, 12.0], [4.0, 12.0]])[labels]
    groups = (labels[:, None] == [1, 2]).astype(np.float32)
    fields = ExactFields(Y)
    terms = [ClusterTerm(labels, Penalty("log", 0.01), 2.0), EigenvectorTerm(3, Penalty("log"), groups)]
    stretch = []
    for term in terms:
        term.refresh(fields, tol=1e-4, max_passes=50)
        moved = -term.gradient(fields)[labels == 0, 0]
        right = Y[labels == 0, 0] > 0
        stretch.append(moved[right].mean() - moved[~right].mean())
    contracted, cut = stretch
    assert cut > 0  # its halves are driven apart
    assert contracted < 0.2 * cut


def test_clusters_that_coincide_have_finite_gradients(rng):
    Y = np.repeat(rng.normal(size=(1, 2)), 60, axis=0)
    term = cluster_term(np.arange(60) % 20, Y)
    assert (term.eigenvalues[1:] > 0.9).all()  # no more than one cluster
    assert np.isfinite(term.gradient(ExactFields(Y))).all()


def test_points_keep_their_gradient_until_the_next_refresh(rng):
    labels = np.repeat([0, 1, 2], 100)
    Y = 10 * rng.normal(size=(3, 2))[labels] + rng.normal(scale=3, size=(300, 2))
    term = cluster_term(labels, Y)
    before, moved = term.gradient(ExactFields(Y)), ExactFields(1.5 * Y)
    np.testing.assert_array_equal(term.gradient(moved), before)
    term.refresh(moved)
    assert np.linalg.norm(term.gradient(moved) - before) > 0.1 * np.linalg.norm(before)


def test_the_width_follows_the_embedding_until_it_is_fixed(rng):
    Y, labels = embedding_of(rng, 3, 6.0)
    term = cluster_term(labels, 3 * Y, min_share=0)
    width, eigenvalues = term.width, term.eigenvalues
    term.refresh(ExactFields(9 * Y))
    assert term.width == pytest.approx(3 * width)
    np.testing.assert_allclose(term.eigenvalues, eigenvalues, rtol=1e-3, atol=1e-6)  # the graph is the same
    term.fixed = True
    term.refresh(ExactFields(3 * Y))
    assert term.width == pytest.approx(3 * width)


def test_new_points_feel_the_contraction_of_the_cluster_around_them(rng):
    """Inside a cluster, the slope of the potential is the gradient at its points."""
    labels = np.repeat([0, 1, 2], 300)
    centres = 9 * np.array([[0, 0], [0, 1], [1, 0]])[labels]
    Y = centres + rng.normal(scale=1.5, size=(900, 2))
    inside = np.linalg.norm(Y - centres, axis=1) < 3  # others may lie in the next cluster
    term = cluster_term(labels, Y, width=3.0)
    slopes = slopes_of_potential(term, Y)
    expected = 900 * 0.1 / 2 * term.gradient(ExactFields(Y))
    assert relative_error((slopes[1] - slopes[0])[inside], expected[inside]) < 0.1
    repulsion = 900 / ExactFields(Y).degrees.sum() * ExactFields(Y).slope
    assert np.linalg.norm(slopes[0] - repulsion) < 0.1 * np.linalg.norm(repulsion)


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_the_slope_of_the_potential_in_separate_clusters_is_the_gradient(rng, n_dims):
    """On the mesh of potentials, which is not that of the contraction."""
    labels = np.repeat([0, 1, 2], 300)
    centres = 12 * np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0] if n_dims == 1 else [0, 1, 0]])[labels, :n_dims]
    Y = centres + rng.normal(size=(900, n_dims))
    term = cluster_term(labels, Y, width=2.0, min_share=0)
    without, contracted = slopes_of_potential(term, Y)
    assert relative_error(contracted - without, 900 * 0.1 / 2 * term.gradient(ExactFields(Y))) < 3e-3


def test_the_potential_pulls_new_points_towards_the_nearest_cluster(rng):
    """On the way from one cluster to the next, and beyond both."""
    labels = np.repeat([0, 1], 400)
    Y = np.array([[0.0, 0.0], [9.0, 0.0]])[labels] + rng.normal(size=(800, 2))
    term = cluster_term(labels, Y, width=2.0)
    new = np.array([[-3.0, 0.0], [1.5, 0.0], [3.0, 0.0], [6.0, 0.0], [7.5, 0.0], [12.0, 0.0]])
    with_contraction, without = (slopes_of_potential(term, new)[i][:, 0] for i in (1, 0))
    pull = with_contraction - without
    assert (np.sign(pull) == [-1, 1, 1, -1, -1, 1]).all()


def test_bits_of_the_mesh_of_clusters_do_not_depend_on_the_number_of_threads(rng):
    labels = rng.integers(0, 7, 30_000)
    Y = 40 * rng.random(size=(7, 2))[labels] + rng.normal(scale=3, size=(30_000, 2))
    found = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            term = ClusterTerm(labels, Penalty("log", 0.01))
            term.refresh(FourierFields(Y, workers))
            found.append(term.gradient(FourierFields(Y, workers)))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


@pytest.mark.parametrize(("n_clusters", "width"), [(600, 0.8), (400, 1.3)])
def test_bits_of_many_clusters_on_a_line_do_not_depend_on_the_number_of_threads(rng, monkeypatch, n_clusters, width):
    monkeypatch.setattr(threads, "MIN_WORK", 0)
    Y, labels = 60 * rng.random((3000, 1)), np.arange(3000) % n_clusters
    found = []
    for n_jobs in (1, 2):
        with Workers(n_jobs) as workers:
            term = ClusterTerm(labels, Penalty("log", 0.01), width)
            term.refresh(ExactFields(Y, workers=workers))
            found.append(term.gradient(ExactFields(Y)))
    np.testing.assert_array_equal(found[1], found[0])
