import { describe, expect, it } from 'vitest';
import { cookieHeader, TestBrowser } from '../../support/cookie-grant.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { linksOf, moveOf, remember, rememberingRegistry } from '../../support/remember.js';
import { ACME, ACME_ORIGIN, ACME_SITE, PUBLIC_SITE, RIVAL } from '../../support/test-registry.js';
import { infoStatus } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const AT_RIVAL = { client_id: PUBLIC_SITE, organization_id: RIVAL };
const STEPS = ['the transfer', 'the exchange with remember', 'the visit of the second browser', 'forget'] as const;

const service = useService({ registry: rememberingRegistry() });

const forget = (cookie: string) =>
  service.post('/v2/customer/forget', { client_id: ACME_SITE, organization_id: ACME }, { cookie, origin: ACME_ORIGIN });

describe('protocol §5.8: the erasure of a customer that moves to a second browser', () => {
  it.each(STEPS.map((step, index) => [step, index] as const))(
    'after %s leaves no valid token, no link and no way back, and the other customers stay',
    async (_, erasedAfter) => {
      const first = new TestBrowser(service);
      const { entity_id, access_token } = (await first.visit()).body;
      const second = new TestBrowser(service);
      const ofRival = (await second.visit(AT_RIVAL)).body.entity_id;
      const tokens = [access_token];
      const eraseAfter = async (step: number) => {
        if (step === erasedAfter) expect((await service.erase(entity_id)).status).toBe(200);
      };

      const move = await moveOf(service, access_token);
      await eraseAfter(0);
      const moved = await remember(service, move, { cookie: second.cookie });
      if (erasedAfter === 0) {
        expectInvalidGrant(moved);
        expect(moved.cookies).toEqual([]);
      } else {
        expect(moved.body.entity_id).toBe(entity_id);
        tokens.push(moved.body.access_token);
      }
      await eraseAfter(1);
      const pair = moved.status === 200 ? cookieHeader(moved) : (second.cookie as string);
      const returning = await service.visit(pair);
      expect(returning.status).toBe(200);
      expect(returning.body.entity_id === entity_id).toBe(erasedAfter > 1);
      if (erasedAfter > 1) tokens.push(returning.body.access_token);
      await eraseAfter(2);
      expect((await forget(pair)).status).toBe(200);
      await eraseAfter(3);

      for (const token of tokens) expect(await infoStatus(service, token)).toBe(401);
      expect(await linksOf(service, entity_id)).toEqual([]);
      for (const cookie of [pair, first.cookie as string, second.cookie as string])
        expect((await service.visit(cookie)).body.entity_id).not.toBe(entity_id);
      expectInvalidGrant(await remember(service, move));
      expect((await service.visit(pair, AT_RIVAL)).body.entity_id).toBe(ofRival);
      expect((await service.visit(second.cookie as string, AT_RIVAL)).body.entity_id).toBe(ofRival);
    },
  );
});
