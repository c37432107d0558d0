import type { GrantTestContext, RuleSet } from '../grant-test-context.js';
import { request } from '../http-client.js';
import { withoutDatabase } from '../race.js';
import { TOKEN } from '../test-environment.js';

/**
 * The response to a token request, and what the operator sees of it. `ResponseChecks` verifies each token by the JWKS,
 * and makes most of the checks. The endpoint writes audit events and metrics, so no grant can omit them.
 */
export const responseRules: RuleSet = ({ name, agentScope }) => [
  {
    title: 'gives a token for a valid request, in a response with exactly the declared fields',
    check: async (context) => void (await context.expectToken(await context.body())),
  },
  {
    title: 'gives a token that this service accepts, for an existing customer',
    async check(context) {
      const { body } = await context.expectToken(await context.body());
      const headers = { authorization: `Bearer ${body.access_token}` };
      const info = await context.environment.service.send('GET', '/v2/customer/info', headers);
      if (info.status !== 200 || info.body.entity_id !== body.entity_id)
        throw new Error(`GET /v2/customer/info: ${info.status} ${info.text}`);
    },
  },
  {
    title: 'does not respond with invalid_grant to a valid request while the database is unavailable',
    async check(context) {
      const [parameters, headers] = [await context.body(), await context.callerHeaders()];
      const { service } = context.environment;
      const { body, text } = await withoutDatabase(service, () => service.post(TOKEN, parameters, headers));
      if (body?.error !== 'invalid_grant') return;
      throw new Error(`let each error of \`Database\` pass, so that the response is 503\nresponse: ${text}`);
    },
  },
  {
    title: 'causes one audit event with its name, the customer, the client, the organization and the request',
    async check(context) {
      const { headers, body } = await context.expectToken(await context.body());
      const { sub, jti, client_id, organization_id } = await context.checks.claimsOf(body.access_token);
      const requestId = headers.get('x-request-id');
      const [entry, ...more] = context.environment.service.audit.filter(
        (each) => each.event === 'token.issued' && each.requestId === requestId,
      );
      if (!entry || more.length > 0) throw new Error(`${more.length + (entry ? 1 : 0)} audit events token.issued`);
      const audited = [entry.grant, entry.clientId, entry.organizationId, entry.subject?.id, entry.details?.jti];
      const expected = [name, client_id, organization_id, sub, jti];
      if (`${audited}` !== `${expected}`) throw new Error(`token.issued has ${audited}; expected: ${expected}`);
      const actor = agentScope === undefined ? 'customer' : 'agent';
      if (entry.actor.kind !== actor || entry.outcome !== 'success') throw new Error(JSON.stringify(entry));
    },
  },
  {
    title: 'is counted in the metrics by its name',
    async check(context) {
      const before = await metricsOf(context);
      await context.expectToken(await context.body());
      const now = await metricsOf(context);
      const tokens = `cas_tokens_issued_total{grant="${name}"}`;
      if ((now.get(tokens) ?? 0) <= (before.get(tokens) ?? 0)) throw new Error(`${tokens} does not count`);
      const requests = [...now.keys()].find(
        (each) => /^http_requests_total\{.*status="200"/.test(each) && each.includes(`grant="${name}"`),
      );
      if (!requests) throw new Error(`no http_requests_total of the grant ${name}`);
    },
  },
];

async function metricsOf({ environment }: GrantTestContext): Promise<Map<string, number>> {
  const { text } = await request(`${environment.service.managementUrl}/metrics`, {});
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.replace(/ \S+$/, ''), Number(line.split(' ').at(-1))]));
}
