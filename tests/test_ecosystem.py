"""Data frames as input and output; fits in joblib, Dask and notebooks, with no more threads than cores; DataMapPlot."""

import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne._runtime.threads import effective_n_jobs

pd = pytest.importorskip("pandas", reason="needs pandas")
pl = pytest.importorskip("polars", reason="needs polars")

FAST = {"max_iter": 40, "perplexity": 10, "random_state": 0}
NAMES = ["a", "b", "c", "d", "e", "f"]
KINDS = {"LaptSNE": (LaptSNE, FAST), "LandmarkLaptSNE": (LandmarkLaptSNE, FAST | {"n_landmarks": 60})}


@pytest.fixture(params=list(KINDS))
def make(request):
    kind, settings = KINDS[request.param]
    return lambda: kind(**settings)


@pytest.fixture
def frames(blobs):
    X = blobs[0]
    return {
        "pandas": pd.DataFrame(X, columns=NAMES, index=[f"cell {i}" for i in range(len(X))]),
        "polars": pl.DataFrame(X, schema=NAMES),
    }


@pytest.mark.parametrize("given", ["pandas", "polars"])
@pytest.mark.parametrize("wanted", ["pandas", "polars"])
def test_frames_in_and_out(make, frames, blobs, given, wanted):
    frame, X = frames[given], blobs[0]
    model = make().set_output(transform=wanted)
    plain = make()
    expected, placed = plain.fit_transform(X), plain.transform(X[:7])
    for Y, values, rows in [
        (model.fit_transform(frame), expected, frame),
        (model.transform(frame[:7]), placed, frame[:7]),
    ]:
        assert isinstance(Y, {"pandas": pd.DataFrame, "polars": pl.DataFrame}[wanted])
        assert list(Y.columns) == list(model.get_feature_names_out())
        np.testing.assert_array_equal(Y.to_numpy(), values)
        if given == wanted == "pandas":
            assert Y.index.equals(rows.index)
    assert list(model.feature_names_in_) == NAMES
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[NAMES[::-1]])


def numeric(frame):
    """Frames with several numeric dtypes, each with the same values as plain floats."""
    flag = (frame["a"] > 0).to_numpy()
    whole = frame.round()
    return {
        "nullable float": (frame.astype("Float64"), frame),
        "nullable int": (whole.astype("Int64"), whole),
        "bool": (frame.assign(g=flag), frame.assign(g=flag.astype(float))),
        "nullable bool": (frame.assign(g=pd.array(flag, dtype="boolean")), frame.assign(g=flag.astype(float))),
        "category of numbers": (frame.assign(g=pd.Categorical(flag * 2)), frame.assign(g=flag * 2.0)),
        "polars int": (pl.DataFrame(whole.to_numpy(), schema=NAMES).cast(pl.Int16), whole),
        "polars bool": (
            pl.DataFrame(frame.to_numpy(), schema=NAMES).with_columns(pl.Series("g", flag)),
            frame.assign(g=flag.astype(float)),
        ),
    }


@pytest.mark.parametrize(
    "dtype",
    ["nullable float", "nullable int", "bool", "nullable bool", "category of numbers", "polars int", "polars bool"],
)
def test_numeric_dtypes(make, frames, dtype):
    frame, plain = numeric(frames["pandas"])[dtype]
    np.testing.assert_array_equal(make().fit_transform(frame), make().fit_transform(plain.to_numpy()))


def test_missing_values_and_text_are_refused(make, frames):
    frame = frames["pandas"]
    holes = frame.astype("Float64")
    holes.iloc[3, 2] = pd.NA
    with pytest.raises(ValueError, match="NaN"):
        make().fit(holes)
    nulls = frames["polars"].with_columns(g=pl.when(pl.col("a") > 0).then(1.0))
    with pytest.raises(ValueError, match="NaN"):
        make().fit(nulls)
    for text in (frame.assign(g="T cell"), frame.assign(g=pd.Categorical(["T cell"] * len(frame)))):
        with pytest.raises(ValueError, match="T cell"):
            make().fit(text)


def fitted(X):
    """Return the embedding and the largest number of threads that laptsne used."""
    seen = []

    def look(state):
        seen.append(sum(thread.name.startswith("laptsne") for thread in threading.enumerate()))

    return LaptSNE(callbacks=look, **FAST).fit_transform(X), 1 + max(seen)


@pytest.fixture(scope="module")
def X():
    """Large enough that a fit uses threads."""
    return np.random.default_rng(0).normal(size=(700, 5))


@pytest.fixture(scope="module")
def expected(X):
    return LaptSNE(n_jobs=1, **FAST).fit_transform(X)


def test_joblib_processes_share_the_cores(X, expected):
    n = 2
    results = joblib.Parallel(n, backend="loky")(joblib.delayed(fitted)(X) for _ in range(n))
    for Y, n_threads in results:
        np.testing.assert_array_equal(Y, expected)
        assert n_threads <= max(1, joblib.cpu_count() // n)


def test_joblib_limits_the_threads_of_its_processes():
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        assert joblib.Parallel(3)([joblib.delayed(effective_n_jobs)(None)]) == [1]


def test_joblib_threads_give_the_same_embedding(X, expected):
    for Y, _ in joblib.Parallel(3, backend="threading")(joblib.delayed(fitted)(X) for _ in range(3)):
        np.testing.assert_array_equal(Y, expected)


def test_workers_of_a_process_pool_use_one_thread():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(effective_n_jobs, (None,)) == 1


@pytest.fixture
def dask():
    pytest.importorskip("distributed", reason="needs the extra laptsne[distributed]")
    return pytest.importorskip("dask")


def test_a_fit_in_a_dask_process(dask, X, expected):
    from distributed import Client, LocalCluster

    settings = {"processes": True, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(n_workers=1, threads_per_worker=1, **settings) as cluster, Client(cluster):
        ((Y, n_threads),) = dask.compute(dask.delayed(fitted)(X))
    np.testing.assert_array_equal(Y, expected)
    assert n_threads == 1


def test_a_dask_worker_uses_the_threads_it_was_given(dask, monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as in the processes of Dask, whatever their number of threads
    settings = {"processes": False, "dashboard_address": None}
    with LocalCluster(n_workers=1, threads_per_worker=3, **settings) as cluster, Client(cluster) as client:
        assert client.submit(effective_n_jobs, None).result() == 3
    assert effective_n_jobs(None) == 1


NOTEBOOK = [
    "import numpy as np\nfrom laptsne import LaptSNE",
    "model = LaptSNE(max_iter=60, perplexity=10, random_state=0, verbose=True)\n"
    "Y = model.fit_transform(np.random.default_rng(0).normal(size=(200, 5)))",
    "model",
]


def test_a_notebook_shows_progress_and_the_model():
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    pytest.importorskip("ipykernel", reason="needs ipykernel")
    from nbformat import v4

    notebook = v4.new_notebook(cells=[v4.new_code_cell(source) for source in NOTEBOOK])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from the kernel itself
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    lines = "".join(output["text"] for output in notebook.cells[1].outputs).splitlines()
    assert [line.split(",")[0] for line in lines] == [f"[laptsne] iteration {i} of 60" for i in (50, 60)]
    (shown,) = notebook.cells[2].outputs
    assert "max_iter" in shown["data"]["text/html"]


def test_the_recipe_for_datamapplot_draws_all_layers(tmp_path, monkeypatch):
    """The last block of docs/figures.md, with the model of the first."""
    reason = "the recipe needs pip install datamapplot"
    pytest.importorskip("datamapplot", reason=reason)
    datasets = pytest.importorskip("sklearn.datasets")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    page = (Path(__file__).parent.parent / "docs" / "figures.md").read_text()
    [recipe] = [
        code
        for code in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
        if "import datamapplot" in code
    ]
    X, y = datasets.load_digits(return_X_y=True)
    names = {"X": X, "y": y, "model": LaptSNE(max_iter=60, random_state=0).fit(X)}
    exec(compile(recipe, "figures.md", "exec"), names)
    model, layers = names["model"], names["layers_of_names"]
    assert [len(set(layer)) for layer in layers] == (model.cluster_layers_.max(axis=1) + 1).tolist()
    assert len(layers) > 2
    shown = {text.get_text().replace("\n", " ") for text in names["ax"].texts}
    assert shown == set(layers[0])
    assert (tmp_path / "digits.html").stat().st_size > 50_000


def recipe_of(word, language="python"):
    """The block of docs/coming-from.md with a word."""
    page = (Path(__file__).parent.parent / "docs" / "coming-from.md").read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    [recipe] = [code for code in blocks if word in code]
    return recipe


@pytest.mark.parametrize("library", ["plotly", "altair"])
def test_the_recipes_for_plotly_and_altair_draw_all_points(library, tmp_path, monkeypatch):
    pytest.importorskip(library, reason=f"the recipe needs pip install {library}")
    datasets = pytest.importorskip("sklearn.datasets")
    monkeypatch.chdir(tmp_path)
    X, y = datasets.load_digits(return_X_y=True)
    names = {"X": X[:300], "y": y[:300], "LaptSNE": LaptSNE}
    exec(compile(recipe_of(library), "coming-from.md", "exec"), names)
    if library == "plotly":
        assert sum(len(trace.x) for trace in names["figure"].data) == 300
    else:
        [rows] = names["chart"].to_dict()["datasets"].values()
        assert len(rows) == 300
    assert (tmp_path / "digits.html").stat().st_size > 10_000


def test_the_recipe_for_r(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("the recipe needs R")
    if subprocess.run(["Rscript", "-e", "library(reticulate)"], check=False, capture_output=True).returncode:
        pytest.skip("the recipe needs install.packages('reticulate') in R")
    (tmp_path / "recipe.R").write_text(recipe_of("reticulate", "r"))
    env = os.environ | {"RETICULATE_PYTHON": sys.executable}
    done = subprocess.run(["Rscript", "recipe.R"], cwd=tmp_path, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "setosa" in done.stdout
    assert LaptSNE.load(tmp_path / "iris.laptsne").embedding_.shape == (150, 2)
