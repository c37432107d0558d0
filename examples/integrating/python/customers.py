"""The customers of a backend: tokens, the check of a token, and the rights of users."""

import time
from collections.abc import Callable
from typing import Any, Protocol

import requests
from service_requests import Bearer, ServiceError, is_token, send

MARGIN_SECONDS = 60


class Session(Protocol):
    """Such as ClientCredentials."""

    def token(self, rejected: str | None = None) -> str: ...


class Customers:
    """
    `session` has a function `token(rejected)`, as an AgentSession. Each request is repeated for at most
    `max_wait_seconds` in all. A job for which no user waits can set more than 10.
    """

    def __init__(self, url: str, client_id: str, session: Session, max_wait_seconds: float = 10) -> None:
        self.url = f'{url}/v2/customer'
        self.client_id = client_id
        self.session = session
        self.max_wait_seconds = max_wait_seconds
        self._cache: dict[str, tuple[str, float, str]] = {}  # by external id, without a size limit

    def request_token(self, user_id: int | str) -> dict[str, Any]:
        """Returns the token response for a user. 17 and '17' are one user: give two kinds of ids a prefix each."""
        grant = {'grant_type': 'agent_token', 'response_type': 'token', 'client_id': self.client_id}
        return self._send('token', {**grant, 'external_id': external_id(user_id)})

    def call(self, user_id: int | str, send_call: Callable[[str], requests.Response]) -> requests.Response:
        """Calls `send_call(token)`, which requests the Customer Chat API. After 401 calls it again with a new token."""
        response = send_call(self._token(user_id))
        if response.status_code != 401:
            return response
        self._cache.pop(external_id(user_id), None)
        return send_call(self._token(user_id))

    def check(self, token: object, organization_id: str) -> str | None:
        """Returns the id of the customer if a page's token is valid for this organization, otherwise None."""
        if not is_token(token):
            return None
        try:
            info = send('GET', f'{self.url}/info', 'token not checked', auth=Bearer(token))
        except ServiceError as error:
            if error.status == 401:
                return None
            raise
        return str(info['entity_id']) if info['organization_id'] == organization_id else None

    def end_token(self, token: str) -> None:
        """Ends one customer token, for example that of a sign-in whose user signs out."""
        try:
            send('DELETE', f'{self.url}/token', 'token not ended', self.max_wait_seconds, auth=Bearer(token))
        except ServiceError as error:
            if error.status != 401:  # a token that the service does not accept has no effect
                raise

    def transfer_token(self, customer_id: str, client_id: str, challenge: str) -> str:
        """Returns a token that moves a customer to a new device, which has `client_id` and created `challenge`."""
        body = {'bearer_type': 'agent', 'customer_id': customer_id, 'client_id': client_id, 'code_challenge': challenge}
        return str(self._send('identity_transfer', body)['identity_transfer_token'])

    def export(self, user_id: int | str) -> dict[str, Any]:
        """Returns everything that the service stores about a user: rows, by the name of their table."""
        tables: dict[str, Any] = self._send('export', {'external_id': external_id(user_id)})['tables']
        return tables

    def sign_out_everywhere(self, user_id: int | str) -> None:
        """Ends all tokens of a user, on all devices. An assertion that was made before still signs in."""
        self._send_unless_unknown('end_sessions', {'external_id': external_id(user_id), 'browsers': True})

    def customer_id(self, user_id: int | str) -> str | None:
        """Returns the id of the user's customer, or None for a user who never was a customer or was erased."""
        export = self._send_unless_unknown('export', {'external_id': external_id(user_id)})
        return str(export['entity_id']) if export else None

    def erase(self, customer_id: str) -> None:
        """Erases a customer. Store the id before: after a temporary error call this again, also days later."""
        self._cache = {user: cached for user, cached in list(self._cache.items()) if cached[2] != customer_id}
        self._send('erase', {'customer_id': customer_id})

    def _send_unless_unknown(self, action: str, body: dict[str, Any]) -> dict[str, Any] | None:
        try:
            return self._send(action, body)
        except ServiceError as error:
            if error.hint != 'external_id: unknown':
                raise
            return None

    def _token(self, user_id: int | str) -> str:
        key = external_id(user_id)  # a dictionary takes 1, 1.0 and True for the same key
        token, expires_at, _ = self._cache.get(key, ('', 0, ''))
        if time.time() >= expires_at - MARGIN_SECONDS:
            response = self.request_token(user_id)
            token = response['access_token']
            self._cache[key] = (token, time.time() + response['expires_in'], response['entity_id'])
        return token

    def _send(self, action: str, body: dict[str, Any]) -> dict[str, Any]:
        token = self.session.token()
        try:
            return self._post(action, body, token)
        except ServiceError as error:
            if error.status != 401:
                raise
        return self._post(action, body, self.session.token(token))

    def _post(self, action: str, body: dict[str, Any], token: str) -> dict[str, Any]:
        return send('POST', f'{self.url}/{action}', action, self.max_wait_seconds, json=body, auth=Bearer(token))


def external_id(user_id: object) -> str:
    """The text of an id. None or an empty text would create customers that belong to no user, or to all."""
    if isinstance(user_id, bool) or not isinstance(user_id, (int, str)) or user_id == '':
        raise TypeError('user_id: no text and no integer')
    return str(user_id)
