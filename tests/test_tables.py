import gzip
import io
import os
import stat
import sys
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from laptsne._runtime.atomic_file import atomic_write
from laptsne.cli.tables import Content, InputError, assigned, check_targets, read, write


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a file into a folder of its own, and return its name."""
    monkeypatch.chdir(tmp_path)

    def write_file(name, content):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write_file


def refusal(call, *arguments, **options):
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


class TestText:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_columns_by_name_whatever_the_delimiter(self, put, delimiter):
        content = read(put("x.csv", "a,b c,k\n1,2.5,x\n\n3,-4e2,y\n".replace(",", delimiter)))
        assert list(content.columns) == ["a", "b c", "k"]
        assert content.columns["b c"].tolist() == [2.5, -400]
        assert content.columns["k"].tolist() == ["x", "y"]
        assert content.n_rows == 2

    def test_tabs_are_meant_in_tsv_even_among_commas(self, put):
        assert list(read(put("x.tsv", "a,1,2,3\tb\n1\t2\n")).columns) == ["a,1,2,3", "b"]

    def test_quotes_byte_order_mark_and_line_ends(self, put):
        content = read(put("x.csv", '\ufeffa,k\r\n1,"one, or\r\ntwo"\r\n2,"say ""x"""\r\n'))
        assert content.columns["a"].tolist() == [1, 2]
        assert content.columns["k"].tolist() == ["one, or\r\ntwo", 'say "x"']

    def test_gzip_by_its_content(self, put):
        packed = gzip.compress(b"a,b\n1,2\n3,4\n")
        assert read(put("x.csv.gz", packed)).columns["b"].tolist() == [2, 4]
        assert read(put("x.csv", packed)).columns["b"].tolist() == [2, 4]
        assert "damaged" in refusal(read, put("x.tsv.gz", packed[:-9]))

    def test_truth_and_missing_values_are_numbers(self, put):
        columns = read(put("x.csv", "a,b,c\nTrue,NA,\nfalse,2,\nTRUE, nan ,\n")).columns
        assert columns["a"].tolist() == [1, 0, 1]
        np.testing.assert_equal(columns["b"], [np.nan, 2, np.nan])
        assert np.isnan(columns["c"]).all()

    def test_text_after_many_numbers_leaves_them_as_they_were(self, put, monkeypatch):
        monkeypatch.setattr("laptsne.cli.tables.text._CELLS", 100)
        rows = [str(i) for i in range(300)] + ["unknown"]
        column = read(put("x.csv", "k\n" + "\n".join(rows) + "\n")).columns["k"]
        assert column.tolist() == rows

    def test_a_column_without_a_name_is_named(self, put):
        assert list(read(put("x.csv", ",a,\n0,1,\n1,2,\n")).columns) == ["Unnamed: 0", "a", "Unnamed: 2"]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is empty"),
            (b"a,b\n", "no rows below its header"),
            (b"\n\n", "no rows"),
            (b"a,b\n1,2\n3\n", "row 3 has 1 values, the header 2"),
            (b"a,a\n1,2\n3,4\n", "two columns 'a'"),
            (b"5.1,3.5,x\n4.9,3.0,y\n", "the first line holds numbers (5.1)"),
            (b"5,5,3\n4,3,3\n", "the first line holds numbers (5)"),
            (b"\xff\xfe\x00", "UTF-8"),
            (b'a,b\n1,"' + b"x" * 200_000, "not a table"),
        ],
    )
    def test_what_is_wrong_is_said(self, put, content, message):
        assert message in refusal(read, put("x.csv", content))

    def test_numbers_may_be_names(self, put):
        assert list(read(put("x.csv", "0,1,-2\n4,5,6\n")).columns) == ["0", "1", "-2"]

    def test_standard_input(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"a,b\n1,2\n3,4\n"))))
        assert read("-").columns["b"].tolist() == [2, 4]


class TestParquet:
    @pytest.fixture
    def arrow(self):
        return pytest.importorskip("pyarrow")

    @pytest.fixture
    def save(self, arrow, tmp_path):
        import pyarrow.parquet

        def write_table(columns, names=None):
            table = arrow.table(columns, names=names) if names else arrow.table(columns)
            pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
            return str(tmp_path / "x.parquet")

        return write_table

    def test_types(self, arrow, save):
        from datetime import date
        from decimal import Decimal

        columns = {
            "whole": arrow.array([1, None], arrow.int8()),
            "decimal": arrow.array([Decimal("1.5"), Decimal("2.5")]),
            "truth": arrow.array([True, False]),
            "category": arrow.array(["x", None]).dictionary_encode(),
            "day": arrow.array([date(2020, 1, 2), date(2021, 1, 2)]),
            "lists": arrow.array([[1, 2], [3]]),
            "nothing": arrow.nulls(2),
        }
        content = read(save(columns))
        np.testing.assert_equal(content.columns["whole"], [1, np.nan])
        assert content.columns["decimal"].tolist() == [1.5, 2.5]
        assert content.columns["truth"].tolist() == [1, 0]
        assert content.columns["category"].tolist() == ["x", ""]
        assert content.columns["day"].tolist() == ["2020-01-02", "2021-01-02"]
        assert "lists" not in content.columns
        assert "lists" in content.notes[0]
        assert np.isnan(content.columns["nothing"]).all()

    def test_what_is_wrong_is_said(self, arrow, save, put):
        assert "not a Parquet file" in refusal(read, put("y.parquet", b"PAR1 something PAR1"))
        assert "two columns 'a'" in refusal(read, save([[1, 2], [3, 4]], ["a", "a"]))
        assert "no rows" in refusal(read, save({"a": arrow.array([], arrow.int8())}))

    def test_without_pyarrow_the_extra_is_named(self, put, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        assert 'pip install "laptsne[cli]"' in refusal(read, put("x.parquet", b"PAR1"))


class TestArrays:
    def test_npy(self, put, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(12).reshape(3, 2, 2))
        matrix = read("x.npy").matrix
        assert matrix.shape == (3, 4)  # images, one a row
        assert matrix.dtype == np.float64
        np.save(tmp_path / "x.npy", np.ones((3, 2), np.float32))
        assert read("x.npy").matrix.dtype == np.float32

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.array([["a", "b"]]), "not of numbers"),
            (np.array([[{}]], dtype=object), "not an array of numbers"),
            (np.ones(3), "shape (3,)"),
            (np.ones((0, 3)), "shape (0, 3)"),
            (np.ones((2, 2), complex), "not of numbers"),
        ],
    )
    def test_npy_that_is_no_matrix(self, put, tmp_path, array, message):
        np.save(tmp_path / "x.npy", array)
        assert message in refusal(read, "x.npy")

    def test_an_array_that_cannot_fit_is_refused_before_it_is_made(self, put, tmp_path):
        header = io.BytesIO()
        facts = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**6)}
        np.lib.format.write_array_header_1_0(header, facts)
        assert "GiB" in refusal(read, put("x.npy", header.getvalue()))
        with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("X.npy", header.getvalue() + bytes(1000))
        assert "GiB" in refusal(read, "x.npz")

    def test_npz_takes_the_matrix_and_its_labels(self, put, tmp_path):
        X, y = np.ones((3, 2)), np.array(["a", "b", "a"])
        np.savez(tmp_path / "x.npz", other=np.zeros((3, 2)), X=X, y=y, labels=np.arange(5))
        content = read("x.npz")
        assert content.matrix.tolist() == X.tolist()
        assert content.columns["label"].tolist() == y.tolist()
        np.savez_compressed(tmp_path / "x.npz", mine=X, y=np.arange(4))
        content = read("x.npz")
        assert content.matrix.shape == (3, 2)
        assert content.columns == {}

    def test_npz_that_is_not_clear_lists_its_arrays(self, put, tmp_path):
        np.savez(tmp_path / "x.npz", a=np.ones((3, 2)), b=np.ones((4, 2)), c=np.ones(3))
        message = refusal(read, "x.npz")
        assert "a (3, 2), b (4, 2), c (3,)" in message
        assert "not an archive" in refusal(read, put("y.npz", b"PK nothing"))
        np.savez(tmp_path / "x.npz", X=np.array([[{}]], dtype=object))
        assert "x.npz" in refusal(read, "x.npz")

    def test_matrix_market(self, put, tmp_path):
        matrix = scipy.sparse.random(7, 4, 0.5, random_state=0, format="csr")
        scipy.io.mmwrite(tmp_path / "x.mtx", matrix)
        (tmp_path / "y.mtx.gz").write_bytes(gzip.compress((tmp_path / "x.mtx").read_bytes()))
        for name in ("x.mtx", "y.mtx.gz"):
            content = read(name)
            assert scipy.sparse.issparse(content.matrix)
            np.testing.assert_allclose(content.matrix.toarray(), matrix.toarray())
            assert "rows are points: 7" in content.notes[0]

    @pytest.mark.parametrize(
        ("dense", "symmetry", "field"),
        [
            (True, "general", "real"),
            (True, "general", "integer"),
            (False, "general", "real"),
            (False, "general", "pattern"),
            (False, "symmetric", "integer"),
            (False, "symmetric", "pattern"),
            (False, "skew-symmetric", "real"),
        ],
    )
    def test_matrix_market_as_scipy_reads_it(self, put, tmp_path, dense, symmetry, field):
        part = np.tril(np.random.default_rng(0).integers(0, 3, size=(6, 6)))
        matrix = {"general": part, "symmetric": part + part.T, "skew-symmetric": part - part.T}[symmetry]
        matrix = matrix if dense else scipy.sparse.coo_matrix(matrix)
        scipy.io.mmwrite(tmp_path / "x.mtx", matrix, field=field, symmetry=symmetry, comment="why\nand how")
        expected = scipy.io.mmread(tmp_path / "x.mtx")
        found = read("x.mtx").matrix
        assert scipy.sparse.issparse(found) != dense
        if not dense:
            found, expected = found.toarray(), expected.toarray()
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ("coordinate real general\n2 2 9\n1 1 1.5\n", "9 lines of 3 numbers should follow"),
            ("coordinate real general\n2 2 2\n1 1 1.5\n2 2 1.5E", "1.5E"),
            ("coordinate real general\n2 2 1\n3 1 1.5\n", "outside the matrix"),
            ("coordinate real general\n2 2 1\n0 1 1.5\n", "outside the matrix"),
            ("coordinate real general\n2 2 1\n1.5 1 1.5\n", "outside the matrix"),
            ("coordinate real general\n2 2 0\n", "no entries"),
            ("coordinate real general\n", "no entries"),
            ("coordinate complex general\n1 1 1\n1 1 1 1\n", "complex"),
            ("array real symmetric\n2 2\n1\n2\n3\n", "array symmetric"),
            ("nothing", "does not begin with"),
        ],
    )
    def test_matrix_market_that_is_damaged(self, put, body, reason):
        message = refusal(read, put("x.mtx", f"%%MatrixMarket matrix {body}"))
        assert reason in message
        packed = gzip.compress(f"%%MatrixMarket matrix {body}".encode())
        assert "Matrix Market" in refusal(read, put("x.mtx.gz", packed[:-5]))


class TestH5ad:
    @pytest.fixture
    def cells(self):
        anndata = pytest.importorskip("anndata")
        pandas = pytest.importorskip("pandas")
        observed = {
            "cell_type": pandas.Categorical(["B", None, "T"]),
            "n_counts": [3, 4, 5],
            "batch": ["x", "y", "x"],
        }
        obs = pandas.DataFrame(observed, index=["c1", "c2", "c3"])
        var = pandas.DataFrame(index=["g1", "g2"])
        return anndata.AnnData(scipy.sparse.csr_matrix(np.arange(6.0).reshape(3, 2)), obs=obs, var=var)

    def test_components_where_there_are_some(self, cells, put, tmp_path):
        cells.obsm["X_pca"] = np.arange(12.0).reshape(3, 4)
        cells.write_h5ad(tmp_path / "x.h5ad")
        content = read("x.h5ad")
        assert content.matrix.tolist() == cells.obsm["X_pca"].tolist()
        assert content.features is None
        assert content.columns["cell_type"].tolist() == ["B", "", "T"]
        assert content.columns["n_counts"].tolist() == [3, 4, 5]
        assert content.columns["obs_names"].tolist() == ["c1", "c2", "c3"]
        assert assigned(content).label == "cell_type"

    def test_the_matrix_otherwise(self, cells, put, tmp_path):
        cells.write_h5ad(tmp_path / "x.h5ad")
        content = read("x.h5ad")
        assert content.matrix.toarray().tolist() == [[0, 1], [2, 3], [4, 5]]
        assert content.features == ("g1", "g2")
        cells.X = cells.X.toarray()
        cells.write_h5ad(tmp_path / "x.h5ad")
        assert np.asarray(read("x.h5ad").matrix).tolist() == [[0, 1], [2, 3], [4, 5]]
        cells.X = None
        cells.write_h5ad(tmp_path / "x.h5ad")
        assert "neither X nor" in refusal(read, "x.h5ad")

    def test_what_is_wrong_is_said(self, put, monkeypatch):
        pytest.importorskip("anndata")
        assert "not an h5ad file" in refusal(read, put("x.h5ad", b"\x89HDF\r\n\x1a\n nothing"))
        monkeypatch.setitem(sys.modules, "anndata", None)
        assert 'pip install "laptsne[scanpy]"' in refusal(read, "x.h5ad")


class TestFormats:
    def test_what_cannot_be_read(self, put, tmp_path):
        assert "there is no file none.csv" in refusal(read, "none.csv")
        assert "is a folder" in refusal(read, str(tmp_path))
        assert "ends in .csv, " in refusal(read, put("x.xlsx", b"x"))
        for ending in ("npy", "npz", "parquet", "h5ad", "mtx"):
            assert "is empty" in refusal(read, put(f"x.{ending}", b""))

    def test_data_sets_by_name(self):
        content = read("digits")
        assert content.matrix.shape == (1797, 64)
        assert content.columns["label"][:3].tolist() == [0, 1, 2]


def table(**columns):
    """Columns of twelve rows; numbers become float64, as from a file."""
    arrays = {name: np.array(values, dtype=object) for name, values in columns.items()}
    numbers = {name for name, values in columns.items() if not isinstance(values[0], str)}
    return Content("t", {name: a.astype(float) if name in numbers else a for name, a in arrays.items()}, first_row=2)


MEASURED = [0.5, 1.5, 0.25, 7, 8, 3, 5, 6, 9, 1, 0, 2]
CODES = [0, 1, 2] * 4
WORDS = ["a", "b", "c"] * 4


class TestRoles:
    @pytest.mark.parametrize(
        ("name", "values", "guessed"),
        [
            ("Label", CODES, True),
            ("class", WORDS, True),
            ("target", MEASURED, True),
            ("cell_type", WORDS, True),
            ("Cell Type", WORDS, True),
            ("species", CODES, True),
            ("cluster", CODES, True),
            ("cluster", MEASURED, False),
            ("y", CODES, True),
            ("y", MEASURED, False),
            ("width", CODES, False),
            ("anything", WORDS, True),  # the only text, and its values repeat
            ("anything", [f"name {i}" for i in range(12)], False),
            ("anything", ["same"] * 12, False),
        ],
    )
    def test_a_label_is_guessed_and_not_embedded(self, name, values, guessed):
        chosen = assigned(table(a=MEASURED, **{name: values}))
        assert chosen.label == (name if guessed else None)
        assert (name in (chosen.features or ())) == (not guessed and not isinstance(values[0], str))
        assert any("guessed" in note for note in chosen.notes) == guessed
        assert assigned(table(a=MEASURED, **{name: values}), guess=False).label is None

    def test_the_surest_name_is_taken(self):
        assert assigned(table(a=MEASURED, cluster=CODES, label=WORDS)).label == "label"

    def test_coordinates_are_no_labels(self):
        chosen = assigned(table(x=CODES, y=CODES))
        assert chosen.label is None
        assert chosen.features == ("x", "y")

    def test_a_label_that_is_named_may_be_anything(self):
        mixed = ["1", "2", "unknown"] * 4
        for values in (MEASURED, CODES, mixed):
            chosen = assigned(table(a=MEASURED, b=values, species=WORDS), label="b")
            assert chosen.label == "b"
            assert next(iter(chosen.columns)) == "b"
            assert chosen.features == ("a",)
        assert "no column c; its columns are a, b" in refusal(assigned, table(a=MEASURED, b=CODES), label="c")
        assert "array without names" in refusal(assigned, Content("t", matrix=np.ones((2, 2))), label="c")

    @pytest.mark.parametrize(
        ("name", "values", "identifier"),
        [
            ("id", CODES, True),
            ("Unnamed: 0", list(range(12)), True),
            ("patient_id", CODES, True),
            ("__index_level_0__", list(range(5, 17)), True),
            ("anything", list(range(12)), True),
            ("anything", list(range(1, 13)), True),
            ("anything", list(range(2, 14)), False),
            ("id", MEASURED, False),
            ("width", CODES, False),
        ],
    )
    def test_identifiers_are_kept_and_not_embedded(self, name, values, identifier):
        chosen = assigned(table(a=MEASURED, **{name: values}))
        assert (name in chosen.features) == (not identifier)
        assert (name in chosen.columns) == identifier
        assert any(name in note for note in chosen.notes) == identifier

    def test_text_is_kept_and_named(self):
        chosen = assigned(table(a=MEASURED, note=WORDS, comment=WORDS))
        assert chosen.features == ("a",)
        assert list(chosen.columns) == ["note", "comment"]
        assert "not embedded, since they hold text: note, comment" in chosen.notes

    def test_numbers_with_text_among_them_are_refused(self):
        mixed = ["1", "", "2", "oops"] * 3
        message = refusal(assigned, table(a=MEASURED, b=mixed))
        assert "column b" in message
        assert "row 5 has 'oops'" in message

    @pytest.mark.parametrize(("value", "said"), [(np.nan, "missing (NaN)"), (np.inf, "inf")])
    def test_missing_and_infinite_values_are_refused(self, value, said):
        message = refusal(assigned, table(a=MEASURED, b=[*MEASURED[:4], value, *MEASURED[5:]]))
        assert f"column b is {said} in row 6" in message
        X = np.ones((4, 3))
        X[2, 1] = value
        for matrix in (X, scipy.sparse.csr_matrix(X)):
            assert f"row 3, column 2 is {said}" in refusal(assigned, Content("t", matrix=matrix))

    def test_empty_columns_are_left_out(self):
        chosen = assigned(table(a=MEASURED, b=[np.nan] * 12))
        assert chosen.features == ("a",)
        assert "b" not in chosen.columns
        assert "left out, since they are empty: b" in chosen.notes

    def test_no_column_of_numbers(self):
        assert "no column of numbers" in refusal(assigned, table(note=WORDS, comment=WORDS))
        assert "no column of numbers" in refusal(assigned, table(a=MEASURED), label="a")

    def test_features_by_name_and_in_their_order(self):
        content = table(a=MEASURED, b=CODES, id=CODES, extra=MEASURED)
        chosen = assigned(content, features=["id", "a"])
        assert chosen.X[:, 0].tolist() == CODES
        assert chosen.X[:, 1].tolist() == MEASURED
        assert "lacks the features c, d" in refusal(assigned, content, features=["a", "c", "d"])
        assert "is a feature of the model" in refusal(assigned, content, features=["a"], label="a")
        # What the model was made of is no label, whatever its name.
        assert assigned(table(a=MEASURED, label=CODES), features=["a", "label"]).label is None
        matrix = Content("t", matrix=np.arange(6.0).reshape(2, 3), features=("p", "q", "r"))
        assert assigned(matrix, features=["r", "p"]).X.tolist() == [[2, 0], [5, 3]]
        assert "lacks the features s" in refusal(assigned, matrix, features=["s"])

    def test_whole_numbers_are_shown_as_such(self):
        chosen = assigned(table(a=MEASURED, label=CODES))
        assert chosen.columns["label"].dtype == np.int64


KEPT = {"x": np.array([7, 8]), "kind": np.array(["a, b", "c"], dtype=object)}


class TestWriting:
    Y = np.array([[0.5, 1.0], [2.0, -3.25]])

    def test_text(self, tmp_path, capsys):
        options = {"clusters": np.array([0, 1]), "label": "kind", "columns": KEPT}
        expected = 'x,y,cluster,label,data_x\n0.5,1.0,0,"a, b",7\n2.0,-3.25,1,c,8\n'
        write(tmp_path / "m.csv", self.Y, **options)
        assert (tmp_path / "m.csv").read_text() == expected
        write(None, self.Y, **options)
        assert capsys.readouterr().out == expected
        write(tmp_path / "m.tsv", self.Y, **options)
        assert (tmp_path / "m.tsv").read_text().splitlines()[1] == "0.5\t1.0\t0\ta, b\t7"

    def test_arrays_and_parquet(self, tmp_path):
        write(tmp_path / "m.npy", self.Y, clusters=np.array([0, 1]))
        assert np.load(tmp_path / "m.npy").tolist() == self.Y.tolist()
        parquet = pytest.importorskip("pyarrow.parquet")
        write(tmp_path / "m.parquet", self.Y, clusters=np.array([0, 1]), columns=KEPT)
        rows = parquet.read_table(tmp_path / "m.parquet").to_pylist()
        assert rows[1] == {"x": 2.0, "y": -3.25, "cluster": 1, "data_x": 8, "kind": "c"}

    def test_what_fails_leaves_nothing_behind(self, tmp_path):
        target = tmp_path / "m.csv"
        target.write_text("precious")
        with pytest.raises(ValueError, match="argument"):
            write(target, self.Y, clusters=np.array([0]))
        assert target.read_text() == "precious"
        assert os.listdir(tmp_path) == ["m.csv"]

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no permissions of this kind")
    def test_permissions_are_those_of_any_new_file(self, tmp_path):
        before = os.umask(0o027)
        try:
            with atomic_write(tmp_path / "m.csv") as path:
                path.write_text("x")
            assert stat.S_IMODE((tmp_path / "m.csv").stat().st_mode) == 0o640
            assert os.umask(0o027) == 0o027
        finally:
            os.umask(before)


class TestTargets:
    def test_what_is_refused(self, tmp_path, monkeypatch):
        there = tmp_path / "there.csv"
        there.write_text("x")
        check_targets([tmp_path / "new.csv"])
        check_targets([there], force=True)
        assert "--force" in refusal(check_targets, [there])
        assert "no folder" in refusal(check_targets, [tmp_path / "none" / "x.csv"])
        assert "is a folder" in refusal(check_targets, [tmp_path], force=True)
        assert "is read" in refusal(check_targets, [there], source=str(there), force=True)
        assert "named twice" in refusal(check_targets, [tmp_path / "a", tmp_path / "b", tmp_path / "." / "a"])
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        assert "nothing can be written" in refusal(check_targets, [tmp_path / "new.csv"])
