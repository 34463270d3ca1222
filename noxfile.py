#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""`nox -s NAME`: what the scripts do, for who knows nox. Each session passes its arguments on."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "none"  # scripts/setup makes .venv


@nox.session
def lint(session: nox.Session) -> None:
    """The parts of .ci/run that take seconds."""
    session.run(".ci/run", "size", "format", "layers", "scripts", external=True)


@nox.session(default=False)
def tests(session: nox.Session) -> None:
    """Builds and runs all tests; -R REGEX chooses."""
    session.run("scripts/test", *session.posargs, external=True)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The site in build/docs/html."""
    session.run("scripts/docs", *session.posargs, external=True)


@nox.session(default=False)
def wheels(session: nox.Session) -> None:
    """Wheels, tried in fresh environments."""
    session.run("scripts/wheels", *session.posargs, external=True)


if __name__ == "__main__":
    nox.main()
