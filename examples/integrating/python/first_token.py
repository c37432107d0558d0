"""`python first_token.py CODE` signs in, and prints the customer of a user. Without CODE it uses the stored tokens."""

import os
import sys

from agent_session import AgentSession
from customers import Customers
from token_store import TokenStore

URL = os.environ.get('SERVICE', 'http://localhost:3000')
CLIENT = os.environ.get('CLIENT', '2d1f4b7c90a84e35b6c1d8f7a2e0935c')
REDIRECT_URI = os.environ.get('REDIRECT_URI', f'{URL}/try/signed-in')

session = AgentSession(URL, CLIENT, os.environ['CLIENT_SECRET'], TokenStore('tokens.sqlite'))
if len(sys.argv) > 1:
    print('agent', session.sign_in(sys.argv[1], REDIRECT_URI))
session.start()
print('customer', Customers(URL, CLIENT, session).request_token('user-4711')['entity_id'])
