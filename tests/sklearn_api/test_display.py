"""What notebooks show of an estimator: scikit-learn's HTML of it, with no link that leads nowhere."""

from __future__ import annotations

import inspect
import re
from html.parser import HTMLParser

import pytest
from sklearn import svm as originals
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.data import IRIS, KIND
from helpers.estimators import EXAMPLES, example
from svmarrow import SVC, CodedClassifier
from svmarrow._support.estimator import Estimator
from svmarrow.patch.svm import SVC as PATCHED


class Page(HTMLParser):
    """Links and texts of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.texts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):  # noqa: ARG002 - the parser's signature
        self.links += [value for name, value in attributes if name == "href"]

    def handle_data(self, text):
        self.texts.append(text.strip())


@pytest.fixture(scope="module")
def everything():
    return {name: example(name) for name in EXAMPLES if hasattr(example(name), "get_params")}


def described(kind, section):
    """Names that a section of a docstring describes."""
    after = inspect.getdoc(kind).split(f"\n{section}\n{'-' * len(section)}\n")[1]
    return set(re.findall(r"^(\w+) : ", re.split(r"\n\w[\w ]*\n-+\n", after)[0], re.MULTILINE))


def test_everything_is_drawn_and_links_nowhere(everything):
    """Every attribute is evaluated for it, so none may fail with anything but an AttributeError."""
    assert len(everything) > 40
    for name, model in everything.items():
        page = Page(model._repr_html_())
        assert type(model).__name__ in page.texts, name
        # A pipeline, or a classifier of scikit-learn's inside, has pages of its own.
        assert all(link.startswith("https://scikit-learn.org") for link in page.links), name
    assert not Page(SVC().fit(IRIS, KIND)._repr_html_()).links


def test_every_parameter_is_shown_and_described(everything):
    for name, model in everything.items():
        parameters = set(model.get_params(deep=False))
        assert parameters <= described(type(model), "Parameters"), name
        if hasattr(model, "_get_params_html"):
            shown = Page(model._repr_html_()).texts
            assert parameters <= set(shown), name


def test_every_fitted_attribute_is_described(everything):
    for name, model in everything.items():
        missing = {n for n in dir(model) if n[0] != "_" and n[-1] == "_" and hasattr(model, n)}
        missing -= described(type(model), "Attributes")
        assert not missing, name


@pytest.fixture
def _site(monkeypatch):
    """As `svmarrow._support.estimator` is once its SITE is there."""
    monkeypatch.setattr(Estimator, "_doc_link_module", "svmarrow")
    monkeypatch.setattr(Estimator, "_doc_link_template", "https://there.example/svmarrow.{name}.html")


@pytest.mark.usefixtures("_site")
def test_where_there_is_a_site_everything_leads_there(everything):
    for model in everything.values():
        page, own = Page(model._repr_html_()), f"https://there.example/svmarrow.{type(model).__name__}.html"
        assert own in page.links
        if hasattr(model, "_get_fitted_attr_html"):
            text = model._repr_html_()
            for name in model.get_params(deep=False):
                assert f"{own}#:~:text={name}," in text
    pipeline = make_pipeline(StandardScaler(), CodedClassifier(SVC()))
    links = Page(pipeline._repr_html_()).links
    assert "https://there.example/svmarrow.CodedClassifier.html" in links
    assert "https://there.example/svmarrow.SVC.html" in links


def test_replacements_lead_to_the_pages_of_the_originals():
    assert PATCHED()._get_doc_link() == originals.SVC()._get_doc_link()
    assert "sklearn.svm.SVC.html" in PATCHED()._get_doc_link()


def test_values_are_escaped():
    page = SVC(class_weight={"<i>x": 1.0})._repr_html_()
    assert "<i>x" not in page
    assert "&lt;i&gt;x" in page
