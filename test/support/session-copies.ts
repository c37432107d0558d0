import { randomUUID } from 'node:crypto';
import type { Session } from '../../src/session/session.entity.js';
import type { TestService } from './test-service.js';
import { sessionsIn } from './transfers.js';

const INSERTED_TOGETHER_COUNT = 50;

/** Stores copies of a session without its keys, so that its customer reaches a bound without as many requests. */
export async function addCopies(service: TestService, session: Session, count: number): Promise<void> {
  const withoutKeys = { ...session, codeHash: null, refreshIdHash: null, browserId: null };
  const copies = Array.from({ length: count }, () => ({ ...withoutKeys, id: randomUUID() }));
  for (let at = 0; at < count; at += INSERTED_TOGETHER_COUNT)
    await sessionsIn(service).insert(copies.slice(at, at + INSERTED_TOGETHER_COUNT));
}
