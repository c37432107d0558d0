/**
 * `npm run bench:soak`: two processes of the built service under a mixed load at a fixed rate for SOAK_MINUTES (30).
 * What the load makes, it ends: so memory, handles, rows of the tables and response times must stay as they are. Exits
 * with 1 if one of them grows, or if a response is wrong. SOAK_RATE is the number of sequences of requests per second
 * (60).
 */
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { type RequestOptions, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection, RowDataPacket } from 'mysql2/promise';
import { basic, bearer } from '../test/support/authorization-headers.js';
import type { Table } from './support/figures.js';
import { median, rounded } from './support/measure.js';
import { memory, SERVICE, type Server } from './support/server.js';
import { benchmark, type Setup } from './support/setup.js';
import {
  CLIENT,
  customer,
  ORGANIZATION,
  RESOURCE_SERVER,
  seedAgent,
  seedCustomers,
  tokenMaker,
} from './support/site.js';

const DURATION_MINUTES = Number(process.env.SOAK_MINUTES ?? 30);
const SEQUENCES_PER_SECOND = Number(process.env.SOAK_RATE ?? 60);
const CUSTOMER_COUNT = 5_000;
const TICK_MS = 10;
const TIMEOUT_MS = 15_000;
/** The figures of the first samples count for nothing: the process still warms up. */
const SAMPLE_COUNT = 40;
const WARM_UP_SAMPLE_COUNT = 10;
/** How much the last ten samples may be above the ten after the warm-up. */
const MAX_GROWTH = { memory: 1.15, handles: 1.1, rows: 1.01, latency: 1.5 };
const MAX_PRINTED_LINES = 20;
/** Endings and events stay for a day or longer (protocol §3.14 and §7.8), one for each thing that the load ends. */
const TABLES = ['customer', 'browser', 'session', 'agent_session', 'customer_key', 'one_time_code'];

const ADMIN_TOKEN = 'token-of-the-operator-of-the-soak-0123456789';
const TOKEN = '/v2/customer/token';
const COOKIE_GRANT = { grant_type: 'cookie', client_id: CLIENT, response_type: 'token', organization_id: ORGANIZATION };

/** The medians of a part of the run. The memory and the handles are those of both processes. */
type Sample = Record<keyof typeof MAX_GROWTH, number>;

interface Call {
  method?: string;
  path: string;
  isManagement?: boolean;
  headers?: Record<string, string>;
  body?: object;
  /** The status that the response must have. */
  status?: number;
}

class Soak {
  readonly wrong: string[] = [];
  requestCount = 0;
  /** Milliseconds of the responses since the last sample. */
  private latencies: number[] = [];

  constructor(
    private readonly processes: Server[],
    private readonly connection: Connection,
    private readonly agentToken: string,
  ) {}

  /** Starts sequences at a fixed rate, also while earlier ones wait for their responses. Then waits for all of them. */
  async load(signal: AbortSignal): Promise<void> {
    const begun = performance.now();
    const running = new Set<Promise<void>>();
    for (let started = 0; !signal.aborted; await sleep(TICK_MS))
      for (; started < ((performance.now() - begun) / 1000) * SEQUENCES_PER_SECOND; started++) {
        const sequence = this.sequence(started).catch((error) => void this.wrong.push(`${error}`));
        running.add(sequence);
        sequence.finally(() => running.delete(sequence));
      }
    await Promise.all(running);
  }

  async sample(): Promise<Sample> {
    const latency = median(this.latencies);
    this.latencies = [];
    const sum = (figure: (pid: number) => number) => this.processes.reduce((total, { pid }) => total + figure(pid), 0);
    return { memory: sum(memory), handles: sum(openFiles), rows: await this.countRows(), latency };
  }

  private sequence(number: number): Promise<void> {
    const known = customer(1 + (number % CUSTOMER_COUNT));
    const kind = number % 10;
    if (kind < 5) return this.visit(known);
    if (kind < 7) return this.arriveAndLeave();
    if (kind < 8) return this.transfer(known.entityId);
    if (kind < 9) return this.actAsAgent(known.entityId);
    return this.err();
  }

  /** A customer returns, and the other process accepts its token. */
  private async visit({ entityId, secret }: ReturnType<typeof customer>): Promise<void> {
    const cookie = `__svc_cid=${entityId}; __svc_cst=${secret}`;
    const { json } = await this.send({ path: TOKEN, headers: { cookie }, body: COOKIE_GRANT });
    await this.readInfo(json.access_token, entityId);
  }

  private async arriveAndLeave(): Promise<void> {
    const { json } = await this.send({ path: TOKEN, body: COOKIE_GRANT });
    await this.readInfo(json.access_token, json.entity_id);
    const [path, headers] = [`/admin/customers/${json.entity_id}`, bearer(ADMIN_TOKEN)];
    await this.send({ method: 'DELETE', path, isManagement: true, headers });
    await this.expectEnded(json.access_token);
  }

  /** An agent transfers a customer with PKCE, and the customer ends the new token, in each process. */
  private async transfer(entityId: string): Promise<void> {
    const verifier = randomBytes(32).toString('base64url');
    const code_challenge = createHash('sha256').update(verifier).digest('base64url');
    const { json: transferred } = await this.send({
      path: '/v2/customer/identity_transfer',
      headers: bearer(this.agentToken),
      body: { bearer_type: 'agent', client_id: CLIENT, customer_id: entityId, code_challenge },
    });
    const code = { code: transferred.identity_transfer_token, code_verifier: verifier };
    const { json } = await this.send({
      path: TOKEN,
      body: { grant_type: 'identity_token', client_id: CLIENT, ...code },
    });
    await this.introspect(json.access_token, true);
    await this.send({ method: 'DELETE', path: TOKEN, headers: bearer(json.access_token) });
    await this.introspect(json.access_token, false);
    await this.expectEnded(json.access_token);
  }

  private async actAsAgent(entity_id: string): Promise<void> {
    const body = { grant_type: 'agent_token', client_id: CLIENT, response_type: 'token', entity_id };
    const { json } = await this.send({ path: TOKEN, headers: bearer(this.agentToken), body });
    await this.readInfo(json.access_token, entity_id);
  }

  private async err(): Promise<void> {
    await this.send({ path: TOKEN, body: { ...COOKIE_GRANT, client_id: 'unknown' }, status: 400 });
    await this.send({ path: TOKEN, body: { grant_type: 'identity_token', client_id: CLIENT, code: 'x' }, status: 400 });
    await this.send({ method: 'GET', path: '/unknown', status: 404 });
  }

  private async readInfo(token: string, entityId: string): Promise<void> {
    const { json } = await this.send({ method: 'GET', path: '/v2/customer/info', headers: bearer(token) });
    if (json.entity_id !== entityId) throw new Error(`a token of ${json.entity_id} in place of ${entityId}`);
  }

  private async expectEnded(token: string): Promise<void> {
    await this.send({ method: 'GET', path: '/v2/customer/info', headers: bearer(token), status: 401 });
  }

  private async introspect(token: string, isActive: boolean): Promise<void> {
    const headers = basic(RESOURCE_SERVER.id, RESOURCE_SERVER.secret);
    const { json } = await this.send({ path: '/oauth2/introspect', isManagement: true, headers, body: { token } });
    if (json.active !== isActive) throw new Error(`introspection: ${JSON.stringify(json)}`);
  }

  /** Sends each request to the next process. @throws Error if the response has another status */
  private async send({ method = 'POST', path, isManagement, headers = {}, body, status = 200 }: Call) {
    const process = this.processes[this.requestCount++ % this.processes.length] as Server;
    const from = performance.now();
    const url = (isManagement ? process.managementUrl : process.url) + path;
    const options = { method, headers: { 'content-type': 'text/plain', ...headers } };
    const [received, content] = await exchange(url, options, body && JSON.stringify(body));
    this.latencies.push(performance.now() - from);
    if (received !== status) throw new Error(`${method} ${path}: ${received} ${content}`);
    return { json: content && JSON.parse(content) };
  }

  private async countRows(): Promise<number> {
    const counts = TABLES.map((table) => `(SELECT COUNT(*) FROM ${table})`).join(' + ');
    const [[row]] = await this.connection.query<RowDataPacket[]>(`SELECT ${counts} AS count`);
    return row?.count;
  }
}

await benchmark('npm run bench:soak', '256M', async (setup) => {
  const soak = await prepare(setup);
  const ended = new AbortController();
  const loading = soak.load(ended.signal);
  const samples: Sample[] = [];
  while (samples.length < SAMPLE_COUNT) {
    await sleep((DURATION_MINUTES * 60_000) / SAMPLE_COUNT);
    samples.push(await soak.sample());
  }
  ended.abort();
  await loading;
  const figures = growth(samples);
  for (const each of soak.wrong.slice(0, MAX_PRINTED_LINES)) console.error(`wrong: ${each}`);
  const grown = Object.entries(figures).filter(([name, { ratio }]) => ratio > MAX_GROWTH[name as keyof Sample]);
  for (const [name] of grown) console.error(`grows: ${name}`);
  if (grown.length > 0 || soak.wrong.length > 0) process.exitCode = 1;
  return [{ 'the run': { requests: soak.requestCount, 'wrong responses': soak.wrong.length } }, figures];
});

async function prepare({ connection, environment, start }: Setup): Promise<Soak> {
  await seedCustomers(connection, 1, CUSTOMER_COUNT);
  await seedAgent(connection);
  const { ofAgent } = await tokenMaker(environment.SIGNING_KEYS_FILE);
  const startOne = () => start(SERVICE, { ADMIN_TOKENS: `soak:all:${ADMIN_TOKEN}` });
  const processes = [await startOne(), await startOne()];
  await sleep(2_000);
  return new Soak(processes, connection, await ofAgent());
}

/** The medians after the warm-up and at the end, and their ratio. */
function growth(samples: Sample[]) {
  const medianOf = (some: Sample[], name: keyof Sample) => median(some.map((sample) => sample[name]));
  const rows = (Object.keys(MAX_GROWTH) as (keyof Sample)[]).map((name) => {
    const first = medianOf(samples.slice(WARM_UP_SAMPLE_COUNT, 2 * WARM_UP_SAMPLE_COUNT), name);
    const last = medianOf(samples.slice(-WARM_UP_SAMPLE_COUNT), name);
    return [name, { first: rounded(first), last: rounded(last), ratio: Number((last / first).toFixed(3)) }] as const;
  });
  return Object.fromEntries(rows) satisfies Table;
}

function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Resolves to the status and the body. Unlike a `fetch` with a signal, it also settles if the request is lost. */
function exchange(url: string, options: RequestOptions, body?: string): Promise<[status: unknown, content: string]> {
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`no response from ${url}`)), TIMEOUT_MS).unref();
    const sent = request(url, options, (response) => {
      text(response).then((content) => resolve([response.statusCode, content]), reject);
    });
    sent.on('error', reject).end(body);
  });
}
