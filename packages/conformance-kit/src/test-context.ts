import { DEFAULT_LIMITS } from 'customer-authorization-service/testing-host';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { about } from './cases.js';
import type { TestResponse } from './http-client.js';
import { OutputCapture } from './output-capture.js';
import type { BodySchema } from './rules/body-schema.js';
import { ownParameters, secretsIn } from './secret-search.js';
import { onMariadb } from './test-database.js';
import { KitEnvironment } from './test-environment.js';
import { startTestService, type TestService, type TestServiceOptions } from './test-service.js';
import type { Change, ExpectedError, Parameters } from './token-request.js';
import { failOnUncaughtErrors } from './uncaught-errors.js';

/** Generous, because fuzzing is slow and the machine may run other work at the same time. */
const RULE_TIMEOUT_MS = 120_000;
const REPEAT_ON_SERVER = 'repeat it on a database server, by TEST_DATABASE_URL';
/** Limits of the service that no test reaches. Limits of grants and extensions keep their values. */
const HIGH_LIMITS = Object.keys(DEFAULT_LIMITS)
  .map((name) => `${name}=1000000/1`)
  .join();

/** A service-wide rule, with a check that tests a grant or a route for it. */
export interface RuleFor<Context> {
  /** A sentence whose subject is the grant or the route. */
  title: string;
  /** Whether SQLite, which has no locks on rows and compares texts exactly, hides some mistakes. */
  showsMoreOnServer?: boolean;
  /** @throws Error if the grant or the route breaks the rule */
  check(context: Context): Promise<unknown>;
}

/** The real service with the grant or the route under test. */
export abstract class TestContext {
  readonly environment: KitEnvironment;
  /** The parameters that `valid` has returned. */
  readonly issued: Parameters[] = [];
  private readonly pollutedPrototypes = watchPrototypes();

  protected constructor(
    service: TestService,
    readonly output: OutputCapture,
    private readonly options: TestServiceOptions,
  ) {
    this.environment = new KitEnvironment(service);
  }

  /** The grant or the route, as in the title of its tests. */
  abstract readonly subject: string;

  /** The body class of the grant or the route; `undefined` if a route reads no body. */
  abstract readonly bodySchema: BodySchema | undefined;

  /** Creates a valid request. The returned function sends it after a change. */
  abstract newRequest(): Promise<(change: Change) => Promise<TestResponse>>;

  /** The parameters of a new valid request. */
  abstract parameters(): Promise<Parameters>;

  /** The `Authorization` header of a caller; empty if the grant or the route needs none. */
  abstract bearer(): Promise<Record<string, string>>;

  /** The parameters that no other grant or route has. */
  get ownParameters(): string[] {
    return this.bodySchema ? ownParameters(this.bodySchema.body) : [];
  }

  secretsIn(parameters: Parameters): string[] {
    return this.bodySchema ? secretsIn(this.bodySchema.body, parameters, this.environment.isPublicId) : [];
  }

  /** Sends a new valid request after a change. @throws Error if the response is not the expected error */
  async refuses(expected: ExpectedError, change: Change): Promise<TestResponse> {
    const send = await this.newRequest();
    return this.assertError(expected, await send(change));
  }

  /** As `refuses`, for each of several items. The message of a failure names the item. */
  async refusesEach(items: string[], expected: ExpectedError, changeOf: (item: string) => Change): Promise<void> {
    for (const item of items) await about(item, () => this.refuses(expected, changeOf(item)));
  }

  /** @throws Error if the response is not the expected error */
  assertError({ status = 400, error, hint = /^/ }: ExpectedError, response: TestResponse): TestResponse {
    const { status: actual, body } = response;
    const errors = [error ?? body?.error].flat();
    if (actual >= 400 && [status].flat().includes(actual) && errors.includes(body?.error))
      if (hint.test(body?.error_hint ?? '')) return response;
    const hinted = hint.source === '^' ? [] : ['hint', hint.source];
    const wanted = [[status].flat().join(' or '), ...[error ?? []].flat(), ...hinted].join(' ');
    throw new Error(`not refused with ${wanted}\n${this.describe(response)}`);
  }

  /** @throws Error if a built-in prototype has a new property */
  assertPrototypesUnchanged(): void {
    const polluted = this.pollutedPrototypes();
    if (polluted.length > 0) throw new Error(`touched: ${polluted}`);
  }

  /** Sends valid requests, as each rule does. @throws Error if they fail, or say that `valid` is wrong */
  protected abstract sendValid(): Promise<unknown>;

  /**
   * Does what each rule does first, before any rule fails because of it.
   *
   * @throws Error with the reason of the first request that failed in the service, else the error of `valid`
   */
  async prepare(): Promise<void> {
    const first = this.output.lines.length;
    let failure: unknown;
    await this.output
      .during(() => failOnUncaughtErrors(this.subject, async () => void (await this.sendValid())))
      .catch((error) => {
        failure = error;
      });
    const failed = this.output.lines.slice(first).find((line) => /"status":5\d\d/.test(line));
    if (failed !== undefined) {
      const { method, route, status, cause = '' } = JSON.parse(failed);
      throw new Error(`no rule was checked: ${method} ${route} responds with ${status}: ${cause.split('\n')[0]}`);
    }
    if (failure) throw failure;
  }

  /**
   * Checks a rule, and captures the output of the process meanwhile.
   *
   * @throws Error if the rule is broken, or if the process would end because no code has caught an error
   */
  check(rule: RuleFor<this>): Promise<unknown> {
    return this.output.during(() => failOnUncaughtErrors(this.subject, () => rule.check(this)));
  }

  /** Starts a second service on the same database. It stands for another process. */
  secondService(environment: Record<string, string> = {}): Promise<TestService> {
    const { database, clock } = this.environment.service;
    const variables = { ...this.options.environment, ...environment };
    return startTestService({ ...this.options, environment: variables, database, clock, log: this.output.log });
  }

  /**
   * Does work with a second process whose rate limits are on, except those of the service itself. The clock stands
   * still, because a new window of a limit would allow further guesses.
   */
  withLimits<Result>(work: (service: TestService) => Promise<Result>): Promise<Result> {
    return this.environment.service.clock.whileStopped(async () => {
      const limited = await this.secondService({ RATE_LIMIT: HIGH_LIMITS });
      return work(limited).finally(limited.stop);
    });
  }

  close(): Promise<void> {
    return this.environment.service.stop();
  }

  /** The response and its log lines, for the message of a failure. */
  protected describe({ status, text, headers }: TestResponse): string {
    const lines = this.output.about(headers.get('x-request-id') ?? 'none');
    return [`response: ${status} ${text}`, ...lines.map((line) => `log: ${line.trim()}`)].join('\n');
  }
}

/** A rule that a test breaks by the omission of an option. */
export function undeclared(title: string, message: string): RuleFor<TestContext> {
  return { title, check: () => Promise.reject(new Error(message)) };
}

/** Starts a service whose output is captured. If `use` fails, the service is stopped. */
export async function openContext<Context>(
  options: TestServiceOptions,
  use: (service: TestService, output: OutputCapture) => Context,
): Promise<Context> {
  const output = new OutputCapture();
  const service = await startTestService({ ...options, log: output.log });
  try {
    return use(service, output);
  } catch (error) {
    await service.stop();
    throw error;
  }
}

/** Registers one vitest test for each rule. */
export function describeRules<Context extends TestContext>(
  title: string,
  open: () => Promise<Context>,
  rules: RuleFor<Context>[],
): void {
  describe(title, () => {
    let context: Context;
    beforeAll(async () => {
      context = await open();
      await context.prepare();
    }, RULE_TIMEOUT_MS);
    afterAll(() => context?.close());
    for (const rule of rules) {
      const title = rule.showsMoreOnServer && !onMariadb ? `${rule.title} (${REPEAT_ON_SERVER})` : rule.title;
      it(title, async () => void (await context.check(rule)), RULE_TIMEOUT_MS);
    }
  });
}

const WATCHED = [Object, Array, Function, String, Number, Boolean, Promise, Map, Set, RegExp, Error].map(
  (type) => type.prototype as object,
);

/**
 * Records the properties of the built-in prototypes. The returned function lists the properties that were added since.
 */
function watchPrototypes(): () => string[] {
  const before = WATCHED.map((prototype) => new Set(Reflect.ownKeys(prototype)));
  return () =>
    WATCHED.flatMap((prototype, index) => {
      const added = Reflect.ownKeys(prototype).filter((key) => !before[index]?.has(key));
      return added.map((key) => `${prototype.constructor.name}.prototype.${String(key)}`);
    });
}
