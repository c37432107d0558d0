import type { INestApplicationContext } from '@nestjs/common';
import type { Extension } from '../extension.js';
import { withApplication } from './application.js';

/** What a command works with. A test runs commands inside a service that runs already. */
export interface CommandContext {
  extension: Extension;
  withApplication<Result>(work: (application: INestApplicationContext) => Promise<Result>): Promise<Result>;
  /** Writes the command's result, which has stdout to itself. */
  print(text: string): void;
}

/** The context of a process of its own: the application is started for the command, and stdout gets the result. */
export function processContext(extension: Extension): CommandContext {
  return {
    extension,
    withApplication: (work) => withApplication(extension, work),
    print: (text) => void process.stdout.write(text),
  };
}
