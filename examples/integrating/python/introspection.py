"""Asks the service about each token."""

import os

import requests

URL = os.environ.get('INTROSPECTION_URL', 'http://localhost:3001/oauth2/introspect')
ID = os.environ.get('RESOURCE_SERVER_ID', 'chat-api')
SECRET = os.environ.get('RESOURCE_SERVER_SECRET', '')
TIMEOUT_SECONDS = 5


def introspect(token):
    """Returns the claims of a valid token, otherwise None. Raises requests.RequestException if the service is away."""
    body = {'token': token, 'client_id': ID, 'client_secret': SECRET}
    response = requests.post(URL, body, timeout=TIMEOUT_SECONDS, allow_redirects=False)
    response.raise_for_status()
    claims = response.json()
    return claims if claims['active'] else None
