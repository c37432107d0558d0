import { KeyFile } from '../access-token/key-file.js';
import { rotated, stateOf, withoutKey } from '../access-token/key-rotation.js';
import { newKeySet, type PrivateKeySet } from '../access-token/key-set.js';
import { Clock } from '../platform/clock.js';
import { MAX_ACCESS_TOKEN_TTL_SECONDS } from '../platform/configuration/configuration.js';
import { type CommandContext, expectParameters, UsageError } from './command-context.js';

/** `keys generate`, `keys rotate FILE`, `keys list FILE`, `keys retire FILE KID`; none of them needs a database. */
export async function keysCommand([action, ...parameters]: string[], context: CommandContext): Promise<number> {
  const now = new Clock().seconds();
  const printKeys = (set: PrivateKeySet) => context.print(describeKeys(set, now));
  const [path = '', kid = ''] = parameters;
  switch (action) {
    case 'generate':
      expectParameters(parameters, 0);
      context.print(`${JSON.stringify(newKeySet(now), undefined, 2)}\n`);
      return 0;
    case 'rotate':
      expectParameters(parameters, 1);
      printKeys(new KeyFile(path).change((set) => rotated(set, now, MAX_ACCESS_TOKEN_TTL_SECONDS)));
      context.notify(verificationTime());
      return 0;
    case 'list':
      expectParameters(parameters, 1);
      printKeys(new KeyFile(path).read());
      return 0;
    case 'retire':
      expectParameters(parameters, 2);
      printKeys(new KeyFile(path).change((set) => withoutKey(set, kid, now)));
      return 0;
    default:
      throw new UsageError('keys: expected generate, rotate, list or retire');
  }
}

/** The longest possible lifetime, because this command does not know the lifetimes of the clients. */
function verificationTime(): string {
  const seconds = MAX_ACCESS_TOKEN_TTL_SECONDS;
  return `the old key verifies tokens for another ${seconds} s after the new key signs: no access token lives longer\n`;
}

function describeKeys({ keys }: PrivateKeySet, now: number): string {
  const lines = keys.map((key) => {
    const expires = key.exp === undefined ? 'never expires' : `expires ${iso(key.exp)}`;
    return `${key.kid} ${stateOf(key, keys, now)}, signs from ${iso(key.nbf)}, ${expires}\n`;
  });
  return lines.join('');
}

const iso = (seconds: number) => new Date(seconds * 1000).toISOString().replace('.000', '');
