import { describeGrant } from '@customer-authorization/conformance-kit';
import { Module, Post } from '@nestjs/common';
import { DataSource, type MigrationInterface } from 'typeorm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AgentTokenIssuer } from '../../../../src/agent-auth/agent-token-issuer.js';
import type { AgentPrincipal } from '../../../../src/http/callers/principal.js';
import { CustomerService } from '../../../../src/identity/customer.service.js';
import { IdentityModule } from '../../../../src/identity/identity.module.js';
import { migrationName, migrations } from '../../../../src/migrations/migrations.js';
import {
  ApiRoute,
  ClientRequest,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  PublicController,
} from '../../../../src/public/grant.js';
import { Agents } from '../../../../src/registry/agents.js';
import { claimsOf } from '../../../support/agent-tokens.js';
import { bearer } from '../../../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../../../support/cookie-grant.js';
import { expectError } from '../../../support/expect-error.js';
import { LottoTickets1795300000000 } from '../../../support/lotto-grant/1795300000000-lotto-tickets.js';
import { LottoBody } from '../../../support/lotto-grant/lotto.body.js';
import { LottoGrant } from '../../../support/lotto-grant/lotto.grant.js';
import { LottoGrantModule } from '../../../support/lotto-grant/lotto-grant.module.js';
import {
  lottoBody,
  NO_DRAW,
  ONLY_COOKIES,
  ONLY_LOTTO,
  registryWithDraw,
  winningTicket,
} from '../../../support/lotto-grant/lotto-registry.js';
import { rememberedPair } from '../../../support/remember.js';
import { ACME, ACME_AGENT, ACME_SITE } from '../../../support/test-registry.js';
import type { TestResponse } from '../../../support/test-service.js';
import { infoStatus } from '../../../support/transfers.js';
import { useService } from '../../../support/use-service.js';

/** A grant for groups too. Its name is a URI, which RFC 6749 §4.5 requires for an extension grant. */
@GrantType('urn:example:lotto:club', { body: LottoBody, groups: true, responds: ['organization_id', 'club', 'of'] })
class ClubGrant implements Grant<LottoBody> {
  constructor(private readonly customers: CustomerService) {}

  async grant({ organization, groupId }: GrantRequest<LottoBody>): Promise<GrantResult> {
    const response = { club: groupId, of: organization.name, expires_in: 1, undeclared: 'never seen' };
    const { entityId } = await this.customers.create({ organizationId: organization.id, groupId });
    return { entityId, organizationId: organization.id, response };
  }
}

/** A grant for agents: the agent names the customer. */
@GrantType('lotto_office', {
  body: GrantBody,
  agentScope: 'lotto:draw',
  responds: ['organization_id', 'drawn_by', 'drawn_for'],
})
class OfficeGrant implements Grant<GrantBody, AgentPrincipal> {
  constructor(private readonly customers: CustomerService) {}

  async grant({ agent, organization }: GrantRequest<GrantBody, AgentPrincipal>): Promise<GrantResult> {
    const response = { drawn_by: agent.agentId, drawn_for: organization.name };
    return { ...(await this.customers.create(organization.id)), response };
  }
}

/** A grant that no client may use by default. */
@GrantType('lotto_syndicate', { body: LottoBody, optIn: true })
class SyndicateGrant implements Grant<LottoBody> {
  constructor(private readonly customers: CustomerService) {}

  grant = ({ organization }: GrantRequest<LottoBody>): Promise<GrantResult> => this.customers.create(organization.id);
}

/** A route that belongs to this grant. */
@PublicController('v2/customer/syndicate')
class SyndicateController {
  @Post()
  @ApiRoute({ summary: 'Join the syndicate' })
  join(@ClientRequest(LottoBody, { grant: 'lotto_syndicate' }) _request: ClientRequest<LottoBody>): object {
    return {};
  }
}

@Module({
  imports: [IdentityModule],
  controllers: [SyndicateController],
  providers: [ClubGrant, OfficeGrant, SyndicateGrant],
})
class OtherGrantsModule {}

describeGrant(LottoGrant, {
  modules: [LottoGrantModule],
  migrations: [LottoTickets1795300000000],
  settings: { client: { winning_ending: '7', prize: 'a bicycle' } },
  valid: () => ({ ticket: winningTicket() }),
  forged: () => [{ ticket: '000001' }],
  anyOrganization: true, // the draw is the client's
});

/** Created before the tables of the service itself. */
class LottoOffices1795000000000 implements MigrationInterface {
  async up(): Promise<void> {}
  async down(): Promise<void> {}
}

describe('a grant of another team (docs/adding-a-grant.md)', () => {
  const modules = [LottoGrantModule, OtherGrantsModule];
  const grantMigrations = [LottoTickets1795300000000, LottoOffices1795000000000];
  const registry = registryWithDraw();
  const [site] = registry.clients;
  Object.assign((site as { grants: object }).grants, { identity_token: { remember: ['browser'] } });
  registry.clients.push({ client_id: 'syndicate', name: 'S', client_type: 'web', grant_types: ['lotto_syndicate'] });
  const service = useService({ registry, modules, migrations: grantMigrations });

  const requestToken = (body: object, headers: Record<string, string> = {}): Promise<TestResponse> =>
    service.post(TOKEN, body, headers);

  it('responds with the common fields, the fields that it declares, and no others', async () => {
    const { status, body } = await requestToken(lottoBody());
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.stringMatching(/^dev:/),
      entity_id: expect.any(String),
      expires_in: 28_800,
      token_type: 'Bearer',
      client_id: ACME_SITE,
      prize: 'a bicycle',
    });
  });

  it('can use the service’s customers: a customer who won keeps its identity', async () => {
    const first = await requestToken(lottoBody());
    const second = await requestToken(lottoBody(), { cookie: cookieHeader(first) });
    expect(second.body.entity_id).toBe(first.body.entity_id);
  });

  it('gives a browser whose customer came by a transfer a token of the device, which ends with it', async () => {
    const first = await requestToken(lottoBody());
    const cookie = await rememberedPair(service, first.body.access_token);
    const { body } = await requestToken(lottoBody(), { cookie });
    expect(body.entity_id).toBe(first.body.entity_id);
    expect(claimsOf(body.access_token)).toMatchObject({ sid: expect.any(String), ep: 0 });
    expect(claimsOf(body.access_token).sid).not.toBe(claimsOf(first.body.access_token).sid);
    expect(await infoStatus(service, body.access_token)).toBe(200);
    await service.send('DELETE', TOKEN, bearer(first.body.access_token));
    expect(await infoStatus(service, body.access_token)).toBe(401);
    expect((await requestToken(lottoBody(), { cookie: cookieHeader(first) })).body.entity_id).toBe(body.entity_id);
  });

  it('cannot change a common response field or add an undeclared field', async () => {
    const { body } = await requestToken(lottoBody({ grant_type: 'urn:example:lotto:club' }));
    expect(body).toMatchObject({ expires_in: 28_800, club: '' });
    expect(body).not.toHaveProperty('undeclared');
    expect(body, 'the requested organization as it is in the registry').toMatchObject({
      of: 'Acme',
      organization_id: ACME,
    });
  });

  it('that declares `agentScope` gets the agent and is limited to the organization of the agent', async () => {
    const agent = await service.application.get(Agents).byEmail(ACME_AGENT.email);
    const sub = agent?.id ?? '';
    const grant = { agentId: sub, organizationId: ACME, clientId: ACME_SITE, scope: 'customers:own lotto:draw' };
    const issued = await service.application.get(AgentTokenIssuer).issue(grant, agent?.generation ?? 0);
    const token = issued.access_token;
    const office = { grant_type: 'lotto_office', client_id: ACME_SITE };
    const response = await requestToken(office, { authorization: `Bearer ${token}` });
    const drawn = { drawn_by: sub, drawn_for: 'Acme' };
    expect(response.body).toMatchObject({ organization_id: ACME, ...drawn });
  });

  it('brings the schema of its tables, which matches its entities on each database', async () => {
    // not the service's own, whose managers send single statements only
    const dataSource = await new DataSource({ ...service.application.get(DataSource).options }).initialize();
    onTestFinished(() => dataSource.destroy());
    expect(dataSource.entityMetadatas.map(({ tableName }) => tableName)).toContain('lotto_ticket');
    expect((await dataSource.driver.createSchemaBuilder().log()).upQueries).toEqual([]);
  });

  it('has its migrations run after those of the service, in the order of their timestamps', async () => {
    const rows: { name: string }[] = await service.application
      .get(DataSource)
      .query('SELECT name FROM migrations ORDER BY id');
    const expected = [...migrations, LottoOffices1795000000000, LottoTickets1795300000000].map(migrationName);
    expect(rows.map(({ name }) => name)).toEqual(expected);
  });

  it('has its own settings in the registry', async () => {
    const response = await requestToken(lottoBody({ client_id: NO_DRAW }));
    expectError(response, { status: 400, error: 'unauthorized_client', hint: 'grant_type: this client has no draw' });
  });

  it('that declares `optIn` can only be used by clients that list it', async () => {
    for (const client_id of [ACME_SITE, ONLY_COOKIES, ONLY_LOTTO]) {
      const response = await requestToken(lottoBody({ grant_type: 'lotto_syndicate', client_id }));
      expectError(response, { status: 400, error: 'unauthorized_client', hint: 'grant_type: not for this client' });
    }
    expect((await requestToken(lottoBody({ grant_type: 'lotto_syndicate', client_id: 'syndicate' }))).status).toBe(200);
    const join = (client_id: string) => service.post('/v2/customer/syndicate', lottoBody({ client_id }));
    const hint = 'client_id: may not use the grant lotto_syndicate';
    expectError(await join(ACME_SITE), { status: 400, error: 'unauthorized_client', hint });
    expect((await join('syndicate')).status).toBe(201);
  });

  it('is available at the route of a group if it declares `groups`, and only then', async () => {
    const groupPath = `/v2/customer/${ACME}/sales/token`;
    const { error_hint } = (await service.post(groupPath, lottoBody())).body;
    expect(error_hint).toBe('grant_type: not supported by the route of a group');
    const { status, body } = await service.post(groupPath, lottoBody({ grant_type: 'urn:example:lotto:club' }));
    expect({ status, ...body }).toMatchObject({ status: 200, club: 'sales', organization_id: ACME });
  });
});
