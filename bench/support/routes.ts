/** The measured routes: the bytes of their requests. */
import {
  CLIENT,
  CODE_VERIFIER,
  challengedToken,
  customer,
  customerOfYesterday,
  ORGANIZATION,
  ORIGIN,
  RESOURCE_SERVER,
  refreshToken,
  tokenMaker,
  transferToken,
} from './site.js';

export interface Route {
  name: string;
  /** Of the next round. */
  requests: () => string[];
  /** Whether the floor has the route. */
  hasFloor?: boolean;
  isManagement?: boolean;
  /** The longest round for which there are requests. */
  maxSeconds?: number;
}

/** Callers of a route: too many for the caches of the processor, and for the tokens that the service remembers. */
const CALLER_COUNT = 20_000;
const NUMBERS = Array.from({ length: CALLER_COUNT }, (_, index) => index + 1);
/** Requests whose token works once: how many a round has, and how long it may last. */
export const SINGLE_USE = { count: 30_000, seconds: 2 };
/** Few enough tokens for the service to remember. A customer may have 60 unredeemed transfer tokens. */
const REPEATED_TOKEN_COUNT = 1_000;
/** The next round begins so many tokens later, when the service has forgotten those of the round before. */
const NEW_TOKENS_PER_ROUND_COUNT = 5_714;

/** Returning customers, who are spread evenly over the customers in the database, and new ones. */
export function visits(customers = CALLER_COUNT): [Route, Route] {
  const returning = NUMBERS.map((n) => visit(customer(1 + Math.floor(((n - 1) * customers) / CALLER_COUNT))));
  return [
    { name: 'returning customer', hasFloor: true, requests: same(returning) },
    { name: 'new customer', hasFloor: true, requests: same([requestToken(COOKIE_GRANT)]) },
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
  const endSessions = (n: number) =>
    post('/v2/customer/end_sessions', { customer_id: customer(n).entityId }, bearer(agent));
  return [
    ...visits(),
    { name: 'returning, first call of the day', ...singleUse((n) => visit(customerOfYesterday(n))) },
    { name: 'agent token', requests: same(NUMBERS.map((n) => ofAgent(n, agent))) },
    {
      name: 'agent token, new tokens',
      hasFloor: true,
      requests: newTokens(NUMBERS.map((n, index) => ofAgent(n, agents[index] as string))),
    },
    { name: 'transfer: create', requests: repeatedTokens(transfers) },
    { name: 'transfer: create, new tokens', requests: newTokens(transfers) },
    { name: 'transfer: exchange', hasFloor: true, ...singleUse((n) => exchange({ code: transferToken(n) })) },
    { name: 'remember', ...singleUse(remember) },
    {
      name: 'refresh_token',
      ...singleUse((n) => requestToken({ grant_type: 'refresh_token', refresh_token: refreshToken(n) })),
    },
    { name: 'info', hasFloor: true, requests: repeatedTokens(infos) },
    { name: 'info, new tokens', hasFloor: true, requests: newTokens(infos) },
    { name: 'introspection', isManagement: true, requests: repeatedTokens(introspections) },
    { name: 'introspection, new tokens', isManagement: true, requests: newTokens(introspections) },
    { name: 'end_sessions', requests: same(NUMBERS.map(endSessions)) }, // the last route: the tokens end
  ];
}

const COOKIE_GRANT = { grant_type: 'cookie', organization_id: ORGANIZATION };

/** A request with the identity cookies of a browser. */
function visit({ entityId, secret }: ReturnType<typeof customer>): string {
  return requestToken(COOKIE_GRANT, `Cookie: __svc_cid=${entityId}; __svc_cst=${secret}`);
}

function exchange(parameters: Record<string, string>, header?: string): string {
  return requestToken({ grant_type: 'identity_token', ...parameters }, header);
}

function remember(n: number): string {
  const parameters = { code: challengedToken(n), code_verifier: CODE_VERIFIER, remember: 'browser' };
  return exchange(parameters, `Origin: ${ORIGIN}`);
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
const newTokens = (requests: string[]) => rotating(requests, NEW_TOKENS_PER_ROUND_COUNT);

/** Requests that succeed once. Each round gets the next ones. */
function singleUse(request: (n: number) => string): Pick<Route, 'requests' | 'maxSeconds'> {
  let sent = 0;
  const requests = () => Array.from({ length: SINGLE_USE.count }, () => request(++sent));
  return { requests, maxSeconds: SINGLE_USE.seconds };
}

/** Each round begins with a later request, and may have only the next few. */
function rotating(requests: string[], step: number, count = requests.length): () => string[] {
  let rounds = 0;
  return () => {
    const first = (rounds++ * step) % requests.length;
    return [...requests.slice(first), ...requests.slice(0, first)].slice(0, count);
  };
}
