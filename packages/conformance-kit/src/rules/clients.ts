import { randomUUID } from 'node:crypto';
import { declaredProperties } from 'customer-authorization-service/testing-host';
import type { GrantTestContext, Rule, RuleSet } from '../grant-test-context.js';
import {
  BARE_SITE,
  FOREIGN_ORGANIZATION,
  FOREIGN_ORIGIN,
  FOREIGN_SITE,
  ORIGIN,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  SILENT_SITE,
  UNLISTED_SITE,
} from '../kit-registry.js';
import { KitEnvironment, OWN } from '../test-environment.js';
import type { Change } from '../token-request.js';

/** The client, the origin and the organization of a request. The endpoint checks them before the grant runs. */
export const clientRules: RuleSet = (declared) => {
  const parameters = declaredProperties(declared.body);
  return [
    ...RULES_OF_EVERY_GRANT,
    ...(declared.optIn ? [UNLISTED] : []),
    ...(declared.settings ? [WITHOUT_SETTINGS] : []),
    ...(parameters.includes('organization_id') ? ORGANIZATION_RULES : []),
    ...(parameters.includes('redirect_uri') ? [REDIRECT_URI] : []),
  ];
};

const NOT_FOR_CLIENT = { error: 'unauthorized_client', hint: /^grant_type: not for this client$/ };
const UNKNOWN_CLIENTS = ['unknown', 'kit-site ', 'KIT-SITE', 'constructor', '__proto__'];

const as = (client_id: string): Change => ({ parameters: { client_id } });

const RULES_OF_EVERY_GRANT: Rule[] = [
  {
    title: 'refuses an unknown client',
    check: (context) =>
      context.refusesEach(UNKNOWN_CLIENTS, { error: 'invalid_request', hint: /^client_id: unknown$/ }, as),
  },
  {
    title: 'refuses a client that may not use this grant',
    check: (context) => context.refuses(NOT_FOR_CLIENT, as(UNLISTED_SITE)),
  },
  {
    title: 'gives nothing to a client of another organization',
    check: (context) =>
      context.refuses({ error: ['invalid_request', 'invalid_grant', 'unauthorized_client'] }, as(FOREIGN_SITE)),
  },
  {
    title: "accepts the client's origins and refuses other origins",
    async check(context) {
      const own = await context.expectToken(await context.body(), { headers: { origin: ORIGIN } });
      if (own.headers.get('access-control-allow-origin') !== ORIGIN) throw new Error('no CORS for its own page');
      const others = [FOREIGN_ORIGIN, 'https://evil.example', 'null', `${ORIGIN}.evil.example`];
      const expected = { error: 'invalid_request', hint: /^Origin: not one of the client's$/ };
      await context.refusesEach(others, expected, (origin) => ({ headers: { origin } }));
    },
  },
];

const UNLISTED: Rule = {
  title: 'refuses a client without a list of grants, because it declares `optIn`',
  check: (context) => context.refuses(NOT_FOR_CLIENT, as(SILENT_SITE)),
};

const WITHOUT_SETTINGS: Rule = {
  title: 'responds by the protocol to a client without settings in the registry',
  check: async (context) => void (await context.send(await context.body({ client_id: BARE_SITE }))),
};

const ORGANIZATION_RULES: Rule[] = [
  {
    title: 'refuses an unknown organization and an organization that does not admit the client',
    check(context) {
      const expected = { error: 'invalid_request', hint: /^(organization_id|client_id): / };
      const ofOrganization = (organization_id: string) => ({ parameters: { organization_id } });
      return context.refusesEach([randomUUID(), FOREIGN_ORGANIZATION], expected, ofOrganization);
    },
  },
  {
    title: 'gives no token of another organization than the requested one',
    async check(context) {
      // the grant may reject the request, because its proof may be valid for another client only
      await context.send(await context.body({ client_id: PUBLIC_SITE }));
      const { boundToClient } = context.kit;
      if (boundToClient === undefined) return;
      const own = await proofFor(boundToClient ? PUBLIC_CLIENT : OWN, context);
      if (!own) return;
      const client_id = boundToClient ? PUBLIC_SITE : FOREIGN_SITE;
      const common = { client_id, organization_id: FOREIGN_ORGANIZATION };
      const { status } = await context.send({ ...context.withCommon(own), ...common });
      if (status === 200)
        throw new Error('a token for a proof of another organization; store the organization with the proof');
    },
  },
];

const PUBLIC_CLIENT = { ...OWN, clientId: PUBLIC_SITE, origin: PUBLIC_ORIGIN };

/**
 * A proof that `valid` creates for a client in an organization; `undefined` if it creates none for this client. If
 * `valid` reads no organization, or only returns it as `organization_id`, the proof may be for every organization.
 */
async function proofFor(client: typeof OWN, context: GrantTestContext): Promise<object | undefined> {
  const { service } = context.environment;
  let readsOrganization = false;
  const environment = new Proxy(new KitEnvironment(service, client), {
    get(target, name) {
      if (name === 'organizationId') readsOrganization = true;
      return Reflect.get(target, name);
    },
  });
  try {
    const own = await context.kit.valid(environment);
    return readsOrganization && !('organization_id' in own) ? own : undefined;
  } catch {
    return undefined;
  }
}

const REDIRECT_URI: Rule = {
  title: "refuses a redirect_uri that is not one of the client's",
  async check(context) {
    await context.expectToken(await context.body({ redirect_uri: `${ORIGIN}/` }));
    const expected = { error: 'invalid_request', hint: /^redirect_uri: / };
    const others = [ORIGIN, `${ORIGIN}/?`, `${ORIGIN}/more`, 'https://evil.example/', 'javascript:1'];
    await context.refusesEach(others, expected, (redirect_uri) => ({ parameters: { redirect_uri } }));
  },
};
