import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const EXAMPLES = join(import.meta.dirname, '../../examples/integrating/python');

/** A Python with the packages of the examples. `npm run test:processes` sets it. */
const { TEST_PYTHON = '' } = process.env;
export const hasPython = TEST_PYTHON !== '';

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
export function runPython(statements: string, given: object): Promise<any> {
  const script = `import json, sys\ngiven = json.load(sys.stdin)\n${statements}\nprint(json.dumps(result))`;
  return new Promise((resolve, reject) => {
    const child = execFile(TEST_PYTHON, ['-c', script], { env: environmentOf({}) }, (error, stdout, stderr) =>
      error ? reject(new Error(stderr)) : resolve(JSON.parse(stdout)),
    );
    child.stdin?.end(JSON.stringify(given));
  });
}

/** A running example that prints its port. */
export class PythonServer {
  stderr = '';
  private constructor(
    private readonly child: ReturnType<typeof spawn>,
    public url = '',
  ) {
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      this.stderr += text;
    });
  }

  static async start(file: string, environment: NodeJS.ProcessEnv): Promise<PythonServer> {
    const options = { env: environmentOf(environment), stdio: ['ignore', 'ignore', 'pipe'] as 'pipe'[] };
    const server = new PythonServer(spawn(TEST_PYTHON, [join(EXAMPLES, file)], options));
    const ended = once(server.child, 'exit');
    for (;;) {
      const [, port] = /listening on port (\d+)/.exec(server.stderr) ?? [];
      if (port) {
        server.url = `http://127.0.0.1:${port}`;
        return server;
      }
      const more = once(server.child.stderr as NodeJS.EventEmitter, 'data');
      if ((await Promise.race([more, ended])).length === 2) throw new Error(`the example ended: ${server.stderr}`);
    }
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null) return;
    this.child.kill();
    await once(this.child, 'exit');
  }
}
