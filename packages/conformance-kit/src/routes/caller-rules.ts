import { about } from '../cases.js';
import { TOKEN } from '../test-environment.js';
import type { RouteKit } from './route-kit.js';
import type { RouteRule } from './route-test-context.js';

/** The bearer token of the caller (protocol §2.6). */
export function routeCallerRules({ callers, agentScope }: RouteKit): RouteRule[] {
  if (callers.length === 0) return [];
  return [INVALID_BEARERS, ENDED_BEARER, ...(agentScope === undefined ? [] : [MISSING_SCOPE])];
}

const INVALID_BEARERS: RouteRule = {
  title: 'responds with 401 to a request without a bearer token of its kind of caller',
  async check(context) {
    const { callers } = context.kit;
    const sent = await context.valid();
    const valid = sent.headers.authorization ?? '';
    const customer = `Bearer ${(await context.environment.newCustomer()).accessToken}`;
    const agent = `Bearer ${await context.environment.agentToken('customers:own')}`;
    const bearers: Record<string, string | undefined> = {
      'no bearer': undefined,
      'a damaged token': `${valid.slice(0, -9)}AAAAAAAAA`,
      'a text that is not a token': 'Bearer x',
      'Basic credentials': `Basic ${Buffer.from(valid).toString('base64')}`,
      ...(callers.includes('customer') ? {} : { "a customer's token": customer }),
      ...(callers.includes('agent') ? {} : { "an agent's token": agent }),
    };
    for (const [what, authorization] of Object.entries(bearers))
      await about(what, () => context.expectError([401], withBearer(sent, authorization)));
  },
};

const ENDED_BEARER: RouteRule = {
  title: 'responds with 401 to a bearer token that has ended or expired',
  async check(context) {
    const { service } = context.environment;
    const ended = await context.valid();
    const { authorization = '' } = ended.headers;
    await service.send('DELETE', TOKEN, { authorization });
    await service.send('DELETE', '/v2/token', { authorization });
    await about('an ended token', () => context.expectError([401], ended));
    const old = await context.valid();
    await service.clock.whileStopped(async () => {
      service.clock.advance({ seconds: 30 * 86_400 });
      await about('an expired token', () => context.expectError([401], old));
    });
  },
};

const MISSING_SCOPE: RouteRule = {
  title: 'responds with 403 to an agent without its scope',
  async check(context) {
    const token = await context.environment.agentToken('kit:other');
    const sent = withBearer(await context.valid(), `Bearer ${token}`);
    const { body } = await context.expectError([403], sent);
    if (body.error !== 'insufficient_scope') throw new Error(`not refused with insufficient_scope: ${body.error}`);
  },
};

function withBearer<Sent extends { headers: Record<string, string> }>(sent: Sent, authorization?: string): Sent {
  const { authorization: _removed, ...headers } = sent.headers;
  return { ...sent, headers: authorization === undefined ? headers : { ...headers, authorization } };
}
