"""Malicious files and data: what SECURITY.md guarantees."""

import ast
import base64
import contextlib
import gzip
import hashlib
import io
import os
import pickle
import re
import socket
import stat
import struct
import sys
import tracemalloc
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse
from kernel_calls import from_python

import laptsne
from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne._runtime import files
from laptsne.cli.reading import read_source
from laptsne.cli.tables import as_numpy
from laptsne.cli.terminal import InputError, say
from laptsne.engine import checkpoint
from laptsne.plotting import explorer
from reproduction import datasets
from reproduction.plan import Options
from reproduction.report import render, report_context
from reproduction.result_cache import ResultCache
from reproduction.runs import Record, Run, Runner

FAST = {"max_iter": 30, "perplexity": 10, "random_state": 0}
ROOM = 1 << 24  # bytes of available memory in tests that limit it
NASTY = '"><script>alert(1)</script><img src=x onerror=alert(2)>{{script}}</title></style>-->'


class Evil:
    """Writes a file when unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("ran"),))


@pytest.fixture(autouse=True)
def nothing_ran(tmp_path, monkeypatch):
    """Run each test in its own folder, and check that no code ran and nothing was written outside."""
    folder = tmp_path / "inside"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LAPTSNE_DATA", str(folder))
    yield
    assert not Path("ran").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr("laptsne._runtime.available_memory.available_memory", lambda: ROOM)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    return LaptSNE(**FAST).fit(rng.normal(size=(60, 4)))


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npy_head(shape, descr="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return file.getvalue()


def refusal(name, data=None):
    """Return the error message for a file that must be refused."""
    if data is not None:
        Path(name).write_bytes(data)
    with pytest.raises(InputError) as error:
        read_source(name)
    message = str(error.value)
    assert name in message
    assert "\n" not in message
    return message


class TestNoCodeRuns:
    @pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.csv.gz", "x.mtx", "x.parquet", "x.h5ad"])
    def test_a_pickle_under_any_name(self, name):
        refusal(name, pickle.dumps(Evil()))

    def test_arrays_of_objects(self):
        evil = npy(np.array([[Evil()]], dtype=object))
        assert "NPY" in refusal("x.npy", evil)
        assert "NPZ" in refusal("x.npz", zipped({"X.npy": evil}))
        assert "NPZ" in refusal("y.npz", zipped({"X.npy": npy(np.ones((2, 2))), "y.npy": npy(np.array([Evil()] * 2))}))

    def test_code_in_the_header_of_an_array(self):
        code = b"__import__('pathlib').Path('ran').touch() or {'descr':'<f8','fortran_order':False,'shape':(1,1)}"
        head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(code)) + code
        assert "NPY" in refusal("x.npy", head + bytes(8))
        assert "NPZ" in refusal("x.npz", zipped({"X.npy": head + bytes(8)}))

    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize(
        "data", [pickle.dumps(Evil()), npy(np.array([Evil()])), npy(np.ones(3))[:-1], b"PK\x03\x04"]
    )
    def test_data_sets(self, data, packed):
        Path("mnist.npz").write_bytes(zipped({"X.npy": data, "y.npy": data}) if packed else data)
        with pytest.raises(OSError, match="is not an NPZ file of arrays X and y"):
            datasets.load("mnist")

    def test_models_and_checkpoints(self, blobs):
        for data in (pickle.dumps(Evil()), zipped({"header.json": pickle.dumps(Evil())}, zipfile.ZIP_STORED)):
            Path("model").write_bytes(data)
            with pytest.raises(ValueError, match="not a model saved by laptsne"):
                LaptSNE.load("model")
            with pytest.raises(ValueError, match="not a checkpoint saved by laptsne"):
                LaptSNE(**FAST, checkpoint="model").fit(blobs[0])
            assert Path("model").read_bytes() == data

    @pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::RuntimeWarning")
    def test_types_of_python_in_parquet(self):
        arrow = pytest.importorskip("pyarrow", reason="needs the extra laptsne[cli]")
        from pyarrow import parquet

        extension = {
            b"ARROW:extension:name": b"arrow.py_extension_type",
            b"ARROW:extension:metadata": pickle.dumps(Evil()),
        }
        schema = arrow.schema([arrow.field("a", arrow.float64(), metadata=extension)])
        parquet.write_table(arrow.table([[1.0, 2.0]], schema=schema), "x.parquet")
        assert read_source("x.parquet").columns.num_rows == 2

    def test_no_module_could_run_code(self):
        """No module of the package uses pickle, evaluation, a shell or extraction to disk."""
        root = Path(laptsne.__file__).parent
        found = []
        for path in root.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in getattr(node, "names", ()) if isinstance(alias, ast.alias)]
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                if isinstance(node, ast.Call):
                    names += [ast.unparse(node.func), f".{getattr(node.func, 'attr', '')}"]
                    names += ["allow_pickle"] if any(_allows_pickle(word) for word in node.keywords) else []
                found += [(path.name, name) for name in names if name in _FORBIDDEN]
        assert found == []


_FORBIDDEN = {
    *("pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "subprocess", "tarfile"),
    *("eval", "exec", "compile", "__import__", ".popen", ".spawn", ".extract", ".extractall", ".mktemp"),
    *("os.system", ".unpack_archive", "allow_pickle", ".read_pickle"),
}


def _allows_pickle(word):
    return word.arg == "allow_pickle" and getattr(word.value, "value", True) is not False


class TestPathsToOtherFiles:
    @pytest.mark.parametrize("name", ["../../evil", "/evil", "..\\evil", "a/../../evil"])
    def test_members_of_archives_are_not_unpacked(self, model, name):
        """Names in an archive are only looked up in the archive."""
        X = npy(np.ones((3, 2)))
        Path("x.npz").write_bytes(zipped({f"{name}.npy": X, "X.npy": X}))
        assert read_source("x.npz").X.shape == (3, 2)
        content, arrays = _saved(model)
        content["embedding"] = {"array": name}
        arrays[name] = arrays.pop("embedding")
        files.write_archive("model", content, arrays)
        np.testing.assert_array_equal(LaptSNE.load("model").embedding_, model.embedding_)

    def test_links_in_archives_are_only_bytes(self):
        Path("secret.npy").write_bytes(npy(np.full((3, 2), 7.0)))
        link = zipfile.ZipInfo("X.npy")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        refusal("x.npz", zipped({link: b"secret.npy"}))

    def test_models_name_no_files_to_write(self, model):
        content, arrays = _saved(model)
        content["parameters"]["dict"]["checkpoint"] = "../evil"
        files.write_archive("model", content, arrays)
        loaded = LaptSNE.load("model")
        assert loaded.checkpoint is None

    def test_only_own_leftovers_are_removed(self, blobs):
        mine = [Path(".run.backup"), Path(".run.a1b2c3d4"), Path(".running")]
        for path in mine:
            path.touch()
        left = Path(".run.unfinished-abc")
        left.touch()
        LaptSNE(**FAST, checkpoint="run").fit(blobs[0])
        assert all(path.exists() for path in mine)
        assert not left.exists()

    def test_h5ad_with_parts_in_other_files(self):
        h5py = pytest.importorskip("h5py", reason="needs the extra laptsne[scanpy]")
        anndata = pytest.importorskip("anndata", reason="needs the extra laptsne[scanpy]")
        Path("secret").write_bytes(bytes(range(64)))
        anndata.AnnData(np.ones((4, 2), np.float32)).write_h5ad("plain.h5ad")

        def outside(file):
            del file["X"]
            file.create_dataset("X", (4, 2), "f8", external=[("secret", 0, 64)])

        def linked(file):
            file["obsm"]["X_pca"] = h5py.ExternalLink("plain.h5ad", "/X")

        def virtual(file):
            layout = h5py.VirtualLayout((4, 2), "f4")
            layout[:] = h5py.VirtualSource("plain.h5ad", "X", (4, 2))
            del file["X"]
            file.create_virtual_dataset("X", layout)

        for change in (outside, linked, virtual):
            Path("x.h5ad").write_bytes(Path("plain.h5ad").read_bytes())
            with h5py.File("x.h5ad", "a") as file:
                change(file)
            assert "refers to another file" in refusal("x.h5ad")


def _saved(model):
    model.save("saved")
    return files.read_archive("saved")


class TestBombs:
    """A small file that declares or decompresses to more than the available memory is refused before allocation."""

    @pytest.fixture(autouse=True)
    def bounded(self, little_memory):
        """Check that the peak of what Python allocates stays near the limit."""
        tracemalloc.start()
        yield
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * ROOM

    def test_arrays(self):
        shape = (1 << 16, 1 << 10)  # half a gigabyte
        assert "GiB" in refusal("x.npy", npy_head(shape))
        bomb = zipped({"X.npy": npy_head(shape) + bytes(1 << 20)})
        assert "GiB" in refusal("x.npz", bomb)
        n = 1 << 17  # the labels take more as text than they declare
        assert "GiB" in refusal("y.npz", zipped({"X.npy": npy(np.zeros((n, 1), bool)), "y.npy": npy_head((n,), "<U2")}))

    @pytest.mark.parametrize("columns", [0, 1])
    def test_arrays_of_items_without_bytes(self, columns):
        """Two million empty strings take no room in an array, but each is text in a table."""
        n = 2_000_000
        matrix = npy(np.zeros((n, columns), bool))
        Path("x.npz").write_bytes(zipped({"X.npy": matrix, "y.npy": npy_head((n,), "<U0")}))
        assert Path("x.npz").stat().st_size < 1 << 13
        assert ("GiB" if columns else "has shape (2000000, 0)") in refusal("x.npz")

    def test_numbers_that_grow_as_they_are_read(self):
        """Integers of one byte become floats of eight."""
        Path("x.npy").write_bytes(npy(np.zeros((ROOM // 4, 1), np.int8)))
        assert "GiB" in refusal("x.npy")

    def test_models_with_arrays_of_items_without_bytes(self, model):
        content, arrays = _saved(model)
        content["fitted"]["dict"]["feature_names_in_"] = {"array": "names"}
        files.write_archive("model", content, arrays | {"names": np.ndarray(10_000_000, "<U0")})
        with pytest.raises(ValueError, match="larger than the file"):
            LaptSNE.load("model")

    def test_the_array_that_is_read_is_the_one_that_was_checked(self):
        """np.load would prefer a member without the suffix."""
        twice = zipped({"X.npy": npy(np.ones((3, 2))), "X": npy_head((1 << 16, 1 << 10)) + bytes(1 << 20)})
        Path("x.npz").write_bytes(twice)
        assert read_source("x.npz").X.shape == (3, 2)

    def test_an_array_whose_header_has_no_end(self):
        head = b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 28) + b" " * (1 << 28)
        bomb = zipped({"X.npy": head})
        del head
        assert len(bomb) < 1 << 19
        tracemalloc.reset_peak()  # making the bomb took more
        assert "NPZ" in refusal("x.npz", bomb)

    def test_text(self):
        rows = gzip.compress(b"a,b\n" + b"1,2\n" * (1 << 23), 1)
        assert "GiB" in refusal("x.csv.gz", rows)
        words = gzip.compress(b"a\tb\n" + b"xx\tyy\n" * (1 << 20), 1)
        assert "GiB" in refusal("x.tsv.gz", words)

    def test_lines_without_end(self):
        packed = gzip.compress(b"1" * (5 << 22))
        assert "GiB" in refusal("x.csv.gz", packed)
        assert "GiB" in refusal("x.mtx.gz", packed)
        assert "GiB" in refusal("y.csv.gz", gzip.compress(b"a,b\n" + b"1" * (5 << 22)))

    def test_matrix_market(self):
        begin = b"%%MatrixMarket matrix "
        for sizes in (b"coordinate real general\n2 2 1000000000000\n", b"coordinate real general\n10000000000 2 1\n"):
            assert "GiB" in refusal("x.mtx.gz", gzip.compress(begin + sizes + b"1 1 1\n"))
        longer = begin + b"coordinate real general\n2 2 1\n" + b"1 1 1\n" * (1 << 20)
        assert "1 entries should follow" in refusal("x.mtx.gz", gzip.compress(longer, 1))

    def test_names_beside_a_matrix(self):
        Path("matrix.mtx").write_bytes(b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n")
        Path("features.tsv").write_text("g\nh\n")
        Path("barcodes.tsv.gz").write_bytes(gzip.compress(b"\n" * (1 << 22), 1))
        assert "GiB" in refusal("matrix.mtx")

    def test_parquet(self):
        arrow = pytest.importorskip("pyarrow", reason="needs the extra laptsne[cli]")
        from pyarrow import parquet

        parquet.write_table(arrow.table({"a": np.zeros(1 << 21)}), "x.parquet")
        assert Path("x.parquet").stat().st_size < 1 << 16
        assert "GiB" in refusal("x.parquet")

    def test_lists_in_parquet(self):
        arrow = pytest.importorskip("pyarrow", reason="needs the extra laptsne[cli]")
        from pyarrow import parquet

        parquet.write_table(arrow.table({"a": [np.zeros(1 << 20)] * 2}), "x.parquet")
        assert Path("x.parquet").stat().st_size < 1 << 16
        assert "GiB" in refusal("x.parquet")

    @pytest.mark.parametrize("compression", ["lz4", "zstd"])
    def test_arrow(self, compression):
        arrow = pytest.importorskip("pyarrow", reason="needs the extra laptsne[cli]")
        from pyarrow import feather

        words = arrow.array(["x" * (1 << 24), "y"])
        for values in (np.zeros(1 << 22), [np.zeros(1 << 20)] * 3, words, words.dictionary_encode()):
            feather.write_feather(arrow.table({"a": values}), "x.feather", compression=compression)
            assert Path("x.feather").stat().st_size < 1 << 18
            assert "GiB" in refusal("x.feather")

    def test_damaged_arrow(self):
        arrow = pytest.importorskip("pyarrow", reason="needs the extra laptsne[cli]")
        from pyarrow import feather

        table = arrow.table({"a": [1.5, 2.5], "t": arrow.array(["u", "v"]).dictionary_encode(), "l": [[1.0], [2.0]]})
        feather.write_feather(table, "x.arrow", compression="lz4")
        data, rng = Path("x.arrow").read_bytes(), np.random.default_rng(0)
        for _ in range(300):
            damaged = bytearray(data)
            for position in rng.integers(len(data), size=3):
                damaged[position] = rng.integers(256)
            Path("y.arrow").write_bytes(damaged)
            with contextlib.suppress(InputError):
                read_source("y.arrow")

    @pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string(), pyarrow.binary()])
    def test_long_texts_of_any_type_are_held_once(self, kind):
        texts = pyarrow.array(["x" * 10_000] * 2_000, kind)
        assert texts.nbytes > ROOM
        pyarrow.parquet.write_table(pyarrow.table({"t": texts, "a": np.zeros(2_000)}), "x.parquet")
        assert read_source("x.parquet").columns.nbytes < ROOM // 100

    def test_a_long_string_in_every_row_is_held_once(self):
        arrow = pytest.importorskip("pyarrow", reason="needs the extra laptsne[cli]")
        from pyarrow import parquet

        n, long = 10_000, "x" * 10_000
        texts = arrow.array([None, 0] * (n // 2), "int32")
        repeated = arrow.DictionaryArray.from_arrays(texts, [long])
        parquet.write_table(arrow.table({"t": repeated, "a": np.zeros(n)}), "x.parquet", store_schema=False)
        assert Path("x.parquet").stat().st_size < 1 << 16
        column = as_numpy(read_source("x.parquet").columns["t"])
        assert column[1] == long
        assert column[0] is None
        assert len({id(value) for value in column[1::2]}) == 1

    def test_h5ad(self):
        h5py = pytest.importorskip("h5py", reason="needs the extra laptsne[scanpy]")
        anndata = pytest.importorskip("anndata", reason="needs the extra laptsne[scanpy]")
        anndata.AnnData(np.ones((4, 2), np.float32)).write_h5ad("x.h5ad")
        with h5py.File("x.h5ad", "a") as file:
            file["obs"].create_dataset("huge", (1 << 40,), "f8", chunks=(1 << 10,))
            file["obs"]["again"] = file["obs"]  # in itself
        assert "GiB" in refusal("x.h5ad")

    def test_models_take_no_more_than_their_file(self, model):
        """Members may overlap in a malicious file."""
        _saved(model)
        data = bytearray(Path("saved").read_bytes())
        directory = data.rindex(b"PK\x01\x02")
        size = struct.pack("<I", len(data))
        data[directory + 20 : directory + 28] = size + size
        Path("model").write_bytes(data)
        with pytest.raises(ValueError, match="larger than the file"):
            LaptSNE.load("model")

    def test_nesting_and_numbers_without_end(self):
        for text in ("[" * 100_000, "1" * 100_000):
            Path("model").write_bytes(zipped({"header.json": text}, zipfile.ZIP_STORED))
            with pytest.raises(ValueError, match="not a model saved by laptsne"):
                LaptSNE.load("model")


class TestCompiledCode:
    """Compiled code does not check bounds: what it gets from files must be consistent."""

    @pytest.mark.parametrize("part", ["data", "embedding", "potential.grid", "potential.origin"])
    @pytest.mark.parametrize("change", ["nan", "infinite", "narrow", "short", "none"])
    def test_models(self, model, part, change):
        content, arrays = _saved(model)
        array = arrays[part].copy()
        if change == "narrow":
            array = array[..., :1]
        elif change in ("short", "none"):
            array = array[: 3 if change == "short" else 0]
        else:
            array.flat[-1] = np.nan if change == "nan" else np.inf
        files.write_archive("model", content, arrays | {part: array})
        if array.shape == arrays[part].shape and np.array_equal(array, arrays[part]):
            pytest.skip("nothing to cut off")
        with pytest.raises(ValueError, match=r"embedding: |data: |labels: |potential|n_features_in_ is 4"):
            LaptSNE.load("model")

    def test_the_potential_is_read_inside_the_mesh_only(self):
        from laptsne.fields.potential import potential_at

        grid, scratch = np.zeros((1, 5, 5), np.float32), np.zeros((3, 4))
        for coordinate in (np.nan, np.inf, -np.inf, 1e300):
            y = np.array([coordinate, 0.0])
            assert from_python(potential_at)(y, np.zeros(2), 1.0, grid, scratch, scratch.copy(), np.zeros(2)) == 0

    def test_sparse_matrices_in_h5ad(self):
        h5py = pytest.importorskip("h5py", reason="needs the extra laptsne[scanpy]")
        anndata = pytest.importorskip("anndata", reason="needs the extra laptsne[scanpy]")
        for matrix in (scipy.sparse.csr_matrix(np.eye(4, 3)), scipy.sparse.csc_matrix(np.eye(4, 3))):
            anndata.AnnData(matrix).write_h5ad("x.h5ad")
            with h5py.File("x.h5ad", "a") as file:
                file["X/indices"][1] = 1 << 30
            assert "indices must be" in refusal("x.h5ad")

    def test_a_parquet_file_with_any_byte_changed(self):
        words = ["one", "two", "three", "four", "five", "six"] * 3
        pyarrow.parquet.write_table(pyarrow.table({"t": words}), "x.parquet", compression="none", store_schema=False)
        data = Path("x.parquet").read_bytes()
        for i in range(4, len(data) - 8):
            changed = bytearray(data)
            changed[i] ^= 0xFF
            Path("y.parquet").write_bytes(changed)
            with contextlib.suppress(InputError):
                columns = read_source("y.parquet").columns
                assert all(len(as_numpy(column)) == columns.num_rows for column in columns.columns)

    def test_checkpoints(self, blobs, monkeypatch):
        monkeypatch.setattr(checkpoint, "EVERY", 0.0)

        class Stopped(Exception):
            pass

        def stop(state):
            if state.iteration == 20:
                raise Stopped

        with pytest.raises(Stopped):
            LaptSNE(**FAST, checkpoint="run", callbacks=stop).fit(blobs[0])
        content, arrays = files.read_archive("run")
        Y, velocity = "descent.Y", "descent.velocity"
        wrong = [
            (content, arrays | {Y: arrays[Y][:10]}),
            (content, arrays | {velocity: np.full_like(arrays[velocity], np.nan)}),
            (content, {name: array for name, array in arrays.items() if name != Y}),
            ({"digest": content["digest"]}, arrays),
        ]
        for parts in wrong:
            files.write_archive("run", *parts)
            with pytest.raises(ValueError, match="does not hold the state of a run"):
                LaptSNE(**FAST, checkpoint="run").fit(blobs[0])


class ParsedHTML(HTMLParser):
    """Tags, attributes and texts of an HTML file."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def addresses(self):
        return [value for name, value in self.attributes if name in ("src", "href", "action", "srcset", "data")]


class TestHTML:
    def explored(self, text):
        Y = np.arange(12.0).reshape(6, 2)
        columns = {text: [text, "b"] * 3, "number": np.arange(6.0)}
        return ParsedHTML(explorer(Y, "map.html", columns=columns, color=text, title=text).read_text(encoding="utf-8"))

    def reported(self, text):
        runner, run = Runner(ResultCache(Path("cache"))), Run("digits", text)
        runner.n_classes["digits"], runner.missing_sets["digits"] = 10, text
        runner.records[run] = Record(run, None, text, remarks=[text])
        return ParsedHTML(render("html", report_context(runner, Options(("digits",), (text,)), {"frontier": b"PNG"})))

    @pytest.mark.parametrize("make", ["explored", "reported"])
    def test_no_tag_or_attribute_comes_from_the_data(self, make):
        nasty, plain = getattr(self, make)(NASTY), getattr(self, make)("plain")
        assert nasty.tags == plain.tags
        assert [name for name, _ in nasty.attributes] == [name for name, _ in plain.attributes]
        assert NASTY in nasty.texts
        assert not any(name.startswith("on") for name, _ in nasty.attributes)

    @pytest.mark.parametrize("make", ["explored", "reported"])
    def test_a_policy_forbids_foreign_scripts_and_requests(self, make):
        page = getattr(self, make)(NASTY)
        (policy,) = [value for name, value in page.attributes if name == "content" and "default-src" in value]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert all(address.startswith(("data:", "#")) for address in page.addresses)

    def test_the_policy_of_the_report_allows_its_style(self):
        text = render("html", report_context(Runner(ResultCache(Path("cache"))), Options((), ()), {}))
        style = re.search("<style>(.*)</style>", text, re.DOTALL)[1]
        assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in text

    def test_control_characters_are_not_printed(self, capsys):
        say(["before \x1b[2J\x1b]0;title\x07 \x9b31m after\ttab"])
        said = capsys.readouterr().err
        assert "before" in said
        assert "after" in said
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", said.replace("\n", ""))


class TestOutputFiles:
    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
    @pytest.mark.parametrize("mask", [0o077, 0o022])
    def test_permissions_follow_the_umask(self, model, mask):
        before = os.umask(mask)
        try:
            with files.atomic_write(Path("one")) as temporary:
                assert stat.S_IMODE(temporary.stat().st_mode) == 0o666 & ~mask
            model.save("model")
            explorer(np.eye(3, 2), "map.html")
        finally:
            os.umask(before)
        paths = [Path("one"), Path("model"), Path("map.html")]
        assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o666 & ~mask}

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
    def test_what_replaces_a_private_file_is_private_from_the_start(self):
        Path("one").touch(0o600)
        with files.atomic_write(Path("one")) as temporary:
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600


class TestNetwork:
    @pytest.fixture
    def sockets(self, monkeypatch):
        """Calls of bind, listen and connect."""
        used = []

        class Watched(socket.socket):
            def bind(self, address):
                used.append(("bind", address))
                return super().bind(address)

            def listen(self, *args):
                used.append(("listen", args))
                return super().listen(*args)

            def connect(self, address):
                used.append(("connect", address))
                return super().connect(address)

        monkeypatch.setattr(socket, "socket", Watched)
        return used

    def test_connections_would_be_seen(self, sockets):
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
            pass
        assert [kind for kind, _ in sockets] == ["bind", "listen", "connect"]

    def test_dask_opens_no_port(self, sockets, rng):
        da = pytest.importorskip("dask.array", reason="needs the extra laptsne[distributed]")
        X = rng.normal(size=(400, 5))
        before = _listening()
        model = LandmarkLaptSNE(n_landmarks=60, **FAST)
        Y = model.fit_transform(da.from_array(X, chunks=(100, -1)))
        Y.compute()
        model.transform(da.from_array(X[:50], chunks=(20, -1))).compute()
        assert sockets == []
        assert _listening() <= before
        assert "distributed" not in type(Y.dask).__module__

    def test_fits_models_and_html_files_use_no_network(self, sockets, blobs):
        X, labels = blobs
        model = LaptSNE(**FAST, n_jobs=2).fit(X)
        model.save("model")
        LaptSNE.load("model").transform(X[:5])
        explorer(model.embedding_, "map.html", columns={"label": labels})
        assert sockets == []


def _listening():
    """Ports on which this process listens, as far as /proc tells."""
    try:
        inodes = {os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}
    except OSError:
        return set()
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/self/net", table)
        rows = [line.split() for line in path.read_text().splitlines()[1:]] if path.exists() else []
        found |= {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}
    return found
