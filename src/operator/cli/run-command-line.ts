import { loadExtension } from '../../load-extension.js';
import { VERSION } from '../../platform/version.js';
import type { Extension } from '../../token/extension.js';
import { type CommandContext, processContext, UsageError } from './command-context.js';

type Command = (parameters: string[], context: CommandContext) => Promise<number>;

/** Loads a command when it is used: the modules of the application take longer to load than most commands to run. */
const COMMANDS: Record<string, () => Promise<Command>> = {
  'agent-token': async () => (await import('./agent-token.js')).agentTokenCommand,
  backup: async () => (await import('./database.js')).backupCommand,
  keys: async () => (await import('./keys.js')).keysCommand,
  migrate: async () => (await import('./database.js')).migrateCommand,
  purge: async () => (await import('./maintenance.js')).purgeCommand,
  start:
    async () =>
    async (_parameters, { extension }) => {
      await (await import('../../run-service.js')).runService(extension);
      return 0;
    },
  registry: async () => (await import('./registry.js')).registryCommand,
  'revocation-feed': async () => (await import('./maintenance.js')).revocationFeedCommand,
  token: async () => (await import('./token.js')).tokenCommand,
};

const HELP_OPTIONS = new Set(['--help', '-h']);

const USAGE = `usage: node dist/cli.js COMMAND

  start                serve until SIGTERM or SIGINT
  migrate              run the pending migrations of the database
  migrate --check      exit with 1 if migrations are pending
  registry apply FILE  create and change the entries of a registry file
  registry apply --prune FILE
                       also delete clients, agents and resource servers of an earlier file
  registry apply --dry-run FILE
                       print what would change, and exit with 2 if something would
  registry check FILE  check a registry file without a database
  registry export      print the registry as YAML, without secrets
  purge                delete expired rows, idle customers and idle browsers, in small batches
  revocation-feed restart
                       let each consumer of the revocation feed read the full list again, after a restore
  backup FILE          copy the embedded database to a new file, also while the service runs
  keys generate        print a private JWK Set for SIGNING_KEYS_FILE
  keys rotate          print the set on standard input with a key that signs in 15 minutes, and an expiry of the others
  keys list            print the state and the expiry of each key of the set on standard input
  keys retire KID      print the set on standard input without a key, which ends its tokens
  agent-token --email E --client-id C --scope "S …"
                       print an agent access token
  token explain        print as JSON what the token on standard input is, whether it is valid, and why not
  --version            print the version of the service
  --help               print this text
`;

/**
 * Runs one of the operator's commands, by default with the extension that EXTENSION names. Reads `process.argv`. Sets
 * the exit code 0 for success or 2 for a wrong command line, and ends the process with 1 if the command failed (protocol
 * §9.3).
 */
export async function runCommandLine(extension?: Extension): Promise<void> {
  process.umask(0o077); // new files and folders are for the user of the process only
  const [name = '', ...parameters] = process.argv.slice(2);
  if (name === 'help' || process.argv.some((argument) => HELP_OPTIONS.has(argument))) process.stdout.write(USAGE);
  else if (name === '--version') process.stdout.write(`${VERSION}\n`);
  else process.exitCode = await run(name, parameters, extension);
}

/** @throws UsageError if the command line is wrong, Error if the command failed */
export async function runCommand(name: string, parameters: string[], context: CommandContext): Promise<number> {
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!load) throw new UsageError(name ? `unknown command: ${name}` : 'a command is required');
  const command = await load();
  return command(parameters, context);
}

async function run(name: string, parameters: string[], extension: Extension | undefined): Promise<number> {
  try {
    return await runCommand(name, parameters, processContext(extension ?? (await loadExtension())));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    // an application that did not start leaves its connections open, which would keep the process alive
    if (!(error instanceof UsageError)) process.exit(1);
    process.stderr.write(USAGE);
    return 2;
  }
}
