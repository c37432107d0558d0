import type { Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { declaredProperties, type Route, routesOf, schemaOf } from 'customer-authorization-service/testing-host';
import { about } from '../cases.js';
import { violationOfResponse } from '../error-response.js';
import type { GuessableParameter } from '../grant-kit.js';
import { GuessValues } from '../guess-values.js';
import { request, type TestResponse } from '../http-client.js';
import { routeRegistry } from '../kit-registry.js';
import type { OutputCapture } from '../output-capture.js';
import { assertDeclared, type BodySchema } from '../rules/body-schema.js';
import { openContext, type RuleFor, TestContext } from '../test-context.js';
import { extensionOf, type TestService, type TestServiceOptions } from '../test-service.js';
import { type Change, type ExpectedError, type Parameters, presentHeaders } from '../token-request.js';
import { allParametersOf, isParameters, parametersOf, type SentRequest, withText } from './request-texts.js';
import type { RouteKit } from './route-kit.js';

/** How many requests of `valid` the kit creates to find one whose texts it has not sent before. */
const MAX_VALID_COUNT = 10;

export type RouteRule = RuleFor<RouteTestContext>;

export const subjectOf = (name: string): string => `the route ${name}`;

/** The real service with the route under test, and methods that send requests to it. */
export class RouteTestContext extends TestContext {
  readonly bodySchema: BodySchema | undefined;
  readonly subject: string;
  /** Texts of requests that `valid` has not returned. The limit of a person with such a number may be used up. */
  private readonly wrongTexts = new Set<unknown>();

  private constructor(
    readonly route: Route,
    readonly kit: RouteKit,
    service: TestService,
    output: OutputCapture,
  ) {
    super(service, output, optionsOf(kit));
    this.subject = subjectOf(nameOf(route.method, route.path));
    const body = route.parameters.body as Type<object> | undefined;
    this.bodySchema = body && { schema: schemaOf(body), body };
  }

  /** @throws Error if the service does not start, or does not have the route */
  static open(name: string, kit: RouteKit): Promise<RouteTestContext> {
    return openContext(optionsOf(kit), (service, output) => {
      const routes = routesOf(service.application.get(DiscoveryService, { strict: false }));
      const route = routes.find(({ method, path, listener }) => listener === 'public' && nameOf(method, path) === name);
      if (route) return new RouteTestContext(route, kit, service, output);
      throw new Error(`${name}: no controller of the public port has this route; name its module in \`modules\``);
    });
  }

  protected override async sendValid(): Promise<void> {
    const sent = await this.valid();
    if (this.bodySchema) assertDeclared(parametersOf(sent), this.bodySchema);
    await this.expectSuccess(sent);
    const others = [await this.valid(), await this.valid()];
    for (const each of others)
      await about('one of two requests of `valid`; return a new request in each call', () => this.expectSuccess(each));
  }

  /** A new request that succeeds, with no text that a rule has sent before. */
  async valid(): Promise<SentRequest> {
    let sent = await this.nextValid();
    const isSpoiled = () => Object.values(allParametersOf(sent)).some((text) => this.wrongTexts.has(text));
    for (let count = 1; count < MAX_VALID_COUNT && isSpoiled(); count++) sent = await this.nextValid();
    this.issued.push(allParametersOf(sent));
    return sent;
  }

  private async nextValid(): Promise<SentRequest> {
    const {
      path = this.route.path,
      headers = {},
      body,
    } = await about('`valid`', async () => this.kit.valid(this.environment));
    const own = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const all = 'authorization' in own ? own : { ...(await this.bearer()), ...own };
    return { path, route: this.route.path, headers: all, body: body as Parameters | undefined };
  }

  /** @throws Error if the response violates the protocol */
  async send(sent: SentRequest): Promise<TestResponse> {
    const { method, url, path, headers, body } = sent;
    const { service } = this.environment;
    for (const [name, text] of Object.entries(allParametersOf(sent)))
      if (!this.issued.some((each) => each[name] === text)) this.wrongTexts.add(text);
    const text = isParameters(body) ? JSON.stringify(body) : body;
    const init: RequestInit = { method: (method ?? this.route.method).toUpperCase(), headers };
    if (text !== undefined) init.body = text;
    const response = await request((url ?? service.url) + path, init);
    const violation = violationOfResponse(response, isParameters(body) ? this.secretsIn(body) : []);
    if (violation === undefined) return response;
    throw new Error(`${violation}\n${this.describe(response)}`);
  }

  /** @throws Error if the response is not a success */
  async expectSuccess(sent: SentRequest): Promise<TestResponse> {
    const response = await this.send(sent);
    if (response.status >= 300) throw new Error(`refused: ${response.status} ${response.text}`);
    return response;
  }

  /** @throws Error if the response is not the expected error */
  async expectError(expected: ExpectedError, sent: SentRequest): Promise<TestResponse> {
    return this.assertError(expected, await this.send(sent));
  }

  async parameters(): Promise<Parameters> {
    return allParametersOf(await this.valid());
  }

  async newRequest(): Promise<(change: Change) => Promise<TestResponse>> {
    const sent = await this.valid();
    return ({ body, parameters = {}, headers = {}, ...options }) => {
      let changed = sent;
      for (const [name, text] of Object.entries(parameters)) changed = withText(changed, name, text);
      const own = body ? { body: body(parametersOf(changed)) } : {};
      return this.send({ ...changed, ...options, ...own, headers: presentHeaders({ ...sent.headers, ...headers }) });
    };
  }

  /** Wrong values of a parameter of the body, the path or the query. */
  guessValues(guessable: GuessableParameter, sent: SentRequest): GuessValues {
    const body = this.bodySchema?.body;
    const isInBody = body && declaredProperties(body).includes(guessable.parameter);
    return new GuessValues(guessable, isInBody ? body : undefined, allParametersOf(sent), this.issued);
  }

  /** The bearer token of a caller of an organization. */
  async bearer(environment = this.environment): Promise<Record<string, string>> {
    const [caller] = this.kit.callers;
    if (caller === undefined) return {};
    const token =
      caller === 'customer'
        ? (await environment.newCustomer()).accessToken
        : await environment.agentToken(this.kit.agentScope ?? 'customers:own');
    return { authorization: `Bearer ${token}` };
  }
}

function optionsOf(kit: RouteKit): TestServiceOptions {
  const environment = { ...kit.environment, AUTH_URL: 'https://auth.example' };
  return { ...extensionOf(kit), registry: routeRegistry(kit), environment };
}

const nameOf = (method: string, path: string) => `${method.toUpperCase()} ${path}`;
