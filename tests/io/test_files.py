from __future__ import annotations

import errno
import gzip
import os
import sys
from types import SimpleNamespace

import pytest

import spectralz as sz
from spectralz.io import files


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    target = tmp_path / "answer.PR"
    files.write_whole(target, b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_whole(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_is_followed_and_permissions_are_kept(tmp_path):
    target, link = tmp_path / "a", tmp_path / "b"
    files.write_whole(target, b"1")
    target.chmod(0o640)
    link.symlink_to(target)
    files.write_whole(link, b"2")
    assert link.is_symlink()
    assert target.read_bytes() == b"2"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    files.write_whole(tmp_path / "a", b"1")
    (tmp_path / "b").write_bytes(b"1")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_what_is_no_plain_file_is_written_to(tmp_path):
    files.write_whole(os.devnull, b"gone")
    assert not os.path.isfile(os.devnull)


def test_an_unknown_suffix_is_refused(tmp_path):
    for name in ("model", "model.dat", "model.gz", "model.mc"):
        with pytest.raises(sz.errors.FormatError, match=r"written to npz \(\.npz\), json \(\.json\), uai"):
            sz.write(sz.Ising([], []), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_what_gzip_packs_to_next_to_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "UNPACKED_IN_ANY_CASE", 2**21)
    monkeypatch.setattr(files, "CHUNK", 2**16)
    (tmp_path / "m.csv.gz").write_bytes(gzip.compress(b"a,b,1" + b" " * 2**24))
    assert (tmp_path / "m.csv.gz").stat().st_size < 2**15
    with pytest.raises(sz.errors.FormatError, match=r"unpacks to 2\.\d+ MiB or more, .* gunzip first"):
        sz.read(tmp_path / "m.csv.gz")
    (tmp_path / "m.csv.gz").write_bytes(gzip.compress(b"a,b,1\n# " + os.urandom(2**22).hex().encode()))
    assert sz.read(tmp_path / "m.csv.gz").n == 2  # many bytes, and as many packed


def test_devices_without_an_end_are_refused(tmp_path):
    for device in ("/dev/zero", "/dev/urandom"):
        if os.path.exists(device):
            with pytest.raises(sz.errors.FormatError, match="a device"):
                sz.read(device)
    with pytest.raises(sz.errors.FormatError, match="no suffix"):
        sz.read(os.devnull)


def test_text_in_another_encoding_says_so(tmp_path):
    for encoding in ("utf-16", "utf-16-le"):
        (tmp_path / "m.csv").write_bytes("a,b,1\n".encode(encoding))
        with pytest.raises(sz.errors.FormatError, match=r"UTF-16; save it in UTF-8|m\.csv, line 1|not a text"):
            sz.read(tmp_path / "m.csv")
    (tmp_path / "m.csv").write_bytes(b"\xef\xbb\xbfa,b,1\r\nb,c,2\r")
    assert sz.read(tmp_path / "m.csv").names == ("a", "b", "c")


UNREADABLE = "/proc/self/mem"


@pytest.mark.skipif(not os.path.exists(UNREADABLE), reason="only Linux has such a file")
def test_a_file_that_cannot_be_read_to_its_end_is_named(run):
    with pytest.raises(OSError, match=UNREADABLE):
        sz.read(UNREADABLE)
    code, out, err = run("info", UNREADABLE)
    assert (code, out) == (2, "")
    assert UNREADABLE in err
    assert "standard output" not in err


def test_standard_input_that_cannot_be_read_is_named(run, monkeypatch):
    class Broken:
        def read(self):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Broken()))
    assert "standard input: Input/output error" in run("info", "-")[2]
