"""The docs site: scripts/docs builds it from the pages of this folder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BUILD = ROOT / "build/docs"

project = "crais"
author = "the crais authors"
copyright = author
release = re.findall(r"project\(crais VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[0]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "breathe", "sphinx_copybutton"]
exclude_patterns = ["Doxyfile"]
smartquotes = False

html_theme = "furo"
html_title = f"crais {release}"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
copybutton_prompt_text = r">>> |\$ "
copybutton_prompt_is_regexp = True

# Headings have the anchors that GitHub gives them.
myst_heading_anchors = 6
nb_execution_mode = os.environ.get("CRAIS_DOCS_NOTEBOOKS", "cache")  # "off": no outputs
nb_execution_cache_path = str(BUILD / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

default_role = "py:obj"
autodoc_mock_imports = ["lightning"]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 70

breathe_projects = {"crais": str(BUILD / "doxygen/xml")}
breathe_default_project = "crais"
breathe_show_include = False
cpp_maximum_signature_line_length = 70
suppress_warnings = ["duplicate_declaration.cpp"]  # every header opens the namespace again

# Where the sources can be read, for links of pages to files that are no pages.
url = re.search(r'^Repository = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
REPOSITORY = url[1] if url else ""
PAGES_ELSEWHERE = {ROOT / "examples/models": "results/models/README.md", ROOT / "README.md": "start.md"}


# Pages below others, which GitHub shows without a table of contents.
BELOW = {"results/README": "*/README"}


def nest(app: Any, docname: str, source: list[str]) -> None:
    """Puts pages below another in the sidebar."""
    if docname in BELOW:
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{BELOW[docname]}\n```\n"


def link_to_sources(app: Any, docname: str, source: list[str]) -> None:
    """Leads links out of this folder, and links to folders, to what the site has in their place.

    Without a repository a file is offered for download, and of a link to a folder the text stays.
    """
    page = (DOCS / docname).parent

    def replaced(link: re.Match[str]) -> str:
        text, path, anchor = link[1], link[2], link[3] or ""
        target = (page / path).resolve()
        if target in PAGES_ELSEWHERE:
            return f"[{text}]({os.path.relpath(DOCS / PAGES_ELSEWHERE[target], page)})"
        if target.is_relative_to(DOCS) and target.is_file():
            return link[0]
        if target.is_relative_to(DOCS) and (target / "README.md").exists():
            return f"[{text}]({path}/README.md{anchor})"
        if REPOSITORY:
            return f"[{text}]({REPOSITORY}/blob/main/{target.relative_to(ROOT)}{anchor})"
        if target.is_file():
            return f"{{download}}`{text.replace('`', '')} <{path}>`"  # roles hold no code
        return text

    source[0] = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)", replaced, source[0])


def entries(block: list[str]) -> list[str] | None:
    """A block of lines "name   meaning" as a definition list; None where it is none."""
    wide = next((found for line in block if (found := re.match(r"\S.*?  +(?=\S)", line))), None)
    if wide is None:
        return None
    lines: list[str] = []
    for line in block:
        name, meaning = line[: wide.end()], line[wide.end() :]
        if not name.endswith(" ") and (longer := re.match(r"(\S+)  +(\S.*)", line)):
            name, meaning = longer.groups()
        if line.startswith(" "):
            lines.append("    " + line.strip())
        elif name.endswith(" ") or name != line[: wide.end()]:
            lines += [f"``{name.strip()}``", f"    {meaning}"]
        else:
            return None
    return lines


def escaped(line: str) -> str:
    """Stars and bars as they are, but within backticks."""
    parts = line.split("`")
    parts[::2] = [re.sub(r"([*|])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def as_rst(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings of crais: text, blocks of "name   meaning", flags at the end."""
    text = "\n".join(lines)
    text, *flags = re.split(r"\n *Other options are the flags of ([\w-]+):", text)[:2]
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n|(?<=:)\n(?=    )", text.strip("\n")):
        block = paragraph.split("\n")
        indent = min(len(line) - len(line.lstrip()) for line in block)
        block = [line[indent:] for line in block]
        if not block[0].startswith(">>>"):
            block = entries(list(map(escaped, block))) or [escaped(line.strip()) for line in block]
        found += [*block, ""]
    if flags:
        found += [f"Other options are the flags of ``{flags[0]}``: see :doc:`/reference`.", ""]
    lines[:] = found


def setup(app: Any) -> None:
    app.connect("source-read", nest)
    app.connect("source-read", link_to_sources)
    app.connect("autodoc-process-docstring", as_rst)
