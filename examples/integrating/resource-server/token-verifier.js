import { readFile } from 'node:fs/promises';
import { createTokenVerifier, TokenVerifierError } from '@customer-authorization/token-verifier';
import { requireToken } from '@customer-authorization/token-verifier/express';
import express from 'express';

const STARTUP_TIMEOUT_MS = 30_000;
const PAGE_ORIGINS = (process.env.PAGE_ORIGINS ?? 'http://localhost:8080').split(',');
const { ASSERTION_FILE, RESOURCE_SERVER_SECRET = '' } = process.env;
const CREDENTIALS = ASSERTION_FILE
  ? { assertion: () => readFile(ASSERTION_FILE, 'utf8') }
  : { secret: RESOURCE_SERVER_SECRET };
const PREFLIGHT = { 'Access-Control-Allow-Headers': 'Authorization, Content-Type', 'Access-Control-Max-Age': '7200' };

export const verifier = createTokenVerifier({
  issuer: process.env.AUTH_URL ?? 'http://localhost:3000',
  jwksUrl: process.env.JWKS_URL, // if omitted, the usual path below the issuer
  audience: 'customer-api',
  allowPlainHttp: process.env.ALLOW_PLAIN_HTTP === 'true', // only in a network that encrypts the packets
  revocations: {
    url: process.env.REVOCATIONS_URL ?? 'http://localhost:3001/oauth2/revocations',
    id: process.env.RESOURCE_SERVER_ID ?? 'chat-api',
    ...CREDENTIALS,
    maxAgeSeconds: 60,
    onStale: 'reject',
  },
});

const app = express();
app.get('/health', (_request, response) => {
  response.json(verifier.state); // 200 also if the list is stale, otherwise all replicas would be unready at once
});
app.use((request, response, next) => {
  // before requireToken: a preflight has no token, and without these headers a page cannot read a 401
  const { origin = '' } = request.headers;
  response.vary('Origin');
  if (!PAGE_ORIGINS.includes(origin)) return next();
  response.set({ 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': 'Retry-After' });
  if (request.method !== 'OPTIONS') return next();
  response.set(PREFLIGHT).sendStatus(204);
});
app.use(requireToken(verifier));
app.get('/organizations/:organization/chats', (request, response) => {
  const { sub, organization_id, act, gty } = request.auth;
  if (request.params.organization !== organization_id) return response.status(404).json({ error: 'not_found' });
  const speaker = act ? `agent ${act.sub} for customer ${sub}` : `customer ${sub}`;
  process.stderr.write(`audit: ${speaker} read chats (${gty})\n`);
  response.json({ customer: sub, organization: organization_id });
});
app.use((error, _request, response, next) => {
  if (!(error instanceof TokenVerifierError)) return next(error);
  process.stderr.write(`token not accepted: ${error.code}\n`); // not in the response: it may help an attacker
  response.status(error.statusCode).set(error.headers);
  if (error.code === 'missing_token') return response.json({}); // no error code if there is no token
  response.json({ error: error.statusCode === 401 ? 'invalid_token' : 'temporarily_unavailable' });
});

// before the process listens; if it rejects, the process exits with code 1, and the orchestrator starts it again
await verifier.ready({ signal: AbortSignal.timeout(STARTUP_TIMEOUT_MS) });
export const server = app.listen(Number(process.env.PORT ?? 9000), process.env.HOST ?? '127.0.0.1');
process.once('SIGTERM', () => server.close(() => verifier.close()));
