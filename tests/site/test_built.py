"""The built site: links lead somewhere, nothing is loaded from the network, a browser and its search work.

    sphinx-build -W --keep-going -n -b html docs target/site
    SVMARROW_SITE=target/site pytest tests/site/test_built.py

With SVMARROW_PICTURES set to a folder, what the browser saw is written there.
"""

from __future__ import annotations

import functools
import http.server
import os
import re
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest

from helpers.browser import PROGRAM, Browser
from helpers.searches import OPEN_SEARCHES, SEARCHES

SITE = Path(os.environ.get("SVMARROW_SITE", ""))
PICTURES = os.environ.get("SVMARROW_PICTURES")
pytestmark = pytest.mark.skipif(
    "SVMARROW_SITE" not in os.environ, reason="SVMARROW_SITE names no built site (see the top of the file)"
)
#: Pages of every kind, as the browser is to see them.
SHOWN = (
    "index.html",
    "guide/index.html",
    "guide/first-model.html",
    "made/api/index.html",
    "made/api/svmarrow.SVC.html",
    "made/gallery/index.html",
    "papers/index.html",
    "papers/tr132.html",
    "made/command.html",
    "benchmarks.html",
    "choosing.html",
    "playground.html",
    "guide/browser.html",
    "dask.html",
    "reliability.html",
    "design.html",
    "changelog.html",
)


class Links(HTMLParser):
    """Where a page leads, what it loads, and the places in it that can be led to."""

    def __init__(self, path):
        super().__init__()
        self.leads, self.loads, self.places = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.places.update(filter(None, (found.get("id"), found.get("name"))))
        if tag == "a" and found.get("href"):
            self.leads.append(found["href"])
        elif tag in {"script", "img", "link", "source", "iframe"} and found.get("rel") != "canonical":
            self.loads += [found[name] for name in ("src", "href") if found.get(name)]


@pytest.fixture(scope="module")
def site():
    """All pages, parsed."""
    return {path: Links(path) for path in SITE.rglob("*.html") if "_static" not in path.parts}


def test_links_inside_lead_somewhere(site):
    wrong = []
    for path, page in site.items():
        for link in page.leads + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            known = site.get(target)
            place = unquote(parts.fragment)
            if not target.is_file() or (place and known is not None and place not in known.places):
                wrong.append(f"{path.relative_to(SITE)}: {link}")
    assert wrong == []


def test_the_guide_links_its_names(site):
    def led_to(path):
        return {Path(urlsplit(link).path).stem for link in site[path].leads if "made/api/svmarrow." in link}

    without = [path.stem for path in (SITE / "guide").glob("*.html") if not led_to(path)]
    # This page is about settings.
    assert set(without) <= {"performance"}
    text = (Path(__file__).parents[2] / "docs" / "guide" / "index.md").read_text(encoding="utf-8")
    names = re.findall(r"`([\w.]+)`", text.split("## Where the names are")[1])
    assert len(names) > 30
    led = led_to(SITE / "guide" / "index.html")
    # Members are on the page of their class; the last name is a module.
    classes = {name.partition(".")[0] if name[0].isupper() else name for name in names}
    assert {f"svmarrow.{name}" for name in classes - {"exceptions"}} <= led


def test_nothing_is_loaded_from_elsewhere(site):
    for path, page in site.items():
        assert [link for link in page.loads if urlsplit(link).netloc] == [], path
    for sheet in (SITE / "_static").rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?https?:", sheet.read_text(encoding="utf-8")), sheet


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that does not tell what it served."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    if PROGRAM is None:
        pytest.skip("no Chromium is installed")
    browser = Browser()
    yield browser
    browser.close()


def luminance(colour):
    """Relative luminance of a CSS colour, as WCAG 2 has it."""
    channels = [int(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_pages_can_be_read(browser, address, width, dark):
    for page in SHOWN:
        browser.open(f"{address}/{page}", width, dark=dark)
        if PICTURES:
            name = f"{page.removesuffix('.html').replace('/', '-')}-{width}-{'dark' if dark else 'light'}.png"
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            browser.picture(Path(PICTURES) / name)
        assert browser.errors == [], page
        assert browser.run("document.documentElement.dataset.theme") == ("dark" if dark else "light")
        # Wide things scroll inside themselves; the page does not scroll sideways.
        assert browser.run("document.documentElement.scrollWidth") <= width, page
        cut = browser.run(
            "[...document.querySelectorAll('article p, article li, article dt, article dt .classifier')]"
            ".filter(e => e.getBoundingClientRect().right > innerWidth + 1"
            " && !e.closest('pre, .formula, .pst-scrollable-table-container')).map(e => e.textContent)"
        )
        assert cut == [], page
        ink, paper = browser.run(
            "[getComputedStyle(document.querySelector('article p, article li')).color,"
            " getComputedStyle(document.body).backgroundColor]"
        )
        light, faint = sorted((luminance(ink), luminance(paper)), reverse=True)
        assert (light + 0.05) / (faint + 0.05) > 7, page
        size = browser.run(
            "parseFloat(getComputedStyle(document.querySelector('article p, article li')).fontSize)"
        )
        assert size >= 14, page
        lost = browser.run("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
        assert lost == [], page


@pytest.mark.parametrize("page", ["choosing", "made/api/index", "made/api/svmarrow.SVC", "made/command"])
def test_names_and_numbers_are_not_broken(browser, address, page):
    browser.open(f"{address}/{page}.html", 400)
    broken = browser.run(
        "[...document.querySelectorAll('article code .pre, article dt strong, td.unbroken p')]"
        ".filter(e => e.getClientRects().length > 1).map(e => e.textContent)"
    )
    assert broken == []


def first_results(browser, address, query):
    """The names of the first three different pages that the site's search finds."""
    browser.open(f"{address}/search.html?q={quote(query)}")
    browser.wait("/finished|did not match/.test(document.querySelector('.search-summary').textContent)")
    links = browser.run(
        "[...document.querySelectorAll('#search-results li a')].map(a => a.getAttribute('href'))"
    )
    assert browser.errors == [], query
    pages = [urlsplit(link).path.removesuffix(".html") for link in links]
    return list(dict.fromkeys(pages))[:3]


def test_searches_find_the_page(browser, address):
    found = {query: first_results(browser, address, query) for query in SEARCHES}
    missed = {query: pages for query, pages in found.items() if not set(pages) & set(SEARCHES[query])}
    assert missed.keys() <= OPEN_SEARCHES, missed


LITERAL = re.compile(r"\]\(|(?<!`)`(?!`)")


class Text(HTMLParser):
    """The text of a page's article outside code, formulas and scripts."""

    OUTSIDE = frozenset({"code", "pre", "script", "style", "math", "title", "tt"})
    VOID = frozenset({"br", "img", "hr", "input", "meta", "link", "source", "wbr", "col"})

    def __init__(self, path):
        super().__init__()
        self.open, self.parts = [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, _attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        if "article" in self.open and not self.OUTSIDE & set(self.open):
            self.parts.append(data)


def test_no_markdown_is_left_in_the_text():
    pages = [path for path in SITE.rglob("*.html") if "_static" not in path.parts]
    left = [
        f"{path.relative_to(SITE)}: {part.strip()[:100]}"
        for path in pages
        for part in Text(path).parts
        if LITERAL.search(part)
    ]
    assert left == []


def test_markdown_in_text_would_be_found(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<article><p>see [this](there.md), a `name`, <code>`fine`</code>, [end]</p></article>")
    left = [part for part in Text(page).parts if LITERAL.search(part)]
    assert left == ["see [this](there.md), a `name`, "]
