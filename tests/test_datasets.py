import gzip
import hashlib
import io
import os
import struct
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from reproduction import datasets
from reproduction.datasets import archives, cache_folder, load, readers, title
from reproduction.datasets.archives import ARCHIVES

MNIST = Path(os.environ.get("LAPTSNE_DATA", "nowhere"), "mnist.npz")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no folder of data."""
    monkeypatch.delenv("LAPTSNE_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "home" / project)
    return tmp_path / "home" / "laptsne"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of the user's data."""
    monkeypatch.setenv("LAPTSNE_DATA", str(tmp_path))
    return tmp_path


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        self.server.requests.append(self.path)
        name = self.path.rsplit("/", maxsplit=1)[-1]
        if not self.path.startswith("/broken/"):
            return super().do_GET()
        data = (self.server.folder / name).read_bytes()  # sent by half
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        return None


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "public"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    server.requests, server.folder = [], folder
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def publish(server, monkeypatch):
    """Make archives the source of a data set, on the local server."""

    def publish(name, files, *, sha256=None, folders=("",)):
        for file, data in files.items():
            (server.folder / file).write_bytes(data)
        checksums = {file: sha256 or hashlib.sha256(data).hexdigest() for file, data in files.items()}
        addresses = [f"http://127.0.0.1:{server.server_port}/{folder}" for folder in folders]
        monkeypatch.setitem(ARCHIVES, name, {"folders": addresses, "sha256": checksums})

    return publish


def packed_idx(values):
    values = np.asarray(values, np.uint8)
    head = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return gzip.compress(head + values.tobytes(), 1)


def small_mnist(rng):
    images, labels = rng.integers(0, 256, (7, 4, 4)), rng.integers(0, 10, 7)
    files = {
        "train-images-idx3-ubyte.gz": packed_idx(images[:5]),
        "train-labels-idx1-ubyte.gz": packed_idx(labels[:5]),
        "t10k-images-idx3-ubyte.gz": packed_idx(images[5:]),
        "t10k-labels-idx1-ubyte.gz": packed_idx(labels[5:]),
    }
    return images.reshape(7, 16), labels, files


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def png(values):
    file = io.BytesIO()
    Image.fromarray(values).save(file, "png")
    return file.getvalue()


def views(pattern, n_objects, steps, *channels):
    """Plain images: the grey value is the object's number, with a white pixel in the corner."""
    members = {}
    for i in range(n_objects):
        image = np.full((128, 128, *channels), i, np.uint8)
        image[0, 0] = 255
        members |= {pattern.format(i + 1, step): png(image) for step in steps}
    return members


def small_har():
    def table(values):
        return "\n".join(" ".join(f"{v: .7e}" for v in row) for row in values).encode()

    X = np.arange(5 * 561).reshape(5, 561) / 1000
    y = np.array([[1], [6], [5], [2], [2]])
    members = {
        "UCI HAR Dataset/train/X_train.txt": table(X[:3]),
        "UCI HAR Dataset/train/y_train.txt": b"1\n6\n5\n",
        "UCI HAR Dataset/test/X_test.txt": table(X[3:]),
        "UCI HAR Dataset/test/y_test.txt": b"2\n2\n",
    }
    return X, y[:, 0], zipped({"UCI HAR Dataset.zip": zipped(members), "UCI HAR Dataset.names": b"561"})


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file()) if folder.exists() else []


def test_digits_and_waveform_need_no_file():
    assert load("digits")[0].shape == (1797, 64)
    X, y = load("waveform")
    assert X.shape == (5000, 21)
    assert np.bincount(y).min() > 1500
    np.testing.assert_array_equal(X, load("waveform")[0])


def test_waveform_has_the_means_of_breiman():
    X, y = load("waveform")
    position = np.arange(1, 22)
    triangles = [np.maximum(6 - abs(position - c), 0) for c in (7, 15, 11)]
    for label, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        np.testing.assert_allclose(X[y == label].mean(0), (triangles[a] + triangles[b]) / 2, atol=0.2)


def test_unknown_names():
    for function in (load, title):
        with pytest.raises(ValueError, match=r"name must be one of digits.*got 'iris'"):
            function("iris")


def test_archives_are_downloaded_once_and_then_read_from_the_cache(publish, server, cache, rng):
    X, y, files = small_mnist(rng)
    publish("mnist", files)
    for _ in range(2):
        found = load("mnist")
        np.testing.assert_array_equal(found[0], X)
        np.testing.assert_array_equal(found[1], y)
        assert found[0].dtype == found[1].dtype == np.uint8
        assert len(server.requests) == 4
        assert files_in(cache) == sorted(files)


def test_the_second_address_is_tried_if_the_first_fails(publish, server, rng):
    publish("mnist", small_mnist(rng)[2], folders=("missing/", ""))
    assert load("mnist")[0].shape == (7, 16)
    assert len(server.requests) == 8


def test_the_second_address_is_tried_if_the_first_serves_another_file(publish, server, rng):
    X, _, files = small_mnist(rng)
    (server.folder / "stale").mkdir()
    for name in files:
        (server.folder / "stale" / name).write_bytes(b"an older version")
    publish("mnist", files, folders=("stale/", ""))
    np.testing.assert_array_equal(load("mnist")[0], X)


def test_a_download_with_a_wrong_checksum_is_not_kept(publish, cache, rng):
    publish("mnist", small_mnist(rng)[2], sha256="0" * 64)
    with pytest.raises(FileNotFoundError, match=r"train-images.*could not be downloaded from .*hash.*0{64}"):
        load("mnist")
    assert files_in(cache) == []


def test_a_download_that_breaks_off_is_not_kept(publish, cache, rng):
    publish("mnist", small_mnist(rng)[2], folders=("broken/",))
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded.*broken.*bytes read"):
        load("mnist")
    assert files_in(cache) == []


def test_an_interrupted_download_is_not_kept(publish, cache, rng, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    publish("mnist", small_mnist(rng)[2])
    monkeypatch.setattr(archives._SizeLimit, "update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load("mnist")
    assert files_in(cache) == []


def test_a_download_larger_than_any_archive_is_stopped(publish, cache, rng, monkeypatch):
    publish("mnist", small_mnist(rng)[2])
    monkeypatch.setattr(archives, "_MAX_DOWNLOAD", 10)
    with pytest.raises(FileNotFoundError, match="sends more than 10 bytes"):
        load("mnist")
    assert files_in(cache) == []


def test_without_a_network_the_error_says_which_files_to_put_where(publish, server, cache, rng):
    publish("mnist", small_mnist(rng)[2])
    server.shutdown()
    server.server_close()
    with pytest.raises(FileNotFoundError, match=r"put mnist.npz.*LAPTSNE_DATA to it \(now None\)") as info:
        load("mnist")
    assert f"put {', '.join(ARCHIVES['mnist']['sha256'])} into {cache / 'mnist'}." in str(info.value)


def test_archives_put_into_the_cache_are_used(publish, server, cache, rng):
    X, _, files = small_mnist(rng)
    publish("mnist", files)
    (cache / "mnist").mkdir(parents=True)
    for name, data in files.items():
        (cache / "mnist" / name).write_bytes(data)
    np.testing.assert_array_equal(load("mnist")[0], X)
    assert server.requests == []


def test_an_archive_in_the_cache_with_another_checksum_is_not_used(publish, server, cache, rng):
    X, _, files = small_mnist(rng)
    publish("mnist", files)
    (cache / "mnist").mkdir(parents=True)
    (cache / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(packed_idx(np.zeros((5, 4, 4))))
    np.testing.assert_array_equal(load("mnist")[0], X)
    assert len(server.requests) == 4


def test_the_folder_of_the_environment_comes_first(tmp_path, publish, server, monkeypatch, rng):
    publish("mnist", small_mnist(rng)[2])
    load("mnist")
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("LAPTSNE_DATA", str(own))
    assert load("mnist")[0].shape == (7, 16)
    np.savez(own / "mnist.npz", X=np.ones((4, 3)), y=np.arange(4))
    assert load("mnist")[0].shape == (4, 3)
    assert len(server.requests) == 4


def test_a_damaged_file_is_named(own):
    (own / "coil20.npz").write_bytes(b"PK\x03\x04 not quite")
    with pytest.raises(OSError, match=r"coil20.npz is not an NPZ file of arrays X and y"):
        load("coil20")


def test_an_npz_file_that_decompresses_to_too_much_is_refused(own, monkeypatch):
    monkeypatch.setattr(readers, "_MAX_UNPACKED", 1 << 16)
    np.savez_compressed(own / "coil20.npz", X=np.zeros((1 << 10, 1 << 10)), y=np.zeros(1 << 10))
    with pytest.raises(OSError, match="more than the limit of 65536"):
        load("coil20")


def test_coil20(publish):
    publish("coil20", {"coil-20-proc.zip": zipped(views("coil-20-proc/obj{}__{}.png", 20, range(72)))})
    X, y = load("coil20")
    assert X.shape == (1440, 128 * 128)
    np.testing.assert_array_equal(y, np.repeat(np.arange(20), 72))
    np.testing.assert_array_equal(X[:, 0], 255)
    np.testing.assert_array_equal(X[:, -1], y)


def test_coil100_is_grey_and_every_pixel_a_mean_of_sixteen(publish):
    publish("coil100", {"coil-100.zip": zipped(views("coil-100/obj{}__{}.png", 100, range(0, 360, 5), 3))})
    X, y = load("coil100")
    assert X.shape == (7200, 32 * 32)
    np.testing.assert_array_equal(X[:, -1], y)
    np.testing.assert_allclose(X[:, 0], (255 + 15 * y.astype(float)) / 16, atol=0.51)


def test_har(publish):
    X, y, data = small_har()
    publish("har", {"har.zip": data})
    found = load("har")
    np.testing.assert_allclose(found[0], X, rtol=1e-6)
    np.testing.assert_array_equal(found[1], y)
    assert found[0].dtype == np.float32


def test_titles_of_data_in_the_cache():
    assert [title(name) for name in ("har", "digits", "coil20", "mnist")] == ["HAR", "Digits", "COIL20", "MNIST"]


def test_titles_say_whether_har_is_a_reconstruction(own):
    np.savez(own / "har_reconstructed.npz", X=np.ones((4, 3)), y=np.arange(4))
    assert title("har") == "HAR (rebuilt)"
    assert load("har")[0].shape == (4, 3)
    np.savez(own / "har.npz", X=np.ones((5, 3)), y=np.arange(5))
    assert title("har") == "HAR"
    assert load("har")[0].shape == (5, 3)


def test_every_name_has_a_title():
    assert all(title(name) for name in datasets.NAMES)


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "C:\\evil", "c:evil", "..\\evil", "\\evil"])
def test_archives_whose_members_point_outside_are_refused(publish, tmp_path, name):
    publish("coil20", {"coil-20-proc.zip": zipped({name: b"evil", "coil-20-proc/obj1__0.png": b""})})
    with pytest.raises(OSError, match="points outside the archive"):
        load("coil20")
    assert not list(tmp_path.rglob("*evil*"))


def test_links_in_archives_are_refused(publish):
    link = zipfile.ZipInfo("coil-20-proc/obj1__0.png")
    link.external_attr = 0o120777 << 16
    publish("coil20", {"coil-20-proc.zip": zipped({link: b"/etc/passwd"})})
    with pytest.raises(OSError, match="points outside the archive"):
        load("coil20")


def test_bombs_are_not_unpacked(publish, monkeypatch, rng):
    monkeypatch.setattr(readers, "_MAX_UNPACKED", 1 << 16)
    bomb = zipped({"coil-20-proc/obj1__0.png": bytes(1 << 20)})
    publish("coil20", {"coil-20-proc.zip": bomb})
    with pytest.raises(OSError, match="more than the limit of 65536"):
        load("coil20")
    publish("har", {"har.zip": zipped({"UCI HAR Dataset.zip": bomb})})
    with pytest.raises(OSError, match="more than the limit of 65536"):
        load("har")
    files = small_mnist(rng)[2]
    publish("mnist", files | {"train-images-idx3-ubyte.gz": packed_idx(np.zeros((1 << 10, 1 << 10, 1)))})
    with pytest.raises(OSError, match="more than the limit of 65536"):
        load("mnist")


def test_a_member_that_is_larger_than_it_says_is_not_unpacked(publish):
    size = 1 << 20
    data = zipped({"UCI HAR Dataset.zip": bytes(size)})
    lie = data.replace(struct.pack("<I", size), struct.pack("<I", 100))
    assert lie != data
    publish("har", {"har.zip": lie})
    with pytest.raises(OSError, match="har could not be read"):
        load("har")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\0\0\x09\x01\0\0\0\x01a", "not in IDX format"),
        (b"\0\0\x08\x01\0\0\0\x02a", "cut short"),
        (b"\0\0\x08\x01\0\0", "cut short"),
        (b"\0\0\x08\x01\0\0\0\x01ab", "longer than its header says"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "more than the limit"),
        (b"", "not in IDX format"),
    ],
)
def test_idx_files_that_are_not(tmp_path, content, message):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(readers.BadArchive, match=message):
        readers.parse_idx(path)


def test_archives_that_are_something_else(publish, rng):
    files = small_mnist(rng)[2]
    for wrong in (b"<html>", files["train-images-idx3-ubyte.gz"][:-9], packed_idx([[1, 2]])):
        publish("mnist", files | {"train-images-idx3-ubyte.gz": wrong})
        with pytest.raises(OSError, match="mnist could not be read"):
            load("mnist")
    bad_png = png(np.zeros((128, 128), np.uint8))[:60]
    first = "coil-20-proc/obj1__0.png"
    for wrong in (b"<html>", zipped({"readme": b""}), zipped({first: b""}), zipped({first: bad_png})):
        publish("coil20", {"coil-20-proc.zip": wrong})
        with pytest.raises(OSError, match="coil20 could not be read"):
            load("coil20")
    large = zipped({first: png(np.zeros((256, 128), np.uint8))})
    publish("coil20", {"coil-20-proc.zip": large})
    with pytest.raises(OSError, match=r"has size \(128, 256\)"):
        load("coil20")


def test_the_cache_is_a_folder_of_the_project(cache):
    assert cache_folder() == cache


def test_every_archive_has_a_checksum_and_a_reader():
    assert set(readers.READERS) == set(ARCHIVES)
    for source in ARCHIVES.values():
        assert source["folders"][0].startswith("https://")
        assert all(folder.endswith("/") for folder in source["folders"])
        assert all(len(bytes.fromhex(sha256)) == 32 for sha256 in source["sha256"].values())


# SHA-256 of the unpacked files of MNIST.
UNPACKED = {
    "train-images-idx3-ubyte.gz": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte.gz": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte.gz": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte.gz": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


@pytest.mark.skipif(not MNIST.is_file(), reason="mnist.npz is not in the folder of LAPTSNE_DATA")
def test_mnist_is_the_published_one_and_is_converted_to_itself(publish):
    with np.load(MNIST) as file:
        X, y = file["X"], file["y"]
    images = X.reshape(-1, 28, 28)
    parts = images[:60000], y[:60000], images[60000:], y[60000:]
    files = dict(zip(UNPACKED, map(packed_idx, parts), strict=True))
    for name, data in files.items():
        assert hashlib.sha256(gzip.decompress(data)).hexdigest() == UNPACKED[name]
    publish("mnist", files)
    found = load("mnist")
    np.testing.assert_array_equal(found[0], X)
    np.testing.assert_array_equal(found[1], y)
