import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import { CUSTOMERS_OWN } from '../../src/http/callers/principal.js';
import {
  CustomerService,
  defineExtension,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
} from '../../src/public/grant.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { atNextTransaction, LOST_RESPONSE } from '../support/dying-transactions.js';
import { expectError, expectInvalidRequest } from '../support/expect-error.js';
import { identitiesOf } from '../support/identities.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { ACME, ACME_SITE, PUBLIC_SITE, RIVAL, SHARED } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { useService } from '../support/use-service.js';

class CaseBody extends GrantBody {}

type Case = (customerService: CustomerService, groupId: string) => Promise<Pick<GrantResult, 'entityId' | 'groupId'>>;
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

const output = new OutputCapture();
const service = useService({ ...defineExtension({ grants: [GroupCaseGrant, AgentGroupCaseGrant] }), log: output.log });

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

  it('is that of a further customer of a browser whose COMMIT gets no response: a repeated request finds it', async () => {
    const cookie = cookieHeader(await service.visit());
    atNextTransaction(service, 'after', () => Promise.reject(LOST_RESPONSE));
    const send = () => service.visit(cookie, {}, groupPath(ACME));
    const before = await identitiesOf(service).count();
    expect((await send()).status).toBe(503);
    expect(await identitiesOf(service).count()).toBe(before + 1);
    const { status, body } = await send();
    expect({ status, group: groupOf(body.access_token) }).toEqual({ status: 200, group: 'sales' });
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
