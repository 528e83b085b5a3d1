"""The `Model` port over the `anthropic` SDK: one streamed attempt without retries.

The SDK itself (`lopen.models.sdk`) is imported at the first request, so that this module is cheap to import.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lopen.core.clock import Clock
from lopen.models.messages import OnText, OnUsage, Request, Response, ignore_usage

if TYPE_CHECKING:
    from lopen.models.sdk import Sdk
    from lopen.settings.schema import ModelSettings


class AnthropicModel:
    """Sends requests to the endpoint of the settings and the SDK's own sources. Thread-safe.

    `env` is the process environment (for `ANTHROPIC_BASE_URL`; the SDK finds keys and cloud credentials itself).
    """

    def __init__(self, settings: ModelSettings, env: Mapping[str, str], clock: Clock) -> None:
        self._settings = settings
        own = env.get("ANTHROPIC_BASE_URL", "") if settings.provider == "anthropic" else ""
        self._base_url = settings.base_url or own
        self._clock = clock
        self._sdk: Sdk | None = None
        self._opening = threading.Lock()

    @property
    def local(self) -> bool:
        """True if the endpoint is on this machine's loopback, which is exempt from the rate circuits."""
        return _loopback(self._base_url)

    def send(self, request: Request, on_text: OnText, on_usage: OnUsage = ignore_usage) -> Response:
        """Send `request` once and return the response.

        Any other exception (`Stopped`, a failing `on_text`) closes the connection at once.

        Raises:
            ModelError: the request failed.
            LopenError: a library for the provider is missing.
        """
        return self._connected().send(request, on_text, on_usage)

    def connect(self) -> None:
        """Import the SDK and find credentials, so that `doctor` can report missing ones. Sends nothing."""
        self._connected().require_credentials()

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        with self._opening:
            sdk, self._sdk = self._sdk, None
        if sdk is not None:
            sdk.close()

    def _connected(self) -> Sdk:
        with self._opening:
            if self._sdk is None:
                from lopen.models.sdk import Sdk

                self._sdk = Sdk(self._settings, self._base_url, self._clock, local=self.local)
            return self._sdk


def _loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # no address, or no URL
        return False
