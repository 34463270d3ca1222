"""scikit-build-core, against the torch that is installed: a wheel fits no other.

A build in isolation sees no torch. It ends in one line that says what to type.
"""

from __future__ import annotations

import importlib.util
import sys

_TYPE = "pip install torch scikit-build-core, then pip install . --no-build-isolation"


def _missing(module: str) -> bool:
    return importlib.util.find_spec(module) is None


if _missing("scikit_build_core"):
    sys.exit(f"crais: scikit-build-core is not installed: {_TYPE}")

from scikit_build_core import build as _scikit  # noqa: E402
from scikit_build_core.build import *  # noqa: E402, F403


def _require_torch() -> None:
    if _missing("torch"):
        sys.exit(f"crais is compiled against the torch that is installed, and sees none: {_TYPE}")


def get_requires_for_build_wheel(config_settings=None):  # type: ignore[no-untyped-def]
    _require_torch()
    return _scikit.get_requires_for_build_wheel(config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    _require_torch()
    return _scikit.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    _require_torch()
    return _scikit.build_editable(wheel_directory, config_settings, metadata_directory)
