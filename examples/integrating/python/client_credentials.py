"""The agent token of a backend, by the credentials of its client."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from service_requests import send

ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
MARGIN_SECONDS = 60


def from_file(path: str) -> Callable[[], str]:
    """The text of a file, such as a projected token of Kubernetes. It is read again each time, because it changes."""
    return lambda: Path(path).read_text().strip()


class ClientCredentials:
    """
    The agent token of this process. Processes need no common store: all tokens of a client have one session. Give
    `client_secret`, or `assertion`: a function that returns an assertion, such as `from_file(path)`.
    """

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: str | None = None,
        assertion: Callable[[], str] | None = None,
    ) -> None:
        self.url = f'{url}/v2/token'
        self.client_id = client_id
        self.client_secret = client_secret
        self.assertion = assertion
        self._lock = threading.Lock()
        self._token, self._expires_at = '', 0.0

    def token(self, rejected: str | None = None) -> str:
        """Returns an agent token. `rejected` is a token that the service has just rejected with 401."""
        with self._lock:  # other threads wait for the request
            if not self._is_usable(rejected, MARGIN_SECONDS):
                try:
                    self._renew()
                except Exception:
                    if not self._is_usable(rejected, 0):  # the old token stays valid until it expires
                        raise
            return self._token

    def _is_usable(self, rejected: str | None, margin: int) -> bool:
        return self._token != rejected and time.time() < self._expires_at - margin

    def _renew(self) -> None:
        response = send('POST', self.url, 'no agent token', data=self._parameters)
        self._token, self._expires_at = response['access_token'], time.time() + response['expires_in']

    def _parameters(self) -> dict[str, str]:
        common = {'grant_type': 'client_credentials', 'client_id': self.client_id}
        if self.assertion is None:
            return {**common, 'client_secret': self.client_secret or ''}
        return {**common, 'client_assertion_type': ASSERTION_TYPE, 'client_assertion': self.assertion()}
