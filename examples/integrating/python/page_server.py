"""A backend for the page of signed-in users, as a WSGI application: `python page_server.py` serves it."""

import json
import os
import secrets
import sys
from http.cookies import SimpleCookie
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from client_credentials import ClientCredentials, from_file
from customers import Customers
from page_routes import Response, chat_token
from sign_outs import SignOuts

PAGE_ORIGIN = os.environ.get('PAGE_ORIGIN', 'http://localhost:8000')
CORS = {'Access-Control-Allow-Origin': PAGE_ORIGIN, 'Access-Control-Allow-Credentials': 'true'}
MAX_BODY_BYTES = 1_000


def create_application() -> WSGIApplication:
    """Call this in each process, after a fork."""
    url, file = os.environ['SERVICE'], os.environ.get('ASSERTION_FILE')
    secret = os.environ.get('CLIENT_SECRET')
    agent = ClientCredentials(url, os.environ['CLIENT'], secret, from_file(file) if file else None)
    customers = Customers(url, os.environ['PAGE_CLIENT'], agent)
    sign_outs = SignOuts(os.environ.get('SIGN_OUTS', 'sign-outs.sqlite'), customers)
    # By cookie, in this process only. Use server-side sessions of your web framework. The default session of Flask is a
    # cookie: `session.clear()` ends nothing on the server.
    sessions: dict[str, dict[str, Any]] = {}

    def sign_in(user_id: str) -> Response:
        """In place of your own sign-in, which checks a password."""
        key = secrets.token_urlsafe()
        sessions[key] = {'user_id': user_id, 'sign_in': secrets.token_urlsafe()}
        return 204, {'Set-Cookie': f'session={key}; Path=/; HttpOnly; SameSite=Lax'}, None

    def end_sessions(user_id: str) -> None:
        for key, session in list(sessions.items()):
            if session.get('user_id') == user_id:
                del sessions[key]
                session.clear()

    def respond(environ: WSGIEnvironment) -> Response:
        path, method = environ['PATH_INFO'], environ['REQUEST_METHOD']
        cookie = SimpleCookie(environ.get('HTTP_COOKIE', '')).get('session')
        key = cookie.value if cookie else ''
        session = sessions.get(key, {})
        if path == '/chat-token':
            query = parse_qs(environ.get('QUERY_STRING', ''), keep_blank_values=True)
            return chat_token(customers, sign_outs, session, PAGE_ORIGIN, method, query)
        if method != 'POST' or environ.get('HTTP_ORIGIN', PAGE_ORIGIN) != PAGE_ORIGIN:  # a page of another site
            return 403, {}, {'error': 'forbidden'}
        if path == '/sign-in':
            user_ids = form_of(environ).get('user_id')
            return sign_in(user_ids[0]) if user_ids else (400, {}, {'error': 'no_user_id'})
        if path == '/sign-out':
            sign_in_id = session.get('sign_in')
            if sign_in_id is not None:
                sign_outs.end_sign_in(sign_in_id)
            session.clear()  # a request that goes on hands out no token
            sessions.pop(key, None)
            return 200, {}, {}
        user_id = session.get('user_id')
        if user_id is None:
            return 401, {}, {'error': 'signed_out'}
        if path == '/lost-device':
            sign_outs.lost_device(user_id, lambda: end_sessions(user_id))
            return 200, {}, {}
        return 404, {}, {'error': 'not_found'}

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        status, headers, body = respond(environ)
        start_response(f'{status} ', list({'Content-Type': 'application/json', **CORS, **headers}.items()))
        return [b'' if body is None else json.dumps(body).encode()]

    return application


def form_of(environ: WSGIEnvironment) -> dict[str, list[str]]:
    length = min(int(environ.get('CONTENT_LENGTH') or 0), MAX_BODY_BYTES)
    return parse_qs(environ['wsgi.input'].read(length).decode())


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


if __name__ == '__main__':
    server = make_server('127.0.0.1', int(os.environ.get('PORT', '8000')), create_application(), Server)
    print(f'listening on port {server.server_port}', file=sys.stderr, flush=True)
    server.serve_forever()
