import { rotated, stateOf, withoutKey } from '../../access-token/key-rotation.js';
import { newKeySet, type PrivateKeySet, readKeySet } from '../../access-token/key-set.js';
import { Clock } from '../../platform/clock.js';
import { MAX_ACCESS_TOKEN_TTL_SECONDS } from '../../platform/configuration/configuration.js';
import { withoutByteOrderMark } from '../../platform/validation/text-rules.js';
import { type CommandContext, expectParameters, UsageError } from './command-context.js';

/** More than 1,000 keys. */
const MAX_INPUT_BYTES = 1_048_576;

/**
 * Read a key set from standard input and print a key set, or the state of its keys. None needs a database or a file.
 */
export async function keysCommand([action, ...parameters]: string[], context: CommandContext): Promise<number> {
  const now = new Clock().seconds();
  if (!['generate', 'rotate', 'list', 'retire'].includes(action ?? ''))
    throw new UsageError('keys: expected generate, rotate, list or retire');
  expectParameters(parameters, action === 'retire' ? 1 : 0);
  if (action === 'generate') return printSet(newKeySet(now), context);
  const set = readSet(await context.readInput(MAX_INPUT_BYTES));
  if (action === 'list') {
    context.print(describeKeys(set, now));
    return 0;
  }
  const [kid = ''] = parameters;
  const changed = action === 'rotate' ? rotated(set, now, MAX_ACCESS_TOKEN_TTL_SECONDS) : withoutKey(set, kid, now);
  context.notify(describeKeys(changed, now));
  return printSet(changed, context);
}

function printSet(set: PrivateKeySet, context: CommandContext): number {
  context.print(`${JSON.stringify(set, undefined, 2)}\n`);
  return 0;
}

/** @throws Error that names the invalid key and the rule, without a value */
function readSet(text: string): PrivateKeySet {
  try {
    readKeySet(text);
  } catch (error) {
    throw new Error(`standard input: ${(error as Error).message}`);
  }
  const { keys }: PrivateKeySet = JSON.parse(withoutByteOrderMark(text));
  return { keys: keys.map((key) => ({ ...key, nbf: key.nbf ?? 0 })) };
}

function describeKeys({ keys }: PrivateKeySet, now: number): string {
  const lines = keys.map((key) => {
    const expires = key.exp === undefined ? 'never expires' : `expires ${iso(key.exp)}`;
    return `${key.kid} ${stateOf(key, keys, now)}, signs from ${iso(key.nbf)}, ${expires}\n`;
  });
  return lines.join('');
}

const iso = (seconds: number) => new Date(seconds * 1000).toISOString().replace('.000', '');
