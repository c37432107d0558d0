import { IsIn, IsInt, IsString, MaxLength } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { grantThat, sound } from '../../packages/conformance-kit/test/support/ticket.grant.js';
import { RESERVED_CLAIMS } from '../../src/access-token/reserved-claims.js';
import { Optional } from '../../src/platform/validation/validation.js';
import { assertClaimsUsable } from '../../src/token/declared-claims.js';
import type { GrantMetadata, GrantResult } from '../../src/token/grant.js';
import { claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import { INFO, redeem, transferToken } from '../support/transfers.js';
import { serviceOfTest, useService } from '../support/use-service.js';

class TicketClaims {
  @IsIn(['gold', 'silver'])
  ticket_class!: string;

  @Optional()
  @IsInt()
  ticket_row?: number;

  @Optional()
  @IsString()
  @MaxLength(5_000)
  ticket_note?: string;
}

/** What the grant `ticket` returns besides its customer. */
let returned: object | undefined;
const behaves: typeof sound = async (request, identities): Promise<GrantResult> => ({
  ...(await sound(request, identities)),
  ...(returned && { claims: returned }),
});
const service = useService(grantThat(behaves, { claims: TicketClaims }));

/** The response to a ticket, for which the grant returns these claims. */
function redeemTicket(claims?: object): Promise<TestResponse> {
  returned = claims;
  const ticket = { grant_type: 'ticket', ticket: '123456' };
  return service.post(TOKEN, { ...ticket, client_id: ACME_SITE, organization_id: ACME });
}

/** Starts a service with a grant that declares these claims. */
const startWith = (...declared: (new () => object)[]) => {
  const grants = declared.map((claims, index) => grantThat(sound, { claims }, index === 0 ? 'ticket' : 'raffle'));
  return serviceOfTest({ modules: grants.flatMap(({ modules = [] }) => modules) });
};

/** A class that declares claims with the given names. */
function classWith(names: string[]): new () => object {
  class Claims {}
  for (const name of names) IsString()(Claims.prototype, name);
  return Claims;
}

describe('protocol §3.4: the claims that a grant declares', () => {
  it('are in the token, in token info and in introspection, as the OpenAPI document describes them', async () => {
    const values = { ticket_class: 'gold', ticket_row: 7 };
    const { access_token } = (await redeemTicket(values)).body;
    expect(claimsOf(access_token)).toMatchObject({ ...values, gty: 'ticket' });
    expect((await service.send('GET', INFO, bearer(access_token))).body).toMatchObject(values);
    const introspected = await service.admin('POST', '/oauth2/introspect', { token: access_token });
    expect(introspected.body).toMatchObject({ active: true, ...values });
    const { paths } = (await manage(service, 'GET', '/openapi.json')).body;
    for (const operation of [paths[INFO].get, paths['/oauth2/introspect'].post]) {
      const { properties, required } = operation.responses[200].content['application/json'].schema;
      expect(properties).toMatchObject({ ticket_class: { enum: ['gold', 'silver'] }, ticket_row: { type: 'integer' } });
      expect(required).not.toContain('ticket_class');
    }
  });

  it('are not in a token that descends from the token by a transfer', async () => {
    const { access_token } = (await redeemTicket({ ticket_class: 'gold' })).body;
    const moved = (await redeem(service, await transferToken(service, access_token))).body;
    expect(claimsOf(moved.access_token)).not.toHaveProperty('ticket_class');
  });

  it('may be omitted by the grant', async () => {
    expect(claimsOf((await redeemTicket()).body.access_token)).not.toHaveProperty('ticket_class');
  });

  it.each<[string, object]>([
    ['a claim that it does not declare', { ticket_class: 'gold', seat: 1 }],
    ['an invalid value', { ticket_class: 'bronze' }],
    ['values of more than 1 KB', { ticket_class: 'gold', ticket_note: 'x'.repeat(1_024) }],
  ])('get no token if the grant returns %s', async (_, values) => {
    const { status, body } = await redeemTicket(values);
    expect({ status, error: body.error }).toEqual({ status: 500, error: 'server_error' });
  });

  it('may have exactly 1 KB as JSON', async () => {
    const rest = JSON.stringify({ ticket_class: 'gold', ticket_note: '' }).length;
    const claims = { ticket_class: 'gold', ticket_note: 'x'.repeat(1_024 - rest) };
    expect((await redeemTicket(claims)).status).toBe(200);
  });
});

describe('a grant', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `claim_${index}`);

  it.each<[string, string[], string]>([
    ['11 claims', names(11), 'TicketGrant: declares more than 10 claims'],
    ['a class without claims', [], 'TicketGrant: the class of its claims declares none'],
    ['a reserved claim', ['sub'], 'TicketGrant: may not declare the claim "sub", which has a meaning of its own'],
  ])('stops the start if it declares %s', async (_, declared, message) => {
    await expect(startWith(classWith(declared))).rejects.toThrow(message);
  });

  it('may declare 10 claims, none of which is reserved', async () => {
    await startWith(classWith(names(10)));
    for (const name of RESERVED_CLAIMS) {
      const grant = { name: 'ticket', claims: classWith([name]) } as GrantMetadata;
      expect(() => assertClaimsUsable(grant, 'TicketGrant', [])).toThrow(`may not declare the claim "${name}"`);
    }
  });

  it('stops the start if another grant declares the same claim', async () => {
    await expect(startWith(TicketClaims, classWith(['ticket_row']))).rejects.toThrow(
      'TicketGrant: the grant "ticket" declares the claim "ticket_row" too; rename it',
    );
  });
});
