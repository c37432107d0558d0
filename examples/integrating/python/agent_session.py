"""The agent token of a backend. All its processes share it."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from service_requests import log_error, send
from token_store import Tokens, TokenStore

RENEWAL_MARGIN_SECONDS = 60
CHECK_INTERVAL_SECONDS = 30
# A renewal that takes longer fails. The next one repeats it: the old token works until the new one is used.
MAX_RENEWAL_SECONDS = 90


class AgentSession:
    """Create one in each process, after a fork. `store` is a TokenStore."""

    def __init__(self, url: str, client_id: str, client_secret: str, store: TokenStore) -> None:
        self.url = f'{url}/v2/token'
        self.credentials = {'client_id': client_id, 'client_secret': client_secret}
        self.store = store
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._lock = threading.Lock()
        self._renewal: Future[Tokens] | None = None

    def sign_in(self, code: str, redirect_uri: str) -> str:
        """
        Once, with the code of a person's sign-in. Returns the id of the agent. Nothing is repeated, because after a
        lost response a second exchange of the code ends the sign-in.
        """
        body = {'grant_type': 'authorization_code', 'code': code, 'redirect_uri': redirect_uri, **self.credentials}
        response = send('POST', self.url, 'no agent token', max_attempts=1, data=body)
        self.store.fill(tokens_of(response))
        return str(response['account_id'])

    def start(self, on_error: Callable[[Exception, int], None] = log_error) -> None:
        """
        Call this once in each process, before it serves users. Every 30 s a thread reads the store, and repeats the
        renewal of a process that crashed. `on_error` gets each error and the seconds since the last success.
        """
        succeeded_at = time.monotonic()

        def check() -> None:
            nonlocal succeeded_at
            try:
                if not is_usable(self.store.read()):
                    self._renew_once()
                succeeded_at = time.monotonic()
            except Exception as error:  # the thread must not end
                on_error(error, round(time.monotonic() - succeeded_at))

        def follow() -> None:
            while True:
                time.sleep(CHECK_INTERVAL_SECONDS)
                check()

        check()
        threading.Thread(target=follow, daemon=True).start()

    def token(self, rejected: str | None = None) -> str:
        """Returns an access token. `rejected` is a token that the service has just rejected with 401."""
        tokens = self.store.read()
        if not is_usable(tokens, rejected):
            try:
                tokens = self._renew_once(rejected)
            except Exception:  # of the service or of the store
                if not is_usable(tokens, rejected, margin=0):  # the old token stays valid until it expires
                    raise
        return str(tokens['access_token'])

    def _renew_once(self, rejected: str | None = None) -> Tokens:
        """All threads of this process wait for the same renewal."""

        def change(current: Tokens) -> Tokens:  # another process may have renewed the tokens while this one waited for the lock
            return current if is_usable(current, rejected) else self._renew(current)

        with self._lock:
            if self._renewal is None or self._renewal.done():
                self._renewal = self._worker.submit(self.store.update, change)
            renewal = self._renewal
        return renewal.result()

    def _renew(self, current: Tokens) -> Tokens:
        body = {'grant_type': 'refresh_token', 'refresh_token': current['refresh_token'], **self.credentials}
        return tokens_of(send('POST', self.url, 'no agent token', MAX_RENEWAL_SECONDS, data=body))


def tokens_of(response: dict[str, Any]) -> Tokens:
    tokens = {name: response[name] for name in ('access_token', 'refresh_token')}
    return {**tokens, 'expires_at': time.time() + response['expires_in']}


def is_usable(tokens: Tokens, rejected: str | None = None, margin: int = RENEWAL_MARGIN_SECONDS) -> bool:
    return bool(tokens['access_token'] != rejected and time.time() < tokens['expires_at'] - margin)
