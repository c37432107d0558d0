import { runCommandLine } from './operator/cli/run-command-line.js';

await runCommandLine();
