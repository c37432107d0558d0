import { IsIn, IsInt, IsString, MaxLength } from 'class-validator';
import { afterEach, describe, expect, it } from 'vitest';
import { grantThat, sound } from '../../packages/conformance-kit/test/support/broken-grants/ticket.grant.js';
import { RESERVED_CLAIMS } from '../../src/access-token/reserved-claims.js';
import { Optional } from '../../src/oauth/parameters.js';
import type { GrantResult } from '../../src/token/grant.js';
import { claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { INFO, redeem, transferToken } from '../support/transfers.js';

const ADMIN_TOKEN = 'operator-of-the-declared-claims-0123456789';

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

let service: TestService | undefined;
afterEach(async () => {
  await service?.stop();
  service = undefined;
});

/** Starts a service with a grant `ticket` that declares `declared` and returns `values`. */
async function startWith(declared: new () => object, values?: object): Promise<TestService> {
  const behaves: typeof sound = async (request, identities): Promise<GrantResult> => ({
    ...(await sound(request, identities)),
    ...(values && { claims: values }),
  });
  const { modules } = grantThat(behaves, { claims: declared });
  service = await startTestService({ modules, environment: { ADMIN_TOKEN } });
  return service;
}

const ticketBody = { grant_type: 'ticket', client_id: ACME_SITE, organization_id: ACME, ticket: '123456' };

/** A class that declares claims with the given names. */
function classWith(names: string[]): new () => object {
  class Claims {}
  for (const name of names) IsString()(Claims.prototype, name);
  return Claims;
}

describe('protocol §3.4: the claims that a grant declares', () => {
  it('are in the token, in token info and in introspection, as the OpenAPI document describes them', async () => {
    const values = { ticket_class: 'gold', ticket_row: 7 };
    const started = await startWith(TicketClaims, values);
    const { access_token } = (await started.post(TOKEN, ticketBody)).body;
    expect(claimsOf(access_token)).toMatchObject({ ...values, gty: 'ticket' });
    expect((await started.send('GET', INFO, bearer(access_token))).body).toMatchObject(values);
    const introspect = await manage(started, 'POST', '/oauth2/introspect', bearer(ADMIN_TOKEN), {
      token: access_token,
    });
    expect(introspect.body).toMatchObject({ active: true, ...values });
    const { paths } = (await manage(started, 'GET', '/openapi.json')).body;
    for (const operation of [paths[INFO].get, paths['/oauth2/introspect'].post]) {
      const { properties, required } = operation.responses[200].content['application/json'].schema;
      expect(properties).toMatchObject({ ticket_class: { enum: ['gold', 'silver'] }, ticket_row: { type: 'integer' } });
      expect(required).not.toContain('ticket_class');
    }
  });

  it('are not in a token that descends from the token by a transfer', async () => {
    const started = await startWith(TicketClaims, { ticket_class: 'gold' });
    const { access_token } = (await started.post(TOKEN, ticketBody)).body;
    const moved = (await redeem(started, await transferToken(started, access_token))).body;
    expect(claimsOf(moved.access_token)).not.toHaveProperty('ticket_class');
    expect((await started.send('GET', INFO, bearer(moved.access_token))).body).not.toHaveProperty('ticket_class');
  });

  it('may be omitted by the grant', async () => {
    const started = await startWith(TicketClaims);
    const { status, body } = await started.post(TOKEN, ticketBody);
    expect(status).toBe(200);
    expect(claimsOf(body.access_token)).not.toHaveProperty('ticket_class');
  });

  it.each<[string, object]>([
    ['a claim that it does not declare', { ticket_class: 'gold', seat: 1 }],
    ['a standard claim', { ticket_class: 'gold', sub: 'another customer' }],
    ['an invalid value', { ticket_class: 'bronze' }],
    ['values of more than 1 KB', { ticket_class: 'gold', ticket_note: 'x'.repeat(1_024) }],
  ])('get no token if the grant returns %s', async (_, values) => {
    const started = await startWith(TicketClaims, values);
    const { status, body } = await started.post(TOKEN, ticketBody);
    expect({ status, error: body.error }).toEqual({ status: 500, error: 'server_error' });
  });

  it('may have exactly 1 KB as JSON', async () => {
    const rest = JSON.stringify({ ticket_class: 'gold', ticket_note: '' }).length;
    const started = await startWith(TicketClaims, { ticket_class: 'gold', ticket_note: 'x'.repeat(1_024 - rest) });
    expect((await started.post(TOKEN, ticketBody)).status).toBe(200);
  });
});

describe('a grant', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `claim_${index}`);

  it.each<[string, string[], string]>([
    ...[...RESERVED_CLAIMS].map((name): [string, string[], string] => [
      `the reserved claim ${name}`,
      [name],
      `TicketGrant: may not declare the claim "${name}", which has a meaning of its own; rename it`,
    ]),
    ['11 claims', names(11), 'TicketGrant: declares more than 10 claims'],
    ['a class without claims', [], 'TicketGrant: the class of its claims declares none'],
  ])('stops the start if it declares %s', async (_, declared, message) => {
    await expect(startWith(classWith(declared))).rejects.toThrow(message);
  });

  it('may declare 10 claims', async () => {
    await startWith(classWith(names(10)));
  });

  it('stops the start if another grant declares the same claim', async () => {
    const one = grantThat(sound, { claims: TicketClaims });
    const other = grantThat(sound, { claims: classWith(['ticket_row']) }, 'raffle');
    await expect(startTestService({ modules: [...one.modules, ...other.modules] })).rejects.toThrow(
      'TicketGrant: the grant "ticket" declares the claim "ticket_row" too; rename it',
    );
  });
});
