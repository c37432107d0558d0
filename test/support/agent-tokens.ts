import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { type RegistryDocument } from '../../packages/conformance-kit/src/registry-file.js';
import { BACKEND_CALLBACK, FORM } from './authorization-page.js';
import { applyRegistry } from './registry-files.js';
import { ACME, ACME_BACKEND, ACME_SITE, BACKEND_SECRET, changed } from './test-registry.js';
import { type HttpClient, type TestResponse, type TestService } from './test-service.js';
import { type UsedService } from './use-service.js';

/** A PKCE pair (RFC 7636). */
export function pkce(verifier = randomBytes(32).toString('base64url')) {
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  return { verifier, asked: { code_challenge: challenge, code_challenge_method: 'S256' } };
}

export const AS_BACKEND = { client_id: ACME_BACKEND, client_secret: BACKEND_SECRET };

/** Sends a request to `/v2/token`. By default the backend authenticates with `client_secret_post`. */
export function askToken(service: HttpClient, fields: Record<string, string | undefined>): Promise<TestResponse> {
  const given = Object.entries({ ...AS_BACKEND, ...fields }).filter(
    (pair): pair is [string, string] => pair[1] !== undefined,
  );
  return service.post('/v2/token', new URLSearchParams(given).toString(), { 'content-type': FORM });
}

export function exchangeCode(service: HttpClient, code: string, more: Record<string, string | undefined> = {}) {
  return askToken(service, { grant_type: 'authorization_code', code, redirect_uri: BACKEND_CALLBACK, ...more });
}

export function refresh(service: HttpClient, refreshToken: string, more: Record<string, string | undefined> = {}) {
  return askToken(service, { grant_type: 'refresh_token', refresh_token: refreshToken, ...more });
}

/** Applies a registry again with a new password for one agent. */
export async function changePassword(service: TestService, registry: RegistryDocument, email: string): Promise<string> {
  const password = randomBytes(16).toString('hex');
  await applyRegistry(service, { ...registry, agents: changed(registry.agents ?? [], [email], { password }) });
  return password;
}

/** The parameters of the agent token grant (protocol §4.3). */
export function agentTokenBody(more: object = {}): object {
  return { grant_type: 'agent_token', client_id: ACME_SITE, response_type: 'token', ...more };
}

/** The claims of an access token of the service, without verification. */
export function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] as string, 'base64url').toString());
}

/** An agent of ACME that exists only in the database, and its path in the admin API. */
export async function newAgent(service: UsedService): Promise<{ id: string; email: string; path: string }> {
  const email = `${randomUUID()}@acme.example`;
  const entry = { email, name: 'New', password: 'a password of the agent', organization_id: ACME };
  const { status, body } = await service.admin('POST', '/admin/agents', { ...entry, scopes: ['customers:own'] });
  expect(status).toBe(201);
  return { id: body.id, email, path: `/admin/agents/${body.id}` };
}
