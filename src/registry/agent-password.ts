import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { BoundedQueue } from '../platform/bounded-queue.js';
import { loadWhenUsed } from '../platform/load-when-used.js';

const argon2 = () => loadWhenUsed<typeof import('@node-rs/argon2')>('@node-rs/argon2');

/** The OWASP minimum for argon2id: 19 MiB, 2 passes. One hash takes about 20 ms of one core. */
const ARGON2ID_COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** The threads of libuv's pool, which compute the hashes. */
const POOL_THREAD_COUNT = 4;

/** The maximum of each queue leaves a processor to the thread that serves requests. The operator's hashes are rare. */
export const MAX_PARALLEL_HASHES = Math.min(POOL_THREAD_COUNT, Math.max(1, availableParallelism() - 1));

/** Unbounded, so that a flood of sign-ins, which has a queue of its own, cannot make a registry file fail. */
const OPERATOR_QUEUE = new BoundedQueue({ maxRunning: MAX_PARALLEL_HASHES, maxWaiting: Number.POSITIVE_INFINITY });

/** A sign-in with an unknown email, or of an agent without a password, is compared with it, and takes as long as another. */
export const UNKNOWN_EMAIL_HASH = randomHash();

/** Keyboards compose letters such as ü in different ways. The forms of one password are one password (RFC 8265 §4.2). */
const normalized = (password: string) => password.normalize('NFC');

export function hashPassword(password: string): Promise<string> {
  const { Algorithm, hash } = argon2();
  return OPERATOR_QUEUE.run(() => hash(normalized(password), { algorithm: Algorithm.Argon2id, ...ARGON2ID_COST }));
}

/** @throws QueueFullError, AbandonedTaskError of the queue */
export function isPasswordOf(
  passwordHash: string,
  password: string,
  queue: BoundedQueue = OPERATOR_QUEUE,
  abandoned?: AbortSignal,
): Promise<boolean> {
  return queue.run(() => argon2().verify(passwordHash, normalized(password)), abandoned);
}

export async function slowHash(text: string, salt: Buffer): Promise<string> {
  const { Algorithm, hashRaw } = argon2();
  const options = { algorithm: Algorithm.Argon2id, ...ARGON2ID_COST, salt, outputLen: 32 };
  return (await OPERATOR_QUEUE.run(() => hashRaw(text, options))).toString('hex');
}

/** A hash in PHC string format that no password matches. */
function randomHash(): string {
  const { memoryCost, timeCost, parallelism } = ARGON2ID_COST;
  const [salt, hash] = [16, 32].map((bytes) => randomBytes(bytes).toString('base64').replace(/=+$/, ''));
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${salt}$${hash}`;
}
