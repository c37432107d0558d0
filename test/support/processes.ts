import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { writeKeySet } from '../../packages/conformance-kit/src/key-set-file.js';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { ACME_AGENT, ACME_SITE } from './test-registry.js';

const DIST = join(import.meta.dirname, '../../dist');

/** The program of `npm start`, which also creates the demo registry. */
export const START = resolve(import.meta.dirname, '../../scripts/start.js') as `/${string}`;

/** The output and the exit code of a process. */
export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * A process of the built service, `dist/main.js` or `dist/cli.js`. It inherits no environment except `PATH` and the cache
 * of compiled modules.
 */
export class TestProcess implements Ended {
  stdout = '';
  stderr = '';
  readonly ended: Promise<Ended>;

  private constructor(private readonly child: ChildProcessWithoutNullStreams) {
    child.stdin.end();
    child.stdout.setEncoding('utf8').on('data', (text) => {
      this.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      this.stderr += text;
    });
    this.ended = once(child, 'close').then(() => this);
  }

  /** `file` may be the absolute path of a file of another package. */
  static start(
    file: 'main.js' | 'cli.js' | `/${string}`,
    parameters: string[],
    environment: NodeJS.ProcessEnv,
    cwd = '/',
  ): TestProcess {
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const env = { PATH, NODE_COMPILE_CACHE, ...environment };
    return TestProcess.spawn(process.execPath, [resolve(DIST, file), ...parameters], env, cwd);
  }

  /** Another program. It gets this environment only. */
  static spawn(program: string, parameters: string[], env: NodeJS.ProcessEnv, cwd = '/'): TestProcess {
    return new TestProcess(spawn(program, parameters, { env, cwd }));
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get code(): number | null {
    return this.child.exitCode;
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** Waits until the output of the process matches a pattern. */
  async says(what: RegExp, channel: 'stdout' | 'stderr' = 'stdout'): Promise<RegExpExecArray> {
    for (;;) {
      const found = what.exec(this[channel]);
      if (found) return found;
      const more = once(this.child[channel], 'data');
      if ((await Promise.race([more, this.ended])) === this)
        throw new Error(`the process ended with the output: ${this.stdout}${this.stderr}`);
    }
  }
}

/** A service in its own process, on ports that the kernel has chosen. */
export interface ServiceProcess {
  process: TestProcess;
  url: string;
  managementUrl: string;
  /** Sends SIGTERM; resolves to the exit code. */
  terminate(): Promise<number | null>;
}

export const PORTS = { HOST: '127.0.0.1', PORT: '0', MANAGEMENT_PORT: '0', RATE_LIMIT: 'off' };

export async function startServiceProcess(
  environment: NodeJS.ProcessEnv,
  cwd?: string,
  main: Parameters<typeof TestProcess.start>[0] = 'main.js',
  parameters: string[] = [],
): Promise<ServiceProcess> {
  const process = TestProcess.start(main, parameters, { ...PORTS, ...environment }, cwd);
  const [, port, managementPort] = await process.says(/port (\d+) for callers .* port (\d+) for the cluster/);
  return {
    process,
    url: `http://127.0.0.1:${port}`,
    managementUrl: `http://127.0.0.1:${managementPort}`,
    async terminate() {
      process.signal('SIGTERM');
      return (await process.ended).code;
    },
  };
}

interface ProgramOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  input?: string;
}

/** Runs a program until it ends. By default it inherits no environment except `PATH` and `HOME`. */
export function runProgram(
  program: string,
  parameters: string[],
  { input = '', ...options }: ProgramOptions = {},
): Promise<Ended> {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME };
  return new Promise((resolve) => {
    const child = execFile(program, parameters, { env, maxBuffer: 1 << 24, ...options }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
    child.stdin?.on('error', () => undefined); // EPIPE if the program ends before it reads its input
    child.stdin?.end(input);
  });
}

/** Runs commands of a page in Bash, which ends with the first one that fails. Returns what they print. */
export async function runScript(script: string, options: ProgramOptions): Promise<string> {
  const { code, stdout, stderr } = await runProgram('bash', ['-euo', 'pipefail', '-c', script], options);
  if (code !== 0) throw new Error(`exit code ${code}\n${stdout}\n${stderr}`);
  return stdout;
}

export function runCli(parameters: string[], environment: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return TestProcess.start('cli.js', parameters, environment).ended;
}

/** The token of an agent, from the command line. */
export async function agentTokenOf(
  environment: NodeJS.ProcessEnv,
  email = ACME_AGENT.email,
  clientId = ACME_SITE,
): Promise<string> {
  const agent = ['--email', email, '--client-id', clientId, '--scope', 'customers:own'];
  const { stdout, stderr } = await runCli(['agent-token', ...agent], environment);
  if (stdout === '') throw new Error(`no token for ${email}: ${stderr}`);
  return stdout.trim();
}

/** The environment of a process that uses the database of a test. */
export function environmentOf({ url, folder }: TestDatabase): Record<string, string> {
  return { DATABASE_URL: url, DATA_DIR: folder, SIGNING_KEYS_FILE: writeKeySet(join(folder, 'keys.json')) };
}

/** The same AUTH_URL, so that processes accept each other's tokens. */
export const PRODUCTION = { AUTH_URL: 'https://auth.example', NODE_ENV: 'production' };

/** Starts the built service in its own process, with the database and keys of a test's service and the real clock. */
export function startPod({ database }: { database: TestDatabase }, more = {}): Promise<ServiceProcess> {
  return startServiceProcess({ ...environmentOf(database), ...PRODUCTION, ...more });
}
