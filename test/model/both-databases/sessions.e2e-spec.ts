import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { IS_NIGHTLY } from '../../nightly.js';
import { runWalks } from '../run.js';

const ON_MARIADB = process.env.TEST_DATABASE === 'mariadb';
const NIGHTLY_STEPS = ON_MARIADB ? 5_000 : 20_000;
/** The rules are the same on MariaDB, where a step takes longer. */
const STEPS_BY_DAY = ON_MARIADB ? 200 : 500;
const { MODEL_STEPS = String(IS_NIGHTLY ? NIGHTLY_STEPS : STEPS_BY_DAY), MODEL_SEED = String(randomInt(2 ** 30)) } =
  process.env;
const TIMEOUT_MS = 3_600_000;
const print = (line: string) => void process.stdout.write(`${line}\n`);

/** Random walks reach all of these with so many steps. */
const MIN_STEPS = 5_000;
const REACHED = [
  ...['visit', 'transfer', 'transfer by an agent', 'refresh', 'retry', 'forget', 'end_sessions', 'erasure'],
  ...['redemption with remember: nothing', 'redemption with remember: refresh_token'],
  ...['redemption with remember: browser', 'redemption with remember: browser, replace'],
  ...['a known', 'a new'].flatMap((user) =>
    ['', ' with remember', ' with remember and link'].map((how) => `sign-in of ${user} user${how}`),
  ),
  ...['end_sessions with browsers', 'end_sessions by an agent', 'end_sessions by an agent with browsers'],
  ...['', 'ended ', 'expired '].flatMap((state) =>
    ['holder', 'client', 'operator'].map((caller) => `end of the ${state}token by the ${caller}`),
  ),
  ...['a', "an agent's"].map((owner) => `revocation of ${owner} refresh token by the operator`),
  ...['revocation of a refresh token by the client', 'end of a browser by the operator'],
  ...['customer', 'user', 'new customer'].map((customer) => `agent token grant for a ${customer}`),
  ...['refresh of an agent', 'retry of an agent', 'authorization code', 'redemption of an authorization code'],
  ...["end of an agent's token by the holder", 'new password of an agent', 'deletion of an agent'],
  ...['', 'ended ', 'expired '].map((state) => `end of an agent's ${state}token by the operator`),
].map((label) => `${label}: 200`);
const REJECTED = [
  ...['replay', 'reuse', 'replay of an authorization code', 'reuse of an agent', 'authorization code'].map(
    (label) => `${label}: 400`,
  ),
  ...['transfer: 429', 'redemption with remember: refresh_token: 429'],
];
const DEPTHS = [
  'token of an agent',
  'sign-in of an agent',
  'a chain of 4',
  'a chain of 8',
  'a browser with 3 customers',
  'purge',
];

it(
  'does in random walks what the model of protocol §3.9 to §3.13 and §5.6 does',
  async () => {
    const [steps, seed] = [Number(MODEL_STEPS), Number(MODEL_SEED)];
    print(`MODEL_SEED=${seed} MODEL_STEPS=${steps}`);
    const { statistics } = await runWalks({ steps, seed, progress: print });
    const lines = [...statistics].sort().map(([label, count]) => `${count} × ${label}`);
    if (steps >= MIN_STEPS) print(lines.join('\n'));
    if (steps >= MIN_STEPS)
      expect([...REACHED, ...REJECTED, ...DEPTHS].filter((label) => !statistics.has(label))).toEqual([]);
  },
  TIMEOUT_MS,
);
