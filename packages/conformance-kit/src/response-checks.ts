import { CustomerService } from 'customer-authorization-service/grant';
import { declaredProperties, type GrantMetadata } from 'customer-authorization-service/testing-host';
import { createLocalJWKSet, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import { violationOfResponse } from './error-response.js';
import { request, type TestResponse } from './http-client.js';
import type { TestContext } from './test-context.js';

const RETURN_GROUP = 'return groupId of the Customer, and create the customer in the group of the request';

/** The parts of a request on which the expected response depends. */
export interface TokenRequestContext {
  /** The parameters; `undefined` if the request was sent as text or bytes. */
  body?: Record<string, unknown> | undefined;
  organizationId?: string | undefined;
}

const FIELDS = ['access_token', 'entity_id', 'expires_in', 'token_type'];
const CLAIMS = ['aud', 'client_id', 'exp', 'gen', 'gty', 'iat', 'iss', 'jti', 'organization_id', 'sub'];
/** Claims that only some tokens have: from an agent, of a session, or of a customer of a group. */
const OPTIONAL_CLAIMS = ['act', 'sid', 'ep', 'group_id'];
const AUTH_URL = 'https://auth.example';

/** Checks that apply to each response, in every rule. */
export class ResponseChecks {
  private keys: JSONWebKeySet | undefined;

  constructor(private readonly context: TestContext & { readonly declared: GrantMetadata }) {}

  /** How a response violates the protocol; `undefined` if it does not. */
  async violationOf(response: TestResponse, tokenRequest: TokenRequestContext = {}): Promise<string | undefined> {
    const { status, headers, cookies, body } = response;
    const { body: parameters = {} } = tokenRequest;
    const violation = violationOfResponse(response, this.context.secretsIn(parameters));
    if (violation !== undefined) return violation;
    if (!headers.get('content-type')?.startsWith('application/json')) return 'a response that is not JSON';
    if (status === 200) return this.violationOfToken(response, tokenRequest);
    if (cookies.length > 0) return 'an error response that sets a cookie';
    const issued = this.context.environment.service.audit.find(
      ({ event, requestId }) =>
        requestId === body.request_id && (event === 'identity.created' || event === 'token.issued'),
    );
    return issued && `an error response with the audit event ${issued.event}`;
  }

  /** Verifies a token as a resource server does (protocol §3.3), and returns its claims. */
  async claimsOf(accessToken: string): Promise<JWTPayload> {
    const { service } = this.context.environment;
    this.keys ??= (await request(`${service.url}/.well-known/jwks.json`, {})).body as JSONWebKeySet;
    const [region, jws = '', ...more] = accessToken.split(':');
    if (!region || more.length > 0) throw new Error('an access token that is not REGION:JWS');
    const { payload } = await jwtVerify(jws, createLocalJWKSet(this.keys), {
      issuer: AUTH_URL,
      audience: 'customer-api',
      typ: 'at+jwt',
      algorithms: ['ES256'],
      currentDate: new Date(service.clock.now()),
    });
    return payload;
  }

  private async violationOfToken(
    { body }: TestResponse,
    tokenRequest: TokenRequestContext,
  ): Promise<string | undefined> {
    const { responds = [], mayRespond = [] } = this.context.declared;
    const optional = mayRespond.filter((field) => field in body);
    const fields = [...FIELDS, ...responds, ...optional].sort().join(', ');
    const actual = Object.keys(body).sort().join(', ');
    if (actual !== fields) return `a response with ${actual}; declared: ${fields}`;
    const { entity_id: entityId, expires_in, token_type, access_token } = body;
    if (typeof entityId !== 'string' || entityId === '') return `entity_id is ${JSON.stringify(entityId)}, not a text`;
    if (token_type !== 'Bearer') return 'a token_type that is not Bearer';
    const claims = await this.claimsOf(access_token);
    const { sub, organization_id, client_id, iat = 0, exp = 0 } = claims;
    const ownClaims = this.context.declared.claims ? declaredProperties(this.context.declared.claims) : [];
    const names = Object.keys(claims).filter((name) => ![...OPTIONAL_CLAIMS, ...ownClaims].includes(name));
    if (names.sort().join() !== CLAIMS.join()) return `claims ${Object.keys(claims)}`;
    const hasSession = claims.sid !== undefined; // perhaps of a proof that an agent created
    if ((claims.act !== undefined) !== (this.context.declared.agentScope !== undefined) && !hasSession)
      return 'act is not the agent that sent the request';
    if (claims.gty !== this.context.declared.name) return `gty is ${claims.gty}, not the name of the grant`;
    if (sub !== entityId) return 'a token for another customer than entity_id';
    if (exp - iat !== expires_in) return 'expires_in is not the lifetime of the token';
    const requestedOrganization =
      tokenRequest.body?.organization_id ?? tokenRequest.organizationId ?? this.context.environment.organizationId;
    if (organization_id !== requestedOrganization)
      return `a token of the organization ${organization_id}; requested: ${requestedOrganization}`;
    if (tokenRequest.body && client_id !== tokenRequest.body.client_id) return `a token of the client ${client_id}`;
    for (const [field, value] of Object.entries({ organization_id, client_id })) {
      if (field in body && body[field] !== value) return `${field} is not that of the token`;
    }
    const customerService = this.context.environment.service.application.get(CustomerService);
    const customer = await customerService.find(entityId, organization_id as string);
    if (customer && (claims.group_id ?? '') !== customer.groupId)
      return `group_id is ${claims.group_id}; ${RETURN_GROUP}`;
    return customer
      ? undefined
      : `entity_id is no customer of the organization: ${entityId}; create customers with CustomerService`;
  }
}
