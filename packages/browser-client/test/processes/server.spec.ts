import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runProgram } from '../../../../test/support/processes.js';
import { PROJECT, temporaryFolder } from '../../../../test/support/project-files.js';

const folder = temporaryFolder('server');
const EXAMPLES = join(PROJECT, 'examples/integrating');

/** Runs a module in Node.js without the globals of a page. Resolves when the process has ended by itself. */
async function run(text: string) {
  const file = join(folder, 'module.js');
  writeFileSync(file, text);
  return runProgram(process.execPath, [file], { env: {} });
}

it('a module that imports the token client of the guide on a server keeps no process alive', async () => {
  const { code, stderr } = await run(`import { tokens } from '${EXAMPLES}/browser/chat.js'; tokens.clientId;`);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

it('an app on Node.js learns that the service is not reachable', async () => {
  const { code, stdout, stderr } = await run(`import { AppSession } from '${EXAMPLES}/second-device/app.js';
    globalThis.setTimeout = (work) => setImmediate(work); // no pauses between the attempts
    const store = { read: async () => 'dev:refresh' };
    const app = new AppSession({ url: 'http://127.0.0.1:9/', clientId: 'any', store });
    await app.token().catch(({ error }) => console.log(error));`);
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'no_response\n', stderr: '' });
});
