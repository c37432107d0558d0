/** The measured routes: the bytes of their requests. */
import type { Connection } from 'mysql2/promise';
import { ROUND_SECONDS } from './measure.js';
import {
  CLIENT,
  customer,
  customerOfYesterday,
  ORGANIZATION,
  RESOURCE_SERVER,
  seedCustomersOfYesterday,
  seedTransferTokens,
  tokenMaker,
  transferToken,
} from './site.js';

export interface Route {
  name: string;
  /** Of the next round. */
  requests: () => string[];
  /** Whether the limit (bench/limit.js) has the route. */
  hasLimit?: boolean;
  isManagement?: boolean;
  /** Adds what the requests need. */
  seed?: (database: Connection) => Promise<void>;
  /** The longest round for which there are requests. */
  maxSeconds?: number;
}

/** Callers of a route: too many for the caches of the processor, and for the tokens that the service remembers. */
const CALLER_COUNT = 20_000;
const NUMBERS = Array.from({ length: CALLER_COUNT }, (_, index) => index + 1);
/** Requests that work once: how many seconds a round may last, and how many there are for a second. */
const SINGLE_USE = { maxSeconds: Math.min(2, ROUND_SECONDS), count: 15_000 };
/** Of both servers, with warm-up, comparison and repetition. */
const SINGLE_USE_ROUND_COUNT = 14;
/** Few enough tokens for the service to remember. A customer may have 60 unredeemed transfer tokens. */
const REPEATED_TOKEN_COUNT = 1_000;
/** The next round begins so many tokens later, when the service has forgotten those of the round before. */
const NEW_TOKENS_PER_ROUND = 5_714;

export const [RETURNING, FIRST_CALL] = ['returning customer', 'first call of a day'];

/** Returning customers, who are spread evenly over the customers in the database, and new ones. */
export function visits(customers = CALLER_COUNT): [Route, Route] {
  const returning = NUMBERS.map((n) => visit(customer(1 + Math.floor(((n - 1) * customers) / CALLER_COUNT))));
  return [
    { name: RETURNING, hasLimit: true, requests: same(returning) },
    { name: 'new customer', hasLimit: true, requests: same([requestToken(COOKIE_GRANT)]) },
  ];
}

export async function routesOf(keysFile: string): Promise<Route[]> {
  const tokens = await tokenMaker(keysFile);
  const agent = await tokens.ofAgent();
  const bearers = await Promise.all(NUMBERS.map((n) => tokens.ofCustomer(n)));
  const agents = await Promise.all(NUMBERS.map(() => tokens.ofAgent()));
  const transfers = bearers.map((token) =>
    post('/v2/customer/identity_transfer', { bearer_type: 'customer', client_id: CLIENT }, bearer(token)),
  );
  const infos = bearers.map((token) => `GET /v2/customer/info HTTP/1.1\r\nHost: localhost\r\n${bearer(token)}\r\n\r\n`);
  const basic = Buffer.from(`${RESOURCE_SERVER.id}:${RESOURCE_SERVER.secret}`).toString('base64');
  const introspections = bearers.map((token) => post('/oauth2/introspect', { token }, `Authorization: Basic ${basic}`));
  const ofAgent = (n: number, token: string) =>
    requestToken({ grant_type: 'agent_token', entity_id: customer(n).entityId }, bearer(token));
  const [returning, ofNew] = visits();
  return [
    returning,
    ofNew,
    { name: FIRST_CALL, ...singleUse((n) => visit(customerOfYesterday(n)), seedCustomersOfYesterday) },
    { name: 'agent token', hasLimit: true, requests: same(NUMBERS.map((n) => ofAgent(n, agent))) },
    {
      name: 'agent token, new tokens',
      hasLimit: true,
      requests: newTokens(NUMBERS.map((n, index) => ofAgent(n, agents[index] as string))),
    },
    { name: 'transfer: create', requests: repeatedTokens(transfers) },
    {
      name: 'transfer: redemption',
      hasLimit: true,
      ...singleUse((n) => redemption(transferToken(n)), seedTransferTokens),
    },
    { name: 'info', hasLimit: true, requests: repeatedTokens(infos) },
    { name: 'info, new tokens', hasLimit: true, requests: newTokens(infos) },
    { name: 'introspection, new tokens', isManagement: true, requests: newTokens(introspections) },
  ];
}

const COOKIE_GRANT = { grant_type: 'cookie', organization_id: ORGANIZATION };

/** A request with the identity cookies of a browser. */
function visit({ entityId, secret }: ReturnType<typeof customer>): string {
  return requestToken(COOKIE_GRANT, `Cookie: __svc_cid=${entityId}; __svc_cst=${secret}`);
}

function redemption(code: string): string {
  return requestToken({ grant_type: 'identity_token', code });
}

function requestToken(parameters: Record<string, string>, header?: string): string {
  return post('/v2/customer/token', { client_id: CLIENT, response_type: 'token', ...parameters }, header);
}

/** JSON with the Content-Type of browsers. */
function post(path: string, parameters: object, header?: string): string {
  const body = JSON.stringify(parameters);
  const headers = ['Host: localhost', 'Content-Type: text/plain', ...(header ? [header] : [])].join('\r\n');
  return `POST ${path} HTTP/1.1\r\n${headers}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

const bearer = (token: string) => `Authorization: Bearer ${token}`;

const same = (requests: string[]) => () => requests;
const repeatedTokens = (requests: string[]) => rotating(requests, REPEATED_TOKEN_COUNT, REPEATED_TOKEN_COUNT);
const newTokens = (requests: string[]) => rotating(requests, NEW_TOKENS_PER_ROUND);

/** Requests that succeed once. Each round gets the next ones. */
function singleUse(
  request: (n: number) => string,
  seed: (database: Connection, count: number) => Promise<void>,
): Pick<Route, 'requests' | 'seed' | 'maxSeconds'> {
  const { count, maxSeconds } = SINGLE_USE;
  let sent = 0;
  return {
    requests: () => Array.from({ length: count * maxSeconds }, () => request(++sent)),
    seed: (database) => seed(database, SINGLE_USE_ROUND_COUNT * count * maxSeconds),
    maxSeconds,
  };
}

/** Each round begins with a later request, and may have only the next few. */
function rotating(requests: string[], step: number, count = requests.length): () => string[] {
  let rounds = 0;
  return () => {
    const first = (rounds++ * step) % requests.length;
    return [...requests.slice(first), ...requests.slice(0, first)].slice(0, count);
  };
}
