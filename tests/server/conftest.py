"""Projects with a scripted endpoint, as in the end-to-end tests."""

from tests.e2e.conftest import make_project

__all__ = ["make_project"]
