"""Published formats of keys, tokens and passwords, as tables of data."""

from __future__ import annotations

from lopen.base.secret_formats.development import CI_SERVICES, GIT_HOSTS, OBSERVABILITY, PACKAGE_REGISTRIES
from lopen.base.secret_formats.general import CONTEXT_FORMATS, FIXED_FORMATS
from lopen.base.secret_formats.platforms import CLOUDS, DATABASES_AND_SECRET_STORES, MODEL_PROVIDERS
from lopen.base.secret_formats.services import CHAT_AND_MAIL, PAYMENT, PRODUCTIVITY
from lopen.base.secret_formats.shape import Format

__all__ = ["FORMATS", "Format"]

FORMATS: tuple[Format, ...] = (
    *MODEL_PROVIDERS,
    *CLOUDS,
    *DATABASES_AND_SECRET_STORES,
    *GIT_HOSTS,
    *CI_SERVICES,
    *PACKAGE_REGISTRIES,
    *OBSERVABILITY,
    *CHAT_AND_MAIL,
    *PAYMENT,
    *PRODUCTIVITY,
    *FIXED_FORMATS,
    *CONTEXT_FORMATS,
)
