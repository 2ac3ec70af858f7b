"""What the command writes into the explorer and beside it: features, genes, words of clusters, landmarks."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse
from typer.testing import CliRunner

from laptsne.cli.commands import app

N = 120


@pytest.fixture
def X(blobs):
    return blobs[0]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(command, *words):
        given = [command, *words, "--iterations", 5, "--perplexity", 10, "--force"]
        result = CliRunner().invoke(app, [str(word) for word in given])
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        return result

    return invoke


@pytest.fixture
def pages(monkeypatch):
    """The arguments of every explorer that is written."""
    written = []

    def explorer(Y, out, **options):
        written.append(options)
        Path(out).touch()

    monkeypatch.setattr("laptsne.plotting.explorer", explorer)
    return written


@pytest.fixture
def drawn(monkeypatch):
    """The arguments of every plot."""
    from laptsne import plotting

    calls, scatter = [], plotting.scatter

    def recorded(Y, c, **options):
        calls.append((c, options))
        return scatter(Y, c, **options)

    monkeypatch.setattr("laptsne.plotting.scatter", recorded)
    return calls


@pytest.fixture
def counts():
    """Cells whose first gene has only a few different counts."""
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    cells = anndata.AnnData(scipy.sparse.csr_matrix(rng.poisson(2.0, size=(N, 30)).astype(np.float32)))
    cells.var_names = [f"G{i}" for i in range(30)]
    cells.obs["batch"] = np.arange(N) % 3
    return cells


class TestFeatures:
    def test_a_table_of_many_columns(self, run, pages, X):
        wide = np.concatenate([X, X + 1, X - 1, X * 2], axis=1)
        names = [f"c{i}" for i in range(wide.shape[1])]
        pa.parquet.write_table(pa.table({name: wide[:, i] for i, name in enumerate(names)}), "t.parquet")
        assert run("embed", "t.parquet", "--html", "m.html").exit_code == 0
        assert list(pages[0]["feature_names"]) == names
        np.testing.assert_array_equal(pages[0]["features"], wide)
        assert "c0" not in pages[0]["columns"]

    def test_few_columns_are_columns_of_the_page(self, run, pages, X):
        pa.parquet.write_table(pa.table({f"c{i}": X[:, i] for i in range(6)}), "t.parquet")
        run("embed", "t.parquet", "--html", "m.html")
        assert "features" not in pages[0]
        np.testing.assert_array_equal(pages[0]["columns"]["c3"], X[:, 3])

    def test_dimensions_of_an_embedding_are_left_out(self, run, pages, X):
        pa.parquet.write_table(pa.table({"e": list(np.tile(X, 5))}), "t.parquet")
        run("embed", "t.parquet", "--html", "m.html")
        assert "features" not in pages[0]

    def test_genes_of_cells(self, run, pages, counts, X):
        counts.obsm["X_pca"] = X
        counts.write_h5ad("t.h5ad")
        run("embed", "t.h5ad", "--html", "m.html")
        assert list(pages[0]["feature_names"]) == list(counts.var_names)
        np.testing.assert_array_equal(pages[0]["features"].toarray(), counts.X.toarray())

    def test_genes_of_a_large_matrix_are_left_out(self, run, pages, counts, X, monkeypatch):
        monkeypatch.setattr("laptsne.cli.reading._MAX_SHOWN", 100)
        counts.obsm["X_pca"] = X
        counts.write_h5ad("t.h5ad")
        assert run("embed", "t.h5ad", "--html", "m.html").exit_code == 0
        assert "features" not in pages[0]


class TestMeasurements:
    @pytest.mark.parametrize("rep", ["X", "X_pca"])
    def test_counts_of_a_gene_are_a_scale_and_batches_are_not(self, run, pages, drawn, counts, X, rep):
        counts.obsm["X_pca"] = X
        counts.write_h5ad("t.h5ad")
        options = ("--rep", rep, "--color", "G0", "--color", "batch", "--html", "m.html", "--plot", "m.png")
        assert run("embed", "t.h5ad", *options).exit_code == 0
        assert pages[0]["continuous"] == {"G0"}
        assert drawn[0][1]["continuous"] is True
        run("embed", "t.h5ad", "--rep", rep, "--color", "batch", "--plot", "m.png")
        assert drawn[1][1]["continuous"] is None

    @pytest.mark.parametrize(
        ("column", "kind", "continuous"),
        [
            ("cylinders", "", True),
            ("cylinders", ":category", False),
            ("flag", "", False),
            ("flag", ":number", True),
            ("batch", "", False),
            ("batch", ":number", True),
            ("day", ":number", False),  # times are a scale in any case
        ],
    )
    def test_what_is_embedded_is_measured_unless_it_is_said(self, run, pages, drawn, X, column, kind, continuous):
        codes = np.arange(N) * 7 % 5
        columns = {"a": X[:, 0], "cylinders": codes, "flag": codes == 1, "batch": codes, "day": ["2024-01-31"] * N}
        pa.parquet.write_table(pa.table(columns), "t.parquet")
        options = ("--drop", "batch", "--color", f"{column}{kind}", "--html", "m.html", "--plot", "m.png")
        result = run("embed", "t.parquet", *options)
        assert result.exit_code == 0, result.stderr
        assert pages[0]["continuous"] == ({column} if continuous else set())
        assert pages[0]["color"] == column
        assert drawn[0][1]["continuous"] == (True if continuous else None)
        if kind == ":category":
            assert set(pages[0]["columns"][column].tolist()) == {"0", "1", "2", "3", "4"}

    def test_what_cannot_be_a_scale_is_refused(self, run, X):
        pa.parquet.write_table(
            pa.table({"a": X[:, 0], "b": X[:, 1], "word": ["x"] * N, "b:number": ["y"] * N}), "t.parquet"
        )
        result = run("embed", "t.parquet", "--color", "word:number")
        assert result.exit_code == 2
        assert "--color word:number: column word does not hold numbers; omit :number." in result.stderr
        assert run("embed", "t.parquet", "--color", "b:number", "--out", "m.csv").exit_code == 0  # a name
        assert "no column word:text to colour by" in run("embed", "t.parquet", "--color", "word:text").stderr

    @pytest.mark.parametrize("rep", ["X", "X_pca"])
    def test_clusters_are_distinguished_by_genes(self, run, counts, X, rep):
        counts.obsm["X_pca"] = X
        counts.write_h5ad("t.h5ad")
        assert run("embed", "t.h5ad", "--rep", rep, "--clusters", 3, "--distinguish", "d.csv").exit_code == 0
        lines = Path("d.csv").read_text().splitlines()
        assert all(line.split(",")[2] in set(counts.var_names) for line in lines[1:])


class TestWordsOfClusters:
    @pytest.fixture
    def texts(self, X, run):
        table = pa.table({"e": list(X), "text": [f"word{i // 40} of {i}" for i in range(N)], "n": np.arange(N) % 7})
        pa.parquet.write_table(table, "t.parquet")

    def test_the_column_is_passed_on(self, run, pages, texts):
        assert run("embed", "t.parquet", "--text", "text", "--clusters", 3, "--html", "m.html").exit_code == 0
        assert pages[0]["text"] == "text"
        assert pages[0]["tree"].n_clusters == 3
        assert run("explore", "t.parquet", "--text", "text", "--clusters", 3, "--no-open").exit_code == 0
        assert pages[1]["text"] == "text"

    def test_a_page_is_written(self, run, texts):
        assert run("embed", "t.parquet", "--text", "text", "--clusters", 3, "--html", "m.html").exit_code == 0
        assert Path("m.html").stat().st_size > 10_000

    def test_nothing_is_named_without_clusters(self, run, pages, texts):
        assert run("embed", "t.parquet", "--text", "text", "--clusters", 1, "--html", "m.html").exit_code == 0
        assert pages[0].get("text") is None

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--text", "txt", "--html", "m.html"), "has no column txt of texts; there is text"),
            (("--text", "n", "--html", "m.html"), "--text n is not a column of texts"),
            (("--text", "text", "--out", "m.csv"), "give --html as well"),
        ],
    )
    def test_what_is_wrong_is_said(self, run, texts, words, message):
        result = run("embed", "t.parquet", *words)
        assert result.exit_code == 2
        assert message in result.stderr


class TestLandmarks:
    def test_sizes_are_those_of_all_rows_and_nothing_is_warned_of(self, run, pages, X):
        pa.parquet.write_table(pa.table({f"c{i}": np.tile(X[:, i], 5) for i in range(6)}), "t.parquet")
        result = run("embed", "t.parquet", "--landmarks", 60, "--clusters", 3, "--html", "m.html", "--out", "m.csv")
        assert result.exit_code == 0
        assert "feature names" not in result.stderr
        assert sum(pages[0]["clusters"].size) == 5 * N
        sizes = [int(line.split()[1]) for line in result.stderr.splitlines()[-4:-1]]
        assert sum(sizes) == 5 * N

    def test_a_column_of_the_table_may_be_called_cluster(self, run, pages, X):
        columns = {f"c{i}": X[:, i] for i in range(6)} | {"cluster": ["a", "b"] * (N // 2)}
        pa.parquet.write_table(pa.table(columns), "t.parquet")
        run("embed", "t.parquet", "--clusters", 3, "--html", "m.html")
        assert "clusters" not in pages[0]


def test_a_folder_of_10x_gives_the_title(run, pages, counts, tmp_path):
    import scipy.io

    folder = tmp_path / "patient7"
    folder.mkdir()
    scipy.io.mmwrite(folder / "matrix.mtx", counts.X.T)
    (folder / "features.tsv").write_text("".join(f"E{i}\tG{i}\tGene Expression\n" for i in range(30)))
    (folder / "barcodes.tsv").write_text("".join(f"C{i}\n" for i in range(N)))
    assert run("embed", "patient7", "--html", "m.html").exit_code == 0
    assert pages[0]["title"] == "patient7"
    assert len(pages[0]["feature_names"]) == 30
