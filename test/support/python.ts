import { spawnSync } from 'node:child_process';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { runProgram, TestProcess } from './processes.js';
import { PROJECT } from './project-files.js';

const EXAMPLES = join(PROJECT, 'examples/integrating/python');

/** A Python with the packages of the examples. `npm run test:processes` sets it. */
const { TEST_PYTHON = '' } = process.env;
export const hasPython = TEST_PYTHON !== '';
/** A Python of `TEST_PYTHON` may be without it. */
export const hasMypy = hasPython && spawnSync(TEST_PYTHON, ['-m', 'mypy', '--version']).status === 0;
if (hasPython && !hasMypy)
  process.stderr.write(`The types of the Python examples are not checked: no mypy in ${TEST_PYTHON}\n`);

const environmentOf = (more: NodeJS.ProcessEnv) => ({
  PATH: process.env.PATH,
  PYTHONPATH: EXAMPLES,
  PYTHONDONTWRITEBYTECODE: '1',
  ...more,
});

/**
 * Runs statements of Python with the examples as modules. `given` is the variable of this name, and the result is the
 * value that the statements give to `result`.
 */
// biome-ignore lint/suspicious/noExplicitAny: JSON of a program without types
export async function runPython(statements: string, given: object): Promise<any> {
  const script = `import json, sys\ngiven = json.load(sys.stdin)\n${statements}\nprint(json.dumps(result))`;
  const options = { env: environmentOf({}), input: JSON.stringify(given) };
  const { code, stdout, stderr } = await runProgram(TEST_PYTHON, ['-c', script], options);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** Starts an example, which prints its port. */
export async function startPython(file: string, environment: NodeJS.ProcessEnv) {
  const process = TestProcess.spawn(TEST_PYTHON, [join(EXAMPLES, file)], environmentOf(environment));
  const [, port] = await process.says(/listening on port (\d+)/, 'stderr');
  return { process, url: `http://127.0.0.1:${port}` };
}

/** What mypy says of the types of all examples. */
export async function checkTypes(): Promise<string> {
  const parameters = ['-m', 'mypy', '--strict', '--cache-dir', devNull, EXAMPLES];
  return (await runProgram(TEST_PYTHON, parameters, { env: environmentOf({}) })).stdout;
}
