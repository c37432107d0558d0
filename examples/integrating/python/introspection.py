"""Asks the service about each token."""

import os
from typing import Any

import requests

URL = os.environ.get('INTROSPECTION_URL', 'http://localhost:3001/oauth2/introspect')
ID = os.environ.get('RESOURCE_SERVER_ID', 'chat-api')
SECRET = os.environ.get('RESOURCE_SERVER_SECRET', '')
TIMEOUT_SECONDS = 5
session = requests.Session()  # keeps its connections


def introspect(token: str) -> dict[str, Any] | None:
    """Returns the claims of a valid token, otherwise None. Raises requests.RequestException if the service is away."""
    # the only place that proves to the service who the API is
    body = {'token': token, 'client_id': ID, 'client_secret': SECRET}
    response = session.post(URL, body, timeout=TIMEOUT_SECONDS, allow_redirects=False)
    response.raise_for_status()
    claims: dict[str, Any] = response.json()
    return claims if claims['active'] else None
