"""The reference: what every public name says, the options that verbs pass on, and the pages that list the names."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

import spectralz as sz
from spectralz import inference
from spectralz._support.options import checked_bytes
from spectralz.portfolio import policy

ROOT = Path(__file__).resolve().parents[1]
API = ROOT / "docs" / "api"
HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (sz, sz.generators, sz.closed_forms, sz.constraints, sz.plots)
    for name in module.__all__
    if callable(getattr(module, name))
}
FUNCTIONS = {name: thing for name, thing in PUBLIC.items() if inspect.isfunction(thing)}
CLASSES = {
    name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing) and not issubclass(thing, BaseException)
}
VERBS = {*inference.__all__, "fit", "read", "write"} - {"as_method"}
# The options of a method, or of thermodynamics, go through these.
PASS_TO_METHODS = ("log_z", "marginals", "sample", "log_prob", "predict")
PASS_TO_THERMODYNAMICS = ("energy", "entropy", "temperature")
# Compiling everything takes minutes.
TOO_SLOW = {"spectralz.warm_up"}


def sections(thing):
    """Return the sections of a docstring, by their titles."""
    parts = HEADING.split(inspect.getdoc(thing) or "")
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(text):
    """Return what is said about each name of a section: its type with the default, and its description."""
    found, names = {}, []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            head, _, kind = line.partition(" : ")
            names = [name.strip().lstrip("*") for name in head.split(",")]
            found |= dict.fromkeys(names, (kind, ""))
        else:
            found |= {name: (found[name][0], f"{found[name][1]} {line.strip()}".strip()) for name in names}
    return found


def default_of(kind):
    """Return the default that the type of an entry ends with."""
    return ast.literal_eval(kind.split("default ")[1])


def listed(page, module):
    """Return the names in the tables that a page has of a module."""
    blocks = re.findall(r"\.\. currentmodule:: (\S+)\n(.*?)\n```", page.read_text(), re.DOTALL)
    text = "\n".join(block for owner, block in blocks if owner == module)
    return re.findall(r"^   ([\w.]+)$", text, re.MULTILINE)


def test_entries_are_read():
    text = "a, b\n    Two numbers,\n    or more.\nc : int, default 3\n    One.\n**d\n    The rest.\n"
    assert entries(text) == {
        "a": ("", "Two numbers, or more."),
        "b": ("", "Two numbers, or more."),
        "c": ("int, default 3", "One."),
        "d": ("", "The rest."),
    }


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_say_what_they_take_and_return(name):
    function = FUNCTIONS[name]
    said = sections(function)
    assert set(inspect.signature(function).parameters) <= set(entries(said["Parameters"]))
    returns_nothing = inspect.signature(function).return_annotation == "None"
    assert ("Returns" in said) != returns_nothing


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes_say_what_they_take_or_hold(name):
    assert {"Parameters", "Attributes"} & set(sections(CLASSES[name]))


@pytest.mark.parametrize("name", sorted({*FUNCTIONS, *CLASSES} - TOO_SLOW))
def test_everything_has_an_example_that_runs(name):
    examples = doctest.DocTestParser().get_examples(sections(PUBLIC[name])["Examples"])
    assert any(example.want and doctest.SKIP not in example.options for example in examples)


@pytest.mark.parametrize("name", sorted(VERBS))
def test_verbs_name_their_errors_and_what_is_related(name):
    said = sections(getattr(sz, name))
    assert "Raises" in said
    for line in said["See Also"].strip().split("\n"):
        for other in line.split(" : ")[0].split(", "):
            thing = sz
            for part in other.removeprefix("spectralz.").split("."):
                thing = getattr(thing, part)


@pytest.mark.parametrize("name", PASS_TO_METHODS)
def test_verbs_list_the_options_of_auto(name):
    verb = getattr(sz, name)
    passed = entries(sections(verb)["Other Parameters"])
    declared = {field.name: field.default for field in fields(sz.Auto)}
    assert set(passed) == set(declared) - set(inspect.signature(verb).parameters)
    for option, (kind, words) in passed.items():
        default = default_of(kind)
        assert (checked_bytes(default, option) if option == "max_memory" else default) == declared[option]
        assert words


def test_log_z_says_which_methods_have_an_option():
    passed = entries(sections(sz.log_z)["Other Parameters"])
    have = {}
    for name, method in sz.METHODS.items():
        for field in fields(method):
            have.setdefault(field.name, []).append(name)
    for option, (_, words) in passed.items():
        assert re.findall(r"``(\w+)``", words.split("Taken by ")[1]) == have[option]
    assert {option for option, names in have.items() if 2 * len(names) > len(sz.METHODS)} <= set(passed)


@pytest.mark.parametrize("name", PASS_TO_THERMODYNAMICS)
def test_verbs_list_the_options_of_thermodynamics(name):
    verb = getattr(sz, name)
    passed = {option: default_of(kind) for option, (kind, _) in entries(sections(verb)["Other Parameters"]).items()}
    taken = inspect.signature(sz.thermodynamics).parameters.values()
    declared = {option.name: option.default for option in taken if option.kind is option.KEYWORD_ONLY}
    refused = {"given"} if name == "temperature" else set()
    assert passed == {k: v for k, v in declared.items() if k not in {*inspect.signature(verb).parameters, *refused}}


def keep_bars():
    """Return the function of docs/conf.py, without the packages that only the site needs."""
    tree = ast.parse((ROOT / "docs" / "conf.py").read_text(encoding="utf-8"))
    tree.body = [
        node
        for node in tree.body
        if (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        or getattr(node, "name", "") == "keep_bars"
    ]
    names = {}
    exec(compile(tree, "conf.py", "exec"), names)
    return names["keep_bars"]


def test_bars_are_escaped_in_prose_but_not_in_examples():
    lines = [
        "The size |A| of ``|x|``.",
        "",
        ">>> for x in (1,):",
        "...     print(abs(x))",
        "|A| mean 0.5",
        "",
        "Then |A|.",
    ]
    keep_bars()(None, "function", "name", None, None, lines)
    assert lines[0] == r"The size \|A\| of ``|x|``."
    assert lines[4] == "|A| mean 0.5"
    assert lines[6] == r"Then \|A\|."


def test_every_group_has_a_page_with_the_names_of_the_overview():
    overview = API / "index.md"
    pages = re.search(r"```\{toctree\}\n:hidden:\n\n(.*?)\n```", overview.read_text(), re.DOTALL)[1].split()
    assert {path.stem for path in API.glob("*.md")} == {*pages, "index", "METHODS", "PAPER_SETTINGS"}
    for module in (
        "spectralz",
        "spectralz.generators",
        "spectralz.closed_forms",
        "spectralz.constraints",
        "spectralz.plots",
        "spectralz.errors",
    ):
        assert listed(overview, module) == [name for page in pages for name in listed(API / f"{page}.md", module)]


def test_the_tables_of_methods_are_those_of_the_program():
    rows = re.findall(
        r"^\| `(\w+)` \| .*~spectralz\.(\w+)` \|(.*)\|(.*)\|(.*)\|(.*)\|$", (API / "METHODS.md").read_text(), re.M
    )
    assert [(name, sz.METHODS[name].__name__) for name in sz.METHODS] == [row[:2] for row in rows]
    for name, _, *marks, constraints in rows:
        method = sz.METHODS[name]
        assert constraints.strip().startswith("yes") == method.takes_constraints
        assert ("without" in constraints) == (name in policy.BLIND_BOUNDERS)
        assert [mark.strip() == "yes" for mark in marks] == [
            method.gives_marginals,
            method.gives_samples,
            method.takes_terms,
        ]
    rows = re.findall(r"^\| `([\w-]+)` \| `(sz\..*)` \|$", (API / "PAPER_SETTINGS.md").read_text(), re.M)
    assert {label: eval(method) for label, method in rows} == sz.PAPER_SETTINGS


@pytest.mark.parametrize("page", ["METHODS", "PAPER_SETTINGS"])
def test_the_examples_of_these_pages_run(page, capsys):
    for block in re.findall(r"```python\n(.*?)```", (API / f"{page}.md").read_text(), re.DOTALL):
        exec(block, {})


def test_the_table_of_extras_has_all_that_functions_ask_for():
    text = (ROOT / "docs" / "get-started.md").read_text()
    table = re.search(r"\| extra \|.*?\n\n", text + "\n", re.DOTALL)[0]
    explained = {
        name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1] if row else "")
    }
    calls = (path.read_text(encoding="utf-8") for path in (ROOT / "src" / "spectralz").rglob("*.py"))
    assert explained == {extra for text in calls for extra in re.findall(r'from_extra\("\w+", "(\w+)"', text)}
    assert explained <= set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
