import { createHash } from 'node:crypto';
import {
  ACME,
  ACME_BACKEND,
  ACME_NATIVE,
  ACME_ORIGIN,
  ACME_PAGE,
  ACME_PREFIX,
  ACME_SITE,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_ORIGIN,
  RIVAL_SITE,
  SHARED,
  SHARED_SITE,
} from '../support/test-registry.js';

/** An application with an organization that admits it and with valid parameters. */
export interface Role {
  client_id: string;
  organization_id: string;
  redirect_uri: string;
  origin?: string;
  response_type: string;
}

const role = (
  client_id: string,
  organization_id: string,
  redirect_uri: string,
  origin?: string,
  response_type = 'token',
) => ({ client_id, organization_id, redirect_uri, response_type, ...(origin && { origin }) }) as Role;

export const BACKEND_ROLE = role(ACME_BACKEND, ACME, 'https://backend.acme.example/callback', undefined, 'code');

export const CAST: readonly Role[] = [
  role(ACME_SITE, ACME, ACME_PAGE, ACME_ORIGIN),
  role(ACME_SITE, ACME, ACME_PAGE, ACME_ORIGIN),
  role(ACME_PREFIX, ACME, 'https://acme.example/app/page', ACME_ORIGIN),
  role(ACME_NATIVE, ACME, 'example.acme:/callback', 'capacitor://localhost', 'code'),
  BACKEND_ROLE,
  role(RIVAL_SITE, RIVAL, `${RIVAL_ORIGIN}/`, RIVAL_ORIGIN),
  role(SHARED_SITE, SHARED, 'https://shared.example/', 'https://shared.example'),
  role(PUBLIC_SITE, ACME, `${PUBLIC_ORIGIN}/`, PUBLIC_ORIGIN),
  role(PUBLIC_SITE, RIVAL, `${PUBLIC_ORIGIN}/`, PUBLIC_ORIGIN),
];

export const ADMIN_TOKEN = 'fuzz-admin-token-with-enough-entropy-0123456789';
export const RESOURCE_SERVER = {
  id: 'customer-chat-api',
  secret: 'fuzz-resource-server-secret-0123456789',
  audiences: ['customer-api', 'agent-api'],
};

/** One PKCE pair for all requests. */
export const VERIFIER = 'fuzz-verifier-of-at-least-forty-three-characters';
export const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url');
