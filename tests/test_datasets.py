import gzip
import hashlib
import io
import os
import struct
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from reproduction import datasets
from reproduction.datasets import cache_folder, load, readers, title
from reproduction.datasets.sources import SOURCES, Archive, Source

MNIST = Path(os.environ.get("LAPTSNE_DATA", "nowhere"), "mnist.npz")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no folder of data."""
    monkeypatch.delenv("LAPTSNE_DATA", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "laptsne"


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        self.server.asked.append(self.path)
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
    server.asked, server.folder = [], folder
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
        archives = []
        for file, data in files.items():
            (server.folder / file).write_bytes(data)
            urls = tuple(f"http://127.0.0.1:{server.server_port}/{folder}{file}" for folder in folders)
            archives.append(Archive(file, sha256 or hashlib.sha256(data).hexdigest(), urls))
        monkeypatch.setitem(SOURCES, name, Source(tuple(archives), SOURCES[name].read))

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
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) if folder.exists() else []


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


def test_an_archive_is_downloaded_once_and_then_read_from_the_cache(publish, server, cache, rng):
    X, y, files = small_mnist(rng)
    publish("mnist", files)
    for _ in range(2):
        found = load("mnist")
        np.testing.assert_array_equal(found[0], X)
        np.testing.assert_array_equal(found[1], y)
        assert found[0].dtype == found[1].dtype == np.uint8
        assert len(server.asked) == 4
        assert files_in(cache) == ["mnist.npz"]


def test_the_second_address_serves_where_the_first_does_not(publish, server, rng):
    publish("mnist", small_mnist(rng)[2], folders=("missing/", ""))
    assert load("mnist")[0].shape == (7, 16)
    assert len(server.asked) == 8


def test_a_wrong_checksum_is_an_error_and_nothing_is_kept(publish, cache, rng):
    publish("mnist", small_mnist(rng)[2], sha256="0" * 64)
    with pytest.raises(OSError, match=r"nothing was kept.*not the published train-images.*SHA-256 is \w+, not 0{64}"):
        load("mnist")
    assert files_in(cache) == []


def test_a_download_that_breaks_off_leaves_nothing(publish, cache, rng):
    publish("mnist", small_mnist(rng)[2], folders=("broken/",))
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded.*broke off after \d+ of \d+"):
        load("mnist")
    assert files_in(cache) == []


def test_an_interrupted_download_leaves_nothing(publish, cache, rng, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    publish("mnist", small_mnist(rng)[2])
    monkeypatch.setattr("rich.progress.Progress.update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load("mnist")
    assert files_in(cache) == []


def test_more_than_any_archive_has_is_not_downloaded(publish, cache, rng, monkeypatch):
    publish("mnist", small_mnist(rng)[2])
    monkeypatch.setattr("reproduction.datasets.download._MAX_DOWNLOAD", 10)
    with pytest.raises(FileNotFoundError, match="sends more than 10 bytes"):
        load("mnist")
    assert files_in(cache) == []


def test_without_a_network_the_error_says_what_to_put_where(publish, server, cache, rng):
    publish("mnist", small_mnist(rng)[2])
    server.shutdown()
    server.server_close()
    with pytest.raises(FileNotFoundError, match=r"put mnist.npz.*LAPTSNE_DATA to it \(now None\)") as info:
        load("mnist")
    assert f"put {', '.join(a.name for a in SOURCES['mnist'].archives)} into {cache / 'mnist'}." in str(info.value)


def test_archives_put_into_the_cache_are_used_and_stay(publish, server, cache, rng):
    X, _, files = small_mnist(rng)
    publish("mnist", files)
    (cache / "mnist").mkdir(parents=True)
    for name, data in files.items():
        (cache / "mnist" / name).write_bytes(data)
    np.testing.assert_array_equal(load("mnist")[0], X)
    assert server.asked == []
    assert files_in(cache) == sorted(["mnist", "mnist.npz", *(f"mnist{os.sep}{name}" for name in files)])


def test_an_archive_put_into_the_cache_is_checked(publish, cache, rng):
    publish("mnist", small_mnist(rng)[2])
    (cache / "mnist").mkdir(parents=True)
    (cache / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(b"something else")
    with pytest.raises(OSError, match=r"train-images-idx3-ubyte.gz is not the published"):
        load("mnist")
    assert files_in(cache) == ["mnist", f"mnist{os.sep}train-images-idx3-ubyte.gz"]


def test_the_folder_of_the_environment_comes_first(tmp_path, publish, server, monkeypatch, rng):
    publish("mnist", small_mnist(rng)[2])
    load("mnist")
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("LAPTSNE_DATA", str(own))
    assert load("mnist")[0].shape == (7, 16)
    np.savez(own / "mnist.npz", X=np.ones((4, 3)), y=np.arange(4))
    assert load("mnist")[0].shape == (4, 3)
    assert len(server.asked) == 4


def test_a_damaged_file_is_named(tmp_path, monkeypatch):
    (tmp_path / "coil20.npz").write_bytes(b"PK\x03\x04 not quite")
    monkeypatch.setenv("LAPTSNE_DATA", str(tmp_path))
    with pytest.raises(OSError, match=r"coil20.npz is not a file of arrays X and y"):
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


def test_titles_say_whether_har_is_a_reconstruction(tmp_path, monkeypatch):
    assert title("har") == "HAR"
    assert [title(name) for name in ("digits", "coil20", "mnist")] == ["Digits", "COIL20", "MNIST"]
    monkeypatch.setenv("LAPTSNE_DATA", str(tmp_path))
    np.savez(tmp_path / "har_reconstructed.npz", X=np.ones((4, 3)), y=np.arange(4))
    assert title("har") == "HAR (rebuilt)"
    assert load("har")[0].shape == (4, 3)
    np.savez(tmp_path / "har.npz", X=np.ones((5, 3)), y=np.arange(5))
    assert title("har") == "HAR"
    assert load("har")[0].shape == (5, 3)


def test_every_name_has_a_title():
    assert all(title(name) for name in datasets.NAMES)


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "C:\\evil", "c:evil", "..\\evil", "\\evil"])
def test_archives_that_lead_out_of_themselves_are_refused(publish, cache, tmp_path, name):
    publish("coil20", {"coil-20-proc.zip": zipped({name: b"evil", "coil-20-proc/obj1__0.png": b""})})
    with pytest.raises(OSError, match="which leads out of it"):
        load("coil20")
    assert files_in(cache) == []
    assert not list(tmp_path.rglob("*evil*"))


def test_links_in_archives_are_refused(publish):
    link = zipfile.ZipInfo("coil-20-proc/obj1__0.png")
    link.external_attr = 0o120777 << 16
    publish("coil20", {"coil-20-proc.zip": zipped({link: b"/etc/passwd"})})
    with pytest.raises(OSError, match="which leads out of it"):
        load("coil20")


def test_bombs_are_not_unpacked(publish, monkeypatch, rng):
    monkeypatch.setattr(readers, "_MAX_UNPACKED", 1 << 16)
    bomb = zipped({"coil-20-proc/obj1__0.png": bytes(1 << 20)})
    publish("coil20", {"coil-20-proc.zip": bomb})
    with pytest.raises(OSError, match="bytes unpacked, which is too much"):
        load("coil20")
    publish("har", {"har.zip": zipped({"UCI HAR Dataset.zip": bomb})})
    with pytest.raises(OSError, match="bytes unpacked, which is too much"):
        load("har")
    files = small_mnist(rng)[2]
    publish("mnist", files | {"train-images-idx3-ubyte.gz": packed_idx(np.zeros((1 << 10, 1 << 10, 1)))})
    with pytest.raises(OSError, match="bytes, which is too much"):
        load("mnist")


def test_a_member_that_is_larger_than_it_says_is_not_unpacked(publish):
    size = 1 << 20
    data = zipped({"UCI HAR Dataset.zip": bytes(size)})
    lie = data.replace(struct.pack("<I", size), struct.pack("<I", 100))
    assert lie != data
    publish("har", {"har.zip": lie})
    with pytest.raises(OSError, match="har was not read"):
        load("har")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\0\0\x09\x01\0\0\0\x01a", "not in IDX format"),
        (b"\0\0\x08\x01\0\0\0\x02a", "cut short"),
        (b"\0\0\x08\x01\0\0", "cut short"),
        (b"\0\0\x08\x01\0\0\0\x01ab", "longer than it says"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "too much"),
        (b"", "not in IDX format"),
    ],
)
def test_idx_files_that_are_not(tmp_path, content, message):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(readers.BadArchive, match=message):
        readers.idx(path)


def test_archives_that_are_something_else(publish, rng):
    files = small_mnist(rng)[2]
    for wrong in (b"<html>", files["train-images-idx3-ubyte.gz"][:-9], packed_idx([[1, 2]])):
        publish("mnist", files | {"train-images-idx3-ubyte.gz": wrong})
        with pytest.raises(OSError, match="mnist was not read"):
            load("mnist")
    bad_png = png(np.zeros((128, 128), np.uint8))[:60]
    first = "coil-20-proc/obj1__0.png"
    for wrong in (b"<html>", zipped({"readme": b""}), zipped({first: b""}), zipped({first: bad_png})):
        publish("coil20", {"coil-20-proc.zip": wrong})
        with pytest.raises(OSError, match="coil20 was not read"):
            load("coil20")
    large = zipped({first: png(np.zeros((256, 128), np.uint8))})
    publish("coil20", {"coil-20-proc.zip": large})
    with pytest.raises(OSError, match=r"of size \(128, 256\)"):
        load("coil20")


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "laptsne"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "laptsne"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "laptsne"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "laptsne"


def test_sources_are_pinned():
    for source in SOURCES.values():
        for archive in source.archives:
            assert len(bytes.fromhex(archive.sha256)) == 32
            assert archive.urls[0].startswith("https://")
            assert all(url.endswith(archive.name) for url in archive.urls)


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
