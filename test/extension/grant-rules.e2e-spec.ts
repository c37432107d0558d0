import { Injectable } from '@nestjs/common';
import { IsIn, IsString } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import {
  CustomerService,
  defineExtension,
  type Grant,
  GrantBody,
  type GrantResult,
  GrantType,
  type ProofRules,
} from '../../src/public/grant.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { serviceOfTest, useService } from '../support/use-service.js';

class RuleBody extends GrantBody {
  @IsString()
  override organization_id!: string;

  @IsIn(['nothing', 'proof', 'generation'])
  returns!: 'nothing' | 'proof' | 'generation';
}

/** Returns of a new customer what the request says. */
@Injectable()
class RuleGrant implements Grant<RuleBody> {
  constructor(private readonly customers: CustomerService) {}

  grant = async ({ body }: { body: RuleBody }): Promise<GrantResult> => {
    const { entityId, organizationId, generation } = await this.customers.create(ACME);
    return {
      ...{ entityId, organizationId },
      ...(body.returns === 'proof' && { proof: '01890000-0000-7000-8000-000000000000' }),
      ...(body.returns === 'generation' && { generation }),
    };
  };
}

@GrantType('rule_caller', { body: RuleBody, endsWith: 'caller' })
class CallerGrant extends RuleGrant {}

@GrantType('rule_sessions', { body: RuleBody, endsWith: 'sessions' })
class SessionsGrant extends RuleGrant {}

@GrantType('rule_nothing', { body: RuleBody, endsWith: 'nothing' })
class NothingGrant extends RuleGrant {}

@GrantType('rule_omitted', { body: RuleBody })
class OmittedGrant extends RuleGrant {}

describe('the endpoint, about what `endsWith` of a grant declares', () => {
  const output = new OutputCapture();
  const grants = [CallerGrant, SessionsGrant, NothingGrant, OmittedGrant];
  const service = useService({ ...defineExtension({ grants }), log: output.log });
  const request = (grant_type: string, returns: RuleBody['returns']) =>
    service.post(TOKEN, { grant_type, client_id: ACME_SITE, organization_id: ACME, returns });

  it.each<[string, RuleBody['returns'], string]>([
    ['rule_caller', 'nothing', "declares endsWith 'caller'; return `proof`, as `proof()` of the caller gave it"],
    ['rule_caller', 'generation', "declares endsWith 'caller'; return `proof`, as `proof()` of the caller gave it"],
    ['rule_sessions', 'nothing', "declares endsWith 'sessions'; return `generation`, as it was"],
    ['rule_sessions', 'proof', "returned `proof`; declare endsWith: 'caller' in @GrantType"],
    ['rule_nothing', 'proof', "returned `proof`; declare endsWith: 'caller' in @GrantType"],
    ['rule_omitted', 'proof', "returned `proof`; declare endsWith: 'caller' in @GrantType"],
  ])('responds 500 to %s that returns %s, and the log says what to do', async (grant_type, returns, reason) => {
    const response = await request(grant_type, returns);
    expectError(response, { status: 500, error: 'server_error', hint: undefined });
    expect(output.about(response.headers.get('x-request-id') ?? '').join()).toContain(`${grant_type}: ${reason}`);
  });

  it.each<[string, RuleBody['returns']]>([
    ['rule_sessions', 'generation'],
    ['rule_nothing', 'nothing'],
    ['rule_nothing', 'generation'],
    ['rule_omitted', 'nothing'],
    ['rule_omitted', 'generation'],
  ])('gives a token to %s that returns %s', async (grant_type, returns) => {
    expect((await request(grant_type, returns)).status).toBe(200);
  });
});

describe('the start', () => {
  const NOT_USABLE: [string, ProofRules, string][] = [
    ...[0, -1, 1.5, Number.NaN, '3'].map(
      (uses) => ['uses', { uses }, "uses must be a number from 1, or 'unlimited'"] as [string, ProofRules, string],
    ),
    ...[0, -1, 0.5, Number.POSITIVE_INFINITY].map(
      (lifetime) => ['lifetime', { lifetime }, 'lifetime must be a number of seconds'] as [string, ProofRules, string],
    ),
    ...[0, -1, 2.5].map(
      (guesses) => ['guesses', { guesses }, 'guesses must be a number from 1'] as [string, ProofRules, string],
    ),
    [
      'lifetime with its caller',
      { endsWith: 'caller', lifetime: 86_401 },
      "lifetime must be at most 86400 with endsWith 'caller'",
    ],
  ];

  it.each(NOT_USABLE)('stops with a sentence about unusable %s: %o', async (_, rules, reason) => {
    @GrantType('unusable', { body: RuleBody, ...rules })
    class UnusableGrant extends RuleGrant {}
    await expect(serviceOfTest(defineExtension({ grants: [UnusableGrant] }))).rejects.toThrow(
      `UnusableGrant: ${reason}`,
    );
  });

  it.each<ProofRules>([
    { uses: 1, lifetime: 1, guesses: 1 },
    { uses: 'unlimited' },
    { endsWith: 'caller', lifetime: 86_400 },
    { endsWith: 'nothing', lifetime: 10 * 365 * 86_400 },
  ])('succeeds with %o', async (rules) => {
    @GrantType('usable', { body: RuleBody, ...rules })
    class UsableGrant extends RuleGrant {}
    await serviceOfTest(defineExtension({ grants: [UsableGrant] }));
  });
});
