"""Prints the customer of a user."""

import os

from client_credentials import ClientCredentials
from customers import Customers

URL, CLIENT, SECRET = (os.environ[name] for name in ('SERVICE', 'CLIENT', 'CLIENT_SECRET'))

session = ClientCredentials(URL, CLIENT, SECRET)
print('customer', Customers(URL, CLIENT, session).request_token('user-4711')['entity_id'])
