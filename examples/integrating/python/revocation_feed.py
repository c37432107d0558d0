"""Follows the revocation feed of the service: which tokens have ended before they expire."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, quote_plus

import requests

MAX_WAIT_SECONDS = 25
TIMEOUT_SECONDS = 5
MIN_INTERVAL_SECONDS = 0.2
PURGE_INTERVAL_SECONDS = 60
EXPIRY_MARGIN_SECONDS = 60  # how long entries stay after their end, because the clock may be set back
MAX_ENTRIES = 5_000_000  # more than the service lets customers cause; in Python an entry takes about 300 bytes
ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
NO_CACHE = {'Cache-Control': 'no-cache'}
# For each kind the field that limits which tokens an entry ends: those with a lower epoch, generation or issue time
LIMITS = {
    'session': 'epoch',
    'subject': 'generation',
    'client': 'issued_before',
    'organization': 'issued_before',
    'token': 'issued_before',
}


def seconds() -> float:
    """A time that never goes back. On Linux it goes on while the machine is suspended, as time.monotonic() does not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, 'CLOCK_BOOTTIME') else time.monotonic()


def age_of(response: requests.Response) -> int:
    """How many seconds a cache had the response before."""
    text = response.headers.get('Age', '')[:9]
    return int(text) if text.isdecimal() else 0


def time_of(text: str) -> float:
    return datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


class Assertion(requests.auth.AuthBase):
    """
    Authenticates by an assertion, such as the token of a platform (RFC 7523 §2.2). Calls `read` for each request, because a
    platform replaces its tokens. The parameters move from the URL into a form, which no log contains.
    """

    def __init__(self, resource_server_id: str, read: Callable[[], str]) -> None:
        self.resource_server_id = resource_server_id
        self.read = read

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        url, _, query = str(request.url).partition('?')
        credentials = {'client_assertion_type': ASSERTION_TYPE, 'client_assertion': self.read()}
        form = {**dict(parse_qsl(query)), 'client_id': self.resource_server_id, **credentials}
        request.method, request.url = 'POST', url
        request.prepare_body(form, None)
        return request


class RevocationFeed:
    """Create one in each process, after a fork. Give `secret`, or `assertion`: a function that returns an assertion."""

    def __init__(
        self,
        url: str,
        resource_server_id: str,
        secret: str = '',
        max_age_seconds: float = 60,
        assertion: Callable[[], str] | None = None,
    ) -> None:
        self.url = url
        self._session = requests.Session()  # one connection
        # The only place that proves to the service who the API is (RFC 6749 §2.3.1).
        by_secret = (quote_plus(resource_server_id), quote_plus(secret))
        self._session.auth = Assertion(resource_server_id, assertion) if assertion else by_secret
        self.max_age_seconds = max_age_seconds
        self._ended: dict[tuple[str, str], tuple[int, float]] = {}  # (kind, value) → (limit, expiry)
        self._cursor: str | None = None
        self._is_caught_up = False
        self._synced_at = float('-inf')
        self._purged_at = 0.0
        self._incomplete_until = 0.0
        self._error = 'no response yet'
        self.was_read = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()

    def wait_until_read(self, timeout_seconds: float = 30) -> None:
        """Returns when the list was read once. Otherwise raises: let the process end with an error."""
        if not self.was_read.wait(timeout_seconds):
            raise TimeoutError(f'the revocations were not read: {self._error}')

    @property
    def is_current(self) -> bool:
        """Whether the list is complete, and not older than `max_age_seconds`."""
        is_complete = time.time() >= max(self._incomplete_until, self._purged_at - EXPIRY_MARGIN_SECONDS)
        return is_complete and seconds() - self._synced_at <= self.max_age_seconds

    def has_ended(self, claims: dict[str, Any]) -> bool:
        """Whether an entry ends a token: the token, its session, client, organization or subject, or its agent's session."""
        checks = [  # an entry of the kind `token` ends a token of any age, so 0 is compared with its limit
            ('token', claims['jti'], 0),
            ('session', claims.get('sid'), claims.get('ep', 0)),
            ('client', claims['client_id'], claims['iat']),
            ('organization', claims['organization_id'], claims['iat']),
            ('subject', claims['sub'], claims.get('gen', 0)),
        ]
        act = claims.get('act')  # the agent that obtained the token, and the session of the agent's own token
        if act:
            checks.append(('session', act['sid'], act.get('ep', 0)))
        return any(number < self._ended.get((kind, value), (0, 0))[0] for kind, value, number in checks)

    def _follow(self) -> None:
        failures = 0
        while True:
            try:
                delay = self._read_page()
                failures = 0
            except Exception as error:  # of any kind: if this thread ended, every token would get 503
                self._error = repr(error)
                logging.getLogger(__name__).warning('the revocations were not read: %s', self._error)
                failures = min(failures + 1, 7)
                self._is_caught_up = False  # the next request does not wait, so that its response ends the outage
                response = getattr(error, 'response', None)
                if response is not None and response.status_code in (400, 410):
                    self._cursor = None  # the service does not know the cursor: read everything again
                retry_after = '' if response is None else response.headers.get('Retry-After', '')[:9]
                delay = max(min(2**failures / 4, 30), min(int(retry_after), 60) if retry_after.isdecimal() else 0)
            time.sleep(delay)

    def _read_page(self) -> float:
        """Returns the seconds until the next request."""
        if time.time() < self._purged_at - EXPIRY_MARGIN_SECONDS:  # the clock was set back: deleted entries hold again
            self._cursor, self._is_caught_up, self._synced_at, self._purged_at = None, False, float('-inf'), 0
        # the age of the list counts from the request, because its response may arrive late
        wait = min(MAX_WAIT_SECONDS, int(self.max_age_seconds / 3)) if self._is_caught_up else 0
        parameters: dict[str, str | int] = {'wait': wait, **({'after': self._cursor} if self._cursor else {})}
        timeout = (TIMEOUT_SECONDS, wait + TIMEOUT_SECONDS)
        sent_at = seconds()
        response = self._session.get(
            self.url, params=parameters, headers=NO_CACHE, timeout=timeout, allow_redirects=False
        )
        response.raise_for_status()
        page = response.json()
        self._purge()
        for entry in page['revocations']:
            self._add(entry)
        has_advanced = page['cursor'] != self._cursor
        self._cursor, self._is_caught_up = page['cursor'], page['complete']
        if not self._is_caught_up:
            return 0 if has_advanced else 1
        self._synced_at = sent_at - age_of(response)
        self.was_read.set()
        return MIN_INTERVAL_SECONDS if has_advanced or response.elapsed.total_seconds() > wait / 2 else 1

    def _add(self, entry: dict[str, Any]) -> None:
        expires_at = time_of(entry['expires_at'])
        limit = LIMITS.get(entry['kind'])
        key = (entry['kind'], entry['value'])
        is_full = len(self._ended) >= MAX_ENTRIES and key not in self._ended
        if set(entry) != {'kind', 'value', 'expires_at', limit} or is_full:  # what it ends is not known, or not stored
            self._incomplete_until = max(self._incomplete_until, expires_at)
            return
        value = entry[str(limit)]
        if limit == 'issued_before':  # ends the tokens of this second too
            value = int(time_of(value)) + 1
        known = self._ended.get(key, (0, 0))
        self._ended[key] = (max(known[0], value), max(known[1], expires_at))

    def _purge(self) -> None:
        now = time.time()
        if now - self._purged_at < PURGE_INTERVAL_SECONDS:
            return
        self._purged_at = now
        self._ended = {key: entry for key, entry in self._ended.items() if entry[1] >= now - EXPIRY_MARGIN_SECONDS}
