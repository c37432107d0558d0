import type { INestApplicationContext } from '@nestjs/common';
import type { Extension } from '../extension.js';
import { withApplication } from './application.js';

/** The environment of a command. A test replaces it to run commands inside a service that is running already. */
export interface CommandContext {
  extension: Extension;
  withApplication<Result>(work: (application: INestApplicationContext) => Promise<Result>): Promise<Result>;
  /** Writes the command's result. Standard output (stdout) contains nothing else (protocol §9.3). */
  print(text: string): void;
}

/** The context of a command that runs as a process: it starts the application, and writes the result to stdout. */
export function processContext(extension: Extension): CommandContext {
  return {
    extension,
    withApplication: (work) => withApplication(extension, work),
    print: (text) => void process.stdout.write(text),
  };
}
