"""Tables as people have them, through the command: the right map, or one line that names the option."""

import csv
import datetime
import gzip
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from laptsne import LaptSNE
from laptsne.cli.commands import app
from laptsne.cli.options import FeatureOptions, InputOptions
from laptsne.cli.runs import prepare

N = 120
ZIPS = [f"{i * 7:05}" for i in range(N)]
IDS = [2**62 + 2**40 * (i * 37 % N) + i for i in range(N)]
DAYS = [datetime.date(2024, 1, 31) + datetime.timedelta(days=i * 3 % 50) for i in range(N)]


@pytest.fixture
def X(blobs):
    return blobs[0][:, :4]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        return result

    return invoke


@pytest.fixture
def embed(run):
    """Embed a file and return the result, with the coordinates if there is a map."""

    def invoke(source, *words):
        return run("embed", source, "--iterations", 30, "--perplexity", 10, "--force", "--out", "map.npy", *words)

    return invoke


def is_map_of(X):
    model = LaptSNE(max_iter=30, perplexity=10, random_state=0)
    return np.array_equal(np.load("map.npy"), model.fit_transform(X))


def write_csv(name, columns, delimiter=","):
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_parquet(name, columns):
    pa.parquet.write_table(pa.table(columns), name)


def measured(X, **others):
    return {name: X[:, i] for i, name in enumerate("abcd")} | others


def rows_of(path):
    return list(csv.DictReader(Path(path).open(encoding="utf-8", newline="")))


WRITERS = pytest.mark.parametrize(("write", "name"), [(write_csv, "t.csv"), (write_parquet, "t.parquet")])


@WRITERS
@pytest.mark.parametrize(
    ("values", "reason"),
    [(ZIPS, ""), (IDS, "count or identify the rows"), ([f"word {i}" for i in range(N)], "hold text"), (DAYS, "hold ")],
    ids=["zeros", "ids", "text", "dates"],
)
class TestWhatNamesRows:
    def test_it_is_not_embedded_and_comes_back_as_it_came(self, embed, run, X, write, name, values, reason):
        write(name, measured(X, key=values, kind=["p", "q"] * (N // 2)))
        result = embed(name, "--label", "kind")
        assert result.exit_code == 0, result.stderr
        assert is_map_of(X)
        assert "key" in result.stderr
        assert reason in result.stderr
        assert run("embed", name, "--iterations", 5, "--out", "m.csv").exit_code == 0
        assert [row["key"] for row in rows_of("m.csv")] == [str(value) for value in values]
        assert run("embed", name, "--iterations", 5, "--out", "m.parquet").exit_code == 0
        written = pa.parquet.read_table("m.parquet")["key"].to_pylist()
        # Dates in text are text.
        assert written == ([str(value) for value in values] if write is write_csv and values is DAYS else values)

    def test_transform_and_explorer_have_it_as_well(self, run, X, write, name, values, reason, monkeypatch):
        pages = []

        def explorer(Y, out, **options):
            pages.append(options)
            Path(out).touch()

        monkeypatch.setattr("laptsne.plotting.explorer", explorer)
        write(name, measured(X, key=values))
        fit = run("embed", name, "--clusters", 1, "--iterations", 5, "--html", "m.html", "--save", "m.laptsne")
        assert fit.exit_code == 0, fit.stderr
        shown = pages[0]["columns"]["key"]
        shown = shown.astype("datetime64[D]") if values is DAYS else shown  # a scale of times
        assert [str(value) for value in shown.tolist()] == [str(value) for value in values]
        assert run("transform", "m.laptsne", name, "--out", "placed.csv").exit_code == 0
        assert [row["key"] for row in rows_of("placed.csv")] == [str(value) for value in values]


class TestIdentifiers:
    def test_they_are_embedded_if_named(self, embed, X):
        write_parquet("t.parquet", measured(X, key=IDS))
        assert embed("t.parquet", "--column", "*", "--column", "key", "--scale", "none").exit_code == 0
        assert is_map_of(np.column_stack([X, np.array(IDS, dtype=np.float64)]))

    @pytest.mark.parametrize("write", [write_csv, write_parquet])
    def test_large_counts_are_data_even_where_some_are_missing(self, embed, X, write):
        counts = [2**55 if i % 3 == 0 else i * 10**6 for i in range(N)]
        columns = measured(X, counts=counts)
        write("t.parquet" if write is write_parquet else "t.csv", columns)
        name = "t.parquet" if write is write_parquet else "t.csv"
        assert embed(name, "--scale", "none").exit_code == 0
        assert is_map_of(np.column_stack([X, counts]))
        columns["counts"] = [None, *counts[1:]]
        write(name, columns)
        result = embed(name)
        assert result.exit_code == 2
        assert "by column: counts (1)" in result.stderr

    @pytest.mark.parametrize("name", ["id", "userId", "patient_id", "Cell ID", "zipcode", "ean"])
    def test_names_that_say_so(self, embed, X, name):
        write_csv("t.csv", measured(X, **{name: [i * i % 97 for i in range(N)]}))
        assert f"count or identify the rows: {name}" in embed("t.csv").stderr
        assert is_map_of(X)

    @pytest.mark.parametrize("name", ["humid", "grid", "width", "ideal", "Oxide"])
    def test_names_that_only_look_so(self, embed, X, name):
        values = [i * i % 97 for i in range(N)]
        write_csv("t.csv", measured(X, **{name: values}))
        embed("t.csv")
        assert is_map_of(np.column_stack([X, values]))


class TestBooleans:
    @WRITERS
    def test_they_are_0_and_1(self, embed, X, write, name):
        flags = [i % 3 == 0 for i in range(N)]
        write(name, measured(X, flag=flags))
        embed(name)
        assert is_map_of(np.column_stack([X, flags]))


class TestMissingValues:
    @pytest.fixture
    def holes(self, X):
        X = X.copy()
        X[3, 0] = X[5:8, 2] = np.nan
        return X

    @WRITERS
    def test_all_columns_are_named_with_counts(self, embed, holes, write, name):
        columns = measured(holes)
        write(name, {key: [None if np.isnan(v) else v for v in values] for key, values in columns.items()})
        result = embed(name)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 2  # what is embedded, and the error
        row = 5 if write is write_csv else 4
        assert f"missing in 4 of 120 rows, the first in row {row}; by column: a (1), c (3)." in result.stderr
        assert embed(name, "--impute", "median").exit_code == 0
        assert is_map_of(np.where(np.isnan(holes), np.nanmedian(holes, axis=0), holes))
        result = embed(name, "--impute", "drop")
        assert "left out, since values are missing: 4 of 120 rows" in result.stderr
        assert is_map_of(holes[~np.isnan(holes).any(axis=1)])
        assert embed(name, "--drop", "[ac]").exit_code == 0
        assert is_map_of(holes[:, [1, 3]])

    def test_rows_stay_with_their_columns(self, run, holes):
        columns = measured(holes, note=[f"n{i}" for i in range(N)])
        write_csv("t.csv", {key: ["" if str(v) == "nan" else v for v in values] for key, values in columns.items()})
        run("embed", "t.csv", "--iterations", 5, "--impute", "drop", "--out", "m.csv")
        kept = [f"n{i}" for i in range(N) if i not in (3, 5, 6, 7)]
        assert [row["note"] for row in rows_of("m.csv")] == kept

    def test_what_cannot_be_filled_is_said(self, embed, holes):
        holes[:, 1] = np.nan
        np.save("t.npy", holes)
        assert "column 2 has no values" in embed("t.npy", "--impute", "median").stderr
        assert "missing in every row" in embed("t.npy", "--impute", "drop").stderr
        assert "column 1 (1), column 2 (120), column 3 (3)" in embed("t.npy").stderr


class TestScales:
    def test_they_are_warned_of_and_can_be_changed(self, embed, X):
        Z = X * [1e5, 1e-4, 1, 1]
        write_csv("t.csv", measured(Z))
        result = embed("t.csv")
        assert result.exit_code == 0
        (warning,) = [line for line in result.stderr.splitlines() if line.startswith("laptsne: ")]
        assert "the widest is a (standard deviation" in warning
        assert "the narrowest b (standard deviation" in warning
        assert "--scale standard" in warning
        assert "variances" in embed("t.csv", "--quiet").stderr
        result = embed("t.csv", "--scale", "standard")
        assert "variances" not in result.stderr
        assert is_map_of(StandardScaler().fit_transform(Z))
        result = embed("t.csv", "--scale", "robust")
        low, middle, high = np.percentile(Z, [25, 50, 75], axis=0)
        assert is_map_of((Z - middle) / (high - low))
        result = embed("t.csv", "--scale", "none")
        assert "variances" not in result.stderr
        assert is_map_of(Z)

    def test_equal_scales_and_arrays_are_not_warned_of(self, embed, X):
        write_csv("t.csv", measured(X * [1, 1, 1, 2]))
        assert "variances" not in embed("t.csv").stderr
        np.save("t.npy", X * [1, 1, 1, 1e5])  # such as pixels, which share a unit
        assert "variances" not in embed("t.npy").stderr

    @pytest.mark.parametrize("name", ["t.npy", "t.mtx"])
    def test_components_are_those_of_scikit_learn(self, X, name, tmp_path):
        np.save(tmp_path / "t.npy", X + 5)
        scipy.io.mmwrite(tmp_path / "t.mtx", scipy.sparse.coo_matrix(X + 5), precision=17)
        _, found, _ = prepare(InputOptions(str(tmp_path / name)), FeatureOptions(pca=2))
        np.testing.assert_allclose(np.abs(found), np.abs(PCA(2).fit_transform(X)), rtol=1e-6)

    def test_logarithm_and_components(self, embed, X):
        Z = np.abs(X)
        write_csv("t.csv", measured(Z))
        assert embed("t.csv", "--log1p").exit_code == 0
        assert is_map_of(np.log1p(Z))
        write_csv("t.csv", measured(np.abs(X * [1, 1, 1, 100])))  # a user who takes logarithms has thought of scales
        assert "variances" in embed("t.csv").stderr
        assert "variances" not in embed("t.csv", "--log1p").stderr
        write_csv("t.csv", measured(Z))
        assert embed("t.csv", "--log1p", "--scale", "standard", "--pca", 2).exit_code == 0
        scaled = StandardScaler().fit_transform(np.log1p(Z))
        pca = PCA(2).fit(scaled)
        expected = pca.transform(scaled)
        np.testing.assert_allclose(np.load("map.npy"), _map(expected), atol=1e-3)
        assert "--pca 5 is too many: 120 rows of 4 features" in embed("t.csv", "--pca", 5).stderr
        write_csv("t.csv", measured(X))
        assert "log1p needs values above -1" in embed("t.csv", "--log1p").stderr


def _map(X):
    return LaptSNE(max_iter=30, perplexity=10, random_state=0).fit_transform(X)


def _lists(X, kind):
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    return pa.array(list(X), pa.large_list(pa.float32()) if kind == "large" else pa.list_(pa.float32()))


class TestLists:
    @pytest.mark.parametrize("kind", ["list", "large", "fixed"])
    @pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow"])
    def test_one_column_is_taken_by_itself(self, embed, X, kind, name):
        Z = X.astype(np.float32)
        table = pa.table({"price": np.arange(N) * 1.5, "embedding": _lists(Z, kind), "title": ZIPS})
        (pa.parquet.write_table if name.endswith("parquet") else pa.feather.write_feather)(table, name)
        result = embed(name)
        assert result.exit_code == 0, result.stderr
        assert "embedded: embedding (4 values per row)" in result.stderr
        assert "not embedded: price" in result.stderr
        assert is_map_of(Z)
        assert np.load("map.npy").dtype == np.float32

    def test_in_several_chunks(self, embed, X):
        table = pa.table({"e": _lists(X.astype(np.float32), "list")})
        pa.parquet.write_table(table, "t.parquet", row_group_size=50)
        embed("t.parquet")
        assert is_map_of(X.astype(np.float32))

    def test_one_is_chosen_by_name_or_pattern(self, embed, X):
        write_parquet("t.parquet", {"left": list(X), "right": list(X[:, :2] + 1), "n": X[:, 0]})
        for words, names in (((), "left, right"), (("--column", "?*t", "--column", "n"), "left, right, n")):
            result = embed("t.parquet", *words)
            assert result.exit_code == 2
            assert f"of {names}, one column of lists can be embedded; use --column" in result.stderr
        result = embed("t.parquet", "--column", "right")
        assert is_map_of(X[:, :2] + 1)
        assert "left out, since they hold lists: left" in result.stderr
        embed("t.parquet", "--drop", "left")
        assert is_map_of(X[:, :2] + 1)
        result = embed("t.parquet", "--column", "up*")
        assert result.exit_code == 2
        assert "has no column of numbers up*; its columns are left, right, n" in result.stderr

    def test_a_row_without_a_list(self, embed, X):
        write_parquet("t.parquet", {"e": [None, *X[1:].tolist()]})
        assert "missing in 1 of 120 rows, the first in row 1; by column: e (1)" in embed("t.parquet").stderr
        embed("t.parquet", "--impute", "drop")
        assert is_map_of(X[1:])

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            ([[1.0, 2], [3.0]], "column e has lists of 1 to 2 values; give lists of one length"),
            ([[], []], "column e has empty lists"),
            ([[1.0, np.inf], [3.0, 4]], "column 2 is inf in row 1"),
        ],
    )
    def test_what_is_wrong_is_said(self, embed, rows, said):
        write_parquet("t.parquet", {"e": pa.array(rows, pa.list_(pa.float64()))})
        assert said in embed("t.parquet").stderr

    def test_transform_takes_the_column_by_its_name(self, run, X):
        write_parquet("t.parquet", {"e": list(X), "n": X[:, 0]})
        run("embed", "t.parquet", "--iterations", 30, "--out", "m.npy", "--save", "m.laptsne")
        write_parquet("new.parquet", {"n": X[:5, 1], "other": list(X[:5]), "e": list(X[:5])})
        assert run("transform", "m.laptsne", "new.parquet", "--out", "p.npy").exit_code == 0
        np.testing.assert_allclose(np.load("p.npy"), np.load("m.npy")[:5])
        write_parquet("new.parquet", {"e": list(X[:5, :3])})
        result = run("transform", "m.laptsne", "new.parquet")
        assert "X has 3 features, but the map was fitted to 4" in result.stderr


class TestDecimalCommas:
    @pytest.mark.parametrize("delimiter", [";", "\t", ","])
    def test_they_are_recognised_and_said(self, embed, X, delimiter):
        spelled = {name: [str(v).replace(".", ",") for v in values] for name, values in measured(X).items()}
        write_csv("t.csv", spelled, delimiter)
        result = embed("t.csv")
        assert "read with decimal commas: a, b, c, d" in result.stderr
        assert is_map_of(X)

    def test_with_points_among_thousands(self, embed, X):
        spelled = [f"{1000 * v:,.2f}".translate(str.maketrans(",.", ".,")) for v in X[:, 0]]
        write_csv("t.csv", {"a": spelled, "b": X[:, 1].tolist()}, ";")
        embed("t.csv", "--scale", "none")
        assert is_map_of(np.column_stack([np.round(1000 * X[:, 0], 2), X[:, 1]]))

    @pytest.mark.parametrize("delimiter", [";", ","])
    def test_what_may_be_thousands_is_not_embedded_silently(self, embed, X, delimiter):
        write_csv("t.csv", {"a": X[:, 0], "b": [f"{i + 1},234" for i in range(N)]}, delimiter)
        result = embed("t.csv")
        assert "not embedded, since they hold text: b" in result.stderr
        assert is_map_of(X[:, :1])

    def test_thousands_among_smaller_numbers_are_an_error(self, embed, X):
        write_csv("t.csv", {"a": X[:, 0], "b": [f"{i},234" if i % 3 == 2 else f"{i}" for i in range(N)]})
        result = embed("t.csv")
        assert result.exit_code == 2
        assert "column b is not all numbers: row 4 has '2,234'" in result.stderr

    def test_no_thousands_begin_with_zero(self, embed):
        write_csv("t.csv", {"a": [f"0,{i:03}" for i in range(N)], "b": ["1,5", "2"] * (N // 2)}, ";")
        assert "read with decimal commas: a, b" in embed("t.csv").stderr
        assert is_map_of(np.column_stack([np.arange(N) / 1000, [1.5, 2] * (N // 2)]))

    def test_without_quotes_the_error_says_so(self, embed):
        Path("t.csv").write_text("a,b\n1,5,2,5\n3,5,4,5\n")
        assert "separate the columns by semicolons if the numbers have decimal commas" in embed("t.csv").stderr


class TestTenX:
    @pytest.fixture
    def counts(self, rng):
        return rng.poisson(2.0, size=(N, 30))

    @staticmethod
    def write(folder, counts, prefix="", genes="features", kinds=None):
        folder.mkdir(exist_ok=True)
        scipy.io.mmwrite(folder / f"{prefix}matrix.mtx", scipy.sparse.coo_matrix(counts.T))
        names = [f"ENSG{i}\tG{max(i, 1)}\t{kinds[i] if kinds else 'Gene Expression'}\n" for i in range(30)]
        (folder / f"{prefix}{genes}.tsv").write_text("".join(names))
        with gzip.open(folder / f"{prefix}barcodes.tsv.gz", "wt") as file:
            file.writelines(f"CELL{i}-1\n" for i in range(N))

    def test_a_folder_is_cells_by_genes_with_names(self, embed, run, counts, tmp_path):
        self.write(tmp_path / "sample", counts)
        result = embed("sample")
        assert "10x: 120 cells x 30 genes" in result.stderr
        assert is_map_of(scipy.sparse.csr_matrix(counts.astype(float)))
        options = ("--iterations", 5, "--log1p", "--pca", 5, "--color", "G7", "--out", "m.csv", "--save", "m.laptsne")
        assert run("embed", "sample/matrix.mtx", *options).exit_code == 0
        rows = rows_of("m.csv")
        assert [row["barcode"] for row in rows] == [f"CELL{i}-1" for i in range(N)]
        assert [float(row["G7"]) for row in rows] == counts[:, 7].tolist()
        assert run("transform", "m.laptsne", "sample", "--out", "p.csv").exit_code == 0
        for row, placed in zip(rows, rows_of("p.csv"), strict=True):
            assert float(row["x"]) == pytest.approx(float(placed["x"]), rel=1e-4)

    def test_genes_are_chosen_by_name(self, embed, counts, tmp_path):
        self.write(tmp_path, counts, genes="genes", prefix="GSM1_")
        assert embed("GSM1_matrix.mtx", "--column", "G2?").exit_code == 0
        assert is_map_of(scipy.sparse.csr_matrix(counts[:, 20:].astype(float)))
        assert embed("GSM1_matrix.mtx", "--drop", "G1 (ENSG0)").exit_code == 0  # two genes are called G1
        assert is_map_of(scipy.sparse.csr_matrix(counts[:, 1:].astype(float)))
        message = embed("GSM1_matrix.mtx", "--color", "G77").stderr
        assert "no column G77 to colour by; there is G7" in message

    def test_other_features_are_left_out(self, embed, counts, tmp_path):
        self.write(tmp_path / "s", counts, kinds=["Gene Expression"] * 25 + ["Antibody Capture"] * 5)
        assert "left out, since they are not genes: 5 features" in embed("s").stderr
        assert is_map_of(scipy.sparse.csr_matrix(counts[:, :25].astype(float)))

    def test_what_is_wrong_is_said(self, embed, counts, tmp_path):
        (tmp_path / "empty").mkdir()
        assert "empty is a folder without matrix.mtx" in embed("empty").stderr
        self.write(tmp_path / "s", counts)
        (tmp_path / "s" / "features.tsv").write_text("ENSG1\tG1\n")
        assert "is a matrix of 30 x 120, but there are names of 1 genes and 120 cells" in embed("s").stderr
        self.write(tmp_path / "s", counts)
        assert "--landmarks needs dense data" in embed("s", "--landmarks", 50).stderr
        assert embed("s", "--scale", "robust").exit_code == 0


class TestTranspose:
    def test_columns_become_rows_with_their_names(self, embed, run, X):
        samples = {f"s{i}": row for i, row in enumerate(X)}
        write_csv("t.csv", {"gene": list("abcd")} | samples)
        assert "transposed: 120 points with 4 features" in embed("t.csv", "--transpose").stderr
        assert is_map_of(X)
        run("embed", "t.csv", "--transpose", "--iterations", 5, "--out", "m.csv", "--save", "m.laptsne")
        assert [row["name"] for row in rows_of("m.csv")] == list(samples)
        assert list(LaptSNE.load("m.laptsne").feature_names_in_) == list("abcd")

    def test_an_array(self, embed, X):
        np.save("t.npy", X.T)
        embed("t.npy", "--transpose")
        assert is_map_of(X)


class TestH5ad:
    @pytest.fixture
    def cells(self, X, run):
        anndata = pytest.importorskip("anndata")
        cells = anndata.AnnData(scipy.sparse.csr_matrix(np.abs(X)))
        cells.var_names = ["CD3E", "NKG7", "MS4A1", "LYZ"]
        raw = anndata.AnnData(cells.X * 2)
        raw.var_names = ["CD3E", "NKG7", "MS4A1", "FOXP3"]
        cells.raw = raw
        cells.obsm["X_pca"], cells.obsm["X_other"] = X + 1, X[:, :3]
        cells.write_h5ad("t.h5ad")
        return cells

    def test_the_representation_is_chosen(self, embed, cells, X):
        embed("t.h5ad")
        assert is_map_of(X + 1)
        assert "embedded: obsm['X_other'], 3 features" in embed("t.h5ad", "--rep", "X_other").stderr
        assert is_map_of(X[:, :3])
        assert "embedded: X, 4 features" in embed("t.h5ad", "--rep", "X").stderr
        assert is_map_of(scipy.sparse.csr_matrix(np.abs(X)))
        result = embed("t.h5ad", "--rep", "X_umap")
        assert "has no obsm['X_umap']; give --rep X, or one of X_other, X_pca." in result.stderr
        np.save("t.npy", X)
        assert "--rep X_pca names an array of an .h5ad file" in embed("t.npy", "--rep", "X_pca").stderr

    def test_genes_colour_the_map(self, run, cells, X, monkeypatch):
        drawn = []
        scatter = __import__("laptsne.plotting", fromlist=["scatter"]).scatter
        monkeypatch.setattr(
            "laptsne.plotting.scatter", lambda Y, labels, **options: drawn.append(labels) or scatter(Y, labels)
        )
        options = ("--iterations", 5, "--color", "LYZ", "--color", "NKG7", "--color", "FOXP3", "--out", "m.csv")
        options = (*options, "--plot", "M.PNG")
        assert run("embed", "t.h5ad", *options).exit_code == 0
        np.testing.assert_allclose(drawn[0], np.abs(X)[:, 3])
        np.testing.assert_allclose([float(row["NKG7"]) for row in rows_of("m.csv")], np.abs(X)[:, 1])
        assert (
            "no column LYS to colour by; there is LYZ" in run("embed", "t.h5ad", "--rep", "X", "--color", "LYS").stderr
        )

    def test_transform_takes_the_same_representation(self, run, cells, X):
        run("embed", "t.h5ad", "--rep", "X_other", "--iterations", 20, "--out", "m.npy", "--save", "m.laptsne")
        assert run("transform", "m.laptsne", "t.h5ad", "--out", "p.npy").exit_code == 0
        np.testing.assert_allclose(np.load("p.npy"), np.load("m.npy"))


class TestTablesOfManyKinds:
    """Tables as they are published or exported: the columns that are embedded, and what is said of the others."""

    @pytest.fixture
    def rng(self):
        return np.random.default_rng(0)

    @pytest.fixture
    def read(self, run, capsys):
        """Read a file as the command does; return the embedded columns and what is said."""

        def invoke(name, **options):
            dataset, X, _ = prepare(InputOptions(name), FeatureOptions(**options))
            assert np.isfinite(X).all()
            return list(dataset.features), "\n".join(dataset.notes)

        return invoke

    def test_penguins(self, read, rng):
        year = rng.choice([2007, 2008, 2009], N)
        columns = {
            "studyName": [f"PAL0{y - 2000}{y - 1999:02}" for y in year],
            "Sample Number": [*range(1, 71), *range(1, 51)],
            "Species": ["Adelie Penguin (Pygoscelis adeliae)", "Gentoo penguin (Pygoscelis papua)"] * (N // 2),
            "Individual ID": [f"N{i // 2}A{i % 2}" for i in range(N)],
            "Date Egg": [f"{y}-11-{d:02}" for y, d in zip(year, rng.integers(1, 30, N), strict=True)],
            "Culmen Length (mm)": rng.normal(44, 5, N).round(1),
            "Body Mass (g)": rng.normal(84, 12, N).round() * 50,
            "Sex": rng.choice(["MALE", "FEMALE", "", "."], N),
            "Comments": ["Nest never observed with full clutch."] + [""] * (N - 1),
            "year": year,
        }
        write_csv("penguins_raw.csv", columns)
        features, notes = read("penguins_raw.csv")
        assert features == ["Culmen Length (mm)", "Body Mass (g)"]
        assert "label column: Species" in notes
        assert "dates or times: Date Egg, year" in notes
        assert "identify the rows: Sample Number" in notes
        assert "to embed these numbers as well: --column '*' --column 'Sample Number' --column year" in notes

    def test_cars(self, embed, read, rng):
        columns = {
            "Name": [f"model {i}" for i in range(N)],
            "Miles_per_Gallon": ["" if i % 20 == 3 else i % 31 + 9.5 for i in range(N)],
            "Cylinders": rng.choice([4, 6, 8], N),
            "Year": [f"19{y}-01-01" for y in rng.integers(70, 83, N)],
            "Origin": rng.choice(["USA", "Europe"], N),
        }
        write_csv("cars.csv", columns)
        assert "by column: Miles_per_Gallon (6). Give --impute median" in embed("cars.csv").stderr
        features, notes = read("cars.csv", impute="median")
        assert features == ["Miles_per_Gallon", "Cylinders"]
        assert "dates or times: Year" in notes

    def test_weather(self, read, rng):
        days = [(datetime.date(2012, 1, 1) + datetime.timedelta(days=i)).strftime("%Y/%m/%d") for i in range(N)]
        columns = {"date": days, "day": range(1, N + 1), "temp_max": rng.normal(15, 8, N).round(1)}
        write_csv("weather.csv", columns | {"wind": rng.gamma(3, 1, N).round(1), "weather": ["sun", "rain"] * (N // 2)})
        features, notes = read("weather.csv")
        assert features == ["temp_max", "wind"]
        assert "dates or times: date, day" in notes

    def test_prices(self, read, rng):
        prices = 1500 + rng.normal(size=(N, 2)).cumsum(axis=0) * 20
        columns = {"Date": [f"{i % 12 + 1:02}/{i % 28 + 1:02}/2023" for i in range(N)]}
        columns |= {name: [f"${price:,.2f}" for price in prices[:, i]] for i, name in enumerate(("AAPL", "MSFT"))}
        write_csv("stocks.csv", columns | {"Change": [f"{share:.1f}%" for share in rng.normal(size=N)]})
        features, notes = read("stocks.csv")
        assert features == ["AAPL", "MSFT", "Change"]
        assert "read without $ and with commas between thousands: AAPL, MSFT" in notes
        assert "read without %: Change" in notes
        assert "dates or times: Date" in notes

    def test_excel_in_german(self, read, rng):
        sizes = [f"{size:.2f}".replace(".", ",") for size in rng.normal(80, 20, N)]
        lines = ["Straße;Größe (m²);Preis"] + [f"Gräfstraße {i};{size};1.{i:03},50 €" for i, size in enumerate(sizes)]
        Path("excel.csv").write_bytes("\r\n".join(lines).encode("cp1252"))
        features, notes = read("excel.csv")
        assert features == ["Größe (m²)", "Preis"]
        assert "read as cp1252 (guessed" in notes

    @pytest.mark.parametrize("name", ["Kunden-Nr.", "Nr.", "No.", "Kundennummer", "#"])
    def test_numbers_of_rows_by_their_abbreviations(self, read, rng, name):
        write_csv("t.csv", {name: 10_000 + rng.permutation(N), "no_of_rooms": rng.integers(1, 9, N)})
        features, notes = read("t.csv")
        assert features == ["no_of_rooms"]
        assert f"identify the rows: {name}" in notes

    def test_survey(self, read, embed, rng):
        scale, words = rng.integers(1, 6, (N, 3)), ["Disagree", "Neutral", "Agree"]
        columns = {"Timestamp": [f"2024/03/{i % 28 + 1:02} {i % 12 + 1}:{i % 60:02}:11 PM GMT+1" for i in range(N)]}
        columns |= {f"Q{i + 1}. How much, if at all?": scale[:, i] for i in range(3)}
        columns |= {
            "Overall": [words[i % 3] for i in range(N)],
            "Any comments?": ["It was, well, long.", ""] * (N // 2),
        }
        write_csv("survey.csv", columns)
        features, notes = read("survey.csv")
        assert features == [f"Q{i + 1}. How much, if at all?" for i in range(3)]
        assert "dates or times: Timestamp" in notes
        write_csv("words.csv", dict.fromkeys(("Q1", "Q2"), columns["Overall"]))
        result = embed("words.csv")
        assert result.exit_code == 2
        assert (
            "no column of numbers to embed: not embedded, since they hold text: Q1, Q2. Write categories"
            in result.stderr
        )

    def test_one_hot(self, read, rng):
        colour, size = rng.integers(0, 3, N), rng.integers(0, 2, N)
        columns = {f"colour_{i}": (colour == i).astype(int) for i in range(3)} | {
            f"is_{i}": size == i for i in range(2)
        }
        write_csv("onehot.csv", columns | {"answer_no": size, "has_id": size})
        assert read("onehot.csv")[0] == [*columns, "answer_no", "has_id"]

    def test_copies_of_few_rows_are_no_cluster_to_be_named(self, run, monkeypatch):
        drawn, pages = [], []
        monkeypatch.setattr("laptsne.cli.outputs.save_plot", lambda Y, panels, *rest: drawn.extend(panels))
        monkeypatch.setattr("laptsne.plotting.explorer", lambda Y, out, columns, **rest: pages.extend(columns))
        rng = np.random.default_rng(0)
        rows = np.vstack([rng.normal(size=(100, 4)), np.tile(rng.normal(size=(5, 4)) + 100, (8, 1))])
        write_csv("t.csv", measured(rows))
        result = run("embed", "t.csv", "--iterations", 5, "--plot", "m.png", "--html", "m.html", "--out", "m.csv")
        assert "clusters     none" in result.stderr
        assert {row["cluster"] for row in rows_of("m.csv")} == {"0", "-1"}
        assert drawn == ["no clusters"]
        assert pages == ["a", "b", "c", "d"]

    def test_a_third_is_missing(self, read, embed, rng):
        holes = {f"v{i}": ["NA" if rng.random() < 0.3 else f"{v:.3f}" for v in rng.normal(size=N)] for i in range(5)}
        write_csv("missing.csv", holes)
        assert "values are missing in" in embed("missing.csv").stderr
        assert read("missing.csv", impute="median")[0] == list(holes)
        assert "of the values are medians of their columns" in embed("missing.csv", "--impute", "median").stderr
        write_csv(
            "missing.csv", holes | {"v0": ["", *range(1, N)]} | {f"v{i}": range(0, 7 * N, 7) for i in range(1, 5)}
        )
        assert "medians" not in embed("missing.csv", "--impute", "median", "--column", "v*").stderr

    def test_genes(self, read, rng):
        genes = {f"GENE{i}": counts for i, counts in enumerate(rng.poisson(2, (200, N)))}
        write_csv(
            "genes.csv", {"cell": [f"AAAC{i:04}-1" for i in range(N)], "celltype": ["B", "T"] * (N // 2), **genes}
        )
        features, notes = read("genes.csv")
        assert features == list(genes)
        assert "GENE10, GENE11 and 188 more" in notes

    def test_sensors(self, read, rng):
        start = datetime.datetime(2024, 5, 1)
        times = [start + datetime.timedelta(seconds=30 * i) for i in range(N)]
        columns = {"time": [f"{time.isoformat()}.000Z" for time in times], "elapsed": range(0, 30 * N, 30)}
        columns |= {"epoch": rng.integers(1.7e9, 1.8e9, N), "sensor_id": rng.integers(1, 5, N)}
        columns |= {"temperature": rng.normal(20, 3, N).round(2), "status": ["OK"] * N}
        write_csv("sensors.csv", columns)
        features, notes = read("sensors.csv")
        assert features == ["temperature"]
        assert "dates or times: time, epoch" in notes
        assert "identify the rows: elapsed, sensor_id" in notes

    def test_a_single_column_is_warned_of(self, embed, X):
        write_csv("t.csv", {"name": [f"n{i}" for i in range(N)], "a": X[:, 0]})
        result = embed("t.csv")
        assert "only one column is embedded, a: the map shows no more than a histogram" in result.stderr
        write_csv("t.csv", {"a": X[:, 0], "b": X[:, 1]})
        assert "only one column" not in embed("t.csv").stderr

    def test_workbooks(self, read, embed, X):
        openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl")
        book = openpyxl.Workbook()
        book.active.title = "Maße"
        book.active.append(["Länge", "Breite", "Tag", "Kürzel", None])
        for i in range(N):
            book.active.append([X[i, 0], X[i, 1], DAYS[i], f"0{i}"])
            book.active.append([])
        book.active["E1"] = "leer"
        book.create_sheet("more")
        book.save("t.xlsx")
        features, notes = read("t.xlsx")
        assert features == ["Länge", "Breite"]
        assert "sheet: Maße, the first of 2" in notes
        assert "dates or times: Tag" in notes
        embed("t.xlsx")
        assert is_map_of(X[:, :2])
        Path("t.xlsx").write_bytes(Path("t.xlsx").read_bytes()[:2000])
        assert "t.xlsx is not an Excel workbook, or is damaged" in embed("t.xlsx").stderr

    def test_workbooks_without_the_library(self, embed, monkeypatch):
        monkeypatch.setitem(sys.modules, "openpyxl", None)
        Path("t.xlsx").write_bytes(b"PK")
        assert 'needs openpyxl, which is missing; pip install "laptsne[cli]"' in embed("t.xlsx").stderr
