"""Pages in a real browser: they load without errors, show their figures, sort, fit a phone, darken and print.

Needs Chromium and its driver (Debian: ``apt-get install chromium chromium-driver``) and ``pip install selenium``. With
``SPECTRALZ_SCREENSHOTS=DIR`` it leaves pictures of the page there; ``SPECTRALZ_REPORT=report.html`` shows another page.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import spectralz as sz
from spectralz.report import comparison_page, estimate_page, write_report
from spectralz.sweeps import Sweep
from tests.helpers import FIGURES, SWEEP, row, rows_of, tried_estimate, write_sweep

pytestmark = pytest.mark.slow
webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install selenium")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
DESKTOP, TABLET, PHONE, SMALL_PHONE = (1280, 900), (768, 1024), (390, 844), (360, 740)
NAMES = {DESKTOP: "desktop", TABLET: "tablet", PHONE: "phone"}
# A command that is wider than a phone.
LONG = "--marginals --exclude mps,states,annealing --budget 30 --html dense.html"
# The least size of text in figures, in pixels of CSS.
READABLE = 9.0


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Write a report of a figure and a sweep of one's own, with failures and gaps, and return where it lies."""
    folder = tmp_path_factory.mktemp("report")
    mine = Sweep(**{**vars(SWEEP), "name": "mine"})
    gaps = [
        row(
            label="WMBE-10",
            x=20.0,
            log_z=None,
            truth=None,
            error=None,
            seconds=None,
            failure="TooLargeError: no <room>",
        )
    ]
    write_sweep(folder / "fig3a", rows_of(SWEEP), SWEEP)
    write_sweep(folder / "mine", rows_of(mine) + gaps, mine)
    return write_report(folder, FIGURES)


@pytest.fixture(scope="module")
def pages(page, tmp_path_factory):
    """All kinds of pages: the report, an answer with marginals and a long story, and a comparison."""
    folder = tmp_path_factory.mktemp("answers")
    rbm = sz.RBM(np.full((4, 3), 0.25), np.zeros(4), np.zeros(3), names=[f"a unit called {i}" for i in range(7)])
    wide = replace(tried_estimate(), lower=-1000.0, upper=1000.0)
    table = sz.compare(
        sz.generators.complete(8, 0.5, seed=0), ["exact", "BP-200", "mf", "wmbe", "spectral", "low_rank"]
    )
    written = {
        "answer": estimate_page(
            wide, "An answer", "dense.npz: 30 spins", sz.marginals(rbm), command="spectralz solve dense.npz " + LONG
        ),
        "comparison": comparison_page(
            table, "A comparison", "complete.uai: 8 spins", command="spectralz compare complete.uai"
        ),
    }
    for name, text in written.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {"report": page, **{name: folder / f"{name}.html" for name in written}}


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium, page):
    """Open the page on a desktop in light colors."""
    resize(chromium, DESKTOP)
    colors(chromium, "light")
    chromium.get_log("browser")
    chromium.get(page.as_uri())
    return chromium


def resize(browser, size):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600},
    )


def colors(browser, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


def column(browser, place, attribute="textContent"):
    script = (
        "return [...document.querySelectorAll('table.sortable')][1].tBodies[0].querySelectorAll(arguments[0]).values()"
    )
    script = f"return [...({script.removeprefix('return ')})].map(cell => cell.{attribute})"
    return browser.execute_script(script, f"td:nth-child({place})")


def heading(browser, place):
    return browser.find_elements("css selector", "table.sortable")[1].find_elements("css selector", "th")[place - 1]


def test_page_loads_without_errors(browser):
    assert browser.get_log("browser") == []
    assert browser.title == "Spectral Approximate Inference, regenerated"
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert all(name.startswith("data:") for name in loaded)


@pytest.mark.parametrize("size", [DESKTOP, PHONE, SMALL_PHONE], ids=lambda value: str(value))
@pytest.mark.parametrize("name", ["report", "answer", "comparison"])
def test_figures_are_large_enough_to_read_their_text(browser, pages, name, size):
    browser.get(pages[name].as_uri())
    resize(browser, size)
    script = """return [...document.querySelectorAll('figure img')].map(img => [img.complete && img.naturalWidth > 0,
      img.getBoundingClientRect().width / img.getAttribute('width'), img.closest('.card').clientWidth])"""
    shown = browser.execute_script(script)
    assert shown
    for is_loaded, scale, card in shown:
        assert is_loaded
        assert 9.5 * 96 / 72 * scale >= READABLE
        assert card <= size[0]


def test_numbers_sort_as_numbers_both_ways(browser):
    values = [float(value) for value in column(browser, 2)]
    assert values != sorted(values)
    heading(browser, 2).find_element("css selector", "button").click()
    assert [float(value) for value in column(browser, 2)] == sorted(values)  # 10 after 1, and not before 0.5
    assert heading(browser, 2).get_attribute("aria-sort") == "ascending"
    heading(browser, 2).find_element("css selector", "button").click()
    assert [float(value) for value in column(browser, 2)] == sorted(values, reverse=True)
    assert heading(browser, 2).get_attribute("aria-sort") == "descending"


def test_what_is_missing_sorts_last_both_ways(browser):
    for _ in range(2):
        heading(browser, 3).find_element("css selector", "button").click()
        values = column(browser, 3)
        assert values[-1] == "n/a"
        assert "n/a" not in values[:-1]


def test_methods_sort_by_the_keyboard_and_one_heading_at_a_time_is_marked(browser):
    heading(browser, 2).find_element("css selector", "button").click()
    heading(browser, 1).find_element("css selector", "button").send_keys("\ue007")  # enter
    labels = column(browser, 1)
    assert labels == sorted(labels)
    assert heading(browser, 1).get_attribute("aria-sort") == "ascending"
    assert heading(browser, 2).get_attribute("aria-sort") is None


@pytest.mark.parametrize("size", [PHONE, (320, 568), DESKTOP], ids=lambda size: f"{size[0]}px")
def test_body_never_scrolls_sideways(browser, size):
    resize(browser, size)
    browser.execute_script("for (const details of document.querySelectorAll('details')) details.open = true")
    width = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert width[0] <= size[0]
    assert width[1] == size[0]


def contrast(first, second):
    """Return the contrast of two colors such as ``rgb(0, 0, 0)``, as WCAG 2 has it."""

    def luminance(color):
        parts = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def style(browser, selector, name):
    script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    return browser.execute_script(script, selector, name)


def test_dark_mode_darkens_and_stays_readable(browser):
    grounds = {}
    for scheme in ("light", "dark"):
        colors(browser, scheme)
        grounds[scheme] = ground = style(browser, "body", "backgroundColor")
        for selector in ("p", "a", "figcaption", "td", "dt"):
            assert contrast(style(browser, selector, "color"), ground) >= 4.5, (scheme, selector)
        for selector in (".badge.holds", ".badge.does-not-hold", "th"):
            own = style(browser, selector, "backgroundColor")
            assert contrast(style(browser, selector, "color"), own) >= 4.5, (scheme, selector)
    assert contrast(grounds["light"], "rgb(255, 255, 255)") < 1.2
    assert contrast(grounds["dark"], "rgb(255, 255, 255)") > 12


def test_drawings_are_on_white_on_a_dark_page(browser):
    colors(browser, "dark")
    assert style(browser, ".card", "backgroundColor") == "rgb(255, 255, 255)"
    colors(browser, "light")


def shades(browser, selector):
    """How much darker or lighter a table's region is at its left and right edge than in the middle of its margin."""
    script = """const region = document.querySelector(arguments[0]);
      for (const cell of region.querySelectorAll('td')) cell.style.visibility = 'hidden';
      region.scrollIntoView({block: 'center'});
      const box = region.getBoundingClientRect(), row = region.querySelector('tbody tr').getBoundingClientRect();
      return [box.left + scrollX, row.top + scrollY + 4, box.width, row.height - 8]"""
    left, top, width, height = browser.execute_script(script, selector)
    clip = {"x": left, "y": top, "width": width, "height": height, "scale": 1}
    options = {"clip": clip, "captureBeyondViewport": True}
    content = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", options)["data"])
    pixels = matplotlib.image.imread(io.BytesIO(content))[..., :3].mean(axis=(0, 2))
    plain = float(np.median(pixels))
    return float(abs(pixels[2:5] - plain).max()), float(abs(pixels[-5:-2] - plain).max())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_that_goes_on_is_shaded_there_until_its_end(browser, scheme):
    colors(browser, scheme)
    resize(browser, SMALL_PHONE)
    # the column that stays in sight would hide the left edge
    browser.execute_script(
        "for (const cell of document.querySelectorAll('.numbers tr > :first-child')) cell.style.position = 'static'"
    )
    selector = ".scroll.numbers"
    assert browser.execute_script(
        "const r = document.querySelector(arguments[0]); return r.scrollWidth > r.clientWidth", selector
    )
    left, right = shades(browser, selector)
    assert left < 0.02 < 0.08 < right
    browser.execute_script("document.querySelector(arguments[0]).scrollLeft = 80", selector)
    left, right = shades(browser, selector)
    assert left > 0.08 < right
    browser.execute_script("document.querySelector(arguments[0]).scrollLeft = 10000", selector)
    left, right = shades(browser, selector)
    assert left > 0.08 > 0.02 > right


def test_a_table_that_fits_has_no_shade(browser):
    assert max(shades(browser, ".scroll.numbers")) < 0.02


def test_tables_are_scrolled_by_the_keyboard(browser):
    resize(browser, SMALL_PHONE)
    region = browser.find_element("css selector", ".scroll.numbers")
    assert region.get_attribute("role") == "region"
    assert region.get_attribute("aria-label")
    region.send_keys("\ue014" * 3)  # arrow to the right
    script = "const done = arguments[1]; setTimeout(() => done(arguments[0].scrollLeft), 400)"
    assert browser.execute_async_script(script, region) > 0


def test_nothing_moves_while_loading(browser):
    script = """const done = arguments[0];
    new PerformanceObserver(list => done(list.getEntries().reduce((sum, entry) => sum + entry.value, 0)))
      .observe({type: 'layout-shift', buffered: true});
    setTimeout(() => done(0), 500);"""
    browser.refresh()
    assert browser.execute_async_script(script) < 0.01


def test_prints(browser):
    content = base64.b64decode(browser.print_page())
    assert content.startswith(b"%PDF")
    assert len(content) > 20_000
    leave("report.pdf", content)


def test_details_are_open_on_paper_and_closed_again(browser):
    script = """dispatchEvent(new Event('beforeprint'));
    const open = document.querySelectorAll('details[open]').length;
    dispatchEvent(new Event('afterprint'));
    return [open, document.querySelectorAll('details[open]').length]"""
    assert browser.execute_script(script) == [3, 0]


@pytest.mark.parametrize("name", ["answer", "comparison"])
def test_pages_of_answers_load_sort_and_fit_a_phone(browser, pages, name):
    browser.get(pages[name].as_uri())
    assert browser.get_log("browser") == []
    table = browser.find_elements("css selector", "table.sortable")[0]
    heading = table.find_elements("css selector", "th")[1]
    heading.find_element("css selector", "button").click()
    script = "return [...arguments[0].tBodies[0].rows].map(row => row.cells[1].dataset.value)"
    values = browser.execute_script(script, table)
    numbers = [float(value) for value in values if value]
    assert numbers == sorted(numbers)
    assert "" not in values[: len(numbers)]
    for size in (SMALL_PHONE, PHONE):
        resize(browser, size)
        browser.execute_script("for (const details of document.querySelectorAll('details')) details.open = true")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize("size", [DESKTOP, TABLET, PHONE], ids=NAMES.get)
@pytest.mark.parametrize("name", ["answer", "comparison"])
def test_no_sentence_and_no_command_is_cut_off(browser, pages, name, size):
    browser.get(pages[name].as_uri())
    resize(browser, size)
    script = """for (const details of document.querySelectorAll('details')) details.open = true;
      return [...document.querySelectorAll('.scroll, pre')].map(
        box => [box.ariaLabel, box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight])"""
    boxes = {label: beyond for label, *beyond in browser.execute_script(script)}
    assert {"command", "Methods and their options"} < boxes.keys()
    for label in boxes.keys() - {"Means"}:
        assert boxes[label] == [0, 0], label
    script = """return [...document.querySelectorAll('table.sentences td:last-child')].map(
        cell => cell.getBoundingClientRect()).map(box => [box.left, box.right, box.width])"""
    for left, right, width in browser.execute_script(script):
        assert left >= 0
        assert right <= size[0]
        assert width >= 256
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, TABLET, PHONE], ids=NAMES.get)
@pytest.mark.parametrize("name", ["report", "answer", "comparison"])
def test_pictures_of_the_page(browser, pages, name, size, scheme):
    browser.get(pages[name].as_uri())
    if name == "report" and (other := os.environ.get("SPECTRALZ_REPORT")):
        browser.get(Path(other).resolve().as_uri())
    resize(browser, size)
    colors(browser, scheme)
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    content = base64.b64decode(picture["data"])
    assert content.startswith(b"\x89PNG")
    leave(f"{name}-{NAMES[size]}-{scheme}.png", content)


def leave(name, content):
    if folder := os.environ.get("SPECTRALZ_SCREENSHOTS"):
        (Path(folder) / name).write_bytes(content)
