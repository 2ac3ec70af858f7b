import gzip
import io
import os
import shlex
import stat
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse

from laptsne._runtime.files import atomic_write
from laptsne.cli.options import STDOUT, OutputFiles
from laptsne.cli.outputs import write_map
from laptsne.cli.reading import read_source
from laptsne.cli.runs import preprocessed
from laptsne.cli.tables import Dataset, as_numpy, choose_columns
from laptsne.cli.terminal import InputError
from laptsne.transform.preprocessing import Preprocessing


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


def columns_of(source):
    """Columns of a file as lists, with None or NaN for missing values."""
    contents = read_source(source)
    columns = contents.columns
    return {name: as_numpy(columns[name]).tolist() for name in columns.column_names}


def choose(contents, **options):
    return choose_columns(contents, **options)


class TestText:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_columns_by_name_whatever_the_delimiter(self, put, delimiter):
        content = read_source(put("x.csv", "a,b c,k\n1,2.5,x\n\n3,-4e2,y\n".replace(",", delimiter)))
        assert content.columns.column_names == ["a", "b c", "k"]
        assert content.columns["b c"].to_pylist() == [2.5, -400]
        assert content.columns["k"].to_pylist() == ["x", "y"]
        assert content.columns.num_rows == 2

    @pytest.mark.parametrize("header", ["size, in cm, mean;weight, in kg, mean", "size, in cm;weight, in kg"])
    def test_semicolons_among_more_commas(self, put, header):
        columns = columns_of(put("x.csv", f"{header}\n1,5;2,25\n\n2,5;3\n"))
        assert columns == dict(zip(header.split(";"), ([1.5, 2.5], [2.25, 3]), strict=True))

    def test_commas_among_semicolons_and_tabs(self, put):
        columns = columns_of(put("x.csv", 'a;b\tc,d\n1,"x;y"\n"2",u;v;\tw\n'))
        assert columns == {"a;b\tc": [1, 2], "d": ["x;y", "u;v;\tw"]}

    def test_tabs_are_meant_in_tsv_even_among_commas(self, put):
        assert list(columns_of(put("x.tsv", "a,1,2,3\tb\n1\t2\n"))) == ["a,1,2,3", "b"]

    def test_quotes_byte_order_mark_and_line_ends(self, put):
        columns = columns_of(put("x.csv", '\ufeffa,k\r\n1,"one, or\r\ntwo"\r\n2,"say ""x"""\r\n'))
        assert columns == {"a": [1, 2], "k": ["one, or\r\ntwo", 'say "x"']}
        assert columns_of(put("x.csv", '"a\nb",k\r1,x\r2,y\r')) == {"a\nb": [1, 2], "k": ["x", "y"]}

    def test_gzip_by_its_content(self, put):
        packed = gzip.compress(b"a,b\n1,2\n3,4\n")
        assert columns_of(put("x.csv.gz", packed))["b"] == [2, 4]
        assert columns_of(put("x.csv", packed))["b"] == [2, 4]
        assert "damaged" in refusal(read_source, put("x.tsv.gz", packed[:-9]))

    def test_booleans_and_missing_values_are_numbers(self, put):
        columns = columns_of(put("x.csv", "a,b,c\nTrue,NA,\nfalse,2,\nTRUE, nan ,\n"))
        assert columns["a"] == [True, False, True]
        np.testing.assert_equal(columns["b"], [np.nan, 2, np.nan])
        assert np.isnan(columns["c"]).all()

    def test_numbers_are_exact(self, put):
        spelled = ["0.1", "+1.5", "-.5", "1.", "1E+5", " 7 ", "12345678901234567890", "2.2250738585072014e-308"]
        column = columns_of(put("x.csv", "a\n" + "\n".join(spelled) + "\n"))["a"]
        assert column == [float(text) for text in spelled]
        assert columns_of(put("x.csv", "id\n9007199254740993\n-3\n"))["id"] == [9007199254740993, -3]

    @pytest.mark.parametrize("values", [["0x1F", "0x20"], ["12:30", "13:30"], ["1_000"] * 2])
    def test_what_only_looks_like_numbers_stays_text(self, put, values):
        assert columns_of(put("x.csv", "a\n" + "\n".join(values)))["a"] == values

    def test_text_after_many_numbers_leaves_them_as_they_were(self, put):
        rows = [f"{i:03}.50" for i in range(300)] + ["unknown"]  # as numbers, they would lose zeros
        name = put("x.csv", "k\n" + "\n".join(rows) + "\n")
        assert columns_of(name)["k"] == rows

    def test_a_column_without_a_name_is_named(self, put):
        assert list(columns_of(put("x.csv", ",a,\n0,1,\n1,2,\n"))) == ["Unnamed: 0", "a", "Unnamed: 2"]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is empty"),
            (b"a,b\n", "no rows below its header"),
            (b"\n\n", "no rows"),
            (b"a,b\n1,2\n3\n", "row 3 has 1 values, the header 2"),
            (b"a,a,a.2\n1,2,3\n3,4,5\n", "two columns 'a.2'"),
            (b"5.1,3.5,x\n4.9,3.0,y\n", "the first line holds numbers (5.1)"),
            (b"5,5,3\n4,3,3\n", "the first line holds numbers (5)"),
            (b"\xff\xfe\x00", "UTF-8"),
            (b'a,b\n1,"' + b"x" * 200_000, "a quote is never closed"),
            (b'a\n"x\n', "a quote is never closed"),
            (b"a,b\n1,\x81\n", "UTF-8"),
            ("a,b\n1,\xe9\n2,".encode() + b"\xe9\n", "UTF-8"),  # damaged, as other letters are of UTF-8
            (b"a" * 140_000 + b",b\n1,2\n", "not a table"),
        ],
    )
    def test_what_is_wrong_is_said(self, put, content, message):
        assert message in refusal(read_source, put("x.csv", content))

    def test_names_that_are_repeated_are_numbered(self, put):
        name = put("x.csv", "a,b,a,a\n1,2,3,4\n5,6,7,8\n")
        assert list(columns_of(name)) == ["a", "b", "a.3", "a.4"]
        assert read_source(name).notes == ("columns of a name that is taken are numbered: a.3, a.4",)

    @pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
    def test_what_excel_writes(self, put, encoding):
        name = put("x.csv", "Größe;Stadt\n1,5;Köln\n2,5;Genève\n".encode(encoding))
        assert columns_of(name) == {"Größe": [1.5, 2.5], "Stadt": ["Köln", "Genève"]}
        assert read_source(name).notes[0] == f"read as {encoding} (guessed; --encoding names another)"

    def test_encodings_by_name(self, put):
        name = put("x.csv", "a,b\n1,Łódź\n2,x\n".encode("cp1250"))
        contents = read_source(name, encoding="cp1250")
        assert contents.columns["b"].to_pylist() == ["Łódź", "x"]
        assert contents.notes == ()
        assert "--encoding nonsense is not known" in refusal(read_source, name, encoding="nonsense")
        assert "text in ascii, or is damaged" in refusal(read_source, name, encoding="ascii")
        assert "--encoding ascii is of text, but digits is no" in refusal(read_source, "digits", encoding="ascii")

    @pytest.mark.parametrize(
        ("values", "numbers", "note"),
        [
            (["$1,234.50", "-$7.25", "$0"], [1234.5, -7.25, 0], "without $ and with commas between thousands"),
            (["12.3%", "", "-4 %"], [12.3, np.nan, -4], "without %"),
            (["1.234,50 €", "7,5 €", "n/a"], [1234.5, 7.5, np.nan], "without € and with decimal commas"),
            (["1,234,567", "89", "1,000"], [1234567, 89, 1000], "with commas between thousands"),
        ],
    )
    def test_amounts_and_shares_are_numbers(self, put, values, numbers, note):
        name = put("x.csv", "a;b\n" + "".join(f"{value};1\n" for value in values))
        np.testing.assert_equal(columns_of(name)["a"], numbers)
        assert read_source(name).notes == (f"read {note}: a",)

    @pytest.mark.parametrize("values", [["$5", "€5"], ["$5", "5"], ["$5", "free"], ["1,234", "2,345"], ["5%", "$5"]])
    def test_amounts_that_are_not_clear_are_text(self, put, values):
        assert columns_of(put("x.csv", "a;b\n" + "".join(f"{value};1\n" for value in values)))["a"] == values

    @pytest.mark.parametrize(
        ("values", "second"),
        [
            (["2024-01-31", "2024-02-01"], "2024-02-01T00:00:00"),
            (["2024-01", "2024-02"], "2024-02-01T00:00:00"),
            (["01/31/2024", "02/01/2024"], "2024-02-01T00:00:00"),
            (["31/01/2024", "1/2/2024"], "2024-02-01T00:00:00"),
            (["31.01.2024 5:00", "01.02.2024 18:30"], "2024-02-01T18:30:00"),
            (["Jan 31, 2024", "February 1, 2024"], "2024-02-01T00:00:00"),
            (["2024-01-31T00:00:00.000Z", "2024-02-01T18:30:05.25Z"], "2024-02-01T18:30:05"),
            (["2024/01/31 1:00:11 AM GMT+1", "2024/02/01 6:30:05 PM GMT+1"], "2024-02-01T18:30:05"),
        ],
    )
    def test_dates_are_text_in_tables_and_times_in_figures(self, put, values, second):
        name = put("x.csv", "day\ta\n" + "".join(f"{value}\t{i * 1.5}\n" for i, value in enumerate([*values, "NA"])))
        dataset = choose_columns(read_source(name))
        assert "not embedded, since they hold dates or times: day" in dataset.notes
        assert dataset.columns["day"].to_pylist()[:2] == values
        times = dataset.values("day")
        assert times.dtype.kind == "M"
        assert str(times[1].astype("datetime64[s]")) == second
        assert np.isnat(times[2])

    @pytest.mark.parametrize(
        "values", [["2024-01-31", "soon"], ["1-2", "3-4"], ["12:30", "13:30"], ["v1.2.3", "v1.2.4"]]
    )
    def test_what_only_looks_like_dates(self, put, values):
        name = put("x.csv", "day\ta\n" + "".join(f"{value}\t{i * 1.5}\n" for i, value in enumerate(values)))
        assert "not embedded, since they hold text: day" in choose_columns(read_source(name)).notes

    def test_numbers_may_be_names(self, put):
        assert list(columns_of(put("x.csv", "0,1,-2\n4,5,6\n"))) == ["0", "1", "-2"]


class TestParquet:
    @pytest.fixture
    def save(self, tmp_path):
        def write_table(columns, names=None):
            table = pa.table(columns, names=names) if names else pa.table(columns)
            pa.parquet.write_table(table, tmp_path / "x.parquet")
            return str(tmp_path / "x.parquet")

        return write_table

    def test_types(self, save):
        from datetime import date
        from decimal import Decimal

        columns = {
            "whole": pa.array([1, None], pa.int8()),
            "decimal": pa.array([Decimal("1.5"), Decimal("2.5")]),
            "truth": pa.array([True, False]),
            "category": pa.array(["x", None]).dictionary_encode(),
            "day": pa.array([date(2020, 1, 2), date(2021, 1, 2)]),
            "pairs": pa.array([{"a": 1}, {"a": 2}]),
            "nothing": pa.nulls(2),
            "empty": ["", "y"],
        }
        source = save(columns)
        found = columns_of(source)
        np.testing.assert_equal(found["whole"], [1, np.nan])
        assert found["decimal"] == [1.5, 2.5]
        assert found["truth"] == [1, 0]
        assert found["category"] == ["x", None]
        assert [str(day) for day in found["day"]] == ["2020-01-02 00:00:00", "2021-01-02 00:00:00"]
        assert found["empty"] == [None, "y"]
        assert "pairs" not in found
        assert read_source(source).notes == ("left out, since they are nested: pairs",)
        assert read_source(source).columns.schema.field("day").type == pa.date32()  # as it came
        assert np.isnan(found["nothing"]).all()

    def test_numbers_of_type_text_are_text(self, save):
        contents = read_source(save({"a": MEASURED, "zip": [f"{i:05}" for i in range(12)]}))
        chosen = choose_columns(contents)
        assert chosen.features == ("a",)
        assert "not embedded, since they hold text: zip" in chosen.notes
        assert "column zip is not all numbers: its type is text" in refusal(choose, contents, features=["zip"])

    def test_row_groups_with_different_dictionaries(self, tmp_path):
        words = ["a", "b", "a", "c", "b", "d"]
        pa.parquet.write_table(pa.table({"t": words}), tmp_path / "x.parquet", row_group_size=2)
        assert columns_of(str(tmp_path / "x.parquet"))["t"] == words

    def test_what_is_wrong_is_said(self, save, put):
        assert "not a Parquet file" in refusal(read_source, put("y.parquet", b"PAR1 something PAR1"))
        assert "two columns 'a'" in refusal(read_source, save([[1, 2], [3, 4]], ["a", "a"]))
        assert "no rows" in refusal(read_source, save({"a": pa.array([], pa.int8())}))


class TestArrays:
    def test_npy(self, put, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(12).reshape(3, 2, 2))
        matrix = choose_columns(read_source("x.npy")).X
        assert matrix.shape == (3, 4)  # images, one a row
        assert matrix.dtype == np.float64
        np.save(tmp_path / "x.npy", np.ones((3, 2), np.float32))
        assert read_source("x.npy").X.dtype == np.float32

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
        assert message in refusal(read_source, "x.npy")

    def test_an_array_that_cannot_fit_is_refused_before_it_is_made(self, put, tmp_path):
        header = io.BytesIO()
        facts = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**6)}
        np.lib.format.write_array_header_1_0(header, facts)
        assert "GiB" in refusal(read_source, put("x.npy", header.getvalue()))
        with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("X.npy", header.getvalue() + bytes(1000))
        assert "GiB" in refusal(read_source, "x.npz")

    def test_npz_takes_the_matrix_and_its_labels(self, put, tmp_path):
        X, y = np.ones((3, 2)), np.array(["a", "b", "a"])
        np.savez(tmp_path / "x.npz", other=np.zeros((3, 2)), X=X, y=y, labels=np.arange(5))
        content = read_source("x.npz")
        assert content.X.tolist() == X.tolist()
        assert content.columns["y"].to_pylist() == y.tolist()
        np.savez_compressed(tmp_path / "x.npz", mine=X, y=np.arange(4))
        content = read_source("x.npz")
        assert content.X.shape == (3, 2)
        assert content.columns.column_names == []
        np.savez(tmp_path / "x.npz", X=X, y=np.array([3, 1, 2], dtype=">u2"))
        assert read_source("x.npz").columns["y"].to_pylist() == [3, 1, 2]

    def test_y_beside_a_matrix_is_the_label_whatever_its_values(self, put, tmp_path):
        np.savez(tmp_path / "x.npz", X=np.eye(3), y=np.array([0.5, 1.25, 3.0]))
        dataset = choose_columns(read_source("x.npz"))
        assert dataset.label == "y"
        assert dataset.values("y").tolist() == [0.5, 1.25, 3.0]

    def test_npz_that_is_not_clear_lists_its_arrays(self, put, tmp_path):
        np.savez(tmp_path / "x.npz", a=np.ones((3, 2)), b=np.ones((4, 2)), c=np.ones(3))
        message = refusal(read_source, "x.npz")
        assert "a (3, 2), b (4, 2), c (3,)" in message
        assert "not an archive" in refusal(read_source, put("y.npz", b"PK nothing"))
        np.savez(tmp_path / "x.npz", X=np.array([[{}]], dtype=object))
        assert "x.npz" in refusal(read_source, "x.npz")

    def test_matrix_market(self, put, tmp_path):
        matrix = scipy.sparse.random(7, 4, 0.5, random_state=0, format="csr")
        scipy.io.mmwrite(tmp_path / "x.mtx", matrix)
        (tmp_path / "y.mtx.gz").write_bytes(gzip.compress((tmp_path / "x.mtx").read_bytes()))
        for name in ("x.mtx", "y.mtx.gz"):
            content = read_source(name)
            assert scipy.sparse.issparse(content.X)
            np.testing.assert_allclose(content.X.toarray(), matrix.toarray())
            assert "rows are points: 7 points with 4 features" in content.notes[0]

    @pytest.mark.parametrize("field", ["real", "integer"])
    def test_matrix_market_as_scipy_reads_it(self, put, tmp_path, field):
        matrix = scipy.sparse.coo_matrix(np.random.default_rng(0).integers(0, 3, size=(6, 4)))
        scipy.io.mmwrite(tmp_path / "x.mtx", matrix, field=field, symmetry="general", comment="why\nand how")
        np.testing.assert_array_equal(read_source("x.mtx").X.toarray(), scipy.io.mmread(tmp_path / "x.mtx").toarray())

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ("coordinate real general\n2 2 9\n1 1 1.5\n", "9 entries should follow"),
            ("coordinate real general\n2 2 2\n1 1 1.5\n2 2 1.5E", "1.5E"),
            ("coordinate real general\n2 2 1\n3 1 1.5\n", "exceed"),
            ("coordinate real general\n2 2 1\n0 1 1.5\n", "negative"),
            ("coordinate real general\n2 2 0\n", "declares no entries"),
            ("coordinate real general\n", "declares no entries"),
            ("coordinate complex general\n1 1 1\n1 1 1 1\n", "coordinate real general"),
            ("array real symmetric\n2 2\n1\n2\n3\n", "coordinate real general"),
            ("nothing", "does not begin with"),
        ],
    )
    def test_matrix_market_that_is_damaged(self, put, body, reason):
        message = refusal(read_source, put("x.mtx", f"%%MatrixMarket matrix {body}"))
        assert reason in message
        packed = gzip.compress(f"%%MatrixMarket matrix {body}".encode())
        assert "Matrix Market" in refusal(read_source, put("x.mtx.gz", packed[:-5]))


class TestH5ad:
    @pytest.fixture
    def cells(self):
        anndata = pytest.importorskip("anndata")
        pandas = pytest.importorskip("pandas")
        observed = {
            "cell_type": pandas.Categorical(["B", None, "T"]),
            "n_counts": [3, 4, 5],
            "batch": ["x", "y", "x"],
            "nullable": pandas.array([1, None, 3], dtype="Int64"),
        }
        obs = pandas.DataFrame(observed, index=["c1", "c2", "c3"])
        var = pandas.DataFrame(index=["g1", "g2"])
        return anndata.AnnData(scipy.sparse.csr_matrix(np.arange(6.0).reshape(3, 2)), obs=obs, var=var)

    def test_components_where_there_are_some(self, cells, put, tmp_path):
        cells.obsm["X_pca"] = np.arange(12.0).reshape(3, 4)
        cells.write_h5ad(tmp_path / "x.h5ad")
        content = read_source("x.h5ad")
        assert content.X.tolist() == cells.obsm["X_pca"].tolist()
        assert content.features is None
        assert content.columns["cell_type"].to_pylist() == ["B", None, "T"]
        assert content.columns["n_counts"].to_pylist() == [3, 4, 5]
        assert content.columns["nullable"].to_pylist() == [1, None, 3]
        assert content.columns["obs_names"].to_pylist() == ["c1", "c2", "c3"]
        assert choose_columns(content).label == "cell_type"

    def test_the_matrix_otherwise(self, cells, put, tmp_path):
        cells.write_h5ad(tmp_path / "x.h5ad")
        content = read_source("x.h5ad")
        assert content.X.toarray().tolist() == [[0, 1], [2, 3], [4, 5]]
        assert content.features == ("g1", "g2")
        cells.X = cells.X.toarray()
        cells.write_h5ad(tmp_path / "x.h5ad")
        assert np.asarray(read_source("x.h5ad").X).tolist() == [[0, 1], [2, 3], [4, 5]]
        cells.X = None
        cells.write_h5ad(tmp_path / "x.h5ad")
        assert "neither X nor" in refusal(read_source, "x.h5ad")

    def test_what_is_wrong_is_said(self, put, monkeypatch):
        pytest.importorskip("anndata")
        assert "not an h5ad file" in refusal(read_source, put("x.h5ad", b"\x89HDF\r\n\x1a\n nothing"))
        monkeypatch.setitem(sys.modules, "anndata", None)
        assert 'pip install "laptsne[scanpy]"' in refusal(read_source, "x.h5ad")


class TestFormats:
    def test_what_cannot_be_read(self, put, tmp_path):
        assert "there is no file none.csv" in refusal(read_source, "none.csv")
        assert "is a folder" in refusal(read_source, str(tmp_path))
        assert "ends in .csv, " in refusal(read_source, put("x.xls", b"x"))
        for ending in ("npy", "npz", "parquet", "h5ad", "mtx"):
            assert "is empty" in refusal(read_source, put(f"x.{ending}", b""))

    def test_data_sets_by_name(self):
        content = read_source("digits")
        assert content.X.shape == (1797, 64)
        assert content.columns["label"][:3].to_pylist() == [0, 1, 2]


def table(**columns):
    """Contents of a file with these columns, of twelve rows."""
    return Dataset("t", pa.table(columns), first_row=2)


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
            ("cluster", MEASURED, True),
            ("y", CODES, True),
            ("y", MEASURED, True),
            ("width", CODES, False),
            ("anything", WORDS, False),
        ],
    )
    def test_a_label_is_guessed_and_not_embedded(self, name, values, guessed):
        chosen = choose_columns(table(a=MEASURED, **{name: values}))
        assert chosen.label == (name if guessed else None)
        assert (name in (chosen.features or ())) == (not guessed and not isinstance(values[0], str))
        assert any("guessed" in note for note in chosen.notes) == guessed
        assert choose(table(a=MEASURED, **{name: values}), guess=False).label is None

    def test_the_surest_name_is_taken(self):
        assert choose_columns(table(a=MEASURED, cluster=CODES, label=WORDS)).label == "label"

    def test_coordinates_are_no_labels(self):
        chosen = choose_columns(table(x=CODES, y=CODES))
        assert chosen.label is None
        assert chosen.features == ("x", "y")

    def test_a_label_that_is_named_may_be_anything(self):
        mixed = ["1", "2", "unknown"] * 4
        for values in (MEASURED, CODES, mixed):
            chosen = choose(table(a=MEASURED, b=values, species=WORDS), label="b")
            assert chosen.label == "b"
            assert chosen.columns.column_names[0] == "b"
            assert chosen.features == ("a",)
        assert "no column c; its columns are a, b" in refusal(choose, table(a=MEASURED, b=CODES), label="c")
        assert "array without names" in refusal(choose, Dataset("t", X=np.ones((2, 2))), label="c")

    @pytest.mark.parametrize(
        ("name", "values", "identifier"),
        [
            ("id", CODES, True),
            ("Unnamed: 0", list(range(12)), True),
            ("patient_id", CODES, True),
            ("__index_level_0__", list(range(5, 17)), True),
            ("anything", list(range(12)), True),
            ("anything", list(range(1, 13)), True),
            ("anything", list(range(2, 14)), True),
            ("seconds", list(range(5000, 5360, 30)), True),
            ("Sample Number", CODES, True),
            ("id", MEASURED, False),
            ("width", CODES, False),
            ("has_id", [0, 1] * 6, False),
            ("x", [*range(6)] * 2, False),  # of a grid
        ],
    )
    def test_identifiers_are_kept_and_not_embedded(self, name, values, identifier):
        chosen = choose_columns(table(a=MEASURED, **{name: values}))
        assert (name in chosen.features) == (not identifier)
        assert (name in chosen.columns.column_names) == identifier
        assert any(note.endswith(f"identify the rows: {name}") for note in chosen.notes) == identifier
        assert any(note.endswith(f"--column {shlex.quote(name)}") for note in chosen.notes) == identifier

    @pytest.mark.parametrize(
        ("name", "values", "date"),
        [
            ("year", [2007, 2008, 2009] * 4, True),
            ("model_year", [70, 71, 82] * 4, True),
            ("Jahr.Year", [1958.2, 1958.3, 1959.7] * 4, True),
            ("saleDate", [20240131, 20240229, 20231231] * 4, True),
            ("timestamp", [1.7e9, 1.7e9 + 7, 1.7e9 + 1] * 4, True),
            ("visits per year", [1, 5, 3] * 4, False),
            ("l/year", [1, 5, 3] * 4, False),
            ("years", [1, 5, 3] * 4, False),
            ("leap year", [0, 1, 0] * 4, False),
            ("month", MEASURED, False),
        ],
    )
    def test_numbers_that_are_dates(self, name, values, date):
        chosen = choose_columns(table(a=MEASURED, **{name: values}))
        assert (name in chosen.features) == (not date)
        assert ("not embedded, since they hold dates or times: " + name in chosen.notes) == date
        assert (f"to embed these numbers as well: --column '*' --column {shlex.quote(name)}" in chosen.notes) == date
        assert choose(table(a=MEASURED, **{name: values}), column=["*", name]).features[-1] == name

    def test_text_is_kept_and_named(self):
        chosen = choose_columns(table(a=MEASURED, note=WORDS, comment=WORDS))
        assert chosen.features == ("a",)
        assert chosen.columns.column_names == ["note", "comment"]
        assert "not embedded, since they hold text: note, comment" in chosen.notes

    def test_numbers_with_text_among_them_are_refused(self):
        mixed = ["1", "", "2", "oops"] * 3
        message = refusal(choose_columns, table(a=MEASURED, b=mixed))
        assert "column b" in message
        assert "row 5 has 'oops'" in message

    def test_infinite_values_are_refused(self):
        message = refusal(choose_columns, table(a=MEASURED, b=[*MEASURED[:4], np.inf, *MEASURED[5:]]))
        assert "column b is inf in row 6" in message
        message = refusal(choose_columns, table(a=MEASURED, b=[*range(10), np.inf, np.inf]))
        assert "column b is inf in row 12 (2 such values)" in message
        X = np.ones((4, 3))
        X[2, 1] = np.inf
        for matrix in (X, scipy.sparse.csr_matrix(X)):
            assert "column 2 is inf in row 3" in refusal(choose_columns, Dataset("t", X=matrix))
        X[2, 1] = np.nan
        matrix = scipy.sparse.csr_matrix(X)
        assert "column 2 is missing (NaN) in row 3" in refusal(choose_columns, Dataset("t", X=matrix))

    def test_missing_values_are_counted_by_column(self):
        b, c = [*MEASURED[:4], None, *MEASURED[5:]], [*MEASURED[:2], None, None, *MEASURED[4:]]
        dataset = choose_columns(table(a=MEASURED, b=b, c=c))
        message = refusal(preprocessed, dataset, Preprocessing())
        assert "missing in 3 of 12 rows, the first in row 4; by column: b (1), c (2)." in message
        assert "--impute median" in message
        assert "--impute drop" in message
        unnamed = choose_columns(Dataset("t", X=dataset.X))
        assert "by column: column 2 (1), column 3 (2)." in refusal(preprocessed, unnamed, Preprocessing())

    def test_empty_columns_are_left_out(self):
        chosen = choose_columns(table(a=MEASURED, b=[np.nan] * 12))
        assert chosen.features == ("a",)
        assert "b" not in chosen.columns.column_names
        assert "left out, since they are empty: b" in chosen.notes

    def test_no_column_of_numbers(self):
        message = refusal(choose_columns, table(note=WORDS, id=CODES, comment=WORDS))
        assert "no column of numbers to embed: not embedded, since they hold text: note, comment; " in message
        assert "since they count or identify the rows: id. Write categories as numbers" in message
        assert "no column of numbers" in refusal(choose, table(a=MEASURED), label="a")

    def test_features_by_name_and_in_their_order(self):
        content = table(a=MEASURED, b=CODES, id=CODES, extra=MEASURED)
        chosen = choose(content, features=["id", "a"])
        assert chosen.X[:, 0].tolist() == CODES
        assert chosen.X[:, 1].tolist() == MEASURED
        assert "lacks the features c, d" in refusal(choose, content, features=["a", "c", "d"])
        assert "--label a is a column to embed" in refusal(choose, content, features=["a"], label="a")
        # What the model was made of is no label, whatever its name.
        assert choose(table(a=MEASURED, label=CODES), features=["a", "label"]).label is None
        matrix = Dataset("t", X=np.arange(6.0).reshape(2, 3), features=("p", "q", "r"))
        assert choose(matrix, features=["r", "p"]).X.tolist() == [[2, 0], [5, 3]]
        assert "lacks the features s" in refusal(choose, matrix, features=["s"])

    def test_values_are_kept_as_they_came(self):
        whole = [float(code) for code in CODES]
        large = [None, *(2**60 + i for i in range(11))]
        chosen = choose_columns(
            table(a=MEASURED, label=whole, id=large, flag=pa.array([True] * 12)),
        )
        assert chosen.columns["label"].type == pa.float64()
        assert chosen.columns["id"].to_pylist() == large
        assert np.isnan(chosen.values("id")[0])


KEPT = pa.table({"x": [7, 8], "kind": pa.array(["a, b", "c"]).dictionary_encode()})


class TestWriting:
    Y = np.array([[0.5, 1.0], [2.0, -3.25]])

    def test_text(self, tmp_path, capsys):
        found = {"cluster": np.array([0, -1])}
        expected = 'map_x,y,cluster,x,kind\n0.5,1.0,0,7,"a, b"\n2.0,-3.25,-1,8,c\n'
        write_map(tmp_path / "m.csv", self.Y, KEPT, found)
        assert (tmp_path / "m.csv").read_text() == expected
        write_map(STDOUT, self.Y, KEPT, found)
        assert capsys.readouterr().out == expected
        write_map(tmp_path / "M.TSV", self.Y, KEPT, found)
        assert (tmp_path / "M.TSV").read_text().splitlines()[1] == "0.5\t1.0\t0\t7\ta, b"

    def test_values_are_written_as_they_came(self, tmp_path):
        day = pa.array([None, 3], pa.timestamp("ns")).cast(pa.timestamp("ns"))
        single, many = pa.array([0.1, 2.5], pa.float32()), pa.array([2**63, None], pa.uint64())
        flags = pa.array([True, None])
        kept = pa.table({"day": day, "single": single, "many": many, "flag": flags})
        write_map(tmp_path / "m.csv", self.Y, kept)
        rows = [line.split(",")[2:] for line in (tmp_path / "m.csv").read_text().splitlines()[1:]]
        assert rows == [["", "0.1", str(2**63), "True"], ["1970-01-01 00:00:00.000000003", "2.5", "", ""]]
        write_map(tmp_path / "m.parquet", self.Y, kept)
        assert pa.parquet.read_table(tmp_path / "m.parquet").select(kept.column_names).equals(kept)

    def test_many_rows(self, tmp_path):
        n = 70_000
        Y = np.arange(2.0 * n).reshape(n, 2).astype(np.float32)
        write_map(tmp_path / "m.csv", Y, pa.table({"t": pa.chunked_array([[None, "b"], ["c"] * (n - 2)])}))
        rows = [line.split(",") for line in (tmp_path / "m.csv").read_text().splitlines()]
        assert rows[0] == ["x", "y", "t"]
        assert [row[2] for row in rows[1:]] == ["", "b", *"c" * (n - 2)]
        assert [float(row[1]) for row in rows[1:]] == Y[:, 1].tolist()

    def test_every_component_has_a_column(self, tmp_path):
        for n_components, names in ((1, "x"), (3, "x,y,z")):
            write_map(tmp_path / "m.csv", np.ones((2, n_components)), pa.table({}))
            assert (tmp_path / "m.csv").read_text().splitlines()[0] == names

    @pytest.mark.parametrize("case", [str.lower, str.upper])
    def test_endings_whatever_their_case(self, tmp_path, case):
        found = {"cluster": np.array([0, 1])}
        for ending in (".npy", ".parquet", ".feather", ".arrow"):
            write_map(tmp_path / case(f"m{ending}"), self.Y, KEPT, found)
        assert np.load(tmp_path / case("m.npy")).tolist() == self.Y.tolist()
        written = pa.parquet.read_table(tmp_path / case("m.parquet"))
        assert written.to_pylist()[1] == {"map_x": 2.0, "y": -3.25, "cluster": 1, "x": 8, "kind": "c"}
        assert written.schema.field("kind").type == pa.string()
        for ending in (".feather", ".arrow"):
            assert pa.feather.read_table(tmp_path / case(f"m{ending}")).equals(written)
        assert len(os.listdir(tmp_path)) == 4

    def test_what_fails_leaves_nothing_behind(self, tmp_path, monkeypatch):
        target = tmp_path / "m.csv"
        target.write_text("precious")

        def full(file, table, delimiter):
            file.write("x,y")
            raise OSError("no space left on device")

        monkeypatch.setattr("laptsne.cli.outputs._write_text", full)
        with pytest.raises(OSError, match="no space"):
            write_map(target, self.Y, KEPT)
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


class TestOutputFiles:
    def test_what_is_refused(self, tmp_path, monkeypatch):
        there = tmp_path / "there.csv"
        there.write_text("x")

        def check(out, *, save=None, source="-", force=False):
            OutputFiles(out=out, save=save).check(source, force=force)

        check(tmp_path / "new.csv")
        check(there, force=True)
        assert "--force" in refusal(check, there)
        assert "no folder" in refusal(check, tmp_path / "none" / "x.csv")
        (tmp_path / "folder.csv").mkdir()
        assert "is a folder" in refusal(check, tmp_path / "folder.csv", force=True)
        assert "is the input file" in refusal(check, there, source=str(there), force=True)
        assert "named twice" in refusal(check, tmp_path / "a.csv", save=tmp_path / "folder.csv" / ".." / "a.csv")
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        assert "not writable" in refusal(check, tmp_path / "new.csv")
