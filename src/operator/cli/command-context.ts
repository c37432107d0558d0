import type { INestApplicationContext } from '@nestjs/common';
import type { Extension } from '../../token/extension.js';
import type { CommandOptions } from './application.js';

/** The environment of a command. A test replaces it to run commands inside a service that is running already. */
export interface CommandContext {
  extension: Extension;
  withApplication<Result>(
    work: (application: INestApplicationContext) => Promise<Result>,
    options?: CommandOptions,
  ): Promise<Result>;
  /** Reads standard input to its end, or at least `maxBytes` of it. */
  readInput(maxBytes: number): Promise<string>;
  /** Standard output (stdout) contains only the result (protocol §9.3). The log and errors go to stderr. */
  print(text: string): void;
  notify(text: string): void;
}

export function processContext(extension: Extension): CommandContext {
  return {
    extension,
    withApplication: async (work, options) => {
      const { withApplication } = await import('./application.js');
      return withApplication(extension, work, options);
    },
    readInput: readStandardInput,
    print: (text) => void process.stdout.write(text),
    notify: (text) => void process.stderr.write(text),
  };
}

async function readStandardInput(maxBytes: number): Promise<string> {
  const { stdin } = process;
  if (stdin.isTTY) process.stderr.write('paste the text, then press Enter and Ctrl-D\n');
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= maxBytes) break;
  }
  return Buffer.concat(chunks).toString();
}

/** The command line is wrong. The exit code is 2. */
export class UsageError extends Error {}

export function expectParameters(parameters: string[], count: number): void {
  if (parameters.length !== count)
    throw new UsageError(`expected ${count} parameters after the command, got ${parameters.length}`);
}
