"""Read models from files and write them: one module per family of formats, and one table of all.

==========  ============================  ==============================================================================
``uai``     .uai                          UAI competition format, MARKOV or BAYES (:mod:`spectralz.io.uai`)
``npz``     .npz                          numpy archives: ours, to the last bit; ``h`` and ``J``; scipy.sparse
                                          (:mod:`spectralz.io.npz`)
``json``    .json                         dimod's binary quadratic models; polynomials
                                          (:mod:`spectralz.io.json_models`)
``cnf``     .cnf                          DIMACS CNF: clauses, parities, weights (:mod:`spectralz.io.cnf`)
``coo``     .coo                          dimod's COO text (:mod:`spectralz.io.edge_lists`, as all that follow)
``qubo``    .sparse .qubo                 quadratic 0/1 programs of Biq Mac and of qbsolv
``maxcut``  .mc .rud .rudy .gset          max-cut instances: rudy, Gset, Biq Mac
``csv``     .csv .tsv .edges              edge lists
==========  ============================  ==============================================================================

``uai``, ``npz`` and ``json`` hold terms of three and more spins and constraints, the others pairs only. Files of every
format may be compressed by gzip. docs/your-model.md gives the log-weight that each format stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from spectralz.errors import FormatError, ModelError, OptionError
from spectralz.io.cnf import looks_like_cnf, read_cnf, read_weights, write_cnf
from spectralz.io.edge_lists import (
    looks_like_coo,
    looks_like_csv,
    looks_like_maxcut,
    looks_like_qubo,
    read_coo,
    read_csv,
    read_maxcut,
    read_qubo,
    write_coo,
    write_csv,
)
from spectralz.io.files import STANDARD, Source, is_packed, opened
from spectralz.io.json_models import looks_like_json, read_json, write_json
from spectralz.io.npz import looks_like_npz, read_npz, write_npz
from spectralz.io.uai import (
    looks_like_uai,
    read_evidence,
    read_map,
    read_uai,
    write_map,
    write_mar,
    write_pr,
    write_uai,
)
from spectralz.model import RBM, Model, Polynomial

if TYPE_CHECKING:
    from collections.abc import Hashable


__all__ = [
    "FORMATS",
    "Format",
    "check_suffix",
    "loses_names",
    "read",
    "read_cnf",
    "read_coo",
    "read_csv",
    "read_evidence",
    "read_given",
    "read_json",
    "read_map",
    "read_maxcut",
    "read_npz",
    "read_qubo",
    "read_uai",
    "read_weights",
    "write",
    "write_cnf",
    "write_coo",
    "write_csv",
    "write_json",
    "write_map",
    "write_mar",
    "write_npz",
    "write_pr",
    "write_uai",
]


class Format(NamedTuple):
    """One format of model files."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[str | PathLike[str] | Source], Model]
    write: Callable[[Any, str | PathLike[str]], None] | None
    looks_like: Callable[[Source], bool]
    is_marked: bool  # whether the beginning of a file says that it has this format
    keeps_names: bool
    keeps_terms: bool = False  # whether terms may have more than two spins, and whether there may be constraints


# Formats are tried in this order to detect that of a file, the most certain ones first.
FORMATS = (
    Format("npz", (".npz",), read_npz, write_npz, looks_like_npz, True, keeps_names=True, keeps_terms=True),
    Format("json", (".json",), read_json, write_json, looks_like_json, True, keeps_names=True, keeps_terms=True),
    Format("uai", (".uai",), read_uai, write_uai, looks_like_uai, True, keeps_names=False, keeps_terms=True),
    Format("cnf", (".cnf",), read_cnf, write_cnf, looks_like_cnf, True, keeps_names=False, keeps_terms=True),
    Format("coo", (".coo",), read_coo, write_coo, looks_like_coo, is_marked=True, keeps_names=True),
    Format("qubo", (".sparse", ".qubo"), read_qubo, None, looks_like_qubo, is_marked=False, keeps_names=False),
    Format("maxcut", (".mc", ".rud", ".rudy", ".gset"), read_maxcut, None, looks_like_maxcut, False, False),
    Format("csv", (".csv", ".tsv", ".edges"), read_csv, write_csv, looks_like_csv, is_marked=False, keeps_names=True),
)


def read(
    path: str | PathLike[str],
    evidence: str | PathLike[str] | Mapping[Any, int] | None = None,
    *,
    format: str | None = None,
    beta: float = 1.0,
) -> Model:
    r"""Read a model from a file; with evidence, return the model of the free spins.

    Parameters
    ----------
    path
        A file in one of the formats of :mod:`spectralz.io`, compressed by gzip or not; ``-`` is standard input. The
        format follows from the suffix of the name, or otherwise from the content.
    evidence
        A UAI ``.evid`` file: its variables are fixed, as by :meth:`Ising.condition`. It numbers variables from 0,
        whatever their names. Or the evidence itself, as ``condition`` takes it. The log Z of evidence that has
        probability 0 is minus infinity.
    format
        The name of the format, if it should not be detected.
    beta
        Inverse temperature: every log-weight, offset included, is multiplied by it.

    Returns
    -------
    Ising or Polynomial
        The model; a Polynomial if the file has terms of three and more spins.

    Raises
    ------
    FormatError
        If the file is not what its suffix says; the message says where, and what to do.
    OSError
        If the file cannot be opened.

    See Also
    --------
    write : the reverse.
    from_dimod, from_networkx, from_pandas, from_polynomial, from_qubo : from objects of other libraries.

    Examples
    --------
    >>> import pathlib, tempfile, spectralz as sz
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "edges.csv"
    >>> _ = path.write_text("a,b,0.5\nb,c,-1\na,,0.25\n")
    >>> float(sz.read(path, beta=2.0).log_weight([1, 1, 1]))
    -0.5
    """

    def given(model: Model) -> dict[int, int]:
        if evidence is None:
            return {}
        if not isinstance(evidence, Mapping):
            return read_evidence(evidence, model.n)
        index, values = model.evidence(evidence)
        return dict(zip(index.tolist(), values.astype(int).tolist(), strict=True))

    if isinstance(evidence, str | PathLike) and fspath(path) == fspath(evidence) == STANDARD:
        raise OptionError("model and evidence cannot both come from standard input; name a file for one of them")
    model, fixed = read_given(path, given, format=format)
    if evidence is not None:
        model = model.condition(by_name(model, fixed)).simplest()
    return model if beta == 1.0 else model.scaled(beta)


def read_given(
    path: str | PathLike[str],
    given: Callable[[Model], Mapping[int, int]],
    *,
    format: str | None = None,
    beta: float = 1.0,
) -> tuple[Model, dict[int, int]]:
    """Read a model of all spins, and what is known of some of them: -1 or +1 by their positions.

    Parameters
    ----------
    path, format, beta
        As in :func:`read`.
    given
        Called once with the model, to return what is known.
    """
    wanted = None if format is None else _format_named(format)
    source = opened(path)
    chosen = wanted or _format_of(source)
    model = chosen.read(source)
    fixed = dict(given(model))
    return (model if beta == 1.0 else model.scaled(beta)), fixed


def by_name(model: Model, fixed: Mapping[int, int]) -> dict[Hashable, int]:
    """Return what is known of spins by their names, as the verbs take it."""
    return {i if model.names is None else model.names[i]: value for i, value in fixed.items()}


def write(model: Model | RBM, path: str | PathLike[str], *, format: str | None = None) -> None:
    """Write a model to a file, whole or not at all.

    All formats except ``uai`` keep the names of spins; ``uai`` has no place for them and leaves them out.

    Parameters
    ----------
    model
        The model; an RBM is written as its Ising model.
    path
        The file to write. The format follows from the suffix of its name, and a further ``.gz`` compresses it; ``-`` is
        standard output and needs ``format``.
    format
        ``uai``, ``npz``, ``json``, ``coo`` or ``csv``, whatever the suffix.

    Raises
    ------
    FormatError
        If no format that can be written has this suffix.
    ModelError
        If the format cannot hold this model: terms of three and more spins, and constraints, are held by ``npz``,
        ``json`` and ``uai``.

    See Also
    --------
    read : the reverse.
    Ising.to_dimod, Ising.to_networkx, Ising.to_dict : to objects of other libraries.

    Examples
    --------
    >>> import tempfile, pathlib, spectralz as sz
    >>> model = sz.generators.grid(side=3, strength=1.0, seed=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "grid.npz"
    >>> sz.write(model, path)
    >>> sz.read(path)
    Ising(n=9, edges=12, density=0.333, |A| mean 0.63 max 0.995, |field| max 0.967, sparse)
    """
    chosen, writer = _writer(path, format)
    whole = model.to_ising() if isinstance(model, RBM) else model
    if whole.constraints and not chosen.keeps_terms:
        raise ModelError(
            f"this model has {len(whole.constraints)} constraints, and {chosen.name} files cannot hold any; "
            "write .npz, .json or .uai"
        )
    if isinstance(whole, Polynomial) and not chosen.keeps_terms:
        if whole.higher.number:
            raise ModelError(
                f"this model has terms of up to {whole.higher.largest} spins, and {chosen.name} files hold pairs only; "
                "write .npz, .json or .uai"
            )
        whole = whole.to_ising()
    writer(whole, path)


def check_suffix(path: str | PathLike[str], *, format: str | None = None) -> None:
    """Refuse a name if no format that can be written has its suffix."""
    _writer(path, format)


def loses_names(model: Model | RBM, path: str | PathLike[str], *, format: str | None = None) -> bool:
    """Say whether `write` with the same arguments would leave out the names of the model's spins."""
    chosen = _format_to_write(path, format)
    return model.names is not None and chosen is not None and not chosen.keeps_names


def _writer(path: str | PathLike[str], name: str | None) -> tuple[Format, Callable[[Any, str | PathLike[str]], None]]:
    chosen = _format_to_write(path, name)
    if chosen is not None and chosen.write is not None:
        return chosen, chosen.write
    reason = f"{chosen.name} files are only read" if chosen else _suffix_in_words(path)
    raise FormatError(f"{reason}; models are written to " + _listed(only_written=True), path)


def _format_to_write(path: str | PathLike[str], name: str | None) -> Format | None:
    if name is not None:
        return _format_named(name)
    if fspath(path) == STANDARD:
        raise OptionError("standard output has no suffix; give the format: " + _listed(only_written=True))
    return _format_with_suffix(path)


def _format_named(name: str) -> Format:
    for known in FORMATS:
        if known.name == name:
            return known
    raise OptionError(f"there is no format {name!r}; there are " + _listed())


def _format_with_suffix(path: str | PathLike[str]) -> Format | None:
    suffix = _suffix(path)
    return next((known for known in FORMATS if suffix in known.suffixes), None)


def _format_of(source: Source) -> Format:
    """Return the format by the suffix if it is a known one, and otherwise by the content."""
    named = _format_with_suffix(source.path)
    possible = (known for known in FORMATS if known.is_marked or named is None)
    seen = next(
        (known for known in possible if (source.is_text or known.name == "npz") and known.looks_like(source)), None
    )
    if named is not None and seen is not None and seen is not named:
        source.fail(
            f"the name says {named.name}, but the content is {seen.name}; rename the file, or give format={seen.name!r}"
        )
    chosen = named or seen
    if chosen is None:
        source.fail(
            f"{_suffix_in_words(source.path)}, and the content is none of {_listed()}; "
            "see docs/your-model.md for what each looks like"
        )
    return chosen


def _suffix(path: str | PathLike[str]) -> str:
    name = PurePath(fspath(path))
    return (name.with_suffix("") if is_packed(name) else name).suffix.lower()


def _suffix_in_words(path: str | PathLike[str]) -> str:
    suffix = _suffix(path)
    return f"the name has the suffix {suffix!r}" if suffix else "the name has no suffix"


def _listed(only_written: bool = False) -> str:
    kept = [known for known in FORMATS if known.write is not None or not only_written]
    return ", ".join(f"{known.name} ({' '.join(known.suffixes)})" for known in kept)
