import { Module } from '@nestjs/common';
import { decodeJwt } from 'jose';
import { describe, expect, it, vi } from 'vitest';
import { OutputCapture } from '../../../packages/conformance-kit/src/output-capture.js';
import { CUSTOMERS_OWN } from '../../../src/http/callers/principal.js';
import { Database } from '../../../src/platform/database/database.js';
import { type Customer, CustomerService, IdentityModule, uuidv7 } from '../../../src/public/grant.js';
import { type Grant, GrantBody, type GrantRequest, type GrantResult, GrantType } from '../../../src/token/grant.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { atNextTransaction, LOST_RESPONSE } from '../../support/dying-transactions.js';
import { expectError, expectInvalidRequest } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { delaySelects } from '../../support/statements.js';
import { ACME, ACME_SITE, PUBLIC_SITE, RIVAL, SHARED } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

class CaseBody extends GrantBody {}

type Case = (customerService: CustomerService, groupId: string) => Promise<Pick<GrantResult, 'entityId' | 'groupId'>>;
const storedId = uuidv7(Date.now());
/** What the grant does with the group of the request. */
let grantCase: Case;

/** Takes the organization from the path alone: its body declares none. */
@GrantType('group_case', { body: CaseBody, groups: true })
class GroupCaseGrant implements Grant<CaseBody> {
  constructor(private readonly customerService: CustomerService) {}

  async grant({ groupId }: Pick<GrantRequest, 'groupId'>): Promise<GrantResult> {
    return { organizationId: ACME, generation: 0, ...(await grantCase(this.customerService, groupId)) };
  }
}

@GrantType('group_case_of_agent', { body: CaseBody, groups: true, agentScope: CUSTOMERS_OWN })
class AgentGroupCaseGrant extends GroupCaseGrant {}

@Module({ imports: [IdentityModule], providers: [GroupCaseGrant, AgentGroupCaseGrant] })
class GroupCaseModule {}

const output = new OutputCapture();
const service = useService({ modules: [GroupCaseModule], log: output.log });

const BODY = { grant_type: 'group_case', client_id: ACME_SITE };
const groupPath = (organization: string) => `/v2/customer/${organization}/sales/token`;
const request = (group: string, next: Case) => {
  grantCase = next;
  return service.post(group === '' ? TOKEN : `/v2/customer/${ACME}/${group}/token`, BODY);
};
const groupOf = (token: string) => decodeJwt(token.split(':').at(-1) as string).group_id;
const ofSales = (customerService: CustomerService) =>
  customerService.create({ organizationId: ACME, groupId: 'sales' });

function expectServerError(response: TestResponse, solution: string): void {
  expectError(response, { status: 500, error: 'server_error', hint: undefined });
  expect(output.about(response.headers.get('x-request-id') ?? '').join()).toContain(solution);
}

describe('the group of the customer that a grant returns', () => {
  it.each(['sales', ''])('is that of its row, on the path of the group %j', async (group) => {
    const { status, body } = await request(group, ofSales);
    expect({ status, group: groupOf(body.access_token) }).toEqual({ status: 200, group: 'sales' });
  });

  it('is that of a customer with a stored id, in parallel and in a later request', async () => {
    const find: Case = async (customerService, groupId) => {
      const customer = await customerService.createIfAbsent(storedId, { organizationId: ACME, groupId });
      return customer ?? { entityId: 'erased', groupId };
    };
    const responses = await Promise.all([request('sales', find), request('sales', find), request('sales', find)]);
    const customers = [...responses, await request('sales', find)].map(({ body }) => body);
    expect(customers.map(({ entity_id }) => entity_id)).toEqual(Array(4).fill(storedId));
    expect(customers.map(({ access_token }) => groupOf(access_token))).toEqual(Array(4).fill('sales'));
    expectServerError(await request('support', find), 'store one id for each group');
  });

  it('counts once against the limit identities if parallel requests create the customer of one stored id', async () => {
    const environment = { RATE_LIMIT: 'identities=3/60' };
    const limited = await serviceOfTest({ modules: [GroupCaseModule], environment });
    beginWindow(limited);
    delaySelects(limited);
    const statuses = async (...ids: string[]) => {
      grantCase = async (customerService, groupId) =>
        (await customerService.createIfAbsent(ids.shift() as string, { organizationId: ACME, groupId })) as Customer;
      return (await Promise.all(ids.map(() => limited.post(groupPath(ACME), BODY)))).map(({ status }) => status);
    };
    const id = uuidv7(Date.now());
    expect(await statuses(id, id, id)).toEqual([200, 200, 200]);
    expect(await statuses(uuidv7(Date.now()), uuidv7(Date.now()))).toEqual([200, 200]);
    expect(await statuses(uuidv7(Date.now()))).toEqual([429]);
  });

  it.each<[string, () => Promise<() => Promise<TestResponse>>]>([
    [
      'the INSERT of a customer with a stored id',
      async () => {
        const database = service.application.get(Database);
        const execute = database.execute.bind(database);
        vi.spyOn(database, 'execute').mockImplementationOnce(async (...write) => {
          await execute(...write);
          throw LOST_RESPONSE;
        });
        const id = uuidv7(Date.now());
        return () =>
          request('sales', async (customerService, groupId) => {
            const customer = await customerService.createIfAbsent(id, { organizationId: ACME, groupId });
            return customer as Customer;
          });
      },
    ],
    [
      'the COMMIT of a further customer of a browser',
      async () => {
        const cookie = cookieHeader(await service.visit());
        atNextTransaction(service, 'after', () => Promise.reject(LOST_RESPONSE));
        return () => service.visit(cookie, {}, groupPath(ACME));
      },
    ],
  ])('exists after a 503 because the response to %s is lost, and a repeated request finds it', async (_, prepare) => {
    const send = await prepare();
    const before = await identitiesOf(service).count();
    expect((await send()).status).toBe(503);
    expect(await identitiesOf(service).count()).toBe(before + 1);
    expect((await send()).status).toBe(200);
    expect(await identitiesOf(service).count()).toBe(before + 1);
  });

  const wrongGroup = 'return groupId of the Customer';
  const otherGroup = 'find or create it in the group `groupId` of the request';
  const withoutGroup: Case = async (customerService) => ({ ...(await ofSales(customerService)), groupId: '' });
  const ofNoGroup = (customerService: CustomerService) => customerService.create(ACME);
  const withSession: Case = async (customerService, groupId) => ({
    ...(await withoutGroup(customerService, groupId)),
    session: { gen: 0, sid: 'session', ep: 0 },
  });

  it.each<[string, string, Case, string]>([
    [
      'a new customer without a group',
      'sales',
      async (customerService, groupId) => ({ ...(await ofNoGroup(customerService)), groupId }),
      wrongGroup,
    ],
    ['a customer of a group, without its group', 'sales', withoutGroup, wrongGroup],
    ['a customer of a group, without its group, on the path without a group', '', withoutGroup, wrongGroup],
    ['a customer with a session, without its group', '', withSession, wrongGroup],
    ['a customer of another group', 'support', ofSales, otherGroup],
    ['a customer without a group, on the path of a group', 'sales', ofNoGroup, otherGroup],
  ])('is rejected with 500 and a log line that says what to do, for %s', async (_case, group, next, solution) => {
    expectServerError(await request(group, next), solution);
  });
});

describe('the token route of a group, for a grant whose body declares no organization_id', () => {
  it('rejects an organization whose groups share one identity', async () => {
    const response = await service.post(groupPath(SHARED), { ...BODY, client_id: PUBLIC_SITE });
    const hint = 'group_id: the groups of this organization share one identity';
    expectError(response, { status: 400, error: 'unauthorized_client', hint });
  });

  it('rejects an agent of another organization than that of the path', async () => {
    const body = { grant_type: 'group_case_of_agent', client_id: PUBLIC_SITE };
    const response = await service.post(groupPath(RIVAL), body, bearer(await issueAgentToken(service)));
    expectInvalidRequest(response, 'organization_id: must be the organization of the agent');
  });
});
