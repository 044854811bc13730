"""Which format a file has; gzip; standard input and output; what damage does."""

from __future__ import annotations

import gzip
import io
import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import FormatError, ModelError, OptionError
from spectralz.io import FORMATS, loses_names

TEXTS = {
    "uai": "c a comment\nMARKOV\n2\n2 2\n2\n1 0\n2 0 1\n\n2\n0.5 2.0\n\n4\n1.0 2.0 4.0 8.0\n",
    "json": json.dumps(
        {
            "type": "BinaryQuadraticModel",
            "version": {"bqm_schema": "3.0.0"},
            "use_bytes": False,
            "variable_labels": ["a", ["b", 1]],
            "variable_type": "BINARY",
            "offset": 0.5,
            "linear_biases": [1.0, -2.0],
            "quadratic_biases": [0.5],
            "quadratic_head": [0],
            "quadratic_tail": [1],
        }
    ),
    "coo": "# a model\n# vartype=SPIN\n0 0 1.5\n0 1 -2\n",
    "qubo": "3 3\n1 1 -2\n1 2 3.5\n2 3 1\n",
    "maxcut": "3 2\n1 2 3.5\n2 3 1\n",
    "cnf": "c a comment\np cnf 3 2\n1 -2 0\n2 3 0\n",
    "csv": "source,target,weight\na,b,0.5\nb,,-1\n",
}
QBSOLV = "c a comment\np qubo 0 3 2 1\n0 0 1\n2 2 -1\n0 2 3\n"
# Of models with weights: a CNF file is written for constraints alone (test_cnf.py).
WRITTEN = [known.name for known in FORMATS if known.write is not None and known.name != "cnf"]


def content(name):
    if name != "npz":
        return TEXTS[name].encode()
    buffer = io.BytesIO()
    np.savez(buffer, h=np.array([0.5, 0.0]), J=np.array([[0.0, 1.0], [0.0, 0.0]]))
    return buffer.getvalue()


def names():
    return [known.name for known in FORMATS]


@pytest.fixture
def standard_input(monkeypatch):
    def give(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("packed", [False, True])
def test_suffix_content_and_word_tell_the_same_format(tmp_path, standard_input, name, packed):
    known = next(known for known in FORMATS if known.name == name)
    data = gzip.compress(content(name)) if packed else content(name)
    (tmp_path / "unknown").write_bytes(data)
    wanted = sz.read(tmp_path / "unknown")
    assert wanted.n in (2, 3)
    for suffix in (*known.suffixes, *(s.upper() for s in known.suffixes), ".txt", ".0", ""):
        for end in (".gz", "") if packed else ("",):  # the bytes tell that it is packed, not the name
            path = tmp_path / f"model{suffix}{end}"
            path.write_bytes(data)
            assert sz.read(path) == wanted, path
            path.unlink()
    assert sz.read(tmp_path / "unknown", format=name) == wanted
    assert known.read(tmp_path / "unknown") == wanted
    standard_input(data)
    assert sz.read("-") == wanted
    standard_input(data)
    assert sz.read("-", format=name, beta=2.0) == wanted.scaled(2.0)
    assert (tmp_path / "unknown").read_bytes() == data


@pytest.mark.parametrize("name", names())
def test_each_content_is_told_from_the_others(name):
    from spectralz.io import _format_of
    from spectralz.io.files import Source

    assert _format_of(Source("unknown", content(name))).name == name
    assert _format_of(Source("unknown", QBSOLV.encode())).name == "qubo"


@pytest.mark.parametrize("suffix", [suffix for known in FORMATS for suffix in known.suffixes])
@pytest.mark.parametrize("name", ["npz", "json", "uai", "coo"])
def test_a_name_that_contradicts_the_content_is_refused(tmp_path, suffix, name):
    known = next(known for known in FORMATS if suffix in known.suffixes)
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content(name))
    if known.name == name:
        return
    with pytest.raises(FormatError, match=f"the name says {known.name}, but the content is {name}; .* format='{name}'"):
        sz.read(path)
    assert sz.read(path, format=name).n == 2


@pytest.mark.parametrize(
    "data", [b"", b"what is this?\n", b"\x89PNG\r\n\x1a\n\0\0", b"1 2 3 4\n", b"\xff\xfe", b"a,b\n"]
)
def test_an_unknown_file_is_told_all_formats(tmp_path, standard_input, data):
    (tmp_path / "model.dat").write_bytes(data)
    with pytest.raises(FormatError, match=r"docs/your-model\.md") as caught:
        sz.read(tmp_path / "model.dat")
    assert all(f"{known.name} ({' '.join(known.suffixes)})" in str(caught.value) for known in FORMATS)
    standard_input(data)
    with pytest.raises(FormatError, match=r"^standard input: the name has no suffix"):
        sz.read("-")


def test_an_unknown_format_is_refused_before_anything_is_read(tmp_path):
    for call in (lambda: sz.read("nowhere", format="xml"), lambda: sz.write(sz.Ising([1.0]), "m.npz", format="xml")):
        with pytest.raises(OptionError, match="there is no format 'xml'; there are npz"):
            call()
    with pytest.raises(OptionError, match="both come from standard input"):
        sz.read("-", evidence="-")


def test_a_damaged_gzip_file(tmp_path):
    whole = gzip.compress(content("uai"))
    path = tmp_path / "m.uai.gz"
    for data in (whole[:-9], whole[:12], whole[:20] + b"\xff\xff" + whole[22:], whole + b"more"):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"m\.uai\.gz: this gzip file is damaged"):
            sz.read(path)


MODEL = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [0.5, -1.0], field=[0.25, 0.0, 0.0])


@pytest.mark.parametrize("name", WRITTEN)
def test_packed_files_are_the_same_each_time(tmp_path, name):
    suffix = next(known.suffixes[0] for known in FORMATS if known.name == name)
    path = tmp_path / f"m{suffix}.gz"
    sz.write(MODEL, path)
    first = path.read_bytes()
    assert first[:2] == b"\x1f\x8b"
    assert first[4:8] == bytes(4), "no time of writing"
    sz.write(MODEL, path)
    assert path.read_bytes() == first
    sz.write(MODEL, tmp_path / f"m{suffix}")
    assert gzip.decompress(first) == (tmp_path / f"m{suffix}").read_bytes()
    again = sz.read(path)
    assert again == MODEL or np.allclose(again.edges()[1], MODEL.edges()[1], atol=1e-15)


@pytest.mark.parametrize("name", WRITTEN)
def test_standard_output(tmp_path, capsysbinary, name):
    sz.write(MODEL, "-", format=name)
    sz.write(MODEL, tmp_path / "m.dat", format=name)
    assert capsysbinary.readouterr().out == (tmp_path / "m.dat").read_bytes()
    with pytest.raises(OptionError, match="give the format: npz"):
        sz.write(MODEL, "-")


@pytest.mark.parametrize("name", ["maxcut", "qubo"])
def test_formats_that_are_only_read(tmp_path, name):
    with pytest.raises(FormatError, match=f"{name} files are only read; models are written to npz"):
        sz.write(MODEL, tmp_path / "m.npz", format=name)


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
def test_the_table_says_who_keeps_names(tmp_path, known):
    if known.name not in WRITTEN:
        return
    model = MODEL.named([5, 7, 9])
    sz.write(model, tmp_path / "m", format=known.name)
    assert (sz.read(tmp_path / "m").names == (5, 7, 9)) == known.keeps_names
    for path, name in ((f"m{known.suffixes[0]}", None), ("-", known.name)):
        assert loses_names(model, path, format=name) == (not known.keeps_names)
        assert not loses_names(MODEL, path, format=name)


def test_evidence_counts_from_zero_whatever_the_names(tmp_path):
    sz.write(MODEL.named([1, 2, 3]), tmp_path / "m.csv")
    with gzip.open(tmp_path / "m.evid.gz", "wb") as file:
        file.write(b"1 1 0\n")
    assert sz.read(tmp_path / "m.csv", tmp_path / "m.evid.gz") == MODEL.named([1, 2, 3]).condition({2: -1})
    found = sz.read(tmp_path / "m.csv", tmp_path / "m.evid.gz", beta=3.0)
    assert found == MODEL.named([1, 2, 3]).condition({2: -1}).scaled(3.0)


def test_a_bad_beta_is_refused(tmp_path):
    sz.write(MODEL, tmp_path / "m.csv")
    with pytest.raises(ModelError, match="beta"):
        sz.read(tmp_path / "m.csv", beta=float("nan"))


WORDS = st.sampled_from(
    ["0", "1", "2", "3", "-1", "a", "b", "0.5", "1e308", "-1e308", "1e999", "nan", "999999999999999999", "#", "c", "p",
     "p qubo 0 2 1 1", "# vartype=SPIN", "# vartype=BINARY", "source,target,weight", "source", "target", "weight", "{",
     "}", "[", "]", ":", '"', ",", ";", "\t", "\n", "\n", " ", "\r", "\0", "é", "\u2028", "MARKOV", "PK", "3 1\n", "²"]
)  # fmt: skip


def assert_model_or_format_error(folder, data, formats):
    path = folder / "fuzz"
    path.write_bytes(data)
    for name in formats:
        try:
            model = sz.read(path, format=name)
        except FormatError as error:
            assert "fuzz" in str(error)
        else:
            assert np.all(np.isfinite(model.field))
    assert path.read_bytes() == data


@pytest.mark.slow
@given(st.lists(WORDS, max_size=30).map("".join))
@settings(max_examples=400)
def test_random_words_give_a_model_or_a_format_error(tmp_path_factory, text):
    assert_model_or_format_error(tmp_path_factory.mktemp("fuzz"), text.encode(), [None, *names()])


@pytest.mark.slow
@given(st.sampled_from([*TEXTS, "qbsolv"]), st.data())
@settings(max_examples=600)
def test_damaged_files_give_a_model_or_a_format_error(tmp_path_factory, name, data):
    whole = QBSOLV.encode() if name == "qbsolv" else content(name)
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.one_of(st.just(len(whole)), st.integers(begin, min(len(whole), begin + 8))))
    put = data.draw(st.one_of(st.binary(max_size=3), st.lists(WORDS, max_size=3).map("".join).map(str.encode)))
    damaged = whole[:begin] + put + whole[end:]
    assert_model_or_format_error(tmp_path_factory.mktemp("fuzz"), damaged, [None, "qubo" if name == "qbsolv" else name])
