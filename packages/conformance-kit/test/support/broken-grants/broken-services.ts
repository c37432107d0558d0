import { IsString } from 'class-validator';
import { GrantBody, type Principal } from 'customer-authorization-service/grant';
import { Audit } from '../../../../../src/audit/audit.js';
import { BearerAuthGuard } from '../../../../../src/bearer/bearer.strategy.js';
import { GrantSettingsClasses } from '../../../../../src/registry/grant-settings-classes.js';
import { Registry } from '../../../../../src/registry/registry.js';
import { FOREIGN_ORGANIZATION, ORIGIN, OWN_ORGANIZATION, SITE } from '../../../src/kit-registry.js';
import type { BrokenCase, InterceptedRequest } from './broken-case.js';
import { grantThat, sound, type TicketBody } from './ticket.grant.js';

const TOKEN = '/v2/customer/token';
const SCOPE = 'tickets:any';
const GOOD = { grant_type: 'ticket', client_id: SITE, organization_id: OWN_ORGANIZATION, ticket: '123456' };

class AnySetting {
  @IsString()
  no_such_setting!: string;
}

const asAgent = grantThat(
  async ({ agent }, identities) => {
    return { ...(await identities.create(agent?.organizationId ?? '')), response: { prize: 'a car' } };
  },
  { agentScope: SCOPE, body: GrantBody as typeof TicketBody },
);

const parsed = (text: string): Record<string, unknown> => {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
};
/** Changes the parameters between the kit and the service. */
const sending = (change: (body: Record<string, unknown>) => object) => ({
  request: (sent: InterceptedRequest) => {
    sent.body = JSON.stringify(change(parsed(sent.body)));
  },
});
const atPath = (change: (path: string) => string) => ({
  request: (sent: InterceptedRequest) => {
    sent.path = change(sent.path);
  },
});

const { authenticate } = BearerAuthGuard.prototype;

/** Makes the service accept every caller as an agent. */
const acceptEveryCaller: Pick<BrokenCase, 'breakService' | 'restore'> = {
  breakService: () => {
    const claims = { jti: 'any', sub: 'anybody', client_id: SITE, iat: 0, exp: 0, aud: 'agent-api' as const };
    const principal: Principal = {
      kind: 'agent',
      agentId: 'anybody',
      organizationId: OWN_ORGANIZATION,
      clientId: SITE,
      scopes: [SCOPE],
      claims,
      isFromTrustedIssuer: false,
      descent: () => '',
    };
    BearerAuthGuard.prototype.authenticate = async (context) => {
      context.switchToHttp().getRequest().user = principal;
      return principal;
    };
  },
  restore: () => {
    BearerAuthGuard.prototype.authenticate = authenticate;
  },
};

const only = grantThat(sound);
const withForm = grantThat(sound, { form: true });
const withGroups = grantThat(sound, { groups: true });
const closed = grantThat(sound, { optIn: true });

/** Violations in the token endpoint. A grant alone cannot violate these rules. */
export const BROKEN_SERVICES: BrokenCase[] = [
  {
    description: 'is in a service that publishes other keys',
    ...only,
    interception: {
      response: (intercepted) => {
        if (intercepted.path.endsWith('jwks.json'))
          intercepted.text = intercepted.text.replace(/"kid":"[^"]*"/, '"kid":"another"');
      },
    },
    rule: 'gives a token that any resource server verifies by the JWKS, with the claims of protocol §3.3',
    failure: /^no applicable key found in the JSON Web Key Set/,
  },
  {
    description: 'is in a service that fills in missing parameters',
    ...only,
    interception: sending((body) => ({ ticket: GOOD.ticket, ...body })),
    rule: 'refuses a request without a required parameter, and names it',
    failure: /^ticket: not refused with 400 invalid_request hint/,
  },
  {
    description: 'is in a service that fills in empty parameters',
    ...only,
    interception: sending((body) => ({ ...body, ticket: body.ticket || GOOD.ticket })),
    rule: 'refuses an empty parameter, and names it',
    failure: /^ticket: not refused with 400 invalid_request hint/,
  },
  {
    description: 'is in a service that treats an empty parameter of a form as a value',
    ...withForm,
    interception: {
      request: (sent) => {
        sent.body = sent.body.replace('redirect_uri=', 'redirect_uri=empty');
      },
    },
    rule: 'treats an empty parameter of a form as a missing parameter',
    failure: /^redirect_uri: refused instead of a token/,
  },
  {
    description: 'is in a service that accepts a repeated parameter',
    ...only,
    interception: sending((body) => ({
      ...body,
      ...(body.redirect_uri === 'text' ? { redirect_uri: undefined } : {}),
    })),
    rule: 'rejects a repeated parameter, in every spelling of its name',
    failure: /^\w+: not refused with 400 invalid_request hint/,
  },
  {
    description: 'is in a service that rejects unknown parameters',
    ...only,
    interception: sending((body) => ('unknown' in body ? {} : body)),
    rule: 'does not receive a parameter that its body class does not declare',
    failure: /^refused instead of a token/,
  },
  {
    description: 'is in a service that parses bodies by their Content-Type',
    ...only,
    interception: {
      request: (sent) => {
        if (sent.headers['content-type'] === 'nonsense') sent.body = 'nonsense';
      },
    },
    rule: 'reads JSON with any Content-Type',
    failure: /^nonsense: refused instead of a token/,
  },
  {
    description: 'is in a service that reads bodies of any size',
    ...only,
    interception: {
      request: (sent) => {
        sent.body = sent.body.trim();
      },
    },
    rule: 'refuses a body of more than 16 KiB',
    failure: /^not refused with 413 payload_too_large/,
  },
  ...['refuses a body that is not JSON', 'refuses JSON that is not an object'].map(
    (rule): BrokenCase => ({
      description: `is in a service that repairs invalid bodies: ${rule}`,
      ...only,
      interception: {
        request: (sent) => {
          if (parsed(sent.body)?.grant_type !== 'ticket') sent.body = JSON.stringify(GOOD);
        },
      },
      rule,
      failure: /not refused with 400 invalid_request hint/,
    }),
  ),
  {
    description: 'is in a service that reads forms for every grant',
    ...only,
    interception: {
      request: (sent) => {
        if (sent.headers['content-type'])
          sent.body = JSON.stringify(Object.fromEntries(new URLSearchParams(sent.body)));
      },
    },
    rule: 'refuses a form, because it does not declare `form`',
    failure: /^not refused with 400 invalid_request hint/,
  },
  {
    description: 'is in a service that reads no form',
    ...withForm,
    interception: {
      request: (sent) => {
        delete sent.headers['content-type'];
      },
    },
    rule: 'reads its parameters from a form, because it declares `form`',
    failure: /^refused instead of a token/,
  },
  {
    description: 'is in a service that accepts a repeated parameter in a form',
    ...withForm,
    interception: {
      request: (sent) => {
        const fields = new Map([...new URLSearchParams(sent.body)].reverse());
        sent.body = new URLSearchParams(Object.fromEntries(fields)).toString();
      },
    },
    rule: 'refuses a repeated parameter in a form',
    failure: /^\w+: not refused with 400 invalid_request hint/,
  },
  ...[
    'refuses an unknown client',
    'refuses a client that may not use this grant',
    'gives nothing to a client of another organization',
  ].map(
    (rule): BrokenCase => ({
      description: `is in a service that treats every client as the same client: ${rule}`,
      ...only,
      interception: sending((body) => ({ ...body, client_id: SITE })),
      rule,
      failure: /a token of the client kit-site/,
    }),
  ),
  {
    description: 'is in a service that admits every client to an opt-in grant',
    ...closed,
    interception: sending((body) => ({ ...body, client_id: SITE })),
    rule: 'refuses a client without a list of grants, because it declares `optIn`',
    failure: /a token of the client kit-site/,
  },
  {
    description: 'is in a service that accepts every Origin',
    ...only,
    interception: {
      request: (sent) => {
        if (sent.headers.origin) sent.headers.origin = ORIGIN;
      },
    },
    rule: "accepts the client's origins and refuses other origins",
    failure: /^https:\/\/foreign\.example: not refused/,
  },
  {
    description: 'is in a service that has only one organization',
    ...only,
    interception: sending((body) => ({ ...body, organization_id: OWN_ORGANIZATION })),
    rule: 'refuses an unknown organization and an organization that does not admit the client',
    failure: /a token of the organization .*; requested: /,
  },
  {
    description: 'is in a service that ignores redirect_uri',
    ...only,
    interception: sending(({ redirect_uri: _left, ...body }) => body),
    rule: "refuses a redirect_uri that is not one of the client's",
    failure: /^https:\/\/kit\.example: not refused/,
  },
  {
    description: 'is in a service that requires no bearer token',
    ...asAgent,
    valid: () => ({}),
    ...acceptEveryCaller,
    rule: 'responds with 401 to a request without the bearer token of an agent',
    failure: /^no bearer: not refused with 401 invalid_token/,
  },
  {
    description: 'is in a service whose tokens never expire',
    ...asAgent,
    valid: () => ({}),
    ...acceptEveryCaller,
    rule: 'responds with 401 to an expired bearer token of an agent',
    failure: /^an expired token: not refused with 401 invalid_token/,
  },
  {
    description: 'is in a service that checks no scopes',
    ...asAgent,
    valid: () => ({}),
    ...acceptEveryCaller,
    rule: 'responds with 403 to an agent without its scope',
    failure: /^not refused with 403 insufficient_scope/,
  },
  {
    description: 'is in a service that admits every client to every organization',
    ...asAgent,
    valid: () => ({}),
    breakService: ({ application }) => {
      const organization = application.get(Registry).organization(FOREIGN_ORGANIZATION);
      if (organization) organization.admits = () => true;
    },
    rule: 'gives nothing to an agent of another organization',
    failure: /^a token of the organization .*; requested: /,
  },
  {
    description: 'is in a service that ignores groups',
    ...only,
    interception: atPath((path) => (path.endsWith('/sales/token') ? TOKEN : path)),
    rule: 'is not available on the path of a group, because it does not declare `groups`',
    failure: /sales\/token 200: data must have required property 'organization_id'/,
  },
  {
    description: 'is in a service that confuses the groups of two organizations',
    ...withGroups,
    interception: atPath((path) => path.replace(FOREIGN_ORGANIZATION, OWN_ORGANIZATION)),
    rule: 'takes the organization from the path of the group and refuses another one in the body',
    failure: /^not refused with 400 invalid_request hint/,
  },
  {
    description: 'is in a service that accepts any group name',
    ...withGroups,
    interception: atPath((path) => path.replace(/[^/]+\/token$/, 'sales/token')),
    rule: 'refuses an invalid group id',
    failure: /^a b: not refused with 400 invalid_request hint/,
  },
  {
    description: 'is in a service that gives shared groups separate identities',
    ...withGroups,
    interception: atPath((path) => (path.endsWith('/sales/token') ? TOKEN : path)),
    rule: 'is refused on a group path if the groups of the organization share one identity',
    failure: /^not refused with 400 unauthorized_client/,
  },
  ...[{ settings: AnySetting }, {}].map(
    (options): BrokenCase => ({
      description: `is in a service that accepts any registry, ${options.settings ? 'with' : 'without'} settings`,
      ...grantThat(sound, options),
      breakService: ({ application }) => {
        application.get(GrantSettingsClasses).settings = () => AnySetting;
      },
      rule: options.settings
        ? 'refuses a registry with settings of the grant that its settings class does not declare'
        : 'refuses a registry with settings of the grant, because it declares no settings',
      failure: /^a registry with the field no_such_setting is accepted/,
    }),
  ),
  {
    description: 'is in a service that records no audit events',
    ...only,
    breakService: ({ application }) => {
      application.get(Audit).record = () => undefined;
    },
    rule: 'causes one audit event with its name, the customer, the client, the organization and the request',
    failure: /^0 audit events token\.issued/,
  },
  {
    description: 'is in a service whose metrics have another grant name',
    ...only,
    interception: {
      response: (intercepted) => {
        if (intercepted.path === '/metrics')
          intercepted.text = intercepted.text.replaceAll('grant="ticket"', 'grant="other"');
      },
    },
    rule: 'is counted in the metrics by its name',
    failure: /^cas_tokens_issued_total\{grant="ticket"\} does not count/,
  },
  {
    description: 'is in a service whose OpenAPI document omits the grant',
    ...only,
    interception: {
      response: (intercepted) => {
        if (intercepted.path === '/openapi.json')
          intercepted.text = intercepted.text.replaceAll('"ticket":"#', '"other":"#');
      },
    },
    rule: 'is in the OpenAPI document, with its parameters',
    failure: /^application\/json: no entry of the grant/,
  },
  {
    description: 'is in a service whose OpenAPI document omits the response',
    ...only,
    interception: {
      response: (intercepted) => {
        if (intercepted.path === '/openapi.json')
          intercepted.text = intercepted.text.replaceAll('"title":"ticket"', '"title":"other"');
      },
    },
    rule: 'responds as the OpenAPI document describes',
    failure: /^no response schema of the grant/,
  },
];
