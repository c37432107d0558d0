"""Sign-outs and lost devices. An outage of the service or a restart of the backend only delays them."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from customers import Customers, external_id
from service_requests import ServiceError, is_temporary, log_error

RETRY_SECONDS = 5
# Longer than a request that began before the sign-out and gets its token afterwards
ENDED_SIGN_IN_SECONDS = 86_400
TABLES = (
    'issued_token (id INTEGER PRIMARY KEY, sign_in TEXT NOT NULL, token TEXT NOT NULL, expires_at REAL NOT NULL)',
    'ended_sign_in (id TEXT PRIMARY KEY, ended_at REAL NOT NULL)',
    'lost_device (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL)',
)


class SignOuts:
    """
    Create one in each process, after a fork. It finishes what others began. `path` is a SQLite file that they share. For
    several machines, write the same statements for a database that they share.
    """

    def __init__(self, path: str, customers: Customers) -> None:
        self.path = path
        self.customers = customers
        self._lock = threading.Lock()
        self._is_wanted = threading.Event()
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # a token is a password
        for table in TABLES:
            self._execute(f'CREATE TABLE IF NOT EXISTS {table}')
        threading.Thread(target=self._follow, daemon=True).start()

    def record(self, sign_in: str, token: str, expires_at: float) -> bool:
        """
        Stores a token of a sign-in. Call this before you hand out the token. Returns False if the sign-in has ended: do
        not hand out the token then, it is ended too.
        """
        self._execute('INSERT INTO issued_token (sign_in, token, expires_at) VALUES (?, ?, ?)', sign_in, token, expires_at)
        # after the INSERT: a sign-out that this statement does not see finds the token
        is_ended = bool(self._execute('SELECT 1 FROM ended_sign_in WHERE id = ?', sign_in))
        if is_ended:
            self._is_wanted.set()
        return not is_ended

    def keep(self, sign_in: str, token: str) -> None:
        """The sign-out does not end this token."""
        self._execute('DELETE FROM issued_token WHERE sign_in = ? AND token = ?', sign_in, token)

    def end_sign_in(self, sign_in: str) -> None:
        """Ends all tokens of a sign-in, also one that arrives later, when its user signs out on one device."""
        if not isinstance(sign_in, str):  # SQLite would store None
            raise TypeError('sign_in: no text')
        self._execute('INSERT OR IGNORE INTO ended_sign_in VALUES (?, ?)', sign_in, time.time())
        self._is_wanted.set()

    def lost_device(self, user_id: int | str, end_sessions: Callable[[], None]) -> None:
        """
        Ends all tokens of a user, on all devices. `end_sessions` ends the user's sessions in your application, so that
        they get no new token. If the user signs in again meanwhile, the new token may be ended too.
        """
        with self._lock:  # the other thread sees the row only after `end_sessions`
            self._execute('INSERT INTO lost_device (user_id) VALUES (?)', external_id(user_id))
            end_sessions()
        self._is_wanted.set()

    def _follow(self) -> None:
        while True:
            try:
                self._finish()
            except Exception as error:  # of the file; the thread must not end
                log_error(error)
            self._is_wanted.wait(RETRY_SECONDS)
            self._is_wanted.clear()

    def _finish(self) -> None:
        now = time.time()
        self._execute('DELETE FROM issued_token WHERE expires_at < ?', now)
        ended = 'SELECT id, token FROM issued_token WHERE sign_in IN (SELECT id FROM ended_sign_in)'
        self._finish_rows('issued_token', self._execute(ended), self.customers.end_token)
        with self._lock:
            lost = self._execute('SELECT id, user_id FROM lost_device')
        self._finish_rows('lost_device', lost, self.customers.sign_out_everywhere)
        old = 'ended_at < ? AND id NOT IN (SELECT sign_in FROM issued_token)'
        self._execute(f'DELETE FROM ended_sign_in WHERE {old}', now - ENDED_SIGN_IN_SECONDS)

    def _finish_rows(self, table: str, rows: list[Any], action: Callable[[str], None]) -> None:
        for id, value in rows:
            try:
                action(value)
            except Exception as error:  # the others do not wait for this row
                if not is_final(error):  # the row stays for the next round
                    log_error(error)
                    continue
                log_error(ValueError(f'dropped row {id} of {table}: {error}'))
            self._execute(f'DELETE FROM {table} WHERE id = ?', id)

    def _execute(self, sql: str, *values: float | str) -> list[Any]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            return database.execute(sql, values).fetchall()


def is_final(error: Exception) -> bool:
    """Whether the request can never succeed. The operator can end the other errors of your client or its agent."""
    if isinstance(error, ServiceError):
        return not is_temporary(error) and error.status not in (401, 403) and error.error != 'unauthorized_client'
    return isinstance(error, (TypeError, ValueError))
