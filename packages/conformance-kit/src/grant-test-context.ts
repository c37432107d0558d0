import { isDeepStrictEqual } from 'node:util';
import type { Type } from '@nestjs/common';
import {
  GrantDecorator,
  type GrantMetadata,
  GrantRegistry,
  schemaOf,
} from 'customer-authorization-service/testing-host';
import { about } from './cases.js';
import type { GrantKit } from './grant-kit.js';
import { request, type TestResponse } from './http-client.js';
import { kitRegistry, OWN_ORGANIZATION, SITE } from './kit-registry.js';
import type { OutputCapture } from './output-capture.js';
import { ResponseChecks, type TokenRequestContext } from './response-checks.js';
import { assertDeclared, type BodySchema } from './rules/body-schema.js';
import { openContext, type RuleFor, TestContext } from './test-context.js';
import { TOKEN } from './test-environment.js';
import { extensionOf, type TestService, type TestServiceOptions } from './test-service.js';
import { type Change, type ExpectedError, type Parameters, presentHeaders, type SendOptions } from './token-request.js';

/** Generous, because the machine may run other work at the same time. */
const RESPONSE_TIMEOUT_MS = 10_000;

/** A proof that ends with its caller is valid for at most so long (protocol §10.7). */
const MAX_PROOF_SECONDS = 86_400;
const TOO_LONG =
  'a proof that ends with its bearer token is valid for at most 86400 s. Shorten it. Or declare `endsWithCaller: false`, and call no `proof()`, if no bearer token creates the proof, or if that of an agent must outlive its token';
const NEW_PROOF = 'create a proof in each call, for a customer or a phone of its own';

export const subjectOf = ({ name }: GrantMetadata): string => `the grant ${name}`;

/** The real service with the grant under test, and methods that send requests to it. */
export class GrantTestContext extends TestContext {
  readonly checks: ResponseChecks;
  readonly subject: string;
  readonly bodySchema: BodySchema;

  private constructor(
    readonly declared: GrantMetadata,
    readonly kit: GrantKit,
    service: TestService,
    output: OutputCapture,
    private readonly timeoutMs: number,
  ) {
    super(service, output, serviceOptionsOf(declared, kit));
    this.checks = new ResponseChecks(this);
    this.subject = subjectOf(declared);
    this.bodySchema = { schema: schemaOf(declared.body), body: declared.body };
  }

  /** @throws Error if the service does not start with the grant */
  static open(grant: Type, kit: GrantKit, timeoutMs = RESPONSE_TIMEOUT_MS): Promise<GrantTestContext> {
    const declared = grantMetadataOf(grant);
    return openContext(serviceOptionsOf(declared, kit), (service, output) => {
      assertProvided(grant, service);
      return new GrantTestContext(declared, kit, service, output, timeoutMs);
    });
  }

  protected override async sendValid(): Promise<void> {
    const { lifetime, endsWithCaller } = this.kit;
    if (Number(lifetime) > MAX_PROOF_SECONDS && endsWithCaller !== false)
      throw new Error(`lifetime: ${lifetime} s; ${TOO_LONG}`);
    const used = await this.body();
    assertDeclared(used, this.bodySchema);
    await this.expectToken(used);
    const others = [await this.body(), await this.body()];
    if (this.kit.singleUse && isDeepStrictEqual(others[0], used))
      throw new Error(`\`valid\` returns the same proof twice, but the test declares \`singleUse\`; ${NEW_PROOF}`);
    for (const each of others)
      await about(`one of two requests of \`valid\`; ${NEW_PROOF}`, () => this.expectToken(each));
  }

  /** The parameters of a new request that gets a token. */
  async body(more: Parameters = {}): Promise<Parameters> {
    const own = await about('`valid`', async () => this.kit.valid(this.environment));
    this.issued.push(own as Parameters);
    return { ...this.withCommon(own), ...more };
  }

  /** The grant's own parameters, with those that every request needs. */
  withCommon(own: object): Parameters {
    const organization = this.bodySchema.schema.required?.includes('organization_id') && {
      organization_id: OWN_ORGANIZATION,
    };
    return { grant_type: this.declared.name, client_id: SITE, ...organization, ...own };
  }

  parameters(): Promise<Parameters> {
    return this.body();
  }

  async bearer(): Promise<Record<string, string>> {
    const { agentScope } = this.declared;
    return agentScope ? { authorization: `Bearer ${await this.environment.agentToken(agentScope)}` } : {};
  }

  async callerHeaders(): Promise<Record<string, string>> {
    return { ...(await this.bearer()), ...(await this.kit.caller?.(this.environment)) };
  }

  async newRequest(): Promise<(change: Change) => Promise<TestResponse>> {
    const own = await this.body();
    return ({ body = (all) => all, parameters, ...options }) => this.send(body({ ...own, ...parameters }), options);
  }

  /**
   * Sends an object as JSON, and a text or bytes unchanged.
   *
   * @throws Error if the response violates the protocol, or does not arrive in time
   */
  async send(
    body: Parameters | string | Buffer,
    { url = this.environment.service.url, path = TOKEN, organizationId, headers: own = {} }: SendOptions = {},
  ): Promise<TestResponse> {
    const headers = presentHeaders({ ...(await this.callerHeaders()), ...own });
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body);
    const signal = AbortSignal.timeout(this.timeoutMs);
    const init = { method: 'POST', headers, body: isRaw ? body : JSON.stringify(body), signal };
    const response = await request(url + path, init).catch((error) => {
      throw signal.aborted ? new Error(`no response within ${this.timeoutMs} ms`) : error;
    });
    await this.assertValid(response, { organizationId, body: isRaw ? undefined : body });
    return response;
  }

  /** @throws Error if the response violates the protocol */
  async assertValid(response: TestResponse, tokenRequest: TokenRequestContext = {}): Promise<void> {
    const violation = await this.checks.violationOf(response, tokenRequest);
    if (violation !== undefined) throw new Error(`${violation}\n${this.describe(response)}`);
  }

  /** Sends a request. @throws Error if the response is not a token */
  async expectToken(body: Parameters | string, options: SendOptions = {}): Promise<TestResponse> {
    const response = await this.send(body, options);
    if (response.status !== 200) throw new Error(`refused instead of a token\n${this.describe(response)}`);
    return response;
  }

  /** Sends a request. @throws Error if the response is not the expected error */
  async expectError(
    expected: ExpectedError,
    body: Parameters | string | Buffer,
    options: SendOptions = {},
  ): Promise<TestResponse> {
    return this.assertError(expected, await this.send(body, options));
  }
}

/** @throws Error if the class is not a grant */
export function grantMetadataOf(grant: Type): GrantMetadata {
  const declared = Reflect.getMetadata(GrantDecorator.KEY, grant) as GrantMetadata | undefined;
  if (!declared) throw new Error(`${grant.name}: no grant; decorate the class with @GrantType`);
  return declared;
}

/** @throws Error if no module provides the grant, because otherwise every rule would fail without this reason */
function assertProvided(grant: Type, service: TestService): void {
  const grants = service.application.get(GrantRegistry).all();
  if (grants.some(({ handler }) => handler instanceof grant)) return;
  throw new Error(`${grant.name}: no module provides it; name its module in \`modules\`, or in src/app.module.ts`);
}

function serviceOptionsOf({ name, optIn }: GrantMetadata, kit: GrantKit): TestServiceOptions {
  const { settings = {}, environment = {} } = kit;
  const of = (entry?: object) => (entry ? { [name]: entry } : {});
  const grantTypes = optIn ? [name, 'cookie'] : undefined;
  const registry = kitRegistry({ client: of(settings.client), organization: of(settings.organization), grantTypes });
  return { ...extensionOf(kit), registry, environment: { ...environment, AUTH_URL: 'https://auth.example' } };
}

export type Rule = RuleFor<GrantTestContext>;

export type RuleSet = (declared: GrantMetadata, kit: GrantKit) => Rule[];
