import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTokenVerifier, type TokenVerifier } from '@customer-authorization/token-verifier';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import type { RegistryDocument } from '../../packages/conformance-kit/src/registry-file.js';
import { registryWithSignIn, SignInSystem } from '../support/assertion-issuer.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { AgentBrowser, FORM, implicitToken } from '../support/authorization-page.js';
import { WITH_REFRESH } from '../support/customer-refresh.js';
import { managingRegistry } from '../support/managed-customers.js';
import { manage } from '../support/management-api.js';
import { environmentOf, PRODUCTION, type ServiceProcess, startServiceProcess } from '../support/processes.js';
import { ACME, ACME_SITE, changed, writeRegistry } from '../support/test-registry.js';
import { type HttpClient, httpClientOf, type TestResponse } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';
import { buildDeviceApproval } from './device-approval.js';
import { RACE_TIMEOUT_MS } from './rounds.js';

const RESOURCE_SERVER = 'race-server';
const OPERATOR_TOKEN = 'operator-of-the-races-0123456789-0123456789';
const RESOURCE_SERVER_SECRET = 'a-secret-of-the-resource-server-0123456789';
/** The time within which a verifier must know what has ended. Each process serves a new entry within 2 s. */
const FEED_TIMEOUT_MS = 20_000;
const PAUSE_MS = 20;
/** Repetitions of a request that gets 503. */
const MAX_REPEATS = 500;

/** The organizations in which one browser can have customers, besides those of the tests. */
export const MORE_ORGANIZATIONS = Array.from({ length: 12 }, () => randomUUID());

/** A process of the service. */
export type RacePod = HttpClient & ServiceProcess;

/** Two processes of the built service with an extension, on one database or on two nodes of a cluster. */
export class RaceWorld {
  private constructor(
    readonly pods: readonly [RacePod, RacePod],
    /** The header of an agent who may do everything with the customers of ACME. */
    readonly agent: { authorization: string },
    /** A browser in which the agent is signed in. */
    readonly agentBrowser: AgentBrowser,
    private readonly users: SignInSystem,
    private readonly verifier: TokenVerifier,
    private readonly folder: string,
  ) {}

  /** @param urls of the database for the first and the second process */
  static async start(urls: readonly [string, string]): Promise<RaceWorld> {
    const folder = mkdtempSync(join(tmpdir(), 'races-'));
    const EXTENSION = buildDeviceApproval(join(folder, 'device-approval'));
    const users = await SignInSystem.start();
    const REGISTRY_FILE = writeRegistry(join(folder, 'registry.yaml'), registryOf(users));
    // TRUST_PROXY lets each request name its own IP address
    const environment = {
      ...PRODUCTION,
      ...{
        EXTENSION,
        REGISTRY_FILE,
        MIGRATE_ON_START: 'true',
        TRUST_PROXY: '1',
        ADMIN_TOKENS: `operator:all:${OPERATOR_TOKEN}`,
      },
    };
    const start = async (url: string): Promise<RacePod> => {
      const database = environmentOf({ url, folder, remove: async () => undefined });
      const pod = await startServiceProcess({ ...database, ...environment }, '/');
      return { ...pod, ...httpClientOf(pod.url) };
    };
    const first = await start(urls[0]); // migrates
    const pods = [first, await start(urls[1])] as const;
    const agentBrowser = new AgentBrowser(first);
    await agentBrowser.authorize();
    const verifier = createTokenVerifier({
      issuer: PRODUCTION.AUTH_URL,
      jwksUrl: `${first.url}/.well-known/jwks.json`,
      audience: 'customer-api',
      revocations: {
        url: `${pods[1].managementUrl}/oauth2/revocations`,
        id: RESOURCE_SERVER,
        secret: RESOURCE_SERVER_SECRET,
        maxAgeSeconds: 60,
        onStale: 'reject',
      },
    });
    await verifier.ready();
    return new RaceWorld(pods, bearer(await implicitToken(first)), agentBrowser, users, verifier, folder);
  }

  async stop(): Promise<void> {
    this.verifier.close();
    const codes = await Promise.all(this.pods.map((pod) => pod.terminate()));
    await this.users.issuer.stop();
    rmSync(this.folder, { recursive: true });
    expect(codes).toEqual([0, 0]);
  }

  /** The first process, for what precedes and follows a race. */
  get patient(): RacePod {
    return patient(this.pods[0]);
  }

  /** An assertion about a user of ACME. */
  assert(sub: string): Promise<string> {
    return this.users.assert(Date.now(), { sub });
  }

  /** Whether an access token is active in each of the processes. */
  async isActive(token: string): Promise<boolean[]> {
    return Promise.all(this.pods.map((pod) => isActiveAt(pod, token)));
  }

  /** An agent of its own, and its path in the admin API. */
  async newAgent(): Promise<{ email: string; password: string; path: string }> {
    const credentials = { email: `${randomUUID()}@acme.example`, password: randomUUID() };
    const entry = { ...credentials, name: 'Raced', organization_id: ACME, scopes: ['customers:own'] };
    const { status, body } = await available(() =>
      manage(this.pods[0], 'POST', '/admin/agents', bearer(OPERATOR_TOKEN), entry),
    );
    expect(status).toBe(201);
    return { ...credentials, path: `/admin/agents/${body.id}` };
  }

  /** Gives an agent other scopes, which ends its sessions. */
  changeAgent(pod: RacePod, path: string): Promise<TestResponse> {
    const scopes = ['customers:own', 'customers:manage'];
    return manage(pod, 'PATCH', path, bearer(OPERATOR_TOKEN), { scopes });
  }

  /** The number of browsers that lead to a customer. */
  async browserCountOf(entityId: string): Promise<number> {
    const path = `/admin/customers/${entityId}`;
    const { status, body } = await available(() => manage(this.pods[0], 'GET', path, bearer(OPERATOR_TOKEN)));
    expect(status).toBe(200);
    return body.browsers.length;
  }

  /**
   * The tokens that an offline verifier still accepts some seconds after they ended. Fails if the verifier rejects a
   * token of a customer whom nothing has ended.
   */
  async acceptedByVerifier(tokens: string[]): Promise<string[]> {
    const deadline = performance.now() + FEED_TIMEOUT_MS;
    let accepted = tokens;
    for (;;) {
      const checks = accepted.map(async (token) => ((await this.isAccepted(token)) ? [token] : []));
      accepted = (await Promise.all(checks)).flat();
      if (accepted.length === 0 || performance.now() > deadline) break;
      await sleep(PAUSE_MS);
    }
    expect(await this.isAccepted((await newCustomer(this.patient)).access_token)).toBe(true);
    return accepted;
  }

  private async isAccepted(token: string): Promise<boolean> {
    try {
      await this.verifier.verify(token);
      return true;
    } catch (error) {
      expect((error as { code: string }).code).toMatch(/revoked$|_generation$/);
      return false;
    }
  }
}

/** The same process, to which each request is repeated while the database is unavailable. Only races do not repeat. */
export function patient(pod: RacePod): RacePod {
  return {
    ...pod,
    post: (...parameters) => available(() => pod.post(...parameters)),
    send: (...parameters) => available(() => pod.send(...parameters)),
  };
}

/** Whether an access token is active in a process (protocol §7.1). */
export async function isActiveAt(pod: RacePod, token: string): Promise<boolean> {
  const headers = { ...basic(RESOURCE_SERVER, RESOURCE_SERVER_SECRET), 'content-type': FORM };
  const form = new URLSearchParams({ token }).toString();
  const { status, body } = await available(() => manage(pod as never, 'POST', '/oauth2/introspect', headers, form));
  expect(status).toBe(200);
  return body.active;
}

/** Repeats a request while the database is unavailable: nodes conflict, or the machine is busy. */
export async function available(send: () => Promise<TestResponse>): Promise<TestResponse> {
  for (let repeats = 0; ; repeats++) {
    const response = await send();
    if (response.status !== 503 || repeats === MAX_REPEATS) return response;
    await sleep(PAUSE_MS);
  }
}

function registryOf(users: SignInSystem): RegistryDocument {
  const { issuer } = users.settings();
  const settings = { issuer, jwks: users.jwks, link_browsers: true };
  const registry = registryWithSignIn({ [ACME]: settings }, managingRegistry());
  const grant_types = [...WITH_REFRESH, 'device_approval'];
  const more = { name: 'One more', license: { chat_between_groups: false }, public_clients: 'all' };
  const organizations = MORE_ORGANIZATIONS.map((id) => ({ id, ...more }));
  return {
    ...registry,
    organizations: [...registry.organizations, ...organizations],
    clients: changed(registry.clients, [ACME_SITE], { grant_types }),
    resource_servers: [{ id: RESOURCE_SERVER, secret: RESOURCE_SERVER_SECRET, audiences: ['customer-api'] }],
  };
}

/**
 * The processes that race in the tests of a file.
 *
 * @param urlsOf the URLs of the database for the two processes
 */
export function useRaceWorld(urlsOf: () => Promise<readonly [string, string]>): RaceWorld {
  vi.setConfig({ testTimeout: RACE_TIMEOUT_MS });
  const world = {} as RaceWorld;
  let started: RaceWorld | undefined;
  beforeAll(async () => {
    started = await RaceWorld.start(await urlsOf());
    Object.setPrototypeOf(world, started);
  });
  afterAll(() => started?.stop());
  return world;
}
