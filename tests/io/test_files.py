from __future__ import annotations

import os

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
