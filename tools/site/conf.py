"""Sphinx's settings for the site. Nothing on a page comes from another host."""

project = "gpulab"
author = "the gpulab authors"
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc"]
default_role = "code"  # `name` in a docstring is code
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
maximum_signature_line_length = 60  # beyond it, a line for each parameter: phones are narrow
exclude_patterns = ["_static"]
nb_execution_mode = "off"  # what is shown was run before: see runs.py
nb_merge_streams = True
nb_render_error_lexer = "none"  # our messages stand where IPython's tracebacks do, and are no Python
highlight_language = "none"  # a listing without a language may be a message
myst_enable_extensions = ["attrs_block", "linkify"]  # as JupyterLab: an address in a text is a link
myst_linkify_fuzzy_links = False  # only with its https://
myst_heading_anchors = 3
suppress_warnings = [
    "myst.header",  # a cell may begin with a heading of any level
]

html_theme = "pydata_sphinx_theme"
html_title = "gpulab"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_show_sourcelink = False
html_domain_indices = False  # the list of modules opens with pictures that have no words
html_copy_source = False
html_show_sphinx = False
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is, until they choose
html_sidebars = {page: [] for page in ("index", "glossary", "CONTRIBUTING", "ARCHITECTURE")}
html_theme_options = {
    "logo": {"text": "gpulab"},
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": [],
    "footer_end": [],
}
