import { Module } from '@nestjs/common';
import { decodeJwt } from 'jose';
import { describe, expect, it, vi } from 'vitest';
import { OutputCapture } from '../../../packages/conformance-kit/src/output-capture.js';
import {
  type Customer,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  Identities,
  IdentityModule,
  uuidv7,
} from '../../../src/public/grant.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { expectError } from '../../support/expect-error.js';
import { beginWindow } from '../../support/limit-windows.js';
import { delaySelects } from '../../support/statements.js';
import { ACME, ACME_SITE } from '../../support/test-registry.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

class CaseBody extends GrantBody {}

type Case = (identities: Identities, groupId: string) => Promise<Pick<GrantResult, 'entityId' | 'groupId' | 'lineage'>>;
const storedId = uuidv7(Date.now());
/** What the grant does with the group of the request. */
let grantCase: Case;

@GrantType('group_case', { body: CaseBody, groups: true })
class GroupCaseGrant implements Grant<CaseBody> {
  constructor(private readonly identities: Identities) {}

  async grant({ groupId }: GrantRequest<CaseBody>): Promise<GrantResult> {
    return { organizationId: ACME, generation: 0, ...(await grantCase(this.identities, groupId)) };
  }
}

@Module({ imports: [IdentityModule], providers: [GroupCaseGrant] })
class GroupCaseModule {}

describe('the group of the customer that a grant returns', () => {
  const output = new OutputCapture();
  const service = useService({ modules: [GroupCaseModule], log: output.log });

  const request = (group: string, next: Case) => {
    grantCase = next;
    const body = { grant_type: 'group_case', client_id: ACME_SITE };
    return service.post(group === '' ? TOKEN : `/v2/customer/${ACME}/${group}/token`, body);
  };
  const groupOf = (token: string) => decodeJwt(token.split(':').at(-1) as string).group_id;

  it('is that of a customer that the grant created in the group', async () => {
    const { status, body } = await request('sales', (identities, groupId) =>
      identities.create({ organizationId: ACME, groupId }),
    );
    expect({ status, group: groupOf(body.access_token) }).toEqual({ status: 200, group: 'sales' });
  });

  it('is that of a customer with a stored id, in parallel and in a later request', async () => {
    const find: Case = async (identities, groupId) => {
      const customer = await identities.createIfAbsent(storedId, { organizationId: ACME, groupId });
      return customer ?? { entityId: 'erased', groupId };
    };
    const responses = await Promise.all([request('sales', find), request('sales', find), request('sales', find)]);
    const customers = [...responses, await request('sales', find)].map(({ body }) => body);
    expect(customers.map(({ entity_id }) => entity_id)).toEqual(Array(4).fill(storedId));
    expect(customers.map(({ access_token }) => groupOf(access_token))).toEqual(Array(4).fill('sales'));
    const other = await request('support', find);
    expectError(other, { status: 500, error: 'server_error', hint: undefined });
    expect(output.about(other.headers.get('x-request-id') ?? '').join()).toContain('store one id for each group');
  });

  it('counts once against the limit identities if parallel requests create the customer of one stored id', async () => {
    const limited = await serviceOfTest({
      modules: [GroupCaseModule],
      environment: { RATE_LIMIT: 'identities=3/60' },
    });
    beginWindow(limited);
    delaySelects(limited);
    const statuses = async (...ids: string[]) => {
      grantCase = async (identities, groupId) =>
        (await identities.createIfAbsent(ids.shift() as string, { organizationId: ACME, groupId })) as Customer;
      const body = { grant_type: 'group_case', client_id: ACME_SITE };
      const send = () => limited.post(`/v2/customer/${ACME}/sales/token`, body);
      return (await Promise.all(ids.map(send))).map(({ status }) => status);
    };
    const id = uuidv7(Date.now());
    expect(await statuses(id, id, id)).toEqual([200, 200, 200]);
    expect(await statuses(uuidv7(Date.now()), uuidv7(Date.now()))).toEqual([200, 200]);
    expect(await statuses(uuidv7(Date.now()))).toEqual([429]);
    vi.restoreAllMocks();
  });

  const ofSales = (identities: Identities) => identities.create({ organizationId: ACME, groupId: 'sales' });
  const wrongGroup = 'return groupId of the Customer';

  it.each<[string, string, Case, string]>([
    [
      'a new customer without a group',
      'sales',
      async (identities, groupId) => ({ ...(await identities.create(ACME)), groupId }),
      wrongGroup,
    ],
    [
      'a customer of a group, without its group',
      'sales',
      async (identities) => ({ ...(await ofSales(identities)), groupId: '' }),
      wrongGroup,
    ],
    [
      'a customer of a group, without its group, on the path without a group',
      '',
      async (identities) => ({ ...(await ofSales(identities)), groupId: '' }),
      wrongGroup,
    ],
    [
      'a customer with a lineage, without its group',
      '',
      async (identities) => ({ ...(await ofSales(identities)), groupId: '', lineage: { gen: 0 } }),
      wrongGroup,
    ],
    [
      'a customer that the grant did not look up',
      'sales',
      async (_, groupId) => ({ entityId: uuidv7(Date.now()), groupId }),
      wrongGroup,
    ],
    ['a customer of another group', 'support', ofSales, 'find or create it in the group `groupId` of the request'],
    [
      'a customer without a group, on the path of a group',
      'sales',
      (identities) => identities.create(ACME),
      'find or create it in the group `groupId` of the request',
    ],
  ])('is rejected with 500 and a log line that says what to do, for %s', async (_case, group, next, solution) => {
    const response = await request(group, next);
    expectError(response, { status: 500, error: 'server_error', hint: undefined });
    expect(output.about(response.headers.get('x-request-id') ?? '').join()).toContain(solution);
  });

  it('is that of the row on the path without a group too', async () => {
    const { status, body } = await request('', ofSales);
    expect({ status, group: groupOf(body.access_token) }).toEqual({ status: 200, group: 'sales' });
  });
});
