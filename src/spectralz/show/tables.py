"""Results as rows of cells, which the terminal, a notebook and plain text show in their own ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.extras import from_extra
from spectralz._support.options import bytes_in_words
from spectralz.errors import printable
from spectralz.result import Kind, Verdict
from spectralz.show import numbers

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    from spectralz.model import Model
    from spectralz.result import (
        Bootstrap,
        Bounds,
        Comparison,
        ComparisonRow,
        Description,
        Estimate,
        Marginals,
        Predictability,
        Prediction,
        Trial,
        Wald,
    )

# Time of a table entry or a state, about, on one core of a present-day machine.
SECONDS_PER_TERM = 6e-9
SIGNS = {Kind.LOWER_BOUND: ">=", Kind.UPPER_BOUND: "<="}
# How many of the most certain spins are named, and of the least certain.
SPINS_NAMED = 3
LONGEST_NAME = 60
# The columns of a comparison as a DataFrame.
COLUMNS = ["method", "log_z", "error", "kind", "lower", "upper", "std_error", "trusted", "seconds", "status", "failure"]
NUMBERS = ("log_z", "error", "lower", "upper", "std_error", "seconds")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells; the last cell of a row may be a sentence.

    Without headings, the first cell of a row is the name of the second. ``verdicts`` has the verdict on the method of
    each row, for output that can show it by colors, or is empty.
    """

    rows: tuple[tuple[str, ...], ...]
    headings: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


def headline(result: Estimate) -> str:
    """Return an answer in one line: the number, its kind, and for an estimate how far it is trusted.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Ising(field=[0.0, 0.0], coupling=[[0.0, 0.5], [0.5, 0.0]])
    >>> for method in ("exact", "mf"):
    ...     print(headline(sz.log_z(model, method)))
    log Z = 1.8200751916 (exact)
    log Z >= 1.386... (proven lower bound)
    """
    if result.kind in SIGNS:
        number = f"{SIGNS[result.kind]} {numbers.number_of(result.kind, result.log_z, 12)}"
        words = f"proven {result.kind}"
    else:
        number, words = f"= {numbers.with_error(result.log_z, result.std_error)}", str(result.kind)
    if not result.trusted or result.kind is Kind.ESTIMATE:
        words += f", {trust(result)}"
    return f"log Z {number} ({words})"


def trust(result: Estimate) -> str:
    """Return whether an answer is trusted, and which methods of another kind agreed with it."""
    return ", ".join(filter(None, ["trusted" if result.trusted else "not trusted", checks(result)]))


def checks(result: Estimate) -> str:
    """Return the methods of another kind that agreed with an answer, in words; nothing if there is none."""
    return f"checked by {' and '.join(result.checked_by)}" if result.checked_by else ""


def estimate(result: Estimate, plus_minus: str = "±") -> Table:
    """Return the answer: names and values."""
    interval = () if result.interval is None else (("interval", numbers.probable(result.interval)),)
    rows = (
        ("log Z", _answer(result, plus_minus)),
        ("kind", str(result.kind)),
        ("trust", trust(result)),
        ("certified", _certified(result)),
        *interval,
        ("status", str(result.status)),
        ("method", repr(result.method)),
        ("time", f"{result.seconds:.3g} s"),
    )
    return Table(rows=rows)


def tried(trials: Sequence[Trial], plus_minus: str = "±") -> Table:
    """Return the answers of the methods that were tried, one row each."""
    rows = (
        (trial.method, *_value_and_error(trial), f"{trial.seconds:.3g}", str(trial.verdict), trial.why)
        for trial in trials
    )
    return Table(
        headings=("method", "log Z", plus_minus, "seconds", "verdict", "why"),
        rows=tuple(rows),
        verdicts=tuple(trial.verdict for trial in trials),
    )


def bounds(result: Bounds) -> Table:
    """Return what each bounder proved, one row each."""
    rows = (
        (row.method, *numbers.bounds_or_dashes(row.lower, row.upper, 10), f"{row.seconds:.3g}", row.status)
        for row in result.rows
    )
    return Table(headings=("method", "lower", "upper", "seconds", "status"), rows=tuple(rows))


def comparison(result: Comparison) -> Table:
    """Return the answer of each method, one row each, with errors if one of them is exact."""
    rows = tuple(_compared(row, result.reference) for row in result)
    return Table(headings=("method", "log Z", "error", "kind", "lower", "upper", "seconds", "status"), rows=rows)


def comparison_frame(result: Comparison) -> Any:
    """Return a comparison as a pandas DataFrame: one row per method, numbers as numbers."""
    pd = from_extra("pandas", "pandas", "a DataFrame")
    frame = pd.DataFrame([_record(row, result.reference) for row in result], columns=COLUMNS)
    return frame.astype({**dict.fromkeys(NUMBERS, "float64"), "trusted": "boolean"})


def wald_frame(result: Wald) -> Any:
    """Return parameters as a pandas DataFrame: one row each; ``second`` is empty for a field."""
    return _frame(
        {
            **_named(result.parameters),
            "estimate": result.estimate,
            "std_error": result.std_error,
            "z": result.z,
            "p_value": result.p_value,
        }
    )


def bootstrap_frame(result: Bootstrap, level: float) -> Any:
    """Return estimates and their intervals as a pandas DataFrame: one row per parameter."""
    low, high = result.intervals(level).T
    numbers = {"estimate": result.estimate, "std_error": result.std_error, "low": low, "high": high}
    return _frame({**_named(result.parameters), **numbers})


def predictability_frame(result: Predictability) -> Any:
    """Return shares as a pandas DataFrame: one row per variable."""
    error = np.zeros(len(result.share)) if result.std_error is None else result.std_error
    return _frame({"variable": list(result.names), "share": result.share, "std_error": error})


def prediction_frame(result: Prediction) -> Any:
    """Return the probabilities of a table as a pandas DataFrame of its shape."""
    columns = None if result.names is None else list(result.names)
    return from_extra("pandas", "pandas", "a DataFrame").DataFrame(
        np.atleast_2d(result.probability), columns=columns, index=result.index
    )


def _named(parameters: tuple[tuple[Hashable, ...], ...]) -> dict[str, Any]:
    second = [key[1] if len(key) == 2 else None for key in parameters]
    return {"first": [key[0] for key in parameters], "second": second}


def _frame(columns: dict[str, Any]) -> Any:
    return from_extra("pandas", "pandas", "a DataFrame").DataFrame(columns)


def description(result: Description) -> Table:
    """Return the description of a model: names and values."""
    forest = ", a forest" if result.is_forest else ""
    rows = (
        ("spins", f"{result.spins}"),
        ("edges", _edges(result.edges, result.density, result.storage)),
        ("degree", f"mean {result.degree_mean:.3g}, largest {result.degree_max}"),
        ("coupling |A|", _coupling(result.coupling_mean, result.coupling_max)),
        *(
            [("terms", _terms(result.terms, result.largest_term, result.term_mean, result.term_max))]
            * bool(result.terms)
        ),
        *([("constraints", f"{result.constraints}; {result.presolve}".removesuffix("; "))] * bool(result.constraints)),
        ("field", _field(result.field_mean, result.field_max)),
        ("constant", f"{result.offset + result.trace:.6g}"),
        ("components", f"{result.components}, the largest of {result.largest_component} spins{forest}"),
        ("treewidth", _treewidth(result)),
        ("exact answer", _exact_cost(result)),
    )
    return Table(rows=rows)


def marginals(result: Marginals) -> Table:
    """Return the range of the means, the spins at its ends, and the run: names and values."""
    n, run = len(result.mean), result.estimate
    noun = "unit" if result.values == "01" else "spin"
    edges = numbers.counted(len(result.edges), "edge") if result.has_pairs else "pairs left out"
    if result.terms is not None:
        edges = numbers.counted(len(result.terms), "term")
    rows = [("marginals", f"{numbers.counted(n, noun)}, {edges} ({result.kind})")]
    if n:
        rows.append(("means", _means(result)))
    if len(result.edges):
        rows.append(("pair means", _range(result, result.pair_mean) + _errors(result.pair_std_error)))
    if result.term_mean is not None and len(result.term_mean) > n:
        rows.append(("term means", _range(result, result.term_mean[n:])))
    # A mean close to 1 has lost the digits that its smaller probability still has.
    order = np.argsort(result.probability.min(axis=1), kind="stable") if n else np.arange(0)
    if n > 2 * SPINS_NAMED:
        rows.append(("most certain", _spins(result, order[:SPINS_NAMED])))
        rows.append(("least certain", _spins(result, order[: -SPINS_NAMED - 1 : -1])))
    elif n:
        rows.append(("each", _spins(result, range(n))))
    rows.append(("run", f"{headline(run)}; {run.method.name}, {run.seconds:.3g} s"))
    rows.append(("status", str(run.status)))
    return Table(rows=tuple(rows))


def spin_labels(result: Marginals) -> list[str]:
    """Return the name of each spin, or its number if it has none.

    Examples
    --------
    >>> import spectralz as sz
    >>> spin_labels(sz.marginals(sz.Ising([0.5, 0.0], names=["rain", 7])))
    ['rain', 'spin 7']
    """
    return [short_name(name) for name in (range(len(result.mean)) if result.names is None else result.names)]


def short_name(name: Hashable) -> str:
    """Return a name as text in one line: for a number, ``spin`` and the number; of a long name, its beginning."""
    if isinstance(name, int):
        return f"spin {name}"
    text = printable(name)
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 3]}..."


def state_names(result: Marginals) -> tuple[str, str]:
    """Return the names of the two states of a spin."""
    return ("0", "1") if result.values == "01" else ("-1", "+1")


def mean_in_words(result: Marginals, mean: float) -> str:
    """Return a mean with four decimals, and with its sign if both signs are possible.

    Examples
    --------
    >>> import spectralz as sz
    >>> means = sz.marginals(sz.Ising([0.5], [[0.0]]))
    >>> mean_in_words(means, 0.25)
    '+0.2500'
    """
    return f"{mean:.4f}" if result.values == "01" else f"{mean:+.4f}"


def model(result: Model) -> Table:
    """Return the sizes of a model, its couplings and fields: names and values. Nothing is solved or planned."""
    size = np.abs(result.field)
    field = _field(float(size.mean()) if result.n else 0.0, float(size.max(initial=0.0)))
    names = () if result.names is None or not result.n else (("names", names_in_words(result.names)),)
    if result.higher.number:
        sizes = np.abs(result.higher.weight)
        higher = _terms(len(sizes), result.higher.largest, float(sizes.mean()), float(sizes.max()))
        coupling = {"pairs": f"{result.edge_count}", "terms": higher}
    elif result.storage.terms is not None:
        coupling = {"coupling": f"rank {len(result.storage.terms.values)} plus diagonal, kept as factors"}
    else:
        storage = result.storage
        edges = _edges(result.edge_count, storage.density, storage.word)
        coupling = {"edges": edges, "coupling |A|": _coupling(storage.mean_of_pairs, storage.largest_of_pairs)}
    rest = (("field", field), ("constant", f"{result.constant:.6g}"))
    return Table(rows=(("spins", f"{result.n}"), *names, *coupling.items(), *rest))


def _terms(number: int, largest: int, mean: float, most: float) -> str:
    return f"{number} of up to {largest} spins, |c| mean {mean:.3g}, largest {most:.3g}"


def names_in_words(names: Sequence[Hashable]) -> str:
    """Return the first and the last of many names.

    Examples
    --------
    >>> names_in_words(["rain", "wet"]), names_in_words("abcdefgh")
    ('rain, wet', 'a, b, c, ..., f, g, h')
    """
    shown = [printable(name) for name in names]
    if len(shown) > 2 * SPINS_NAMED:
        shown = [*shown[:SPINS_NAMED], "...", *shown[-SPINS_NAMED:]]
    return ", ".join(shown)


def _answer(result: Estimate, plus_minus: str) -> str:
    """Return the number with its error scale, statistical or not; a bound is rounded outwards."""
    if result.kind in SIGNS:
        return numbers.number_of(result.kind, result.log_z, 12)
    error = " (error)" if result.std_error is not None else ""
    return numbers.with_error(result.log_z, result.std_error, plus_minus) + error


def _certified(result: Estimate) -> str:
    low, high = result.lower, result.upper
    width = "" if low is None or high is None else f" (width {high - low:.3g})"
    return numbers.proven(low, high, least_digits=12) + width


def _value_and_error(trial: Trial) -> tuple[str, str]:
    """Return what a method that was tried found: its bounds if it was asked for them, otherwise log Z and error."""
    shown = numbers.sides_in_words(trial.lower, trial.upper, 8).replace("≥", ">=").replace("≤", "<=")
    if trial.log_z is None or trial.verdict is Verdict.BOUND:
        return shown or "-", "-"
    if trial.std_error is None:
        return f"{trial.log_z:.8g}", "-"
    value, _, error = numbers.with_error(trial.log_z, trial.std_error).partition(" ± ")
    return value, error


def _compared(row: ComparisonRow, reference: Estimate | None) -> tuple[str, ...]:
    answer = row.estimate
    if answer is None:
        return (row.name, *["-"] * 6, f"refused: {row.error}")
    return (
        row.name,
        numbers.number_of(answer.kind, answer.log_z, 10),
        numbers.or_dash(_error(answer, reference), 3),
        str(answer.kind),
        *numbers.bounds_or_dashes(answer.lower, answer.upper, 8),
        f"{answer.seconds:.3g}",
        str(answer.status),
    )


def _record(row: ComparisonRow, reference: Estimate | None) -> dict[str, Any]:
    answer = row.estimate
    if answer is None:
        return {**dict.fromkeys(COLUMNS), "method": row.name, "failure": str(row.error)}
    entries = {name: getattr(answer, name) for name in ("log_z", "lower", "upper", "std_error", "trusted", "seconds")}
    words = {"method": row.name, "kind": str(answer.kind), "status": str(answer.status), "failure": None}
    return {**entries, **words, "error": _error(answer, reference)}


def _error(answer: Estimate, reference: Estimate | None) -> float | None:
    return None if reference is None else answer.log_z - reference.log_z


def _edges(count: int, density: float, storage: str) -> str:
    return f"{count} (density {density:.3g}, kept {storage})"


def _coupling(mean: float, largest: float) -> str:
    return f"mean {mean:.4g}, largest {largest:.4g} (an edge counted once weighs J = 2 A)"


def _field(mean: float, largest: float) -> str:
    return f"mean size {mean:.4g}, largest {largest:.4g}"


def _treewidth(about: Description) -> str:
    low, high = about.treewidth_lower, about.treewidth_upper
    if high is None:
        return f"{low} or more"
    return f"{low}" if low == high else f"between {low} and {high}"


def _exact_cost(about: Description) -> str:
    if about.exact_memory is None or about.exact_terms is None:
        return "out of reach: the widest table would not fit into any memory"
    seconds = about.exact_terms * SECONDS_PER_TERM
    time = "under a second"
    if seconds >= 1:
        time = f"about {seconds:.2g} s" if seconds < 1e4 else f"about {seconds / 3600:.2g} h"
    order = f" by {about.exact_order} order" if about.exact_order else ""
    return f"{bytes_in_words(about.exact_memory)} of tables{order}, {about.exact_terms:.3g} terms, {time}"


def _means(result: Marginals) -> str:
    words = f"mean size {np.abs(result.mean).mean():.4f}" if result.values == "pm1" else "of units that are 0 or 1"
    return f"{_range(result, result.mean)}, {words}{_errors(result.std_error)}"


def _errors(errors: NDArray[np.float64] | None) -> str:
    return "" if errors is None else f", errors up to {errors.max():.1g}"


def _range(result: Marginals, values: NDArray[np.float64]) -> str:
    return f"{mean_in_words(result, values.min())} to {mean_in_words(result, values.max())}"


def _spins(result: Marginals, spins: Iterable[int]) -> str:
    labels = spin_labels(result)
    return ", ".join(f"{labels[i]} {mean_in_words(result, result.mean[i])}" for i in spins)
