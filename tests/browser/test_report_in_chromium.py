"""The report in a real browser: it loads without errors, shows its figures, sorts, fits a phone, darkens and prints.

Needs Chromium and its driver (Debian: ``apt-get install chromium chromium-driver``) and ``pip install selenium``. With
``SPECTRALZ_SCREENSHOTS=DIR`` it leaves pictures of the page there; ``SPECTRALZ_REPORT=report.html`` shows another page.
"""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import pytest

from spectralz.report import write_report
from spectralz.sweeps import Sweep
from tests.helpers import FIGURES, SWEEP, row, rows_of, write_sweep

pytestmark = pytest.mark.slow
webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install selenium")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
DESKTOP, PHONE = (1280, 900), (390, 844)


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
    """Open the page on a desktop in light colours."""
    resize(chromium, DESKTOP)
    colors(chromium, "light")
    chromium.get_log("browser")
    chromium.get(page.as_uri())
    return chromium


def resize(browser, size):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE},
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


def test_figures_are_visible(browser):
    script = "return [...document.images].map(i => [i.complete, i.naturalWidth, i.naturalHeight, i.clientWidth])"
    images = browser.execute_script(script)
    assert len(images) == 2
    for complete, width, height, shown in images:
        assert complete
        assert width > 100 < height
        assert shown > 300


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
    """Return the contrast of two colours such as ``rgb(0, 0, 0)``, as WCAG 2 has it."""

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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_pictures_of_the_page(browser, size, scheme):
    if other := os.environ.get("SPECTRALZ_REPORT"):
        browser.get(Path(other).resolve().as_uri())
    resize(browser, size)
    colors(browser, scheme)
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    content = base64.b64decode(picture["data"])
    assert content.startswith(b"\x89PNG")
    leave(f"{'phone' if size == PHONE else 'desktop'}-{scheme}.png", content)


def leave(name, content):
    if folder := os.environ.get("SPECTRALZ_SCREENSHOTS"):
        (Path(folder) / name).write_bytes(content)
