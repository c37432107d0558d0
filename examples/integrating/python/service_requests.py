"""Requests to the service: repetitions, and the errors of its responses."""

import random
import sys
import time

import requests

MAX_ATTEMPTS = 4
TIMEOUT_SECONDS = 5
DEFAULT_DELAY_SECONDS = 2
MAX_RANDOM_DELAY_SECONDS = 3


class ServiceError(Exception):
    """An error response. `status` is None if no response arrived."""

    def __init__(self, failure, response=None):
        body = json_of(response) if response is not None else {}
        self.status = None if response is None else response.status_code
        self.error, self.hint, self.request_id = (body.get(name) for name in ('error', 'error_hint', 'request_id'))
        self.retry_after_seconds = None if response is None else retry_after(response)
        details = (f'{failure}: {self.status} {self.error}', self.hint, self.request_id)
        super().__init__(', '.join(detail for detail in details if detail))


class Bearer(requests.auth.AuthBase):
    """A bearer token. As a plain header, requests could replace it by a password of the file ~/.netrc."""

    def __init__(self, token):
        self.token = token

    def __call__(self, request):
        request.headers['Authorization'] = f'Bearer {self.token}'
        return request


def send(method, url, failure, max_wait_seconds=10, **options):
    """
    Returns the JSON of a response, or raises ServiceError. Repeats the request after 408, 429 and 5xx, and if no response
    arrives, for at most `max_wait_seconds` in all. Only for requests that may be repeated.
    """
    last_start = time.monotonic() + max_wait_seconds - TIMEOUT_SECONDS
    for attempt in range(1, MAX_ATTEMPTS + 1):
        cause = response = None
        try:
            response = requests.request(method, url, timeout=TIMEOUT_SECONDS, allow_redirects=False, **options)
        except requests.RequestException as error:
            cause = error
        result = json_of(response, None) if response is not None and response.ok else None
        if result is not None:
            return result
        failed = ServiceError(failure, response)
        delay = failed.retry_after_seconds or DEFAULT_DELAY_SECONDS
        remaining = last_start - time.monotonic()
        if not is_temporary(failed) or attempt == MAX_ATTEMPTS or delay > remaining:
            raise failed from cause
        time.sleep(min(delay + random.random() * min(delay, MAX_RANDOM_DELAY_SECONDS), remaining))


def json_of(response, default={}):
    """The JSON object of a response. A proxy may respond with HTML."""
    try:
        body = response.json()
    except requests.JSONDecodeError:
        return default
    return body if isinstance(body, dict) else default


def retry_after(response):
    """The seconds of the header Retry-After."""
    text = response.headers.get('Retry-After', '')
    return int(text) if text.isdecimal() else None


def is_temporary(error):
    """Whether the same call may succeed later. After a permanent error a person must act."""
    if not isinstance(error, ServiceError):
        return not isinstance(error, (LookupError, TypeError))  # no sign-in, no user id
    return error.status is None or error.status < 400 or error.status in (408, 429) or error.status >= 500


def log_error(error, seconds_since_success=None):
    """Writes one line. Alert on `permanent error`, and on `no success for` more than 60 s."""
    kind = 'temporary' if is_temporary(error) else 'permanent'
    duration = '' if seconds_since_success is None else f', no success for {seconds_since_success} s'
    print(f'{kind} error: {error}{duration}', file=sys.stderr, flush=True)
