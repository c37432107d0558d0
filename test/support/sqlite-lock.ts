import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** Takes the write lock of a database file when it gets "lock", and releases it when it gets "release". */
const PROGRAM = `
  import Database from 'libsql';
  const database = new Database(process.argv[1]);
  database.pragma('busy_timeout = 10000');
  process.on('message', (message) => {
    database.exec(message === 'lock' ? 'BEGIN IMMEDIATE' : 'COMMIT');
    process.send(message);
  });
  process.on('disconnect', () => process.exit());
  process.send('started');
`;

/** Another process that holds the write lock of a SQLite file, as a backup or a command can. */
export class SqliteLock {
  private constructor(private readonly holder: ChildProcess) {}

  /** @param databaseUrl `sqlite:PATH` */
  static async open(databaseUrl: string): Promise<SqliteLock> {
    const parameters = ['--input-type=module', '-e', PROGRAM, databaseUrl.slice('sqlite:'.length)];
    const holder = spawn(process.execPath, parameters, {
      cwd: join(import.meta.dirname, '../..'),
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    await once(holder, 'message');
    return new SqliteLock(holder);
  }

  /** Waits for the lock. This shows that no other process holds it for long. */
  lock(): Promise<void> {
    return this.tell('lock');
  }

  release(): Promise<void> {
    return this.tell('release');
  }

  close(): void {
    this.holder.disconnect();
  }

  private async tell(message: 'lock' | 'release'): Promise<void> {
    const done = Promise.race([once(this.holder, 'message'), once(this.holder, 'exit')]);
    this.holder.send(message);
    const [answer] = await done;
    if (answer !== message) throw new Error('the process that holds the lock has ended');
  }
}
