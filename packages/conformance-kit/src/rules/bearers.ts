import { about } from '../cases.js';
import type { RuleFor, TestContext } from '../test-context.js';
import { endBearers } from './endings.js';

const INVALID_TOKEN = { status: 401, error: 'invalid_token' };

/**
 * The bearer token of a caller (protocol §2.6).
 *
 * @param scope the scope that an agent needs
 */
export function bearerRules(callers: readonly ('customer' | 'agent')[], scope?: string): RuleFor<TestContext>[] {
  if (callers.length === 0) return [];
  return [invalidBearers(callers), ENDED_BEARER, ...(scope === undefined ? [] : [missingScope(scope)])];
}

function invalidBearers(callers: readonly string[]): RuleFor<TestContext> {
  return {
    title: 'responds with 401 to a request without a bearer token of its kind of caller',
    async check(context) {
      const { environment } = context;
      const { authorization: valid = '' } = await context.bearer();
      const bearers: Record<string, string | undefined> = {
        'no bearer': undefined,
        'a damaged token': `${valid.slice(0, -9)}AAAAAAAAA`,
        'a token without its region': `Bearer ${valid.split(':')[1]}`,
        'a text that is not a token': 'Bearer x',
        'Basic credentials': `Basic ${Buffer.from(valid).toString('base64')}`,
      };
      if (!callers.includes('customer'))
        bearers["a customer's token"] = `Bearer ${(await environment.newCustomer()).accessToken}`;
      if (!callers.includes('agent'))
        bearers["an agent's token"] = `Bearer ${await environment.agentToken('customers:own')}`;
      for (const [what, authorization] of Object.entries(bearers)) await assertInvalid(context, what, authorization);
    },
  };
}

const ENDED_BEARER: RuleFor<TestContext> = {
  title: 'responds with 401 to a bearer token that has ended or expired',
  async check(context) {
    const { service } = context.environment;
    const [{ authorization: ended = '' }, { authorization: old }] = [await context.bearer(), await context.bearer()];
    await endBearers(service, [ended]);
    await assertInvalid(context, 'an ended token', ended);
    await service.clock.whileStopped(async () => {
      service.clock.advance({ seconds: 30 * 86_400 });
      await assertInvalid(context, 'an expired token', old);
    });
  },
};

function missingScope(scope: string): RuleFor<TestContext> {
  return {
    title: 'responds with 403 to an agent without its scope',
    async check(context) {
      for (const other of ['customers:other', `${scope}s`, scope.toUpperCase()].filter((each) => each !== scope)) {
        const authorization = `Bearer ${await context.environment.agentToken(other)}`;
        const expected = { status: 403, error: 'insufficient_scope' };
        const { headers } = await context.refuses(expected, { headers: { authorization } });
        if (headers.get('www-authenticate') !== `Bearer error="insufficient_scope", scope="${scope}"`)
          throw new Error('another WWW-Authenticate');
      }
    },
  };
}

async function assertInvalid(context: TestContext, what: string, authorization: string | undefined): Promise<void> {
  const { headers } = await about(what, () => context.refuses(INVALID_TOKEN, { headers: { authorization } }));
  const challenge = authorization === undefined ? 'Bearer' : 'Bearer error="invalid_token"';
  if (headers.get('www-authenticate') !== challenge) throw new Error(`${what}: no WWW-Authenticate: ${challenge}`);
}
