"""Tests of the scripts, of what the build makes beside programs, and of the pages."""
