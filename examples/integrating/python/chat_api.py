"""A WSGI application that accepts customer tokens. `python chat_api.py` serves it; in production use for example gunicorn."""

import json
import os
import re
import signal
import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from token_verifier import InvalidToken, NotChecked, RevocationFeed, TokenVerifier

PAGE_ORIGINS = os.environ.get('PAGE_ORIGINS', 'http://localhost:8080').split(',')
PREFLIGHT = {'Access-Control-Allow-Headers': 'Authorization, Content-Type', 'Access-Control-Max-Age': '7200'}
CHATS = re.compile(r'/organizations/([^/]+)/chats')


def create_application() -> WSGIApplication:
    """Call this in each process, after a fork. If it raises, the process ends, and the orchestrator starts it again."""
    url = os.environ.get('REVOCATIONS_URL', 'http://localhost:3001/oauth2/revocations')
    server_id, assertion_file = os.environ.get('RESOURCE_SERVER_ID', 'chat-api'), os.environ.get('ASSERTION_FILE')
    if assertion_file:  # the token of the platform, which replaces it from time to time
        feed = RevocationFeed(url, server_id, assertion=lambda: Path(assertion_file).read_text().strip())
    else:
        feed = RevocationFeed(url, server_id, os.environ['RESOURCE_SERVER_SECRET'])
    verifier = TokenVerifier(os.environ.get('AUTH_URL', 'http://localhost:3000'), os.environ.get('JWKS_URL'), feed)
    feed.start()
    verifier.fetch_keys()
    feed.wait_until_read()

    def respond(environ: WSGIEnvironment) -> tuple[int, dict[str, str], dict[str, str]]:
        """Returns status, headers and JSON."""
        if environ['PATH_INFO'] == '/health':
            return 200, {}, {'revocations': 'current' if feed.is_current else 'stale'}
        scheme, _, token = environ.get('HTTP_AUTHORIZATION', '').partition(' ')
        if scheme.lower() != 'bearer':
            return 401, {'WWW-Authenticate': 'Bearer'}, {}  # no error code if there is no token
        try:
            claims = verifier.verify(token)
        except InvalidToken as error:
            log(f'token not accepted: {error}')  # not in the response: it may help an attacker
            return 401, {'WWW-Authenticate': 'Bearer error="invalid_token"'}, {'error': 'invalid_token'}
        except NotChecked as error:
            log(f'token not checked: {error}')
            return 503, {'Retry-After': str(error.retry_after)}, {'error': 'temporarily_unavailable'}
        match = CHATS.fullmatch(environ['PATH_INFO'])
        if not match or match[1] != claims['organization_id']:
            return 404, {}, {'error': 'not_found'}
        customer = f'customer {claims["sub"]}'
        speaker = f'agent {claims["act"]["sub"]} for {customer}' if 'act' in claims else customer
        log(f'audit: {speaker} read chats ({claims.get("gty")})')
        return 200, {}, {'customer': claims['sub'], 'organization': claims['organization_id']}

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        origin = environ.get('HTTP_ORIGIN')
        cors = {'Vary': 'Origin'}
        if origin in PAGE_ORIGINS:
            cors |= {'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': 'Retry-After'}
        if origin in PAGE_ORIGINS and environ['REQUEST_METHOD'] == 'OPTIONS':  # a preflight has no token
            status, headers, content = 204, PREFLIGHT, b''
        else:
            status, headers, body = respond(environ)
            content = json.dumps(body).encode()
        start_response(f'{status} ', list({**cors, **headers, 'Content-Type': 'application/json'}.items()))
        return [content]

    return application


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    address = ('127.0.0.1', int(os.environ.get('PORT', '9000')))
    server = make_server(*address, create_application(), Server, QuietHandler)
    log(f'listening on port {server.server_port}')
    server.serve_forever()
