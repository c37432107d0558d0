"""Verifies access tokens without a request per token, and follows the revocation feed of the service."""

import logging
import re
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import jwt
import requests

TIMEOUT_SECONDS = 5
NO_CACHE = {'Cache-Control': 'no-cache'}
ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

MAX_TOKEN_CHARACTERS = 8192
# A region, which standard libraries do not accept, and a JWS
TOKEN = re.compile(r'(?:[A-Za-z0-9-]{1,16}:)?([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)')
REQUIRED = ['iss', 'aud', 'sub', 'client_id', 'organization_id', 'iat', 'exp', 'jti']
CLOCK_SKEW_SECONDS = 30  # how far the clock of the service may be ahead; there is no tolerance for `exp`

REFRESH_AFTER_SECONDS = 300
MAX_KEY_AGE_SECONDS = 3600
UNKNOWN_KEY_PAUSE_SECONDS = 30  # how long after a fetch an unknown key causes no other fetch
FAILURE_PAUSE_SECONDS = 1
MAX_UNKNOWN_KEYS = 100  # callers can invent any number of ids

MAX_WAIT_SECONDS = 25
MIN_INTERVAL_SECONDS = 0.2
PURGE_INTERVAL_SECONDS = 60
EXPIRY_MARGIN_SECONDS = 60  # how long entries stay after their end, because the clock may be set back
MAX_ENTRIES = 5_000_000  # more than the service lets customers cause; in Python an entry takes about 300 bytes
# For each kind the field that limits which tokens an entry ends: those with a lower epoch, generation or issue time
BY_TIME = dict.fromkeys(('client', 'organization', 'token'), 'issued_before')
LIMITS = {'session': 'epoch', 'subject': 'generation', **BY_TIME}


class InvalidToken(Exception):
    """Respond with 401."""


class NotChecked(Exception):
    """Respond with 503, and `retry_after` as Retry-After. After a 401, callers would drop tokens that may be valid."""

    def __init__(self, reason: str, retry_after: int = 5) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


def seconds() -> float:
    """A time that never goes back. On Linux it goes on while the machine is suspended, as time.monotonic() does not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, 'CLOCK_BOOTTIME') else time.monotonic()


def age_of(response: requests.Response) -> int:
    """How many seconds a cache had the response before."""
    text = response.headers.get('Age', '')[:9]
    return int(text) if text.isdecimal() else 0


def time_of(text: str) -> float:
    return datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


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
        self.resource_server_id = resource_server_id
        self.secret = secret
        self.max_age_seconds = max_age_seconds
        self.assertion = assertion
        self._session = requests.Session()  # one connection
        self._session.auth = lambda request: request  # otherwise requests adds a password of the file ~/.netrc
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
        form = {**self._credentials(), 'wait': str(wait), **({'after': self._cursor} if self._cursor else {})}
        timeout = (TIMEOUT_SECONDS, wait + TIMEOUT_SECONDS)
        sent_at = seconds()
        response = self._session.post(self.url, form, headers=NO_CACHE, timeout=timeout, allow_redirects=False)
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

    def _credentials(self) -> dict[str, str]:
        """The only place that proves to the service who the API is. A platform replaces its assertions (RFC 7523 §2.2)."""
        if self.assertion is None:
            return {'client_id': self.resource_server_id, 'client_secret': self.secret}
        assertion = {'client_assertion_type': ASSERTION_TYPE, 'client_assertion': self.assertion()}
        return {'client_id': self.resource_server_id, **assertion}

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


class TokenVerifier:
    """`issuer` is the AUTH_URL of the service. Without `feed`, ended tokens are accepted until they expire."""

    def __init__(
        self,
        issuer: str,
        jwks_url: str | None = None,
        feed: RevocationFeed | None = None,
        audience: str | list[str] = 'customer-api',
        accepts_stale: bool = False,
    ) -> None:
        self.issuer = issuer
        self.jwks_url = jwks_url or f'{issuer}/.well-known/jwks.json'
        self.feed = feed
        self.audience = audience
        self.accepts_stale = accepts_stale  # whether a token is accepted while the list of ended tokens is too old
        self._session = requests.Session()  # one connection
        self._keys: dict[str, Any] = {}
        self._unknown: dict[str, float] = {}  # key id → when a token named it first
        self._fetched_at = self._failed_at = float('-inf')
        self._cache_age = 0  # how long a cache had the response with the keys before
        self._lock = threading.Lock()

    def verify(self, token: str) -> dict[str, Any]:
        """
        Returns the claims of a valid token. If `act` is among them, this agent speaks, and not the customer.
        `claims.get('user_verified') is True` says that the customer is a user of the organization and no visitor.
        """
        match = TOKEN.fullmatch(token) if len(token) <= MAX_TOKEN_CHARACTERS else None
        if not match:
            raise InvalidToken('malformed')
        jws = match[1]  # without the region prefix
        try:
            header = jwt.get_unverified_header(jws)
            if header.get('typ') != 'at+jwt' or header.get('alg') != 'ES256':
                raise InvalidToken('not an access token')
            key = self._key(header.get('kid'))
            options: Any = {'require': REQUIRED, 'verify_iat': False, 'verify_nbf': False}
            claims: dict[str, Any] = jwt.decode(
                jws, key, algorithms=['ES256'], options=options, audience=self.audience, issuer=self.issuer
            )
        except jwt.InvalidTokenError as error:
            raise InvalidToken(type(error).__name__) from error
        if max(claims['iat'], claims.get('nbf', 0)) > time.time() + CLOCK_SKEW_SECONDS:
            raise InvalidToken('not yet valid')
        if self.feed:
            if self.feed.has_ended(claims):
                raise InvalidToken('ended')
            if not self.feed.is_current and not (self.accepts_stale and self.feed.was_read.is_set()):
                raise NotChecked('the revocations are too old, or were not read yet')
        return claims

    def fetch_keys(self) -> None:
        """Call this once before the process serves requests. Without this call, the first token fetches the keys."""
        sent_at = seconds()
        try:
            response = self._session.get(
                self.jwks_url, headers=NO_CACHE, timeout=TIMEOUT_SECONDS, allow_redirects=False
            )
            response.raise_for_status()
            jwk_set = jwt.PyJWKSet.from_dict(response.json())
            keys = {key.key_id: key.key for key in jwk_set.keys if key.key_id}
            if age_of(response) > MAX_KEY_AGE_SECONDS:
                raise requests.RequestException('a cache responded')
            self._unknown.update(dict.fromkeys(self._keys.keys() - keys.keys(), float('-inf')))  # these were removed
            self._keys, self._fetched_at, self._cache_age = keys, sent_at, age_of(response)
        except (requests.RequestException, jwt.PyJWTError, AttributeError) as error:
            self._failed_at = seconds()
            raise NotChecked('the keys cannot be fetched') from error

    def _key(self, key_id: str | None) -> Any:
        if key_id is None:
            raise InvalidToken('no key')
        first_seen = float('inf') if key_id in self._keys else self._note_unknown(key_id)
        fetched_at = self._fetched_at
        is_paused = seconds() - fetched_at < UNKNOWN_KEY_PAUSE_SECONDS
        age = seconds() - fetched_at + self._cache_age
        if age >= MAX_KEY_AGE_SECONDS or (key_id not in self._keys and not is_paused):
            self._fetch_once(fetched_at)
        elif age >= REFRESH_AFTER_SECONDS and not (is_paused or self._lock.locked()):  # no wait for another thread
            try:  # the service may have removed a key that leaked
                self._fetch_once(fetched_at)
            except NotChecked:
                pass  # the known keys hold
        if key_id in self._keys:
            return self._keys[key_id]
        if first_seen <= self._fetched_at - self._cache_age:
            raise InvalidToken('unknown key')
        # the service may have published the key since the last fetch
        pause_seconds = self._fetched_at + UNKNOWN_KEY_PAUSE_SECONDS - seconds()
        raise NotChecked('unknown key', max(0, int(pause_seconds)) + 1)

    def _note_unknown(self, key_id: str) -> float:
        """Returns when a token named this unknown key first."""
        first_seen = self._unknown.setdefault(key_id, seconds())
        if len(self._unknown) > MAX_UNKNOWN_KEYS:
            self._unknown.pop(list(self._unknown)[0], None)
        return first_seen

    def _fetch_once(self, fetched_at: float) -> None:
        """Threads that want newer keys at the same time share one fetch."""
        with self._lock:
            if self._fetched_at != fetched_at:
                return
            if seconds() - self._failed_at < FAILURE_PAUSE_SECONDS:
                raise NotChecked('the keys cannot be fetched')
            self.fetch_keys()
