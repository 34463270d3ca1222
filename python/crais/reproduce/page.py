"""The output of an experiment: tables on stdout and as CSV, and one Markdown page of all of them."""

from __future__ import annotations

import csv
import io
import os
import sys
from pathlib import Path

from crais.native import extension
from crais.reproduce.cells import write
from crais.reproduce.words import Cell


def say(text: str) -> None:
    """On stdout. Where its reader has gone (`| head`), the run goes on."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Page:
    """A folder of findings. A table goes at once to stdout, to STEM.csv and to tables.md."""

    def __init__(self, folder: Path, title: str, about: str) -> None:
        self._folder, self._markdown = folder, ""
        self._add(f"# {title}\n\n{about}\n", about + "\n")

    def _add(self, markdown: str, shown: str) -> None:
        self._markdown += markdown
        write(self._folder / "tables.md", self._markdown)
        say(shown)

    def table(self, stem: str, title: str, rows: list[list[Cell]], folded: bool) -> None:
        """Adds a table if it has rows. One that is `folded`, of minor interest, is a line on stdout
        and on the page, and complete in STEM.csv."""
        if not rows:
            return
        headers, texts = [cell.header for cell in rows[0]], [[cell.text for cell in row] for row in rows]
        file, lines = self._folder / f"{stem}.csv", io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows([headers, *([cell.csv for cell in row] for row in rows)])
        write(file, lines.getvalue())
        if folded:
            count = f"{title}: {len(rows):,} rows in "
            self._add(f"\n{count}[{file.name}]({file.name})\n", f"{count}{file}\n")
            return
        markdown = f"\n## {title}\n\n"
        for row in (headers, ["---"] * len(headers), *texts):
            markdown += "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n"
        self._add(markdown, extension().table(title, headers, texts))
