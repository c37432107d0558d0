import { join } from 'node:path';
import { expect } from 'vitest';
import { type HttpClient, httpClientOf, type TestResponse } from '../../packages/conformance-kit/src/http-client.js';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { agentTokenBody, exchangeCode, refresh } from './agent-tokens.js';
import { bearer } from './authorization-headers.js';
import { AgentBrowser, FOR_CODE, redirected } from './authorization-page.js';
import { TestBrowser, TOKEN } from './cookie-grant.js';
import { refreshingRegistry } from './customer-refresh.js';
import { environmentOf, PRODUCTION } from './processes.js';
import { moveOf } from './remember.js';
import { ACME_AGENT, ACME_SITE, writeRegistry } from './test-registry.js';
import { redeem, TRANSFER, transferBody } from './transfers.js';

/** The environment of a process whose callers use every kind of write, on the SQLite file of a test. */
export function sqliteEnvironment(database: TestDatabase): Record<string, string> {
  return {
    ...environmentOf(database),
    REGISTRY_FILE: writeRegistry(join(database.folder, 'registry.yaml'), refreshingRegistry()),
    ...PRODUCTION,
  };
}

type Refresh = (token: string) => Promise<TestResponse>;

/** Callers of each kind that writes. They remember what the service has acknowledged with 200. */
export class SqliteCallers {
  readonly statuses: number[] = [];
  longestWaitMs = 0;
  private readonly browsers: { browser: TestBrowser; entityId: string }[] = [];
  private readonly users = new Map<string, string>();
  private readonly transferTokens: string[] = [];
  /** The refresh token that was issued last, of customers and of agents. */
  private readonly families: { token: string; send: Refresh }[] = [];
  private readonly client: HttpClient;
  private count = 0;

  private constructor(
    url: string,
    private readonly agentToken: string,
  ) {
    this.client = httpClientOf(url);
  }

  /** Callers with one refresh token of a customer, and one of an agent. */
  static async start(url: string, agentToken: string): Promise<SqliteCallers> {
    const callers = new SqliteCallers(url, agentToken);
    const { access_token } = (await callers.visit()).body;
    await callers.move(access_token);
    await callers.signIn();
    expect(callers.families).toHaveLength(2);
    return callers;
  }

  /** From now on, the callers send their requests to another process. */
  moveTo(url: string): void {
    Object.assign(this.client, httpClientOf(url)); // browsers have the client too
  }

  /**
   * One request of each kind that writes, at the same time: two new customers, a user, a transfer, sign-ins, refreshes.
   */
  async writeOnce(): Promise<void> {
    const { access_token } = (await this.visit(this.browsers[0]?.browser)).body ?? {};
    const kinds = [this.visit(), this.visit(), this.createUser(), this.signIn(), this.refreshAll()];
    await Promise.all([...kinds, access_token && this.transfer(access_token)]);
  }

  /** Everything that was acknowledged still exists. */
  async expectAll(): Promise<number> {
    for (const { browser, entityId } of this.browsers) {
      const { status, body } = await this.visit(browser);
      expect([status, body.entity_id]).toEqual([200, entityId]);
    }
    for (const [externalId, entityId] of this.users) {
      const { status, body } = await this.createUser(externalId);
      expect([status, body.entity_id, body.created]).toEqual([200, entityId, false]);
    }
    for (const { send, token } of this.families) expect((await send(token)).status).toBe(200);
    for (const token of this.transferTokens) expect((await redeem(this.client, token)).status).toBe(200);
    return this.browsers.length + this.users.size + this.families.length + this.transferTokens.length;
  }

  private async visit(known?: TestBrowser): Promise<TestResponse> {
    const browser = known ?? new TestBrowser(this.client);
    const response = await this.timed(() => browser.visit());
    if (!known && response.status === 200) this.browsers.push({ browser, entityId: response.body.entity_id });
    return response;
  }

  private async createUser(externalId = `user-${++this.count}`): Promise<TestResponse> {
    const body = agentTokenBody({ external_id: externalId });
    const response = await this.timed(() => this.client.post(TOKEN, body, bearer(this.agentToken)));
    if (response.status === 200) this.users.set(externalId, response.body.entity_id);
    return response;
  }

  private async transfer(token: string): Promise<void> {
    const { status, body } = await this.timed(() => this.client.post(TRANSFER, transferBody(), bearer(token)));
    if (status === 200) this.transferTokens.push(body.identity_transfer_token);
  }

  private async move(token: string): Promise<void> {
    const { code, verifier } = await moveOf(this.client, token);
    const proof = { code_verifier: verifier, remember: 'refresh_token' };
    const { body } = await this.timed(() => redeem(this.client, code, proof));
    const parameters = { grant_type: 'refresh_token', client_id: ACME_SITE };
    const send = (refresh_token: string) => this.client.post(TOKEN, { ...parameters, refresh_token });
    this.families.push({ token: body.refresh_token, send });
  }

  private async signIn(): Promise<void> {
    const browser = new AgentBrowser(this.client);
    const page = await this.timed(() => browser.open(FOR_CODE));
    if (page.status !== 200) return;
    const signedIn = await this.timed(() => browser.submit(page, ACME_AGENT));
    if (signedIn.status !== 200) return;
    const response = await this.timed(() => browser.follow(signedIn));
    if (response.status === 503) return;
    const { code = '' } = redirected(response).parameters;
    const { status, body } = await this.timed(() => exchangeCode(this.client, code));
    if (status !== 200 || this.families.length > 3) return;
    this.families.push({ token: body.refresh_token, send: (token) => refresh(this.client, token) });
  }

  private async refreshAll(): Promise<void> {
    const responses = await Promise.all(this.families.map(({ send, token }) => this.timed(() => send(token))));
    for (const [index, { status, body }] of responses.entries()) {
      const family = this.families[index];
      if (family && status === 200) family.token = body.refresh_token;
    }
  }

  private async timed(send: () => Promise<TestResponse>): Promise<TestResponse> {
    const startedAt = performance.now();
    const response = await send();
    this.longestWaitMs = Math.max(this.longestWaitMs, performance.now() - startedAt);
    this.statuses.push(response.status);
    if (response.status === 503) expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
    return response;
  }
}
