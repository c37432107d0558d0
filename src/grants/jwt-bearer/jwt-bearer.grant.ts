import { Injectable, Module } from '@nestjs/common';
import { IsIn, IsString, Matches, MaxLength } from 'class-validator';
import {
  ApiProperty,
  type Browser,
  type ClientApplication,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantStoresModule,
  GrantType,
  IdentityCookies,
  JwtProofs,
  OAuthError,
  Optional,
  type Organization,
  OrganizationUsers,
  type ProvenJwt,
  UseCounter,
  type UserRequest,
  type UserSignIn,
  UUID,
} from '../../public/grant.js';
import { JwtBearerClientSettings, JwtBearerSettings } from './jwt-bearer.settings.js';

/** The parameters of RFC 7523 §2.1, and the organization of the user. */
class JwtBearerBody extends GrantBody {
  @IsString()
  @MaxLength(8192)
  @ApiProperty(
    "A JWT that the organization's sign-in system has signed, with `iss`, `sub`, `aud`, `exp` and `jti`. It can be used once, for at most 600 s.",
    'HEADER.CLAIMS.SIGNATURE',
  )
  assertion!: string;

  @Matches(UUID, { message: 'must be a UUID in lower case' })
  override organization_id!: string;

  @Optional()
  @IsIn(['browser'])
  @ApiProperty(
    '`browser` signs the browser in: the response sets cookies with which the grant `cookie` leads to the customer of the user. Needs an `Origin`, and a client that may use it.',
    'browser',
  )
  remember?: 'browser';

  /** A customer of another user is never given or linked (`OrganizationUsers.customerOf`). */
  @Optional()
  @IsIn(['browser'])
  @ApiProperty(
    'Only with `remember=browser`: `browser` gives the customer that the browser created itself to a new user, or links it to a known user. Needs an organization that allows it.',
    'browser',
  )
  link?: 'browser';
}

class JwtBearerFields {
  @Optional()
  @IsString()
  @ApiProperty(
    "Only with `link`: the visitor's customer of this browser, which this request has linked to the user. Move its conversations to the user, once.",
    '0192f0a1-8c4d-7e5f-8061-728394a5b6c7',
  )
  linked_entity_id?: string;
}

const ERRORS = {
  notForOrganization: () => OAuthError.unauthorizedClient('grant_type: not for this organization'),
  notForClient: () => OAuthError.unauthorizedClient('remember: browser is not for this client'),
  linkNotForOrganization: () => OAuthError.unauthorizedClient('link: not for this organization'),
  noOrigin: () => OAuthError.invalidRequest('remember: needs an Origin'),
  linkAlone: () => OAuthError.invalidRequest('link: only with remember=browser'),
};

/** `exp` may be at most this far ahead. An earlier `iat` does not matter. */
const MAX_LIFETIME_SECONDS = 600;

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** A user whom the organization's sign-in system authenticates gets tokens for one customer (RFC 7523 §2.1). */
@Injectable()
@GrantType(JWT_BEARER, {
  body: JwtBearerBody,
  uses: 1,
  lifetime: MAX_LIFETIME_SECONDS,
  readsCustomer: true,
  settings: JwtBearerSettings,
  clientSettings: JwtBearerClientSettings,
  form: true,
  optIn: true,
  invalidGrantHint:
    'assertion: compare its signature, alg, kid, typ, iss, aud, exp (at most 600 s ahead), iat, nbf, sub and jti; each assertion works once',
  responds: ['client_id', 'organization_id'],
  mayRespond: ['linked_entity_id'],
  api: {
    description:
      "A user of an organization's own sign-in system gets a token (RFC 7523). `sub` of the assertion names the user, who has one customer on every device. The body may be a form.",
    response: JwtBearerFields,
    errors: ['400 invalid_grant'],
  },
})
export class JwtBearerGrant implements Grant<JwtBearerBody> {
  constructor(
    private readonly proofs: JwtProofs,
    private readonly uses: UseCounter,
    private readonly users: OrganizationUsers,
    private readonly cookies: IdentityCookies,
  ) {}

  async grant(request: GrantRequest<JwtBearerBody>): Promise<GrantResult> {
    const { body, client, organization, browser } = request;
    const settings = organization.grants[JWT_BEARER] as JwtBearerSettings | undefined;
    if (!settings) throw ERRORS.notForOrganization();
    if (body.remember) assertMayRemember(client, browser);
    if (body.link) assertMayLink(settings, body);
    const organizationId = organization.id;
    const { issuer, sub: userId, jti, expiresAt, claims } = await this.proofs.verify(body.assertion, settings);
    assertIntendedFor(claims, client, organization);
    await this.uses.count(request, JSON.stringify([issuer, jti]), expiresAt);
    const signIn = body.remember && this.signInOf(browser, body);
    const ofUser: UserRequest = { organizationId, userId, signIn, creator: 'organization' };
    const { credentials, linkedId, ...customer } = await this.users.customerOf(ofUser);
    if (credentials) for (const line of this.cookies.setCookieLines(credentials)) browser.setCookie(line);
    return { ...customer, response: { linked_entity_id: linkedId } };
  }

  private signInOf({ cookies, origin }: Browser, { link }: JwtBearerBody): UserSignIn {
    return { credentials: this.cookies.read(cookies, origin), link: link !== undefined };
  }
}

/**
 * A browser sends its cookies with the requests of any page, so a sign-in needs an Origin (decision 0019). The endpoint
 * has rejected an Origin that is not one of the client's.
 */
function assertMayRemember(client: ClientApplication, { origin }: Browser): void {
  const settings = client.grants[JWT_BEARER] as JwtBearerClientSettings | undefined;
  if (!settings?.remember?.includes('browser')) throw ERRORS.notForClient();
  if (origin === undefined) throw ERRORS.noOrigin();
}

/** An issuer can bind an assertion to a client and an organization. */
function assertIntendedFor(
  { client_id, organization_id }: ProvenJwt['claims'],
  client: ClientApplication,
  organization: Organization,
): void {
  if (client_id !== undefined && client_id !== client.clientId) throw OAuthError.invalidGrant('for another client');
  if (organization_id !== undefined && organization_id !== organization.id)
    throw OAuthError.invalidGrant('for another organization');
}

function assertMayLink(settings: JwtBearerSettings, { remember }: JwtBearerBody): void {
  if (!remember) throw ERRORS.linkAlone();
  if (!settings.link_browsers) throw ERRORS.linkNotForOrganization();
}

@Module({
  imports: [GrantStoresModule],
  providers: [JwtBearerGrant],
})
export class JwtBearerGrantModule {}
