import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from laptsne import Descent, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.engine import minimise
from laptsne.engine.schedule import Schedule
from laptsne.fields import ExactFields
from laptsne.graph.affinity import joint_affinities


def trace_of(X, **parameters):
    states = []

    def record(state):
        states.append((state.iteration, state.contraction, state.kl_divergence, state.eigenvalues.sum()))

    model = LaptSNE(perplexity=10, n_clusters=3, random_state=0, callbacks=record, **parameters).fit(X)
    return model, np.array(states)


def test_callbacks_see_every_iteration(blobs):
    model, states = trace_of(blobs[0], max_iter=60)
    np.testing.assert_array_equal(states[:, 0], np.arange(60))
    assert states[-1, 2] < states[0, 2]
    assert states[-1, 2] == pytest.approx(model.kl_divergence_, rel=0.1)


def test_a_callback_that_looks_does_not_change_the_run(blobs):
    seen, _ = trace_of(blobs[0], max_iter=60)
    unseen = LaptSNE(perplexity=10, n_clusters=3, random_state=0, max_iter=60).fit(blobs[0])
    np.testing.assert_array_equal(seen.embedding_, unseen.embedding_)


def test_a_callback_may_stop_the_run_and_keeps_the_map(blobs):
    maps = []

    def stop(state):
        maps.append(state.embedding)
        return state.iteration == 17

    model = LaptSNE(perplexity=10, callbacks=[stop, lambda state: None], random_state=0).fit(blobs[0])
    assert model.n_iter_ == 17
    np.testing.assert_array_equal(model.embedding_, maps[-1])


def test_only_true_stops_the_run(blobs):
    answers = [np.ones(3), 1, "stop", None, False]
    model = LaptSNE(perplexity=10, max_iter=20, callbacks=[lambda state, a=a: a for a in answers]).fit(blobs[0])
    assert model.n_iter_ == 20
    assert LaptSNE(perplexity=10, callbacks=lambda state: np.True_).fit(blobs[0]).n_iter_ == 0


def test_a_callback_cannot_write_into_the_map(blobs):
    def vandal(state):
        state.embedding[:] = np.nan

    assert np.isfinite(LaptSNE(perplexity=10, callbacks=vandal, max_iter=20).fit_transform(blobs[0])).all()


def test_the_schedule_of_contraction(blobs):
    schedule = Descent(contraction_start=0.5, contraction_ramp=0.25)
    _, states = trace_of(blobs[0], max_iter=80, contraction=0.01, optimizer=schedule)
    strength = states[:, 1]
    assert not strength[:40].any()
    np.testing.assert_allclose(strength[40:60], 0.01 * np.arange(1, 21) / 20)
    np.testing.assert_allclose(strength[60:], 0.01)


def test_the_eigenvalues_fall_when_contraction_sets_in(blobs):
    settings = {
        "max_iter": 200,
        "contraction_kernel": "student",
    }  # without it, they are apart already
    plain, _ = trace_of(blobs[0], contraction=0.0, **settings)
    contracted, _ = trace_of(blobs[0], contraction=0.05, **settings)
    assert contracted.eigenvalues_.sum() < 0.8 * plain.eigenvalues_.sum()


@pytest.mark.parametrize("refresh_every", [2, 5, 10])
def test_seldom_refreshed_eigenvectors_lead_to_nearly_the_same(blobs, refresh_every):
    settings = {"perplexity": 10, "n_clusters": 3, "random_state": 0}
    # From one map on, so that the runs cannot end in different minima.
    plain = LaptSNE(contraction=0, **settings).fit_transform(blobs[0])

    def objective(every):
        # Without exaggeration, objective_ is what is minimised.
        optimizer = Descent(refresh_every=every, contraction_start=0, exaggeration=1.0, tol=0)
        model = LaptSNE(init=plain, early_exaggeration=1, max_iter=600, optimizer=optimizer, **settings)
        return model.fit(blobs[0]).objective_

    assert objective(refresh_every) == pytest.approx(objective(1), abs=0.01)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5])
def test_exaggeration_lasts_its_share(share):
    schedule = Schedule(max_iter=40, early_share=share)
    factors = [schedule.exaggeration(t) for t in range(40)]
    assert factors.count(12.0) == 40 * share
    assert max(factors[int(40 * share) :]) <= 2.0


def test_steps_are_cut(blobs):
    longest = []

    class Watch:
        last = None

        def __call__(self, state):
            if self.last is not None:
                longest.append(np.linalg.norm(state.embedding - self.last, axis=1).max())
            self.last = state.embedding

    LaptSNE(perplexity=10, learning_rate=1000.0, max_iter=100, callbacks=Watch()).fit(blobs[0])
    assert max(longest) == pytest.approx(5.0)


def test_it_stops_where_the_objective_does_not_fall_any_more(blobs):
    settings = {"perplexity": 10, "max_iter": 8000, "contraction": 0, "random_state": 0}
    model = LaptSNE(**settings).fit(blobs[0])
    assert 3600 < model.n_iter_ < 8000
    longer = LaptSNE(optimizer=Descent(tol=0), **settings).fit(blobs[0])
    assert longer.n_iter_ == 8000
    assert model.objective_ == pytest.approx(longer.objective_, abs=0.02)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_a_step_size_far_too_high_ends_finite_with_a_warning(blobs):
    with pytest.warns(ConvergenceWarning, match=r"Lower learning_rate \(now 1e\+30\)"):
        model = LaptSNE(perplexity=10, learning_rate=1e30, random_state=0).fit(blobs[0])
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("momentum", 1.0),
        ("momentum", -0.1),
        ("refresh_every", 0),
        ("contraction_start", 1.5),
        ("tol", -1),
        ("refresh_every", 2.5),
        ("contraction_ramp", "often"),
        ("momentum", "heavy"),
        ("exaggeration", 0),
        ("exaggeration", 0.5),
        ("exaggeration", np.inf),
        ("exaggeration", np.nan),
    ],
)
def test_impossible_settings_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"The {name!r} parameter of Descent must be .* Got {value!r}"):
        Descent(**{name: value})


@pytest.mark.parametrize("contraction", [0, 0.05])
def test_contraction_keeps_stray_points_within_the_map(contraction):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)) + 8 * np.eye(4, 5)[rng.integers(0, 4, 400)]
    P = joint_affinities(X, perplexity=20).tolil()
    P[0], P[:, 0] = 0, 0
    P[0, 1] = P[1, 0] = 1e-9  # nothing holds this point
    model = LaptSNE(metric="affinities", n_clusters=4, contraction=contraction, random_state=0).fit(P.tocsr())
    radius = np.linalg.norm(model.embedding_, axis=1)
    is_far = radius[0] > 1.8 * np.sqrt((radius**2).mean())
    assert is_far == (contraction == 0)


def exaggerations(X, **settings):
    factors = []
    settings = {"perplexity": 10, "n_clusters": 3, "max_iter": 120, "random_state": 0, **settings}
    LaptSNE(callbacks=lambda state: factors.append(state.exaggeration), **settings).fit(X)
    return factors


def test_exaggeration_falls_in_steps_to_its_final_value(blobs):
    factors = exaggerations(blobs[0], contraction=0.02)
    assert factors[:36] == [12.0] * 36
    assert factors[36:54] == [2.0] * 18
    assert np.all(np.diff(factors[54:78]) < 0)
    assert factors[78:] == [1.0] * 42


def test_without_contraction_exaggeration_ends_at_once(blobs):
    factors = exaggerations(blobs[0], contraction=0)
    assert factors[36:54] == [2.0] * 18
    assert factors[54:] == [1.0] * 66


def test_momentum_follows_exaggeration_and_ends_low():
    early, middle, late = (Schedule(max_iter=100, early_exaggeration=e, early_share=1.0) for e in (12, 4, 2))
    assert [schedule.momentum(0) for schedule in (early, middle, late)] == pytest.approx([0.8, 0.8, 0.9])
    plain = Schedule(max_iter=100, early_exaggeration=1.0)
    assert [plain.momentum(t) for t in (0, 89, 90, 99)] == pytest.approx([0.95, 0.95, 0.8, 0.8])


def test_a_given_momentum_holds_throughout():
    schedule = Schedule(max_iter=100, descent=Descent(momentum=0.5))
    assert {schedule.momentum(t) for t in range(100)} == {0.5}


def test_the_step_size_suits_few_points():
    """A bound from below, made for large data, would keep few points from settling."""
    X = np.random.default_rng(0).normal(size=(30, 5))
    short, long = (
        LaptSNE(contraction=0, refine_affinities=False, max_iter=n, random_state=0).fit(X).kl_divergence_
        for n in (300, 2000)
    )
    assert short < 1.05 * long


def test_without_early_exaggeration_there_is_none_in_the_middle(blobs):
    factors = []
    settings = {"perplexity": 10, "contraction": 0, "early_exaggeration": 1.0, "max_iter": 20, "random_state": 0}
    LaptSNE(callbacks=lambda state: factors.append(state.exaggeration), **settings).fit(blobs[0])
    assert factors == [1.0] * 20


def test_the_strength_reported_is_the_one_applied(blobs):
    settings = {"perplexity": 10, "n_clusters": 3, "contraction": 0.05, "max_iter": 100, "random_state": 0}

    def stopped_at(iteration):
        return LaptSNE(callbacks=lambda state: state.iteration == iteration, **settings).fit(blobs[0])

    early = stopped_at(30)  # contraction starts at 45
    assert early.contraction_ == 0
    assert early.objective_ == early.kl_divergence_
    assert stopped_at(60).contraction_ == pytest.approx(0.05 * 15 / 20)
    assert LaptSNE(**settings).fit(blobs[0]).contraction_ == 0.05


def test_contraction_may_start_at_once(blobs):
    for n_clusters in (3, "eigengap", "auto"):
        model = LaptSNE(n_clusters=n_clusters, optimizer=Descent(contraction_start=0), max_iter=5).fit(blobs[0])
        assert model.contraction_ > 0


@pytest.mark.parametrize("n_samples", [2, 3])
def test_few_points_cause_no_warning(rng, n_samples):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LaptSNE(random_state=0).fit(rng.normal(size=(n_samples, 4)))
    assert model.perplexity_ == 1


def test_the_perplexity_reported_is_the_one_used(rng):
    X = rng.normal(size=(40, 3))
    with pytest.warns(UserWarning, match="perplexity=30"):
        assert LaptSNE(perplexity=30, max_iter=5).fit(X).perplexity_ == pytest.approx(39 / 3)
    assert LaptSNE(perplexity=5, max_iter=5).fit(X).perplexity_ == 5


@pytest.mark.parametrize("batch_size", [None, 50])
def test_one_pass_over_the_pairs_per_iteration(monkeypatch, rng, batch_size):
    """With one kernel, both terms share a pass."""
    X = np.concatenate([rng.normal(size=(900, 5)), 20 + rng.normal(size=(900, 5))])
    calls = []
    gradients = ExactFields._gradients

    def counted(self, *args):
        calls.append(self._n_rows)
        return gradients(self, *args)

    monkeypatch.setattr(ExactFields, "_gradients", counted)
    optimizer = Descent(tol=0, refresh_every=1000, contraction_start=0.2, contraction_ramp=0)
    monkeypatch.setattr(minimise, "_REFRESH_DISTANCE", 1e9)
    settings = {"n_clusters": 2, "contraction": 0.01, "max_iter": 40, "random_state": 0, "method": "exact"}
    settings["contraction_kernel"] = "student"
    LaptSNE(optimizer=optimizer, batch_size=batch_size, init=10 * X[:, :2], **settings).fit(X)
    assert sum(size == len(X) for size in calls) <= (44 if batch_size is None else 8)


def test_a_state_that_is_kept_stays_as_it_was(blobs):
    """Values that are read after the fit are those of the iteration."""
    X, kept, seen = blobs[0], [], []

    def keep(state):
        if state.iteration % 20 == 0:
            kept.append(state)

    def look(state):
        if state.iteration % 20 == 0:
            seen.append((state.exaggeration, state.objective, state.eigenvalues))

    for callback in (keep, look):
        LaptSNE(perplexity=10, n_clusters=3, max_iter=100, random_state=0, callbacks=callback).fit(X)
    for state, (exaggeration, objective, eigenvalues) in zip(kept, seen, strict=True):
        assert state.exaggeration == exaggeration
        assert state.objective == pytest.approx(objective, rel=1e-12)
        np.testing.assert_allclose(state.eigenvalues, eigenvalues, rtol=1e-12)


def test_the_boundary_of_contraction_is_around_the_map_wherever_it_lies(rng):
    """Points are pulled back by their distance from the centre of the map, not from the origin."""
    start = rng.uniform(-1, 1, size=(200, 2))
    start[0] = 10
    settled = []
    for shift in (0.0, 1000.0):
        schedule = Schedule(max_iter=100, strength=1e-9, gains=False)
        descent = minimise.Descending(FlatLoss(), FlatTerm(), schedule, start + shift)
        descent.iteration = 90
        settled.append(descent.moved(np.zeros_like(start)) - shift)
    np.testing.assert_allclose(settled[1], settled[0], atol=1e-9)
    assert np.flatnonzero(np.abs(settled[1] - start).max(axis=1) > 1e-6).tolist() == [0]


class FlatLoss:
    """A loss without gradient."""

    workers = Workers(1)

    def is_feasible(self, Y, largest):
        return True


class FlatTerm:
    """A contraction of which only the boundary acts."""

    width = 1.0


def test_one_cluster_is_plain_tsne(blobs):
    X = blobs[0]
    plain = LaptSNE(contraction=0, max_iter=100, random_state=0).fit(X)
    single = LaptSNE(n_clusters=1, contraction=0.1, max_iter=100, random_state=0).fit(X)
    np.testing.assert_array_equal(single.embedding_, plain.embedding_)
    assert single.contraction_ == 0


def test_contraction_and_late_exaggeration_follow_the_affinity_between_clusters(rng):
    """Separate clusters have gaps in the map of t-SNE already, and more attraction would collapse large ones."""

    def fitted(apart, n, **settings):
        X = rng.normal(size=(n, 4))
        X[: n // 2, 0] += apart
        last = []
        options = {"n_clusters": 2, "max_iter": 60, "random_state": 0, **settings}
        model = LaptSNE(callbacks=lambda state: last.append(state.exaggeration), **options).fit(X)
        return model.contraction_, last[-1]

    assert fitted(50, 300) == pytest.approx((0.12 / 2, 1))
    assert fitted(2, 300) == pytest.approx((1.2 / 2, 1.15))
    strength, exaggeration = fitted(0, 3200)  # four times 400 points per cluster
    share = (2 * strength - 0.12) / 1.08
    assert 0.5 < share < 1
    assert exaggeration == pytest.approx(1 + 0.15 * share / 4)
    assert fitted(2, 300, optimizer=Descent(exaggeration=1.5))[1] == pytest.approx(1.5)
    assert fitted(2, 300, contraction=0) == pytest.approx((0, 1))
