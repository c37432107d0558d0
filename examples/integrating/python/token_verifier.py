"""Verifies access tokens without a request per token."""

import re
import threading
import time
from typing import Any

import jwt
import requests
from revocation_feed import NO_CACHE, RevocationFeed, age_of, seconds

REFRESH_AFTER_SECONDS = 300
MAX_KEY_AGE_SECONDS = 3600
# How long after a fetch an unknown key, or after a failed fetch any key, causes no other fetch
UNKNOWN_KEY_PAUSE_SECONDS = 30
FAILURE_PAUSE_SECONDS = 1
MAX_UNKNOWN_KEYS = 100  # callers can invent any number of ids
TIMEOUT_SECONDS = 5
# How far the clock of the service may be ahead. There is no tolerance for `exp`.
CLOCK_SKEW_SECONDS = 30
MAX_TOKEN_CHARACTERS = 8192
# A region, which standard libraries do not accept, and a JWS
TOKEN = re.compile(r'(?:[A-Za-z0-9-]{1,16}:)?([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)')
REQUIRED = ['iss', 'aud', 'sub', 'client_id', 'organization_id', 'iat', 'exp', 'jti']


class InvalidToken(Exception):
    """Respond with 401."""


class NotChecked(Exception):
    """
    Respond with 503, and `retry_after` as Retry-After: the keys or the revocations are not known. A 401 would make
    callers drop valid tokens.
    """

    def __init__(self, reason: str, retry_after: int = 5) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


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
        elif age >= REFRESH_AFTER_SECONDS and not is_paused:  # the service may have removed a key that leaked
            try:
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
