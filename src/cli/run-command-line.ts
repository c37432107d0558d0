import type { Extension } from '../extension.js';
import { agentTokenCommand } from './agent-token.js';
import { type CommandContext, processContext } from './command-context.js';
import { keysCommand } from './keys.js';
import { migrateCommand } from './migrate.js';
import { purgeCommand } from './purge.js';
import { registryCommand } from './registry.js';
import { UsageError } from './usage-error.js';

/** Each command gets its arguments and resolves to its exit code. Stdout is for its result alone. */
const COMMANDS: Record<string, (parameters: string[], context: CommandContext) => Promise<number>> = {
  'agent-token': agentTokenCommand,
  keys: keysCommand,
  migrate: migrateCommand,
  purge: purgeCommand,
  registry: registryCommand,
};

const USAGE = `usage: node dist/cli.js COMMAND

  migrate              bring the database's schema up to date
  migrate --check      exit 1 when migrations are pending
  registry apply FILE  create and change what a registry file lists, unless a newer file has replaced it
  registry apply --force FILE
                       the same, even if a newer file has replaced it
  registry export      print the registry as YAML, without secrets
  purge                delete what has expired, in small batches
  keys generate        print a private JWK Set for SIGNING_KEYS_FILE
  keys rotate FILE     add a key that signs in 15 minutes; the others expire with the last token they sign
  keys list FILE       what each key is for, and until when
  keys retire FILE KID take a key out, which ends its tokens
  agent-token --email E --client-id C --scope "S …"
                       print one agent access token
`;

/**
 * Runs one of the operator's commands, with the extension of another team. Reads `process.argv` and sets the exit code:
 * 0 for success, 1 if the command failed, 2 if the command line is wrong (protocol §9.3).
 */
export async function runCommandLine(extension: Extension = {}): Promise<void> {
  const [name = '', ...parameters] = process.argv.slice(2);
  process.exitCode = await run(name, parameters, extension);
}

/**
 * Runs one command and returns its exit code.
 *
 * @throws UsageError if the command line is wrong
 * @throws Error if the command failed
 */
export function runCommand(name: string, parameters: string[], context: CommandContext): Promise<number> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new UsageError(name ? `no such command: ${name}` : 'which command?');
  return command(parameters, context);
}

async function run(name: string, parameters: string[], extension: Extension): Promise<number> {
  try {
    return await runCommand(name, parameters, processContext(extension));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    if (!(error instanceof UsageError)) return 1;
    process.stderr.write(USAGE);
    return 2;
  }
}
