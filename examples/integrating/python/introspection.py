"""Asks the service about each token."""

import os
from pathlib import Path
from typing import Any

import requests

URL = os.environ.get('INTROSPECTION_URL', 'http://localhost:3001/oauth2/introspect')
ID = os.environ.get('RESOURCE_SERVER_ID', 'chat-api')
SECRET = os.environ.get('RESOURCE_SERVER_SECRET', '')
ASSERTION_FILE = os.environ.get('ASSERTION_FILE')  # the token of the platform, in place of the secret (RFC 7523 §2.2)
ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
TIMEOUT_SECONDS = 5
session = requests.Session()  # keeps its connections
session.auth = lambda request: request  # otherwise requests adds a password of the file ~/.netrc


def introspect(token: str) -> dict[str, Any] | None:
    """Returns the claims of a valid token, otherwise None. Raises requests.RequestException if the service is away."""
    response = session.post(URL, {'token': token, **credentials()}, timeout=TIMEOUT_SECONDS, allow_redirects=False)
    response.raise_for_status()
    claims: dict[str, Any] = response.json()
    return claims if claims['active'] else None


def credentials() -> dict[str, str]:
    """The only place that proves to the service who the API is. The platform replaces the file from time to time."""
    if not ASSERTION_FILE:
        return {'client_id': ID, 'client_secret': SECRET}
    assertion = Path(ASSERTION_FILE).read_text().strip()
    return {'client_id': ID, 'client_assertion_type': ASSERTION_TYPE, 'client_assertion': assertion}
