"""Requests to the service: repetitions, and the errors of its responses."""

import random
import re
import sys
import time
from collections.abc import Callable
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeGuard

import requests
import urllib3

MAX_ATTEMPTS = 4
TIMEOUT_SECONDS = 5
MIN_TIMEOUT_SECONDS = 2
DEFAULT_DELAY_SECONDS = 2
MAX_RANDOM_DELAY_SECONDS = 3
TOKEN = re.compile('[!-~]{1,8192}')

_session = requests.Session()  # keeps its connections, and no cookies, which could be of another user
_session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))


class ServiceError(Exception):
    """An error response. `status` is None if no response arrived. The message then names the cause."""

    def __init__(
        self, failure: str, response: requests.Response | None = None, cause: Exception | None = None
    ) -> None:
        body = (json_of(response) if response is not None else None) or {}
        self.status = None if response is None else response.status_code
        self.error, self.hint, self.request_id = (body.get(name) for name in ('error', 'error_hint', 'request_id'))
        self.retry_after_seconds = None if response is None else retry_after(response)
        summary = f'{self.status} {self.error}' if cause is None else f'no response ({reason(cause)})'
        details = (f'{failure}: {summary}', self.hint, self.request_id)
        super().__init__(', '.join(detail for detail in details if detail))


class Bearer(requests.auth.AuthBase):
    """A bearer token. As a plain header, requests could replace it by a password of the file ~/.netrc."""

    def __init__(self, token: str) -> None:
        self.token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if not is_token(self.token):  # the error of requests would contain the token
            raise ValueError('malformed token')
        request.headers['Authorization'] = f'Bearer {self.token}'
        return request


def send(
    method: str,
    url: str,
    failure: str,
    max_wait_seconds: float = 10,
    max_attempts: int = MAX_ATTEMPTS,
    data: dict[str, str] | Callable[[], dict[str, str]] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """
    Returns the JSON of a response, or raises ServiceError. Repeats the request after 408, 429 and 5xx, and if no
    response arrives, for `max_wait_seconds` in all. `data` may be a function that makes the body of each attempt. A
    response that arrives in pieces can take longer, because requests applies the timeout to each piece.
    """
    end = time.monotonic() + max_wait_seconds
    attempt = 0
    while True:
        attempt += 1
        cause: Exception | None = None
        response: requests.Response | None = None
        timeout = max(MIN_TIMEOUT_SECONDS, min(TIMEOUT_SECONDS, end - time.monotonic()))
        try:
            body = data() if callable(data) else data
            response = _session.request(method, url, timeout=timeout, allow_redirects=False, data=body, **options)
        except requests.RequestException as error:
            cause = error
        result = json_of(response) if response is not None and response.ok else None
        if result is not None:
            return result
        failed = ServiceError(failure, response, cause)
        delay = failed.retry_after_seconds or DEFAULT_DELAY_SECONDS
        remaining = end - MIN_TIMEOUT_SECONDS - time.monotonic()
        if not is_temporary(failed) or attempt == max_attempts or delay > remaining:
            raise failed from cause
        time.sleep(min(delay + random.random() * min(delay, MAX_RANDOM_DELAY_SECONDS), remaining))


def is_token(value: object) -> TypeGuard[str]:
    """Whether a value can be sent as a token. Any other one is no token of the service."""
    return isinstance(value, str) and TOKEN.fullmatch(value) is not None


def reason(error: BaseException) -> str:
    """The kind of the first error, such as ConnectionRefusedError or TimeoutError, which requests wraps in its own."""
    first: BaseException | None = error
    while isinstance(first, (requests.RequestException, urllib3.exceptions.HTTPError)):
        first = first.__cause__ or first.__context__
    return type(first or error).__name__


def json_of(response: requests.Response) -> dict[str, Any] | None:
    """The JSON object of a response. A proxy may respond with HTML."""
    try:
        body = response.json()
    except requests.JSONDecodeError:
        return None
    return body if isinstance(body, dict) else None


def retry_after(response: requests.Response) -> int | None:
    """The seconds of the header Retry-After."""
    text = response.headers.get('Retry-After', '')
    return int(text) if text.isdecimal() else None


def is_temporary(error: Exception) -> bool:
    """Whether the same call may succeed later. After a permanent error a person must act."""
    if not isinstance(error, ServiceError):
        return not isinstance(error, (LookupError, TypeError, ValueError))  # no sign-in, no user id, no token
    return error.status is None or error.status < 400 or error.status in (408, 429) or error.status >= 500


def log_error(error: Exception, seconds_since_success: int | None = None) -> None:
    """Writes one line. Alert on `permanent error`, and on `no success for` more than 60 s."""
    kind = 'temporary' if is_temporary(error) else 'permanent'
    duration = '' if seconds_since_success is None else f', no success for {seconds_since_success} s'
    print(f'{kind} error: {str(error) or type(error).__name__}{duration}', file=sys.stderr, flush=True)
