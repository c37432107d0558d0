"""`python first_token.py CODE` signs in, and prints the customer of a user. Without CODE it uses the stored tokens."""

import os
import sys

from agent_session import AgentSession
from customers import Customers
from token_store import TokenStore

URL, CLIENT, SECRET = (os.environ[name] for name in ('SERVICE', 'CLIENT', 'CLIENT_SECRET'))
REDIRECT_URI = os.environ.get('REDIRECT_URI', f'{URL}/try/signed-in')

session = AgentSession(URL, CLIENT, SECRET, TokenStore('tokens.sqlite'))
if len(sys.argv) > 1:
    print('agent', session.sign_in(sys.argv[1], REDIRECT_URI))
session.start()
print('customer', Customers(URL, CLIENT, session).request_token('user-4711')['entity_id'])
