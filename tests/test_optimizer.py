import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from laptsne import Descent, LaptSNE
from laptsne.engine.run import LATE_EXAGGERATION
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


def test_exaggeration_lasts_its_share(blobs):
    """Runs with and without exaggeration differ at once; runs of two shares part where the shorter one ends."""

    def maps(share):
        seen = []
        optimizer = Descent(exaggeration_share=share)
        LaptSNE(
            perplexity=10,
            contraction=0,
            learning_rate=50.0,
            optimizer=optimizer,
            max_iter=40,
            callbacks=lambda state: seen.append(state.embedding),
            random_state=0,
        ).fit(blobs[0])
        return seen

    none, quarter, half = maps(0.0), maps(0.25), maps(0.5)
    assert not np.array_equal(none[1], quarter[1])
    np.testing.assert_array_equal(quarter[10], half[10])
    assert not np.array_equal(quarter[11], half[11])


def test_steps_are_cut(blobs):
    longest = []

    class Watch:
        last = None

        def __call__(self, state):
            if self.last is not None:
                longest.append(np.linalg.norm(state.embedding - self.last, axis=1).max())
            self.last = state.embedding

    LaptSNE(perplexity=10, optimizer=Descent(max_step=0.25), max_iter=100, callbacks=Watch()).fit(blobs[0])
    assert max(longest) == pytest.approx(0.25)


def test_it_stops_where_the_objective_does_not_fall_any_more(blobs):
    settings = {"perplexity": 10, "max_iter": 8000, "contraction": 0, "random_state": 0}
    model = LaptSNE(**settings).fit(blobs[0])
    assert 3600 < model.n_iter_ < 8000
    longer = LaptSNE(optimizer=Descent(tol=0), **settings).fit(blobs[0])
    assert longer.n_iter_ == 8000
    assert model.objective_ == pytest.approx(longer.objective_, abs=0.02)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_a_step_size_far_too_high_ends_finite_with_a_warning(blobs):
    optimizer = Descent(max_step=1e30)
    with pytest.warns(ConvergenceWarning, match=r"Lower learning_rate \(now 1e\+30\)"):
        model = LaptSNE(perplexity=10, learning_rate=1e30, optimizer=optimizer, random_state=0).fit(blobs[0])
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("momentum", 1.0),
        ("momentum", -0.1),
        ("max_step", 0),
        ("refresh_every", 0),
        ("contraction_start", 1.5),
        ("exaggeration_share", -1),
        ("tol", -1),
        ("patience", 0),
        ("refresh_every", 2.5),
        ("check_every", "often"),
        ("momentum", "heavy"),
        ("exaggeration", 0),
        ("exaggeration", 0.5),
        ("exaggeration", np.inf),
        ("exaggeration", np.nan),
        ("middle_exaggeration", 0.9),
        ("middle_exaggeration", np.inf),
    ],
)
def test_impossible_settings_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"Descent: {name} must be .*; got {value!r}"):
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
    assert factors[78:] == [pytest.approx(LATE_EXAGGERATION)] * 42


def test_without_contraction_exaggeration_ends_at_once(blobs):
    factors = exaggerations(blobs[0], contraction=0)
    assert factors[36:54] == [2.0] * 18
    assert factors[54:] == [1.0] * 66


def test_momentum_follows_exaggeration_and_ends_low():
    descent = Descent()
    assert [descent.momentum_at(0, 100, e) for e in (12, 4, 2, 1)] == pytest.approx([0.8, 0.8, 0.9, 0.95])
    assert [descent.momentum_at(t, 100, 1.0) for t in (89, 90, 99)] == pytest.approx([0.95, 0.8, 0.8])
    assert Descent(settling_share=0).momentum_at(99, 100, 1.0) == pytest.approx(0.95)


def test_a_given_momentum_holds_throughout():
    descent = Descent(momentum=0.5)
    assert {descent.momentum_at(t, 100, e) for t in (0, 50, 99) for e in (12.0, 2.0, 1.0)} == {0.5}


def test_the_step_size_suits_few_points():
    """A bound from below, made for large data, would keep few points from settling."""
    X = np.random.default_rng(0).normal(size=(30, 5))
    short, long = (LaptSNE(contraction=0, max_iter=n, random_state=0).fit(X).kl_divergence_ for n in (300, 2000))
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
    optimizer = Descent(tol=0, refresh_every=1000, refresh_distance=1e9, contraction_start=0.2, contraction_ramp=0)
    settings = {"n_clusters": 2, "contraction": 0.01, "max_iter": 40, "random_state": 0, "method": "exact"}
    settings["contraction_kernel"] = "student"
    LaptSNE(optimizer=optimizer, batch_size=batch_size, init=10 * X[:, :2], **settings).fit(X)
    assert sum(size == len(X) for size in calls) <= (44 if batch_size is None else 8)
