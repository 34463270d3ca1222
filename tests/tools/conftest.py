"""A project to run scripts in."""

from pathlib import Path

import pytest

from .projects import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
