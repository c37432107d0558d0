import type { ModuleRef } from '@nestjs/core';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CustomerDataParticipants } from '../../src/identity/customer-data-participants.js';
import { CustomerErasure } from '../../src/identity/customer-erasure.js';
import { ExtensionHooks } from '../../src/identity/extension-hooks.js';

const MINUTE_MS = 60_000;
/** Also for what runs right after a timer. */
const MARGIN_MS = 1_000;

const SLOW = { message: 'HangingParticipant did not respond in time' };

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A participant whose store accepts connections and never responds. */
class HangingParticipant {
  readonly onErase = vi.fn(() => new Promise<void>(() => undefined));
  readonly mustRetain = () => new Promise<string[]>(() => undefined);
}

function participantsWith(participant: HangingParticipant): CustomerDataParticipants {
  const hooks = Object.assign(new ExtensionHooks(), { participants: [HangingParticipant] });
  return new CustomerDataParticipants(hooks, { get: () => participant } as unknown as ModuleRef);
}

/** Resolves to the error of `work`; `undefined` if it has not ended after the minutes. */
async function errorWithin(minutes: number, work: Promise<unknown>): Promise<unknown> {
  let thrown: unknown;
  work.catch((error) => {
    thrown = error;
  });
  await vi.advanceTimersByTimeAsync(minutes * MINUTE_MS + MARGIN_MS);
  return thrown;
}

it('an extension that never says which customers it retains ends the purge of customers after a minute', async () => {
  const retained = participantsWith(new HangingParticipant()).mustRetain(['customer']);
  expect(await errorWithin(1, retained)).toMatchObject(SLOW);
});

it('a purge tries no further customer after three that an extension did not erase within a minute each', async () => {
  const participant = new HangingParticipant();
  const unused = undefined as never;
  const customers = { deleteErased: async () => undefined } as never;
  const erasure = new CustomerErasure(unused, customers, unused, unused, unused, participantsWith(participant));
  const finished = erasure.finishErasures(Array.from({ length: 100 }, (_, index) => `customer ${index}`));
  expect(await errorWithin(3, finished)).toMatchObject(SLOW);
  expect(participant.onErase).toHaveBeenCalledTimes(3);
});
