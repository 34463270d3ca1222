"""Doxygen reads the public headers without a warning, and every public class has a page."""

import shutil
from pathlib import Path

import pytest
from cli.programs import SOURCE

from .projects import BUILD, run

CLASSES = (
    "Target FunctionTarget DecoderTarget Path ScheduleRule Transition Method Estimator "
    "TunedEstimator RunObserver AffineMap Problem"
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("doxygen"):
        pytest.skip("there is no doxygen")
    folder = tmp_path_factory.mktemp("doxygen")
    env = {"CRAIS_HEADERS": str(BUILD / "include"), "CRAIS_DOXYGEN_OUT": str(folder)}
    done = run("doxygen", SOURCE / "docs/Doxyfile", env=env)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder / "html"


@pytest.mark.parametrize("name", CLASSES.split())
def test_has_a_page(pages: Path, name: str) -> None:
    assert (pages / f"classcrais_1_1{name}.html").exists()
