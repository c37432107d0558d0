import { IsString } from 'class-validator';
import { CustomerService, GrantBody, type Principal } from 'customer-authorization-service/grant';
import { BearerAuthGuard } from '../../../../../src/http/callers/bearer.strategy.js';
import { GrantSettingsClasses } from '../../../../../src/registry/grant-settings-classes.js';
import { Registry } from '../../../../../src/registry/registry.js';
import { FOREIGN_ORGANIZATION, ORIGIN, OWN_ORGANIZATION, SITE } from '../../../src/kit-registry.js';
import type { BrokenCase, InterceptedRequest } from './broken-case.js';
import { passGrant } from './pass.grant.js';
import { grantThat, sound, type TicketBody } from './ticket.grant.js';

const SCOPE = 'tickets:any';
const GOOD = { grant_type: 'ticket', client_id: SITE, organization_id: OWN_ORGANIZATION, ticket: '123456' };

class AnySetting {
  @IsString()
  no_such_setting!: string;
}

const asAgent = {
  ...grantThat(
    async ({ agent }, customers) => ({
      ...(await customers.create(agent?.organizationId ?? '')),
      response: { prize: 'a car' },
    }),
    { agentScope: SCOPE, body: GrantBody as typeof TicketBody },
  ),
  valid: () => ({}),
};

const parsed = (text: string): Record<string, unknown> => {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
};

const ERASED = 'gives a token for an erased customer';
const admittingErased: Broken = {
  breakService: ({ application }) => {
    const found = { groupId: '', generation: 0 };
    application.get(CustomerService).findGranted = async (entityId, organizationId) => ({
      entityId,
      organizationId,
      ...found,
    });
  },
};

type Broken = Pick<BrokenCase, 'interception' | 'breakService' | 'restore'>;

/** Changes a request between the kit and the service. */
const changing = (request: (sent: InterceptedRequest) => void): Broken => ({ interception: { request } });
const breaking = (breakService: NonNullable<BrokenCase['breakService']>): Broken => ({ breakService });
const ofBody = (change: (body: Record<string, unknown>) => object) =>
  changing((sent) => {
    sent.body = JSON.stringify(change(parsed(sent.body)));
  });
const ofText = (change: (text: string, headers: Record<string, string>) => string) =>
  changing((sent) => {
    sent.body = change(sent.body, sent.headers);
  });
/** Replaces a text in responses from a path. */
const responding = (path: string, from: string | RegExp, to: string): Broken => ({
  interception: {
    response: (intercepted) => {
      if (intercepted.path.endsWith(path)) intercepted.text = intercepted.text.replaceAll(from, to);
    },
  },
});

const { canActivate } = BearerAuthGuard.prototype;
/** Makes the service accept every caller as an agent. */
const acceptingEveryCaller: Broken = {
  breakService: () => {
    const claims = { jti: 'any', sub: 'anybody', client_id: SITE, iat: 0, exp: 0, aud: 'agent-api' as const };
    const identity = { kind: 'agent', agentId: 'anybody', organizationId: OWN_ORGANIZATION, clientId: SITE } as const;
    const own = { scopes: [SCOPE], claims, isFromTrustedIssuer: false, proof: async () => '' };
    const principal: Principal = { ...identity, ...own };
    BearerAuthGuard.prototype.canActivate = async (context) => {
      context.switchToHttp().getRequest().user = principal;
      return true;
    };
  },
  restore: () => {
    BearerAuthGuard.prototype.canActivate = canActivate;
  },
};

const ofOneClient = ofBody((body) => ({ ...body, client_id: SITE }));
const repairing = ofText((text) => (parsed(text)?.grant_type === 'ticket' ? text : JSON.stringify(GOOD)));
const withAnySetting = breaking(({ application }) => {
  application.get(GrantSettingsClasses).settings = () => AnySetting;
});

const only = grantThat(sound);
const optIn = grantThat(sound, { optIn: true });

type Row = [description: string, rule: string, failure: RegExp, broken: Broken, grant?: Pick<BrokenCase, 'grant'>];

const ACCEPTED = /not refused with 400 invalid_request hint/;
const ONE_CLIENT = /a token of the client kit-site/;
const ONE_ORGANIZATION = /a token of the organization .*; requested: /;
const ANY_REGISTRY = /^a registry with the field no_such_setting is accepted/;

const ofOtherTicket = ofBody((body) => ({ ...body, ticket: body.ticket || GOOD.ticket }));
const ofOneOrganization = ofBody((body) => ({ ...body, organization_id: OWN_ORGANIZATION }));
const withoutRedirect = ofBody(({ redirect_uri: _, ...all }) => all);
const fromOwnOrigin = changing(({ headers }) => {
  if (headers.origin) headers.origin = ORIGIN;
});
const admittingEveryClient = breaking(({ application }) => {
  const organization = application.get(Registry).organization(FOREIGN_ORGANIZATION);
  if (organization) organization.admits = () => true;
});
const withSettings = grantThat(sound, { settings: AnySetting });

const ROWS: Row[] = [
  ['publishes other keys', 'exactly the', /^no applicable key/, responding('jwks.json', /"kid":"[^"]*"/g, '"kid":"x"')],
  ['fills in missing parameters', 'a required', ACCEPTED, ofBody((body) => ({ ticket: GOOD.ticket, ...body }))],
  ['fills in empty parameters', 'an empty parameter, and', ACCEPTED, ofOtherTicket],
  ['accepts a repeated parameter', 'a repeated parameter, in', ACCEPTED, ofBody((body) => body)],
  ['reads bodies of any size', 'more than 16 KiB', /^not refused with 413/, ofText((text) => text.trim())],
  ['repairs bodies', 'that is not JSON', ACCEPTED, repairing],
  ['repairs JSON', 'JSON that is not an object', ACCEPTED, repairing],
  ['takes unknown clients for one', 'refuses an unknown client', ONE_CLIENT, ofOneClient],
  ['takes forbidden clients for one', 'may not use this grant', ONE_CLIENT, ofOneClient],
  ['takes foreign clients for one', 'to a client of another', ONE_CLIENT, ofOneClient],
  ['admits every client to an opt-in grant', 'declares `optIn`', ONE_CLIENT, ofOneClient, optIn],
  ['accepts every Origin', "the client's origins", /^https:\/\/foreign\.example: not refused/, fromOwnOrigin],
  ['has only one organization', 'an unknown organization', ONE_ORGANIZATION, ofOneOrganization],
  ['ignores redirect_uri', 'a redirect_uri', /^https:\/\/kit\.example: not/, withoutRedirect],
  ['requires no bearer token', 'without a bearer', /^no bearer: not refused with 401/, acceptingEveryCaller, asAgent],
  ['has endless tokens', 'or expired', /^an ended token: not refused with 401/, acceptingEveryCaller, asAgent],
  ['checks no scopes', 'without its scope', /^not refused with 403 insufficient_scope/, acceptingEveryCaller, asAgent],
  ['admits every client', 'to an agent of another', ONE_ORGANIZATION, admittingEveryClient, asAgent],
  [
    ERASED,
    'that was erased',
    /^after the erasure of its customer: entity_id is no/,
    admittingErased,
    passGrant(ERASED),
  ],
  ['accepts any settings', 'that its settings class does not declare', ANY_REGISTRY, withAnySetting, withSettings],
  ['accepts settings of a grant without them', 'declares no settings', ANY_REGISTRY, withAnySetting],
];

/** Violations in the token endpoint. A grant alone cannot violate these rules. */
export const BROKEN_SERVICES: BrokenCase[] = ROWS.map(([description, rule, failure, broken, grant]) => ({
  description: `is in a service that ${description}`,
  rule,
  failure,
  ...only,
  ...grant,
  ...broken,
}));
