import { DataSource } from 'typeorm';
import { runCommand as run } from '../../src/operator/cli/run-command-line.js';
import { ACME_AGENT, ACME_SITE } from './test-registry.js';
import type { TestService } from './test-service.js';

/**
 * Runs a command of the operator (`docs/operations.md`) and returns its output. The command runs inside the service of
 * the test, because a separate process takes a second and does not use the test's clock.
 */
export async function runCommand(
  { application }: Pick<TestService, 'application'>,
  name: string,
  ...parameters: string[]
): Promise<string> {
  const { code, output } = await runCommandWithInput({ application }, '', name, ...parameters);
  if (code !== 0) throw new Error(`${name} ended with ${code}`);
  return output;
}

/** The same with a text as standard input, for a command that may fail. */
export async function runCommandWithInput(
  { application }: Pick<TestService, 'application'>,
  input: string,
  name: string,
  ...parameters: string[]
): Promise<{ code: number; output: string; messages: string }> {
  let output = '';
  let messages = '';
  const code = await run(name, parameters, {
    extension: {},
    withApplication: (work) => work(application),
    readInput: async () => input,
    print: (text) => {
      output += text;
    },
    notify: (text) => {
      messages += text;
    },
  });
  return { code, output, messages };
}

/** An agent's access token. */
export async function issueAgentToken(
  service: TestService,
  { email = ACME_AGENT.email, clientId = ACME_SITE, scope = 'customers:own' } = {},
): Promise<string> {
  const options = ['--email', email, '--client-id', clientId, '--scope', scope];
  return (await runCommand(service, 'agent-token', ...options)).trim();
}

/** Deletes expired rows. Returns the deleted rows of each table, or `undefined` if another process is purging. */
export async function purge(service: TestService): Promise<Record<string, number> | undefined> {
  try {
    const lines = (await runCommand(service, 'purge')).trim().split('\n');
    return Object.fromEntries(lines.map((line) => line.split(': ')).map(([table, rows]) => [table, Number(rows)]));
  } catch (error) {
    if ((error as Error).message === 'another process is purging') return undefined;
    throw error;
  }
}

/** Lets the next purge read all customers and sessions, as the first one of a day does. */
export async function forgetPurgeOfDay({ application }: TestService): Promise<void> {
  await application.get(DataSource).query("UPDATE lease SET finished_day = 0 WHERE name = 'purge'");
}
