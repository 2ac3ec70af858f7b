"""Where files are written, and arrays whose items take no bytes."""

import io
import json
import os
import stat
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from laptsne import LaptSNE
from laptsne._runtime import files
from laptsne._runtime.files import atomic_write, read_archive, write_archive

needs_unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no files of this kind")


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(60, 4))
    return LaptSNE(max_iter=20, perplexity=5, random_state=0).fit(X)


def loads(path, model):
    return np.array_equal(LaptSNE.load(path).embedding_, model.embedding_)


@needs_unix
class TestAtomicWrites:
    def test_a_device_stays_a_device(self, model):
        before = os.stat(os.devnull)
        assert model.save(os.devnull) > 1000
        after = os.stat(os.devnull)
        assert stat.S_ISCHR(after.st_mode)
        assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
    def test_a_full_device_is_an_error(self, model):
        with pytest.raises(OSError, match="No space left"):
            model.save("/dev/full")
        assert Path("/dev/full").is_char_device()

    def test_a_pipe_gets_the_content(self, model, tmp_path):
        pipe, received = tmp_path / "pipe", []
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
        reader.start()
        size = model.save(pipe)
        reader.join(timeout=60)
        assert pipe.is_fifo()
        assert len(received[0]) == size
        (tmp_path / "copy").write_bytes(received[0])
        assert loads(tmp_path / "copy", model)
        assert sorted(os.listdir(tmp_path)) == ["copy", "pipe"]

    @pytest.mark.parametrize("dangling", [True, False])
    def test_a_symbolic_link_is_followed(self, model, tmp_path, dangling):
        (tmp_path / "there").mkdir()
        target, link = tmp_path / "there" / "model", tmp_path / "link"
        if not dangling:
            target.write_text("old")
        link.symlink_to(target)
        model.save(link)
        assert link.is_symlink()
        assert not target.is_symlink()
        assert loads(target, model)
        assert os.listdir(tmp_path / "there") == ["model"]

    def test_both_names_of_a_file_have_the_new_content(self, model, tmp_path):
        first, second = tmp_path / "first", tmp_path / "second"
        first.write_text("old")
        os.link(first, second)
        model.save(first)
        assert first.samefile(second)
        assert loads(second, model)
        assert sorted(os.listdir(tmp_path)) == ["first", "second"]

    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
    def test_an_existing_file_keeps_its_permissions(self, model, tmp_path, mode):
        path = tmp_path / "model"
        path.touch()
        path.chmod(mode)
        model.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode

    def test_a_file_is_on_the_disk_before_it_is_moved(self, tmp_path, monkeypatch):
        events, fsync, replace = [], os.fsync, os.replace

        def synced(handle):
            events.append(os.fstat(handle).st_size)
            fsync(handle)

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(os, "replace", lambda *paths: events.append("moved") or replace(*paths))
        size = write_archive(tmp_path / "one", {}, {"a": np.arange(9)})
        with atomic_write(tmp_path / "two") as path:
            path.write_text("12345")
        assert events == [size, "moved", 5, "moved"]

    def test_leftovers_are_beside_the_target_of_a_link(self, tmp_path):
        (tmp_path / "there").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "there" / "run")
        left = tmp_path / "there" / ".run.unfinished-abc"
        left.touch()
        files.remove_leftovers(tmp_path / "link")
        assert not left.exists()


def header(shape, descr):
    """An NPY file of items without bytes."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"shape": shape, "fortran_order": False, "descr": descr})
    return file.getvalue()


class TestItemsWithoutBytes:
    @pytest.mark.parametrize(("shape", "descr"), [((40_000,), "<U0"), ((10**8, 0), "<f8"), ((0, 10**8), "<f8")])
    def test_they_are_refused_in_models(self, model, tmp_path, shape, descr):
        model.save(tmp_path / "model")
        with zipfile.ZipFile(tmp_path / "model", "a") as archive:
            archive.writestr("more.npy", header(shape, descr))
        with pytest.raises(ValueError, match="its arrays are larger than the file"):
            read_archive(tmp_path / "model")

    def test_empty_arrays_are_read(self, tmp_path):
        arrays = {"none": np.empty((500, 0)), "rows": np.empty((0, 3)), "Y": np.ones((500, 2))}
        write_archive(tmp_path / "file", {}, arrays)
        found = read_archive(tmp_path / "file")[1]
        assert {name: array.shape for name, array in found.items()} == {n: a.shape for n, a in arrays.items()}


@pytest.mark.parametrize(("version", "readable"), [(1, True), (2, True), (3, False)])
def test_versions_of_archives(tmp_path, version, readable):
    header = {"format": "laptsne", "version": version, "content": {"a": 1}, "arrays": {}}
    with zipfile.ZipFile(tmp_path / "file", "w") as archive:
        archive.writestr("header.json", json.dumps(header))
    if readable:
        assert read_archive(tmp_path / "file")[0] == {"a": 1}
    else:
        with pytest.raises(ValueError, match="format version 3, but the latest known is 2; update laptsne"):
            read_archive(tmp_path / "file")
