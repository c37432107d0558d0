"""Sign-outs and lost devices. An outage of the service or a restart of the backend only delays them."""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Literal

from customers import Customers
from service_requests import log_error

RETRY_SECONDS = 5


class SignOuts:
    """Create one in each process, after a fork. It finishes what others began. `path` is a SQLite file that they share."""

    def __init__(self, path: str, customers: Customers) -> None:
        self.path = path
        self.customers = customers
        self._lock = threading.Lock()
        self._is_wanted = threading.Event()
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # a token is a password
        self._execute('CREATE TABLE IF NOT EXISTS sign_out (id INTEGER PRIMARY KEY, action TEXT, value TEXT)')
        threading.Thread(target=self._follow, daemon=True).start()

    def add(self, action: Literal['end_token', 'sign_out_everywhere'], value: str, end_sessions: Callable[[], None]) -> None:
        """
        Stores a function of `customers` and its parameter: a token if a user signs out on one device, and a user id if the
        user lost a device. `end_sessions` ends the sessions in your application, so that they get no new token afterwards.
        """
        with self._lock:  # the other thread sees the row only after `end_sessions`
            self._execute('INSERT INTO sign_out (action, value) VALUES (?, ?)', action, value)
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
        with self._lock:
            rows = self._execute('SELECT id, action, value FROM sign_out')
        for id, action, value in rows:
            try:
                getattr(self.customers, action)(value)
                self._execute('DELETE FROM sign_out WHERE id = ?', id)
            except Exception as error:  # the row stays for the next round, and the others do not wait for it
                log_error(error)

    def _execute(self, sql: str, *values: int | str) -> list[tuple[int, str, str]]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            return database.execute(sql, values).fetchall()
