from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import FormatError
from spectralz.io import files
from spectralz.io.csv_table import read_table
from spectralz.io.files import Source
from spectralz.io.npz import read_npz
from tests.reference import states
from tests.strategies import models

NAMES = ["a", 3, 0.5, ("b", (1, "é")), "3", ""]


@given(models(max_spins=6), st.data())
def test_every_bit_survives(tmp_path_factory, model, data):
    path = tmp_path_factory.mktemp("npz") / "model.npz"
    model = model.named(data.draw(st.sampled_from([None, NAMES[: model.n]])))
    sz.write(model, path)
    again = sz.read(path)
    assert again.is_sparse == model.is_sparse
    assert again == model
    assert again.names == model.names
    assert again.offset == model.offset
    assert np.array_equal(again.field, model.field)
    assert np.array_equal(states.dense(again), states.dense(model))
    X = states.all_states(model.n)
    assert np.array_equal(again.log_weight(X), model.log_weight(X))


GOOD = {"format": "spectralz-ising", "version": 1, "field": np.zeros(2), "offset": 0.0}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros(3)}, "holds a and is not a model"),
        (GOOD | {"version": 99, "coupling": np.zeros((2, 2))}, "upgrade"),
        (GOOD, "'edges' is missing"),
        (GOOD | {"coupling": np.array([[0, 1], [2, 0]])}, "not symmetric"),
        (GOOD | {"coupling": np.zeros((3, 3))}, "lengths must agree"),
        (GOOD | {"edges": np.array([[0, 5]]), "values": np.ones(1)}, "outside 0 to 1"),
        (GOOD | {"edges": np.array([[0, 1]]), "values": np.ones(2)}, "must be"),
        (GOOD | {"edges": np.array([[0, 1], [0, 1]]), "values": np.ones(2)}, "every pair once"),
        (GOOD | {"edges": np.array([[1, 0]]), "values": np.ones(1)}, "the smaller spin first"),
        (GOOD | {"edges": np.array([[0, 1]]), "values": np.array(["a"])}, "real numbers"),
        (GOOD | {"edges": np.array([[0.0, 1.0]]), "values": np.ones(1)}, "integers"),
        ({k: v for k, v in GOOD.items() if k != "field"} | {"coupling": np.zeros((2, 2))}, "'field' is missing"),
        (GOOD | {"offset": np.nan, "coupling": np.zeros((2, 2))}, "finite number"),
        (GOOD | {"names": "[", "coupling": np.zeros((2, 2))}, "JSON text of a list"),
        (GOOD | {"names": '{"a": 1}', "coupling": np.zeros((2, 2))}, "JSON text of a list"),
        (GOOD | {"names": "[null, 1]", "coupling": np.zeros((2, 2))}, "JSON text of a list"),
        (GOOD | {"names": "[1]", "coupling": np.zeros((2, 2))}, "one name per spin"),
        (GOOD | {"names": "[1, 1]", "coupling": np.zeros((2, 2))}, "names must differ"),
        (GOOD | {"weights": np.zeros((2, 2))}, "lengths must agree"),
        ({"J": np.array([[0, 1], [2, 0]])}, "neither symmetric nor upper triangular"),
        ({"J": np.array([[1, 1], [1, 0]])}, r"J\[0, 0\] is 1"),
        ({"J": np.zeros((2, 3))}, "square"),
        ({"J": np.zeros((2, 2)), "h": np.zeros(3)}, "lengths must agree"),
        ({"J": np.zeros((2, 2)), "beta": 2.0}, "holds 'beta'"),
        ({"field": np.zeros(2), "coupling": np.array([[0, 1], [2, 0]])}, "not symmetric"),
        ({"field": np.zeros(2), "coupling": np.zeros((2, 2)), "J": np.zeros((2, 2))}, "holds 'coupling'"),
        ({"h": np.zeros(2)}, "is not a model"),
        ({"format": b"csr", "shape": [2, 2], "data": [1.0], "indices": [9], "indptr": [0, 1, 1]}, "damaged"),
        ({"format": b"csr", "shape": [2, 2], "data": [1.0], "indices": [1], "indptr": [0, 9, 1]}, "damaged"),
        ({"format": b"???", "shape": [2, 2], "data": [1.0]}, "damaged"),
    ],
)
def test_broken_archives(tmp_path, arrays, message):
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(FormatError, match=message) as caught:
        sz.read(tmp_path / "m.npz")
    assert "m.npz" in str(caught.value)


def test_pickles_are_never_loaded(tmp_path):
    np.savez(tmp_path / "m.npz", format=np.array({"a": 1}, dtype=object))
    with pytest.raises(FormatError, match="Python objects"):
        sz.read(tmp_path / "m.npz")


def test_a_single_array_and_a_cut_archive(tmp_path):
    with open(tmp_path / "m.npz", "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(FormatError, match="single numpy array"):
        sz.read(tmp_path / "m.npz")
    sz.write(sz.generators.complete(30, 1.0, 0), tmp_path / "cut.npz")
    whole = (tmp_path / "cut.npz").read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 5):
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        with pytest.raises(FormatError, match=r"cut\.npz"):
            sz.read(tmp_path / "cut.npz")


def test_a_bipartite_model_comes_back_as_one(tmp_path):
    block, field = [[1.0, 0.0, 1 / 3], [-2.0, 0.5, 0.0]], [1, 2, 3, 4, 5]
    model = sz.Ising.from_bipartite(block, field, -1.5, names=list("abcde"))
    sz.write(model, tmp_path / "m.npz")
    again = sz.read(tmp_path / "m.npz")
    assert again.storage.word == "bipartite"
    assert np.array_equal(again.storage.B, model.storage.B)
    assert again == model
    assert int(np.load(tmp_path / "m.npz")["version"]) == 2, "older releases must not take it for another model"
    rbm = sz.RBM([[1.0, -0.5]], [0.25], [0.0, 1.0])
    sz.write(rbm, tmp_path / "rbm.npz")
    assert sz.read(tmp_path / "rbm.npz") == rbm.to_ising()


def test_files_of_before_names_are_read(tmp_path):
    """What version 0.1.0 wrote, array by array."""
    old = {"format": "spectralz-ising", "version": 1, "field": np.array([0.5, 0.0]), "offset": 0.25}
    np.savez_compressed(tmp_path / "sparse.npz", **old, edges=np.array([[0, 1], [1, 1]]), values=np.array([0.5, 2.0]))
    np.savez_compressed(tmp_path / "dense.npz", **old, coupling=np.array([[0.0, 0.5], [0.5, 2.0]]))
    for name in ("sparse", "dense"):
        model = sz.read(tmp_path / f"{name}.npz")
        assert model.names is None
        assert model == sz.Ising([0.5, 0.0], [[0.0, 0.5], [0.5, 2.0]], 0.25)


def test_names_that_json_cannot_hold_are_refused(tmp_path):
    for name in (frozenset([1]), None, float("inf"), ("a", b"b")):
        model = sz.Ising([0.0], [[0.0]])
        with pytest.raises(sz.errors.ModelError, match="name"):
            sz.write(model.named([name]), tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


def literal_weights(h, J):
    """The log-weight of every state: each pair i < j of J once, and h."""
    weights = []
    for x in states.all_states(len(h)):
        total = sum(h[i] * x[i] for i in range(len(h)))
        for i in range(len(h)):
            for j in range(i + 1, len(h)):
                total += J[i, j] * x[i] * x[j]
        weights.append(total)
    return np.array(weights)


@pytest.mark.parametrize("shape", ["symmetric", "upper"])
@pytest.mark.parametrize("has_field", [True, False])
def test_a_plain_archive_of_h_and_j(tmp_path, shape, has_field):
    rng = np.random.default_rng(0)
    J, h = np.triu(rng.normal(size=(4, 4)), 1), rng.normal(size=4)
    arrays = {"J": J + J.T if shape == "symmetric" else J} | ({"h": h} if has_field else {})
    np.savez(tmp_path / "m.npz", **arrays)
    model = sz.read(tmp_path / "m.npz", beta=0.5)
    wanted = 0.5 * literal_weights(h if has_field else np.zeros(4), J)
    assert np.allclose(model.log_weight(states.all_states(4)), wanted, atol=1e-14)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("shape", ["symmetric", "upper"])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_the_archive_of_a_sparse_matrix_is_j(tmp_path, kind, shape, make):
    rng = np.random.default_rng(1)
    J = np.triu(rng.normal(size=(5, 5)) * (rng.random((5, 5)) < 0.6), 1)
    sp.save_npz(tmp_path / "m.npz", make(J + J.T if shape == "symmetric" else J).asformat(kind))
    model = sz.read(tmp_path / "m.npz")
    assert model.is_sparse
    assert np.allclose(model.log_weight(states.all_states(5)), literal_weights(np.zeros(5), J), atol=1e-14)


@pytest.mark.parametrize("has_field", [True, False])
def test_a_plain_archive_of_field_and_coupling_is_a(tmp_path, has_field):
    rng = np.random.default_rng(2)
    A, field = rng.normal(size=(4, 4)), rng.normal(size=4)
    A = A + A.T
    np.savez(tmp_path / "m.npz", coupling=A, **({"field": field} if has_field else {}))
    X = states.all_states(4)
    wanted = np.array([x @ A @ x for x in X]) + (X @ field if has_field else 0.0)
    assert np.allclose(sz.read(tmp_path / "m.npz").log_weight(X), wanted, atol=1e-14)


@pytest.mark.slow
def test_damaged_archives_give_a_format_error(tmp_path):
    """Every byte of a small archive, changed."""
    rng = np.random.default_rng(3)
    path = tmp_path / "m.npz"
    for save in (
        lambda: sz.write(sz.generators.grid(2, 1.0, 0), path),
        lambda: sp.save_npz(path, sp.eye_array(3, k=1)),
    ):
        save()
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ int(rng.integers(1, 256))]) + whole[place + 1 :])
            try:
                sz.read(path)
            except FormatError as error:
                assert "m.npz" in str(error)


# ---------------------------------------------------------------------------------- headers and bytes that are damaged

MARKS = list(b"{}()[]'\",:0123456789 \n\\LObefiuSUV<>|\0")
TABLE = np.random.default_rng(1).integers(0, 2, (6, 3))


def damaged(whole, rng):
    """Cut a file, or change, put or take away some bytes, most of them in its header."""
    content = bytearray(whole)
    if rng.random() < 0.25:
        return bytes(content[: rng.integers(len(content))])
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(min(len(content), 128) if rng.random() < 0.7 else len(content)))
        kind = rng.integers(3)
        if kind == 0:
            content[place] ^= int(rng.integers(1, 256))
        elif kind == 1:
            content[place] = int(rng.choice(MARKS))
        else:
            del content[place : place + int(rng.integers(1, 8))]
    return bytes(content)


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archives(folder):
    """Return the arrays of one archive of every kind, each as the bytes of its file."""
    path = folder / "m.npz"
    couplings = [
        sz.generators.grid(2, 1.0, 0),
        sz.generators.complete(4, 1.0, 0),
        sz.Ising.from_bipartite([[1.0, 2.0], [3.0, 4.0]]),
        sz.Ising.from_factors(np.zeros(3), [1.0], [[1.0, 2.0, 3.0]], np.zeros(3)),
        sz.Ising([0.0, 1.0], np.eye(2), names=["a", 2]),
    ]
    saves = [lambda model=model: sz.write(model, path) for model in couplings]
    saves.append(lambda: sp.save_npz(path, sp.eye_array(3, k=1)))
    saves.append(lambda: np.savez(path, J=np.eye(3, k=1), h=np.ones(3)))
    for save in saves:
        save()
        yield path.read_bytes()


def members_of(archive):
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name.removesuffix(".npy"): opened.read(name) for name in opened.namelist()}


def packed(members):
    file = io.BytesIO()
    write_members(file, zipfile.ZIP_STORED, **members)
    return file.getvalue()


def assert_format_error_or_nothing(read, content):
    try:
        read(Source("damaged", content))
    except FormatError as error:
        assert "damaged" in str(error)


def fuzz_archives(folder, count, rng):
    for archive in archives(folder):
        members = members_of(archive)
        for _ in range(count):
            assert_format_error_or_nothing(read_npz, damaged(archive, rng))
            name = rng.choice(list(members))
            assert_format_error_or_nothing(read_npz, packed(members | {name: damaged(members[name], rng)}))


def fuzz_tables(count, rng):
    for kind in ("i8", "f8", "i1", "?", "f2"):
        whole = saved(np.asarray(TABLE, dtype=kind, order="F" if kind == "i1" else "C"))
        for _ in range(count):
            assert_format_error_or_nothing(read_table, damaged(whole, rng))


def test_damaged_archives_and_tables_give_a_format_error(tmp_path):
    rng = np.random.default_rng(4)
    fuzz_archives(tmp_path, 20, rng)
    fuzz_tables(100, rng)


@pytest.mark.slow
def test_thousands_of_damaged_archives_and_tables_give_a_format_error(tmp_path):
    rng = np.random.default_rng(5)
    fuzz_archives(tmp_path, 500, rng)
    fuzz_tables(1000, rng)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (6, 3",  # tokenize.TokenError
        "{'descr': '<f8', 'fortran_order': False, 'shape': (06, 3), }",  # SyntaxError
        "{'descr': '<f8', b'fortran_order': False, 'shape': (6, 3), }",  # TypeError: keys that cannot be sorted
        "{'descr': '<f8', 1: False, None: (6, 3), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999999), }",  # MemoryError
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**40}, 3), }}",  # OverflowError
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -9), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (6, 3), }",
        f"{'(' * 3000}",  # RecursionError or MemoryError of the parser
        "",
    ],
)
def test_headers_that_numpy_does_not_write(tmp_path, header):
    text = (header + "\n").encode()
    array = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(144)
    with pytest.raises(FormatError, match="data: "):
        read_table(Source("data", array))
    with pytest.raises(FormatError, match="model: "):
        read_npz(Source("model", packed({"J": array})))


def test_a_table_with_bytes_after_its_end_is_read():
    """As numpy does."""
    X, names = read_table(Source("data", saved(TABLE) + b"more"))
    assert np.array_equal(X, TABLE)
    assert names is None


def test_a_table_saved_by_python_2_is_read():
    whole = saved(np.zeros((6, 3))).replace(b"(6, 3), }  ", b"(6L, 3L), }")
    assert read_table(Source("data", whole))[0].shape == (6, 3)


def test_text_that_is_not_unicode_is_damage():
    """numpy makes a text of it on which Python fails with a SystemError."""
    arrays = {name: saved(array) for name, array in GOOD.items()} | {"coupling": saved(np.eye(2))}
    names = saved(np.array('["a", "bc"]')).replace(b"b\0\0\0", b"b\0\xff\xff")
    with pytest.raises(FormatError, match="'names' must be the JSON text"):
        read_npz(Source("model", packed(arrays | {"names": names})))
    with pytest.raises(FormatError, match="damaged"):
        read_npz(Source("model", packed(arrays | {"format": names})))


@pytest.mark.parametrize("kind", ["f2", "f4", "g", "i1", "u8"])
def test_numbers_of_any_kind_are_read(kind):
    sparse = GOOD | {"edges": np.array([[0, 1]]), "values": np.array([2], dtype=kind)}
    found = read_npz(Source("model", packed({name: saved(array) for name, array in sparse.items()})))
    assert found == sz.Ising(None, [[0, 2], [2, 0]])


# ---------------------------------------------------------------------------- archives that are made to fill the memory


def packed_array(shape: str, numbers: bytes, kind: str = "<f8") -> bytes:
    """An array of an archive whose header may say anything."""
    header = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + numbers


def write_members(path, packing=zipfile.ZIP_DEFLATED, **members):
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


@pytest.mark.parametrize(
    "shape",
    [
        "(99999999999, 99999999999)",
        "(10000000000000,)",
        f"({10**40},)",
        f"({10**4000},)",
        "(-1, -4)",
        "(0, 99999999999999999999)",
        "(2, 3)",
        f"({'1, ' * 100})",
        "(2.0, 2)",
        "'2'",
    ],
)
def test_a_shape_that_is_not_that_of_the_numbers_is_refused_before_they_are_read(tmp_path, shape, monkeypatch):
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("the numbers were read"))
    write_members(tmp_path / "m.npz", J=packed_array(shape, bytes(32)))
    with pytest.raises(FormatError, match="damaged"):
        sz.read(tmp_path / "m.npz")


def test_an_encrypted_archive_says_so(tmp_path):
    write_members(tmp_path / "m.npz", J=packed_array("(2, 2)", bytes(32)))
    content = bytearray((tmp_path / "m.npz").read_bytes())
    for place in (6, content.index(b"PK\x01\x02") + 8):  # the flags of the member, and of its entry in the directory
        content[place] |= 1
    (tmp_path / "m.npz").write_bytes(content)
    with pytest.raises(FormatError, match="encrypted"):
        sz.read(tmp_path / "m.npz")


@pytest.mark.parametrize("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_only_what_numpy_packs_is_unpacked(tmp_path, packing):
    write_members(tmp_path / "m.npz", packing, J=packed_array("(2, 2)", bytes(32)))
    content = bytearray((tmp_path / "m.npz").read_bytes())
    content[60] ^= 0xFF
    for each in (content, (tmp_path / "m.npz").read_bytes()):
        (tmp_path / "m.npz").write_bytes(each)
        with pytest.raises(FormatError, match="never does"):
            sz.read(tmp_path / "m.npz")


def test_arrays_that_are_not_needed_are_not_read(tmp_path, monkeypatch):
    limited(monkeypatch, 1000)
    np.savez_compressed(tmp_path / "m.npz", **GOOD, coupling=np.eye(2), junk=np.zeros(10**6))
    assert sz.read(tmp_path / "m.npz") == sz.Ising(None, np.eye(2))


def limited(monkeypatch, size):
    """Let small files be the large ones."""
    monkeypatch.setattr(files, "UNPACKED_IN_ANY_CASE", size)


@pytest.mark.parametrize("pack", ["savez", "savez_compressed"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_what_unpacks_to_far_more_than_the_file_is_refused(tmp_path, monkeypatch, pack, kind):
    limited(monkeypatch, 1000)
    arrays = {"J": np.zeros((300, 300))}
    if kind == "sparse":
        matrix = sp.csr_array(np.ones((300, 300)) - np.eye(300))
        arrays = {"format": b"csr", "shape": matrix.shape, "data": matrix.data, "indices": matrix.indices * 0}
        arrays["indptr"] = matrix.indptr * 0
    getattr(np, pack)(tmp_path / "m.npz", **arrays)
    if pack == "savez":
        assert sz.read(tmp_path / "m.npz").n == 300
        return
    reader = (np.lib.format, "read_array") if kind == "dense" else (sp, "load_npz")
    monkeypatch.setattr(*reader, lambda *_, **__: pytest.fail("the numbers were read"))
    with pytest.raises(FormatError, match=r"unpacks to .* or more, beyond .*np.savez"):
        sz.read(tmp_path / "m.npz")


def test_what_is_written_can_be_read_however_well_it_packs(tmp_path, monkeypatch):
    limited(monkeypatch, 1000)
    model = sz.Ising(None, np.full((200, 200), 0.25))
    sz.write(model, tmp_path / "m.npz")
    assert sz.read(tmp_path / "m.npz") == model


@pytest.mark.parametrize("kind", ["coo", "dia"])
@pytest.mark.parametrize("n", [3 * 10**8, 2 * 10**9, 10**15])
def test_a_sparse_matrix_without_bounds_is_refused(tmp_path, kind, n):
    own = {"coo": {"data": [1.0], "row": [0], "col": [1]}, "dia": {"data": [[1.0]], "offsets": [1]}}[kind]
    np.savez(tmp_path / "m.npz", format=kind.encode(), shape=[n, n], **own)
    with pytest.raises(FormatError, match="rows or columns with at most 2 entries"):
        sz.read(tmp_path / "m.npz")


@pytest.mark.parametrize("second", ["edges", "vectors", "weights"])
def test_two_couplings_in_one_archive_are_refused(tmp_path, second):
    np.savez(tmp_path / "m.npz", **GOOD, coupling=np.eye(2), **{second: np.eye(2)})
    with pytest.raises(FormatError, match=f"holds coupling and {second}"):
        sz.read(tmp_path / "m.npz")
