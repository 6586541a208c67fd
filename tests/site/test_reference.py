"""The reference has every public name once, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import svmarrow
from public_names import MODULES, SECTIONS, thing

ROOT = Path(__file__).resolve().parents[2]
LISTED = [name for section in SECTIONS for name in section.names]


def test_every_public_name_has_a_page():
    public = {
        f"{module}.{name}": thing(f"{module}.{name}")
        for module in MODULES
        for name in importlib.import_module(module).__all__
    }
    things = {id(thing(name)) for name in LISTED}
    missing = [
        name for name, value in public.items() if id(value) not in things and not inspect.ismodule(value)
    ]
    assert not missing, "docs/site/public_names.py does not list them"
    assert set(LISTED) <= set(public), "listed, but not public"


def test_no_thing_has_two_pages():
    pages = {}
    for name in LISTED:
        pages.setdefault(id(thing(name)), []).append(name)
    assert [names for names in pages.values() if len(names) > 1] == []


def test_every_public_module_is_looked_at():
    packages = {
        info.name
        for info in pkgutil.walk_packages(svmarrow.__path__, "svmarrow.")
        if info.ispkg and not any(part.startswith("_") for part in info.name.split("."))
        if getattr(importlib.import_module(info.name), "__all__", None)
    }
    assert packages - {"svmarrow.cli"} <= set(MODULES)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_every_section_leads_into_the_guide(section):
    assert (ROOT / "docs" / "guide" / f"{section.guide}.md").is_file()
