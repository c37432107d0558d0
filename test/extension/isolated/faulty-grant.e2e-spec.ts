import { Injectable, Module, Scope, type Type } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Column, Entity, type MigrationInterface, PrimaryColumn } from 'typeorm';
import { describe, expect, it } from 'vitest';
import type { AgentPrincipal } from '../../../src/http/callers/principal.js';
import { Expires } from '../../../src/platform/database/entity-checks.js';
import type { Extension } from '../../../src/token/extension.js';
import { type Grant, GrantBody, type GrantRequest, type GrantResult, GrantType } from '../../../src/token/grant.js';
import { LottoTickets1795300000000 } from '../../support/lotto-grant/1795300000000-lotto-tickets.js';
import { LottoBody } from '../../support/lotto-grant/lotto.body.js';
import { LottoGrantModule } from '../../support/lotto-grant/lotto-grant.module.js';
import { registryWithDraw } from '../../support/lotto-grant/lotto-registry.js';
import { startTestService } from '../../support/test-service.js';

/** A class that validates nothing and therefore is no body class. */
class LottoTicket {
  ticket!: string;
}

@GrantType('lotto', { body: LottoBody })
class SecondLottoGrant implements Grant<LottoBody> {
  grant = async (): Promise<GrantResult> => ({ entityId: '', organizationId: '' });
}

@GrantType('Lotto!', { body: LottoBody })
class LoudLottoGrant extends SecondLottoGrant {}

@GrantType('lotto_two', { body: LottoBody, responds: ['expires_in'] })
class ShortLottoGrant extends SecondLottoGrant {}

@Injectable({ scope: Scope.REQUEST })
@GrantType('fleeting', { body: LottoBody })
class FleetingGrant extends SecondLottoGrant {}

const REJECTED_AT_START: [rule: string, grant: Type, message: string][] = [
  [
    'whose name another grant has',
    SecondLottoGrant,
    'LottoGrant and SecondLottoGrant: two grants have the name "lotto"; rename one, or provide it only once',
  ],
  [
    'whose name is neither a snake_case name nor a URI',
    LoudLottoGrant,
    'LoudLottoGrant: the grant type "Lotto!" must be a name in snake_case, or a URI; rename it',
  ],
  [
    'that responds with a reserved field',
    ShortLottoGrant,
    'ShortLottoGrant: may not respond with "expires_in", which has a meaning of its own; rename it',
  ],
  [
    'that is request-scoped',
    FleetingGrant,
    'FleetingGrant: a grant must be a singleton; remove the injection scope REQUEST or TRANSIENT from it and from its dependencies',
  ],
];

describe('the service does not start', () => {
  const startWith = (modules: Type[], registry = registryWithDraw()) =>
    startTestService({ modules, registry, migrations: [LottoTickets1795300000000] });

  it.each(REJECTED_AT_START)('with a grant %s', async (_rule, grant, message) => {
    @Module({ providers: [grant] })
    class FaultyModule {}
    await expect(startWith([LottoGrantModule, FaultyModule])).rejects.toThrow(message);
  });

  it('with settings in the registry that the settings class of the grant rejects', async () => {
    const registry = registryWithDraw();
    registry.clients[0] = { ...registry.clients[0], grants: { lotto: { winning_ending: 'any', price: 'a car' } } };
    const startupError = 'clients[0].grants.lotto.winning_ending: must be one to five digits';
    await expect(startWith([LottoGrantModule], registry)).rejects.toThrow(startupError);
  });

  it('with a registry that names a grant whose module is missing', async () => {
    await expect(startWith([])).rejects.toThrow(
      'clients[0].grants.lotto: not a grant of this service; remove it, or start the service with the extension that has it',
    );
  });
});

class EmptyMigration implements MigrationInterface {
  async up(): Promise<void> {}
  async down(): Promise<void> {}
}

class Customer1796000000002 extends EmptyMigration {}
class Tickets extends EmptyMigration {}

/** Declares its entity when it is called, because every later start in this file knows the entity, as the next one. */
function withTicketTable(): Extension {
  @Expires()
  @Entity('old_ticket')
  class OldTicket {
    @PrimaryColumn('varchar', { length: 36 })
    id!: string;

    @Column('datetime', { name: 'expires_at', precision: 3 })
    expiresAt!: Date;
  }
  @Module({ imports: [TypeOrmModule.forFeature([OldTicket])] })
  class OldTicketModule {}
  return { modules: [OldTicketModule] };
}

function withAgentTable(): Extension {
  @Entity('agent')
  class LottoAgent {
    @PrimaryColumn('varchar', { length: 36 })
    id!: string;
  }
  @Module({ imports: [TypeOrmModule.forFeature([LottoAgent])] })
  class LottoAgentModule {}
  return { modules: [LottoAgentModule] };
}

it.each<[what: string, extension: () => Extension, message: string]>([
  [
    'migration has the name of one of the service’s migrations',
    () => ({ migrations: [Customer1796000000002] }),
    'two migrations have the name Customer1796000000002; rename yours, because the database records migrations by name',
  ],
  [
    'migration has no timestamp in its name',
    () => ({ migrations: [Tickets] }),
    'the name of the migration Tickets must end in the time at which it was written: milliseconds, 13 digits, as in Tickets1795300000000',
  ],
  [
    'table to be purged has no indexed expires_at column',
    withTicketTable,
    'OldTicket: @Expires() needs a column named "expires_at" with an @Index; add it',
  ],
  [
    'entity has the table name of one of the service’s tables',
    withAgentTable,
    ': two entities have the table "agent"; rename yours',
  ],
])('the service does not start with an extension whose %s', async (_what, extension, message) => {
  await expect(startTestService(extension())).rejects.toThrow(message);
});

/** `npm run check` fails if one of these compiles. */
function nonCompilingGrants(): Type[] {
  // @ts-expect-error a body class extends GrantBody
  @GrantType('no_body', { body: LottoTicket })
  class NoBody implements Grant {
    grant = async (): Promise<GrantResult> => ({ entityId: '', organizationId: '' });
  }

  // @ts-expect-error the parameter class differs from the body class that validates the request
  @GrantType('other_body', { body: GrantBody })
  class OtherBody implements Grant<LottoBody> {
    async grant({ body }: GrantRequest<LottoBody>): Promise<GrantResult> {
      return { entityId: body.ticket, organizationId: body.organization_id };
    }
  }

  // @ts-expect-error the method is missing
  @GrantType('no_method', { body: LottoBody })
  class NoMethod {}

  // @ts-expect-error the grant requires an agent but declares no `agentScope`
  @GrantType('no_scope', { body: LottoBody })
  class NoScope implements Grant<LottoBody, AgentPrincipal> {
    async grant({ agent }: GrantRequest<LottoBody, AgentPrincipal>): Promise<GrantResult> {
      return { entityId: '', organizationId: agent.organizationId };
    }
  }

  @GrantType('no_agent', { body: LottoBody })
  class NoAgent implements Grant<LottoBody> {
    async grant({ agent }: GrantRequest<LottoBody>): Promise<GrantResult> {
      // @ts-expect-error a grant that declares no `agentScope` has no agent
      return { entityId: '', organizationId: agent.organizationId };
    }
  }

  @GrantType('no_organization', { body: LottoBody })
  class NoOrganization implements Grant<LottoBody> {
    // @ts-expect-error a grant names the customer and its organization
    grant = async (): Promise<GrantResult> => ({ entityId: '' });
  }

  // @ts-expect-error an unknown option, here with a typing error
  @GrantType('no_option', { body: LottoBody, agentscope: 'customers:own' })
  class NoOption extends NoOrganization {}

  return [NoBody, OtherBody, NoMethod, NoScope, NoAgent, NoOrganization, NoOption];
}

it('the compiler rejects grants that do not match their declaration', () => {
  expect(nonCompilingGrants()).toHaveLength(7);
});
