import { ServiceUnavailableException } from '@nestjs/common';
import { IsString } from 'class-validator';
import { describe, expect, it, vi } from 'vitest';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import { CUSTOMERS_OWN } from '../../src/http/callers/principal.js';
import { CustomerDataParticipants } from '../../src/identity/customer-data-participants.js';
import {
  type Customer,
  CustomerService,
  defineExtension,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  Optional,
} from '../../src/public/grant.js';
import { claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectError, expectInvalidGrant } from '../support/expect-error.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { ProofController } from '../support/proof-controller.js';
import { ACME, AT_RIVAL, PUBLIC_SITE, RIVAL, UNKNOWN_CUSTOMER } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { infoStatus } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

class CaseBody extends GrantBody {
  @Optional()
  @IsString()
  override organization_id?: string;
}

type Result = Omit<Partial<GrantResult>, 'entityId'> & { entityId?: unknown };
/** What the grant of the next request returns, from a customer of ACME. */
let resultOf: (customer: Customer) => Result;

@GrantType('case', { body: CaseBody })
class CaseGrant implements Grant<CaseBody> {
  constructor(private readonly customers: CustomerService) {}

  async grant({ groupId = '' }: Pick<GrantRequest, 'groupId'>): Promise<GrantResult> {
    return resultOf(await this.customers.create({ organizationId: ACME, groupId })) as GrantResult;
  }
}

@GrantType('case_with_proof', { body: CaseBody, endsWith: 'caller' })
class ProofCaseGrant extends CaseGrant {}

@GrantType('case_of_agent', { body: CaseBody, agentScope: CUSTOMERS_OWN })
class AgentCaseGrant extends CaseGrant {}

@GrantType('case_of_group', { body: CaseBody, groups: true })
class GroupCaseGrant extends CaseGrant {}

// an author who writes JavaScript can declare the option, which the declarations omit
@GrantType('case_that_claims_to_read', { body: CaseBody, ...{ readsCustomers: true } })
class ReadingCaseGrant extends CaseGrant {}

const extension = defineExtension({
  grants: [CaseGrant, ProofCaseGrant, AgentCaseGrant, GroupCaseGrant, ReadingCaseGrant],
  controllers: [ProofController],
});

const OTHER_ORGANIZATION = /is no customer of the organization of the result/;
const OTHER_THAN_REQUESTED = /another organization than the requested one/;

describe('the customer that a grant returns', () => {
  const output = new OutputCapture();
  const service = useService(() => ({ ...extension, log: output.log }));

  const send = async (grantType: string, result: typeof resultOf, body: object = {}, path = TOKEN) => {
    resultOf = result;
    const headers = grantType === 'case_of_agent' ? bearer(await issueAgentToken(service)) : {};
    return service.post(path, { grant_type: grantType, client_id: PUBLIC_SITE, ...body }, headers);
  };
  const inGroup = (result: typeof resultOf) => send('case_of_group', result, {}, `/v2/customer/${ACME}/sales/token`);

  function expectServerError(response: TestResponse, reason: RegExp): void {
    expectError(response, { status: 500, error: 'server_error', hint: undefined });
    expect(output.about(response.headers.get('x-request-id') ?? '').join()).toMatch(reason);
  }

  it('gets a token if its organization is that of its row', async () => {
    const { status, body } = await send('case', (customer) => customer);
    expect([status, body.token_type]).toEqual([200, 'Bearer']);
  });

  it('gets a token without a session, which ends alone', async () => {
    const token: string = (await send('case', (customer) => customer)).body.access_token;
    for (const claim of ['sid', 'ep', 'act']) expect(claimsOf(token)).not.toHaveProperty(claim);
    expect(await infoStatus(service, token)).toBe(200);
    expect((await service.send('DELETE', TOKEN, bearer(token))).status).toBe(200);
    expect(await infoStatus(service, token)).toBe(401);
  });

  it.each(['case', 'case_that_claims_to_read'])(
    'gets no token for another organization: 500 from the grant %s, and the log says why',
    async (grantType) => {
      expectServerError(
        await send(grantType, (customer) => ({ ...customer, organizationId: RIVAL })),
        OTHER_ORGANIZATION,
      );
    },
  );

  it.each<[result: string, of: (customer: Customer) => Result]>([
    ['with an id that does not exist', (customer) => ({ ...customer, entityId: UNKNOWN_CUSTOMER })],
    ['with an empty id', (customer) => ({ ...customer, entityId: '' })],
    ['without an id', ({ organizationId }) => ({ organizationId })],
    ['with a number as its id', (customer) => ({ ...customer, entityId: Number.parseInt(customer.entityId, 10) })],
    ['with its id in upper case', (customer) => ({ ...customer, entityId: customer.entityId.toUpperCase() })],
    ['with a space behind its id', (customer) => ({ ...customer, entityId: `${customer.entityId} ` })],
    ['with its id in a list', (customer) => ({ ...customer, entityId: [customer.entityId] })],
    ['with an object as its id', (customer) => ({ ...customer, entityId: {} })],
    ['without an organization', ({ entityId }) => ({ entityId })],
  ])('gets no token %s: 500', async (_result, of) => {
    const response = await send('case', of);
    expectError(response, { status: 500, error: 'server_error', hint: undefined });
  });

  it('gets no token for another organization than the requested one, which admits the client too', async () => {
    const ofAcme = await send('case', (customer) => customer, { organization_id: RIVAL });
    expectServerError(ofAcme, OTHER_THAN_REQUESTED);
    const ofRival = { ...AT_RIVAL, organization_id: RIVAL };
    const inRival = await send('case', (customer) => ({ ...customer, organizationId: RIVAL }), ofRival);
    expectServerError(inRival, OTHER_ORGANIZATION);
  });

  it('gets no token on the path of a group for another organization, or without a row', async () => {
    expectServerError(await inGroup((customer) => ({ ...customer, organizationId: RIVAL })), OTHER_THAN_REQUESTED);
    const unknown = await inGroup((customer) => ({ ...customer, entityId: UNKNOWN_CUSTOMER }));
    expectServerError(unknown, OTHER_ORGANIZATION);
  });

  it('gets no token for an agent of another organization, or without a row', async () => {
    const elsewhere = await send('case_of_agent', (customer) => ({ ...customer, organizationId: RIVAL }));
    expectServerError(elsewhere, OTHER_THAN_REQUESTED);
    const { body } = await service.visit(undefined, AT_RIVAL);
    const ofRival = await send('case_of_agent', (customer) => ({ ...customer, entityId: body.entity_id }));
    expectServerError(ofRival, OTHER_ORGANIZATION);
    const unknown = await send('case_of_agent', (customer) => ({ ...customer, entityId: UNKNOWN_CUSTOMER }));
    expectServerError(unknown, OTHER_ORGANIZATION);
  });

  it('gets no token by a proof of a customer or an agent of another organization', async () => {
    const visitor = (await service.visit()).body;
    const proofOf = async (kind: string, token: string): Promise<string> =>
      (await service.send('GET', `/proof/${kind}`, bearer(token))).body.proof;
    const ofCustomer = await proofOf('customer', visitor.access_token);
    const own = () => ({ entityId: visitor.entity_id, organizationId: ACME, proof: ofCustomer });
    expect((await send('case_with_proof', own)).status).toBe(200);
    expectInvalidGrant(await send('case_with_proof', () => ({ ...own(), organizationId: RIVAL })));
    const { entity_id: entityId } = (await service.visit(undefined, AT_RIVAL)).body;
    const ofAgent = await proofOf('agent', await issueAgentToken(service));
    expectInvalidGrant(await send('case_with_proof', () => ({ entityId, organizationId: ACME, proof: ofAgent })));
    expectInvalidGrant(await send('case_with_proof', () => ({ entityId, organizationId: RIVAL, proof: ofAgent })));
  });

  it('gets invalid_grant while it is being erased, and as one without a row afterwards: 500', async () => {
    const { entity_id: entityId } = (await service.visit()).body;
    const participants = service.application.get(CustomerDataParticipants, { strict: false });
    vi.spyOn(participants, 'onErase').mockRejectedValueOnce(new ServiceUnavailableException());
    expect((await service.erase(entityId)).status).toBe(503);
    expectInvalidGrant(await send('case', () => ({ entityId, organizationId: ACME })));
    expect((await service.erase(entityId)).status).toBe(200);
    expectServerError(await send('case', () => ({ entityId, organizationId: ACME })), OTHER_ORGANIZATION);
  });
});
