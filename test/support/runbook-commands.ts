import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');

/** The runbook runs in Kubernetes and without it. */
export type Setting = 'kubernetes' | 'plain';
export const SETTINGS: Setting[] = ['kubernetes', 'plain'];

/** A process whose log and metrics the runbook reads. */
export interface RunbookProcess {
  log: string;
  metricsUrl: string;
}

/** The functions that the runbook defines for each setting: its first two blocks. */
const FUNCTIONS = Array.from(
  (PAGE.split('\n## Runbook\n')[1] ?? '').matchAll(/^```sh\n(.*?)^```$/gms),
  ([, functions = '']) => functions,
).slice(0, 2);

function functionsOf(setting: Setting): string {
  return FUNCTIONS[SETTINGS.indexOf(setting)] ?? '';
}

/** The shell blocks of a section of the runbook. */
export function blocksOf(heading: string): string[] {
  const [, section = ''] = PAGE.split(`\n### ${heading}\n`);
  const [text = ''] = section.split('\n### ');
  return Array.from(text.matchAll(/^```sh\n(.*?)^```$/gms), ([, commands = '']) => commands);
}

/** Does what the runbook asks of kubectl, with the files and ports of local processes. */
const KUBECTL = `#!/usr/bin/env bash
shift 2 # -n NAMESPACE
verb=$1; shift
case "$verb" in
  logs) for pod in pods/*; do sed "s|^|[pod/\${pod##*/}/service] |" "$pod/log"; done ;;
  get) for pod in pods/*; do echo "pod/\${pod##*/}"; done ;;
  exec)
    [ "$1" = -i ] && shift
    pod=\${1##*/}; shift 2 # POD --
    if [ "$2" = -e ]; then node -e "\${3//http:\\/\\/localhost:3003\\/metrics/$(cat "pods/$pod/metrics-url")}"; else "$@"; fi ;;
esac
`;

/** A folder in which the commands of the runbook run. */
export class RunbookFolder {
  constructor(
    private readonly cwd: string,
    private readonly environment: Record<string, string>,
  ) {
    const bin = join(cwd, 'bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'kubectl'), KUBECTL);
    chmodSync(join(bin, 'kubectl'), 0o755);
  }

  /** Writes the logs of the processes. Without Kubernetes, the metrics are those of the first one. */
  write(processes: RunbookProcess[]): void {
    for (const [index, { log, metricsUrl }] of processes.entries()) {
      const pod = join(this.cwd, `pods/customer-authorization-${index}`);
      mkdirSync(pod, { recursive: true });
      writeFileSync(join(pod, 'log'), log);
      writeFileSync(join(pod, 'metrics-url'), metricsUrl);
    }
    writeFileSync(join(this.cwd, 'service.log'), processes.map(({ log }) => log).join(''));
    writeFileSync(join(this.cwd, 'metrics-url'), processes[0]?.metricsUrl ?? '');
  }

  /** Runs commands as a person does. Returns everything that they print. */
  async run(setting: Setting, commands: string): Promise<string> {
    const metricsUrl = readFileSync(join(this.cwd, 'metrics-url'), 'utf8');
    const functions = functionsOf(setting).replace('http://localhost:3001/metrics', metricsUrl);
    const env = { ...this.environment, PATH: `${join(this.cwd, 'bin')}:${process.env.PATH}` };
    const script = `${functions}\n${commands}`;
    const ended = promisify(execFile)('bash', ['--norc', '-uc', script], { cwd: this.cwd, env });
    const { stdout, stderr } = await ended.catch((error: { stdout: string; stderr: string }) => error);
    return stdout + stderr;
  }
}
