import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { useService } from '../../support/use-service.js';

describe("an operator's change that takes longer than 10 s", () => {
  const service = useService();

  it('gets 503, and is carried out and audited as soon as the database responds', async () => {
    const database = service.application.get(Database);
    let respond: () => void = () => undefined;
    const responded = new Promise<void>((resolve) => {
      respond = resolve;
    });
    const transaction = database.transaction.bind(database);
    vi.spyOn(database, 'transaction').mockImplementationOnce(async (work) => {
      const result = await transaction(work);
      await responded;
      return result;
    });
    const entry = { id: '0d1b9f4e-6a52-4a0e-9a56-1f1f3c0a7d11', name: 'Late' };
    const response = await service.admin('POST', '/admin/organizations', entry);
    expect(response.status).toBe(503);
    const changes = () =>
      service.audit.filter(({ event, actor }) => event === 'registry.changed' && actor.kind === 'operator');
    expect(changes()).toEqual([]);
    respond();
    while (changes().length === 0) await sleep(10);
    expect(changes()).toMatchObject([{ outcome: 'success', subject: { kind: 'organization' } }]);
  });
});
