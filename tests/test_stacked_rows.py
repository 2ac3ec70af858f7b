"""Columns of lists, as data frames of embeddings have them, in place of a matrix."""

import numpy as np
import pyarrow as pa
import pytest

from laptsne import LandmarkLaptSNE, LaptSNE, LapUMAP
from laptsne._runtime.stacked_rows import stacked_rows

QUICK = {"max_iter": 20, "perplexity": 10, "random_state": 0}


@pytest.fixture
def X(blobs):
    return blobs[0].astype(np.float32)


def pandas_lists(X):
    return pytest.importorskip("pandas").Series(X.tolist(), name="embedding")


def pandas_arrays(X):
    return pytest.importorskip("pandas").Series(list(X), index=np.arange(len(X)) + 5)


def polars_lists(X):
    return pytest.importorskip("polars").Series(list(X))


def polars_arrays(X):
    polars = pytest.importorskip("polars")
    return polars.Series(X.tolist(), dtype=polars.Array(polars.Float32, X.shape[1]))


def arrow_lists(X):
    return pa.chunked_array([pa.array(list(X[:50])), pa.array(list(X[50:]))])


def frame_of_one_column(X):
    return pytest.importorskip("pandas").DataFrame({"embedding": list(X)})


def objects(X):
    column = np.empty(len(X), dtype=object)
    column[:] = list(X)
    return column


COLUMNS = (pandas_lists, pandas_arrays, polars_lists, polars_arrays, arrow_lists, frame_of_one_column, objects)


@pytest.mark.parametrize("make", COLUMNS)
def test_a_column_of_lists_is_a_matrix(X, make):
    found = stacked_rows(make(X))
    np.testing.assert_array_equal(found, X)
    assert found.dtype.kind == "f"


@pytest.mark.parametrize("make", [pandas_arrays, polars_arrays])
def test_fit_and_transform_take_it(X, make):
    model, expected = LaptSNE(**QUICK).fit(make(X)), LaptSNE(**QUICK).fit(X)
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
    np.testing.assert_array_equal(model.transform(make(X[:5])), expected.transform(X[:5]))
    landmarks = LandmarkLaptSNE(n_landmarks=50, **QUICK)
    assert landmarks.fit(make(X)).embedding_.shape == (120, 2)
    assert landmarks.transform(make(X[:5])).shape == (5, 2)


def test_what_is_no_column_of_lists_is_left_alone(X):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    twins = pandas.DataFrame(X[:, :2], columns=["a", "a"])
    for given in (X, X.tolist(), pandas.DataFrame(X), polars.DataFrame(X), twins, pandas.Series(X[:, 0]), X[0]):
        assert stacked_rows(given) is given


def test_what_is_wrong_is_said(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"price": 1.5, "embedding": list(X)})
    with pytest.raises(ValueError, match=r"column 'embedding' holds lists.*pass X\['embedding'\]"):
        LaptSNE().fit(frame)
    with pytest.raises(ValueError, match="row 3 has 2 values, but the first one has 6 values"):
        LaptSNE().fit(pandas.Series([*X[:3], X[3, :2]]))
    with pytest.raises(ValueError, match="row 3 has no list"):
        LaptSNE().fit(pandas.Series([*X[:3], None]))


def test_annotated_data_are_sent_to_scanpy():
    anndata = pytest.importorskip("anndata", reason="needs the extra laptsne[scanpy]")
    adata = anndata.AnnData(np.zeros((20, 3), np.float32))
    for estimator in (LaptSNE(), LapUMAP(), LandmarkLaptSNE()):
        with pytest.raises(TypeError, match=r"X is AnnData; use laptsne\.scanpy\.tl\.laptsne\(adata\)"):
            estimator.fit(adata)
