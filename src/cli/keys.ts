import { KeyFile } from '../access-token/key-file.js';
import { rotated, stateOf, withoutKey } from '../access-token/key-rotation.js';
import { generateKey, type PrivateKeySet } from '../access-token/key-set.js';
import { Clock } from '../platform/clock.js';
import { MAX_ACCESS_TOKEN_TTL_SECONDS } from '../platform/configuration/configuration.js';
import type { CommandContext } from './command-context.js';
import { expectParameters, UsageError } from './usage-error.js';

/** `keys generate`, `keys rotate FILE`, `keys list FILE`, `keys retire FILE KID`; none of them needs a database. */
export async function keysCommand([action, ...parameters]: string[], context: CommandContext): Promise<number> {
  const print = (lines: string[]) => context.print(lines.map((line) => `${line}\n`).join(''));
  const now = new Clock().seconds();
  const [path = '', kid = ''] = parameters;
  switch (action) {
    case 'generate':
      expectParameters(parameters, 0);
      print([JSON.stringify({ keys: [generateKey(now)] }, undefined, 2)]);
      return 0;
    case 'rotate':
      expectParameters(parameters, 1);
      print(
        describeKeys(
          new KeyFile(path).change((set) => rotated(set, now, MAX_ACCESS_TOKEN_TTL_SECONDS)),
          now,
        ),
      );
      context.notify(verificationTime());
      return 0;
    case 'list':
      expectParameters(parameters, 1);
      print(describeKeys(new KeyFile(path).read(), now));
      return 0;
    case 'retire':
      expectParameters(parameters, 2);
      print(
        describeKeys(
          new KeyFile(path).change((set) => withoutKey(set, kid, now)),
          now,
        ),
      );
      return 0;
    default:
      throw new UsageError('keys: expected generate, rotate, list or retire');
  }
}

/** The longest possible lifetime, because this command does not know the lifetimes of the clients. */
function verificationTime(): string {
  const rule = 'no access token lives longer';
  const seconds = MAX_ACCESS_TOKEN_TTL_SECONDS;
  return `the old key verifies tokens for another ${seconds} s after the new key signs: ${rule}\n`;
}

function describeKeys({ keys }: PrivateKeySet, now: number): string[] {
  return keys.map((key) => {
    const expires = key.exp === undefined ? 'never expires' : `expires ${iso(key.exp)}`;
    return `${key.kid} ${stateOf(key, keys, now)}, signs from ${iso(key.nbf)}, ${expires}`;
  });
}

const iso = (seconds: number) => new Date(seconds * 1000).toISOString().replace('.000', '');
