"""Maps of AnnData objects: from principal components and from the graph of scanpy."""

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse

import laptsne.scanpy as lsc
from laptsne import LaptSNE

sc = pytest.importorskip("scanpy", reason="needs the extra laptsne[scanpy]")
anndata = pytest.importorskip("anndata", reason="needs the extra laptsne[scanpy]")

FAST = {"max_iter": 60, "n_clusters": 3}


@pytest.fixture(scope="module")
def cells():
    """700 blood cells with principal components and a graph of 10 neighbours, included in scanpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sc.datasets.pbmc68k_reduced()


@pytest.fixture
def adata(cells):
    return cells.copy()


@pytest.fixture
def small(blobs):
    return anndata.AnnData(blobs[0].astype(np.float32))


def directly(X, **settings):
    return LaptSNE(random_state=0, **(FAST | settings)).fit(X)


def test_the_map_is_that_of_the_principal_components(adata):
    before = adata.copy()
    assert lsc.tl.laptsne(adata, n_pcs=20, **FAST) is None
    model = directly(before.obsm["X_pca"][:, :20])
    np.testing.assert_array_equal(adata.obsm["X_laptsne"], model.embedding_)
    np.testing.assert_array_equal(adata.obs["laptsne"].astype(int), model.labels_)
    assert list(adata.obs["laptsne"].cat.categories) == ["0", "1", "2"]
    written = adata.uns["laptsne"]
    assert written["params"]["n_pcs"] == 20
    assert written["params"]["max_iter"] == 60
    assert "use_rep" not in written["params"]
    assert written["kl_divergence"] == model.kl_divergence_
    np.testing.assert_array_equal(written["eigenvalues"], model.eigenvalues_)
    for kept in ("X_pca", "X_umap"):
        np.testing.assert_array_equal(adata.obsm[kept], before.obsm[kept])


def test_the_graph_of_scanpy_is_used_as_affinities(adata, monkeypatch):
    def search(*args, **settings):
        raise AssertionError("neighbours are there already")

    monkeypatch.setattr("laptsne.graph.affinity.neighbor_distances", search)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lsc.tl.laptsne(adata, neighbors_key="neighbors", **FAST)
    model = directly(adata.obsp["connectivities"], metric="affinities")
    np.testing.assert_array_equal(adata.obsm["X_laptsne"], model.embedding_)
    assert adata.uns["laptsne"]["params"]["neighbors_key"] == "neighbors"


def test_a_graph_may_have_another_name(adata):
    # As scanpy.pp.neighbors(adata, key_added="twenty") leaves it.
    adata.uns["twenty"] = {"connectivities_key": "twenty_connectivities", "distances_key": "twenty_distances"}
    adata.obsp["twenty_connectivities"] = adata.obsp["connectivities"].power(2)
    lsc.tl.laptsne(adata, neighbors_key="twenty", key_added="wide", **FAST)
    model = directly(adata.obsp["twenty_connectivities"], metric="affinities")
    np.testing.assert_array_equal(adata.obsm["wide"], model.embedding_)
    assert "wide" in adata.obs
    assert "wide" in adata.uns
    assert "laptsne" not in adata.uns
    assert "X_laptsne" not in adata.obsm


def test_a_copy_leaves_the_data_alone(adata):
    changed = lsc.tl.laptsne(adata, copy=True, **FAST)
    assert "X_laptsne" in changed.obsm
    assert "X_laptsne" not in adata.obsm
    assert "laptsne" not in adata.obs


def test_a_round_trip_through_a_file(adata, tmp_path):
    settings = {"callbacks": lambda state: None, "init": adata.obsm["X_umap"], "penalty": 0.5, "n_jobs": 1}
    lsc.tl.laptsne(adata, **settings, **FAST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata.write_h5ad(tmp_path / "cells.h5ad")
    read = sc.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(read.obsm["X_laptsne"], adata.obsm["X_laptsne"])
    assert read.obs["laptsne"].equals(adata.obs["laptsne"])
    assert read.uns["laptsne"]["params"]["penalty"] == 0.5
    assert "callbacks" not in read.uns["laptsne"]["params"]
    assert read.uns["laptsne"]["n_clusters"] == 3


def test_clusters_are_sorted_by_number(adata):
    lsc.tl.laptsne(adata, max_iter=60, n_clusters=12)
    numbers = [int(category) for category in adata.obs["laptsne"].cat.categories]
    assert numbers == sorted(numbers)
    assert max(numbers) >= 10


def test_few_variables_are_used_without_pca(small):
    lsc.tl.laptsne(small, perplexity=10, **FAST)
    np.testing.assert_array_equal(small.obsm["X_laptsne"], directly(small.X, perplexity=10).embedding_)
    sparse = anndata.AnnData(scipy.sparse.csr_matrix(small.X))
    lsc.tl.laptsne(sparse, perplexity=10, **FAST)
    assert sparse.obsm["X_laptsne"].shape == (120, 2)


def test_missing_components_are_computed_with_a_warning(adata):
    del adata.obsm["X_pca"]
    with pytest.warns(UserWarning, match=r"scanpy\.pp\.pca"):
        lsc.tl.laptsne(adata, n_pcs=10, **FAST)
    assert adata.obsm["X_pca"].shape == (700, 10)
    np.testing.assert_array_equal(adata.obsm["X_laptsne"], directly(adata.obsm["X_pca"]).embedding_)


@pytest.mark.parametrize("chosen", [{"use_rep": "X"}, {"n_pcs": 0}])
def test_all_variables_are_used_on_request(adata, chosen):
    adata = adata[:200].copy()
    lsc.tl.laptsne(adata, **chosen, **FAST)
    np.testing.assert_array_equal(adata.obsm["X_laptsne"], directly(adata.X).embedding_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_rep": "X_scvi"}, "use_rep='X_scvi'"),
        ({"n_pcs": 51}, "n_pcs=51 exceeds the 50 columns"),
        ({"neighbors_key": "nowhere"}, r"neighbors_key='nowhere'.*scanpy\.pp\.neighbors"),
        ({"neighbors_key": "neighbors", "n_pcs": 10}, "n_pcs=10 cannot be combined with neighbors_key"),
        ({"neighbors_key": "neighbors", "perplexity": 30}, "perplexity=30 cannot be combined with neighbors_key"),
        ({"neighbors_key": "neighbors", "metric": "cosine"}, "metric='cosine' cannot be combined with neighbors_key"),
    ],
)
def test_invalid_arguments_are_named(adata, settings, message):
    with pytest.raises(ValueError, match=message):
        lsc.tl.laptsne(adata, **settings)
    assert "X_laptsne" not in adata.obsm


def test_a_missing_graph_is_named(adata):
    del adata.obsp["connectivities"]
    with pytest.raises(ValueError, match=r"obsp\['connectivities'\], which is missing"):
        lsc.tl.laptsne(adata, neighbors_key="neighbors")


def test_a_backed_matrix_is_refused(small, tmp_path):
    small.write_h5ad(tmp_path / "small.h5ad")
    backed = sc.read_h5ad(tmp_path / "small.h5ad", backed="r")
    with pytest.raises(ValueError, match=r"to_memory\(\)"):
        lsc.tl.laptsne(backed)
    backed.file.close()


def test_scanpy_draws_the_map(adata, tmp_path):
    matplotlib = pytest.importorskip("matplotlib", reason="needs the extra laptsne[plot]")
    matplotlib.use("agg")
    with pytest.raises(ValueError, match="basis='laptsne' is not in"):
        lsc.pl.laptsne(adata)
    lsc.tl.laptsne(adata, **FAST)
    axes = lsc.pl.laptsne(adata, color=["bulk_labels", "laptsne"], show=False)
    assert [ax.get_title() for ax in axes] == ["bulk_labels", "laptsne"]
    drawn = np.asarray(axes[0].collections[0].get_offsets())
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(adata.obsm["X_laptsne"], axis=0), rtol=1e-6)


def test_without_scanpy_the_error_names_the_extra(adata, monkeypatch):
    monkeypatch.setitem(sys.modules, "scanpy", None)
    with pytest.raises(ModuleNotFoundError, match=r"laptsne\[scanpy\]"):
        lsc.tl.laptsne(adata)
