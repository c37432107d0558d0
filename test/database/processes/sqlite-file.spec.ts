import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const PROCESS_COUNT = 4;
const FILE_COUNT = 60;
const PROJECT = join(import.meta.dirname, '../../..');

/** Opens each file that the test names, at the time that it names, and sends the journal mode or the error. */
const PROGRAM = `
  import Database from 'libsql';
  import { prepareFile } from '${PROJECT}/dist/platform/database/sqlite-statements.js';
  process.on('message', async ({ path, at }) => {
    while (Date.now() < at);
    try {
      const database = new Database(path);
      await prepareFile(database);
      const [row] = database.pragma('journal_mode');
      database.close();
      process.send(row.journal_mode);
    } catch (error) {
      process.send(error.message);
    }
  });
  process.send('ready');
`;

const folder = mkdtempSync(join(tmpdir(), 'sqlite-file-'));
const processes: ChildProcess[] = [];
afterAll(() => {
  for (const each of processes) each.kill();
  rmSync(folder, { recursive: true });
});

it('processes that open a new database file at the same time all get a connection to it', async () => {
  for (let count = 0; count < PROCESS_COUNT; count++) {
    const options: SpawnOptions = { cwd: PROJECT, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] };
    processes.push(spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], options));
  }
  await Promise.all(processes.map((each) => once(each, 'message')));
  for (let file = 0; file < FILE_COUNT; file++) {
    const results = processes.map(async (each) => (await once(each, 'message'))[0]);
    for (const each of processes) each.send({ path: join(folder, `${file}.sqlite`), at: Date.now() + 5 });
    expect(await Promise.all(results)).toEqual(Array(PROCESS_COUNT).fill('wal'));
  }
});
