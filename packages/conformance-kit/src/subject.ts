import { DEFAULT_LIMITS, declaredProperties } from '@customer-authorization/service/testing-host';
import type { Type } from '@nestjs/common';
import { grantsOf } from './extension-classes.js';
import { request, type TestResponse } from './http-client.js';
import type { CommonKit } from './kit.js';
import { kitRegistry } from './kit-registry.js';
import { OutputCapture } from './output-capture.js';
import { recordTraffic, type Traffic } from './recorded-traffic.js';
import type { SentRequest } from './request.js';
import type { Rule } from './rule.js';
import { containsSecret, ownParameters, secretsIn } from './secret-search.js';
import { KitEnvironment } from './test-environment.js';
import { startTestService, type TestService, type TestServiceOptions } from './test-service.js';
import { failOnUncaughtErrors } from './uncaught-errors.js';
import type { UpstreamServer } from './upstream.js';

/** Generous, because the machine may run other work at the same time. */
const RESPONSE_TIMEOUT_MS = 10_000;
/** Limits of the service that no test reaches. Limits of grants and extensions keep their values. */
const HIGH_LIMITS = Object.keys(DEFAULT_LIMITS)
  .map((name) => `${name}=1000000/1`)
  .join();

/** What a subject needs to start. */
export interface Opened {
  service: TestService;
  output: OutputCapture;
  options: TestServiceOptions;
}

/** The grant or the route under test in the real service. */
export abstract class Subject<Kit extends CommonKit = CommonKit> {
  readonly environment: KitEnvironment;
  readonly output: OutputCapture;

  protected constructor(
    /** The grant or the route, as in the title of its tests. */
    readonly title: string,
    readonly kit: Kit,
    /** The class of the parameters in the body; `undefined` if a route reads no body. */
    readonly body: Type<object> | undefined,
    private readonly opened: Opened,
  ) {
    this.environment = new KitEnvironment(opened.service);
    this.output = opened.output;
  }

  get service(): TestService {
    return this.opened.service;
  }

  get upstream(): UpstreamServer | undefined {
    return this.service.upstream;
  }

  /** The names of the parameters that only this grant or route has. */
  get ownParameters(): string[] {
    return this.body ? ownParameters(this.body) : [];
  }

  /** A new valid request. */
  abstract create(environment?: KitEnvironment): Promise<SentRequest>;

  /** As `create`, with the traffic of the service meanwhile. */
  observed(environment = this.environment): Promise<Traffic> {
    return recordTraffic(this.service, () => this.create(environment));
  }

  secretsIn(sent: SentRequest): string[] {
    return this.body ? secretsIn(this.body, sent.body ?? {}, this.environment.isPublicId) : [];
  }

  /** @throws Error if there is no response in time, or if it breaks a rule for all responses */
  send = async (sent: SentRequest): Promise<TestResponse> => {
    const response = await this.exchange(sent);
    this.assertResponse(sent, response);
    return response;
  };

  /** As `send`, for a request that may get any status. */
  async exchange(sent: SentRequest): Promise<TestResponse> {
    const { method, url = this.service.url, path, headers, body } = sent;
    const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
    const init = { method, headers, signal, ...(body && { body: JSON.stringify(body) }) };
    return request(url + path, init).catch((error) => {
      throw signal.aborted ? new Error(`no response within ${RESPONSE_TIMEOUT_MS / 1000} s`) : error;
    });
  }

  assertResponse(sent: SentRequest, response: TestResponse): void {
    const violation = this.violationOf(sent, response);
    if (violation !== undefined) throw new Error(`${violation}\n${this.describe(response)}`);
  }

  /** Sends a request. @throws Error if it does not succeed */
  async expectSuccess(sent: SentRequest): Promise<TestResponse> {
    const response = await this.send(sent);
    if (response.status >= 300) throw new Error(`refused\n${this.describe(response)}`);
    return response;
  }

  /** Sends a request. @throws Error if the response has another status, or another error of these */
  async expectError(sent: SentRequest, status = 400, ...errors: string[]): Promise<TestResponse> {
    const response = await this.send(sent);
    if (response.status === status && (errors.length === 0 || errors.includes(response.body?.error))) return response;
    throw new Error(`not refused with ${[status, ...errors].join(' ')}\n${this.describe(response)}`);
  }

  /** The response and its log lines, for the message of a failure. */
  describe({ status, text, headers }: TestResponse): string {
    const lines = this.output.about(headers.get('x-request-id') ?? 'none');
    return [`response: ${status} ${text}`, ...lines.map((line) => `log: ${line.trim()}`)].join('\n');
  }

  /** Checks a rule. @throws Error if the rule is broken, or if meanwhile no code has caught an error */
  check(rule: Rule<this>): Promise<unknown> {
    return this.output.during(() => failOnUncaughtErrors(this.title, () => rule.check(this)));
  }

  /**
   * Does what each rule does first.
   *
   * @throws Error with the reason of the first request that failed in the service, else the error of `valid`
   */
  async prepare(): Promise<void> {
    const first = this.output.lines.length;
    const work = async () => {
      for (let count = 0; count < 3; count++) await this.expectSuccess(await this.create());
    };
    try {
      await this.output.during(() => failOnUncaughtErrors(this.title, work));
    } catch (error) {
      const failed = this.output.lines.slice(first).find((line) => /"status":5\d\d/.test(line));
      if (failed === undefined) throw error;
      const { method, route, status, cause = '' } = JSON.parse(failed);
      throw new Error(`no rule was checked: ${method} ${route} responds with ${status}: ${cause.split('\n')[0]}`);
    }
  }

  /** Does work with a second service on the same database. It stands for another process. */
  async withSecondService<Result>(
    work: (service: TestService) => Promise<Result>,
    changed: Partial<TestServiceOptions> = {},
  ): Promise<Result> {
    const { options, service } = this.opened;
    const { database, clock } = service;
    const shared = { database, clock, log: this.output.log, upstream: undefined };
    const second = await startTestService({ ...options, ...shared, ...changed });
    return work(second).finally(second.stop);
  }

  /**
   * As `withSecondService`, with the limits of the extension. The clock stands still, because a new window of a limit
   * would allow further requests.
   */
  withLimits<Result>(
    work: (service: TestService) => Promise<Result>,
    changed: Partial<TestServiceOptions> = {},
  ): Promise<Result> {
    const environment = { ...this.opened.options.environment, RATE_LIMIT: HIGH_LIMITS };
    return this.service.clock.whileStopped(() => this.withSecondService(work, { environment, ...changed }));
  }

  async close(): Promise<void> {
    await this.service.stop();
  }

  private violationOf(sent: SentRequest, { status, cookies, body }: TestResponse): string | undefined {
    if (status >= 500) return `status ${status}; throw an OAuthError for each cause`;
    if (status < 400) return undefined;
    if (cookies.length > 0) return 'an error response that sets a cookie';
    const shown = `${body?.error_hint ?? ''} ${body?.error_description ?? ''}`;
    const secret = this.secretsIn(sent).find((each) => containsSecret(shown, each));
    if (secret !== undefined) return `an error response that discloses a secret: ${secret}`;
    const isCause = ({ event, requestId }: { event: string; requestId?: string }) =>
      event === 'identity.created' && requestId === body?.request_id;
    return this.service.audit.some(isCause) ? 'an error response after a customer was created' : undefined;
  }
}

/** Starts the service with the extension of a kit. */
export async function open(kit: CommonKit, grants = grantsOf(kit)): Promise<Opened> {
  const output = new OutputCapture();
  const registry = kitRegistry(kit, kit.settings, grants);
  const options = { ...kit, registry, environment: { ...kit.environment, AUTH_URL: 'https://auth.example' } };
  return { service: await startTestService({ ...options, log: output.log }), output, options };
}

/** @throws Error if the class of the body does not declare a parameter of the request */
export function assertDeclared(sent: SentRequest, body: Type<object>): void {
  const unknown = Object.keys(sent.body ?? {}).filter((name) => !declaredProperties(body).includes(name));
  const solution = 'give the property a rule such as @IsString(), or remove it from `valid`';
  if (unknown.length > 0) throw new Error(`${unknown}: sent by \`valid\`, not declared in ${body.name}; ${solution}`);
}
