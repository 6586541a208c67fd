"""The playground in a browser: samples are drawn, sliders moved, numbers read. Needs `web/build`.

With SVMARROW_PICTURES set to a folder, what the browser saw is written there.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import http.server
import os
import re
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmarrow
from helpers.browser import PROGRAM, Browser

application = pytest.importorskip("sphinx.application")
playground = pytest.importorskip("playground")

ROOT = Path(__file__).resolve().parents[2]
PICTURES = os.environ.get("SVMARROW_PICTURES")
#: The part of the page around the playground that its parts rely on.
PAGE = """<!doctype html><html><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>Playground</title><style>body { margin: 12px; font-family: sans-serif; }</style>
<script>document.documentElement.dataset.theme =
matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"</script></head>
<body><section id="playground"><h1>Playground</h1>BODY</section></body></html>"""
#: No task is left; a task that failed has a message.
SETTLED = "!['loading', 'busy'].includes(document.getElementById('pg-root').dataset.state)"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that does not report its requests."""

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """Serves a folder, and returns its address."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    if not playground.MODULE.is_file():
        pytest.skip("web/dist/svmarrow.wasm is not built: web/build")
    folder = tmp_path_factory.mktemp("playground")
    shutil.copytree(ROOT / "docs" / "site" / "static", folder / "_static")
    for path in playground.DIST.iterdir():
        shutil.copy(path, folder / "_static")
    body = playground.BODY.read_text(encoding="utf-8")
    (folder / "index.html").write_text(PAGE.replace("BODY", body), encoding="utf-8")
    with served(folder) as address:
        yield f"{address}/index.html"


@pytest.fixture(scope="module")
def browser():
    if PROGRAM is None:
        pytest.skip("no Chromium is installed")
    browser = Browser()
    yield browser
    browser.close()


class Page:
    """The playground, opened in a window of a size."""

    def __init__(self, browser, address, width=1400, height=1000, *, dark=False):
        self.browser = browser
        browser.open(address, width, height, dark=dark)
        browser.wait(SETTLED)

    def choose(self, name, value):
        """Sets a control and returns once nothing is computed any more."""
        self.browser.run(
            f"(() => {{ const parts = [...document.querySelectorAll('#pg-root [name={name}]')];"
            f" const part = parts.find((p) => p.type !== 'radio' || p.value === '{value}');"
            f" if (part.type === 'radio') part.click(); else {{ part.value = '{value}';"
            " part.dispatchEvent(new Event(part.type === 'range' ? 'input' : 'change', {bubbles: true}));"
            " part.dispatchEvent(new Event('input', {bubbles: true})); } })()"
        )
        self.browser.wait(SETTLED)

    def press_button(self, action):
        self.browser.run(f"document.querySelector('[data-action={action}]').click()")
        self.browser.wait(SETTLED)

    def number(self, name):
        """The number that is shown under a name."""
        text = self.browser.run(f"document.querySelector('[data-number={name}]').textContent")
        return float(text.split()[0])

    @property
    def message(self):
        return self.browser.run(
            "(part => part.hidden ? '' : part.textContent)(document.querySelector('.pg-message'))"
        )

    @property
    def samples(self):
        return int(self.browser.run("document.getElementById('pg-root').dataset.samples"))

    def place(self, x, y):
        """The place in the window of coordinates of the left picture."""
        left, top, width = self.browser.run(
            "(r => [r.left, r.top, r.width])(document.getElementById('pg-full').getBoundingClientRect())"
        )
        return left + width * (x + 1.15) / 2.3, top + width * (1.15 - y) / 2.3

    def click(self, x, y):
        self.browser.click(*self.place(x, y))
        self.browser.wait(SETTLED)

    def colors(self, canvas):
        """The number of different colors of a picture."""
        return self.browser.run(
            "(c => new Set(new Uint32Array("
            "c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size)"
            f"(document.getElementById('{canvas}'))"
        )

    def shares(self, canvas):
        """The shares of a picture that are blue and orange."""
        return tuple(
            self.browser.run(
                "(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                " let [b, o] = [0, 0]; for (let i = 0; i < d.length; i += 4)"
                " { b += d[i + 2] > d[i] + 60; o += d[i] > d[i + 2] + 60; }"
                f" return [4 * b / d.length, 4 * o / d.length]; }})(document.getElementById('{canvas}'))"
            )
        )

    def load(self, data):
        """Gives the page a file."""
        encoded = base64.b64encode(data).decode()
        before = self.browser.run("document.getElementById('pg-root').dataset.request")
        self.browser.run(
            "(() => { const transfer = new DataTransfer();"
            f" const bytes = Uint8Array.from(atob('{encoded}'), (c) => c.charCodeAt(0));"
            " transfer.items.add(new File([bytes], 'model.safetensors'));"
            " const input = document.querySelector('[name=file]'); input.files = transfer.files;"
            " input.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )
        self.browser.wait(f"document.getElementById('pg-root').dataset.request !== '{before}'")
        self.browser.wait(SETTLED)


@pytest.fixture
def page(browser, address):
    page = Page(browser, address)
    yield page
    assert browser.errors == []


def test_the_first_machine_is_fitted_and_compressed(page):
    assert page.message == ""
    assert page.samples == 200
    assert 10 < page.number("vectors") < 100
    assert page.number("error") < 10
    assert page.number("leave_one_out") < 10
    assert 0 < page.number("gap") < 10
    assert page.number("small_vectors") == 8
    assert page.number("agreement") > 90
    for canvas in ("pg-full", "pg-small"):
        assert page.colors(canvas) > 100
        assert min(page.shares(canvas)) > 0.1


def test_sliders_change_the_machine(page):
    page.choose("C", -2)
    many = page.number("vectors")
    page.choose("C", 3)
    assert page.number("vectors") < many / 2
    page.choose("gamma", 2.5)
    assert page.number("vectors") > 100
    page.choose("n_vectors", 20)
    assert page.number("small_vectors") == 20


def test_a_drawn_machine_is_that_of_python(page):
    page.press_button("clear")
    assert page.samples == 0
    points = [(-0.6, -0.4), (-0.4, -0.5), (-0.5, 0.1), (0.4, 0.3), (0.6, 0.5), (0.5, -0.2), (0.0, 0.1)]
    labels = [0, 0, 0, 1, 1, 1, 1]
    for label in (0, 1):
        page.choose("brush", label)
        for point in (p for p, own in zip(points, labels, strict=True) if own == label):
            page.click(*point)
    assert page.samples == len(points)
    model = svmarrow.SVC(C=10, gamma=10**0.7).fit(np.array(points), labels)
    assert page.number("vectors") == model.expansion_.n_vectors
    assert page.number("error") == 0


def test_samples_are_moved_and_removed(page):
    page.press_button("clear")
    page.click(0.5, 0.5)
    page.browser.drag(page.place(0.5, 0.5), page.place(-0.5, 0.5))
    assert page.samples == 1
    page.choose("brush", "erase")
    page.click(0.5, 0.5)
    assert page.samples == 1
    page.click(-0.5, 0.5)
    assert page.samples == 0


def test_the_keyboard_draws(page):
    page.press_button("clear")
    page.browser.run("document.getElementById('pg-full').focus()")
    for key in ("Enter", "2", "ArrowRight", "ArrowRight", "Enter", "ArrowUp", "Enter"):
        page.browser.press(key)
    page.browser.wait(SETTLED)
    assert page.samples == 3
    assert page.number("vectors") >= 2
    page.browser.press("Delete")
    page.browser.wait(SETTLED)
    assert page.samples == 2


def test_touch_draws(page):
    page.press_button("clear")
    page.browser.tap(*page.place(0.2, 0.2))
    page.browser.wait("document.getElementById('pg-root').dataset.samples === '1'")


@pytest.mark.parametrize(("task", "estimator"), [("regression", "SVR"), ("detection", "OneClassSVM")])
def test_other_problems(page, task, estimator):
    page.choose("task", task)
    assert page.message == ""
    assert page.browser.run("document.querySelector('[name=estimator]').value") == estimator
    assert page.number("vectors") > 5
    assert page.number("small_vectors") == 8
    assert page.number("leave_one_out") > 0
    before = page.number("vectors")
    page.choose(*(("epsilon", 0.3) if task == "regression" else ("nu", 0.5)))
    after = page.number("vectors")
    assert after < before if task == "regression" else after > before


@pytest.mark.parametrize("estimator", ["RLSClassifier", "KMPClassifier"])
def test_other_estimators_classify(page, estimator):
    page.choose("data", "blobs")
    page.choose("estimator", estimator)
    assert page.message == ""
    assert page.number("vectors") == (200 if estimator == "RLSClassifier" else 20)
    assert page.number("error") < 10
    assert page.number("leave_one_out") < 15


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "matern32", "matern52"])
def test_other_kernels(page, kernel):
    page.choose("kernel", kernel)
    assert page.message == ""
    assert page.number("vectors") > 3


def test_a_model_file_is_shown(page, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 50, (200, 2))
    model = svmarrow.SVC(C=10).fit(X, np.where(np.hypot(*(X - 25).T) < 15, "in", "out"))
    path = tmp_path / "model.safetensors"
    model.save(path)
    page.load(path.read_bytes())
    assert page.message == ""
    assert page.number("vectors") == model.expansion_.n_vectors
    assert page.number("small_vectors") == 8
    page.choose("n_vectors", 12)
    assert page.number("vectors") == model.expansion_.n_vectors
    assert page.number("small_vectors") == 12


def test_files_that_cannot_be_shown_say_why(page, tmp_path):
    X = np.random.default_rng(0).uniform(size=(60, 4))
    path = tmp_path / "model.safetensors"
    svmarrow.SVC().fit(X, X[:, 0] > 0.5).save(path)
    page.load(path.read_bytes())
    assert "4 features" in page.message
    page.load(path.read_bytes()[:100])
    assert "model file: cut off" in page.message
    page.press_button("resample")
    assert page.message == ""
    assert page.number("vectors") > 0


def test_the_model_is_saved(page, tmp_path):
    page.browser.run(
        "URL.createObjectURL = (blob) =>"
        " { window.saved = new Response(blob).arrayBuffer(); return 'data:,'; };"
        "HTMLAnchorElement.prototype.click = () => {}"
    )
    page.press_button("save")
    page.browser.wait("window.saved !== undefined")
    encoded = page.browser.run(
        "window.saved.then((data) => btoa(String.fromCharCode(...new Uint8Array(data))))"
    )
    path = tmp_path / "model.safetensors"
    path.write_bytes(base64.b64decode(encoded))
    assert svmarrow.load(path).expansion_.n_vectors == page.number("vectors")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_it_fits_into_the_window(browser, address, width, dark):
    page = Page(browser, address, width, 2000 if width == 400 else 1000, dark=dark)
    for task in ("classification", "regression", "detection"):
        page.choose("task", task)
        assert browser.run("document.documentElement.scrollWidth") <= width
        cut = browser.run(
            "[...document.querySelectorAll('#pg-root :is(button, select, input, label, dt, dd, figcaption)')]"
            ".filter(e => e.offsetParent && e.getBoundingClientRect().right > innerWidth - 4)"
            ".map(e => e.outerHTML)"
        )
        assert cut == []
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            name = f"playground-{task}-{width}-{'dark' if dark else 'light'}.png"
            browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            browser.picture(Path(PICTURES) / name)
    assert browser.errors == []


def test_the_page_of_the_guide_predicts(browser, tmp_path):
    if not playground.MODULE.is_file():
        pytest.skip("web/dist/svmarrow.wasm is not built: web/build")
    guide = (ROOT / "docs" / "guide" / "browser.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```html\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "index.html").write_text(example.replace("<form>", '<link rel="icon" href="data:,"><form>'))
    for path in playground.DIST.iterdir():
        shutil.copy(path, tmp_path)
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), svmarrow.SVC(C=10)).fit(X, y)
    svmarrow.save(model, tmp_path / "iris.safetensors")
    with served(tmp_path) as address:
        browser.open(f"{address}/index.html")
        browser.wait("document.querySelector('output').value !== ''")
        sample = [float(browser.run(f"document.forms[0].elements.{name}.value")) for name in "abcd"]
        for length in (sample[2], 5.0):
            sample[2] = length
            browser.run(
                f"(i => {{ i.value = {length}; i.dispatchEvent(new Event('input', {{bubbles: true}})) }})"
                "(document.forms[0].elements.c)"
            )
            label = browser.run("document.querySelector('output').value")
            assert label == f"species {model.predict([sample])[0]}"
        assert browser.errors == []


def test_a_site_without_the_module_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(playground, "MODULE", tmp_path / "missing.wasm")
    (tmp_path / "index.md").write_text("# Title\n\n```{playground}\n```\n", encoding="utf-8")
    overrides = {"extensions": ["myst_parser", "playground"], "project": "p", "html_theme": "basic"}
    app = application.Sphinx(
        tmp_path, None, tmp_path / "out", tmp_path / "trees", "html", overrides, status=None, warning=None
    )
    app.build()
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "built without the module" in text
    assert "<canvas" not in text
