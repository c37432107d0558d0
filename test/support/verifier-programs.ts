import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../../scripts/programs.js';
import { TestProcess } from './processes.js';
import { PROJECT } from './project-files.js';

const EXAMPLES = join(PROJECT, 'examples/integrating');
const GO = join(EXAMPLES, 'go');

/** An example of an API in another language. */
export interface VerifierProgram {
  language: string;
  /** Whether this machine has the compiler. */
  isPossible: boolean;
  /** Compiles the example into a folder. Returns the command that starts it. */
  build(folder: string): [program: string, parameters: string[]];
}

const versionOf = (name: string, parameter: string, pattern: RegExp) =>
  findProgram([name]) ? Number(pattern.exec(execFileSync(name, [parameter], { encoding: 'utf8' }))?.[1]) : 0;

/** Whether Go has the module of the example, or can get it. */
function hasGoModules(): boolean {
  const { status, stderr } = spawnSync('go', ['mod', 'download'], { cwd: GO, encoding: 'utf8', timeout: 60_000 });
  if (status !== 0) process.stderr.write(`The example in Go is not tested, because its module is missing: ${stderr}\n`);
  return status === 0;
}

export const VERIFIER_PROGRAMS: VerifierProgram[] = [
  {
    language: 'go',
    isPossible: versionOf('go', 'version', /go1\.(\d+)/) >= 24 && hasGoModules(),
    build: (folder) => {
      execFileSync('go', ['vet', './...'], { cwd: GO });
      execFileSync('go', ['build', '-o', join(folder, 'chat-api'), './chat-api'], { cwd: GO });
      return [join(folder, 'chat-api'), []];
    },
  },
  {
    language: 'java',
    isPossible: versionOf('javac', '--version', /javac (\d+)/) >= 17,
    build: (folder) => {
      const cwd = join(EXAMPLES, 'java');
      execFileSync('javac', ['-Xlint:all,-serial', '-Werror', '-d', folder, ...readdirSync(cwd)], { cwd });
      return ['java', ['-cp', folder, 'ChatApi']];
    },
  },
];

/** Starts an example, which prints its port. */
export async function startVerifierProgram(
  [program, parameters]: [string, string[]],
  environment: Record<string, string>,
) {
  const env = { PATH: process.env.PATH, ...environment, PORT: '0' };
  const api = TestProcess.spawn(program, parameters, env);
  const [, port] = await api.says(/listening on port (\d+)/, 'stderr');
  return { process: api, url: `http://127.0.0.1:${port}` };
}
