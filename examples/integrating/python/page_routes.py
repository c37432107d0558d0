"""What a backend responds to the page of its signed-in user, in any web framework: status, headers and JSON."""

import time
import uuid
from collections.abc import Callable, Container
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import jwt
from customers import Customers, external_id
from service_requests import is_temporary, log_error
from sign_outs import SignOuts

MARGIN_SECONDS = 60
MAX_WAIT_SECONDS = 4
DEFAULT_DELAY_SECONDS = 2
ASSERTION_LIFETIME_SECONDS = 60
NO_STORE = {'Cache-Control': 'no-store'}
waiting = ThreadPoolExecutor(max_workers=32)
Response = tuple[int, dict[str, str], dict[str, Any] | None]


def chat_token(
    customers: Customers,
    sign_outs: SignOuts,
    session: dict[str, Any],
    page_origin: str,
    method: str = 'POST',
    query: Container[str] = (),
    on_error: Callable[[Exception], None] = log_error,
) -> Response:
    """
    The customer token of a signed-in user, for a page that the operator has registered for the client of `customers`.
    `session` is the user's server-side session at your site, a dictionary with `user_id` and `sign_in`, a random text that
    is new at each sign-in. `sign_outs` records each token before this function returns it. `query` contains the name
    `renew` after a 401 of the Customer Chat API, and `separate` for a move to a second device; both have no value, so
    parse the query with `keep_blank_values=True`.
    """
    cors = {'Access-Control-Allow-Origin': page_origin, 'Access-Control-Allow-Credentials': 'true'}
    headers = {**cors, 'Access-Control-Expose-Headers': 'Retry-After', **NO_STORE}
    if method == 'OPTIONS':  # before the check of the session: a preflight has no cookies
        return 204, headers, None
    sign_in, signed_in = session.get('sign_in'), session.get('user_id')  # each once: a sign-out may clear the session
    if signed_in is None:
        return 401, headers, {'error': 'signed_out'}
    try:
        user_id = external_id(signed_in)
        if not isinstance(sign_in, str):
            raise TypeError('sign_in: no text')
        token: dict[str, Any] = session.get('chat_token') or {}
        # your application may sign another user in with the same session
        is_of_user = (token.get('sign_in'), token.get('user_id')) == (sign_in, user_id)
        is_usable = is_of_user and time.time() < token['expires_at'] - MARGIN_SECONDS
        if not is_usable or 'renew' in query or 'separate' in query:
            response = within(MAX_WAIT_SECONDS, customers.request_token, user_id)
            token = {name: response[name] for name in ('access_token', 'entity_id')}
            token |= {'sign_in': sign_in, 'user_id': user_id, 'expires_at': time.time() + response['expires_in']}
            is_signed_in = sign_outs.record(sign_in, token['access_token'], token['expires_at'])
            if (session.get('sign_in'), session.get('user_id')) != (sign_in, signed_in):
                sign_outs.end_sign_in(sign_in)
                raise ConnectionError('the user of the session has changed')
            if not is_signed_in:
                return 401, headers, {'error': 'signed_out'}
            if 'separate' in query:
                sign_outs.keep(sign_in, token['access_token'])
            else:
                session['chat_token'] = token
        body = {name: token[name] for name in ('access_token', 'entity_id')}
        return 200, headers, {**body, 'expires_in': int(token['expires_at'] - time.time())}
    except Exception as error:
        on_error(error)
        if not is_temporary(error):
            return 500, headers, {'error': 'server_error'}
        delay = getattr(error, 'retry_after_seconds', None) or DEFAULT_DELAY_SECONDS
        return 503, {**headers, 'Retry-After': str(delay)}, {'error': 'temporarily_unavailable'}


def within(seconds: float, call: Callable[..., Any], *parameters: Any) -> Any:
    """The result of a call. A call that takes longer goes on without its caller, so a renewal of the agent token ends."""
    future = waiting.submit(call, *parameters)
    if not wait([future], seconds).done:
        future.cancel()  # if it has not begun
        raise TimeoutError(f'no result within {seconds} s')
    return future.result()


def assertion(
    session: dict[str, Any],
    *,
    issuer: str,
    audience: str,
    client_id: str,
    organization_id: str,
    key_id: str,
    private_key: str,
) -> Response:
    """The assertion of a signed-in user, for `signIn` of the page. `private_key` is an EC key (P-256) as PEM."""
    user_id = session.get('user_id')
    if user_id is None:
        return 401, NO_STORE, {'error': 'signed_out'}
    now = int(time.time())
    claims = {
        'iss': issuer,
        'aud': audience,
        'sub': external_id(user_id),
        'client_id': client_id,
        'organization_id': organization_id,
        'jti': str(uuid.uuid4()),
        'iat': now,
        'exp': now + ASSERTION_LIFETIME_SECONDS,
    }
    return 200, NO_STORE, {'assertion': jwt.encode(claims, private_key, algorithm='ES256', headers={'kid': key_id})}
