import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { createEmptyDatabase, onMariadb, type TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { type ServiceProcess, START, startServiceProcess } from './processes.js';

/** The URL in the pages. The service of a test has another port. */
export const DEMO_URL = 'http://localhost:3000';

/** The commands of the pages need curl, and the pages describe a first run, which uses SQLite. */
export const canRunPages =
  !onMariadb &&
  (() => {
    try {
      return execFileSync('curl', ['--version']).length > 0;
    } catch {
      return false;
    }
  })();

/** A service with the demo registry, as `npm start` starts it, for the tests of one `describe`. */
export class DemoService {
  database!: TestDatabase;
  process!: ServiceProcess;

  constructor() {
    beforeAll(async () => {
      this.database = await createEmptyDatabase();
      this.process = await startServiceProcess({ DATA_DIR: this.dataFolder, AUTH_URL: DEMO_URL }, undefined, START);
    });
    afterAll(async () => {
      await this.process?.terminate();
      await this.database?.remove();
    });
  }

  /** The folder of the demo registry and the signing keys. */
  get dataFolder(): string {
    return join(this.database.folder, 'var');
  }

  /** The URL for commands, whose host is in the demo registry. */
  get url(): string {
    return this.process.url.replace('127.0.0.1', 'localhost');
  }

  /** The environment of commands that use the same folder. */
  get environment(): NodeJS.ProcessEnv {
    return { ...process.env, DATA_DIR: this.dataFolder, AUTH_URL: DEMO_URL };
  }
}
