"""Where the processes of a backend share the tokens of their agent."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

# Longer than a renewal, during which another process has the lock
LOCK_TIMEOUT_SECONDS = 120


Tokens = dict[str, Any]


class TokenStore:
    """
    The tokens in one row of a SQLite file, for the processes of one machine. For several machines, write the same
    statements for a database that they share, with SELECT … FOR UPDATE in place of BEGIN IMMEDIATE.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # a refresh token is a password
        with closing(self._connect()) as database:
            database.execute('CREATE TABLE IF NOT EXISTS agent_session (id INTEGER PRIMARY KEY, tokens TEXT NOT NULL)')

    def fill(self, tokens: Tokens) -> None:
        """Once, with the tokens of a new sign-in."""
        with closing(self._connect()) as database:
            database.execute('REPLACE INTO agent_session VALUES (1, ?)', [json.dumps(tokens)])

    def read(self) -> Tokens:
        with closing(self._connect()) as database:
            return select(database)

    def update(self, change: Callable[[Tokens], Tokens]) -> Tokens:
        """Stores `change(tokens)`. Other processes wait for the lock. They can still read the old tokens."""
        with closing(self._connect()) as database:  # after an error, this ends the transaction
            database.execute('BEGIN IMMEDIATE')
            tokens = change(select(database))
            database.execute('UPDATE agent_session SET tokens = ? WHERE id = 1', [json.dumps(tokens)])
            database.execute('COMMIT')
            return tokens

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None)


def select(database: sqlite3.Connection) -> Tokens:
    row = database.execute('SELECT tokens FROM agent_session WHERE id = 1').fetchone()
    if row is None:
        raise LookupError('no agent token: a person must sign in first')
    tokens: Tokens = json.loads(row[0])
    return tokens
