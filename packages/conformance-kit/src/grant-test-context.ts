import type { Type } from '@nestjs/common';
import { type GrantMetadata, type ObjectSchema, schemaOf } from 'customer-authorization-service/testing-host';
import type { GrantKit } from './grant-kit.js';
import { GrantRuns } from './grant-runs.js';
import { assertProvided, grantMetadataOf, serviceOptionsOf } from './grant-under-test.js';
import { request, type TestResponse } from './http-client.js';
import { OWN_ORGANIZATION, SITE } from './kit-registry.js';
import { OutputCapture } from './output-capture.js';
import { assertDeclared, prepare } from './preparation.js';
import { watchPrototypes } from './prototype-pollution.js';
import { ResponseChecks, type TokenRequestContext } from './response-checks.js';
import { KitEnvironment, TOKEN } from './test-environment.js';
import { startTestService, type TestService } from './test-service.js';
import type { ExpectedError, Parameters, SendOptions } from './token-request.js';

/** Generous, because the machine may run other work at the same time. */
const RESPONSE_TIMEOUT_MS = 10_000;

/** The real service with the grant under test, and methods that send requests to it. */
export class GrantTestContext {
  readonly environment: KitEnvironment;
  readonly checks: ResponseChecks;
  /** The JSON Schema of the body class. */
  readonly schema: ObjectSchema;
  /** The requests that the grant has received. */
  readonly grantRuns: GrantRuns;
  readonly pollutedPrototypes = watchPrototypes();

  private constructor(
    readonly declared: GrantMetadata,
    readonly kit: GrantKit,
    service: TestService,
    readonly output: OutputCapture,
    private readonly timeoutMs: number,
  ) {
    this.environment = new KitEnvironment(service);
    this.grantRuns = new GrantRuns(service, declared);
    this.checks = new ResponseChecks(this.environment, declared);
    this.schema = schemaOf(declared.body);
  }

  /** @throws Error if the service does not start with the grant */
  static async open(grant: Type, kit: GrantKit, timeoutMs = RESPONSE_TIMEOUT_MS): Promise<GrantTestContext> {
    const declared = grantMetadataOf(grant);
    const output = new OutputCapture();
    const service = await startTestService({ ...serviceOptionsOf(declared, kit), log: output.log });
    try {
      assertProvided(grant, service);
      return new GrantTestContext(declared, kit, service, output, timeoutMs);
    } catch (error) {
      await service.stop();
      throw error;
    }
  }

  /** @throws Error if a valid request gets no token, so that no rule can be checked */
  prepare(): Promise<void> {
    return prepare(this.output, async () => {
      const parameters = await this.body();
      assertDeclared(parameters, this.declared.body);
      await this.expectToken(parameters);
    });
  }

  /** Checks a rule, and captures the output of the process meanwhile. @throws Error if the grant breaks the rule */
  check(rule: { title: string; check(context: GrantTestContext): Promise<void> }): Promise<void> {
    return this.output.during(() => rule.check(this));
  }

  /** Starts a second service on the same database. It stands for another process. */
  async secondService(environment: Record<string, string> = {}): Promise<TestService> {
    const { service } = this.environment;
    const options = serviceOptionsOf(this.declared, this.kit);
    const variables = { ...options.environment, ...environment };
    const { database } = service;
    const second = await startTestService({ ...options, environment: variables, database, log: this.output.log });
    second.clock.advance({ seconds: (service.clock.now() - second.clock.now()) / 1000 });
    return second;
  }

  async close(): Promise<void> {
    await this.environment.service.stop();
  }

  /** The parameters of a new request that gets a token. */
  async body(more: Parameters = {}): Promise<Parameters> {
    return { ...this.withCommon(await this.kit.valid(this.environment)), ...more };
  }

  /** The grant's own parameters, with those that every request needs. */
  withCommon(own: object): Parameters {
    const organization = this.schema.required?.includes('organization_id') && { organization_id: OWN_ORGANIZATION };
    return { grant_type: this.declared.name, client_id: SITE, ...organization, ...own };
  }

  async callerHeaders(): Promise<Record<string, string>> {
    const { agentScope } = this.declared;
    const bearer = agentScope && { authorization: `Bearer ${await this.environment.agentToken(agentScope)}` };
    return { ...bearer, ...(await this.kit.caller?.(this.environment)) };
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
    const all = Object.entries({ ...(await this.callerHeaders()), ...own });
    const headers = Object.fromEntries(all.filter((pair): pair is [string, string] => pair[1] !== undefined));
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
    const response = await this.send(body, options);
    const { status = 400, error = response.body.error, hint = /^/ } = expected;
    const isError = response.status === status && [error].flat().includes(response.body.error);
    if (response.status === 200 || !isError || !hint.test(response.body.error_hint ?? '')) {
      const wanted = [status, error, hint.source === '^' ? '' : `hint ${hint.source}`].flat().filter(Boolean).join(' ');
      throw new Error(`not refused with ${wanted}\n${this.describe(response)}`);
    }
    return response;
  }

  /** The response and its log lines, for the message of a failure. */
  private describe({ status, text, headers }: TestResponse): string {
    const lines = this.output.about(headers.get('x-request-id') ?? 'none');
    return [`response: ${status} ${text}`, ...lines.map((line) => `log: ${line.trim()}`)].join('\n');
  }
}
