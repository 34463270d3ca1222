"""Densities for `estimate-logz FILE.py:NAME`."""

import time


def normal(z):
    return -0.5 * z.square().sum(1)


def slow(z):
    time.sleep(0.01)
    return normal(z)


def hanging(z):
    time.sleep(1000)
