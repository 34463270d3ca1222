"""Finds the package in this checkout."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
torch.set_num_threads(1)
