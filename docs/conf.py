"""The site: `sphinx-build -W --keep-going -n -b html docs target/site`, built without the network."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "site"), str(HERE / "site" / "ext")]

project = "svmarrow"
author = "the svmarrow developers"
project_copyright = "the svmarrow developers"
release = version = version_of("svmarrow")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "docstrings",
    "api_pages",
    "command_page",
    "playground",
    "marks",
    "breaks",
    "references",
]
exclude_patterns = ["gallery", "site", "reliability", "**sg_execution_times.rst"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
default_role = "code"
nitpicky = True
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(numpy|np|scipy|sklearn|matplotlib|typing|collections|dask|distributed|onnx|typer|pandas)\..*",
    ),
    (r"py:obj", r"[a-z_]+_"),
]
show_warning_types = True
suppress_warnings = ["ref.python"]  # properties are named twice

autosummary_generate = False
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-output) > div.highlight > pre"
smartquotes_action = "qe"  # options of commands keep their two dashes

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "made/gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "subsection_order": [
        f"gallery/{name}"
        for name in ("first_steps", "choosing", "small_models", "trust", "unusual", "large_data")
    ],
    "nested_sections": False,
    "backreferences_dir": "made/backreferences",
    "doc_module": ("svmarrow",),
    "abort_on_example_error": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "download_all_examples": False,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_logo = html_favicon = "site/static/mark.svg"
html_title = "svmarrow"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "site" / "scorer.js")
html_show_sourcelink = False
# Pages without subpages have no list at the side.
SINGLE = """choosing benchmarks glossary made/command dask file-format reliability design performance-log
    changelog playground"""
html_sidebars = {page: [] for page in SINGLE.split()}
html_theme_options = {
    "logo": {"text": "svmarrow"},
    "show_prev_next": False,
    "check_switcher": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
