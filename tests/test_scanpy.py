"""Maps of AnnData objects: from principal components and from the graph of scanpy."""

import subprocess
import sys
import warnings
from importlib.metadata import version

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph

import laptsne.scanpy as lsc
from laptsne import LaptSNE, LapUMAP
from laptsne._runtime.threads import Workers
from laptsne.graph.neighbors import neighbor_distances
from laptsne.graph.paths import nearest_by_path
from laptsne.metrics import Faithfulness

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
    assert lsc.tl.laptsne(adata, n_pcs=20, clusters_key="groups", **FAST) is None
    model = directly(before.obsm["X_pca"][:, :20])
    np.testing.assert_array_equal(adata.obsm["X_laptsne"], model.embedding_)
    np.testing.assert_array_equal(adata.obs["groups"].astype(int), model.labels_)
    assert list(adata.obs["groups"].cat.categories) == ["0", "1", "2"]
    written = adata.uns["laptsne"]
    assert written["params"]["n_pcs"] == 20
    assert written["params"]["max_iter"] == 60
    assert written["params"]["use_rep"] == "X_pca"
    assert written["kl_divergence"] == model.kl_divergence_
    np.testing.assert_array_equal(written["eigenvalues"], model.eigenvalues_)
    for kept in ("X_pca", "X_umap"):
        np.testing.assert_array_equal(adata.obsm[kept], before.obsm[kept])


def test_the_graph_of_scanpy_is_extended_by_paths(adata):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lsc.tl.laptsne(adata, neighbors_key="neighbors", **FAST)
    paths = scipy.sparse.csgraph.dijkstra(adata.obsp["distances"].maximum(adata.obsp["distances"].T))
    nearest = np.argsort(paths, axis=1, kind="stable")[:, 1:91]
    model = directly((nearest, np.take_along_axis(paths, nearest, axis=1)), metric="precomputed")
    np.testing.assert_allclose(adata.uns["laptsne"]["kl_divergence"], model.kl_divergence_, rtol=0.02)
    assert adata.uns["laptsne"]["perplexity"] == 30
    assert adata.uns["laptsne"]["params"]["neighbors_key"] == "neighbors"
    lsc.tl.laptsne(adata, neighbors_key="neighbors", perplexity=12, **FAST)
    assert adata.uns["laptsne"]["perplexity"] == 12


@pytest.mark.slow
def test_maps_of_the_graph_are_as_good_as_those_of_the_features(adata):
    """The table in docs/single-cell.md, by benchmarks/scanpy_graph.py."""
    X = adata.obsm["X_pca"]
    sc.pp.neighbors(adata, n_neighbors=15, use_rep="X_pca")
    kept = []
    for settings in ({}, {"neighbors_key": "neighbors"}):
        lsc.tl.laptsne(adata, **settings)
        kept.append(Faithfulness(X).neighbors_kept(adata.obsm["X_laptsne"]))
    weights = LaptSNE(metric="affinities", random_state=0).fit_transform(adata.obsp["connectivities"])
    assert kept[1] > kept[0] - 0.015
    assert kept[1] > Faithfulness(X).neighbors_kept(weights) + 0.005


@pytest.mark.parametrize("n_neighbors", [1, 7, 29, 60])
def test_nearest_by_path(rng, n_neighbors):
    X = rng.normal(size=(60, 3))
    edges = neighbor_distances(X, 4, metric="euclidean", metric_params=None, workers=Workers(1))
    kept = np.arange(60) != 20
    edges = scipy.sparse.csr_matrix(edges.toarray() * kept * kept[:, None])  # one point has no neighbours
    found = nearest_by_path(edges, n_neighbors, Workers(1))
    lengths = scipy.sparse.csgraph.dijkstra(edges.maximum(edges.T))
    for i in range(60):
        others = np.delete(lengths[i], i)
        expected = np.sort(others[np.isfinite(others)])[:n_neighbors]
        row = found[i].toarray().ravel()[found[i].indices]
        np.testing.assert_allclose(np.sort(row), expected, atol=1e-6)
    assert found[20].nnz == 0
    np.testing.assert_array_equal(found.toarray(), nearest_by_path(edges, n_neighbors, Workers(3)).toarray())


def test_paths_pass_through_duplicates():
    edges = scipy.sparse.csr_matrix(([0.0, 2.0], ([0, 1], [1, 2])), (3, 3))
    assert nearest_by_path(edges, 2, Workers(1)).toarray()[0, 2] == pytest.approx(2)


class TestIngest:
    @pytest.fixture
    def halves(self, adata):
        return adata[::2].copy(), adata[1::2].copy()

    def test_new_cells_are_where_the_model_puts_them(self, halves):
        reference, new = halves
        before = reference.copy()
        lsc.tl.laptsne(reference, use_rep="X_umap", **FAST)
        assert lsc.tl.ingest(new, reference) is None
        model = directly(before.obsm["X_umap"])
        np.testing.assert_array_equal(new.obsm["X_laptsne"], model.transform(new.obsm["X_umap"]))

    def test_components_of_new_cells_are_those_of_the_reference(self, halves):
        reference, new = halves
        lsc.tl.laptsne(reference, n_pcs=10, **FAST)
        expected = lsc.get_model(reference).transform(new.obsm["X_pca"][:, :10])
        new.obsm["X_pca"] = -new.obsm["X_pca"]  # as computed on their own
        reference.X, new.X = reference.X + 3, new.X + 3  # not centred, as after log1p
        lsc.tl.ingest(new, reference)
        off = np.linalg.norm(new.obsm["X_laptsne"] - expected, axis=1)
        assert np.median(off) < 0.02 * np.ptp(expected)
        lsc.tl.ingest(new, reference, use_rep="X_pca")
        assert np.median(np.linalg.norm(new.obsm["X_laptsne"] - expected, axis=1)) > 0.1 * np.ptp(expected)

    def test_sparse_counts_and_other_genes(self, halves):
        reference, new = halves
        lsc.tl.laptsne(reference, n_pcs=10, **FAST)
        lsc.tl.ingest(new, reference)
        changed = new[:, ::-1].copy()
        changed.X = scipy.sparse.csr_matrix(changed.X)
        lsc.tl.ingest(changed, reference)
        np.testing.assert_allclose(changed.obsm["X_laptsne"], new.obsm["X_laptsne"], rtol=1e-3, atol=1e-2)
        with pytest.raises(ValueError, match=r"lack \d+ of the 309 genes"):
            lsc.tl.ingest(new[:, :300].copy(), reference)

    def test_a_changed_matrix_is_noticed(self, halves):
        reference, new = halves
        lsc.tl.laptsne(reference, **FAST)
        reference.X = np.expm1(reference.X)
        with pytest.raises(ValueError, match=r"adata_ref\.X is not what"):
            lsc.tl.ingest(new, reference)

    def test_labels_are_predicted(self, halves):
        reference, new = halves
        lsc.tl.laptsne(reference, **FAST)
        truth = new.obs["louvain"].astype(str)
        del new.obs["louvain"]
        lsc.tl.ingest(new, reference, obs=["louvain"])
        assert (new.obs["louvain"].astype(str) == truth).mean() > 0.75
        assert new.obs["louvain"].cat.categories.equals(reference.obs["louvain"].cat.categories)
        with pytest.raises(ValueError, match="obs='nothing' is not a column"):
            lsc.tl.ingest(new, reference, obs="nothing")

    def test_maps_of_a_graph_take_no_new_cells(self, halves):
        reference, new = halves
        sc.pp.neighbors(reference, n_neighbors=15, n_pcs=20)
        lsc.tl.laptsne(reference, neighbors_key="neighbors", key_added="graph", **FAST)
        with pytest.raises(ValueError, match=r"adata_ref.uns\['graph'\] takes no new cells; compute it from features"):
            lsc.tl.ingest(new, reference, key="graph")

    def test_models_survive_files(self, halves, tmp_path):
        reference, new = halves
        lsc.tl.laptsne(reference, **FAST)
        reference.write_h5ad(tmp_path / "reference.h5ad")
        found = [
            lsc.tl.ingest(new, adata, copy=True).obsm["X_laptsne"]
            for adata in (reference, sc.read_h5ad(tmp_path / "reference.h5ad"))
        ]
        np.testing.assert_array_equal(*found)
        assert "X_laptsne" not in new.obsm

    def test_missing_models_are_named(self, halves):
        reference, new = halves
        with pytest.raises(ValueError, match=r"adata\.uns\['laptsne'\] has no model"):
            lsc.tl.ingest(new, reference)
        lsc.tl.laptsne(reference, keep_model=False, **FAST)
        with pytest.raises(ValueError, match="keep_model=True"):
            lsc.tl.ingest(new, reference)
        with pytest.warns(UserWarning, match="the model is not kept"):
            lsc.tl.laptsne(reference, use_rep="X_umap", metric=lambda a, b: abs(a - b).sum(), **FAST)
        reference.obsm["X_other"] = reference.obsm["X_umap"]
        lsc.tl.laptsne(reference, use_rep="X_other", **FAST)
        with pytest.raises(ValueError, match=r"obsm\['X_other'\], which the new cells lack"):
            lsc.tl.ingest(new, reference)


def test_no_column_is_written_unless_requested(adata):
    before = list(adata.obs)
    lsc.tl.laptsne(adata, **FAST)
    assert list(adata.obs) == before


def test_a_graph_may_have_another_name(adata):
    # As scanpy.pp.neighbors(adata, key_added="twenty") leaves it.
    adata.uns["twenty"] = {"connectivities_key": "twenty_connectivities", "distances_key": "twenty_distances"}
    adata.obsp["twenty_distances"] = adata.obsp["distances"].power(2)
    lsc.tl.laptsne(adata, neighbors_key="twenty", key_added="wide", **FAST)
    paths = nearest_by_path(adata.obsp["twenty_distances"], 90, Workers(1))
    np.testing.assert_array_equal(adata.obsm["wide"], directly(paths, metric="precomputed").embedding_)
    assert "wide" not in adata.obs
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
    lsc.tl.laptsne(adata, clusters_key="laptsne", **settings, **FAST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata.write_h5ad(tmp_path / "cells.h5ad")
    read = sc.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(read.obsm["X_laptsne"], adata.obsm["X_laptsne"])
    assert read.obs["laptsne"].equals(adata.obs["laptsne"])
    assert read.uns["laptsne"]["params"]["penalty"] == 0.5
    assert "callbacks" not in read.uns["laptsne"]["params"]
    assert read.uns["laptsne"]["n_clusters"] == 3


def test_layers_and_the_tree_survive_files(adata, tmp_path):
    lsc.tl.laptsne(adata, clusters_key="groups", max_iter=60, n_clusters=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata.write_h5ad(tmp_path / "cells.h5ad")
    read, model = sc.read_h5ad(tmp_path / "cells.h5ad"), lsc.get_model(adata)
    layers = model.cluster_layers_
    names = ["groups", *(f"groups_layer{k}" for k in range(1, len(layers)))]
    assert [name for name in read.obs if name.startswith("groups")] == names
    assert [len(read.obs[name].cat.categories) for name in names] == [6, 4, 2]
    for name, labels in zip(names, layers, strict=True):
        np.testing.assert_array_equal(read.obs[name].astype(int), labels)
    tree = read.uns["laptsne"]["cluster_tree"]
    assert set(tree) == {"parent", "size", "chance"}
    for part, values in tree.items():
        np.testing.assert_array_equal(values, getattr(model.cluster_tree_, part))


def test_clusters_are_sorted_by_number(adata):
    lsc.tl.laptsne(adata, clusters_key="laptsne", max_iter=60, n_clusters=12)
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
        ({"neighbors_key": "neighbors", "metric": "cosine"}, "metric='cosine' cannot be combined with neighbors_key"),
    ],
)
def test_invalid_arguments_are_named(adata, settings, message):
    with pytest.raises(ValueError, match=message):
        lsc.tl.laptsne(adata, **settings)
    assert "X_laptsne" not in adata.obsm


def test_a_missing_graph_is_named(adata):
    del adata.obsp["distances"]
    with pytest.raises(ValueError, match=r"obsp\['distances'\] is missing"):
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
    with pytest.raises(KeyError, match="laptsne"):
        lsc.pl.laptsne(adata)
    lsc.tl.laptsne(adata, clusters_key="laptsne", **FAST)
    axes = lsc.pl.laptsne(adata, color=["bulk_labels", "laptsne"], show=False)
    assert [ax.get_title() for ax in axes] == ["bulk_labels", "laptsne"]
    drawn = np.asarray(axes[0].collections[0].get_offsets())
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(adata.obsm["X_laptsne"], axis=0), rtol=1e-6)


def test_without_scanpy_the_error_names_the_extra():
    code = "import sys; sys.modules['scanpy'] = None; import laptsne.scanpy"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert 'laptsne.scanpy requires scanpy; install it with pip install "laptsne[scanpy]"' in done.stderr


def test_a_seed_or_a_generator_may_be_given_as_rng(adata):
    maps = {}
    for name, settings in {
        "seed": {"random_state": 3},
        "rng": {"rng": 3},
        "generator": {"rng": np.random.default_rng(5)},
        "same": {"rng": np.random.default_rng(5)},
    }.items():
        lsc.tl.laptsne(adata, key_added=name, init="random", **settings, **FAST)
        maps[name] = adata.obsm[name]
    np.testing.assert_array_equal(maps["seed"], maps["rng"])
    np.testing.assert_array_equal(maps["generator"], maps["same"])
    assert not np.allclose(maps["seed"], maps["generator"])
    with pytest.raises(TypeError, match="rng and random_state are both given"):
        lsc.tl.laptsne(adata, rng=1, random_state=1)


class TestLapUMAP:
    """Maps of scanpy's graph, as tl.umap makes them."""

    def test_the_map_is_that_of_the_connectivities(self, adata, tmp_path):
        lsc.tl.lapumap(adata, clusters_key="groups", **FAST)
        model = LapUMAP(metric="affinities", random_state=0, **FAST).fit(adata.obsp["connectivities"])
        np.testing.assert_array_equal(adata.obsm["X_lapumap"], model.embedding_)
        assert adata.uns["lapumap"]["cross_entropy"] == model.cross_entropy_
        assert "kl_divergence" not in adata.uns["lapumap"]
        np.testing.assert_array_equal(adata.obs["groups"].astype(int), model.labels_)
        adata.write_h5ad(tmp_path / "cells.h5ad")
        found = lsc.get_model(sc.read_h5ad(tmp_path / "cells.h5ad"), "lapumap")
        assert isinstance(found, LapUMAP)
        with pytest.raises(ValueError, match="takes no new cells"):
            lsc.tl.ingest(adata[:5].copy(), adata, key="lapumap")

    def test_features_take_new_cells(self, adata):
        reference, new = adata[:600].copy(), adata[600:].copy()
        lsc.tl.lapumap(reference, neighbors_key=None, n_pcs=20, n_neighbors=10, **FAST)
        lsc.tl.ingest(new, reference, key="lapumap")
        assert new.obsm["X_lapumap"].shape == (100, 2)
        assert lsc.pl.laptsne(reference, basis="lapumap", show=False) is not None

    def test_a_missing_graph_is_named(self, small):
        with pytest.raises(ValueError, match=r"neighbors_key='neighbors' is not in adata\.uns.*scanpy\.pp\.neighbors"):
            lsc.tl.lapumap(small)


def test_a_graph_of_jaccard_weights(adata):
    if version("scanpy") < "1.12":
        pytest.skip("scanpy has Jaccard weights from 1.12 on")
    sc.pp.neighbors(adata, n_neighbors=15, use_rep="X_pca", method="jaccard")
    for tool, key in ((lsc.tl.laptsne, "X_laptsne"), (lsc.tl.lapumap, "X_lapumap")):
        tool(adata, neighbors_key="neighbors")
        assert Faithfulness(adata.obsm["X_pca"]).neighbors_kept(adata.obsm[key]) > 0.45


def test_keys_are_those_of_the_preset(adata):
    """As scanpy 1.13 names its own results with the preset of 2.0, and with earlier versions by that name."""
    reference, new = adata[:600].copy(), adata[600:].copy()
    for part in (reference, new):
        part.obsm["pca"], part.varm["pca"] = part.obsm.pop("X_pca"), part.varm.pop("PCs")
    previous = getattr(sc.settings, "preset", None)
    if previous is None:
        lsc.tl.laptsne(reference, n_pcs=10, key_added="laptsne", **FAST)
    else:
        try:
            sc.settings.preset = sc.Preset.ScanpyV2Preview
            lsc.tl.laptsne(reference, n_pcs=10, **FAST)
        except ImportError as error:
            pytest.skip(f"the preset has requirements: {error}")
        finally:
            sc.settings.preset = previous
    assert "X_laptsne" not in reference.obsm
    assert reference.uns["laptsne"]["params"]["use_rep"] == "pca"
    np.testing.assert_array_equal(reference.obsm["laptsne"], directly(reference.obsm["pca"][:, :10]).embedding_)
    lsc.tl.ingest(new, reference)
    expected = lsc.get_model(reference).transform(new.obsm["pca"][:, :10])
    off = np.linalg.norm(new.obsm["laptsne"] - expected, axis=1)
    assert np.median(off) < 0.02 * np.ptp(expected)
